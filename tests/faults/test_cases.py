# SPDX-License-Identifier: BSD-2-Clause
"""What users of others ran into and no other test shows."""

import statistics
import time

import pytest

from limits import scaled, until
from place import TimedLoad, some
from world import PREFIX

WINDOW_KB = 96 * 1024       # a process with its window full


def test_longer_than_the_lease(place):
    """Case 53: a delay of ten leases; it comes once."""
    for _ in range(2):
        place.lapsed(lapsed={"lease": "1s"})
    ids = place.schedule_many([f"job-{i}" for i in range(100)], "+10000")
    ids += place.setex_many([f"load-{i}" for i in range(100)], "10000")
    place.settle(ids)


def test_many_open_entries_are_adopted(place):
    """Of a slot with 10,000; `./dev bench cost` tells how soon after the end of its lease."""
    # Claims need not be full: the last of them needs room for a whole one.
    victim = place.lapsed(lapsed={"lease": "2s", "max_inflight": "20000"},
                          kafka={"bootstrap.servers": "127.0.0.1:1"})
    ids = place.schedule_many([f"job-{i}" for i in range(10_000)])
    until(lambda: not place.client.exists(f"{PREFIX}:due"), "all to be claimed", 60)
    heir = place.lapsed(lapsed={"lease": "2s"})
    victim.kill()
    place.settle(ids, limit=60)
    assert heir.stats()["adopted_entries"] == 10_000


@pytest.mark.full
def test_many_are_due_at_the_start(place):
    """Case 21: no more in the process than its window holds, and it answers meanwhile."""
    ids = []
    for start in range(0, 100_000, 5_000):
        ids += place.schedule_many([f"job-{i}" for i in range(start, start + 5_000)])
    lapsed = place.lapsed()
    heard = []
    while place.client.exists(f"{PREFIX}:due"):
        heard.append(place.setex(f"load-{len(heard)}", "1"))
        lapsed.stats()
    place.settle(ids + heard, limit=60)
    assert lapsed.memory_kb() < WINDOW_KB


def test_storm_of_reconnections(place):
    """Case 61: cut again as soon as it is back, over and over (10,000: unit/test_redis.c)."""
    lapsed = place.lapsed()
    with TimedLoad(place) as load:
        for _ in range(40):
            lapsed.mark()
            place.link.cut()
            lapsed.wait("redis.connected")
        some(load, 50)
    load.settle(duplicates=False)
    assert lapsed.total("redis_reconnects") >= 40


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
    # A busy machine delays some, what waits for metadata all.
    assert min(late) < scaled(100), late


@pytest.mark.parametrize("wire", ["plain", "tls"])
def test_small_events_on_two_partitions(place, broker, wire):
    """Case 66: three at once, again and again; no step of 40 ms."""
    topic = place.new_topic(partitions=2)
    place.lapsed(kafka={} if wire == "plain" else broker.tls())
    late = []
    for i in range(20):
        ids = [place.schedule(f"job-{i}-{j}", topic=topic, key=f"key-{j}") for j in range(3)]
        place.ledger.wait_for(ids)
        late += [r.time - r.due for r in map(place.ledger.by_id, ids)]
    assert len({r.partition for r in place.ledger.records}) == 2
    assert statistics.quantiles(late)[0] < scaled(40), late


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


def test_a_partition_that_is_gone(place, broker):
    """Case 70: with headers and under way to partitions that no longer exist."""
    topic = f"shrunk-{place.topic}"
    broker.create_topic(topic, 4)
    lapsed = place.lapsed()
    for i in range(8):
        place.schedule(f"warm-{i}", topic=topic, key=f"key-{i}")
    place.drained()
    place.bus.hold()
    ids = [place.schedule(f"job-{i}", "+0", topic, f"key-{i}", b"x", "header.a", "b")
           for i in range(40)]
    until(lambda: lapsed.stats()["kafka_outstanding"] == 40, "all to be under way")
    broker.delete_topic(topic)
    place.new_topic(topic)
    place.bus.let_go()
    place.settle(ids, duplicates=True)
    assert lapsed.alive() and not place.dead()


def test_a_record_that_kills_its_reader(place):
    """Case 56: whoever produces it dies; in the end it alone is a dead letter, with why."""
    ids = place.schedule_many([f"job-{i}" for i in range(20)] + ["poison"])
    lapsed = place.instance()
    lapsed.env["LAPSED_POISON"] = "s:poison"
    lapsed.errors.add("event.buried")
    for _ in range(40):
        lapsed.start(joined=False)
        until(lambda: not lapsed.alive() or place.dead(), "its death, or that of the record")
        if lapsed.alive():
            break
        lapsed.fallen()
        place.client.delete(f"{PREFIX}:slots")      # as if its lease had ended
    place.ledger.wait_for(ids[:-1])
    assert {i: why[:6] for i, why in place.dead().items()} == {ids[-1]: "poison"}
    place.drained(dead=True)
    assert ids[-1] not in place.ledger.ids()
