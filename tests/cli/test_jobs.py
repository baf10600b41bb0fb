# SPDX-License-Identifier: BSD-2-Clause
"""finish, touch, fail, purge; schedule --ttr; schedule and cancel --file."""

import json
import os
import pty
import subprocess

import pytest
from conftest import PREFIX, PROGRAM, TIME, Daemon

TOPIC = ("--topic", "jobs")


@pytest.fixture
def daemon(redis):
    return Daemon(redis)


@pytest.fixture
def deliver(lapse, redis, daemon):
    """Schedules a job, as the daemon delivers it; gives its ce_id."""
    def deliver_one(id="job", *options):
        answer = lapse.json("schedule", id, "--in", "0", *TOPIC, "--ttr", "30s", *options)
        name = answer["ce_id"]
        (member,) = daemon.claim()
        birth, attempt = name.rsplit("@", 1)[1].split(".")
        daemon.call("settle", *daemon.fence, daemon.seq, 0, 0, 1, member, birth, attempt)
        assert redis.zscore(f"{PREFIX}:wait", member)
        return name
    return deliver_one


def test_finish(lapse, redis, deliver):
    name = deliver()
    assert lapse.ok("finish", name) == f"finished {name}\n"
    assert not redis.exists(f"{PREFIX}:wait", f"{PREFIX}:rec")
    lapse.refused(3, "finish", name, says="has ended")


def test_finish_in_json(lapse, deliver):
    name = deliver()
    assert lapse.json("finish", name) == {"result": "finished", "ce_id": name, "state": "waiting"}
    result = lapse.run("finish", name, "--json")
    assert result.code == 3 and json.loads(result.out) == {"result": "stale", "ce_id": name}


def test_finish_many_goes_on_behind_a_stale_one(lapse, deliver):
    one, two = deliver("one"), deliver("two")
    result = lapse.refused(3, "finish", "s:none@1.0", one, two)
    assert result.out.decode().splitlines() == [f"finished {one}", f"finished {two}"]


@pytest.mark.parametrize("verb", ["finish", "touch", "fail"])
@pytest.mark.parametrize("name", ["job", "s:job@1", "s:job@x.0", "k:0:a@1.0"])
def test_a_malformed_ce_id_is_wrong_usage(lapse, verb, name):
    lapse.refused(2, verb, name)


def test_touch(lapse, redis, deliver):
    name = deliver()
    out = lapse.json("touch", name, "--for", "1h")
    assert out["result"] == "touched" and out["deadline_ms"] == redis.zscore(f"{PREFIX}:wait", "s:job")
    assert lapse.ok("touch", name).startswith(f"touched {name}, until 20")
    lapse.refused(2, "touch", name, "--for", "soon")


def test_fail_and_dead(lapse, redis, deliver):
    name = deliver("job", "--attempts", "2", "--backoff", "1s:2:1m")
    out = lapse.json("fail", name, "--reason", "no answer", "--in", "10m")
    assert out["result"] == "retry" and out["due_ms"] == redis.zscore(f"{PREFIX}:due", "s:job")
    assert out["next_ce_id"] == name[:-1] + "1"
    shown = lapse.json("show", "job")
    assert shown["state"] == "scheduled" and shown["ttr_ms"] == 30000 and shown["attempts"] == 2
    assert shown["backoff"] == "1000:2:60000"
    (attempt,) = shown["history"]
    assert attempt["attempt"] == 1 and attempt["end"] == "failed"
    assert attempt["reason"] == "no answer"
    text = lapse.ok("show", "job")
    assert "time to run   30s\n" in text and "failed at 20" in text and ": no answer\n" in text


def test_show_what_waits(lapse, deliver):
    deliver()
    shown = lapse.json("show", "job")
    assert shown["state"] == "waiting" and shown["deadline_ms"] > 0 and shown["history"] == []
    stats = lapse.json("stats")
    assert stats["waiting"] == 1 and stats["late"] == 0
    assert "waiting       1, the first until in 29s" in lapse.ok("stats")


def test_what_died_is_found_and_not_cancelled(lapse, redis, deliver, daemon):
    name = deliver("job", "--attempts", "1")
    assert lapse.ok("fail", name, "--reason", "no answer").startswith(f"dead {name}")
    lapse.refused(3, "reschedule", "job", "--in", "1h", says="about to die")
    daemon.claim()
    daemon.bury([(b"s:job", name)], "attempts used up")
    redis.zadd(f"{PREFIX}:dead", {f"s:x{n}@1.0": 9e12 + n for n in range(2000)})
    shown = lapse.json("show", "job")
    assert shown["state"] == "dead" and shown["reason"] == "attempts used up"
    assert shown["bytes"] == 0 and shown["record_bytes"] > 40
    assert "record bytes" in lapse.ok("show", "job")
    lapse.refused(3, "show", "other", says="not found")
    lapse.refused(3, "cancel", "job", says="not found")
    redis.zremrangebyrank(f"{PREFIX}:dead", 1, -1)
    lapse.refused(3, "cancel", "job", says="lapse dead drop")
    result = lapse.run("cancel", "job", "--json")
    assert json.loads(result.out) == {"result": "dead", "id": "job"}
    result = lapse.run("cancel", "--file", "-", stdin=b"job\n")
    assert result.code == 3 and b"line 1: dead" in result.err


def test_cancel_and_reschedule_what_waits(lapse, deliver):
    deliver()
    lapse.refused(3, "reschedule", "job", "--in", "1h", says="a job that was delivered")
    assert lapse.ok("cancel", "job") == "cancelled job, which was waiting\n"
    lapse.refused(3, "show", "job", says="not found")


@pytest.mark.parametrize("options,says", [
    (["--attempts", "3"], "need --ttr"), (["--backoff", "1s:2:1m"], "need --ttr"),
    (["--ttr", "x"], "x"), (["--ttr", "1s", "--backoff", "1s:2"], "FIRST:FACTOR:MOST"),
    (["--ttr", "1s", "--backoff", "x:2:1m"], "x"),
])
def test_terms_that_are_wrong_usage(lapse, options, says):
    lapse.refused(2, "schedule", "a", "--in", "0", *TOPIC, *options, says=says)


def test_if_due_before(lapse, redis):
    lapse.ok("schedule", "a", "--in", "1h", *TOPIC)
    lapse.refused(3, "schedule", "a", "--in", "2h", *TOPIC, "--if-due-before", "4000000000000",
                  "--nx", says="exists already")
    lapse.ok("schedule", "a", "--in", "2h", *TOPIC, "--if-due-before", "4000000000000")
    lapse.refused(3, "schedule", "a", "--in", "3h", *TOPIC, "--if-due-before",
                  "2020-01-01T00:00:00Z", says="not due before")


def test_purge(lapse, redis):
    for n in range(20):
        lapse.ok("schedule", f"a{n}", "--in", "1h", "--topic", "one" if n % 2 else "two")
    lapse.refused(2, "purge", "--topic", "one", says="--yes")
    lapse.refused(2, "purge", "--yes", says="--topic")
    assert lapse.ok("purge", "--topic", "one", "--yes") == "purged 10 of topic one\n"
    assert lapse.json("purge", "--topic", "two", "--yes") == {
        "result": "purged", "topic": "two", "cancelled": 10, "in_flight": 0}
    assert not redis.exists(f"{PREFIX}:due", f"{PREFIX}:rec")


def test_purge_tells_what_it_can_not_stop(lapse, daemon):
    for n in range(3):
        lapse.ok("schedule", f"a{n}", "--in", "0", "--topic", "one")
    assert len(daemon.claim()) == 3
    lapse.ok("schedule", "b", "--in", "1h", "--topic", "one")
    result = lapse.run("purge", "--topic", "one", "--yes")
    assert result.code == 0 and result.out == b"purged 1 of topic one\n"
    assert b"3 are on their way to Kafka" in result.err


LINES = [
    {"id": "a", "in": "30m", "topic": "t", "key": "k", "data": "p\u00fc\n\"\\", "type": "x.y",
     "headers": {"n": "v"}},
    {"id": "b", "at": "2099-11-30T12:30:00Z", "topic": "t", "data": {"n": [1, "}"]}},
    {"id_base64": "AP8=", "in": 1000, "topic": "t", "data_base64": "AAH/",
     "ttr": "30s", "attempts": 3, "backoff": "1000:2:60000", "content_type": "a/b"},
]


def test_schedule_many(lapse, redis):
    text = "\n".join(json.dumps(line) for line in LINES) + "\n\n"
    assert lapse.ok("schedule", "--file", "-", stdin=text.encode()) == "scheduled 3\n"
    assert set(redis.zrange(f"{PREFIX}:due", 0, -1)) == {b"s:a", b"s:b", b"s:\0\xff"}
    records = redis.hgetall(f"{PREFIX}:rec")
    assert records[b"s:a"].endswith("pp\u00fc\n\"\\".encode()) and b"n\0v" in records[b"s:a"]
    assert records[b"s:b"].endswith(b'p{"n": [1, "}"]}')
    assert records[b"s:\0\xff"].endswith(b"p\0\1\xff")
    assert redis.zscore(f"{PREFIX}:due", "s:b") == 4099725000000


def test_a_bad_line_is_told_and_the_others_are_done(lapse, redis, tmp_path):
    bad = ["nonsense", "[]", '{"id":"x"}', '{"id":"x","in":"soon","topic":"t"}',
           '{"id":"x","in":1,"topic":"t","what":1}', '{"id":"x","in":1,"topic":"b a d"}',
           '{"id":"x","in":1,"at":1,"topic":"t"}', '{"id_base64":"*","in":1,"topic":"t"}',
           '{"id":"x","in":1,"topic":"t","ttr":"1s","attempts":0}']
    good = [json.dumps({"id": f"g{n}", "in": "1h", "topic": "t"}) for n in range(1200)]
    path = tmp_path / "events"
    path.write_text("\n".join(good[:600] + bad + good[600:]))
    result = lapse.run("schedule", "--file", str(path))
    assert result.code == 3
    assert result.out.decode() == f"scheduled 1200, refused {len(bad)}\n"
    err = result.err.decode()
    assert all(f"line {601 + n}: " in err for n in range(len(bad))), err
    assert redis.zcard(f"{PREFIX}:due") == 1200 == redis.hlen(f"{PREFIX}:rec")


def test_many_in_json(lapse):
    text = json.dumps(LINES[0]) + "\n{}\n"
    result = lapse.run("schedule", "--file", "-", "--json", stdin=text.encode())
    refused, done = [json.loads(line) for line in result.out.splitlines()]
    assert result.code == 3 and done["result"] == "scheduled" and done["id"] == "a"
    assert done["ce_id"].startswith("s:a@") and done["due_ms"] > 0
    assert refused["result"] == "refused" and refused["line"] == 2


def on_a_terminal(lapse, stdin, *args):
    """What a terminal is told as stderr."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen([str(PROGRAM), *args], env=lapse.env, stdin=stdin,
                               stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    told = b""
    while True:
        try:
            told += os.read(terminal, 65536)
        except OSError:         # EIO: nobody has it open any more
            break
    os.close(terminal)
    return process.wait(60), told.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("name", ["-", "file"])
def test_a_terminal_sees_how_far_it_is(lapse, redis, tmp_path, name):
    path = tmp_path / "events"
    lines = [json.dumps({"id": f"g{n}", "in": "1h", "topic": "t"}) for n in range(1200)]
    path.write_text("\n".join([*lines, "nonsense"]) + "\n")
    with path.open("rb") as stdin:
        code, told = on_a_terminal(lapse, stdin, "schedule", "--file",
                                   "-" if name == "-" else str(path))
    steps = told.split("\r")
    bars = [s for s in steps if s.startswith("[")]
    assert code == 3 and redis.zcard(f"{PREFIX}:due") == 1200
    percents = [int(bar.split("]")[1].split("%")[0]) for bar in bars]
    assert percents == sorted(percents) and percents[-1] == 100 and len(bars) >= 3
    assert bars[-1] == f"[{'#' * 40}] 100%  1201\n"
    assert any("line 1201: it is not JSON" in s and s.startswith("\x1b[K") for s in steps)


def test_a_terminal_sees_how_much_came_through_a_pipe(lapse):
    lines = "".join(json.dumps({"id": f"g{n}", "in": "1h", "topic": "t"}) + "\n"
                    for n in range(600))
    with subprocess.Popen(["printf", "%s", lines], stdout=subprocess.PIPE) as writer:
        code, told = on_a_terminal(lapse, writer.stdout, "schedule", "--file", "-")
    assert code == 0 and told.split("\r")[-1] == "600\n" and "[" not in told


def test_no_terminal_sees_nothing(lapse):
    line = json.dumps({"id": "g", "in": "1h", "topic": "t"})
    assert lapse.run("schedule", "--file", "-", stdin=line.encode()).err == b""


def test_cancel_many(lapse, redis):
    for name in ("a", "b"):
        lapse.ok("schedule", name, "--in", "1h", *TOPIC)
    lapse.ok("schedule", "--encoded", "x%0Ay", "--in", "1h", *TOPIC)
    result = lapse.run("cancel", "--file", "-", stdin=b"a\nnone\n")
    assert result.code == 3 and result.out == b"cancelled 1, refused 1\n"
    assert b"line 2: not-found" in result.err
    assert lapse.ok("cancel", "--file", "-", "-0", stdin=b"b\0x\ny\0") == "cancelled 2\n"
    assert redis.zcard(f"{PREFIX}:due") == 0


@pytest.mark.parametrize("verb", ["schedule", "cancel"])
def test_a_file_or_an_id(lapse, verb):
    lapse.refused(2, verb, says="ID or --file")
    lapse.refused(2, verb, "a", "--file", "-", says="exclude each other")
    lapse.refused(2, verb, "--file", "/nonexistent", says="/nonexistent")


def test_times_are_as_everywhere(lapse, deliver):
    name = deliver()
    assert lapse.ok("fail", name).startswith(f"retry {name}, at 20")
    assert TIME
