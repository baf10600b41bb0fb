# SPDX-License-Identifier: BSD-2-Clause
"""fsck: tells what disagrees, and repairs it when asked to."""

import pytest
from conftest import PREFIX


@pytest.fixture
def fill(lapse, daemon):
    """Some of everything: pending, on its way, parked, watched."""
    for name in ("a", "b"):
        lapse.ok("schedule", name, "--in", "1h", "--topic", "t")
    lapse.ok("setex", "key", "1h", "value")
    for name in ("claimed", "parked"):
        lapse.ok("schedule", name, "--in", "0", "--topic", "t")
        daemon.claim()
    daemon.park("t", ["s:parked"], 60000)


def findings(lines):
    return [(x["finding"], x["name"], x["done"]) for x in lines if "finding" in x]


def test_nothing_there(lapse):
    assert lapse.ok("fsck") == "looked at 0 entries: all is well\n"
    assert lapse.json("fsck", "--repair") == {"looked_at": 0, "found": 0, "repaired": 0}


def test_all_is_well(lapse, fill):
    summary = lapse.json("fsck")
    assert summary["found"] == summary["repaired"] == 0 and summary["looked_at"] > 8
    assert lapse.ok("fsck", "--repair").endswith(": all is well\n")


def test_found_and_repaired(lapse, fill, redis):
    redis.zrem(f"{PREFIX}:due", "s:a")
    redis.hdel(f"{PREFIX}:rec", "s:b")
    result = lapse.refused(1, "fsck", says="lapse fsck --repair")
    assert result.out.decode().splitlines() == [
        "due-without-record  s:b",
        "record-without-due  s:a",
        result.out.decode().splitlines()[-1],
    ]
    assert result.out.endswith(b" entries: 2 disagree, 0 repaired\n")
    assert redis.zscore(f"{PREFIX}:due", "s:a") is None
    assert lapse.ok("fsck", "--repair").splitlines()[:2] == [
        "due-without-record  s:b: buried",
        "record-without-due  s:a: put back",
    ]
    assert lapse.ok("fsck").endswith(": all is well\n")
    assert lapse.json("show", "a")["state"] == "scheduled"
    assert lapse.lines("dead", "list")[0]["reason"] == "its record is missing"


def test_batches_that_only_a_scan_finds(lapse, fill, redis):
    redis.delete(f"{PREFIX}:open")
    lines = lapse.lines("fsck", "--repair")
    assert sorted(findings(lines)) == [
        ("batch-without-open", "0:1", "opened again"),
        ("batch-without-open", "0:3", "opened again"),
    ]
    assert redis.hlen(f"{PREFIX}:open") == 2


def test_names_of_any_bytes(lapse, redis):
    redis.hset(f"{PREFIX}:why", b"s:\xff\n@1.0", "text")
    (line, _) = lapse.run("fsck").out.splitlines()
    assert line == b"why-without-dead    s:%FF%0A@1.0"
    assert lapse.lines("fsck", "--repair")[0]["name_base64"]


def test_what_remains(lapse, redis):
    redis.hset(f"{PREFIX}:b:strange", "s:x", "envelope")
    for _ in range(2):
        result = lapse.refused(1, "fsck", "--repair", says="some can't be repaired")
        assert result.out.startswith(b"name-unreadable     strange\n")
    lines = lapse.run("fsck", "--repair", "--json").out.splitlines()
    assert lines[-1] == b'{"looked_at":1,"found":1,"repaired":0}'


def test_many(lapse, redis):
    """In steps; a foreign key with the like of our names is none of ours."""
    redis.hset(f"{PREFIX}:why", mapping={f"s:{i}@1.0": "text" * 40 for i in range(5000)})
    redis.hset("lapse:{0}x:b:1:1", "s:x", "envelope")
    redis.hset("other:{0}:b:1:1", "s:x", "envelope")
    assert lapse.lines("fsck", "--repair")[-1]["repaired"] == 5000
    assert redis.zcard(f"{PREFIX}:dead") == 5000
    assert lapse.json("fsck")["found"] == 0


def test_other_namespace_and_database(lapse, server):
    redis = server.client(db=3)
    redis.hset("nxs:{0}:b:1:1", "s:x", "envelope")
    redis.hset("ns:{0}:b:1:2", "s:x", "envelope")
    lines = lapse.run("fsck", "--json", "--namespace", "ns", "--database", "3").out.splitlines()
    assert len(lines) == 2 and b'"1:2"' in lines[0]


def test_it_is_refused(lapse, redis):
    redis.set(f"{PREFIX}:dead", "a string")
    result = lapse.refused(1, "fsck", says="WRONGTYPE")
    assert b"all is well" not in result.out


def test_usage(lapse):
    lapse.refused(2, "fsck", "surplus")
    lapse.refused(2, "fsck", "--limit", "1")
