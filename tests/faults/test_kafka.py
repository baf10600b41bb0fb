# SPDX-License-Identifier: BSD-2-Clause
"""Kafka stops, hangs, refuses, moves and forgets.

Case 42: a topic that is stuck holds up no other; 58: frozen and thawed again
and again; 59: a topic is seen as removed and comes back; 67: connections are
lost with requests in flight while leaders change; 72: claimed up to the credits.
"""

import time

import pytest
from confluent_kafka.admin import ConfigResource

from limits import until
from place import TimedLoad, Trio, some
from world import PREFIX


def stop(broker):
    broker.stop()
    return broker.start


def kill(broker):
    broker.kill()
    return broker.start


def freeze(broker):
    broker.pause()
    return broker.resume


def cut(broker):
    broker.proxy.cut()
    return lambda: None


def blackhole(broker):
    broker.proxy.hold()
    return broker.proxy.let_go


def half_open(broker):
    broker.proxy.half_open()
    return lambda: None


def slow(broker):
    broker.proxy.delay = 1.0
    return broker.proxy.heal


HARMS = {f.__name__: f for f in (stop, kill, freeze, cut, blackhole, half_open, slow)}
IMPATIENT = {"socket.timeout.ms": "1500", "message.timeout.ms": "4000"}


def cells_of_harm():
    """Each takes a start of Kafka; a kill shows the most while records are under way."""
    for harm in HARMS:
        for phase in ("start", "produce", "stop"):
            slow = harm == "kill" and phase != "produce"
            yield pytest.param(harm, phase, marks=[pytest.mark.full] if slow else [])


@pytest.mark.parametrize("harm, phase", cells_of_harm())
def test_harm(place, broker, harm, phase):
    """Under load; then everything arrives."""
    lapsed = place.instance(kafka=IMPATIENT, lapsed={"stop_timeout": "1s",
                                                     "max_inflight": "200"})
    with TimedLoad(place) as load:
        if phase != "start":
            lapsed.start()
            some(load, 50)
        heal = HARMS[harm](broker)
        if phase == "start":
            lapsed.start()
        some(load, 400)
        if phase == "stop":
            assert lapsed.stop() == 0
            lapsed.start()
        assert lapsed.stats()["inflight_events"] <= 200
        assert lapsed.memory_kb() < 96 * 1024
        heal()
        some(load, 50)
    place.judge(load, limit=60)


@pytest.mark.parametrize("end", ["request", "reply"])
def test_lost(place, end):
    """A lot has its effect and its answer is lost, or it has none: sent once more."""
    lapsed = place.lapsed(kafka=IMPATIENT)
    name = "produce.request" if end == "request" else "produce"
    with TimedLoad(place) as load:
        some(load, 50)
        place.bus.lose(name, 10)
        until(lambda: place.bus.lost.count(name) >= 10, f"{name} to be lost", 30)
        some(load, 50)
    place.judge(load)
    assert lapsed.alive()
    place.bus.lost.clear()


@pytest.mark.parametrize("kafka, frozen, thawed", [
    (IMPATIENT, 2.5, 0.5), pytest.param({}, 45, 20, marks=pytest.mark.full)],
    ids=["briefly", "for_long"])
def test_frozen_again_and_again(place, broker, kafka, frozen, thawed):
    """Case 58: no gap, whatever librdkafka made of it, with short time-outs or its own."""
    place.lapsed(kafka=kafka)
    with TimedLoad(place) as load:
        for _ in range(3):
            stored = len(load.stored)
            broker.pause()
            passes(frozen)
            broker.resume()
            assert len(load.stored) > stored
            passes(thawed)
    place.judge(load, limit=60)


def passes(seconds):
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() > end, f"{seconds} s to pass", seconds + 15)


def set_replicas(place, n):
    """How many replicas a record needs, of which there is one."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, place.topic, set_config={
        "message.timestamp.type": "LogAppendTime", "min.insync.replicas": str(n)})
    admin = place.kafka.admin()
    for future in admin.alter_configs([resource]).values():
        future.result()


def test_not_enough_replicas(place):
    """It passes: nothing is buried, other topics flow meanwhile (case 42)."""
    lapsed = place.lapsed(kafka=IMPATIENT)
    other = place.new_topic()
    with TimedLoad(place) as load:
        some(load, 50)
        set_replicas(place, 2)
        some(load, 100)
        ids = place.schedule_many([f"job-{i}" for i in range(50)], topic=other)
        place.ledger.wait_for(ids)
        set_replicas(place, 1)
        some(load, 50)
    load.stored += ids
    place.judge(load, limit=60)
    assert not place.client.exists(f"{PREFIX}:dead") and lapsed.alive()


def test_topic_deleted(place):
    """Case 59: parked while there is none, delivered once it exists again."""
    lapsed = place.lapsed(kafka=IMPATIENT)
    name = "again-" + place.topic
    place.kafka.create_topic(name)
    place.schedule_many([f"before-{i}" for i in range(50)], topic=name)
    place.drained()
    with TimedLoad(place) as load:
        some(load, 50)
        place.kafka.delete_topic(name)
        ids = place.schedule_many([f"after-{i}" for i in range(50)], topic=name)
        lapsed.wait("kafka.parked", topic=name, limit=30)
        some(load, 50)
        place.new_topic(name)
    load.stored += ids
    place.judge(load, limit=60)
    assert lapsed.wait("kafka.unparked", topic=name)


@pytest.fixture(scope="module")
def trio():
    with Trio() as brokers:
        yield brokers


@pytest.mark.parametrize("how", ["freeze", pytest.param("kill", marks=pytest.mark.full), "stop"])
def test_leader_moved(place, trio, how):
    """
    Case 67: three brokers; the leader of the topic falls, with requests in flight,
    and comes back, or (stop) does not, since a start of Kafka takes long.
    """
    trio.mend()
    topic = trio.new_topic()
    place.use_cluster(trio, topic)
    lapsed = place.lapsed(kafka={**IMPATIENT, "bootstrap.servers": trio.bootstrap})
    with TimedLoad(place) as load:
        some(load, 100)
        leader = trio.leader(topic)
        heal = HARMS[how](leader)
        until(lambda: trio.leader(topic) not in (None, leader), "another leader", 60)
        some(load, 200)
        if how != "stop":
            heal()
        some(load, 100)
    place.judge(load, limit=60)
    assert lapsed.alive()
