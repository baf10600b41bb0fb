# SPDX-License-Identifier: BSD-2-Clause
"""claim of watched keys: the key itself is looked at, in its due time."""

import pytest
import redis
from harness.wait import until
from harness.wire import Record
from test_schedule import ODD_BYTES


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


@pytest.fixture
def instance(shard):
    return shard.join()


def over(shard, key="k", value="v", db=0, copy=1):
    """An announced key whose time has passed; its due ms."""
    due = int(shard.call("setex", "1", value, "db", db, "copy", copy, key=key)[1])
    shard.pass_by(due)
    return due


def test_found_by_our_look(shard, instance, lazy):
    due = over(shard, "k", "value")
    record = shard.records()[b"k:0:k"]
    assert shard.client.dbsize() > 0
    member, envelope = instance.claim_one()
    assert (member, envelope.due, envelope.certainty) == (b"k:0:k", due, "f")
    assert envelope.record == record and Record.unpack(record).get(b"p") == b"value"
    assert shard.due() == {} and shard.records() == {}
    assert not shard.client.exists("k")


def test_inferred_when_it_was_gone_before(shard, instance):
    due = over(shard)
    until(lambda: shard.client.get("k") is None)
    member, envelope = instance.claim_one()
    assert (member, envelope.due, envelope.certainty) == (b"k:0:k", due, "i")


def test_inferred_when_it_was_deleted_unheard(shard, instance):
    shard.call("setex", "50", "v", key="k")
    shard.client.delete("k")
    assert instance.claim().entries == {}
    shard.pass_by(shard.due()[b"k:0:k"])
    assert instance.claim_one()[1].certainty == "i"


def test_heard(shard, instance):
    due = over(shard)
    until(lambda: shard.client.get("k") is None)
    member, envelope = instance.claim_one("k:0:k", 0)
    assert (member, envelope.due, envelope.certainty) == (b"k:0:k", due, "h")
    assert Record.unpack(envelope.record).get(b"p") == b"v"


def test_a_gone_key_is_hushed_until_the_notification_may_have_come(shard, instance):
    due = over(shard)
    until(lambda: shard.client.get("k") is None)
    answer = instance.claim(hush=60000)
    assert answer.entries == {} and answer.next_due == due + 60000
    assert instance.claim_one("k:0:k", 0, hush=60000)[1].certainty == "h"


def test_a_found_key_is_not_hushed(shard, instance, lazy):
    over(shard)
    assert instance.claim_one(hush=60000)[1].certainty == "f"


def test_what_is_hushed_holds_nobody_back(shard, instance):
    for n in range(5):
        over(shard, f"k{n}")
    until(lambda: not shard.client.exists(*(f"k{n}" for n in range(5))))
    shard.schedule("a", "+0")
    later = int(shard.schedule("b", "+500")[1])
    answer = instance.claim(hush=60000)
    assert list(answer.entries) == [b"s:a"] and answer.next_due == later


def test_without_a_copy_it_is_born_at_the_claim(shard, instance, lazy):
    over(shard, copy=0)
    answer = instance.claim()
    (envelope,) = answer.entries.values()
    assert Record.unpack(envelope.record) == Record(answer.now_us)
    assert list(instance.claim(seq=1).entries.values()) == [envelope]


# -- the key is still there


def test_a_longer_ttl_is_followed(shard, instance):
    due = int(shard.call("setex", "20", "v", key="k")[1])
    shard.client.pexpireat("k", due + 60000)
    record = shard.records()
    shard.pass_by(due)
    answer = instance.claim()
    (new,) = shard.due().values()
    assert answer.entries == {} and answer.followed == 1
    assert abs(new - (due + 60000)) <= 2  # exact from Redis 7.0 on
    assert answer.next_due == new
    assert shard.records() == record


def test_a_key_set_again_plainly_with_a_ttl_is_followed(shard, instance):
    due = over(shard)
    shard.client.set("k", "other", px=60000)
    assert instance.claim().followed == 1
    assert shard.due()[b"k:0:k"] > due + 50000


def test_a_key_without_a_ttl_is_unregistered(shard, instance):
    shard.call("setex", "20", "v", key="k")
    shard.client.persist("k")
    shard.pass_by(shard.due()[b"k:0:k"])
    answer = instance.claim()
    assert (answer.entries, answer.followed, answer.next_due) == ({}, 0, -1)
    assert shard.due() == {} and shard.records() == {}
    assert shard.client.get("k") == b"v"


def test_a_key_set_again_plainly_without_a_ttl_is_unregistered(shard, instance):
    over(shard)
    shard.client.set("k", "other")
    assert instance.claim().entries == {}
    assert shard.due() == {} and shard.records() == {}


def test_never_early_and_never_twice_in_the_last_millisecond(shard, instance, lazy):
    """A key stays readable all through its due millisecond."""
    looks = 0
    for n in range(150):
        due = int(shard.call("setex", "2", "v", key="k")[1])
        while True:
            answer = instance.claim()
            assert answer.followed == 0
            if answer.entries:
                break
            assert due <= answer.next_due <= max(due, answer.now_us // 1000 + 1)
            assert shard.due() == {b"k:0:k": due}
            looks += answer.now_us // 1000 >= due
        (envelope,) = answer.entries.values()
        assert (envelope.due, envelope.certainty) == (due, "f")
        assert answer.now_us >= due * 1000
        instance.settle()
    assert looks > 0, "the due millisecond was never met"


def test_a_server_that_expires_nothing(shard, instance):
    """Fact 17, import-mode: overdue keys read as gone, and are never deleted."""
    try:
        shard.client.config_set("import-mode", "yes")
    except redis.ResponseError:
        pytest.skip("this server has no import-mode")
    try:
        due = over(shard)
        member, envelope = instance.claim_one()
        assert (member, envelope.due, envelope.certainty) == (b"k:0:k", due, "i")
    finally:
        shard.client.config_set("import-mode", "no")


# -- databases


def test_the_key_is_looked_at_in_its_own_database(shard, instance, lazy):
    shard.client.set("k", "of database 0, without a TTL")
    over(shard, "k", "v", db=3)
    shard.db(4).set("k", "of database 4")
    assert instance.claim_one()[0] == b"k:3:k"
    assert shard.client.exists("k") and shard.db(4).exists("k")


def test_many_databases_in_one_claim(shard, instance, lazy):
    for db in (0, 15, 3, 0, 7):
        shard.call("setex", "50", f"v{db}", "db", db, key="a")
        shard.call("setex", "50", f"v{db}", "db", db, key="b")
    shard.schedule("s", "+0")
    shard.pass_by(max(shard.due().values()))
    entries = instance.claim().entries
    expected = {b"k:%d:%s" % (db, key) for db in (0, 3, 7, 15) for key in (b"a", b"b")}
    assert set(entries) == expected | {b"s:s"}
    for member in expected:
        value = Record.unpack(entries[member].record).get(b"p")
        assert value == b"v" + member.split(b":")[1]
        assert entries[member].certainty == "f"


# -- both ways at once, twice, odd


def test_due_and_heard_is_claimed_once(shard, instance, lazy):
    over(shard)
    entries = instance.claim("k:0:k", 0, "k:0:k", 3).entries
    assert list(entries) == [b"k:0:k"]


def test_the_same_key_again_is_another_life(shard, instance, lazy):
    births = []
    for n in range(3):
        over(shard, value=f"v{n}")
        record = Record.unpack(instance.claim_one()[1].record)
        assert record.get(b"p") == b"v%d" % n
        births.append(record.birth)
        instance.settle()
    assert births == sorted(set(births))


def test_two_lives_of_one_key_in_flight_at_once(shard, instance, lazy):
    over(shard, value="one")
    first = instance.claim_one()[1]
    over(shard, value="two")
    second = instance.claim_one()[1]
    assert Record.unpack(first.record).birth < Record.unpack(second.record).birth
    assert instance.settle(1) == instance.settle(2) == b"settled"


@pytest.mark.parametrize("odd", ODD_BYTES)
def test_any_byte(shard, instance, lazy, odd):
    over(shard, odd, odd)
    member, envelope = instance.claim_one()
    assert member == b"k:0:" + odd and envelope.certainty == "f"
    assert Record.unpack(envelope.record).get(b"p") == odd


def test_an_e_member_is_gone_whatever_its_key(shard, instance):
    shard.client.set("k", "here again")
    shard.client.zadd(shard.name("due"), {"e:17:0:k": 5})
    shard.client.hset(shard.name("rec"), "e:17:0:k", Record(17, 0, [(b"p", b"v")]).pack())
    member, envelope = instance.claim_one(hush=60000)
    assert (member, envelope.due, envelope.certainty) == (b"e:17:0:k", 5, "i")
    assert shard.client.get("k") == b"here again"


def test_thousands_in_one_claim(shard, instance, lazy):
    members = {f"k:0:{n}": 1000 + n for n in range(5000)}
    shard.client.zadd(shard.name("due"), members)
    entries = instance.claim(limit=5000).entries
    assert len(entries) == 5000 and len(shard.seen()) == 5000
    assert shard.due() == {}


def test_thousands_of_persisted_keys_in_one_claim(shard, instance):
    keys = {f"key{n}": "v" for n in range(5000)}
    shard.client.mset(keys)
    shard.client.zadd(shard.name("due"), {f"k:0:{key}": 1 for key in keys})
    assert instance.claim(limit=5000).entries == {}
    assert shard.due() == {}
