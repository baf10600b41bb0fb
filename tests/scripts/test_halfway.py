# SPDX-License-Identifier: BSD-2-Clause
"""
A script that Redis refuses half way: it does not undo what was done, so an
entry may then stand twice, but never nowhere.

Every command in turn is taken from the caller's rights.
"""

import re

import pytest
import redis
from harness.wire import Obituary, Record
from test_slots import batch_of, lose

COMMANDS = [
    "zadd", "zrem", "hset", "hdel", "unlink", "rename", "publish", "set", "hget", "hmget",
    "hgetall", "zscore", "zrange", "zrangebyscore", "exists", "hstrlen", "hexists", "select", "time",
    "dbsize",
]


@pytest.fixture(params=COMMANDS)
def caller(request, client, server):
    """May do everything but one command."""
    client.execute_command(
        "ACL", "SETUSER", "caller", "reset", "on", ">pw", "~*", "&*", "+@all", "-" + request.param
    )
    user = redis.Redis(unix_socket_path=str(server.socket), username="caller", password="pw")
    yield user
    user.close()
    client.execute_command("ACL", "DELUSER", "caller")


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


def attempt(shard, caller, name, *args, key=None):
    """True if it was refused."""
    try:
        shard.call(name, *args, key=key, client=caller)
    except redis.ResponseError as error:
        assert re.search("permission|ACL|can't run this command", str(error)), error
        return True
    return False


def whole(shard, member):
    """Where this entry stands with all that makes it one."""
    places = []
    if member in shard.due() and (member in shard.records() or member.startswith(b"k:")):
        places.append("due")
    for name in shard.open():
        if member in shard.batch(name.decode()):
            places.append("batch")
    for text in shard.client.hvals(shard.name("why")):
        if Obituary.unpack(text).member == member:
            places.append("dead")
    return places


def test_claim(shard, caller, lazy):
    instance = shard.join()
    for id in "ab":
        shard.schedule(id, "+0")
    shard.pass_by(shard.call("setex", "1", "v", key="k")[1])
    refused = attempt(shard, caller, "claim", *instance.fence, 1, 100, 100000, 0, 1000, "k:0:x", 0)
    for member in (b"s:a", b"s:b", b"k:0:k"):
        assert whole(shard, member)
    if refused:
        claimed = set(instance.claim(seq=1).entries) | set(instance.claim(seq=2).entries)
        assert claimed >= {b"s:a", b"s:b", b"k:0:k"}


def test_settle(shard, caller):
    instance = shard.join()
    batch_of(shard, instance, *"abcd")
    args = (1, 1, "s:a", "id", "r", 0, 0, 2, "orders", 1, 1, "s:b", 3, "", 0, 1, "s:c")
    refused = attempt(shard, caller, "settle", *instance.fence, *args)
    for member in (b"s:a", b"s:b", b"s:c"):
        assert whole(shard, member)
    if refused:
        assert instance.call("settle", *args)[0] in (b"settled", b"gone")
        assert whole(shard, b"s:a") == ["dead"]
        assert whole(shard, b"s:b") == whole(shard, b"s:c") == ["batch"]
        assert whole(shard, b"s:d") == []


def test_adopt(shard, caller):
    late, heir = shard.join("late"), shard.join("heir")
    batch_of(shard, late, "a")
    lose(shard, late)
    attempt(shard, caller, "adopt", *heir.fence, 1, 0, 1)
    assert whole(shard, b"s:a")
    for seq in (1, 2):
        shard.call("adopt", *heir.fence, seq, 0, 1)
    assert whole(shard, b"s:a")


def test_dead_replay(shard, caller):
    instance = shard.join()
    batch_of(shard, instance, "a")
    instance.settle(bury=[("s:a", "id", "r")])
    attempt(shard, caller, "dead_replay", "id")
    assert whole(shard, b"s:a")


@pytest.mark.parametrize("name,args", [
    ("schedule", ["a", "+1", "t", "", "new"]), ("reschedule", ["a", "+1"]),
])
def test_a_pending_event_stays_one(shard, caller, name, args):
    shard.schedule("a")
    attempt(shard, caller, name, *args)
    assert whole(shard, b"s:a") == ["due"]
    assert Record.unpack(shard.records()[b"s:a"]).get(b"t") == b"t"


def test_an_expired_life_stays_one(shard, caller, lazy):
    _, due, _ = shard.call("setex", "1", "old", key="k")
    shard.pass_by(due)
    birth = shard.record("k:0:k").birth
    attempt(shard, caller, "setex", "60000", "new", key="k")
    aside = b"e:%d:0:k" % birth
    records = shard.records()
    assert any(
        member in shard.due() and Record.unpack(records[member]).birth == birth
        for member in (aside, b"k:0:k") if member in records
    )
