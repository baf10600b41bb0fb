# SPDX-License-Identifier: BSD-2-Clause
"""Instances that die, hang or lose their slot."""

import random

import pytest

from limits import until
from load import Load
from world import PREFIX

ROUTES = {"load": {"pattern": "load-*"}}
QUICK = {"lease": "1s", "grace": "5ms"}


def test_one_of_two_is_killed_20_times_under_load(world):
    """Case 19, 31, 33: nothing lost; what comes twice has the same id."""
    pair = [world.lapsed(routes=ROUTES, lapsed=QUICK) for _ in range(2)]
    chance = random.Random(7)
    with Load(world) as load:
        for _ in range(20):
            victim = chance.choice(pair)
            wanted = len(load.stored) + chance.randrange(20, 150)
            until(lambda w=wanted: len(load.stored) >= w, "some load")
            victim.kill()
            victim.start()
    load.settle()
    assert sum(len(i.find_ever("batch.adopted")) for i in pair) > 0


def test_all_are_killed_with_batches_open(broker_world, broker):
    """What was claimed and not yet acknowledged waits in Redis."""
    world = broker_world
    world.settle_one()
    pair = [world.lapsed(lapsed=QUICK) for _ in range(2)]
    broker.pause()
    ids = world.schedule_many([f"job-{i}" for i in range(1000)])
    until(lambda: not world.client.exists(f"{PREFIX}:due"), "all to be claimed")
    for instance in pair:
        instance.kill()
    broker.resume()
    world.lapsed(lapsed=QUICK).wait("batch.adopted")
    world.settle([*ids, *world.warm], duplicates=True)


def test_a_stopped_instance_leaves_its_slot_to_the_next(world):
    """A crash frees it with the lease, a stop at once."""
    first = world.lapsed(lapsed={"lease": "10s"})
    first.stop()
    second = world.lapsed(lapsed={"lease": "10s"})
    assert second.find("slot.joined")[0]["slot"] == 0
    second.kill()
    assert world.lapsed(lapsed={"lease": "10s"}).find("slot.joined")[0]["slot"] == 1


def test_an_instance_that_hangs_past_its_lease_is_fenced(broker_world, broker):
    """It drops what it holds; another one has adopted that."""
    world = broker_world
    world.settle_one()
    hung = world.lapsed(routes=ROUTES, lapsed=QUICK)
    broker.pause()
    ids = world.schedule_many([f"job-{i}" for i in range(300)])
    until(lambda: hung.stats()["kafka_outstanding"] == 300, "all to be in flight")
    hung.pause()
    heir = world.lapsed(routes=ROUTES, lapsed=QUICK)
    broker.resume()
    heir.wait("batch.adopted")
    world.ledger.wait(300 + 1)
    hung.cont()
    hung.wait("slot.fenced")
    hung.wait("slot.joined", limit=5)
    ids += world.schedule_many([f"after-{i}" for i in range(100)])
    world.settle([*ids, *world.warm], duplicates=True)


@pytest.mark.parametrize("lost", ["slots", "epoch"])
def test_the_bookkeeping_of_slots_is_lost(world, lost):
    """Case 35, 50: by hand or by a failover; it comes back, nothing is stuck."""
    instance = world.lapsed(routes=ROUTES, lapsed=QUICK)
    with Load(world) as load:
        for _ in range(3):
            wanted = len(load.stored) + 50
            until(lambda w=wanted: len(load.stored) >= w, "some load")
            world.client.delete(f"{PREFIX}:{lost}")
    load.settle()
    if lost == "epoch":
        assert instance.find("slot.fenced")


def test_claimed_entries_of_a_slot_that_nobody_remembers(world):
    """Case 50: the batches are still in `open`, and are adopted from there."""
    instance = world.lapsed(lapsed=QUICK)
    ids = world.schedule_many([f"job-{i}" for i in range(10)], topic="no-such-topic-yet")
    instance.wait("kafka.parked")
    until(lambda: instance.stats()["inflight_events"] == 0, "all to be parked")
    instance.kill()
    world.client.delete(f"{PREFIX}:slots", f"{PREFIX}:epoch")
    # Another slot than the one that is forgotten.
    world.client.hset(f"{PREFIX}:slots", "0", f"1:{world.now() + 1500}:nobody")
    world.lapsed(lapsed=QUICK)
    world.new_topic("no-such-topic-yet")
    world.settle(ids)
    world.kafka.delete_topic("no-such-topic-yet")


def test_seven_instances(world):
    """Ranks beyond the first few work as well."""
    crowd = [world.lapsed(routes=ROUTES, lapsed=QUICK) for _ in range(7)]
    with Load(world) as load:
        until(lambda: len(load.stored) > 200, "some load")
        for instance in crowd[:6]:
            instance.kill()
    load.settle()
