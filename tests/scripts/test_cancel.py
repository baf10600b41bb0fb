# SPDX-License-Identifier: BSD-2-Clause
"""lapse_cancel and lapse_reschedule."""

import pytest
from test_schedule import LAST_MS, ODD_BYTES


def test_cancel_leaves_nothing(shard):
    due = shard.schedule("a")[1]
    assert shard.call("cancel", "a") == [b"cancelled", due, b"scheduled"]
    assert shard.keys() == set()
    assert shard.call("cancel", "a") == [b"not-found"]


def test_cancel_takes_one_and_leaves_the_others(shard):
    shard.schedule("a")
    shard.schedule("b")
    shard.call("cancel", "a")
    assert list(shard.due()) == [b"s:b"] and list(shard.records()) == [b"s:b"]


def test_cancel_what_is_due_but_not_claimed(shard):
    instance = shard.join()
    due = shard.schedule("a", "+0")[1]
    shard.pass_by(due)
    assert shard.call("cancel", "a") == [b"cancelled", due, b"scheduled"]
    assert instance.claim().entries == {}


def test_what_is_claimed_or_parked_is_in_flight(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    instance.claim()
    assert shard.call("cancel", "a") == [b"in-flight"]
    assert shard.call("reschedule", "a", "+1") == [b"in-flight"]
    instance.settle(groups=[(2, "t", shard.now() + 60000, ["s:a"])])
    assert shard.call("cancel", "a") == [b"in-flight"]
    assert shard.call("reschedule", "a", "+1") == [b"in-flight"]


def test_the_pending_life_goes_before_the_one_in_flight(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    instance.claim()
    due = shard.schedule("a", "+60000")[1]
    moved = shard.call("reschedule", "a", "+90000")
    assert moved[0] == b"rescheduled" and int(moved[1]) > int(due)
    assert shard.call("cancel", "a") == [b"cancelled", moved[1], b"scheduled"]
    assert shard.call("cancel", "a") == [b"in-flight"]
    assert instance.settle() == b"settled"
    assert shard.call("cancel", "a") == [b"not-found"]


def test_reschedule_keeps_the_life(shard):
    shard.schedule("a", "+60000", "t", "k", "p", "header.x", "y")
    record = shard.records()
    at = shard.now() + 5000
    assert shard.call("reschedule", "a", f"@{at}") == [b"rescheduled", b"%d" % at]
    assert shard.due() == {b"s:a": at}
    assert shard.records() == record
    assert shard.call("reschedule", "b", "+1") == [b"not-found"]


def test_reschedule_what_is_due_but_not_claimed(shard):
    instance = shard.join()
    shard.pass_by(shard.schedule("a", "+0")[1])
    shard.call("reschedule", "a", "+60000")
    assert instance.claim().entries == {}
    before = shard.now()
    due = int(shard.call("reschedule", "a", "@5")[1])
    assert before <= due <= shard.now()
    assert list(instance.claim().entries) == [b"s:a"]


@pytest.mark.parametrize("odd", ODD_BYTES)
def test_any_byte_goes_in_an_id(shard, odd):
    due = shard.schedule(odd)[1]
    assert shard.call("reschedule", odd, "@" + due.decode()) == [b"rescheduled", due]
    assert shard.call("cancel", odd) == [b"cancelled", due, b"scheduled"]


def test_a_watched_key_is_no_scheduled_event(shard):
    shard.call("setex", "60000", "v", key="a")
    assert shard.call("cancel", "a") == [b"not-found"]
    assert shard.call("reschedule", "a", "+1") == [b"not-found"]


@pytest.mark.parametrize("args", [
    [], [""], ["i" * 1025], ["a", "nx"], ["a", "nx", "1"], ["a", "b", "c"],
], ids=repr)
def test_bad_cancel(shard, args):
    shard.schedule("a")
    shard.refused("LAPSE_BADARG", "cancel", *args)


@pytest.mark.parametrize("args", [
    [], ["a"], ["", "+1"], ["i" * 1025, "+1"], ["a", "1"], ["a", ""], ["a", "+"],
    ["a", "+-5"], ["a", f"@{LAST_MS + 1}"], ["a", "+1", "nx"], ["a", "+1", "nx", "1"],
    ["b", "soon"],
], ids=repr)
def test_bad_reschedule(shard, args):
    shard.schedule("a")
    shard.refused("LAPSE_BADARG", "reschedule", *args)


@pytest.mark.parametrize("name,args", [("cancel", ["a"]), ("reschedule", ["a", "+1"])])
@pytest.mark.parametrize("keys", [[], ["lapse:{0}", "a"], ["lapse"], [""]])
def test_bad_keys(shard, name, args, keys):
    shard.schedule("a")
    shard.refused("LAPSE_BADARG", name, *args, keys=keys)
