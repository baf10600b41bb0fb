# SPDX-License-Identifier: BSD-2-Clause
"""glance: counts that all instances share, and keys that are gone."""

import pytest


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


def counts(shard):
    held = shard.client.hgetall(shard.name("sure"))
    return [int(held.get(name, 0)) for name in (b"heard", b"found", b"inferred")]


def test_counts_are_added_once(shard):
    for slot, call in ((0, 1), (0, 1), (1, 1), (0, 2), (0, 2)):
        assert shard.call("glance", slot, 7, call, 5, 3, 1, 0) == []
    assert counts(shard) == [15, 9, 3]
    shard.call("glance", 0, 8, 1, 1, 0, 0, 0)
    assert counts(shard) == [16, 9, 3]


def test_without_memory_nothing_is_counted(shard, full):
    with full:
        assert shard.call("glance", 0, 7, 1, 5, 3, 1, 0) == []
    assert counts(shard) == [0, 0, 0]
    shard.call("glance", 0, 7, 1, 5, 3, 1, 0)
    assert counts(shard) == [5, 3, 1]


def looked(shard, keys=50):
    answer = [int(x) for x in shard.call("glance", 0, 7, 1, 0, 0, 0, keys)]
    return {db: (n, gone) for db, n, gone in zip(answer[::3], answer[1::3], answer[2::3])}


def test_what_is_there_and_what_is_gone(shard):
    now = shard.now()
    assert looked(shard) == {}
    for i in range(10):
        shard.db(3).set(f"k{i}", "v", px=60000)
        for db in 3, 5:
            shard.client.zadd(shard.name("due"), {f"k:{db}:k{i}": now + 60000})
    shard.client.zadd(shard.name("due"), {"k:99999:k": now + 60000, "s:k": now + 60000,
                                          "e:1:3:k": now + 60000, "k:0:soon": now + 500})
    assert looked(shard) == {3: (10, 0), 5: (10, 10)}
    shard.db(3).flushdb()
    assert looked(shard) == {3: (10, 10), 5: (10, 10)}
    assert sum(n for n, _ in looked(shard, keys=6).values()) <= 6
