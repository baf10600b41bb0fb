# SPDX-License-Identifier: BSD-2-Clause
"""lapse_setex and lapse_del: keys that announce their own expiry."""

import pytest
from harness.wait import until
from harness.wire import Record, ce_id
from test_schedule import LAST_MS, ODD_BYTES


def ends(shard, key):
    """When the key of database 0 will expire, ms; before Redis 7.0 just True."""
    return shard.dump()[0, key][1]


def test_key_shadow_and_record(shard):
    before = shard.now_us()
    word, due, name = shard.call("setex", "1800000", '{"order":42}', key="order:pay:42")
    assert word == b"set"
    member = b"k:0:order:pay:42"
    record = shard.record(member)
    assert shard.client.get("order:pay:42") == b'{"order":42}'
    assert shard.due() == {member: int(due)}
    assert record.fields == [(b"p", b'{"order":42}')] and record.attempt == 0
    assert before <= record.birth <= shard.now_us()
    assert name == ce_id(member, record.birth)


@pytest.mark.parametrize("ttl", ["60000", "+60000", "060000"])
def test_the_shadow_stands_at_the_keys_own_end(shard, ttl):
    before = shard.now()
    due = int(shard.call("setex", ttl, "v", key="k")[1])
    assert before + 60000 <= due <= shard.now() + 60000
    assert ends(shard, b"k") in (due, True)


def test_an_absolute_end(shard):
    at = shard.now() + 54321
    assert shard.call("setex", f"@{at}", "v", key="k")[1] == b"%d" % at
    assert shard.due() == {b"k:0:k": at}
    assert ends(shard, b"k") in (at, True)


def test_set_again_replaces(shard):
    first = shard.call("setex", "60000", "1", key="k")
    second = shard.call("setex", "30000", "2", key="k")
    assert (first[0], second[0]) == (b"set", b"replaced")
    assert shard.due() == {b"k:0:k": int(second[1])}
    assert shard.record(b"k:0:k").get(b"p") == b"2"
    assert shard.client.get("k") == b"2"
    assert first[2] != second[2]


def test_a_replacement_is_younger_even_when_the_clock_went_back(shard):
    shard.call("setex", "60000", "1", key="k")
    tomorrow = shard.now_us() + 86400_000000
    shard.client.hset(shard.name("rec"), "k:0:k", Record(tomorrow).pack())
    assert shard.call("setex", "60000", "2", key="k")[2] == ce_id(b"k:0:k", tomorrow + 1)
    assert shard.record("k:0:k").birth == tomorrow + 1


def test_without_a_copy_there_is_no_record(shard):
    assert shard.call("setex", "60000", "v", "copy", "0", key="k")[2] == b""
    assert shard.records() == {}
    assert shard.client.get("k") == b"v"
    assert shard.call("setex", "60000", "v", "copy", "1", key="k")[0] == b"replaced"
    assert list(shard.records()) == [b"k:0:k"]
    assert shard.call("setex", "60000", "v", "copy", "0", key="k")[0] == b"replaced"
    assert shard.records() == {}


def test_another_type_is_overwritten(shard):
    shard.client.rpush("k", "x")
    shard.call("setex", "60000", "v", key="k")
    assert shard.client.get("k") == b"v"


@pytest.mark.parametrize("odd", ODD_BYTES)
def test_any_byte_in_key_and_value(shard, odd):
    name = shard.call("setex", "60000", odd, key=odd)[2]
    member = b"k:0:" + odd
    assert shard.client.get(odd) == odd
    assert shard.record(member).fields == [(b"p", odd)]
    assert name == ce_id(member, shard.record(member).birth)
    assert shard.call("del", key=odd)[0] == b"cancelled"
    assert shard.dump() == {}


def test_the_largest_value_and_the_empty_one(shard):
    value = b"\0\r\n\xff" * 250000
    shard.call("setex", "60000", value, key="k")
    assert shard.client.get("k") == value
    assert shard.record("k:0:k").get(b"p") == value
    shard.call("setex", "60000", "", key="k")
    assert shard.client.get("k") == b""
    assert shard.record("k:0:k").fields == [(b"p", b"")]


def test_another_database(shard):
    shard.client.set("k", "mine")
    due = shard.call("setex", "60000", "v", "db", "3", key="k")[1]
    assert shard.client.get("k") == b"mine"
    assert shard.db(3).get("k") == b"v"
    assert shard.due() == {b"k:3:k": int(due)}
    assert shard.call("del", key="k") == [b"not-found"]
    assert shard.db(3).get("k") == b"v" and shard.client.get("k") is None
    assert shard.call("del", "db", "3", key="k") == [b"cancelled", due]
    assert shard.dump() == {}


def test_a_database_is_written_one_way(shard):
    shard.call("setex", "60000", "v", "db", "003", key="k")
    assert list(shard.due()) == [b"k:3:k"]


# -- expired, and set again before anybody claimed it


def expire(shard, key):
    """An announced key that is over; the due ms and ce_id of its life."""
    _, due, name = shard.call("setex", "1", "old", key=key)
    shard.pass_by(due)
    return int(due), name


def test_an_expired_life_steps_aside(shard, lazy):
    due, name = expire(shard, "k")
    old = shard.record("k:0:k")
    word, next_due, next_name = shard.call("setex", "60000", "new", key="k")
    aside = b"e:%d:0:k" % old.birth
    assert word == b"set"
    assert shard.due() == {aside: due, b"k:0:k": int(next_due)}
    assert shard.record(aside) == old
    assert shard.record("k:0:k").get(b"p") == b"new"
    instance = shard.join()
    member, envelope = instance.claim_one()
    assert member == aside and envelope.due == due
    assert ce_id(member, Record.unpack(envelope.record).birth) == name != next_name


def test_so_does_one_whose_key_redis_has_deleted(shard):
    due, _ = expire(shard, "k")
    until(lambda: shard.client.get("k") is None)
    shard.call("setex", "60000", "new", key="k")
    assert due in shard.due().values() and len(shard.due()) == 2


def test_an_expired_life_without_a_record_steps_aside(shard, lazy):
    due = shard.call("setex", "1", "old", "copy", "0", key="k")[1]
    shard.pass_by(due)
    before = shard.now_us()
    shard.call("setex", "60000", "new", "copy", "0", key="k")
    (aside,) = [m for m in shard.due() if m.startswith(b"e:")]
    birth = int(aside.split(b":")[1])
    assert before <= birth <= shard.now_us()
    assert shard.due()[aside] == int(due)
    assert shard.record(aside) == Record(birth)
    assert shard.record("k:0:k") is None


def test_lives_with_and_without_a_record_step_aside_under_names_of_their_own(shard, lazy):
    for copy in "0", "1", "1":
        shard.pass_by(shard.call("setex", "1", "v", "copy", copy, key="k")[1])
    shard.call("setex", "60000", "new", key="k")
    births = [r.birth for r in map(Record.unpack, shard.records().values())]
    assert len(shard.due()) == 4 and len(births) == len(set(births)) == 4


def test_many_lives_step_aside_in_turn(shard, lazy):
    names = [expire(shard, b"k\0")[1] for _ in range(5)]
    instance = shard.join()
    entries = instance.claim().entries
    claimed = [ce_id(m, Record.unpack(e.record).birth) for m, e in entries.items()]
    assert sorted(claimed) == sorted(names) and len(set(names)) == 5


def test_a_life_in_another_database_steps_aside(shard, lazy):
    due = shard.call("setex", "1", "old", "db", "5", key="a:b")[1]
    shard.pass_by(due)
    old = shard.record("k:5:a:b")
    shard.call("setex", "60000", "new", "db", "5", key="a:b")
    assert shard.record(b"e:%d:5:a:b" % old.birth) == old


def test_its_notification_is_not_a_second_expiry(shard, lazy):
    """Setting the key made Redis tell everybody of the life put aside."""
    expire(shard, "k")
    shard.call("setex", "60000", "new", key="k")
    instance = shard.join()
    first = instance.claim("k:0:k", 0)
    assert [m[:2] for m in first.entries] == [b"e:"]
    shard.client.delete("k")
    again = instance.claim("k:0:k", 0)
    assert again.entries == {} and again.absorbed == 1


def test_a_key_that_lives_longer_than_announced_is_replaced(shard):
    due = shard.call("setex", "1", "old", key="k")[1]
    shard.client.set("k", "longer")
    shard.pass_by(due)
    assert shard.call("setex", "60000", "new", key="k")[0] == b"replaced"
    assert list(shard.due()) == [b"k:0:k"]


def test_a_deleted_key_whose_time_has_not_come_is_replaced(shard):
    shard.call("setex", "60000", "old", key="k")
    shard.client.delete("k")
    assert shard.call("setex", "60000", "new", key="k")[0] == b"replaced"
    assert list(shard.due()) == [b"k:0:k"]


# -- del


def test_del_leaves_nothing(shard):
    due = shard.call("setex", "60000", "v", key="k")[1]
    assert shard.call("del", key="k") == [b"cancelled", due]
    assert shard.dump() == {}
    assert shard.call("del", key="k") == [b"not-found"]


def test_del_deletes_a_key_that_nobody_announced(shard):
    shard.client.set("k", "v")
    assert shard.call("del", key="k") == [b"not-found"]
    assert shard.client.get("k") is None


def test_del_takes_back_an_announcement_without_a_key(shard):
    due = shard.call("setex", "60000", "v", key="k")[1]
    shard.client.delete("k")
    assert shard.call("del", key="k") == [b"cancelled", due]


def test_del_of_what_is_in_flight_or_parked(shard, lazy):
    instance = shard.join()
    expire(shard, "k")
    instance.claim()
    assert shard.call("del", key="k") == [b"in-flight"]
    instance.settle(groups=[(2, "t", shard.now() + 60000, ["k:0:k"])])
    assert shard.call("del", key="k") == [b"in-flight"]
    due = shard.call("setex", "60000", "v", key="k")[1]
    assert shard.call("del", key="k") == [b"cancelled", due]


def test_a_cancelled_expiry_is_not_forwarded_by_its_notification(shard, lazy):
    """UNLINK of an overdue key makes Redis publish `expired`."""
    due, _ = expire(shard, "k")
    listener = shard.client.pubsub()
    listener.subscribe("__keyevent@0__:expired")
    until(lambda: listener.get_message())
    assert shard.call("del", key="k") == [b"cancelled", b"%d" % due]
    assert until(lambda: listener.get_message())["data"] == b"k"
    listener.close()
    instance = shard.join()
    answer = instance.claim("k:0:k", 1)
    assert answer.entries == {} and answer.absorbed == 1


def test_del_before_the_end_says_nothing_about_later_expiries(shard):
    shard.call("setex", "60000", "v", key="k")
    shard.call("del", key="k")
    assert shard.seen() == {}


# -- refusals


BAD_SETEX = [
    [], ["1000"], ["1000", "v", "db"],
    ["", "v"], ["0", "v"], ["+0", "v"], ["@0", "v"], ["@1500000000000", "v"], ["-1", "v"],
    ["+", "v"], ["@", "v"], ["1.5", "v"], ["1e3", "v"], ["30m", "v"], [" 1", "v"],
    ["1\0", "v"], ["10000000000000000", "v"], [f"@{LAST_MS + 1}", "v"], [str(LAST_MS), "v"],
    ["1000", "v" * 1000001],
    ["1000", "v", "db", ""], ["1000", "v", "db", "-1"], ["1000", "v", "db", "16"],
    ["1000", "v", "db", "99999999999"], ["1000", "v", "db", "0x1"],
    ["1000", "v", "db", "1", "db", "1"], ["1000", "v", "copy", "2"], ["1000", "v", "copy", ""],
    ["1000", "v", "copy", "0", "copy", "0"], ["1000", "v", "nx", "1"], ["1000", "v", "", ""],
]


@pytest.mark.parametrize("args", BAD_SETEX, ids=lambda args: repr(args)[:60])
def test_bad_setex(shard, args):
    shard.call("setex", "60000", "v", key="k")
    shard.refused("LAPSE_BADARG", "setex", *args, key="k")


@pytest.mark.parametrize("args", [
    ["db"], ["db", ""], ["db", "16"], ["db", "x"], ["db", "0", "db", "0"], ["copy", "0"], ["", ""],
], ids=repr)
def test_bad_del(shard, args):
    shard.call("setex", "60000", "v", key="k")
    shard.refused("LAPSE_BADARG", "del", *args, key="k")


@pytest.mark.parametrize("name,args", [("setex", ["1000", "v"]), ("del", [])])
@pytest.mark.parametrize("keys", [
    [], ["lapse:{0}"], ["lapse:{0}", "k", "l"], ["lapse", "k"], ["lapse:{0}", ""],
    ["lapse:{0}", "k" * 1025], ["lapse:{0}", "lapse:{0}:due"], ["lapse:{0}", "lapse:{0}:rec"],
    ["lapse:{0}", "lapse:{17}:x"], ["lapse:{0}", "lapse:{"],
], ids=lambda keys: repr(keys)[:60])
def test_bad_keys(shard, name, args, keys):
    shard.call("setex", "60000", "v", key="k")
    shard.refused("LAPSE_BADARG", name, *args, keys=keys)


@pytest.mark.parametrize("key", ["lapse", "lapse:", "lapse:0", "xlapse:{0}", "Lapse:{0}"])
def test_keys_that_only_look_like_ours(shard, key):
    assert shard.call("setex", "60000", "v", key=key)[0] == b"set"
    assert shard.call("del", key=key)[0] == b"cancelled"
