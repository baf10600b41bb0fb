# SPDX-License-Identifier: BSD-2-Clause
"""What users of others ran into and no other test shows."""

import statistics
import time

from limits import scaled, until
from place import TimedLoad, some
from world import PREFIX


def test_longer_than_the_lease(place):
    """Case 53: a delay of ten leases; it comes once."""
    for _ in range(2):
        place.lapsed(lapsed={"lease": "1s"})
    ids = place.schedule_many([f"job-{i}" for i in range(100)], "+10000")
    ids += place.setex_many([f"load-{i}" for i in range(100)], "10000")
    place.settle(ids)


def test_many_open_entries_are_adopted(place):
    """Of a slot with 10,000; it begins a second after the lease could have ended at the latest."""
    victim = place.lapsed(lapsed={"lease": "2s"}, kafka={"bootstrap.servers": "127.0.0.1:1"})
    ids = place.schedule_many([f"job-{i}" for i in range(10_000)])
    until(lambda: not place.client.exists(f"{PREFIX}:due"), "all to be claimed")
    heir = place.lapsed(lapsed={"lease": "2s"})
    victim.kill()
    began = time.monotonic()
    heir.wait("batch.adopted")
    assert time.monotonic() - began < scaled(2 + 1)
    place.settle(ids)


def test_storm_of_reconnections(place):
    """Case 61: cut again as soon as it is back, a hundred times."""
    lapsed = place.lapsed()
    with TimedLoad(place) as load:
        for _ in range(100):
            lapsed.mark()
            place.link.cut()
            lapsed.wait("redis.connected")
        some(load, 50)
    load.settle(duplicates=False)
    assert lapsed.total("redis_reconnects") >= 100


def test_first_event_of_a_fresh_topic(place):
    """Case 65: a topic made while all runs; its first event does not wait."""
    place.lapsed()
    place.settle([place.schedule("warm")])
    late = []
    for i in range(5):
        topic = place.new_topic()
        ce_id = place.schedule(f"first-{i}", topic=topic)
        place.ledger.wait_for([ce_id])
        record = place.ledger.by_id(ce_id)
        late.append(record.time - record.due)
    assert statistics.median(late) < scaled(100), late


def test_small_events_on_two_partitions(place):
    """Case 66: three at once, again and again; no step of 40 ms."""
    topic = place.new_topic(partitions=2)
    place.lapsed()
    late = []
    for i in range(20):
        ids = [place.schedule(f"job-{i}-{j}", topic=topic, key=f"key-{j}") for j in range(3)]
        place.ledger.wait_for(ids)
        late += [r.time - r.due for r in map(place.ledger.by_id, ids)]
    assert len({r.partition for r in place.ledger.records}) == 2
    assert statistics.median(late) < scaled(40), late


def test_a_record_that_the_broker_refuses(place):
    """Case 69: without a key on a compacted topic; it alone is buried."""
    topic = place.new_topic(cleanup_policy="compact")
    lapsed = place.lapsed()
    lapsed.errors.add("event.buried")
    good, bad = [], []
    for i in range(30):
        if i % 10 == 5:
            bad.append(place.schedule(f"bad-{i}", "+500", topic))
        else:
            good.append(place.schedule(f"good-{i}", "+500", topic, f"key-{i}"))
    place.ledger.wait_for(good)
    until(lambda: set(place.dead()) == set(bad), "them to be buried")
    place.drained(dead=True)
    assert lapsed.alive()
