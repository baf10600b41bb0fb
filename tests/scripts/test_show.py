# SPDX-License-Identifier: BSD-2-Clause
"""lapse_show: what is known of an event, wherever it stands."""

import pytest
from harness.wire import Record, ce_id, pairs
from test_schedule import ODD_BYTES


def test_a_scheduled_event(shard):
    _, due, name = shard.schedule(
        "a", "+60000", "orders", "42", b"\0\r\n\xff", "type", "T", "content-type", "c/t",
        "header.h1", "v1", "header.h2", b"\0\0", "header.h3", "",
    )
    record = shard.record("s:a")
    assert pairs(shard.call("show", "a")) == {
        b"state": b"scheduled", b"due": due, b"ce_id": name, b"attempt": b"0",
        b"birth": b"%d" % record.birth, b"topic": b"orders", b"key": b"42",
        b"type": b"T", b"content-type": b"c/t", b"header.h1": b"v1",
        b"header.h2": b"\0\0", b"header.h3": b"", b"payload": b"\0\r\n\xff",
        b"bytes": b"4", b"record-bytes": b"%d" % len(shard.records()[b"s:a"]),
    }


def test_fields_that_are_not_there_are_not_shown(shard):
    shard.schedule("a")
    assert list(pairs(shard.call("show", "a"))) == [
        b"state", b"due", b"ce_id", b"attempt", b"birth", b"topic", b"payload",
        b"bytes", b"record-bytes",
    ]


def bury(shard, names):
    """Dead letters, the first of them the oldest."""
    envelope = b"\x01" + (1).to_bytes(8, "big") + b"-" + Record(1, 0, [(b"t", b"t")]).pack()
    for at, name in enumerate(names):
        member = b"s:" + name
        why = b"\x01\0\x01r" + len(member).to_bytes(2, "big") + member + envelope
        shard.client.hset(shard.name("why"), member + b"@1.0", why)
        shard.client.zadd(shard.name("dead"), {member + b"@1.0": at + 1})


def test_dead_letters_are_looked_at_a_thousand_at_a_time(shard):
    bury(shard, [b"old", *(b"d%d" % n for n in range(1999)), b"new"])
    assert pairs(shard.call("show", "new"))[b"state"] == b"dead"
    assert shard.call("show", "old") == [b"state", b"not-found", b"older", b"1000"]
    assert shard.call("show", "old", "older", "1000") == [b"state", b"not-found", b"older", b"2000"]
    assert pairs(shard.call("show", "old", "older", "2000"))[b"reason"] == b"r"
    assert shard.call("show", "none", "older", "2000") == [b"state", b"not-found"]
    assert shard.call("show", "none", "older", "9999999") == [b"state", b"not-found"]
    shard.refused("LAPSE_BADARG", "show", "none", "older", "x")


def test_cancel_looks_at_the_latest_thousand(shard):
    bury(shard, [b"old", *(b"d%d" % n for n in range(999)), b"new"])
    assert shard.call("cancel", "new") == [b"dead", b"1001", b"s:new@1.0"]
    assert shard.call("cancel", "old") == [b"not-found"]
    assert shard.call("cancel_bulk", "old", "d0", "none", "new") == [
        [b"not-found"], [b"dead", b"2", b"s:d0@1.0"], [b"not-found"], [b"dead", b"1001", b"s:new@1.0"]]


def test_a_watched_key(shard):
    _, due, name = shard.call("setex", "60000", "value", key="order:1")
    shown = pairs(shard.call("show", "order:1", "watched", "1"))
    assert shown[b"state"] == b"scheduled" and shown[b"due"] == due
    assert shown[b"ce_id"] == name and shown[b"payload"] == b"value"
    assert b"topic" not in shown
    assert shard.call("show", "order:1") == [b"state", b"not-found"]
    assert shard.call("show", "order:1", "watched", "1", "db", "3") == [b"state", b"not-found"]


def test_a_watched_key_of_another_database(shard):
    due = shard.call("setex", "60000", "v", "db", "3", key="k")[1]
    shown = pairs(shard.call("show", "k", "db", "3", "watched", "1"))
    assert shown[b"due"] == due and shown[b"payload"] == b"v"


def test_a_watched_key_without_a_record(shard):
    due = shard.call("setex", "60000", "v", "copy", "0", key="k")[1]
    assert shard.call("show", "k", "watched", "1") == [b"state", b"scheduled", b"due", due]


def test_in_flight_parked_and_gone(shard):
    instance = shard.join()
    _, due, name = shard.schedule("a", "+0", "t", "", "p")
    instance.claim()
    shown = pairs(shard.call("show", "a"))
    assert shown[b"state"] == b"in-flight" and shown[b"due"] == due
    assert shown[b"ce_id"] == name and shown[b"payload"] == b"p"
    instance.settle(groups=[(2, "t", shard.now() + 60000, ["s:a"])])
    shown = pairs(shard.call("show", "a"))
    assert shown[b"state"] == b"parked" and shown[b"due"] == due
    instance.settle(2)
    assert shard.call("show", "a") == [b"state", b"not-found"]


def test_left_for_adoption_is_in_flight(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    instance.claim()
    instance.settle(groups=[(2, "", 0, ["s:a"])])
    assert pairs(shard.call("show", "a"))[b"state"] == b"in-flight"


def test_the_pending_life_goes_before_the_one_in_flight(shard):
    instance = shard.join()
    shard.schedule("a", "+0", "t", "", "old")
    instance.claim()
    shard.schedule("a", "+60000", "t", "", "new")
    assert pairs(shard.call("show", "a"))[b"payload"] == b"new"


@pytest.mark.parametrize("odd", ODD_BYTES)
def test_any_byte(shard, odd):
    due = shard.schedule(odd, "+60000", "t", odd, odd)[1]
    shown = pairs(shard.call("show", odd))
    assert (shown[b"due"], shown[b"key"], shown[b"payload"]) == (due, odd, odd)


def test_a_later_attempt(shard):
    shard.schedule("a")
    shard.client.hset(shard.name("rec"), "s:a", Record(77, 65535, [(b"t", b"t")]).pack())
    shown = pairs(shard.call("show", "a"))
    assert shown[b"attempt"] == b"65535" and shown[b"birth"] == b"77"
    assert shown[b"ce_id"] == ce_id(b"s:a", 77, 65535)


@pytest.mark.parametrize("text", [
    b"", b"\x01", b"\x02" + b"\0" * 30, Record(1).pack() + b"z\0\1x",
    Record(1).pack() + b"t\0\5ab", Record(1).pack() + b"t", Record(1).pack() + b"t\0",
    Record(1, 0, [(b"t", b"a"), (b"t", b"b")]).pack(),
    Record(1, 0, [(b"h", b"no NUL")]).pack(), Record(1, 0, [(b"h", b"\0no name")]).pack(),
    Record(1, 0, [(b"h", b"n\0v")] * 33).pack(),
])
def test_an_unreadable_record_is_named_so(shard, text):
    due = shard.schedule("a")[1]
    shard.client.hset(shard.name("rec"), "s:a", text)
    shown = pairs(shard.call("show", "a"))
    assert shown[b"state"] == b"scheduled" and shown[b"due"] == due
    assert shown[b"unreadable"]


def test_an_unreadable_envelope_is_named_so(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    instance.claim()
    shard.client.hset(shard.name("b:" + instance.name()), "s:a", "??")
    shown = pairs(shard.call("show", "a"))
    assert shown[b"state"] == b"in-flight" and shown[b"unreadable"]


@pytest.mark.parametrize("args", [
    [], [""], ["x" * 1025], ["a", "watched"], ["a", "watched", "0"], ["a", "watched", ""],
    ["a", "watched", "1", "watched", "1"], ["a", "db", "0"], ["a", "watched", "1", "db", "16"],
    ["a", "watched", "1", "db", "-1"], ["a", "watched", "1", "db", ""],
    ["a", "watched", "1", "db", "0", "db", "0"], ["a", "nx", "1"],
], ids=lambda args: repr(args)[:60])
def test_bad_arguments(shard, args):
    shard.schedule("a")
    shard.refused("LAPSE_BADARG", "show", *args)
