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
            if place in (b"", b"-"):
                assert len(set(members)) == len(members)
                return set(members), looked
    return scan


def test_nothing_is_there(scan):
    assert scan() == (set(), 0)
    assert scan(0)[0] == set()


def test_keys_with_a_ttl_are_found(shard, scan):
    for i in range(500):
        shard.client.set(f"a{i}", "v", px=60000 if i % 2 else None)
    members, looked = scan(0)
    assert members == {b"k:0:a%d" % i for i in range(1, 500, 2)} and looked == 500 + len(shard.keys())
    assert shard.keys() == {shard.name("scan")}


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


def remembered(shard):
    return {k.decode(): v.decode() for k, v in shard.client.hgetall(shard.name("scan")).items()}


@pytest.fixture
def many(shard):
    for i in range(300):
        shard.client.set(f"a{i}", "v", px=60000)
    return {b"k:0:a%d" % i for i in range(300)}


def finish(shard, answer, members):
    while answer[0]:
        answer = shard.call("scan", answer[0], 20, "", 0)
        members.update(answer[2:])


def test_how_far_it_is(shard, many):
    answer = shard.call("scan", "", 20, "", 0)
    first = remembered(shard)
    assert first["place"] == "" and first["keys"] == "300" and int(first["looked"]) >= 10
    answer = shard.call("scan", b"=" + answer[0], 20, "", 0)
    second = remembered(shard)
    assert second["place"] and second["begun"] == first["begun"] and "done" not in second
    finish(shard, answer, set())
    done = remembered(shard)
    assert done["place"] == "" and int(done["looked"]) == 301 and int(done["done"]) >= int(done["at"])


def test_a_pass_is_brought_to_its_end_by_another(shard, many):
    """From where all was registered, whatever was looked at behind that."""
    answer = shard.call("scan", "", 20, "", 0)
    members = set(answer[2:])
    answer = shard.call("scan", b"=" + answer[0], 20, "", 0)
    shard.call("scan", answer[0], 20, "", 0)
    answer = shard.call("scan", "?60000", 20, "", 0)
    members.update(answer[2:])
    finish(shard, answer, members)
    assert members == many and remembered(shard)["looked"] != "0"
    assert shard.call("scan", "?60000", 20, "", 0) == [b"-", b"0"]


def test_who_has_not_heard_all_of_it_begins_anew(shard, many):
    answer = shard.call("scan", "", 20, "", 0)
    shard.call("scan", b"=" + answer[0], 20, "", 0)
    shard.pass_by(shard.now() + 10)
    answer = shard.call("scan", "?0", 20, "", 0)
    members = set(answer[2:])
    assert remembered(shard)["place"] == ""
    finish(shard, answer, members)
    assert members == many


def test_a_pass_that_another_began_since_is_not_told_of(shard, many):
    old = shard.call("scan", "", 20, "", 0)[0]
    shard.pass_by(shard.now() + 2)
    shard.call("scan", "", 20, "", 0)
    before = remembered(shard)
    shard.call("scan", b"=" + old, 20, "", 0)
    assert remembered(shard) == before


def test_without_memory_it_goes_on(shard, many, full):
    with full:
        answer = shard.call("scan", "", 20, "", 0)
        members = set(answer[2:])
        finish(shard, answer, members)
    assert members == many
