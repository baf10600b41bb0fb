# SPDX-License-Identifier: BSD-2-Clause
"""Which database the caller has selected changes nothing, and stays selected."""

import pytest
import redis
from harness.scripts import Scripts
from harness.wire import Batch
from shard import Shard
from test_slots import LEASE

PREFIX = b"lapse:{0}"


@pytest.fixture(params=[0, 5])
def nsdb(request):
    return request.param


@pytest.fixture
def world(shard, nsdb):
    """A shard in database `nsdb`, and a caller that has selected database 9."""
    client = shard.db(nsdb)
    return Shard(client, Scripts(client, nsdb=nsdb, fcall=shard.scripts.fcall))


@pytest.fixture
def caller(world):
    return world.db(9)


def everything(world, caller):
    """Every script once, all their ways; calls that fail included."""
    def call(name, *args, key=None):
        keys = [PREFIX] if key is None else [PREFIX, key]
        try:
            return world.scripts.call(name, keys, args, caller)
        except redis.ResponseError as error:
            return error
        finally:
            assert caller.client_info()["db"] == 9, name

    fence = (0, 1, "n")
    yield call("join", "i", "n", LEASE)
    yield call("schedule", "a", "+0", "t", "", "p")
    yield call("schedule", "a", "+0", "t", "", "p", "nx", "1")
    yield call("schedule", "b", "bad", "t", "", "p")
    yield call("schedule", "b", "+60000", "t", "", "p")
    yield call("reschedule", "b", "+70000")
    yield call("show", "b")
    yield call("show", "k", "watched", "1", "db", "16")
    yield call("setex", "1", "v", "db", "3", key="k")
    yield call("setex", "60000", "v", "db", "3", key="k")
    yield call("setex", "60000", "v", "db", "16", key="k")
    yield call("setex", "60000", "v", "db", "7", key="l")
    yield call("setex", "1", "v", "db", "7", key="m")
    yield call("del", "db", "7", key="l")
    yield call("cancel", "b")
    world.pass_by(max(world.now(), *(d for d in world.due().values() if d < world.now() + 1000)))
    yield call("claim", *fence, 1, 100, 100000, 0, 1000, "k:4:x", 0)
    yield call("claim", *fence, 1, 100, 100000, 0, 1000)
    yield call("settle", *fence, 1, 1, "s:a", "id", "r", 0, 2, "t", 1, 1, "k:4:x")
    yield call("renew", *fence, LEASE)
    yield call("forget", *fence, "s:zz", 1, 1)
    yield call("adopt", *fence, 3, 0, 2)
    yield call("stats")
    yield call("dead_replay", "id")
    yield call("dead_drop", "id")
    yield call("leave", *fence)


def test_all_scripts_use_their_own_databases(world, caller, nsdb):
    answers = list(everything(world, caller))
    refused = [a for a in answers if isinstance(a, Exception)]
    assert sorted(str(e).split()[0] for e in refused) == [
        "LAPSE_BADARG", "LAPSE_BADARG", "LAPSE_BADARG", "LAPSE_EXISTS", "LAPSE_NOTFOUND",
    ], refused
    claim = Batch.parse(answers[15])
    assert {b"s:a", b"k:7:m", b"k:4:x"} <= set(claim.entries)
    places = {}
    for db, key in world.dump():
        places.setdefault(db, set()).add(key)
    assert places.pop(nsdb) >= {PREFIX + b":due", PREFIX + b":rec", PREFIX + b":epoch"}
    assert places == {3: {b"k"}}


def test_the_namespaces_database_may_hold_watched_keys(world, nsdb, lazy):
    instance = world.join()
    due = world.call("setex", "1", "v", "db", nsdb, key="k")[1]
    world.pass_by(due)
    assert list(instance.claim().entries) == [b"k:%d:k" % nsdb]
    assert world.call("setex", "60000", "v", "db", nsdb, key="k")[0] == b"set"
    assert world.call("del", "db", nsdb, key="k")[0] == b"cancelled"


def test_namespaces_and_shards_do_not_meet(shard):
    others = [Shard(shard.client, shard.scripts, p) for p in (b"lapse2:{0}", b"other:{0}", b"a:b:{0}")]
    shard.schedule("a", "+0", "t", "", "p")
    before = {k: v for k, v in shard.dump().items()}
    for other in others:
        other.schedule("a", "+0")
        instance = other.join()
        assert list(instance.claim().entries) == [b"s:a"]
        assert instance.settle() == b"settled"
    assert {k: v for k, v in shard.dump().items() if k[1].startswith(b"lapse:{0}")} == before
