# SPDX-License-Identifier: BSD-2-Clause
"""Redis goes away and comes back, in every way."""

import pytest
import redis

from limits import until
from load import Load
from world import PREFIX

ROUTES = {"load": {"pattern": "load-*"}, "orders": {"pattern": "order:*"}}
SOON = {"redis": {"connect_timeout": "500ms"}}


def some(load, n=100):
    wanted = len(load.stored) + n
    until(lambda: len(load.stored) >= wanted, "some load", 30)


@pytest.mark.parametrize("fsync, kill", [
    ("everysec", False), ("always", False), ("always", True), ("everysec", True),
], ids=["everysec", "always", "always-kill", "everysec-kill"])
def test_restart_under_load(world, fsync, kill):
    """Case 3, 38: back at once; what Redis has kept is delivered."""
    world.use_redis(config={"appendonly": "yes", "appendfsync": fsync})
    pair = [world.lapsed(routes=ROUTES, lapsed={"grace": "5ms"}) for _ in range(2)]
    with Load(world) as load:
        for _ in range(3):
            some(load)
            world.redis.restart(kill)
        some(load)
    load.settle()
    for lapsed in pair:
        assert lapsed.find("redis.lost")
        assert len(lapsed.find("redis.subscribed")) == 4
        assert len(lapsed.find("gap.closed")) >= 2


def test_keys_due_while_redis_was_away(world):
    """Case 24: with an RDB, a key that died meanwhile is never spoken of again."""
    world.use_redis(config={"save": "3600 1"})
    lapsed = world.lapsed(routes=ROUTES)
    ids = world.setex_many([f"order:{i}" for i in range(50)], "300")
    ids += world.schedule_many([f"job-{i}" for i in range(50)], "+300")
    world.redis.stop()
    lapsed.wait("redis.lost")
    lapsed.mark()
    world.redis.start()
    world.settle(ids)
    assert lapsed.wait("gap.closed")["gap_ms"] > 0


def test_only_the_subscription_is_cut(world):
    """Case 3, 28: heard of again within the backoff; the gap is logged."""
    lapsed = world.lapsed(routes=ROUTES, lapsed={"sweep_interval": "1h"})
    lapsed.wait("gap.closed")
    for i in range(3):
        lapsed.mark()
        # In one go: what is set before the new subscription is found by its sweep.
        pipe = world.client.pipeline()
        pipe.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        pipe.execute_command(*world.scripts.command(
            "setex", [PREFIX, f"order:{i}"], ["30", "v"]))
        killed, stored = pipe.execute()
        assert killed == 1
        world.warm.append(stored[2])
        lapsed.wait("redis.subscribed", limit=5)
        assert lapsed.wait("gap.closed")["gap_ms"] >= 0
        world.ledger.wait(i + 1)
    assert lapsed.find_ever("redis.lost")[0]["connection"] == "subscription"
    world.settle(world.warm)
    # And it hears again.
    world.client.set("order:heard", "v", px=50)
    until(lambda: b"order:heard" in [r.key for r in world.ledger.read()], "what is heard")


def test_connections_are_cut_under_load(world):
    """A storm of reconnects: unknown results are asked for again."""
    pair = [world.lapsed(routes=ROUTES, lapsed={"grace": "5ms"}) for _ in range(2)]
    with Load(world) as load:
        for kind in ["normal", "pubsub"] * 15:
            some(load, 15)
            world.client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
    load.settle()
    assert sum(i.stats()["redis_reconnects"] for i in pair) >= 10


def test_redis_hangs(world):
    """Case 18: silence is noticed, and forgiven."""
    lapsed = world.lapsed(routes=ROUTES, **SOON)
    with Load(world) as load:
        some(load)
        world.redis.freeze()
        lapsed.wait("redis.lost", limit=20)
        world.redis.thaw()
        some(load)
    load.settle()


def test_redis_forgets_everything(world):
    """Without persistence; the daemon joins anew and serves what comes."""
    lapsed = world.lapsed(routes=ROUTES)
    world.settle([world.schedule("before")])
    for times in (1, 2):
        world.schedule("lost", "+3600000")
        world.redis.restart(kill=True)
        until(lambda n=times: lapsed.stats()["fenced"] == n, "the new Redis to be noticed")
        world.use_scripts()
    ids = world.schedule_many([f"job-{i}" for i in range(50)])
    world.settle([*ids, *world.ledger.ids()])


def test_flushall_under_load(world):
    """What is gone is gone; nothing is stuck."""
    world.lapsed(routes=ROUTES)
    with Load(world) as load:
        for _ in range(5):
            some(load, 30)
            world.client.flushall()
    ids = world.schedule_many([f"job-{i}" for i in range(50)])
    world.ledger.wait_for(ids)
    world.drained()


def test_scripts_are_flushed_under_load(world):
    """NOSCRIPT: loaded again, not an error."""
    world.lapsed(routes=ROUTES)
    with Load(world) as load:
        for _ in range(5):
            some(load, 30)
            world.client.script_flush()
    load.settle(duplicates=False)


def test_out_of_memory_drains(world):
    """Case 52: claims and settles go on, so that there is room again."""
    world.lapsed(routes=ROUTES)
    ids = world.schedule_many([f"job-{i}" for i in range(1000)], "+1500", b"x" * 1000)
    world.client.config_set("maxmemory", world.client.info("memory")["used_memory"] - 100_000)
    with pytest.raises(redis.ResponseError, match="OOM"):
        world.schedule("no-room")
    world.ledger.wait_for(ids)
    world.client.config_set("maxmemory", 0)
    world.settle(ids)


def test_a_script_of_somebody_else_is_waited_out(world):
    """BUSY: asked again, and nobody's script is killed."""
    lapsed = world.lapsed(routes=ROUTES)
    world.client.config_set("lua-time-limit", 50)     # its name in Redis 6.2 too
    other = world.redis.client(socket_timeout=30)
    pipe = other.pipeline(transaction=False)
    pipe.execute_command(*world.scripts.command(
        "schedule", [PREFIX], ["job", "+300", world.topic, "", b"x"]))
    pipe.eval("local i = 0 while i < 100000000 do i = i + 1 end return i", 0)
    stored, ran = pipe.execute()
    assert ran == 100000000
    world.settle([stored[2]])
    assert lapsed.find("script.error", code="BUSY", level="warn")
