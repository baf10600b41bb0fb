# SPDX-License-Identifier: BSD-2-Clause
"""dead_replay and dead_drop: what becomes of dead letters."""

import pytest
from harness.wire import Envelope, Obituary, Record, ce_id
from test_schedule import ODD_BYTES


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


@pytest.fixture
def instance(shard):
    return shard.join()


def bury(shard, instance, reason="too large"):
    """Everything that is due; the ce_ids."""
    entries = instance.claim().entries
    names = []
    for member, envelope in entries.items():
        birth = Record.unpack(envelope.record).birth
        names.append(ce_id(member, birth))
    burials = [(m, n, reason) for m, n in zip(entries, names)]
    assert instance.settle(bury=burials) == b"settled"
    return names


def test_replay_is_a_new_life_due_now(shard, instance):
    name = shard.schedule("a", "+0", "t", "k", "p", "header.h", "v")[2]
    old = shard.record("s:a")
    assert bury(shard, instance) == [name]
    before = shard.now()
    word, due, new_name = shard.call("dead_replay", name)
    assert word == b"replayed" and before <= int(due) <= shard.now()
    new = shard.record("s:a")
    assert new.fields == old.fields and new.birth > old.birth and new.attempt == 0
    assert new_name == ce_id(b"s:a", new.birth) != name
    assert shard.keys() == {shard.name("due"), shard.name("rec")}
    assert list(instance.claim().entries) == [b"s:a"]
    shard.refused("LAPSE_NOTFOUND", "dead_replay", name)


def test_attempts_start_anew(shard, instance):
    record = Record(shard.now_us() + 86400_000000, 3, [(b"t", b"t")])
    envelope = Envelope(5, "-", record.pack()).pack()
    shard.client.hset(shard.name("why"), "x@1.3", Obituary(b"r", b"s:a", envelope).pack())
    shard.client.zadd(shard.name("dead"), {"x@1.3": 1})
    assert shard.call("dead_replay", "x@1.3")[2] == ce_id(b"s:a", record.birth + 1)
    assert shard.record("s:a") == Record(record.birth + 1, 0, record.fields)


def test_replay_is_refused_while_the_id_lives(shard, instance):
    name = shard.schedule("a", "+0")[2]
    bury(shard, instance)
    shard.schedule("a", "+60000")
    shard.refused("LAPSE_EXISTS", "dead_replay", name)
    shard.call("reschedule", "a", "+0")
    instance.claim()
    shard.refused("LAPSE_EXISTS", "dead_replay", name)
    instance.settle()
    assert shard.call("dead_replay", name)[0] == b"replayed"


def test_an_expiry_is_replayed_whatever_became_of_the_key(shard, instance, lazy):
    due, name = shard.call("setex", "1", "v", "db", "3", key="k:1")[1:]
    shard.pass_by(due)
    assert bury(shard, instance) == [name]
    shard.call("setex", "60000", "new", "db", "3", key="k:1")
    new_name = shard.call("dead_replay", name)[2]
    member, envelope = instance.claim_one()
    record = Record.unpack(envelope.record)
    assert member == b"e:%d:3:k:1" % record.birth and record.get(b"p") == b"v"
    assert ce_id(member, record.birth) == new_name
    assert new_name.startswith(b"k:3:k:1@")
    instance.settle()
    assert list(shard.due()) == [b"k:3:k:1"]


def test_how_sure_an_expiry_was_outlives_a_replay(shard, instance):
    shard.pass_by(shard.call("setex", "1", "v", key="k")[1])
    member, envelope = instance.claim_one("k:0:k", "0!")
    assert envelope.certainty == "h"
    name = ce_id(member, Record.unpack(envelope.record).birth)
    instance.settle(bury=[(member, name, "refused")])
    assert shard.call("dead_replay", name)[0] == b"replayed"
    assert instance.claim_one()[1].certainty == "h"


def test_a_replayed_expiry_dies_and_is_replayed_again(shard, instance, lazy):
    due, name = shard.call("setex", "1", "v", key="k")[1:]
    shard.pass_by(due)
    names = bury(shard, instance)
    for _ in range(3):
        new = shard.call("dead_replay", names[0])[2]
        names = bury(shard, instance)
        assert names == [new]
    assert shard.client.zcard(shard.name("dead")) == 1


@pytest.mark.parametrize("odd", ODD_BYTES)
def test_any_byte(shard, instance, odd):
    shard.schedule(odd, "+0", "t", odd, odd)
    (name,) = bury(shard, instance, odd)
    shard.call("dead_replay", name)
    assert list(shard.due()) == [b"s:" + odd]
    assert shard.record(b"s:" + odd).get(b"p") == odd


def test_drop(shard, instance):
    for id in "ab":
        shard.schedule(id, "+0")
    names = bury(shard, instance)
    assert shard.call("dead_drop", names[0]) == [b"dropped"]
    assert shard.client.hkeys(shard.name("why")) == names[1:]
    assert shard.client.zrange(shard.name("dead"), 0, -1) == names[1:]
    shard.refused("LAPSE_NOTFOUND", "dead_drop", names[0])
    assert shard.call("dead_drop", names[1]) == [b"dropped"]
    assert shard.keys() == set()


def test_half_a_dead_letter_can_be_dropped(shard):
    shard.client.zadd(shard.name("dead"), {"x": 1})
    shard.client.hset(shard.name("why"), "y", "z")
    shard.refused("LAPSE_NOTFOUND", "dead_replay", "x")
    shard.refused("LAPSE_BADRECORD", "dead_replay", "y")
    assert shard.call("dead_drop", "x") == shard.call("dead_drop", "y") == [b"dropped"]
    assert shard.keys() == set()


GOOD = Record(5, 0, [(b"t", b"t"), (b"p", b"p")]).pack()
READABLE = Envelope(1, "-", GOOD).pack()


@pytest.mark.parametrize("obituary", [
    b"",
    b"\x02",
    b"\x01",
    b"\x01\0",
    b"\x01\xff\xff",
    b"\x01\0\1r",
    b"\x01\0\1r\0",
    b"\x01\0\1r\0\xff",
    b"\x01\0\1r\0\3s:a",
    Obituary(b"r", b"s:a", READABLE[:9]).pack(),
    Obituary(b"r", b"s:a", b"\x02" + READABLE[1:]).pack(),
    Obituary(b"r", b"s:a", READABLE[:10]).pack(),
    Obituary(b"r", b"s:a", Envelope(1, "-", b"\x01" + b"x" * 9).pack()).pack(),
    Obituary(b"r", b"s:a", Envelope(1, "-", GOOD[:11] + b"z\0\0" + GOOD[11:]).pack()).pack(),
    Obituary(b"r", b"s:a", Envelope(1, "-", GOOD[:13]).pack()).pack(),
    Obituary(b"r", b"s:a", Envelope(1, "-", GOOD[:15] + GOOD[11:]).pack()).pack(),
    Obituary(b"r", b"s:a", Envelope(1, "-", Record(5, 0, [(b"p", b"")]).pack()).pack()).pack(),
    Obituary(b"r", b"", READABLE).pack(),
    Obituary(b"r", b"x:a", READABLE).pack(),
    Obituary(b"r", b"k:x", READABLE).pack(),
    Obituary(b"r", b"k:0:", READABLE).pack(),
    Obituary(b"r", b"e:0:k", READABLE).pack(),
], ids=repr)
def test_what_cannot_be_read_stays_dead(shard, obituary):
    shard.client.hset(shard.name("why"), "x", obituary)
    shard.client.zadd(shard.name("dead"), {"x": 1})
    shard.refused("LAPSE_BADRECORD", "dead_replay", "x")
    assert shard.call("dead_drop", "x") == [b"dropped"]


@pytest.mark.parametrize("name", ["dead_replay", "dead_drop"])
@pytest.mark.parametrize("args,keys", [
    ([], None), (["x", "y"], None), (["x", "y", "z"], None),
    (["x"], []), (["x"], ["lapse"]), (["x"], ["lapse:{0}", "k"]),
])
def test_bad_arguments(shard, name, args, keys):
    shard.refused("LAPSE_BADARG", name, *args, keys=keys)


@pytest.mark.parametrize("name", ["dead_replay", "dead_drop"])
def test_not_found(shard, name):
    shard.refused("LAPSE_NOTFOUND", name, "s:a@1.0")
    shard.refused("LAPSE_NOTFOUND", name, "")
