# SPDX-License-Identifier: BSD-2-Clause
"""docs/watching.md: what an untouched application does, and what comes of it."""

from collections import Counter

import pytest

from limits import until

FLAGS = "Exg$e"
ROUTE = {"pattern": "order:*", "register": "events"}


@pytest.fixture(params=[1, 3])
def watching(world, request):
    """A world in which so many instances watch; a call starts them."""
    world.use_redis(config={"notify-keyspace-events": FLAGS})

    def start(redis=None, lapsed=None, **options):
        lapsed = lapsed or {}
        running = [world.lapsed(redis=redis, lapsed=dict(lapsed), routes={"orders": {**ROUTE, **options}})
                   for _ in range(request.param)]
        for instance in running:
            instance.wait("redis.subscribed")
        return running
    world.watch = start
    return world


def due(world):
    return world.client.zrange("lapse:{0}:due", 0, -1)


def registered(world, *keys):
    members = {b"k:0:" + key.encode() for key in keys}
    until(lambda: members <= set(due(world)), f"{members} to be registered")


def unregistered(world):
    until(lambda: due(world) == [], "the shadow to be empty")


def score(world, key):
    return world.client.zscore("lapse:{0}:due", "k:0:" + key)


def settled(world, count):
    """Exactly so many records, and each with its due time in the past."""
    records = world.records(count)
    assert not world.ledger.duplicates()
    return records


def test_set_with_a_ttl(watching):
    watching.watch()
    pipe = watching.client.pipeline()
    for i in range(200):
        pipe.set(f"order:{i}", f"v{i}", px=500)
    pipe.execute()
    records = settled(watching, 200)
    assert Counter((r.key, r.value) for r in records) == {
        (b"order:%d" % i, b"v%d" % i): 1 for i in range(200)}
    assert {r.headers["ce_lapsecertainty"] for r in records} <= {b"heard", b"found"}


def test_expire_on_a_key_that_is_there(watching):
    watching.watch()
    watching.client.rpush("order:1", "a", "b")
    watching.client.pexpire("order:1", 300)
    (record,) = settled(watching, 1)
    assert (record.value, record.headers["content-type"]) == (b'["a","b"]', b"application/json")


def set_and_registered(world, key="order:1", value="v", px=600):
    world.client.set(key, value, px=px)
    registered(world, key)


def test_expire_later(watching):
    watching.watch()
    set_and_registered(watching)
    watching.client.pexpire("order:1", 1200)
    later = watching.now() + 1100
    (record,) = settled(watching, 1)
    assert record.due >= later and record.value == b"v"


def test_expire_earlier(watching):
    watching.watch()
    set_and_registered(watching, px=60000)
    watching.client.pexpire("order:1", 300)
    (record,) = settled(watching, 1)
    assert record.due < watching.now() and record.value == b"v"


def test_persist(watching):
    watching.watch()
    set_and_registered(watching, px=60000)
    watching.client.persist("order:1")
    unregistered(watching)
    settled(watching, 0)


@pytest.mark.parametrize("command", ["DEL", "UNLINK", "GETDEL"])
def test_deleted(watching, command):
    watching.watch()
    set_and_registered(watching, px=60000)
    watching.client.execute_command(command, "order:1")
    unregistered(watching)
    settled(watching, 0)


def test_set_again(watching):
    watching.watch()
    set_and_registered(watching, value="one", px=60000)
    watching.client.set("order:1", "two", px=400)
    (record,) = settled(watching, 1)
    assert record.value == b"two"


def test_set_without_a_ttl(watching):
    watching.watch()
    set_and_registered(watching, px=60000)
    watching.client.set("order:1", "w")
    unregistered(watching)
    settled(watching, 0)


def test_rename(watching):
    watching.watch()
    set_and_registered(watching, px=600)
    watching.client.rename("order:1", "order:2")
    (record,) = settled(watching, 1)
    assert (record.key, record.value) == (b"order:2", b"v")


def test_renamed_out_of_the_route(watching):
    watching.watch()
    set_and_registered(watching, px=60000)
    watching.client.rename("order:1", "elsewhere")
    unregistered(watching)
    settled(watching, 0)


def test_expired_and_set_again_at_once(watching):
    watching.watch()
    for i in range(20):
        watching.client.set(f"order:{i}", "one", px=300)
    registered(watching, *[f"order:{i}" for i in range(20)])
    # The notification goes out with the SET that finds the key overdue, or before.
    watching.client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    end = watching.now() + 300
    for i in range(20):
        until(lambda: watching.now() > end, "them to be over", pause=0.0002)
        watching.client.set(f"order:{i}", "two", px=300)
    records = settled(watching, 40)
    assert Counter((r.key, r.value) for r in records) == {
        (b"order:%d" % i, value): 1 for i in range(20) for value in (b"one", b"two")}


def published(world, *commands):
    """The events that this server tells of, of some commands."""
    with world.client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.psubscribe("__keyevent@0__:*")
        heard.get_message(timeout=5)
        for command in commands:
            world.client.execute_command(*command)
        world.client.publish("__keyevent@0__:end", "")
        told = []
        while not told or told[-1] != "end":
            message = heard.get_message(timeout=5)
            if message:
                told.append(message["channel"].decode().rsplit(":")[-1])
        return told


def expires_at_zero(world):
    """Redis says that such a key was deleted, Valkey from 8.1 on that it expired."""
    return "expired" in published(world, ("SET", "elsewhere", "v"), ("EXPIRE", "elsewhere", 0))


def test_expire_in_the_past(watching):
    """Fact 2: as Redis tells."""
    told = expires_at_zero(watching)
    watching.watch()
    set_and_registered(watching, px=60000)
    watching.client.expire("order:1", 0)
    unregistered(watching)
    records = settled(watching, 1 if told else 0)
    assert [r.headers["ce_lapsecertainty"] for r in records] == [b"heard"] * len(records)


def evict(world):
    world.client.config_set("maxmemory-policy", "volatile-random")
    world.client.config_set("maxmemory", 1)
    until(lambda: _refused_or_gone(world), "an eviction")
    world.client.config_set("maxmemory", 0)


def _refused_or_gone(world):
    try:
        world.client.set("other", "v")
    except Exception:
        pass
    return not world.client.exists("order:1")


@pytest.mark.parametrize("policy", ["emit", "drop"])
def test_evicted(watching, policy):
    running = watching.watch(evicted=policy)
    set_and_registered(watching, px=60000)
    evict(watching)
    unregistered(watching)
    records = settled(watching, 1 if policy == "emit" else 0)
    assert [r.headers["ce_type"] for r in records] == [b"io.lapsed.evicted"] * len(records)
    if policy == "drop":
        until(lambda: any(i.find("watch.evicted") for i in running), "the warning")


@pytest.mark.parametrize("policy", ["emit", "drop"])
def test_flushdb(watching, policy):
    """Nobody tells of it: there is an alarm, and each is inferred when it is due."""
    running = watching.watch(redis={"databases": "3"}, inferred=policy)
    client = watching.redis.client(db=3)
    for i in range(20):
        client.set(f"order:{i}", f"v{i}", px=9000)
    until(lambda: len(due(watching)) == 20, "all to be registered")
    client.flushdb()
    until(lambda: any(i.find("watch.gone", db=3, level="warn") for i in running), "the alarm")
    records = settled(watching, 20 if policy == "emit" else 0)
    assert Counter((r.key, r.value, r.headers["ce_lapsecertainty"]) for r in records) == {
        (b"order:%d" % i, b"v%d" % i, b"inferred"): 1 for i in range(len(records))}
    assert sum(i.stats()["expired_inferred"] for i in running) == 20
    assert sum(i.stats()["inferred_dropped"] for i in running) == 20 - len(records)


def test_flushall(watching):
    """Nothing is left, of lapsed's own keys neither; what comes then is watched again."""
    running = watching.watch()
    set_and_registered(watching, px=2000)
    watching.client.flushall()
    until(lambda: all(i.find("slot.fenced") for i in running), "them to notice", 30)
    until(lambda: all(len(i.find("slot.joined")) == 2 for i in running), "them to join anew", 30)
    watching.client.set("order:2", "v", px=500)
    (record,) = settled(watching, 1)
    assert record.key == b"order:2"


def all_have_looked(running):
    """One that hears of the SET late takes the value that there is by then."""
    for instance in running:
        until(lambda i=instance: i.stats()["hints"] >= 2, "each to hear of `set` and `expire`")
    for instance in running:
        for _ in range(3):      # longer than the last in rank gathers
            instance.stats()


@pytest.mark.parametrize("refresh,value", [("no", b"one"), ("yes", b"onetwo")])
def test_written_to_while_the_ttl_stays(watching, refresh, value):
    watching.client.config_set("notify-keyspace-events", "AE")
    running = watching.watch(refresh=refresh)
    set_and_registered(watching, value="one", px=4000)
    all_have_looked(running)
    watching.client.append("order:1", "two")
    (record,) = settled(watching, 1)
    assert record.value == value


def test_a_value_over_the_limit(watching):
    watching.watch(max_value=100)
    watching.client.set("order:1", "x" * 101, px=300)
    (record,) = settled(watching, 1)
    assert (record.value, record.headers["ce_lapsevalue"]) == (b"", b"too-large")


def test_names_of_all_kinds(watching):
    names = [b"order:a b", b"order:*?[x]", b"order:\0\n\xff", b"order:", b"order:" + b"n" * 1018]
    watching.watch()
    for name in names:
        watching.client.set(name, name, px=300)
    records = settled(watching, len(names))
    assert {r.key: r.value for r in records} == {name: name for name in names}


def test_a_name_that_is_too_long(watching):
    running = watching.watch()
    for _ in range(2):
        watching.client.set("order:" + "n" * 100000, "v", px=300)
    for instance in running:
        instance.wait("watch.name")
    set_and_registered(watching, px=300)
    settled(watching, 1)


def test_a_string_that_becomes_a_hash(watching):
    watching.watch()
    set_and_registered(watching, px=60000)
    pipe = watching.client.pipeline()
    pipe.delete("order:1").hset("order:1", "f", "v").pexpire("order:1", 300)
    pipe.execute()
    (record,) = settled(watching, 1)
    assert record.value == b'{"f":"v"}'


def test_a_very_short_life(watching):
    watching.watch()
    for i in range(50):
        watching.client.set(f"order:{i}", "v", px=1)
    records = settled(watching, 50)
    assert {r.key for r in records} == {b"order:%d" % i for i in range(50)}


def test_two_databases(world):
    world.use_redis(config={"notify-keyspace-events": FLAGS})
    for _ in range(2):
        world.lapsed(redis={"databases": "0,3"}, routes={
            "orders": {**ROUTE, "key": "{db}"}}).wait("redis.subscribed")
    for db in 0, 3, 5:
        world.redis.client(db=db).set("order:1", f"in {db}", px=300)
    records = settled(world, 2)
    assert {r.key: r.value for r in records} == {b"0": b"in 0", b"3": b"in 3"}


def test_all_databases(world):
    world.use_redis(config={"notify-keyspace-events": FLAGS})
    world.lapsed(redis={"databases": "*"}, routes={
        "orders": {**ROUTE, "key": "{db}"}}).wait("redis.subscribed")
    for db in 0, 5:
        world.redis.client(db=db).set("order:1", f"in {db}", px=300)
    records = settled(world, 2)
    assert {r.key: r.value for r in records} == {b"0": b"in 0", b"5": b"in 5"}


def test_an_instance_that_was_heard_alone_dies(world):
    """The first in rank is stopped: the second registers after the grace."""
    world.use_redis(config={"notify-keyspace-events": FLAGS})
    one, two = [world.lapsed(lapsed={"lease": "3s"}, routes={"orders": ROUTE}) for _ in range(2)]
    for instance in one, two:
        instance.wait("redis.subscribed")
    set_and_registered(world, px=400)
    settled(world, 1)
    one.pause()
    world.client.set("order:2", "v", px=2500)
    registered(world, "order:2")
    world.records(2)


SCANNED = {**ROUTE, "register": "events,scan"}


@pytest.mark.parametrize("instances", [1, 3])
@pytest.mark.parametrize("databases", ["0,3", "*"])
def test_keys_that_were_there_before(world, instances, databases):
    for i in range(300):
        world.redis.client(db=3 * (i % 2)).set(f"order:{i}", f"v{i}", px=4000)
        world.client.set(f"other:{i}", "v", px=60000)
    running = [world.lapsed(redis={"databases": databases}, routes={"orders": {**SCANNED}})
               for _ in range(instances)]
    until(lambda: len(due(world)) == 300, "all to be registered")
    until(lambda: any(i.find("scan.done") for i in running), "the end of the pass")
    records = settled(world, 300)
    assert {r.key: r.value for r in records} == {b"order:%d" % i: b"v%d" % i for i in range(300)}


def test_what_a_gap_has_hidden(world):
    """The subscription is cut, and a key is set before it is there again."""
    world.use_redis(config={"notify-keyspace-events": FLAGS})
    instance = world.lapsed(routes={"orders": SCANNED})
    instance.wait("scan.done")
    instance.mark()
    pipe = world.client.pipeline(transaction=True)
    pipe.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    pipe.set("order:1", "v", px=3000)
    pipe.execute()
    instance.wait("scan.done")
    registered(world, "order:1")
    (record,) = settled(world, 1)
    assert record.value == b"v"


def progress(world):
    return {k.decode(): v.decode() for k, v in world.client.hgetall("lapse:{0}:scan").items()}


def test_a_scan_goes_on_where_another_was(world):
    """The first is stopped in the middle; the second has heard all since, and goes on."""
    slow = {"scan_rate": 500, "lease": "3s", "rescan": "3s"}
    one, two = [world.lapsed(lapsed=slow, routes={"orders": SCANNED}) for _ in range(2)]
    for instance in one, two:
        instance.wait("redis.subscribed")
    first, second = first_and_second(one, two)
    before = world.now()
    pipe = world.client.pipeline()
    for i in range(3000):
        pipe.set(f"order:{i}", "v", px=600000)
    pipe.execute()
    until(lambda: int(progress(world)["begun"]) > before and progress(world)["place"]
          and int(progress(world)["looked"]) > 500, "a pass to be on its way")
    begun = progress(world)["begun"]
    second.mark()
    first.kill()
    second.wait("scan.begin")
    second.wait("scan.done", limit=30)
    done = progress(world)
    assert done["begun"] == begun and done["place"] == ""
    assert int(done["looked"]) < 2 * 3000
    assert sum(x["keys"] for x in second.find("scan.done")) < 3000
    until(lambda: len(due(world)) == 3000, "all to be registered")


def first_and_second(one, two):
    until(lambda: {one.stats()["rank"], two.stats()["rank"]} == {0, 1}, "them to know each other")
    return (one, two) if one.stats()["rank"] == 0 else (two, one)


def test_after_a_restart_a_scan_begins_anew(world):
    """Nobody has listened: what was set meanwhile may be anywhere."""
    pipe = world.client.pipeline()
    for i in range(1000):
        pipe.set(f"order:{i}", "v", px=600000)
    pipe.execute()
    lapsed = world.lapsed(lapsed={"scan_rate": 500}, routes={"orders": SCANNED})
    until(lambda: progress(world).get("place"), "the pass to be on its way")
    begun = progress(world)["begun"]
    lapsed.kill()
    lapsed.configure(world.sections(lapsed={"instance": "lapsed0"}, routes={"orders": SCANNED}))
    lapsed.start()
    lapsed.wait("scan.done")
    assert progress(world)["begun"] > begun
    until(lambda: len(due(world)) == 1000, "all to be registered")


def test_a_scan_every_so_often(world):
    """Nothing is heard: Redis publishes expiries alone."""
    instance = world.lapsed(lapsed={"rescan": "200ms"}, routes={
        "orders": {**ROUTE, "register": "scan"}})
    instance.wait("scan.done")
    set_and_registered(world, px=1500)
    (record,) = settled(world, 1)
    assert record.value == b"v"


def reload(world, instance, number, **routes):
    instance.configure(world.sections(lapsed={"instance": f"lapsed{number}"}, routes=routes))
    instance.mark()
    instance.hup()
    instance.wait("daemon.reload")


@pytest.mark.parametrize("instances", [1, 3])
def test_a_reload_that_brings_a_route(world, instances):
    """It subscribes anew, and looks for keys that are there already; then it is left alone."""
    world.use_redis(config={"notify-keyspace-events": FLAGS})
    running = [world.lapsed(routes={"other": {"pattern": "other:*"}}) for _ in range(instances)]
    for instance in running:
        instance.wait("redis.subscribed")
    world.client.set("order:1", "v", px=4000)
    for i, instance in enumerate(running):
        reload(world, instance, i, orders=SCANNED)
        instance.wait("redis.subscribed")
    registered(world, "order:1")
    set_and_registered(world, key="order:2", value="w", px=400)
    records = settled(world, 2)
    assert {r.key: r.value for r in records} == {b"order:1": b"v", b"order:2": b"w"}

    for i, instance in enumerate(running):
        reload(world, instance, i, other={"pattern": "other:*"})
        instance.wait("redis.subscribed")
    before = [i.stats()["registered"] for i in running]
    world.client.set("order:3", "v", px=300)
    until(lambda: not world.client.exists("order:3"), "it to expire")
    assert [i.stats()["registered"] for i in running] == before
    settled(world, 2)


def test_a_reload_that_asks_for_refreshed_values(watching):
    watching.client.config_set("notify-keyspace-events", "AE")
    running = watching.watch(refresh="no")
    for i, instance in enumerate(running):
        reload(watching, instance, i, orders={**ROUTE, "refresh": "yes"})
        instance.wait("redis.subscribed")
    set_and_registered(watching, value="one", px=1000)
    watching.client.append("order:1", "two")
    (record,) = settled(watching, 1)
    assert record.value == b"onetwo"


def test_names_that_no_route_can_take(watching):
    """The empty one, which no `*` of Redis matches, and those of lapsed's own keys."""
    watching.watch(pattern="*")
    watching.client.set("", "v", px=300)
    set_and_registered(watching, px=600)
    (record,) = settled(watching, 1)
    assert record.key == b"order:1"


def test_copied(watching):
    watching.watch()
    set_and_registered(watching, px=900)
    watching.client.copy("order:1", "order:2")
    records = settled(watching, 2)
    assert {(r.key, r.value) for r in records} == {(b"order:1", b"v"), (b"order:2", b"v")}
    assert records[0].due == records[1].due


def test_moved_to_another_database(watching):
    watching.watch(redis={"databases": "0,3"}, key="{db}")
    set_and_registered(watching, px=900)
    watching.client.move("order:1", 3)
    (record,) = settled(watching, 1)
    assert (record.key, record.value) == (b"3", b"v")


def test_restored(watching):
    watching.watch()
    watching.client.set("elsewhere", "v")
    watching.client.restore("order:1", 500, watching.client.dump("elsewhere"))
    (record,) = settled(watching, 1)
    assert (record.key, record.value) == (b"order:1", b"v")


def test_databases_are_swapped(watching):
    """Nobody tells of it: what was registered is gone, and a scan finds where it is now."""
    watching.watch(redis={"databases": "3,4"}, lapsed={"rescan": "300ms"}, key="{db}",
                   register="events,scan")
    watching.redis.client(db=3).set("order:1", "v", px=3000)
    until(lambda: due(watching) == [b"k:3:order:1"], "it to be registered")
    watching.client.swapdb(3, 4)
    until(lambda: set(due(watching)) == {b"k:3:order:1", b"k:4:order:1"}, "it to be found")
    records = settled(watching, 2)
    assert {(r.key, r.headers["ce_lapsecertainty"] == b"inferred") for r in records} == {
        (b"3", True), (b"4", False)}


@pytest.mark.parametrize("certainty", ["heard", "found", "inferred"])
def test_each_certainty_on_purpose(watching, certainty):
    """In the header, in the statistics of the log, and in those that all share."""
    running = watching.watch()
    if certainty == "heard":        # gone before it is registered
        watching.client.set("order:1", "v", px=1)
    elif certainty == "found":      # Redis does not expire it by itself
        watching.client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        set_and_registered(watching, px=500)
    else:                           # its deletion is not published
        set_and_registered(watching, px=900)
        watching.client.config_set("notify-keyspace-events", "Ex")
        watching.client.delete("order:1")
    (record,) = settled(watching, 1)
    assert record.headers["ce_lapsecertainty"].decode() == certainty
    for which in "heard", "found", "inferred":
        assert sum(i.stats()[f"expired_{which}"] for i in running) == (which == certainty)
    until(lambda: watching.client.hget("lapse:{0}:sure", certainty) == b"1", "it to be shared")
