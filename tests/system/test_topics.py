# SPDX-License-Identifier: BSD-2-Clause
"""Topics that refuse, and records that nobody can read."""

import uuid

import pytest

from limits import until
from world import PREFIX

ROUTES = {"orders": {"pattern": "order:*"}}
# The walk would find what is broken before it is due (test_repair.py).
NO_SWEEP = {"sweep_interval": "1h"}


def missing_topic():
    return f"t-{uuid.uuid4().hex[:12]}"


def test_a_missing_topic_is_parked_and_others_flow(world):
    """Case 42. Nothing waits in the process; once the topic is there, all goes by itself."""
    missing = missing_topic()
    lapsed = world.lapsed()
    parked = world.schedule_many([f"late-{i}" for i in range(700)], topic=missing)
    line = lapsed.wait("kafka.parked")
    assert line["topic"] == missing
    assert line["retry_ms"] >= 100
    flowing = world.schedule_many([f"job-{i}" for i in range(700)])
    world.ledger.wait(700)
    until(lambda: lapsed.stats()["parked_topics"] == 1
          and lapsed.stats()["inflight_events"] == 0, "no credit to be held")
    assert world.show("late-0")[b"state"] == b"parked"
    assert world.cancel("late-0") == [b"in-flight"]
    world.ledger.finish()
    world.ledger.check(flowing)

    world.new_topic(missing)
    lapsed.wait("kafka.unparked", topic=missing)
    world.settle(flowing + parked, limit=30)


def test_what_is_parked_outlives_the_daemon(world):
    """A new instance tries it again; ids stay."""
    missing = missing_topic()
    lapsed = world.lapsed()
    ids = world.schedule_many([f"late-{i}" for i in range(50)], topic=missing)
    lapsed.wait("kafka.parked")
    until(lambda: lapsed.stats()["inflight_events"] == 0, "all to be parked")
    assert lapsed.stop() == 0
    world.new_topic(missing)
    lapsed.start()
    world.settle(ids)


def test_what_a_killed_daemon_had_parked_is_adopted(world):
    missing = missing_topic()
    first, second = world.lapsed(), world.lapsed()
    ids = world.schedule_many([f"late-{i}" for i in range(50)], topic=missing)
    until(lambda: first.find("kafka.parked") or second.find("kafka.parked"), "parking")
    until(lambda: first.stats()["inflight_events"] + second.stats()["inflight_events"] == 0,
          "all to be parked")
    (first if first.find("kafka.parked") else second).kill()
    world.new_topic(missing)
    world.settle(ids)


def test_a_topic_of_a_route_may_be_missing(world):
    missing = missing_topic()
    lapsed = world.lapsed(routes={"a": {"pattern": "a:*", "topic": missing},
                                  "b": {"pattern": "b:*"}})
    ids = world.setex_many(["a:1", "b:1"], "1")
    lapsed.wait("kafka.parked", topic=missing)
    world.ledger.wait(1)
    world.new_topic(missing)
    world.settle(ids)


def test_topics_made_of_keys(world):
    """What gives no topic that is allowed waits; a reload that allows it lets it go."""
    one, two = world.new_topic(), world.new_topic()
    route = {"pattern": "*:*", "topic": "{1}", "key": "{2}/{db}",
             "type": "com.example.{1}", "subject": "{2}"}
    lapsed = world.lapsed(lapsed={"park_max": "200ms"}, routes={"kinds": {**route, "topics": one}})
    world.setex_many([f"{topic}:{i}" for topic in (one, two) for i in range(20)]
                     + ["no topic:1", "a\0b:1"], "1")
    lapsed.wait("kafka.parked", topic="route:kinds")
    world.ledger.wait(20)
    stats = until(lambda: (s := lapsed.stats())["inflight_events"] == 0 and s, "all to be parked")
    assert (stats["no_topic"], stats["buried"], stats["parked_topics"]) == (22, 0, 1)
    assert world.show(f"{two}:1", "watched", "1")[b"state"] == b"parked"

    lapsed.configure(world.sections(lapsed={"park_max": "200ms", "instance": "lapsed0"}, routes={
        "kinds": {**route, "topics": [one, two]}}))
    lapsed.hup()
    world.ledger.wait(40)
    records = {(r.topic, r.key): r.headers for r in world.ledger.read()}
    assert set(records) == {(t, b"%d/0" % i) for t in (one, two) for i in range(20)}
    headers = records[two, b"7/0"]
    assert (headers["ce_type"], headers["ce_subject"]) == (f"com.example.{two}".encode(), b"7")

    lapsed.configure(world.sections(lapsed={"park_max": "200ms", "instance": "lapsed0"}, routes={
        "kinds": {**route, "topic": one}}))
    lapsed.hup()
    world.ledger.wait(42)
    world.drained()


def test_one_oversize_event_among_small_ones(world):
    """Case 68: only that one is a dead letter."""
    small_topic = world.new_topic(max_message_bytes=10_000)
    lapsed = world.lapsed()
    lapsed.errors.add("event.buried")
    soon = "+300"
    ids = world.schedule_many([f"a-{i}" for i in range(100)], soon, topic=small_topic)
    big = world.schedule("big", soon, small_topic, "", b"x" * 50_000)
    ids += world.schedule_many([f"b-{i}" for i in range(100)], soon, topic=small_topic)
    world.settle(ids, dead=True)
    assert list(world.dead()) == [big]
    assert lapsed.wait("event.buried")["member"] == "s:big"
    assert lapsed.stats()["buried"] == 1
    assert world.show("big")[b"state"] == b"dead"


@pytest.mark.parametrize("garbage", [
    b"garbage", b"", b"\x02" + b"\x00" * 30, b"\x01" + b"\x00" * 10 + b"t\xff\xffx",
    b"\x01" + b"\x00" * 10 + b"z\x00\x00", b"\x01" + b"\x00" * 10,
], ids=["text", "empty", "version", "cut", "unknown-field", "no-topic"])
def test_a_record_that_cannot_be_read_is_buried(world, garbage):
    """With a reason; what comes behind it flows."""
    lapsed = world.lapsed(lapsed=NO_SWEEP)
    lapsed.errors.add("event.buried")
    before = world.schedule("a-before", "+400")
    world.schedule("b-bad", "+400")
    after = world.schedule("c-after", "+400")
    world.client.hset(f"{PREFIX}:rec", "s:b-bad", garbage)
    world.settle([before, after], dead=True)
    assert lapsed.wait("event.buried")["member"] == "s:b-bad"
    (reason,) = world.dead().values()
    assert reason


def test_a_missing_record_is_buried(world):
    lapsed = world.lapsed(lapsed=NO_SWEEP)
    lapsed.errors.add("event.buried")
    world.schedule("bad", "+400")
    after = world.schedule("good", "+400")
    world.client.hdel(f"{PREFIX}:rec", "s:bad")
    world.settle([after], dead=True)
    assert lapsed.wait("event.buried")["member"] == "s:bad"
    assert len(world.dead()) == 1


@pytest.mark.parametrize("member", [
    b"", b"x", b"s:", b"k:", b"k:0:", b"k:0", b"k:abc:key", b"k:-1:key",
    b"k:99999999999999999999:key", b"e:", b"e:1:0:", b"e:x:0:key", b"s:" + b"x" * 1025, b"\xff",
])
def test_a_member_that_is_none_is_buried(world, member):
    """It never blocks what is behind it."""
    lapsed = world.lapsed(routes={"all": {"pattern": "*"}})
    lapsed.errors.add("event.buried")
    world.client.zadd(f"{PREFIX}:due", {member: 1})
    ids = [world.schedule("good")]
    world.settle(ids, dead=True)
    assert len(world.dead()) == 1


def test_a_key_of_a_database_that_is_no_more(world):
    """The server has fewer than it had: the key is gone, which is what we tell."""
    world.lapsed(routes=ROUTES)
    world.client.zadd(f"{PREFIX}:due", {b"k:999:order:1": 1})
    good = world.schedule("good")
    keys = {r.key: r for r in world.records(2)}
    assert keys[b"order:1"].headers["ce_lapsecertainty"] == b"inferred"
    assert keys[None].id == good


@pytest.mark.parametrize("score", ["-inf", "-1", "1.5", "inf", "1e300"])
def test_a_due_time_that_is_none_blocks_nothing(world, score):
    world.lapsed(routes=ROUTES)
    ids = [world.schedule("odd", "+60000"), world.schedule("good")]
    world.client.zadd(f"{PREFIX}:due", {b"s:odd": float(score)})
    if score in ("inf", "1e300"):
        world.ledger.wait(1)
        assert world.cancel("odd")[0] == b"cancelled"
        ids = ids[1:]
    world.settle(ids)


def test_a_key_that_no_route_matches_any_more_is_buried(world):
    """Registered once, and the route is gone: kept, with the reason."""
    ce_id = world.setex("gone:1", "1")
    good = world.setex("order:1", "1")
    lapsed = world.instance(routes=ROUTES)
    lapsed.errors.add("event.buried")
    lapsed.start()
    world.settle([good], dead=True)
    assert list(world.dead()) == [ce_id]
    assert "route" in world.dead()[ce_id]
