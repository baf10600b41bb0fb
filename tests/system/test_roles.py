# SPDX-License-Identifier: BSD-2-Clause
"""Bridges and sweepers: each half alone, and together."""

from limits import until
from load import Load
from world import PREFIX

ROUTES = {"load": {"pattern": "load-*"}}
QUICK = {"lease": "1s", "grace": "5ms", "sweep_interval": "1s"}


def make(world, role):
    return world.lapsed(routes=ROUTES, lapsed={**QUICK, "role": role})


def all_claimed(world):
    until(lambda: not world.client.exists(f"{PREFIX}:due"), "all to be claimed")


def test_a_sweeper_alone_delivers_everything(world):
    """Without a word from Redis' pub/sub."""
    sweeper = make(world, "sweeper")
    with Load(world) as load:
        until(lambda: len(load.stored) >= 300, "some load")
        assert not world.client.client_list(_type="pubsub")
    load.settle()
    stats = sweeper.stats()
    assert stats["sweeps"] > 0 and stats["heard"] == 0
    assert {r.headers["ce_lapsetrigger"] for r in world.ledger.records} <= {b"sweep", b"timer"}


def test_what_a_bridge_leaves_a_later_sweep_finds(broker_world, broker):
    """A bridge adopts nothing, and loses nothing."""
    world = broker_world
    world.settle_one()
    dies, stays = make(world, "bridge"), make(world, "bridge")
    broker.pause()
    ids = world.schedule_many([f"job-{i}" for i in range(500)])
    all_claimed(world)
    dies.kill()
    stays.kill()
    broker.resume()
    more = make(world, "bridge")
    ids += world.schedule_many([f"more-{i}" for i in range(100)])
    world.ledger.wait_for(ids[500:])
    assert world.client.exists(f"{PREFIX}:open")
    assert more.stats()["adopted_batches"] == 0
    make(world, "sweeper").wait("batch.adopted")
    world.settle([*ids, *world.warm], duplicates=True)


def test_any_number_of_each(world):
    for role in ("bridge", "sweeper", "bridge", "sweeper", "both"):
        make(world, role)
    with Load(world) as load:
        until(lambda: len(load.stored) >= 500, "some load")
    load.settle(duplicates=False)


def test_due_while_there_was_nobody_and_then_a_sweeper(world):
    ids = world.schedule_many([f"job-{i}" for i in range(100)])
    ids += world.setex_many([f"load-{i}" for i in range(100)], "20")
    until(lambda: not world.client.exists("load-99"), "the keys to expire")
    make(world, "sweeper")
    world.settle(ids)
