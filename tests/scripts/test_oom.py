# SPDX-License-Identifier: BSD-2-Clause
"""
Redis out of memory: what only adds is refused whole; the way out of Redis -
lease, claim, settle, adoption, cancellation - goes on.
"""

import pytest
import redis
from harness.wire import ce_id
from test_slots import LEASE, lose


def refused_whole(shard, full, name, *args, key=None):
    before = shard.dump()
    with full, pytest.raises(redis.ResponseError, match="OOM|maxmemory"):
        shard.call(name, *args, key=key)
    assert shard.dump() == before


def test_schedule_is_refused_whole(shard, full):
    refused_whole(shard, full, "schedule", "a", "+1", "t", "", "p")
    refused_whole(shard, full, "schedule", "a", "+0", "t", "", "p", "nx", "1")
    shard.schedule("a")
    refused_whole(shard, full, "schedule", "a", "+1", "t", "", "new")
    refused_whole(shard, full, "reschedule", "a", "+1")


def test_setex_is_refused_whole(shard, full):
    refused_whole(shard, full, "setex", "1000", "v", key="k")
    refused_whole(shard, full, "setex", "1000", "v", "copy", "0", "db", "2", key="k")
    shard.call("setex", "60000", "v", key="k")
    refused_whole(shard, full, "setex", "1000", "new", key="k")


def test_setex_over_an_expired_life_is_refused_whole(shard, full):
    due = shard.call("setex", "1", "v", key="k")[1]
    shard.pass_by(due)
    shard.client.get("k")
    refused_whole(shard, full, "setex", "1000", "new", key="k")


def test_cancel_and_del_go_on(shard, full):
    shard.schedule("a")
    shard.call("setex", "60000", "v", key="k")
    shard.call("setex", "1", "v", key="over")
    shard.pass_by(shard.due()[b"k:0:over"])
    with full:
        assert shard.call("cancel", "a")[0] == b"cancelled"
        assert shard.call("del", key="k")[0] == b"cancelled"
        assert shard.call("del", key="over")[0] == b"cancelled"
        assert shard.call("cancel", "a") == [b"not-found"]
        assert shard.call("del", key="k") == [b"not-found"]
        assert shard.call("show", "a") == [b"state", b"not-found"]
        assert shard.call("stats")
    assert shard.due() == {} and shard.records() == {}


def test_join_renew_and_leave_go_on(daemon_shard, full):
    with full:
        first = daemon_shard.join("n1")
        second = daemon_shard.join("n2")
        assert [first.slot, second.slot] == [0, 1]
        first.call("renew", LEASE)
        second.call("leave")
        third = daemon_shard.join("n3")
        assert third.fence == [1, 2, "n3"]
        third.call("renew", LEASE)


def test_claim_and_settle_go_on(daemon_shard, full):
    instance = daemon_shard.join()
    for n in range(100):
        daemon_shard.schedule(n, "+0", "t", "", "p" * 1000)
    with full:
        assert len(instance.claim(limit=60).entries) == 60
        assert len(instance.claim(limit=60).entries) == 40
        assert instance.settle(1) == b"settled"
        assert instance.settle(2) == b"settled"
    assert daemon_shard.keys() == set()


def test_burial_and_parking_go_on(daemon_shard, full):
    instance = daemon_shard.join()
    for id in "abc":
        daemon_shard.schedule(id, "+0")
    with full:
        instance.claim()
        bury = [("s:a", "id-a", "too large")]
        assert instance.settle(bury=bury, groups=[(2, "t", 1, ["s:b"])]) == b"settled"
    assert daemon_shard.client.zcard(daemon_shard.name("dead")) == 1
    assert list(daemon_shard.batch("0:2")) == [b"s:b"]


def test_adoption_goes_on(daemon_shard, full):
    first, second = daemon_shard.join("n1"), daemon_shard.join("n2")
    daemon_shard.schedule("a", "+0")
    first.claim()
    lose(daemon_shard, first)
    with full:
        assert list(second.adopt(0, 1).entries) == [b"s:a"]
        assert second.settle() == b"settled"


def test_watched_keys_are_claimed(daemon_shard, full, lazy):
    instance = daemon_shard.join()
    for n in range(10):
        daemon_shard.call("setex", "1", "v", key=f"k{n}")
    daemon_shard.pass_by(max(daemon_shard.due().values()))
    with full:
        assert len(instance.claim("k:0:stranger", 0).entries) == 11
        assert instance.settle() == b"settled"


def test_a_heard_key_alone_is_claimed(daemon_shard, full):
    instance = daemon_shard.join()
    with full:
        assert list(instance.claim("k:0:stranger", 5).entries) == [b"k:0:stranger"]


def test_a_longer_life_is_followed_later(daemon_shard, full):
    """ZADD alone would be refused: the claim says so, and tries again."""
    instance = daemon_shard.join()
    daemon_shard.call("setex", "1", "v", key="k")
    daemon_shard.client.set("k", "v", px=60000)
    due = daemon_shard.due()
    daemon_shard.pass_by(due[b"k:0:k"])
    with full:
        assert instance.claim().entries == {}
        assert daemon_shard.due() == due
    assert instance.claim().followed == 1
    assert daemon_shard.due()[b"k:0:k"] > daemon_shard.now() + 50000


def test_a_persisted_key_is_unregistered(daemon_shard, full):
    instance = daemon_shard.join()
    daemon_shard.call("setex", "1", "v", key="k")
    daemon_shard.client.set("k", "v")
    daemon_shard.pass_by(daemon_shard.due()[b"k:0:k"])
    with full:
        assert instance.claim().entries == {}
    assert daemon_shard.due() == {} and daemon_shard.records() == {}


def test_dead_letters_can_be_dropped_and_replayed(daemon_shard, full):
    instance = daemon_shard.join()
    for id in "ab":
        daemon_shard.schedule(id, "+0")
    entries = instance.claim().entries
    names = [ce_id(m, 1) for m in entries]
    instance.settle(bury=[(m, n, "x") for m, n in zip(entries, names)])
    with full:
        assert daemon_shard.call("dead_drop", names[0]) == [b"dropped"]
        assert daemon_shard.call("dead_replay", names[1])[0] == b"replayed"


def test_forget_goes_on(daemon_shard, full):
    instance = daemon_shard.join()
    daemon_shard.schedule("a")
    birth = daemon_shard.record("s:a").birth
    with full:
        assert instance.call("forget", "s:a", birth, 0, "-") == [b"1"]
