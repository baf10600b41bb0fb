# SPDX-License-Identifier: BSD-2-Clause
"""Redis is loading, full, or another one than before.

Case 5: the new master publishes nothing; 35: a failover that forgets; 41: keys
are evicted; 52: no memory, and yet it drains.
"""

import threading
import time

import pytest
import redis

from harness.redisserver import RedisServer
from limits import until
from place import TimedLoad, some
from proxy import Proxy
from wires import Bytes
from world import PREFIX


# -- loading

def is_loading(place):
    try:
        place.redis.client().ping()
    except redis.BusyLoadingError:
        return True
    except redis.ConnectionError:
        pass
    return False


@pytest.mark.parametrize("phase", ["start", "work", "stop"])
def test_loading(place, phase):
    """Asked while it reads its data: it waits, and says why."""
    place.use_redis(config={"appendonly": "yes", "appendfsync": "always"})
    pipe = place.client.pipeline(transaction=False)
    for i in range(20_000):
        pipe.set(f"foreign-{i}", "x")
    pipe.execute()
    lapsed = place.instance(lapsed={"stop_timeout": "1s"})
    if phase != "start":
        lapsed.start()
    with TimedLoad(place) as load:
        some(load, 50)
        # Redis looks at its clients after every 1024 commands that it has loaded.
        place.redis.config["key-load-delay"] = "50"
        lapsed.mark()
        restart = threading.Thread(target=place.redis.restart, args=(True,))
        restart.start()
        if phase == "start":
            until(lambda: is_loading(place), "Redis to load")
            lapsed.start(joined=False)
        told = lambda: any("LOADING" in str(x) for x in lapsed.lines())     # noqa: E731
        until(told, "it to say so")
        if phase == "stop":
            assert lapsed.stop() == 0
            lapsed.start(joined=False)
        restart.join()
        some(load, 50)
    place.judge(load)


# -- failover

@pytest.fixture
def pair(place):
    """A master, a replica of it, and the wire between the two."""
    folder = place.folder / "replica"
    folder.mkdir()
    place.use_redis(tcp=True, config={"repl-diskless-sync-delay": "0"})
    wire = Proxy(Bytes, ("127.0.0.1", place.redis.port))
    replica = RedisServer(folder, config={"replicaof": f"127.0.0.1 {wire.port}",
                                          "notify-keyspace-events": ""})
    place.keep(replica.start())     # as long as instances that may hold a slot in it
    with wire:
        until(lambda: replica.client().info("replication")["master_link_status"] == "up",
              "the replica", 20)
        yield wire, replica


def promote(place, load, replica):
    """The replica takes the master's place, as far as anybody can see."""
    place.redis.kill()
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    place.link.target = replica.socket
    place.link.cut()
    place.redis = replica
    place.client = replica.client()
    load.move(replica)


@pytest.mark.parametrize("call", ["join", "claim", "settle", "renew", "adopt", "leave"])
def test_failover(place, pair, call):
    """To a replica that lags: what it does not have is lost, and nothing else."""
    wire, replica = pair
    struck = []

    def harm():
        promote(place, load, replica)
        struck.append(time.monotonic())

    lapsed = place.instance()
    with TimedLoad(place) as load:
        lapsed.start()
        some(load, 100)
        lag = time.monotonic()
        wire.hold()
        some(load, 50)
        if call == "adopt":
            place.bus.hold()
            until(lambda: place.client.hlen(f"{PREFIX}:open"), "something to adopt")
        if call in ("join", "adopt"):
            lapsed.kill()
            place.bus.let_go()
        place.link.at(call, harm)
        if call in ("join", "adopt"):
            lapsed.start(joined=False)
        elif call == "leave":
            lapsed.stop()
            lapsed.start()
        until(lambda: struck, f"the {call}")
        some(load, 50)
    # Settled behind the replica's back: comes again, with the same id.
    window = load.since(lag - 1.0)
    window = window[:len(window) - len(load.since(struck[0]))]
    place.judge(load, forgotten=window)


def test_failover_without_lag(place, pair):
    """Nothing is lost; keys are on time although nobody publishes (case 5)."""
    _, replica = pair
    lapsed = place.lapsed()
    with TimedLoad(place) as load:
        some(load, 100)
    place.client.wait(1, 5000)
    ids = place.setex_many([f"load-key-{i}" for i in range(50)], "1000")
    ids += place.schedule_many([f"job-{i}" for i in range(50)], "+1000")
    assert place.client.wait(1, 5000) == 1
    promote(place, load, replica)
    lapsed.wait("redis.notify", level="warn")
    load.stored += ids
    place.judge(load)


def test_a_replica_is_refused(place, pair):
    """The address leads to a replica for a while: nothing is written there."""
    _, replica = pair
    lapsed = place.lapsed()
    with TimedLoad(place) as load:
        some(load, 50)
        master, place.link.target = place.link.target, replica.socket
        place.link.cut()
        line = lapsed.wait("redis.refused")
        assert "replica" in line["error"]
        place.link.target = master
        lapsed.wait("slot.joined" if lapsed.find("slot.fenced") else "redis.connected")
        some(load, 50)
    place.judge(load)


# -- full

def fill(place, policy="noeviction"):
    place.client.config_set("maxmemory-policy", policy)
    place.client.config_set("maxmemory", place.client.info("memory")["used_memory"] - 50_000)


def drained(place):
    """Nothing of `due` is left to claim."""
    return not place.client.exists(f"{PREFIX}:due")


@pytest.mark.parametrize("phase", ["start", "claim", "adopt", "stop"])
def test_noeviction(place, phase):
    """Case 52: all steps go on, so that there is room again."""
    lapsed = place.instance(lapsed={"stop_timeout": "1s"})
    if phase == "adopt":
        lapsed.failpoint = "produce.taken:40:kill"
    if phase != "start":
        lapsed.start()
    ids = place.schedule_many([f"job-{i}" for i in range(500)], "+700", b"x" * 500)
    ids += place.setex_many([f"load-{i}" for i in range(200)], "700", b"x" * 500)
    fill(place)
    if phase == "adopt":
        lapsed.fallen()
    if phase in ("start", "adopt"):
        lapsed.start()
    if phase == "stop":
        until(lambda: place.client.zcard(f"{PREFIX}:due") < 700, "the first claim")
        assert lapsed.stop() == 0
        lapsed.start()
    place.ledger.wait_for(ids)
    until(lambda: drained(place), "room")
    place.client.config_set("maxmemory", 0)
    place.settle(ids, duplicates=True)
    place.explain(place.ledger)


def test_volatile_lru(place):
    """Case 41: keys with a TTL are evicted: not due before their time, and not forgotten."""
    lapsed = place.lapsed()
    ids = place.setex_many([f"load-{i}" for i in range(500)], "2000", b"x" * 500)
    ids += place.schedule_many([f"job-{i}" for i in range(500)], "+2000", b"x" * 500)
    place.client.config_set("maxmemory-policy", "volatile-lru")
    place.client.config_set("maxmemory", place.client.info("memory")["used_memory"] - 300_000)
    until(lambda: place.client.set("foreign", "x") and
          place.client.info("stats")["evicted_keys"] > 100, "keys to be evicted")
    place.client.config_set("maxmemory", 0)
    place.settle(ids)
    assert lapsed.alive()
