# SPDX-License-Identifier: BSD-2-Clause
"""Kafka goes away and comes back; events wait in Redis."""

import signal
import time

from limits import scaled, until
from load import Load
from world import PREFIX

ROUTES = {"load": {"pattern": "load-*"}}


def some(load, n=100):
    wanted = len(load.stored) + n
    until(lambda: len(load.stored) >= wanted, "some load", 30)


def test_restart_under_load(broker_world, broker):
    """A clean stop and start; then kill -9."""
    world = broker_world
    world.settle_one()
    pair = [world.lapsed(routes=ROUTES, lapsed={"grace": "5ms"}) for _ in range(2)]
    with Load(world) as load:
        some(load)
        broker.restart()
        some(load)
        broker.kill()
        some(load)
        broker.start()
        some(load)
    load.stored += world.warm
    load.settle()
    assert all(i.alive() for i in pair)


def test_down_at_start(broker_world, broker):
    """Case 72: it claims no more than its credits, says so, and delivers later."""
    world = broker_world
    world.settle_one()
    broker.stop()
    ids = world.schedule_many([f"job-{i}" for i in range(1000)])
    lapsed = world.lapsed(lapsed={"max_inflight": "100"})
    lapsed.wait("kafka.unreachable")
    lapsed.wait("window.full")
    figures = lapsed.stats()
    assert figures["inflight_events"] <= 100
    assert world.client.zcard(f"{PREFIX}:due") >= 900
    broker.start()
    lapsed.wait("kafka.ready", limit=30)
    world.settle([*ids, *world.warm], duplicates=True)


def test_a_hang_longer_than_the_message_timeout(broker_world, broker):
    """Case 73: given up by librdkafka, kept by us; perhaps twice, under the same id."""
    world = broker_world
    world.settle_one()
    lapsed = world.lapsed(kafka={"message.timeout.ms": "1500", "socket.timeout.ms": "1000",
                                 "metadata.max.age.ms": "1000"})
    broker.pause()
    ids = world.schedule_many([f"job-{i}" for i in range(200)])
    until(lambda: sum(lapsed.stats()[n] for n in ("retried", "possible_duplicates")) >= 200,
          "all to be given up once", 30)
    broker.resume()
    world.settle([*ids, *world.warm], duplicates=True, limit=40)
    if world.ledger.duplicates():
        assert lapsed.stats()["possible_duplicates"] > 0


def test_term_under_load_then_a_new_start(world):
    """A stop finishes what is open; nothing comes twice."""
    lapsed = world.lapsed(routes=ROUTES)
    with Load(world) as load:
        for _ in range(3):
            some(load)
            assert lapsed.stop() == 0
            assert lapsed.find("slot.left")
            assert lapsed.find("daemon.stopped")[0]["open_events"] == 0
            some(load)
            lapsed.start()
    load.settle(duplicates=False)
    assert lapsed.stop() == 0
    assert world.client.hlen(f"{PREFIX}:slots") == 0


def test_term_with_kafka_down(broker_world, broker):
    """Case 46, 60, 71: it ends within the limit, and all is delivered later."""
    world = broker_world
    world.settle_one()
    lapsed = world.lapsed(lapsed={"stop_timeout": "1s"})
    broker.stop()
    ids = world.schedule_many([f"job-{i}" for i in range(500)])
    until(lambda: not world.client.exists(f"{PREFIX}:due"), "all to be claimed")
    start = time.monotonic()
    assert lapsed.stop() == 0
    assert time.monotonic() - start < scaled(1 + 4)
    assert lapsed.find("slot.left")
    assert world.client.hlen(f"{PREFIX}:open") > 0
    broker.start()
    lapsed.start()
    world.settle([*ids, *world.warm], duplicates=True)


def test_term_with_kafka_hanging(broker_world, broker):
    """Requests that were sent may have been taken: perhaps twice, same ids."""
    world = broker_world
    world.settle_one()
    lapsed = world.lapsed(lapsed={"stop_timeout": "1s"})
    broker.pause()
    ids = world.schedule_many([f"job-{i}" for i in range(500)])
    until(lambda: lapsed.stats()["kafka_outstanding"] > 0, "some to be in flight")
    start = time.monotonic()
    assert lapsed.stop() == 0
    assert time.monotonic() - start < scaled(1 + 4)
    broker.resume()
    lapsed.start()
    world.settle([*ids, *world.warm], duplicates=True)


def test_term_with_redis_down(world):
    """Nothing can be settled: it ends all the same."""
    lapsed = world.lapsed(lapsed={"stop_timeout": "1s"})
    world.redis.stop()
    lapsed.wait("redis.lost")
    start = time.monotonic()
    assert lapsed.stop() == 0
    assert time.monotonic() - start < scaled(1 + 4)


def test_a_second_term_ends_it_at_once(broker_world, broker):
    """As a crash would: nothing is lost."""
    world = broker_world
    world.settle_one()
    lapsed = world.lapsed(lapsed={"stop_timeout": "60s", "lease": "1s"})
    broker.pause()
    ids = world.schedule_many([f"job-{i}" for i in range(100)])
    until(lambda: lapsed.stats()["kafka_outstanding"] > 0, "some to be in flight")
    lapsed.term()
    lapsed.wait("daemon.stopping")
    lapsed.process.send_signal(signal.SIGINT)
    start = time.monotonic()
    lapsed.ended(limit=10)
    assert time.monotonic() - start < scaled(4)
    broker.resume()
    lapsed.start()
    world.settle([*ids, *world.warm], duplicates=True)


def test_a_stop_without_waiting(broker_world, broker):
    """stop_timeout 0."""
    world = broker_world
    world.settle_one()
    lapsed = world.lapsed(lapsed={"stop_timeout": "0"})
    broker.pause()
    ids = world.schedule_many([f"job-{i}" for i in range(100)])
    until(lambda: lapsed.stats()["kafka_outstanding"] > 0, "some to be in flight")
    assert lapsed.stop(limit=8) == 0
    broker.resume()
    lapsed.start()
    world.settle([*ids, *world.warm], duplicates=True)


def test_more_due_at_once_than_fits(world):
    """Case 16, 21: bounded queues, nothing lost."""
    ids = []
    for start in range(0, 20_000, 5_000):
        ids += world.schedule_many([f"job-{i}" for i in range(start, start + 5_000)])
    lapsed = world.lapsed(lapsed={"max_inflight": "100", "claim_limit": "50"})
    world.settle(ids, limit=60)
    figures = lapsed.stats()
    assert figures["settled"] == 20_000
    assert figures["early"] == 0


def test_more_bytes_due_at_once_than_fit(world):
    """The window counts bytes as well."""
    lapsed = world.instance(lapsed={"max_inflight_bytes": "1m"})
    ids = world.schedule_many([f"job-{i}" for i in range(100)], payload=b"x" * 200_000)
    lapsed.start()
    world.settle(ids)
    assert lapsed.find("window.full")


def test_a_burst_of_heard_keys(world):
    """Case 16, 17: more notifications at once than are claimed together."""
    lapsed = world.lapsed(routes=ROUTES, lapsed={"max_inflight": "100", "claim_limit": "50"})
    lapsed.wait("redis.subscribed")
    at = world.now() + 1500
    for start in range(0, 20_000, 5_000):
        pipe = world.client.pipeline(transaction=False)
        for i in range(start, start + 5_000):
            pipe.execute_command("SET", f"load-{i}", "v", "PXAT", at)
        pipe.execute()
    records = world.records(20_000, limit=60)
    assert len({r.key for r in records}) == 20_000
    assert lapsed.stats()["heard_dropped"] == 0
