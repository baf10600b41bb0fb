# SPDX-License-Identifier: BSD-2-Clause
"""Dead letters: the topic that gets them, the limit on them, their new lives."""

import uuid

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from limits import until
from world import PREFIX

BIG = b"x" * 50_000


@pytest.fixture
def small(world):
    """A topic that takes 10,000 bytes at most."""
    return world.new_topic(max_message_bytes=10_000)


@pytest.fixture
def start(world):
    """Starts an instance that may bury."""
    def start_one(dead_topic=None, routes=None, **options):
        if dead_topic:
            options["dead_letter_topic"] = dead_topic
        lapsed = world.lapsed(lapsed=options, routes=routes)
        lapsed.errors.add("event.buried")
        return lapsed
    return start_one


def widen(world, topic, size):
    """The cause is mended: the topic takes so many bytes now."""
    resource = ConfigResource("topic", topic, set_config={"max.message.bytes": str(size)})
    admin = AdminClient({"bootstrap.servers": world.kafka.bootstrap})
    for done in admin.alter_configs([resource]).values():
        done.result(20)


def by_topic(world, topic):
    return [r for r in world.ledger.records if r.topic == topic]


def test_an_oversize_event_goes_to_the_dead_letter_topic(world, small, start):
    """With what it was, and why; once, and kept in Redis as well."""
    dead = world.new_topic()
    lapsed = start(dead)
    ids = world.schedule_many([f"a-{i}" for i in range(50)], "+300", topic=small)
    big = world.schedule("big", "+300", small, "key", BIG, "type", "com.shop.late",
                         "header.h", "v")
    ids += world.schedule_many([f"b-{i}" for i in range(50)], "+300", topic=small)
    world.settle([*ids, big], dead=True)
    (record,) = by_topic(world, dead)
    assert (record.id, record.key, record.value) == (big, b"key", BIG)
    assert record.headers["ce_type"] == b"com.shop.late" and record.headers["h"] == b"v"
    assert record.headers["ce_lapsetopic"] == small.encode()
    reason = record.headers["ce_lapsereason"].decode()
    assert "TOO_LARGE" in reason
    assert world.dead() == {big: reason}
    stats = lapsed.stats()
    assert (stats["buried"], stats["dead_told"], stats["dead_untold"]) == (1, 1, 0)
    assert stats["acknowledged"] == 100


def test_a_route_has_its_own(world, small, start):
    everyones, own = world.new_topic(), world.new_topic()
    start(everyones, routes={
        "a": {"pattern": "a:*", "topic": small, "dead_letter_topic": own},
        "b": {"pattern": "b:*", "topic": small},
    })
    ids = [world.setex(f"{name}:1", "1", BIG) for name in "ab"]
    world.settle(ids, dead=True)
    assert [r.id for r in by_topic(world, own)] == ids[:1]
    assert [r.id for r in by_topic(world, everyones)] == ids[1:]
    assert by_topic(world, own)[0].key == b"a:1"


def test_without_that_topic_it_is_buried_and_all_flows_on(world, small, start):
    """Nothing is parked, nothing waits."""
    missing = f"t-{uuid.uuid4().hex[:12]}"
    lapsed = start(missing)
    big = world.schedule_many([f"big-{i}" for i in range(20)], "+300", BIG, small)
    ids = world.schedule_many([f"a-{i}" for i in range(50)], "+300", topic=small)
    world.settle(ids, dead=True)
    assert set(world.dead()) == set(big)
    assert lapsed.wait("dead.untold")["topic"] == missing
    assert lapsed.find("kafka.parked", topic=missing)
    stats = lapsed.stats()
    assert (stats["buried"], stats["dead_told"], stats["dead_untold"]) == (20, 0, 20)
    assert stats["inflight_events"] == stats["parked_entries"] == 0

    world.new_topic(missing)
    later = []

    def told():
        later.append(world.schedule(f"later-{len(later)}", "+0", small, "", BIG))
        until(lambda: later[-1] in world.dead(), "its burial")
        world.ledger.read()
        return by_topic(world, missing)

    assert until(told, "the next one to be told", 20)[0].id in later


def test_what_that_topic_refuses_too_is_buried(world, small, start):
    """The same limit there: told to nobody, and no loop."""
    lapsed = start(world.new_topic(max_message_bytes=10_000))
    big = world.schedule_many([f"big-{i}" for i in range(3)], "+200", BIG, small)
    ids = world.schedule_many([f"a-{i}" for i in range(50)], "+200", topic=small)
    world.settle(ids, dead=True)
    assert set(world.dead()) == set(big)
    assert lapsed.stats()["dead_untold"] == 3


def test_a_topic_that_is_its_own_dead_letter_topic(world, small, start):
    lapsed = start(small)
    big = world.schedule("big", "+0", small, "", BIG)
    ids = world.schedule_many(["a", "b"], topic=small)
    world.settle(ids, dead=True)
    assert list(world.dead()) == [big]
    assert lapsed.stats()["dead_untold"] == 1


@pytest.mark.parametrize("garbage", [b"garbage", b"\x01" + b"\x00" * 10],
                         ids=["text", "no-topic"])
def test_a_record_that_cannot_be_read_goes_there_as_it_is(world, start, garbage):
    dead = world.new_topic()
    start(dead)
    world.schedule("bad", "+400")
    world.client.hset(f"{PREFIX}:rec", "s:bad", garbage)
    world.ledger.wait(1)
    world.drained(dead=True)
    (record,) = by_topic(world, dead)
    assert list(world.dead().items()) == [(record.id, record.headers["ce_lapsereason"].decode())]
    assert record.subject == "bad" and record.due
    if len(garbage) == 11:      # readable, but for whom?
        assert record.headers["ce_type"] == b"io.lapsed.scheduled"
    else:
        assert record.headers["ce_type"] == b"io.lapsed.unreadable"
        assert record.value == garbage


def test_a_key_whose_route_is_gone_is_told_with_its_copy(world, start):
    dead = world.new_topic()
    ce_id = world.setex("gone:1", "1", b"copy")
    start(dead)
    world.settle([ce_id], dead=True)
    (record,) = by_topic(world, dead)
    assert (record.key, record.value) == (b"gone:1", b"copy")
    assert record.headers["ce_type"] == b"io.lapsed.expired"
    assert "ce_lapsetopic" not in record.headers


def test_a_reload_sets_the_topic(world, small, start):
    dead = world.new_topic()
    lapsed = start()
    first = world.schedule("first", "+0", small, "", BIG)
    until(lambda: first in world.dead(), "the first burial")
    lapsed.configure(world.sections(lapsed={"instance": "lapsed0", "dead_letter_topic": dead}))
    lapsed.hup()
    lapsed.wait("daemon.reload")
    second = world.schedule("second", "+0", small, "", BIG)
    world.settle([second], dead=True)
    assert set(world.dead()) == {first, second}


def test_replayed_once_the_cause_is_mended(world, small, start):
    """A new life: the same id and payload, a new token."""
    dead = world.new_topic()
    start(dead)
    big = world.schedule("big", "+0", small, "", BIG)
    world.settle([big], dead=True)
    again = world.scripts.call("dead_replay", [PREFIX], [big])[2]
    world.ledger.wait(2)
    until(lambda: again in world.dead(), "its second death")
    widen(world, small, 1_000_000)
    last = world.scripts.call("dead_replay", [PREFIX], [again])[2]
    world.ledger.wait(3)
    world.drained()
    (record,) = by_topic(world, small)
    assert (record.id, record.value) == (last, BIG)
    assert len({big, again, last}) == 3
    assert [r.id for r in by_topic(world, dead)] == [big, again]


def bury_one_by_one(world, topic, n):
    """The ce_ids, the first to die first."""
    ids = []
    for i in range(n):
        ids.append(world.schedule(f"big-{i}", "+0", topic, "", BIG))
        until(lambda: ids[-1] in world.dead(), f"burial {i}")
    return ids


def test_beyond_the_limit_all_are_kept_and_it_warns(world, small, start):
    lapsed = start(max_dead=2)
    ids = bury_one_by_one(world, small, 5)
    assert set(world.dead()) == set(ids)
    assert [line["dead"] for line in lapsed.find("dead.many")] == [3]
    assert lapsed.find("dead.many")[0]["max_dead"] == 2
    assert not lapsed.find("dead.dropped") and lapsed.stats()["dead_dropped"] == 0


def test_beyond_the_limit_the_oldest_are_dropped_when_asked_for(world, small, start):
    lapsed = start(max_dead=2, drop_dead="yes")
    ids = bury_one_by_one(world, small, 5)
    until(lambda: set(world.dead()) == set(ids[-2:]), "the others to go")
    until(lambda: lapsed.stats()["dead_dropped"] == 3, "the count")
    line = lapsed.wait("dead.dropped")
    assert (line["dropped"], line["dead"], line["first"]) == (1, 2, ids[0].decode())
    assert not lapsed.find("dead.many")
    assert world.client.zcard(f"{PREFIX}:dead") == 2

