# SPDX-License-Identifier: BSD-2-Clause
"""Something is done to Redis at the very moment of each step.

Cases 3, 24, 38: restarts; 47, 48: what fired does not come back, due times stay;
50: bookkeeping is lost; and scripts, functions, connections and all data.
"""

import threading
import time

import pytest
import redis

from limits import until
from place import TimedLoad, some
from world import PREFIX

# Redis may lose this much of what it acknowledged, with appendfsync everysec.
EVERYSEC = 2.0
FUNCTIONS = "#!lua name=other\nredis.register_function('other', function() return 1 end)"


def script_flush(place):
    place.client.script_flush()


def function_flush(place):
    place.client.execute_command("FUNCTION", "LOAD", "REPLACE", FUNCTIONS)
    place.client.execute_command("FUNCTION", "FLUSH")


def client_kill(place):
    for kind in ("normal", "pubsub"):
        place.client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def kill(place):
    place.redis.restart(kill=True)


def restart(place):
    place.redis.restart()


def busy(place):
    """A script of somebody else runs for a while."""
    place.client.config_set("busy-reply-threshold", 20)
    other, probe = place.redis.client(socket_timeout=30), place.redis.client()

    def run():
        other.eval("local i = 0 while i < 12000000 do i = i + 1 end", 0)

    def refused():
        try:
            return not probe.ping()
        except redis.ResponseError as error:
            return "BUSY" in str(error)
    threading.Thread(target=run, daemon=True).start()
    until(refused, "Redis to be busy")


HARMS = {f.__name__: f for f in (script_flush, function_flush, client_kill, kill, restart, busy)}
CALLS = {"join": 1, "claim": 10, "settle": 10, "renew": 3, "adopt": 1, "leave": 1}


def prepare(place, fsync="always"):
    """Redis with a memory, and an instance that is dead and has left something."""
    place.use_redis(config={"appendonly": "yes", "appendfsync": fsync})


def run(place, load, call, harm):
    """The instance under test reaches the call, and goes on."""
    struck = []
    place.link.at(call, lambda: (struck.append(time.monotonic()), harm(place)), CALLS[call])
    if call == "adopt":
        first = place.instance()
        first.failpoint = "produce.taken:40:kill"
        first.start()
        first.fallen()
    lapsed = place.instance().start(joined=False)
    if call == "leave":
        some(load, 100)
        assert lapsed.stop() == 0
        lapsed.start()
    until(lambda: struck, f"the {call}")
    some(load, 50)
    return struck[0]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("harm", HARMS)
def test_moment(place, harm, call):
    """Everything that Redis acknowledged is on disk."""
    prepare(place)
    with TimedLoad(place) as load:
        run(place, load, call, HARMS[harm])
    place.judge(load)


@pytest.mark.parametrize("call", CALLS)
def test_everysec(place, call):
    """It may forget the last second or two, and lapsed nothing besides."""
    prepare(place, "everysec")
    with TimedLoad(place) as load:
        struck = run(place, load, call, kill)
    window = [i for i in load.since(struck - EVERYSEC) if i not in load.since(struck)]
    place.judge(load, forgotten=window)


@pytest.mark.parametrize("call", CALLS)
def test_flushall(place, call):
    """What is gone is gone; nothing crashes, and what comes is delivered."""
    with TimedLoad(place) as load:
        run(place, load, call, lambda p: p.client.flushall())
        after = time.monotonic()
        some(load, 50)
    # The alarm: the slot is gone as well.
    fenced = [x for i in place.instances for x in i.find_ever("slot.fenced")]
    assert call in ("join", "leave") or fenced and fenced[0]["level"] == "warn"
    place.ledger.wait_for(load.since(after))
    place.drained()
    assert not place.ledger.early()
    place.use_scripts()
    ids = place.schedule_many([f"job-{i}" for i in range(20)])
    place.ledger.wait_for(ids)
    assert all(i.alive() for i in place.instances if i.failpoint is None and i.process)


@pytest.mark.parametrize("call", CALLS)
def test_bookkeeping(place, call):
    """Case 35, 50: a lease and its epoch are deleted; nothing is stuck."""
    def harm(p):
        p.client.delete(f"{PREFIX}:slots", f"{PREFIX}:epoch")

    with TimedLoad(place) as load:
        run(place, load, call, harm)
    place.judge(load)
