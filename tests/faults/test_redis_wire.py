# SPDX-License-Identifier: BSD-2-Clause
"""The wire to Redis is cut, slow, silent or half dead.

Cases 3, 28: the subscription comes back by itself; 18: silence is noticed; 20,
31: an answer that is lost after its effect neither loses nor doubles anything;
38: back within a second of the server.
"""

import datetime
import time

import pytest

from limits import until
from load import Load
from place import Pulse, some
from world import PREFIX

# The worker's silence is noticed by the age of its oldest call (3 s, looked at
# every half second, and every 1.5 s there is one), that of the subscription by
# the canary (two intervals of 1.5 s); and then these machines may be slow.
NOTICED = 5.0
SLACK = 1.0

CALLS = ["join", "renew", "claim", "settle", "walk", "canary", "SCRIPT", "ROLE"]


def now_of(line):
    text = line["ts"].replace("Z", "+00:00")
    return datetime.datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("end", ["request", "reply"])
@pytest.mark.parametrize("call", CALLS)
def test_lost(place, call, end):
    """Before its effect, or after it: in either case it is asked again, and no more."""
    lapsed = place.instance()
    name = f"{call}.request" if end == "request" else call
    times = 5 if call in ("claim", "settle") else 2
    if call in ("join", "SCRIPT", "ROLE"):
        place.link.lose(name, times)
    with Load(place) as load:
        lapsed.start()
        some(load, 50)
        place.link.lose(name, times)
        if call in ("SCRIPT", "ROLE"):
            place.link.cut()
        if call == "join":
            place.client.delete(f"{PREFIX}:epoch")      # it must join anew
        until(lambda: place.link.lost.count(name) >= times, f"{name} to be lost")
        some(load, 50)
    # The slot was lost with the epoch: then what was in flight may come twice.
    load.settle(duplicates=call == "join")
    place.explain(place.ledger)
    assert lapsed.total("redis_reconnects") > 0


@pytest.mark.parametrize("end", ["request", "reply"])
def test_lost_adopt(place, end):
    """An heir asks twice for the same batch."""
    first = place.instance()
    first.failpoint = "produce.ask:40:kill"
    place.link.lose("adopt.request" if end == "request" else "adopt")
    with Load(place) as load:
        first.start()
        first.fallen()
        place.lapsed().wait("batch.adopted")
    place.judge(load)
    assert place.link.lost


@pytest.mark.parametrize("end", ["request", "reply"])
def test_lost_leave(place, end):
    """It asks again, and ends; the slot is free at once."""
    lapsed = place.lapsed()
    place.link.lose("leave.request" if end == "request" else "leave")
    with Load(place) as load:
        some(load, 50)
        assert lapsed.stop() == 0
        assert place.link.lost
        assert not place.client.hlen(f"{PREFIX}:slots")
        lapsed.start()
    load.settle(duplicates=False)


# -- the wire as a whole

@pytest.fixture
def pulse():
    with Pulse() as p:
        yield p


def reset(link):
    link.cut()


def refused(link):
    link.refuse()
    link.cut()


def blackhole(link):
    link.hold()


def half_open(link):
    link.half_open()


def slow(link):
    link.delay = 1.0        # and one second back


def drip(link):
    link.drip = 200


WIRES = {f.__name__: f for f in (reset, refused, blackhole, half_open, slow, drip)}
DEAD = ("reset", "refused", "blackhole", "half_open")    # connections do not survive it


@pytest.mark.parametrize("wire", ["refused", "blackhole", "slow", "drip"])
def test_start(place, wire):
    """It is so before lapsed starts."""
    WIRES[wire](place.link)
    lapsed = place.instance(redis={"connect_timeout": "3s"}).start(joined=False)
    with Load(place) as load:
        some(load, 100)
        if wire in DEAD:
            lapsed.wait("redis.refused")
            place.link.heal()
        lapsed.wait("slot.joined", limit=20)
        some(load, 50)
        place.link.heal()
    load.settle(duplicates=False)


@pytest.mark.parametrize("wire", WIRES)
def test_work(place, pulse, wire):
    """Under load; noticed and mended in time."""
    lapsed = place.lapsed()
    with Load(place) as load:
        some(load, 50)
        lapsed.mark()
        began = time.time()
        WIRES[wire](place.link)
        if wire in DEAD:
            lost = lapsed.wait("redis.lost", connection="connection")
            assert now_of(lost) - began < pulse.limit(NOTICED + SLACK)
            heard = lapsed.wait("redis.lost", connection="subscription")
            assert now_of(heard) - began < pulse.limit(NOTICED + SLACK)
            healed = time.time()
            place.link.heal()
            up = lapsed.wait("redis.connected"), lapsed.wait("redis.subscribed")
            for line in up:
                assert now_of(line) - healed < pulse.limit(1 + SLACK)
        seen = place.link.passed["claim.reply"]
        until(lambda: place.link.passed["claim.reply"] >= seen + 3, "some claims")
        place.link.heal()
    load.settle(duplicates=False)
    place.explain(place.ledger)
    if wire in ("slow", "drip"):
        assert not lapsed.find("redis.lost"), "slow is not dead"


@pytest.mark.parametrize("wire", ["blackhole", "half_open"])
def test_idle(place, pulse, wire):
    """Nobody asks anything, and yet it is noticed."""
    lapsed = place.lapsed(lapsed={"lease": "10s"})
    lapsed.wait("gap.closed")
    lapsed.mark()
    began = time.time()
    WIRES[wire](place.link)
    for connection in ("connection", "subscription"):
        lost = lapsed.wait("redis.lost", connection=connection)
        assert now_of(lost) - began < pulse.limit(NOTICED + SLACK)
    place.link.heal()
    place.settle([place.schedule("job")])


@pytest.mark.parametrize("wire", WIRES)
def test_stop(place, pulse, wire):
    """Just before it is told to end: within its limit, and nothing is lost."""
    lapsed = place.lapsed(lapsed={"stop_timeout": "1s"})
    with Load(place) as load:
        some(load, 100)
        WIRES[wire](place.link)
        began = time.monotonic()
        lapsed.term()
        assert lapsed.ended() == 0
        assert time.monotonic() - began < pulse.limit(1 + 2 + SLACK)
        place.link.heal()
        lapsed.start()
    place.judge(load)


@pytest.mark.parametrize("wire", ["blackhole", "half_open", "slow"])
def test_peer(place, wire):
    """One is cut off for longer than its lease; the other goes on at once."""
    victim = place.lapsed()
    peer = place.lapsed(redis={"url": place.redis.url})
    with Load(place) as load:
        some(load, 50)
        WIRES[wire](place.link)
        if wire == "slow":
            some(load, 1000)
        else:
            victim.wait("redis.lost")
        some(load, 50)
        place.link.heal()
        if wire != "slow":
            victim.wait("redis.connected")
        some(load, 50)
    place.judge(load)
    assert peer.alive() and victim.alive()
