# SPDX-License-Identifier: BSD-2-Clause
"""Several databases, namespaces, servers, and the ways of an application."""

import json
import subprocess

import pytest

from harness.scripts import Scripts
from lapsed import BUILD
from limits import scaled, until
from world import PREFIX

ROUTES = {"orders": {"pattern": "order:*"}}


def lapse(world, *args, **options):
    return subprocess.run([BUILD / "lapse", "--redis", world.redis.url, *args], text=True,
                          capture_output=True, timeout=scaled(20), check=True, **options).stdout


def test_keys_in_several_databases(world):
    """The database is part of the event; the same name in two is two keys."""
    lapsed = world.lapsed(redis={"databases": "0,3"}, routes={
        "three": {"pattern": "order:*", "databases": "3", "key": "three-{db}"},
        "rest": {"pattern": "order:*", "key": "rest-{db}"}})
    lapsed.wait("redis.subscribed")
    ids = [world.setex("order:1", "100", b"0"), world.setex("order:1", "100", b"3", "db", "3")]
    ledger = world.settle(ids)
    assert [ledger.by_id(i).key for i in ids] == [b"rest-0", b"three-3"]
    assert [ledger.by_id(i).value for i in ids] == [b"0", b"3"]
    # Only heard; nobody listens to database 4.
    for db in (4, 3, 0):
        world.redis.client(db=db).set("order:heard", "v", px=50)
    assert sorted(r.key for r in world.records(4)[2:]) == [b"rest-0", b"three-3"]


def test_keys_in_all_databases(world):
    world.lapsed(redis={"databases": "*"}, routes=ROUTES).wait("redis.subscribed")
    for db in range(16):
        world.redis.client(db=db).set(f"order:{db}", "v", px=50)
    assert {r.key for r in world.records(16)} == {b"order:%d" % i for i in range(16)}


def test_own_keys_in_another_database(world):
    """The application's database stays clean."""
    world.lapsed(lapsed={"database": "5"}, routes=ROUTES)
    world.scripts = Scripts(world.client, nsdb=5)
    ids = [world.schedule("job", "+50"), world.setex("order:1", "50")]
    world.settle(ids)
    assert not world.client.keys("*")
    own = world.redis.client(db=5)
    until(lambda: not own.exists(f"{PREFIX}:due", f"{PREFIX}:rec", f"{PREFIX}:open"),
          "everything to be settled")


def test_two_namespaces_in_one_redis(world):
    """Neither sees the other's events; a key that both watch is an event in each."""
    other = world.new_topic()
    world.lapsed(routes=ROUTES).wait("redis.subscribed")
    world.lapsed(lapsed={"namespace": "second"},
                 routes={"orders": {"pattern": "order:*", "topic": other}}).wait(
                     "redis.subscribed")
    ids = [world.schedule("job")]
    ids += [world.scripts.call("schedule", ["second:{0}"], ["job", "+0", other, "", b""])[2]]
    world.ledger.wait_for(ids)
    world.client.set("order:1", "v", px=50)
    until(lambda: len(world.ledger.read()) == 4, "a record in each")
    assert sorted(r.topic for r in world.ledger.records) == sorted([world.topic, other] * 2)


def test_over_tcp(world):
    world.use_redis(tcp=True)
    lapsed = world.lapsed(redis={"url": world.redis.tcp_url}, routes=ROUTES)
    lapsed.wait("redis.subscribed")
    ids = [world.schedule("job"), world.setex("order:1", "50")]
    world.settle(ids)
    world.redis.restart()
    lapsed.mark()
    world.use_scripts()
    world.settle([*ids, world.schedule("again")])


def test_two_partitions_keep_the_order_of_a_key(world):
    """Events of one key are in one partition, in the order they were due."""
    topic = world.new_topic(partitions=2)
    world.lapsed()
    for i in range(200):
        world.schedule(f"job-{i}", f"@{1000 + i}", topic, f"key-{i % 5}", str(i).encode())
    records = world.records(200)
    for key in {r.key for r in records}:
        mine = sorted((r for r in records if r.key == key), key=lambda r: r.offset)
        assert len({r.partition for r in mine}) == 1
    assert len({r.partition for r in records}) == 2


def test_overdue_events_go_in_the_order_they_were_due(world):
    """A backlog of one topic is not shuffled by claims, batches or the producer."""
    lapsed = world.instance(lapsed={"claim_limit": "50", "max_inflight": "200"})
    ids = []
    for i in range(1000):
        ids.append(world.schedule(f"job-{i}", f"+{i}"))
    until(lambda: world.now() > int(world.client.zrange(f"{PREFIX}:due", -1, -1,
                                                         withscores=True)[0][1]), "all to be due")
    lapsed.start()
    ledger = world.settle(ids)
    assert [r.due for r in ledger.records] == sorted(r.due for r in ledger.records)


def test_the_command_line(world):
    """lapse schedule, setex, cancel, against a running daemon."""
    world.lapsed(routes=ROUTES)
    lapse(world, "schedule", "job", "--in", "50ms", "--topic", world.topic, "--key", "k",
          "--data", '{"a":1}')
    lapse(world, "setex", "order:1", "50ms", "the value")
    lapse(world, "schedule", "never", "--in", "1h", "--topic", world.topic)
    lapse(world, "cancel", "never")
    records = {r.subject: r for r in world.records(2)}
    assert json.loads(records["job"].value) == {"a": 1}
    assert records["job"].key == b"k"
    assert records["order:1"].value == b"the value"


def test_the_function_library(world):
    """From any language: FCALL, without an SDK."""
    if world.redis.version < (7, 0):
        pytest.skip("this server has no functions")
    world.lapsed(routes=ROUTES)
    lapse(world, "install")
    world.client.execute_command("FCALL", "lapse_schedule", 1, PREFIX, "job", "+50",
                                 world.topic, "42", "payload")
    world.client.execute_command("FCALL", "lapse_setex", 2, PREFIX, "order:1", "50", "copy")
    records = {r.subject: r for r in world.records(2)}
    assert (records["job"].key, records["job"].value) == (b"42", b"payload")
    assert records["order:1"].value == b"copy"


def test_a_slow_subscriber_is_cut_off(world):
    """Case 17, fact 10: Redis ends the subscription at its limit; the sweep finds the rest."""
    world.use_redis(config={"client-output-buffer-limit": "pubsub 64kb 0 0"})
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.wait("gap.closed")
    lapsed.pause()
    ids = []
    for i in range(0, 10_000, 2000):
        ids += world.setex_many([f"order:{n}" for n in range(i, i + 2000)], "1")
    until(lambda: "lapsed-subscriber" not in [c["name"] for c in world.client.client_list()],
          "Redis to cut it off")
    lapsed.mark()
    lapsed.cont()
    lapsed.wait("redis.subscribed")
    world.settle(ids, limit=30)
