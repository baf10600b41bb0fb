# SPDX-License-Identifier: BSD-2-Clause
"""schedule, reschedule, cancel, show."""

import base64
import re
import subprocess
import time

import pytest
from conftest import PREFIX, PROGRAM, TIME

TOPIC = ("--topic", "order-timeouts")


def due_of(redis, member):
    return redis.zscore(f"{PREFIX}:due", member)


def redis_ms(redis):
    seconds, micros = redis.time()
    return seconds * 1000 + micros // 1000


def test_schedule_in_a_while(lapse, redis):
    before = redis_ms(redis)
    out = lapse.ok("schedule", "order-42", "--in", "30m", *TOPIC)
    assert re.fullmatch(rf"scheduled order-42 for {TIME} \(in 30m\)\n", out)
    due = due_of(redis, "s:order-42")
    assert before + 1800000 <= due <= redis_ms(redis) + 1800000


def test_schedule_again_replaces(lapse, redis):
    lapse.ok("schedule", "a", "--in", "30m", *TOPIC)
    assert lapse.ok("schedule", "a", "--in", "1h", *TOPIC).startswith("replaced a for ")
    assert redis.zcard(f"{PREFIX}:due") == 1


@pytest.mark.parametrize(
    "at, due",
    [
        ("2099-11-30T12:30:00Z", 4099725000000),
        ("2099-11-30T14:30:00.250+02:00", 4099725000250),
        ("4099725000000", 4099725000000),
        ("9999-12-31T23:59:59.999Z", 253402300799999),
    ],
)
def test_schedule_at_a_time(lapse, redis, at, due):
    out = lapse.ok("schedule", "a", "--at", at, *TOPIC)
    assert re.fullmatch(rf"scheduled a for {TIME} \(in \d+d(\d+h)?\)\n", out)
    assert due_of(redis, "s:a") == due


@pytest.mark.parametrize(
    "when", [("--in", "0"), ("--in", "0s"), ("--at", "0"), ("--at", "1999-01-01T00:00:00Z")]
)
def test_the_past_is_now(lapse, redis, when):
    out = lapse.ok("schedule", "a", *when, *TOPIC)
    assert out.endswith("(now)\n")
    assert abs(due_of(redis, "s:a") - redis_ms(redis)) < 60000


def test_schedule_says_all_in_json(lapse):
    answer = lapse.json("schedule", "a b", "--in", "1h", *TOPIC)
    assert answer["result"] == "scheduled"
    assert answer["id"] == "a b"
    assert re.fullmatch(TIME, answer["due"])
    assert re.fullmatch(r"s:a%20b@\d+\.0", answer["ce_id"])
    assert abs(answer["due_ms"] / 1000 - time.time() - 3600) < 60
    assert lapse.json("schedule", "a b", "--in", "1h", *TOPIC)["result"] == "replaced"


def test_everything_of_an_event_is_shown(lapse):
    lapse.ok(
        *("schedule", "a", "--in", "1h", *TOPIC, "--key", "42", "--data", '{"x":"é"}'),
        *("--type", "com.example.t", "--content-type", "application/json"),
        *("--header", "traceparent=00-ab", "--header", "empty=", "--header=eq=a=b"),
    )
    shown = lapse.json("show", "a")
    assert shown.pop("due_ms") > 0 and shown.pop("birth_us") > 0
    assert re.fullmatch(TIME, shown.pop("due"))
    assert re.fullmatch(r"s:a@\d+\.0", shown.pop("ce_id"))
    assert shown.pop("record_bytes") > 0
    assert shown == {
        "id": "a",
        "bytes": 10,
        "state": "scheduled",
        "attempt": 0,
        "topic": "order-timeouts",
        "kafka_key": "42",
        "type": "com.example.t",
        "content_type": "application/json",
        "headers": {"traceparent": "00-ab", "empty": "", "eq": "a=b"},
        "payload": '{"x":"é"}',
    }
    text = lapse.ok("show", "a").splitlines()
    lines = {line[:14].strip(): line[14:] for line in text}
    assert lines["id"] == "a" and lines["state"] == "scheduled"
    assert re.fullmatch(rf"{TIME} \(in .*\)", lines["due"])
    assert lines["kafka key"] == "42" and lines["payload"] == '{"x":"é"}'
    assert lines["header"] == "eq: a=b"


def test_the_payload_may_come_from_a_file_or_a_pipe(lapse, tmp_path):
    payload = bytes(range(256)) * 3
    file = tmp_path / "payload"
    file.write_bytes(payload)
    lapse.ok("schedule", "f", "--in", "1h", *TOPIC, "--data-file", str(file))
    lapse.ok("schedule", "p", "--in", "1h", *TOPIC, "--data", "-", stdin=payload)
    lapse.ok("schedule", "q", "--in", "1h", *TOPIC, "--data-file", "-", stdin=payload)
    for name in "fpq":
        assert base64.b64decode(lapse.json("show", name)["payload_base64"]) == payload
    shown = lapse.ok("show", "f")
    assert "\\x00\\x01" in shown and "\\n" in shown and "\\xff" in shown
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)


def test_terminals_are_not_told_what_to_do(lapse):
    lapse.ok("schedule", "a", "--in", "1h", *TOPIC, "--data", "\x1b[31m\u009b\u00e9\x7f")
    shown = lapse.ok("show", "a")
    assert "payload       \\x1b[31m\\xc2\\x9bé\\x7f\n" in shown


def test_a_long_payload_is_cut_for_people_only(lapse):
    payload = "é" * 3000
    lapse.ok("schedule", "a", "--in", "1h", *TOPIC, "--data", payload)
    assert f"{'é' * 1024}... (6000 bytes in all)\n" in lapse.ok("show", "a")
    assert lapse.json("show", "a")["payload"] == payload


def test_the_largest_payload(lapse, redis):
    lapse.ok("schedule", "a", "--in", "1h", *TOPIC, "--data", "-", stdin=b"x" * 1000000)
    assert lapse.lines("list")[0]["bytes"] == 1000000
    lapse.refused(
        2, "schedule", "b", "--in", "1h", *TOPIC, "--data", "-", stdin=b"x" * 1000001,
        says="more than 1000000 bytes",
    )
    assert due_of(redis, "s:b") is None


def test_nx_refuses(lapse, daemon):
    args = ("schedule", "a", *TOPIC, "--nx")
    assert lapse.ok(*args, "--in", "0").startswith("scheduled a ")
    lapse.refused(3, *args, "--in", "1h", says="lapse: a: exists already")
    daemon.claim()
    result = lapse.refused(3, *args, "--in", "1h", "--json", says="exists already")
    assert result.out == b'{"result":"exists","id":"a"}\n'


def test_reschedule(lapse, redis):
    lapse.ok("schedule", "a", "--in", "30m", *TOPIC, "--data", "x")
    ce_id = lapse.json("show", "a")["ce_id"]
    out = lapse.ok("reschedule", "a", "--in", "2h")
    assert re.fullmatch(rf"rescheduled a for {TIME} \(in 2h\)\n", out)
    answer = lapse.json("reschedule", "a", "--at", "2099-11-30T12:30:00Z")
    assert answer == {
        "result": "rescheduled",
        "id": "a",
        "due": "2099-11-30T12:30:00.000Z",
        "due_ms": 4099725000000,
    }
    assert due_of(redis, "s:a") == 4099725000000
    assert lapse.json("show", "a")["ce_id"] == ce_id


def test_cancel(lapse, redis):
    lapse.ok("schedule", "order-42", "--in", "30m", *TOPIC)
    assert lapse.ok("cancel", "order-42") == "cancelled order-42\n"
    assert not redis.exists(f"{PREFIX}:due", f"{PREFIX}:rec")
    result = lapse.refused(3, "cancel", "order-42")
    assert result.err == b"lapse: order-42: not found\n" and result.out == b""
    lapse.ok("schedule", "order-42", "--in", "30m", *TOPIC)
    assert lapse.json("cancel", "order-42")["result"] == "cancelled"


@pytest.mark.parametrize("verb", [("cancel", "a"), ("reschedule", "a", "--in", "1h")])
def test_what_is_not_pending(lapse, daemon, verb):
    lapse.refused(3, *verb, says="lapse: a: not found\n")
    assert lapse.run(*verb, "--json").out == b'{"result":"not-found","id":"a"}\n'
    lapse.ok("schedule", "a", "--in", "0", *TOPIC)
    assert daemon.claim() == [b"s:a"]
    lapse.refused(3, *verb, says="lapse: a: already on its way to Kafka\n")
    assert lapse.run(*verb, "--json").out == b'{"result":"in-flight","id":"a"}\n'


def test_show_knows_the_states(lapse, daemon):
    result = lapse.refused(3, "show", "a", "--json", says="a: not found")
    assert result.out == b'{"id":"a","state":"not-found"}\n'
    lapse.ok("schedule", "a", "--in", "0", *TOPIC)
    daemon.claim()
    assert lapse.json("show", "a")["state"] == "in-flight"
    daemon.park("order-timeouts", ["s:a"], 4099725000000)
    assert lapse.json("show", "a")["state"] == "parked"
    assert "state         parked\n" in lapse.ok("show", "a")


# -- names

BINARY = bytes([0, 1, 10, 32, 37, 127, 128, 255])


def test_any_id_can_be_given_encoded(lapse, redis):
    code = "%00%01%0a%20%25%7F%80%ff"
    out = lapse.ok("schedule", code, "--encoded", "--in", "1h", *TOPIC, "--key", code)
    assert out.startswith("scheduled %00%01%0A%20%25%7F%80%FF for ")
    assert due_of(redis, b"s:" + BINARY)
    shown = lapse.json("show", code, "--encoded")
    assert shown["id_base64"] == shown["kafka_key_base64"] == "AAEKICV/gP8="
    assert "%00%01%0A%20%25%7F%80%FF" in lapse.ok("list")
    assert lapse.lines("list")[0]["id_base64"] == "AAEKICV/gP8="
    lapse.ok("reschedule", "--encoded", code, "--in", "2h")
    assert lapse.ok("cancel", code, "--encoded") == "cancelled %00%01%0A%20%25%7F%80%FF\n"


def test_without_encoded_a_percent_is_a_percent(lapse, redis):
    lapse.ok("schedule", "a%20b", "--in", "1h", *TOPIC)
    assert due_of(redis, "s:a%20b")
    result = lapse.refused(3, "cancel", b"\x1b\xff", says="lapse: %1B%FF: not found\n")
    assert result.out == b""


@pytest.mark.parametrize("name", ["%", "%4", "%zz", "a%"])
def test_a_broken_code_is_refused(lapse, name):
    lapse.refused(2, "cancel", name, "--encoded", says="two hexadecimal digits")


@pytest.mark.parametrize("verb", ["cancel", "show"])
@pytest.mark.parametrize("size", [0, 1025])
def test_names_have_limits(lapse, verb, size):
    lapse.refused(2, verb, "x" * size, says="1 to 1024")


def test_names_up_to_the_limit(lapse):
    name = "x" * 1024
    lapse.ok("schedule", name, "--in", "1h", *TOPIC, "--key", name)
    assert lapse.json("show", name)["kafka_key"] == name
    lapse.ok("cancel", name)


# -- what is refused, with nothing stored

GOOD = {"--in": "1h", "--topic": "t"}
HEADER = "--header"


def options(**changes):
    given = {**GOOD, **{"--" + k.replace("_", "-"): v for k, v in changes.items()}}
    return [word for name, value in given.items() if value is not None for word in (name, value)]


@pytest.mark.parametrize(
    "args, says",
    [
        (options(**{"in": "-5m"}), "--in: \"-5m\" is negative"),
        (options(**{"in": "5"}), "--in: "),
        (options(**{"in": "soon"}), "--in: "),
        (options(**{"in": ""}), "--in: "),
        (options(**{"in": "1.5h"}), "--in: "),
        (options(**{"in": "3000000d"}), "beyond the year 9999"),
        (options(**{"in": "2932896d"}), "beyond the year 9999"),
        (options(**{"in": "99999999999999999999d"}), "--in: "),
        (options(**{"in": None}), "one of --in DURATION and --at TIME is needed"),
        (options(at="2099-01-01T00:00:00Z"), "--in and --at exclude each other"),
        (options(**{"in": None}, at="10000-01-01T00:00:00Z"), "--at: "),
        (options(**{"in": None}, at="253402300800000"), "beyond the year 9999"),
        (options(**{"in": None}, at="9999-12-31T23:59:59-01:00"), "beyond the year 9999"),
        (options(**{"in": None}, at="tomorrow"), "--at: \"tomorrow\" is neither"),
        (options(**{"in": None}, at="1764505800"), "looks like seconds"),
        (options(**{"in": None}, at="2026-02-30T00:00:00Z"), "--at: "),
        (options(topic=None), "--topic TOPIC is needed"),
        (options(topic=""), "--topic: Kafka allows"),
        (options(topic="."), "--topic: Kafka allows"),
        (options(topic=".."), "--topic: Kafka allows"),
        (options(topic="a b"), "--topic: Kafka allows"),
        (options(topic="é"), "--topic: Kafka allows"),
        (options(topic="t" * 250), "--topic: Kafka allows 1 to 249"),
        (options(key="k" * 1025), "--key: it has 1025 bytes"),
        (options(key=""), "--key: it is empty"),
        (options(data="x", data_file="y"), "--data and --data-file exclude each other"),
        (options(data_file="/nowhere/at/all"), "No such file or directory"),
        (options(data_file="/"), "Is a directory"),
        (options(type=""), "type must be"),
        (options(type="x" * 256), "type must be"),
        (options(type="a\nb"), "type must be"),
        (options(content_type="é"), "content-type must be"),
        (options(header="x"), "--header takes NAME=VALUE"),
        (options(header="=x"), "--header takes NAME=VALUE"),
        (options(header="ce_id=x"), "header name must be"),
        (options(header="content-type=x"), "header name must be"),
        (options(header="a b=x"), "header name must be"),
        (options(header="a=" + "x" * 8193), "header value must be"),
        (options() + [HEADER, "a=1", HEADER, "a=2"], "given twice"),
        (options() + [w for i in range(33) for w in (HEADER, f"h{i}=x")], "32 at most"),
        (options() + ["surplus"], "surplus argument surplus"),
        (options() + ["--topc", "x"], "unknown option --topc; did you mean --topic?"),
        (options() + ["--due-before", "x"], "--due-before is no option of schedule"),
    ],
)
def test_bad_input_is_refused(lapse, redis, args, says):
    result = lapse.refused(2, "schedule", "a", *args, says=says)
    assert result.out == b""
    assert redis.keys() == []


def test_thirty_two_headers_are_taken(lapse):
    headers = [w for i in range(32) for w in (HEADER, f"h{i}={'x' * (8192 if i == 0 else 1)}")]
    lapse.ok("schedule", "a", *options(), *headers)
    assert len(lapse.json("show", "a")["headers"]) == 32


@pytest.mark.parametrize("verb", ["schedule", "reschedule"])
def test_no_value_behind_the_last_option(lapse, verb):
    lapse.refused(2, verb, "a", "--in", says="--in lacks its value, DURATION")


def test_a_full_disk_is_told(lapse):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [str(PROGRAM), "schedule", "a", *options()], stdout=full, stderr=subprocess.PIPE,
            env=lapse.env, timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr == b"lapse: can't write to standard output: No space left on device\n"
