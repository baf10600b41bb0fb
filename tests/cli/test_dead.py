# SPDX-License-Identifier: BSD-2-Clause
"""dead list, show, replay, drop."""

import re

import pytest
from conftest import PREFIX, TIME


@pytest.fixture
def bury(lapse, daemon):
    """Schedules events, due now, and buries them; their ce_ids."""

    def bury_all(*names, reason="Broker: Message size too large", topic="order-timeouts"):
        letters = []
        for name in names:
            answer = lapse.json(
                *("schedule", name, "--in", "0", "--topic", topic),
                *("--key", "42", "--data", "xyz", "--header", "a=b"),
            )
            letters.append((f"s:{name}", answer["ce_id"]))
        assert len(daemon.claim()) == len(names)
        daemon.bury(letters, reason)
        return [ce_id for _, ce_id in letters]

    return bury_all


def fill(redis, n):
    """Letters that can't be read, as many as it takes."""
    names = [f"s:x@{i}.0" for i in range(n)]
    redis.zadd(f"{PREFIX}:dead", {name: i for i, name in enumerate(names)})
    redis.hset(f"{PREFIX}:why", mapping={name: "nonsense" for name in names})


def test_no_dead_letters(lapse):
    result = lapse.run("dead", "list")
    assert (result.code, result.out) == (0, b"")
    assert result.err == b"lapse: there are no dead letters\n"
    assert lapse.lines("dead", "list") == []


def test_list(lapse, bury):
    a, b = bury("a", "b")
    head, *lines = lapse.ok("dead", "list").splitlines()
    assert head.split() == ["DIED", "TOPIC", "CE_ID", "AND", "REASON"]
    assert sorted(line.split()[2] for line in lines) == [a, b]
    assert all(line.endswith("  Broker: Message size too large") for line in lines)
    assert all(line.split()[1] == "order-timeouts" for line in lines)
    letter = lapse.lines("dead", "list", "--limit", "1")[0]
    assert letter["reason"] == "Broker: Message size too large"
    assert letter["topic"] == "order-timeouts" and letter["bytes"] == 3
    assert "payload" not in letter and letter["died_ms"] >= letter["due_ms"]


def test_show(lapse, bury):
    (a,) = bury("a")
    letter = lapse.json("dead", "show", a)
    for name in ("died", "died_ms", "due", "due_ms", "birth_us"):
        assert letter.pop(name)
    assert letter == {
        "ce_id": a,
        "reason": "Broker: Message size too large",
        "id": "a",
        "attempt": 0,
        "topic": "order-timeouts",
        "kafka_key": "42",
        "bytes": 3,
        "headers": {"a": "b"},
        "payload": "xyz",
    }
    text = lapse.ok("dead", "show", a)
    assert re.match(rf"ce_id         {a}\ndied          {TIME}\nreason        Broker: ", text)
    assert "\nid            a\n" in text and "\npayload       xyz\n" in text
    assert "\nheader        a: b\n" in text and "\nkafka key     42\n" in text


def test_a_watched_key_can_die(lapse, daemon):
    lapse.ok("setex", "key", "1ms", "value", "--db", "1")
    while not daemon.claim():
        pass
    daemon.bury([("k:1:key", "k:1:key@1.0")], "no route")
    letter = lapse.json("dead", "show", "k:1:key@1.0")
    assert (letter["key"], letter["db"], letter["payload"]) == ("key", 1, "value")
    text = lapse.ok("dead", "show", "k:1:key@1.0")
    assert "\nwatched key   key\ndatabase      1\n" in text


def test_what_can_not_be_read_is_shown_as_that(lapse, redis):
    fill(redis, 1)
    assert "(unreadable)" in lapse.ok("dead", "list")
    assert lapse.lines("dead", "list")[0]["unreadable"]
    assert lapse.json("dead", "show", "s:x@0.0")["unreadable"]
    assert "\nunreadable    " in lapse.ok("dead", "show", "s:x@0.0")
    result = lapse.refused(3, "dead", "replay", "s:x@0.0", "--json", says="unreadable")
    assert result.out == b'{"result":"unreadable","ce_id":"s:x@0.0"}\n'


def test_replay(lapse, bury):
    a, b, c = bury("a", "b", "c")
    out = lapse.ok("dead", "replay", a)
    assert re.fullmatch(rf"replayed {a} as s:a@\d+\.0\n", out)
    assert lapse.json("show", "a")["payload"] == "xyz"
    first, second = lapse.lines("dead", "replay", b, c)
    assert first["result"] == "replayed" and first["ce_id"] == b and first["due_ms"]
    assert first["new_ce_id"] == lapse.json("show", "b")["ce_id"] != b
    assert second["ce_id"] == c
    assert lapse.lines("dead", "list") == []


@pytest.mark.parametrize("verb", ["show", "replay", "drop"])
def test_no_such_letter(lapse, verb):
    lapse.refused(3, "dead", verb, "s:a@1.0", says="lapse: s:a@1.0: no dead letter has this ce_id")


def test_one_refusal_does_not_stop_the_rest(lapse, bury):
    a, b = bury("a", "b")
    lapse.ok("schedule", "a", "--in", "1h", "--topic", "t")
    result = lapse.refused(3, "dead", "replay", a, b, "--json", says=f"{a}: the id is pending")
    assert f'{{"result":"exists","ce_id":"{a}"}}\n' in result.out.decode()
    assert f'{{"result":"replayed","ce_id":"{b}"' in result.out.decode()
    assert [letter["ce_id"] for letter in lapse.lines("dead", "list")] == [a]


def test_drop(lapse, bury, redis):
    a, b = bury("a", "b")
    assert lapse.ok("dead", "drop", a) == f"dropped {a}\n"
    assert lapse.json("dead", "drop", b) == {"result": "dropped", "ce_id": b}
    assert not redis.exists(f"{PREFIX}:dead", f"{PREFIX}:why")


def test_replay_all(lapse, bury, redis):
    bury(*(f"e{i:03}" for i in range(250)))
    lapse.ok("schedule", "e007", "--in", "1h", "--topic", "t")
    result = lapse.refused(3, "dead", "replay", "--all", says="s:e007@")
    assert result.out.decode().endswith("replayed 249, refused 1\n")
    assert redis.zcard(f"{PREFIX}:dead") == 1 and redis.zcard(f"{PREFIX}:due") == 250
    assert lapse.refused(3, "dead", "replay", "--all").out == b"replayed 0, refused 1\n"


def test_drop_all(lapse, redis):
    fill(redis, 250)
    lapse.refused(2, "dead", "drop", "--all", says="add --yes")
    assert redis.zcard(f"{PREFIX}:dead") == 250
    assert lapse.ok("dead", "drop", "--all", "--yes").endswith("\ndropped 250, refused 0\n")
    assert redis.keys() == []


@pytest.fixture
def three_kinds(bury):
    """topic, reason -> ce_ids"""
    return {
        ("t", "no route"): bury("a", "b", topic="t", reason="no route"),
        ("t", "too large"): bury("c", topic="t", reason="too large"),
        ("u", "too large"): bury(*(f"u{i:03}" for i in range(150)), topic="u",
                                 reason="too large"),
    }


def test_list_by_topic_and_reason(lapse, three_kinds):
    def listed(*args):
        return sorted(x["ce_id"] for x in lapse.lines("dead", "list", "--limit", "999", *args))

    kinds = three_kinds
    assert listed("--topic", "t", "--reason", "large") == kinds["t", "too large"]
    assert listed("--topic", "t") == sorted(kinds["t", "no route"] + kinds["t", "too large"])
    assert listed("--reason", "too large") == sorted(kinds["t", "too large"] +
                                                     kinds["u", "too large"])
    assert listed("--topic", "T") == listed("--reason", "?") == []
    result = lapse.run("dead", "list", "--topic", "u")
    assert len(result.out.splitlines()) == 101
    assert result.err == b"lapse: these are the first 100; --limit N lists more\n"
    result = lapse.run("dead", "list", "--topic", "none")
    assert result.err == b"lapse: there are no such dead letters\n"


def test_summary(lapse, three_kinds, redis):
    rows = lapse.lines("dead", "list", "--summary")
    assert [(r["topic"], r["reason"], r["count"]) for r in rows] == [
        ("u", "too large", 150), ("t", "no route", 2), ("t", "too large", 1)]
    assert all(r["oldest_ms"] <= r["newest_ms"] for r in rows)
    text = lapse.ok("dead", "list", "--summary", "--reason", "large").splitlines()
    assert text[0].split() == ["LETTERS", "OLDEST", "NEWEST", "TOPIC", "REASON"]
    assert re.fullmatch(rf" +150  {TIME}  {TIME}  u +  too large", text[1])
    assert len(text) == 3
    redis.flushall()
    assert lapse.run("dead", "list", "--summary").err == b"lapse: there are no dead letters\n"


def test_a_summary_is_bounded(lapse, redis, daemon):
    """Whatever the reasons are."""
    for page in range(2):
        for i in range(900):
            lapse_id = f"x{page}-{i}"
            daemon.scripts.call("schedule", [PREFIX], [lapse_id, "+0", "t", "", ""])
        members = [member.decode() for member in daemon.claim()]
        daemon.bury_each([(m, f"{m}@1.0", f"reason {m}") for m in members])
    fill(redis, 3)
    rows = lapse.lines("dead", "list", "--summary")
    assert len(rows) == 1001 and sum(r["count"] for r in rows) == 1803
    assert rows[-1]["topic"] == "(others)" and "reason" not in rows[-1]
    assert rows[0]["topic"] == "(unreadable)" and rows[0]["count"] == 3


def test_replay_by_topic_and_reason(lapse, three_kinds, redis):
    out = lapse.ok("dead", "replay", "--topic", "t", "--reason", "route")
    assert out.endswith("replayed 2, refused 0\n")
    assert redis.zcard(f"{PREFIX}:due") == 2 and redis.zcard(f"{PREFIX}:dead") == 151
    lapse.ok("schedule", "u007", "--in", "1h", "--topic", "t")
    result = lapse.refused(3, "dead", "replay", "--topic", "u", says="s:u007@")
    assert result.out.decode().endswith("replayed 149, refused 1\n")
    left = {letter["ce_id"] for letter in lapse.lines("dead", "list")}
    assert len(left) == 2 and set(three_kinds["t", "too large"]) < left


def test_drop_by_topic(lapse, three_kinds, redis):
    lapse.refused(2, "dead", "drop", "--topic", "u", says="add --yes")
    lapse.refused(2, "dead", "drop", "--reason", "x", says="add --yes")
    assert lapse.ok("dead", "drop", "--topic", "u", "--yes").endswith(
        "\ndropped 150, refused 0\n")
    assert redis.zcard(f"{PREFIX}:dead") == redis.hlen(f"{PREFIX}:why") == 3


def test_letters_of_one_moment_are_all_seen(lapse, redis, three_kinds):
    """What stays between those that go is passed over, and nothing else is."""
    for name in redis.zrange(f"{PREFIX}:dead", 0, -1):
        redis.zadd(f"{PREFIX}:dead", {name: 5})
    fill(redis, 120)
    assert lapse.ok("dead", "drop", "--topic", "u", "--yes").endswith(
        "\ndropped 150, refused 0\n")
    assert lapse.ok("dead", "drop", "--topic", "(unreadable)", "--yes").endswith(
        "\ndropped 120, refused 0\n")
    assert redis.zcard(f"{PREFIX}:dead") == 3


def test_the_topic_of_a_watched_key_is_its_routes(lapse, daemon, tmp_path):
    config = tmp_path / "lapsed.conf"
    config.write_text("[route broken]\nfoo = 1\n"
                      "[route keys]\npattern = key*\ntopic = key-timeouts\n")
    lapse.ok("setex", "key", "1ms", "value")
    while not daemon.claim():
        pass
    daemon.bury([("k:0:key", "k:0:key@1.0")], "too large")
    assert "topic" not in lapse.lines("dead", "list")[0]
    assert lapse.lines("dead", "list", "--topic", "-")[0]["key"] == "key"
    routed = ("-c", str(config), "--topic", "key-timeouts")
    assert lapse.lines("dead", "list", *routed)[0]["topic"] == "key-timeouts"
    assert "\ntopic         key-timeouts\n" in lapse.ok("dead", "show", *routed[:2], "k:0:key@1.0")
    assert "replayed 1, refused 0" in lapse.ok("dead", "replay", *routed)


def test_a_limit(lapse, redis):
    fill(redis, 250)
    result = lapse.run("dead", "list")
    assert len(result.out.splitlines()) == 101
    assert result.err == b"lapse: these are the first 100 of 250; --limit N lists more\n"
    letters = lapse.lines("dead", "list", "--limit", "240")
    assert [letter["died_ms"] for letter in letters] == list(range(240))


@pytest.mark.parametrize(
    "args, says",
    [
        ([], "dead needs to know what to do: list, show, replay, drop"),
        (["lst"], "did you mean dead list?"),
        (["show"], "CE_ID is missing"),
        (["show", "a", "b"], "surplus argument b"),
        (["list", "a"], "surplus argument a"),
        (["list", "--limit", "x"], "--limit: "),
        (["replay"], "CE_ID, --topic, --reason or --all is needed"),
        (["replay", "--topic", "t", "a"], "exclude each other"),
        (["replay", "--topic", "t", "--all"], "exclude each other"),
        (["list", "--summary", "--limit", "5"], "--limit makes no sense"),
        (["replay", "--all", "a"], "exclude each other"),
        (["drop"], "CE_ID, --topic, --reason or --all is needed"),
        (["drop", "--all", "--yes", "a"], "exclude each other"),
        (["replay", "--yes", "a"], "--yes is no option of dead replay"),
    ],
)
def test_bad_input_is_refused(lapse, args, says):
    lapse.refused(2, "dead", *args, says=says)
