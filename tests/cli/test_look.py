# SPDX-License-Identifier: BSD-2-Clause
"""list and stats."""

import subprocess

import pytest
from conftest import PREFIX, PROGRAM

FAR = 4099725000000  # 2099-11-30T12:30:00Z


def schedule(lapse, name, due=FAR, topic="t"):
    lapse.ok("schedule", name, "--at", str(due), "--topic", topic, "--data", "xyz")


def fill(redis, n, due=FAR, step=0):
    """Entries without records: the cheapest that list must go through."""
    members = {f"k:0:{i:06}": due + i * step for i in range(n)}
    redis.zadd(f"{PREFIX}:due", members)


def test_an_empty_list(lapse):
    result = lapse.run("list")
    assert (result.code, result.out) == (0, b"")
    assert result.err == b"lapse: nothing is pending\n"
    assert lapse.lines("list") == []


def test_a_list_for_people(lapse):
    schedule(lapse, "later", FAR + 1)
    schedule(lapse, "first", topic="order-timeouts")
    lapse.ok("setex", "key", "300d", "value", "--db", "2")
    lapse.ok("setex", "bare", "301d", "value", "--no-copy")
    head, *lines = lapse.ok("list").splitlines()
    assert head.split() == ["DUE", "KIND", "BYTES", "TOPIC", "ID", "OR", "KEY"]
    rows = [line.split() for line in lines]
    assert [row[-1] for row in rows] == ["key", "bare", "first", "later"]
    assert [row[3] for row in rows] == ["key/2", "key/0", "event", "event"]
    assert [row[4] for row in rows] == ["5", "-", "3", "3"]
    assert [row[5] for row in rows] == ["-", "-", "order-timeouts", "t"]
    assert rows[2][:2] == ["2099-11-30T12:30:00.000Z", "in"]


def test_overdue_is_said(lapse, redis):
    schedule(lapse, "a")
    redis.zadd(f"{PREFIX}:due", {"s:a": redis.time()[0] * 1000 - 3600000})
    assert "  1h ago " in lapse.ok("list")


def test_a_list_for_programs(lapse):
    schedule(lapse, "a")
    lapse.ok("setex", "key", "300d", "value", "--db", "2")
    key, event = lapse.lines("list")
    assert key.pop("birth_us") > 0 and key.pop("due_ms") > 0 and key.pop("due")
    assert key == {"key": "key", "db": 2, "expired": False, "attempt": 0, "bytes": 5}
    assert event.pop("birth_us") > 0
    assert event == {
        "due": "2099-11-30T12:30:00.000Z",
        "due_ms": FAR,
        "id": "a",
        "attempt": 0,
        "topic": "t",
        "bytes": 3,
    }


def test_expired_lives_and_unreadable_ones(lapse, redis):
    redis.zadd(f"{PREFIX}:due", {"e:17:3:key": FAR, b"\xff?": FAR + 1, "s:bad": FAR + 2})
    redis.hset(f"{PREFIX}:rec", "s:bad", "nonsense")
    expired, strange, bad = lapse.lines("list")
    assert (expired["key"], expired["db"], expired["expired"]) == ("key", 3, True)
    assert strange["member_base64"] == "/z8="
    assert bad["id"] == "bad" and bad["unreadable"]
    text = lapse.ok("list")
    assert " expired/3 " in text and "%FF?" in text and "(unreadable)" in text


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("limit", [1, 99, 100, 101, 250, 1000])
def test_a_limit(lapse, redis, limit, step):
    fill(redis, 250, step=step)
    keys = [line["key"] for line in lapse.lines("list", "--limit", str(limit))]
    assert keys == [f"{i:06}" for i in range(min(limit, 250))]


def test_a_short_list_says_that_it_is(lapse, redis):
    fill(redis, 100)
    assert lapse.run("list").err == b""
    fill(redis, 250)
    result = lapse.run("list")
    assert len(result.out.splitlines()) == 101
    assert result.err == b"lapse: these are the first 100 of 250; --limit N lists more\n"


def test_due_before(lapse, redis):
    fill(redis, 10, step=1000)
    assert len(lapse.lines("list", "--due-before", str(FAR + 3000))) == 3
    assert len(lapse.lines("list", "--due-before", "2099-11-30T12:30:00Z")) == 0
    assert len(lapse.lines("list", "--due-before", "2099-11-30T12:30:00.001Z")) == 1


@pytest.mark.parametrize(
    "args, says",
    [
        (["--limit", "0"], "--limit: at least 1"),
        (["--limit", "-1"], "--limit: "),
        (["--limit", "many"], "--limit: "),
        (["--limit", "99999999999"], "--limit: "),
        (["--due-before", "noon"], "--due-before: "),
        (["a"], "surplus argument a"),
        (["--limt", "3"], "did you mean --limit?"),
    ],
)
def test_bad_input_is_refused(lapse, args, says):
    lapse.refused(2, "list", *args, says=says)


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_reader_that_has_seen_enough(lapse, redis, json):
    fill(redis, 20000)
    with subprocess.Popen(
        [str(PROGRAM), "list", "--limit", "20000", *json],
        env=lapse.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0


def test_stats_of_nothing(lapse):
    assert lapse.ok("stats").splitlines() == [
        "pending       0",
        "due now       0",
        "waiting       0",
        "on the way    0 batches, 0 events",
        "parked        0 batches, 0 events",
        "dead letters  0",
        "expired       0 heard, 0 found, 0 inferred",
        "instances     0 alive: nothing is forwarded to Kafka",
    ]
    stats = lapse.json("stats")
    assert stats["pending"] == stats["due_now"] == stats["dead"] == 0
    assert stats["next_due_ms"] is None and stats["oldest_overdue_ms"] is None
    assert stats["instances"] == stats["open"] == stats["parked"] == []


def test_stats_of_all_there_is(lapse, redis, daemon):
    for name in ("flies", "parked1", "parked2", "dies", "waits"):
        schedule(lapse, name, 0)
    redis.zadd(f"{PREFIX}:due", {"s:waits": FAR})
    members = daemon.claim()
    assert len(members) == 4
    redis.zadd(f"{PREFIX}:due", {"s:flies": FAR})
    daemon.park("a-topic", ["s:parked1", "s:parked2"], redis.time()[0] * 1000 + 90000)
    schedule(lapse, "flies", 0)
    daemon.claim()
    schedule(lapse, "overdue", 0)
    redis.zadd(f"{PREFIX}:due", {"s:overdue": redis.time()[0] * 1000 - 7200000})
    redis.zadd(f"{PREFIX}:dead", {"s:x@1.0": 1})

    stats = lapse.json("stats")
    assert stats["pending"] == 2 and stats["due_now"] == 1 and stats["dead"] == 1
    assert 7200000 <= stats["oldest_overdue_ms"] < 7300000
    assert stats["next_due_ms"] == stats["now_ms"] - stats["oldest_overdue_ms"]
    assert stats["open"] == [{"slot": 0, "batches": 1, "entries": 1}]
    (parked,) = stats["parked"]
    assert 0 < parked.pop("retry_in_ms") <= 91000
    assert parked == {"topic": "a-topic", "batches": 1, "entries": 2}
    (instance,) = stats["instances"]
    assert 0 < instance.pop("lease_left_ms") <= 60000
    assert instance == {"slot": 0, "epoch": 1, "instance": "test:1"}

    text = lapse.ok("stats")
    assert "pending       2\ndue now       1, the oldest since 2h\n" in text
    assert "on the way    1 batch, 1 event\n  slot 0      1 batch, 1 event\n" in text
    assert "parked        1 batch, 2 events\n  a-topic     1 batch, 2 events, tried " in text
    assert "dead letters  1\nexpired       0 heard, 0 found, 0 inferred\ninstances     1 alive\n  slot 0      test:1, epoch 1, " in text


def test_stats_of_scans_and_certainty(lapse, redis):
    redis.hset("lapse:{0}:sure", mapping={"heard": 5, "found": 4, "inferred": 3})
    now = lapse.json("stats")["now_ms"]
    scan = {"begun": now - 60000, "at": now, "place": "0:9", "looked": 100, "keys": 1000}
    redis.hset("lapse:{0}:scan", mapping=scan)
    text = lapse.ok("stats")
    assert "expired       5 heard, 4 found, 3 inferred\n" in text
    assert "scan          100 of about 1000 keys since 1m" in text
    stats = lapse.json("stats")
    assert (stats["heard"], stats["found"], stats["inferred"]) == (5, 4, 3)
    assert (stats["scan_looked"], stats["scan_keys"]) == (100, 1000)
    assert stats["scan_begun_ms"] == now - 60000 and stats["scan_done"] is None
    redis.hset("lapse:{0}:scan", mapping={"done": now, "place": ""})
    assert "scan          done " in lapse.ok("stats")


def test_stats_take_no_argument(lapse):
    lapse.refused(2, "stats", "all", says="surplus argument all")
