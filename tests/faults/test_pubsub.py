# SPDX-License-Identifier: BSD-2-Clause
"""What Redis publishes is lost, doubled, late, cut off or never published.

Cases 1, 23: doubled, and yet once; 17: the server cuts a slow subscriber; 26,
39: the flags; 28, 54: only the wake-up is lost, and the timer still fires.
"""

import time

import pytest

from limits import scaled, until
from load import Load
from place import some
from world import PREFIX


@pytest.mark.parametrize("what", ["expired", "wake", ""], ids=["expiries", "wakes", "all"])
@pytest.mark.parametrize("share", [0.5, 0.0], ids=["half", "none"])
def test_swallowed(place, share, what):
    """Of what is published so much arrives; everything is delivered."""
    lapsed = place.lapsed()
    with Load(place) as load:
        some(load, 50)
        place.link.only = what.encode()
        place.link.share = share
        some(load, 300)
        until(lambda: place.link.swallowed > 3, "some to be swallowed")
        if share == 0.0 and what == "expired":
            lapsed.wait("redis.deaf", deaf=True)
        elif share == 0.0:
            lapsed.wait("redis.lost", connection="subscription")
        place.link.heal()
        if share == 0.0 and what == "expired":
            lapsed.wait("redis.deaf", deaf=False)
            assert lapsed.stats()["deaf"] == 1
        some(load, 50)
    load.settle(duplicates=False)


def test_swallowed_on_time(place):
    """The timer does not need the wake-ups: nobody schedules anything more."""
    lapsed = place.lapsed(lapsed={"sweep_interval": "1h"})
    lapsed.wait("gap.closed")
    place.link.share = 0.0
    ids = place.schedule_many([f"job-{i}" for i in range(50)], "+1500")
    ids += place.setex_many([f"load-{i}" for i in range(50)], "1500")
    # The head is learnt at the next renewal or subscription at the latest.
    place.settle(ids)
    assert max(r.time - r.due for r in place.ledger.records) < scaled(5000)


@pytest.mark.parametrize("instances", [1, 2])
def test_doubled(place, instances):
    """Each message comes twice, or three times."""
    for _ in range(instances):
        place.lapsed()
    with Load(place) as load:
        for copies in (2, 3):
            place.link.copies = copies
            some(load, 200)
    load.settle(duplicates=False)


def test_doubled_unregistered(place):
    """Keys that only a notification tells of: once each."""
    for _ in range(2):
        place.lapsed().wait("redis.subscribed")
    place.link.copies = 2
    pipe = place.client.pipeline(transaction=False)
    for i in range(200):
        pipe.set(f"load-{i}", "v", px=100 + i)
    pipe.execute()
    place.records(200)


@pytest.mark.parametrize("late", [3, 0], ids=["stopped", "held"])
def test_old_news(place, late):
    """
    An instance reads of expiries long after another has forwarded them: it was
    stopped for less than its lease, or its wire was.
    """
    victim = place.lapsed(lapsed={"lease": "20s"})
    place.lapsed(lapsed={"lease": "20s"}, redis={"url": place.redis.url})
    with Load(place) as load:
        some(load, 50)
        victim.pause() if late else place.link.hold()
        began = time.monotonic()
        until(lambda: time.monotonic() > began + 2.7, "the news to grow old")
        some(load, 50)
        victim.cont()
        place.link.let_go()
        some(load, 50)
    load.settle(duplicates=not late)
    place.explain(place.ledger)


@pytest.mark.parametrize("may", ["yes", "no"])
def test_flags_are_lost(place, may):
    """Case 5, 39: told, and set again if lapsed may; registered keys do not mind."""
    lapsed = place.lapsed(redis={"set_notify": may})
    flags = "notify-keyspace-events"
    with Load(place) as load:
        some(load, 50)
        place.client.config_set(flags, "")
        lapsed.wait("redis.deaf", deaf=True)
        if may == "yes":
            until(lambda: {*"Ex"} <= {*place.client.config_get(flags)[flags]}, "the flags")
        else:
            assert lapsed.wait("redis.notify", level="warn")["missing"]
            place.client.config_set(flags, "KEA")
        lapsed.wait("redis.deaf", deaf=False)
    load.settle(duplicates=False)


def test_subscriptions_are_killed(place):
    """Case 28: over and over, by CLIENT KILL."""
    pair = [place.lapsed() for _ in range(2)]
    with Load(place) as load:
        for _ in range(10):
            for instance in pair:
                instance.mark()
            place.client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            for instance in pair:
                instance.wait("redis.subscribed")
            some(load, 20)
    load.settle(duplicates=False)


def test_output_buffer_limit(place):
    """Case 17: too slow to read, so Redis cuts it off; the sweep finds the rest."""
    place.client.config_set("client-output-buffer-limit", "pubsub 64kb 64kb 1")
    lapsed = place.lapsed(redis={"url": place.redis.url}, lapsed={"lease": "20s"})
    lapsed.wait("redis.subscribed")
    ids = place.setex_many([f"load-{i}-{'x' * 900}" for i in range(2000)], "1000")
    lapsed.pause()
    subscribed = lambda: place.client.pubsub_numsub(f"{PREFIX}:wake")[0][1]     # noqa: E731
    until(lambda: place.client.dbsize() < 10 and not subscribed(), "Redis to cut it off")
    lapsed.cont()
    lapsed.wait("redis.lost", connection="subscription")
    place.settle(ids)
    assert lapsed.stats()["gaps"] > 0
