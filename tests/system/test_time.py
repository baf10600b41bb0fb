# SPDX-License-Identifier: BSD-2-Clause
"""On time and never early, whatever becomes of keys and clocks meanwhile."""

import pytest
import redis

from limits import until

ROUTES = {"orders": {"pattern": "order:*"}}


def test_among_many_foreign_keys_all_are_on_time(world):
    """Case 4, 40, 51, fact 1: Redis itself would tell of these minutes late."""
    for start in range(0, 100_000, 10_000):
        pipe = world.client.pipeline(transaction=False)
        for i in range(start, start + 10_000):
            pipe.set(f"session:{i}", "x", ex=7200)
        pipe.execute()
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.mark()
    ids = world.setex_many([f"order:{i}" for i in range(500)], "1000")
    ids += world.schedule_many([f"job-{i}" for i in range(500)], "+1000")
    ledger = world.settle(ids, limit=15)
    late = [r.time - r.due for r in ledger.records]
    assert max(late) < 15_000, "the sweep, not Redis' own cycle, should have found it"
    figures = lapsed.stats()
    assert figures["early"] == 0
    assert world.client.dbsize() >= 100_000


def test_foreign_keys_cost_no_log_line(world):
    """Keys of other applications are nobody's business."""
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.mark()
    pipe = world.client.pipeline(transaction=False)
    for i in range(500):
        pipe.set(f"session:{i}", "x", px=1)
    pipe.execute()
    until(lambda: lapsed.stats()["heard_foreign"] == 500, "all to be heard")
    said = [x for x in lapsed.lines()[lapsed._mark:] if x["event"] not in
            ("stats", "slot.joined", "redis.connected", "kafka.ready", "gap.closed",
             "redis.subscribed", "kafka.log")]
    assert not said
    assert world.ledger.finish() == []


def test_each_at_its_own_time(world):
    """Case 22: a short delay does not wait for a long one added with it."""
    world.lapsed()
    start = world.now()
    ids = [world.schedule("long", "+3000"), world.schedule("short", "+1000")]
    world.ledger.wait(1)
    assert [r.id for r in world.ledger.records] == [ids[1]]
    assert world.now() < start + 3000
    world.settle(ids)
    assert world.ledger.by_id(ids[1]).time < world.ledger.by_id(ids[0]).due


def test_a_new_head_is_noticed_by_a_daemon_that_rests(world):
    """Case 54: no new event is needed to set the next one off."""
    lapsed = world.lapsed(lapsed={"sweep_interval": "1h"})
    lapsed.wait("gap.closed")
    world.schedule("far", "+600000")
    near = world.schedule("near", "+200")
    world.ledger.wait(1)
    assert [r.id for r in world.ledger.records] == [near]
    assert world.cancel("far")[0] == b"cancelled"
    world.settle([near])


@pytest.mark.parametrize("when", ["+0", "@1", "@1000000000000"])
def test_what_is_already_due_goes_at_once(world, when):
    """Case 30: zero and the past mean now."""
    world.lapsed(lapsed={"sweep_interval": "1h"})
    start = world.now()
    ids = [world.schedule("now", when)]
    ledger = world.settle(ids)
    assert start <= ledger.records[0].due <= world.now()


def test_what_is_already_due_goes_after_a_restart(world):
    """Case 30: the same for a daemon that was not there."""
    lapsed = world.lapsed()
    assert lapsed.stop() == 0
    ids = [world.schedule("zero", "+0"), world.schedule("past", "@1")]
    lapsed.start()
    world.settle(ids)


@pytest.mark.parametrize("when", [
    "+-5", "-5", "5", "+", "", "+1.5", "+1e3", "+4294967296000000", "@9223372036854775808",
    "+9223372036854775807", "@253402300800000", "+18446744073709551616",
])
def test_a_time_that_is_none_is_refused(world, when):
    """Case 30, 43: negative or beyond the limits: refused, nothing stored."""
    with pytest.raises(redis.ResponseError, match="LAPSE_BADARG"):
        world.schedule("job", when)
    assert not world.left()


@pytest.mark.parametrize("ttl", ["0", "-1", "253402300800000", "9223372036854775808", "1.5"])
def test_a_ttl_that_is_none_is_refused(world, ttl):
    """Case 43: and the key is not set either."""
    with pytest.raises(redis.ResponseError, match="LAPSE_BADARG"):
        world.setex("order:1", ttl)
    assert not world.client.keys("*")


def test_more_than_32_bits_of_milliseconds(world):
    """Case 43: 60 days are 60 days."""
    world.lapsed()
    ids = [world.schedule("soon", "+100")]
    world.schedule("far", "+5184000000")
    world.setex("order:1", "5184000000")
    world.ledger.wait(1)
    assert world.show("far")[b"state"] == b"scheduled"
    assert world.client.pttl("order:1") > 4294967296
    world.ledger.finish()
    world.ledger.check(ids)


def test_due_while_no_daemon_runs(world):
    """Case 2, 29: found at the start, all of it."""
    lapsed = world.lapsed(routes=ROUTES)
    ids = world.setex_many([f"order:{i}" for i in range(100)], "100")
    ids += world.schedule_many([f"job-{i}" for i in range(100)], "+100")
    assert lapsed.stop() == 0
    until(lambda: not world.client.exists("order:99"), "all to come due")
    lapsed.start()
    world.settle(ids)
