# SPDX-License-Identifier: BSD-2-Clause
"""What users of other bridges ran into, with an application that knows nothing of lapsed.

Cases are numbered as in the reports from the field; facts as the public reports
of the facts about Redis.
"""

import re
from pathlib import Path

import pytest
from redis import ResponseError

from limits import until
from test_watching import (FLAGS, ROUTE, SCANNED, expires_at_zero, published, registered,
                           set_and_registered, settled, unregistered, watching)

__all__ = ["watching"]


def many(client, n, name="other:{}", **ttl):
    """Keys of somebody else."""
    for start in range(0, n, 10_000):
        pipe = client.pipeline(transaction=False)
        for i in range(start, min(start + 10_000, n)):
            pipe.set(name.format(i), "x", **ttl)
        pipe.execute()


def test_one_record_however_many_listen(watching):
    """Case 1: each instance hears of every key, one tells."""
    running = watching.watch()
    for i in range(50):
        watching.client.set(f"order:{i}", "v", px=400)
    settled(watching, 50)
    stats = [i.stats() for i in running]
    assert sum(s["claimed"] for s in stats) == 50
    assert all(s["hints"] >= 50 for s in stats)
    assert sum(s["registered"] for s in stats) == 50


def test_a_key_that_came_due_while_nobody_ran(watching):
    """Case 2."""
    running = watching.watch()
    set_and_registered(watching, px=1500)
    for instance in running:
        assert instance.stop() == 0
    until(lambda: not watching.client.exists("order:1"), "it to expire")
    running[0].start()
    (record,) = settled(watching, 1)
    assert record.value == b"v"
    assert record.headers["ce_lapsecertainty"] == b"inferred"


def test_redis_is_started_anew(watching):
    """Case 3: heard again by itself; what was registered before is there as well."""
    watching.use_redis(config={"notify-keyspace-events": FLAGS, "appendonly": "yes",
                               "appendfsync": "always"})
    running = watching.watch()
    set_and_registered(watching, px=3000)
    for instance in running:
        instance.mark()
    watching.redis.restart(kill=False)
    watching.use_scripts()
    for instance in running:
        instance.wait("redis.subscribed")
        instance.wait("gap.closed")
    set_and_registered(watching, key="order:2", px=500)
    records = settled(watching, 2)
    assert {r.key for r in records} == {b"order:1", b"order:2"}


def on_time(records, limit=5000):
    """Redis itself would take minutes; the limit is for a machine that is busy."""
    late = [r.time - r.due for r in records]
    assert 0 <= min(late) and max(late) < limit


def test_among_many_keys_with_a_ttl(watching):
    """Case 4, fact 1: a thousand due together, and nobody reads them."""
    many(watching.client, 100_000, ex=7200)
    running = watching.watch()
    end = watching.now() + 2500
    pipe = watching.client.pipeline(transaction=False)
    for i in range(1000):
        pipe.set(f"order:{i}", f"v{i}", pxat=end)
    pipe.execute()
    records = settled(watching, 1000)
    assert {r.key: r.value for r in records} == {
        b"order:%d" % i: b"v%d" % i for i in range(1000)}
    on_time(records)
    assert sum(i.stats()["early"] for i in running) == 0


def test_in_a_sparse_keyspace_while_it_is_saved(watching):
    """Fact 16: Redis' own cycle passes over tables that are all but empty."""
    many(watching.client, 100_000, ex=7200)
    many(watching.client, 0)
    for start in range(0, 98_000, 2000):
        watching.client.delete(*[f"other:{i}" for i in range(start, start + 2000)])
    watching.watch()
    many(watching.client, 50, "order:{}", px=1500)
    watching.client.bgsave()
    on_time(settled(watching, 50))


def test_the_value_is_there_when_the_key_is_gone(watching):
    """Case 9, fact 4: byte for byte."""
    watching.watch()
    value = bytes(range(256)) * 16
    watching.client.set("order:1", value, px=300)
    watching.client.set("order:2", b"", px=300)
    records = {r.key: r for r in settled(watching, 2)}
    assert records[b"order:1"].value == value
    assert records[b"order:2"].value == b""
    assert not any("ce_lapsevalue" in r.headers for r in records.values())


def test_a_value_that_nobody_could_read(watching):
    """Case 10: the record says so; the next one is whole again."""
    watching.watch()
    for i in range(20):
        watching.client.set(f"order:{i}", "v", px=1)
    for record in settled(watching, 20):
        assert record.value == b"v" or (
            record.value, record.headers["ce_lapsevalue"]) == (b"", b"not-copied")
    set_and_registered(watching, key="order:20", px=300)
    until(lambda: len(watching.ledger.read()) == 21, "the next one")
    assert watching.ledger.records[-1].value == b"v"


def test_the_ttl_is_taken_away(watching):
    """Case 11: also when it is by SET, or for a new one that is longer."""
    watching.watch()
    for i in range(3):
        set_and_registered(watching, key=f"order:{i}", px=1500)
    watching.client.persist("order:0")
    watching.client.set("order:1", "w")
    watching.client.pexpire("order:2", 60000)
    until(lambda: watching.client.zrange("lapse:{0}:due", 0, -1) == [b"k:0:order:2"],
          "the others to be let go")
    watching.client.delete("order:2")
    unregistered(watching)
    settled(watching, 0)


def test_deleted_in_time(watching):
    """Case 12: the deletion is the cancellation; nothing is left of it."""
    watching.watch()
    set_and_registered(watching, px=60000)
    watching.client.delete("order:1")
    unregistered(watching)
    settled(watching, 0)
    assert not watching.client.exists("lapse:{0}:rec")


def test_our_own_look_is_heard_by_all(watching):
    """Case 15: Redis expires nothing by itself, so each expiry is ours, and heard by each."""
    running = watching.watch()
    watching.client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    many(watching.client, 100, "order:{}", px=500)
    records = settled(watching, 100)
    assert {r.headers["ce_lapsecertainty"] for r in records} <= {b"found", b"heard"}
    until(lambda: all(i.stats()["heard"] >= 100 for i in running), "each to hear of each")
    settled(watching, 100)
    assert sum(i.stats()["claimed"] for i in running) == 100


def test_a_short_one_does_not_wait_for_a_long_one(watching):
    """Case 22."""
    watching.watch()
    pipe = watching.client.pipeline()
    pipe.set("order:long", "v", px=4000).set("order:short", "v", px=500).execute()
    records = settled(watching, 2)
    assert [r.key for r in records] == [b"order:short", b"order:long"]
    assert records[0].time < records[1].due
    on_time(records, 3000)


def test_two_patterns_and_two_routes_match(world):
    """Case 23: the first takes it, once."""
    world.use_redis(config={"notify-keyspace-events": "KEA"})
    other = world.new_topic()
    world.lapsed(redis={"databases": "*"}, routes={
        "orders": {**ROUTE, "pattern": ["order:*", "*:1", "or*"], "refresh": "yes"},
        "all": {**ROUTE, "pattern": "*", "topic": other}}).wait("redis.subscribed")
    world.client.set("order:1", "v", px=300)
    (record,) = settled(world, 1)
    assert record.topic == world.topic


def fields_may_expire(world):
    try:
        world.client.execute_command("HPEXPIRE", "nothing", 1, "FIELDS", 1, "a")
    except ResponseError:
        pytest.skip("fields of a hash expire since Redis 7.4 and Valkey 9")


def test_a_field_of_a_hash_expires(watching):
    """Case 25: the key stays, and expires in its own time."""
    fields_may_expire(watching)
    watching.client.config_set("notify-keyspace-events", "AE")
    watching.watch(refresh="yes")
    watching.client.hset("order:1", mapping={"a": "1", "b": "2"})
    watching.client.pexpire("order:1", 3000)
    watching.client.execute_command("HPEXPIRE", "order:1", 100, "FIELDS", 1, "a")
    until(lambda: not watching.client.hexists("order:1", "a"), "the field to expire")
    (record,) = settled(watching, 1)
    assert record.time - record.due < 3000
    assert record.key == b"order:1"


def test_the_last_field_of_a_hash_expires(watching):
    """Case 25: Redis says `del` of the key, and so it is: deleted."""
    fields_may_expire(watching)
    watching.watch()
    watching.client.hset("order:1", "a", "1")
    watching.client.pexpire("order:1", 60000)
    registered(watching, "order:1")
    watching.client.execute_command("HPEXPIRE", "order:1", 100, "FIELDS", 1, "a")
    until(lambda: not watching.client.exists("order:1"), "the field to expire")
    unregistered(watching)
    settled(watching, 0)


@pytest.mark.parametrize("event", ["hexpired", "hexpire", "expire", "overwritten", "evictedd"])
def test_what_only_looks_like_an_expiry(watching, event):
    """Case 25: whatever is published under a name like it, the key decides."""
    watching.client.config_set("notify-keyspace-events", "AE")
    watching.watch(refresh="yes")
    watching.client.hset("order:1", "a", "1")
    for _ in range(3):
        watching.client.publish(f"__keyevent@0__:{event}", "order:1")
    set_and_registered(watching, key="order:2", px=300)
    (record,) = settled(watching, 1)
    assert record.key == b"order:2"


@pytest.mark.parametrize("flags, missing", [
    ("", "Exg$e"), ("Ex", "g$e"), ("Kg$xe", "E"), ("Eg$x", "e"), ("EA", ""), ("$gexE", ""),
])
def test_what_the_registration_lacks(world, flags, missing):
    """Case 26: it names the letters; `expire` is not `expired`."""
    world.client.config_set("notify-keyspace-events", flags)
    lapsed = world.lapsed(routes={"orders": ROUTE})
    lapsed.wait("redis.subscribed")
    if missing:
        assert set(lapsed.wait("redis.notify")["missing"]) == set(missing)
    else:
        set_and_registered(world, px=300)
        settled(world, 1)
        assert not lapsed.find("redis.notify")


def test_expire_zero_unheard(world):
    """Fact 2: who only scans hears no `del`, so it may have expired: inferred."""
    world.client.set("order:1", "v", px=2000)
    lapsed = world.lapsed(routes={"orders": {**ROUTE, "register": "scan"}})
    registered(world, "order:1")
    world.client.expire("order:1", 0)
    (record,) = settled(world, 1)
    told = expires_at_zero(world)
    assert record.headers["ce_lapsecertainty"] == (b"heard" if told else b"inferred")
    assert lapsed.stats()["expired_inferred"] == (not told)


def test_set_with_a_time_in_the_past(watching):
    """Fact 3: one record if Redis tells of an expiry, none if it tells of nothing."""
    watching.watch()
    watching.client.set("order:1", "v", pxat=1)
    silent = "expired" not in published(
        watching, ("SET", "elsewhere", "v", "PXAT", 1), ("EXISTS", "elsewhere"))
    set_and_registered(watching, key="order:2", px=300)
    records = settled(watching, 1 if silent else 2)
    assert {r.key for r in records} == ({b"order:2"} if silent else {b"order:1", b"order:2"})


@pytest.mark.parametrize("event", ["expired", "set", "expire", "del", "persist"])
def test_a_channel_that_the_acl_lacks(world, event):
    """Fact 9: the log has the rule to add; until then the scan goes on."""
    world.use_redis(config={"notify-keyspace-events": FLAGS})
    world.client.execute_command(
        "ACL", "SETUSER", "lapsed", "on", ">secret", "~*", "+@all", "resetchannels", "&lapse:*",
        *[f"&__keyevent@0__:{e}" for e in (
            "expired set expire del persist rename_from rename_to move_from move_to copy_to "
            "restore evicted").split() if e != event])
    password = world.folder / "password"
    password.write_text("secret\n")
    world.client.set("order:1", "v", px=4000)
    lapsed = world.instance(redis={"username": "lapsed", "password_file": str(password)},
                            routes={"orders": SCANNED})
    lapsed.errors |= {"redis.subscribe_refused"}
    lapsed.start()
    line = lapsed.wait("redis.subscribe_refused")
    rules = line["msg"].split("ACL SETUSER lapsed ")[1].split(";")[0].split()
    assert f"&__keyevent@*__:{event}" in rules
    registered(world, "order:1")
    world.client.execute_command("ACL", "SETUSER", "lapsed", "resetchannels", *rules)
    lapsed.wait("redis.subscribed")
    set_and_registered(world, key="order:2", px=300)
    settled(world, 2)


def test_a_flood_of_foreign_events(watching):
    """Fact 10: Redis cuts a subscription that lags; it is back by itself, and nothing is lost."""
    watching.use_redis(config={"notify-keyspace-events": FLAGS,
                               "client-output-buffer-limit": "pubsub 256kb 0 0"})
    running = watching.watch(register="events,scan")
    for instance in running:
        instance.wait("scan.done")
        instance.mark()
        instance.pause()
    many(watching.client, 200, "order:{}", px=6000)
    many(watching.client, 30_000, ex=7200)
    until(lambda: "lapsed-subscriber" not in [c["name"] for c in watching.client.client_list()],
          "Redis to cut them off")
    for instance in running:
        instance.cont()
    for instance in running:
        instance.wait("redis.subscribed")
    records = settled(watching, 200)
    assert {r.value for r in records} == {b"x"}


def test_import_mode(watching):
    """Fact 17: nothing expires by itself; what is due goes all the same."""
    try:
        watching.client.config_set("import-mode", "yes")
    except ResponseError:
        pytest.skip("this server has no import-mode")
    try:
        watching.watch()
        many(watching.client, 20, "order:{}", px=800)
        records = settled(watching, 20)
        assert len({r.key for r in records}) == 20
    finally:
        watching.client.config_set("import-mode", "no")


COPIES = "type get strlen llen lrange scard smembers xlen xrange".split()
EXTRA = {"zrandmember", "scan", *COPIES}     # no other registration needs them
LEAST = {
    ("app", "copy"): ["__keyevent@*__:expired"],
    ("scan", "none"): ["__keyevent@*__:expired", "+scan"],
    ("scan", "copy"): ["__keyevent@*__:expired", "+scan", *[f"+{c}" for c in COPIES]],
    ("events", "none"): ["+zrandmember"],
    ("events", "copy"): ["+zrandmember", *[f"+{c}" for c in COPIES]],
}


def least_rules(world, wanted):
    """The rules of etc/lapsed.acl without what is for other registrations."""
    sample = (Path(__file__).resolve().parents[2] / "etc" / "lapsed.acl").read_text()
    rules = re.search(r"^user lapsed on \S+ (.*)$", sample, re.M).group(1).split()
    events = not any(w.startswith("__keyevent") for w in wanted)
    kept = [r for r in rules if r.lstrip("+") not in EXTRA
            and (events or not r.startswith("&__keyevent"))]
    if world.redis.version < (7, 0):
        kept.remove("+pexpiretime")
    return kept + [w if w.startswith("+") else f"&{w}" for w in wanted]


@pytest.mark.parametrize("register, value", LEAST)
def test_the_least_rights(world, register, value):
    """docs/watching.md: what each registration needs, and no more."""
    flags = {"app": "Ex", "scan": "", "events": "Exg$e"}[register]
    world.use_redis(config={"notify-keyspace-events": flags})
    world.client.execute_command("ACL", "SETUSER", "lapsed", "on", ">secret",
                                 *least_rules(world, LEAST[register, value]))
    password = world.folder / "password"
    password.write_text("secret\n")
    watched = [f"order:pay:{kind}" for kind in ("string", "hash", "list", "set", "zset", "stream")]
    lapsed = world.instance(
        lapsed={"rescan": "300ms"},
        redis={"username": "lapsed", "password_file": str(password)},
        routes={"orders": {"pattern": "order:pay:*", "register": register, "value": value}})
    lapsed.start()
    lapsed.wait("redis.subscribed")
    pipe = world.client.pipeline(transaction=False)
    if register == "app":
        for key in watched:
            world.setex(key, "500")
    else:
        pipe.set(watched[0], "v").hset(watched[1], "f", "v").rpush(watched[2], "v")
        pipe.sadd(watched[3], "v").zadd(watched[4], {"v": 1}).xadd(watched[5], {"f": "v"})
        for key in watched:
            pipe.pexpire(key, 1500)
        pipe.execute()
    records = settled(world, len(watched))
    assert all(bool(r.value) == (value == "copy") for r in records)
    until(lambda: world.client.hget("lapse:{0}:sure", "found")
          or world.client.hget("lapse:{0}:sure", "heard"), "the counts to be shared")
    assert not lapsed.find("script.error")
    # A scan finds all there is without any; lapsed asks for expiries all the same.
    assert [n["missing"] for n in lapsed.find("redis.notify")[:1]] == (
        ["Ex"] if register == "scan" else [])
