# SPDX-License-Identifier: BSD-2-Clause
"""However many instances run, one record for each expiry."""

from collections import Counter

import pytest

from limits import until

ROUTES = {"orders": {"pattern": "order:*"}}


@pytest.mark.parametrize("instances", [1, 3])
def test_each_scheduled_event_arrives_once(world, instances):
    for _ in range(instances):
        world.lapsed()
    ids = world.schedule_many([f"job-{i}" for i in range(500)], "+300")
    world.settle(ids)


@pytest.mark.parametrize("instances", [1, 3])
def test_each_registered_key_arrives_once(world, instances):
    """Case 55: the whole way, from the expiry to Kafka."""
    for _ in range(instances):
        world.lapsed(routes=ROUTES)
    ids = world.setex_many([f"order:{i}" for i in range(500)], "300")
    world.settle(ids)


@pytest.mark.parametrize("instances", [1, 3])
def test_each_heard_key_arrives_once(world, instances):
    """Case 1: all hear of it; one forwards it."""
    running = [world.lapsed(routes=ROUTES) for _ in range(instances)]
    for instance in running:
        instance.wait("redis.subscribed")
    pipe = world.client.pipeline()
    for i in range(200):
        pipe.set(f"order:{i}", "v", px=200)
    pipe.execute()
    world.ledger.wait(200)
    world.drained()
    until(lambda: sum(i.stats()["absorbed"] for i in running) == 200 * (instances - 1),
          "the others to see that it was claimed")
    world.ledger.finish()
    assert Counter(r.key for r in world.ledger.records) == {
        b"order:%d" % i: 1 for i in range(200)}
    assert not world.ledger.duplicates()
    assert {r.headers["ce_lapsecertainty"] for r in world.ledger.records} == {b"heard"}


def test_overlapping_routes_make_one_record(world):
    """Case 23: the first route that matches is the only one."""
    other = world.new_topic()
    world.lapsed(routes={
        "first": {"pattern": ["order:*", "order:1*"]},
        "second": {"pattern": "order:*", "topic": other},
    })
    ids = world.setex_many(["order:1", "order:12"], "100")
    world.settle(ids)
    assert {r.topic for r in world.ledger.records} == {world.topic}


def test_sweeps_of_several_claim_each_entry_once(world):
    """Case 20, 32: what is overdue is found by all and claimed by one."""
    ids = world.schedule_many([f"job-{i}" for i in range(3000)])
    ids += world.setex_many([f"order:{i}" for i in range(1000)], "1")
    for instance in [world.instance(routes=ROUTES) for _ in range(3)]:
        instance.start(joined=False)
    world.settle(ids)


def test_two_on_one_store_share_the_work(world):
    """Case 32: neither a global lock nor a record twice."""
    running = [world.lapsed(lapsed={"grace": "0"}) for _ in range(2)]
    ids = []
    for i in range(20):
        ids += world.schedule_many([f"job-{i}-{j}" for j in range(50)])
    world.settle(ids)
    assert sum(i.stats()["acknowledged"] for i in running) == 1000
