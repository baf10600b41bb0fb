# SPDX-License-Identifier: BSD-2-Clause
"""scan: every key with a TTL that the shadow does not have is found."""

import pytest


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


@pytest.fixture
def scan(shard):
    def scan(*dbs, pattern="", count=10):
        """The members found, and how many keys were looked at."""
        place, looked, members = b"", 0, []
        while True:
            answer = shard.call("scan", place, count, pattern, *dbs)
            place = answer[0]
            looked += int(answer[1])
            members += answer[2:]
            if not place:
                assert len(set(members)) == len(members)
                return set(members), looked
    return scan


def test_nothing_is_there(scan):
    assert scan(0) == (set(), 0)
    assert scan() == (set(), 0)


def test_keys_with_a_ttl_are_found(shard, scan):
    for i in range(500):
        shard.client.set(f"a{i}", "v", px=60000 if i % 2 else None)
    members, looked = scan(0)
    assert members == {b"k:0:a%d" % i for i in range(1, 500, 2)} and looked == 500
    assert shard.keys() == set()


def test_not_those_in_the_shadow(shard, scan):
    for name in "same", "moved", "new":
        shard.client.set(name, "v", px=60000)
    shard.call("register", "k:0:same", "", "-", "-", "-", "k:0:moved", "", "-", "-", "-")
    shard.client.pexpire("moved", 90000)
    assert scan(0)[0] == {b"k:0:moved", b"k:0:new"}


def test_a_pattern(shard, scan):
    for name in "a:1", "b:1":
        shard.client.set(name, "v", px=60000)
    assert scan(0, pattern="a:*")[0] == {b"k:0:a:1"}


def test_databases(shard, scan):
    for db in 0, 2, 5:
        shard.db(db).set("k", "v", px=60000)
    assert scan(0, 2, 3)[0] == {b"k:0:k", b"k:2:k"}
    assert scan()[0] == {b"k:0:k", b"k:2:k", b"k:5:k"}
    assert scan(2, 99999)[0] == {b"k:2:k"}
    assert scan(99999)[0] == set()


def test_names_that_can_not_be_forwarded(shard, scan):
    for name in b"", b"n" * 1024, b"n" * 1025, b"\0\xff":
        shard.client.set(name, "v", px=60000)
    assert scan(0)[0] == {b"k:0:" + b"n" * 1024, b"k:0:\0\xff"}
