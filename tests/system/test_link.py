# SPDX-License-Identifier: BSD-2-Clause
"""Is what Redis publishes heard?  The canary tells; and a healthy link is left alone."""

from limits import until
from world import PREFIX

ROUTES = {"orders": {"pattern": "order:*"}}


def test_at_rest(world):
    """Nothing to do: no reconnects, no warnings, a handful of commands a second."""
    pair = [world.lapsed(routes=ROUTES, lapsed={"sweep_interval": "30s", "lease": "10s",
                                                "stats_interval": "10s"}) for _ in range(2)]
    listener = world.client.pubsub()
    listener.subscribe(f"{PREFIX}:wake")
    words = []

    def heard():
        message = listener.get_message(timeout=0.05)
        if message and message["type"] == "message":
            words.append(message["data"])
        return len(words) >= 8
    before = world.client.info("stats")["total_commands_processed"], world.now()
    until(heard, "both canaries, four times", 30)
    commands = world.client.info("stats")["total_commands_processed"] - before[0]
    assert commands / (world.now() - before[1]) * 1000 < 30
    for lapsed in pair:
        lines = [x for x in lapsed.lines() if x["level"] in ("warn", "error")]
        assert not lines
        assert len(lapsed.find("redis.subscribed")) == 1


def test_expiries_are_no_longer_published(world):
    """Case 5, 39: noticed without CONFIG, said, and said when it is over."""
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.wait("redis.subscribed")
    world.client.execute_command("ACL", "SETUSER", "default", "-config", "+config|set")
    world.client.config_set("notify-keyspace-events", "")
    lapsed.wait("redis.deaf", deaf=True, limit=30)
    ids = [world.setex("order:1", "50")]
    world.settle(ids)
    world.client.config_set("notify-keyspace-events", "Ex")
    lapsed.wait("redis.deaf", deaf=False, limit=30)
    world.client.set("order:heard", "v", px=50)
    until(lambda: b"order:heard" in [r.key for r in world.ledger.read()], "what is heard")


def test_flags_are_set_where_that_is_allowed(world):
    """Case 39: set_notify brings them back after a restart of Redis."""
    world.client.config_set("notify-keyspace-events", "Kl")
    lapsed = world.lapsed(routes=ROUTES, redis={"set_notify": "yes"})
    lapsed.wait("redis.subscribed")
    until(lambda: set("Ex") <= set(world.client.config_get()["notify-keyspace-events"]),
          "the flags to be set")
    assert set("Kl") <= set(world.client.config_get()["notify-keyspace-events"])
    world.client.set("order:heard", "v", px=50)
    until(lambda: b"order:heard" in [r.key for r in world.ledger.read()], "what is heard")
