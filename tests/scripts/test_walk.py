# SPDX-License-Identifier: BSD-2-Clause
"""walk: what disagrees is found and repaired, and nothing else is touched."""

import time

import pytest
from harness.wire import Envelope, Obituary, Record
from test_slots import batch_of, held, lose

PARTS = ["keys", "batches", "epoch", "open", "dead", "why", "due", "rec"]
PART_OF = {
    "due-without-record": "due", "record-without-due": "rec", "record-unreadable": "rec",
    "open-without-batch": "open", "batch-without-open": "batches", "dead-without-why": "dead",
    "why-without-dead": "why", "epoch-behind": "epoch", "seq-behind": "open",
}


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


def step(shard, part, cursor=0, count=200, repair=0, *names):
    """Next cursor, how many were looked at, [(kind, name, done)]."""
    answer = shard.call("walk", part, cursor, count, repair, *names)
    assert len(answer) % 3 == 2
    return answer[0], int(answer[1]), list(zip(answer[2::3], answer[3::3], answer[4::3]))


def walk(shard, part, repair=0, count=200):
    cursor, everything = 0, []
    while True:
        cursor, _, found = step(shard, part, cursor, count, repair)
        everything += found
        if cursor == b"0":
            return everything


def walk_all(shard, repair=0, count=200):
    return [x for part in PARTS for x in walk(shard, part, repair, count)]


def find(shard, kind, name, done, *also):
    """
    Exactly this is found, nothing changed by that; it is found again by its name;
    then it is repaired, and all is well.
    """
    wanted = [(kind, name), *also]
    before = shard.dump()
    found = walk_all(shard)
    assert {(k.decode(), n) for k, n, _ in found} == set(wanted)
    assert all(d == b"" for _, _, d in found)
    part = PART_OF[kind]
    assert step(shard, part, 7, 1, 0, name, "no such")[::2] == (b"7", [(kind.encode(), name, b"")])
    assert shard.dump() == before
    repaired = walk_all(shard, repair=1)
    assert repaired[0] == (kind.encode(), name, done)
    assert walk_all(shard) == []


@pytest.fixture
def healthy(shard):
    """One of everything: pending, on its way, parked, dead, seen, left behind."""
    shard.client.set("unrelated", "value")
    one, two = shard.join("n1"), shard.join("n2")
    batch_of(shard, one, "claimed")
    batch_of(shard, two, "orphan")
    batch_of(shard, one, "parked", "dead")
    dead = Record.unpack(Envelope.unpack(shard.batch(one.name())[b"s:dead"]).record)
    one.settle(one.seq, [("s:dead", b"s:dead@%d.0" % dead.birth, "too large")],
               [(one.seq + 1, "t", shard.now() + 60000, ["s:parked"])])
    shard.call("setex", 1, "v", key="gone")
    shard.pass_by(shard.now() + 3)
    shard.call("setex", 60000, "v", key="gone")
    shard.call("setex", 60000, "v", key="copied")
    shard.call("setex", 60000, "v", "copy", 0, key="bare")
    shard.schedule("later")
    shard.schedule("claimed", "+60000")     # a new life beside the claimed one
    two.call("leave")
    kinds = {m[:2] for m in shard.due()}
    assert kinds == {b"s:", b"k:", b"e:"}
    return shard


def test_all_is_well(healthy):
    before = healthy.dump()
    assert walk_all(healthy) == []
    assert walk_all(healthy, repair=1) == []
    assert healthy.dump() == before


def test_nothing_at_all(shard):
    assert walk_all(shard) == []
    assert walk_all(shard, repair=1) == []
    assert shard.dump() == {}


def test_due_without_record(healthy):
    due = healthy.due()[b"s:later"]
    healthy.client.hdel(healthy.name("rec"), "s:later")
    find(healthy, "due-without-record", b"s:later", b"buried")
    assert b"s:later" not in healthy.due()
    name = b"s:later@%d000.0" % due
    obituary = Obituary.unpack(healthy.client.hget(healthy.name("why"), name))
    assert obituary.member == b"s:later" and b"record" in obituary.reason
    assert Envelope.unpack(obituary.envelope) == Envelope(due, "-", b"")


@pytest.mark.parametrize("score", ["-inf", "+inf", "1.5", "-1"])
def test_a_due_time_that_is_none(shard, score):
    shard.client.zadd(shard.name("due"), {"s:odd": score})
    find(shard, "due-without-record", b"s:odd", b"buried")


def test_record_without_due(healthy):
    """It is put back, is due now, and is the same life."""
    record = healthy.records()[b"s:later"]
    healthy.client.zrem(healthy.name("due"), "s:later")
    before = healthy.now()
    find(healthy, "record-without-due", b"s:later", b"put back")
    assert before <= healthy.due()[b"s:later"] <= healthy.now()
    instance = healthy.join("n9")
    assert instance.claim().entries[b"s:later"].record == record


def test_daemons_are_woken(healthy):
    listener = healthy.client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(healthy.name("wake"))
    listener.get_message(timeout=1)
    healthy.client.zrem(healthy.name("due"), "s:later", "k:0:copied")
    walk_all(healthy, repair=1)
    message = listener.get_message(timeout=5)
    assert int(message["data"]) == healthy.due()[b"s:later"]
    listener.close()


def test_a_watched_key_says_itself_when_it_is_due(healthy):
    """Put back, due now, the next claim looks at the key: it is still there."""
    due = healthy.due()[b"k:0:copied"]
    healthy.client.zrem(healthy.name("due"), "k:0:copied")
    find(healthy, "record-without-due", b"k:0:copied", b"put back")
    instance = healthy.join("n9")
    assert b"k:0:copied" not in instance.claim().entries
    assert abs(healthy.due()[b"k:0:copied"] - due) <= 2


def test_an_expiry_set_aside_is_put_back(healthy):
    (member,) = [m for m in healthy.due() if m.startswith(b"e:")]
    healthy.client.zrem(healthy.name("due"), member)
    find(healthy, "record-without-due", member, b"put back")


@pytest.mark.parametrize("member, record", [
    (b"s:bad", b"garbage"), (b"s:bad", b""), (b"k:0:bad", b"\x02" + bytes(10)),
    (b"x:what", None), (b"", None), (b"k:none", None), (b"e:1:k", None), (b"s:", None),
    (b"s:\xff\x00%\r\n", b"\x01"),
])
def test_a_record_that_cant_be_read(healthy, member, record):
    """It is buried with all its bytes."""
    if record is None:
        record = Record(5, 0, [(b"t", b"topic"), (b"p", b"payload")]).pack()
    healthy.client.hset(healthy.name("rec"), member, record)
    dead = healthy.client.zcard(healthy.name("dead"))
    find(healthy, "record-unreadable", member, b"buried")
    assert member not in healthy.records()
    assert healthy.client.zcard(healthy.name("dead")) == dead + 1
    letters = [Obituary.unpack(x) for x in healthy.client.hvals(healthy.name("why"))]
    (letter,) = [x for x in letters if x.member == member]
    assert letter.envelope[10:] == record


def test_a_dead_letter_is_not_overwritten(shard):
    due = shard.now()
    name = b"s:a@%d000.0" % due
    shard.client.hset(shard.name("why"), name, b"what it says")
    shard.client.zadd(shard.name("dead"), {name: 1})
    shard.client.zadd(shard.name("due"), {"s:a": due})
    assert walk(shard, "due", 1) == [(b"due-without-record", b"s:a", b"buried")]
    assert shard.client.hget(shard.name("why"), name) == b"what it says"


def test_open_without_batch(healthy):
    name = next(n for n in healthy.open() if n.startswith(b"0:"))
    healthy.client.delete(healthy.name("b:" + name.decode()))
    find(healthy, "open-without-batch", name, b"removed")
    assert name not in healthy.open()


def test_batch_without_open(healthy):
    """It is adopted like any other."""
    name = next(n for n in healthy.open() if n.startswith(b"1:"))
    healthy.client.hdel(healthy.name("open"), name)
    before = healthy.now()
    find(healthy, "batch-without-open", name, b"opened again")
    claimed, adopted = healthy.open()[name].split()
    assert before <= int(claimed) and adopted == b"0"
    instance = healthy.join("n9")
    assert name in instance.left_open
    assert b"s:orphan" in instance.adopt(*name.split(b":")).entries


def test_batches_are_found_by_number_and_by_scan(healthy):
    """By number among the last ones of each slot only."""
    healthy.client.hset(healthy.name("epoch"), "1", "5:n2:1500")
    for seq, by_number in ((500, False), (501, True), (1500, True), (1501, False)):
        healthy.client.hset(healthy.name(f"b:1:{seq}"), "s:x", "envelope")
        name = b"1:%d" % seq
        assert (walk(healthy, "batches") != []) == by_number
        assert walk(healthy, "keys") == [(b"batch-without-open", name, b"")]
        healthy.client.delete(healthy.name(f"b:1:{seq}"))


def test_a_batch_from_the_future_moves_the_numbers_too(healthy):
    healthy.client.hset(healthy.name("b:7:1501"), "s:x", "envelope")
    assert [k for k, *_ in walk_all(healthy, repair=1)] == [b"batch-without-open", b"seq-behind"]
    assert held(healthy)[7] == (b"1", b"", b"1501")
    assert walk_all(healthy) == []


@pytest.mark.parametrize("name", ["x", "", "1", "1:2:3", "-1:2"])
def test_a_batch_with_a_strange_name_is_told(healthy, name):
    healthy.client.hset(healthy.name("b:" + name), "s:x", "envelope")
    wanted = [(b"name-unreadable", name.encode(), b"")]
    before = healthy.dump()
    assert walk_all(healthy) == walk_all(healthy, repair=1) == wanted
    healthy.client.hset(healthy.name("open"), name, "1 0")
    assert walk(healthy, "open", 1) == wanted
    healthy.client.hdel(healthy.name("open"), name)
    assert healthy.dump() == before


def test_dead_without_why(healthy):
    healthy.client.zadd(healthy.name("dead"), {"s:x@1.0": 5})
    find(healthy, "dead-without-why", b"s:x@1.0", b"removed")
    assert healthy.client.zcard(healthy.name("dead")) == 1


def test_why_without_dead(healthy):
    (name,) = healthy.client.zrange(healthy.name("dead"), 0, -1)
    healthy.client.zrem(healthy.name("dead"), name)
    before = healthy.now()
    find(healthy, "why-without-dead", name, b"put back")
    assert before <= healthy.client.zscore(healthy.name("dead"), name) <= healthy.now()
    assert healthy.call("dead_replay", name)[0] == b"replayed"


@pytest.mark.parametrize("epoch", [None, "0::0", "garbage", ""])
def test_epoch_behind(shard, epoch):
    """Who held the slot is fenced; whoever joins has numbers that nobody had."""
    for n in range(3):
        instance = shard.join(f"n{n}")
        instance.call("leave")
    instance = shard.join("n9")
    batch_of(shard, instance, "a")
    if epoch is None:
        shard.client.hdel(shard.name("epoch"), "0")
    else:
        shard.client.hset(shard.name("epoch"), "0", epoch)
    find(shard, "epoch-behind", b"0", b"raised", ("seq-behind", b"0:1"))
    assert held(shard)[0] == (b"5", b"", b"1")
    instance.fenced("claim", 2, 10, 1000, 0, 0)
    again = shard.join("n10")
    assert again.fence == [0, 6, "n10"] and again.seq == 1


def test_seq_behind(shard):
    one = shard.join("n1")
    for id in "abc":
        batch_of(shard, one, id)
    shard.client.hset(shard.name("epoch"), "0", "1:n1:1")
    find(shard, "seq-behind", b"0:2", b"raised", ("seq-behind", b"0:3"))
    assert held(shard)[0] == (b"2", b"", b"3")
    one.fenced("renew", 60000)
    again = shard.join("n2")
    assert again.fence == [0, 3, "n2"] and again.seq == 3 and len(again.left_open) == 3


def test_join_uses_no_number_twice(shard):
    """Though `epoch` knows less than the lease, the batches and the caller."""
    one = shard.join("n1")
    batch_of(shard, one, "a")
    batch_of(shard, one, "b")
    lose(shard, one)
    shard.client.hset(shard.name("slots"), "0", "7:1:who")
    shard.client.hset(shard.name("epoch"), "0", "3::1")
    assert shard.call("join", "who", "n2", 60000)[1:4] == [b"0", b"8", b"2"]
    shard.client.delete(shard.name("slots"))
    shard.client.hset(shard.name("epoch"), "0", "3::1")
    assert shard.call("join", "who", "n3", 60000, 0, 20, 30)[1:4] == [b"0", b"21", b"30"]
    assert shard.call("join", "who", "n4", 60000, 0, 50, 50)[1:4] == [b"1", b"1", b"0"]
    assert walk_all(shard) == []


def test_out_of_memory(healthy, full):
    """Repairs go on: they add little, and burying moves."""
    healthy.client.hdel(healthy.name("rec"), "s:later")
    healthy.client.zrem(healthy.name("due"), "k:0:copied")
    with full:
        assert len(walk_all(healthy, repair=1)) == 2
    assert walk_all(healthy) == []


@pytest.mark.parametrize("args", [
    ("nonsense", 0, 10, 0), ("due", "x", 10, 0), ("due", "", 10, 0), ("due", 0, 0, 0),
    ("due", 0, "x", 0), ("due", 0, 10001, 0), ("due", -1, 10, 0),
])
def test_wrong_arguments(shard, args):
    shard.refused("LAPSE_BADARG", "walk", *args)


def fill(shard, n, payload=b"x" * 128):
    """Events by the thousand, as `schedule` stores them."""
    record = Record(1, 0, [(b"t", b"t"), (b"p", payload)]).pack()
    base = shard.now() + 3600000
    for first in range(0, n, 1000):
        names = [b"s:event-%d" % i for i in range(first, min(first + 1000, n))]
        pipe = shard.client.pipeline(transaction=False)
        pipe.zadd(shard.name("due"), {name: base + i for i, name in enumerate(names)})
        pipe.hset(shard.name("rec"), mapping={name: record for name in names})
        pipe.execute()


@pytest.mark.parametrize("part", ["due", "rec", "why", "dead"])
def test_steps_are_bounded_and_see_everything(shard, part):
    fill(shard, 3000)
    shard.client.rename(shard.name("rec"), shard.name("why" if part == "why" else "rec"))
    shard.client.rename(shard.name("due"), shard.name("dead" if part == "dead" else "due"))
    cursor, names = 0, []
    while True:
        cursor, looked, found = step(shard, part, cursor, 100)
        assert looked <= 220
        names += [name for _, name, _ in found]
        if cursor == b"0":
            break
    assert len(set(names)) == (3000 if part in ("why", "dead") else 0)


def test_large_values_end_a_step_early(shard):
    fill(shard, 600, payload=b"x" * 50000)
    cursor, looked, found = step(shard, "rec", 0, 200)
    assert looked < 40 and cursor != b"0" and found == []
    assert walk(shard, "rec") == []


def test_a_thousand_at_once(shard):
    fill(shard, 3000)
    shard.client.delete(shard.name("due"))
    assert len(walk(shard, "rec", repair=1)) == 3000
    assert len(shard.due()) == 3000 and walk_all(shard) == []


def test_cost(shard, figure):
    """A step stays well below a millisecond of Redis."""
    fill(shard, 20000)
    costs = []
    for part in ("due", "rec"):
        shard.client.config_resetstat()
        cursor, steps, began = 0, 0, time.monotonic()
        while cursor != b"0":
            cursor, *_ = step(shard, part, cursor)
            steps += 1
        used = shard.client.info("commandstats")["cmdstat_evalsha"]["usec"] / steps
        took = (time.monotonic() - began) / steps * 1e6
        figure(f"walk {part}: {used:.0f} us of Redis for a step of 200, {took:.0f} us in all")
        costs.append(used)
    assert max(costs) < 20000
