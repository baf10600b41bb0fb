# SPDX-License-Identifier: BSD-2-Clause
"""What Redis may refuse: users, channels, commands, roles, notifications."""

import pytest

from harness.fakeserver import FakeServer
from limits import until
from load import Load
from world import PREFIX

ROUTES = {"load": {"pattern": "load-*"}, "orders": {"pattern": "order:*"}}
PASSWORD = "secret"
CHANNELS = [f"&{PREFIX}:wake", "&__keyevent@*__:expired"]


def user(world, *rules):
    world.client.execute_command("ACL", "SETUSER", "lapsed", *rules)


def options(world, password=PASSWORD, **more):
    """Of an instance that is the user `lapsed`."""
    path = world.folder / "password"
    path.write_text(password)
    path.chmod(0o600)
    return {"redis": {"username": "lapsed", "password_file": str(path), **more}}


@pytest.mark.parametrize("databases, missing", [
    ("*", "&__keyevent@*__:expired"), ("0", f"&{PREFIX}:wake"),
])
def test_the_acl_refuses_the_subscription(world, databases, missing):
    """Case 8, fact 9: sweeps go on, and the log says what to grant; then it is heard."""
    user(world, "on", f">{PASSWORD}", "~*", "+@all", "resetchannels",
         *[c for c in CHANNELS if c != missing])
    lapsed = world.instance(routes=ROUTES, **options(world, databases=databases))
    lapsed.errors |= {"redis.subscribe_refused"}
    lapsed.start()
    line = lapsed.wait("redis.subscribe_refused")
    assert "ACL SETUSER lapsed" in line["msg"]
    assert missing in line["msg"]
    ids = [world.schedule("job"), world.setex("order:1", "100")]
    world.settle(ids)
    user(world, missing)
    lapsed.wait("redis.subscribed")
    assert lapsed.wait("gap.closed")
    world.client.set("order:heard", "v", px=50)
    until(lambda: b"order:heard" in [r.key for r in world.ledger.read()], "what is heard")


def test_without_any_channel_it_stops_cleanly(world):
    """PUBLISH is refused too: the slot is given back all the same."""
    user(world, "on", f">{PASSWORD}", "~*", "+@all", "resetchannels")
    lapsed = world.instance(routes=ROUTES, **options(world))
    lapsed.errors |= {"redis.subscribe_refused", "script.error"}
    lapsed.start()
    world.settle([world.schedule("job")])
    assert lapsed.stop(limit=5) == 0
    assert lapsed.find("slot.left")
    assert world.client.hlen(f"{PREFIX}:slots") == 0


def test_a_wrong_password(world):
    """It says so, tries again slowly, and gets in once it is right."""
    user(world, "on", ">another", "~*", "+@all", "&*")
    lapsed = world.instance(routes=ROUTES, **options(world))
    lapsed.errors.add("redis.auth")
    lapsed.start(joined=False)
    line = lapsed.wait("redis.auth")
    assert line["retry_ms"] >= 1000
    assert PASSWORD not in lapsed.log.read_text()
    ids = [world.schedule("job")]
    user(world, f">{PASSWORD}")
    lapsed.wait("slot.joined")
    world.settle(ids)


def test_no_password_where_one_is_needed(world):
    world.client.config_set("requirepass", PASSWORD)
    lapsed = world.instance(routes=ROUTES)
    lapsed.errors.add("redis.auth")
    lapsed.start(joined=False)
    lapsed.wait("redis.auth")
    world.client.config_set("requirepass", "")
    lapsed.wait("slot.joined")


def test_scripts_are_not_allowed(world):
    """NOPERM at the start: said loudly, tried again, joined once granted."""
    user(world, "on", f">{PASSWORD}", "~*", "+@all", "&*", "-evalsha", "-script")
    lapsed = world.instance(routes=ROUTES, **options(world))
    lapsed.errors |= {"redis.auth", "script.error", "redis.refused"}
    lapsed.start(joined=False)
    until(lambda: [x for x in lapsed.lines() if "NOPERM" in str(x.get("msg"))], "NOPERM in the log")
    user(world, "+evalsha", "+script")
    lapsed.wait("slot.joined")
    world.settle([world.schedule("job")])


@pytest.mark.parametrize("denied", ["keys", "zadd", "zrem", "hset", "hdel", "unlink", "rename",
                                    "exists", "hgetall", "publish"])
def test_a_right_is_missing_for_a_while(world, denied):
    """A script that is refused half way has lost nothing, whatever it was about to do."""
    rules = ("resetkeys",), ("~*",)
    if denied != "keys":
        rules = (f"-{denied}",), (f"+{denied}",)
    user(world, "on", f">{PASSWORD}", "~*", "+@all", "&*")
    quick = {"lease": "1s", "grace": "5ms"}
    pair = [world.instance(routes=ROUTES, lapsed=quick, **options(world)) for _ in range(2)]
    for instance in pair:
        instance.errors |= {"script.error", "redis.auth", "redis.refused", "event.buried"}
        instance.start()
    with Load(world) as load:
        until(lambda: len(load.stored) > 100, "some load")
        world.schedule("bad")
        user(world, *rules[0])
        world.client.hset(f"{PREFIX}:rec", "s:late-bad", b"garbage")
        world.client.zadd(f"{PREFIX}:due", {"s:late-bad": world.now() + 200})
        load.unsure |= {"bad"}
        wanted = len(load.stored) + 100
        until(lambda: len(load.stored) > wanted, "some load")
        pair[0].kill()
        pair[0].start(joined=False)
        wanted = len(load.stored) + 100
        until(lambda: len(load.stored) > wanted, "some load")
        user(world, *rules[1])
    load.settle(dead=True)
    (reason,) = world.dead().values()
    assert reason
    assert world.client.zcard(f"{PREFIX}:dead") == 1


@pytest.mark.parametrize("flags, missing", [
    ("", "Ex"), ("x", "E"), ("E", "x"), ("Kx", "E"), ("Elg", "x"),
])
def test_notifications_are_off(world, flags, missing):
    """Case 26: it says what is missing, with the command; registered keys are on time."""
    world.client.config_set("notify-keyspace-events", flags)
    lapsed = world.lapsed(routes=ROUTES)
    line = lapsed.wait("redis.notify")
    assert line["missing"] == missing
    assert "CONFIG SET notify-keyspace-events" in line["msg"]
    world.settle([world.setex("order:1", "100"), world.schedule("job")])


@pytest.mark.parametrize("flags", ["Ex", "xE", "KEA", "AKE", "EA", "KExlg"])
def test_notifications_are_on(world, flags):
    """Case 26: a set of flags, in whatever order."""
    world.client.config_set("notify-keyspace-events", flags)
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.wait("redis.subscribed")
    world.client.set("order:1", "v", px=50)
    world.records(1)
    assert not lapsed.find("redis.notify")


def test_without_routes_notifications_do_not_matter(world):
    world.client.config_set("notify-keyspace-events", "")
    lapsed = world.lapsed()
    world.settle([world.schedule("job")])
    assert not lapsed.find("redis.notify")


def test_config_and_info_are_not_allowed(world):
    """Case 7: what can't be asked is not known, and no reason to fail."""
    user(world, "on", f">{PASSWORD}", "~*", "+@all", "&*", "-config", "-info", "-role", "-client")
    world.instance(routes=ROUTES, **options(world)).start()
    world.settle([world.schedule("job"), world.setex("order:1", "50")])


def test_a_replica_is_refused(world):
    """Fact 5: and served from the moment on that it is one no more."""
    world.client.replicaof("127.0.0.1", "1")
    lapsed = world.instance(routes=ROUTES)
    lapsed.start(joined=False)
    lapsed.wait("redis.refused", connection="connection")
    assert any("replica" in x["msg"] for x in lapsed.find("redis.refused"))
    assert lapsed.alive()
    world.client.replicaof("NO", "ONE")
    lapsed.wait("slot.joined")
    world.settle([world.schedule("job")])


def test_a_master_becomes_a_replica_and_back(world):
    """Fact 7: a failover under our feet: READONLY is waited out, nothing is lost."""
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.errors.add("script.error")
    ids = world.schedule_many([f"job-{i}" for i in range(50)], "+500")
    world.client.replicaof("127.0.0.1", "1")
    until(lambda: lapsed.find("script.error") or lapsed.find("redis.lost"), "it to be noticed")
    world.client.replicaof("NO", "ONE")
    world.settle(ids)


def test_a_redis_that_is_too_old_is_refused(world):
    info = b"redis_version:6.0.16\r\nredis_mode:standalone\r\n"
    with FakeServer({"INFO": b"$%d\r\n%s\r\n" % (len(info), info)}) as old:
        lapsed = world.instance(routes=ROUTES, redis={"url": old.url})
        lapsed.errors.add("redis.refused")
        lapsed.start(joined=False)
        assert lapsed.ended() == 1
    assert "older than 6.2" in lapsed.find("redis.refused")[0]["msg"]


def test_cluster_mode_is_refused(world):
    """Case 6, fact 5: never a silent part of the events."""
    world.use_redis(config={"cluster-enabled": "yes"})
    lapsed = world.instance(routes=ROUTES)
    lapsed.errors.add("redis.refused")
    lapsed.start(joined=False)
    assert lapsed.ended() == 1
    assert "cluster mode" in lapsed.find("redis.refused")[0]["msg"]
