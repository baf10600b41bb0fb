# SPDX-License-Identifier: BSD-2-Clause
"""import zset: from a set that somebody polled to events."""

import time

import pytest
from conftest import PREFIX

IMPORT = ("import", "zset", "jobs", "--topic", "t")


def due(redis):
    return {m: int(s) for m, s in redis.zrange(f"{PREFIX}:due", 0, -1, withscores=True)}


@pytest.fixture
def jobs(redis):
    """Three jobs, due in seconds since 1970."""
    then = int(time.time()) + 3600
    redis.zadd("jobs", {"a": then, "b": then + 1.5, b"\xff:\x00": then + 2})
    return then


def test_a_dry_run_changes_nothing(lapse, redis, jobs):
    out = lapse.ok(*IMPORT)
    assert "would import 3 of 3 entries, 0 would be skipped\n" in out
    assert "scores are seconds" in out and "--yes" in out
    assert due(redis) == {} and redis.zcard("jobs") == 3


def test_it_is_done_with_yes_and_can_be_made_again(lapse, redis, jobs):
    assert lapse.ok(*IMPORT, "--yes").startswith("imported 3 of 3 entries, 0 were there already")
    wanted = {b"s:a": jobs * 1000, b"s:b": jobs * 1000 + 1500, b"s:\xff:\x00": jobs * 1000 + 2000}
    assert due(redis) == wanted
    shown = lapse.json("show", "a")
    assert shown["topic"] == "t" and shown["payload"] == "a"
    redis.zadd("jobs", {"c": jobs})
    answer = lapse.json(*IMPORT, "--yes")
    assert answer["imported"] == 1 and answer["already_there"] == 3 and answer["skipped"] == 0
    assert answer["first_due_ms"] == jobs * 1000 and redis.zcard("jobs") == 4


def test_what_was_imported_can_be_removed(lapse, redis, jobs):
    lapse.ok(*IMPORT, "--yes", "--remove")
    assert not redis.exists("jobs") and len(due(redis)) == 3


def test_milliseconds(lapse, redis, jobs):
    redis.zadd("ms", {"a": jobs * 1000 + 5})
    lapse.ok("import", "zset", "ms", "--topic", "t", "--yes")
    assert due(redis) == {b"s:a": jobs * 1000 + 5}
    redis.zadd("young", {"b": 5000})
    lapse.ok("import", "zset", "young", "--topic", "t", "--unit", "ms", "--yes")
    assert due(redis)[b"s:b"] <= time.time() * 1000 + 1000      # the past is now


def test_a_job_pool(lapse, redis, jobs):
    """Buckets that hold ids, and each job's body under a key of its own."""
    redis.mset({"pool:a": b"body \x00", "pool:b": "other"})
    result = lapse.refused(3, *IMPORT, "--payload-from", "pool:{}", "--id-prefix", "old-", "--yes",
                           "--remove", says="%FF:%00: it has no payload there")
    assert b"imported 2 of 3 entries, 0 were there already, 1 were skipped" in result.out
    assert set(due(redis)) == {b"s:old-a", b"s:old-b"}
    assert redis.zrange("jobs", 0, -1) == [b"\xff:\x00"]
    assert redis.hget(f"{PREFIX}:rec", "s:old-a").endswith(b"pbody \x00")


def test_what_cannot_be_an_event_is_skipped_and_said(lapse, redis, jobs):
    redis.zadd("jobs", {"past": -1, "far": 1e15, "x" * 1025: jobs, "never": "inf"})
    result = lapse.refused(3, *IMPORT, "--yes", "--unit", "s", says="its score is no time")
    assert b"imported 3 of 7 entries, 0 were there already, 4 were skipped" in result.out
    assert b"an id has 1 to 1024 bytes" in result.err and len(due(redis)) == 3


def test_thousands(lapse, redis, jobs):
    redis.zadd("many", {f"job-{n}": jobs + n for n in range(5000)})
    lapse.ok("import", "zset", "many", "--topic", "t", "--yes")
    assert len(due(redis)) == 5000


@pytest.mark.parametrize("status, args, says", [
    (3, ("none", "--topic", "t"), "none: there is no such key"),
    (3, ("text", "--topic", "t"), "text: is a string, not a sorted set"),
    (2, ("jobs",), "--topic TOPIC is needed"),
    (2, ("jobs", "--topic", "a b"), '"a b" is no name of a Kafka topic'),
    (2, ("jobs", "--topic", "t", "--unit", "h"), "--unit must be s or ms"),
    (2, ("jobs", "--topic", "t", "--payload-from", "x"), "needs {} where the member goes"),
])
def test_refusals(lapse, redis, status, args, says):
    redis.set("text", "x")
    lapse.refused(status, "import", "zset", *args, says=says)
