# SPDX-License-Identifier: BSD-2-Clause
"""setex, del, show --watched."""

import re

import pytest
from conftest import PREFIX, TIME


def test_setex(lapse, redis):
    out = lapse.ok("setex", "order:pay:42", "30m", '{"order":42}')
    assert re.fullmatch(rf"set order:pay:42, expires {TIME} \(in 30m\)\n", out)
    assert redis.get("order:pay:42") == b'{"order":42}'
    assert 1790000 < redis.pttl("order:pay:42") <= 1800000
    due = redis.zscore(f"{PREFIX}:due", "k:0:order:pay:42")
    assert abs(due - redis.time()[0] * 1000 - redis.pttl("order:pay:42")) < 5000
    assert lapse.ok("setex", "order:pay:42", "1h", "x").startswith("replaced order:pay:42, ")


def test_setex_in_json(lapse):
    answer = lapse.json("setex", "a", "30m", "x")
    assert answer["result"] == "set" and answer["key"] == "a" and answer["db"] == 0
    assert re.fullmatch(r"k:0:a@\d+\.0", answer["ce_id"]) and answer["due_ms"] > 0
    answer = lapse.json("setex", "a", "30m", "x", "--no-copy", "--db", "3")
    assert "ce_id" not in answer and answer["db"] == 3


def test_the_copy_can_be_left_out(lapse, redis):
    lapse.ok("setex", "a", "30m", "x", "--no-copy")
    assert redis.get("a") == b"x" and not redis.exists(f"{PREFIX}:rec")
    shown = lapse.json("show", "a", "--watched")
    assert "payload" not in shown and shown["state"] == "scheduled"


def test_another_database(lapse, server):
    lapse.ok("setex", "a", "30m", "x", "--db", "5")
    assert server.client(db=5).get("a") == b"x"
    assert lapse.json("show", "a", "--watched", "--db", "5")["payload"] == "x"
    lapse.refused(3, "show", "a", "--watched", says="a: not found")
    assert "key/5" in lapse.ok("list")
    assert lapse.ok("del", "a", "--db", "5") == "deleted a\n"
    assert server.client(db=5).get("a") is None


def test_the_value_may_come_from_a_pipe(lapse, redis):
    value = bytes(range(256))
    lapse.ok("setex", "a", "30m", "-", stdin=value)
    assert redis.get("a") == value
    lapse.ok("setex", "b", "30m", "--", "-5")
    assert redis.get("b") == b"-5"
    lapse.ok("setex", "c", "30m", "")
    assert redis.get("c") == b""


def test_show_watched(lapse):
    lapse.ok("setex", "a", "30m", "hello")
    shown = lapse.json("show", "a", "--watched")
    assert (shown["key"], shown["db"], shown["payload"]) == ("a", 0, "hello")
    text = lapse.ok("show", "--watched", "a")
    assert "watched key   a\ndatabase      0\nstate         scheduled\n" in text
    lapse.refused(2, "show", "a", "--db", "1", says="--db is for watched keys")


def test_del(lapse, redis):
    lapse.ok("setex", "a", "30m", "x")
    assert lapse.ok("del", "a") == "deleted a\n"
    assert redis.keys() == []
    lapse.ok("setex", "a", "30m", "x")
    answer = lapse.json("del", "a")
    assert answer["result"] == "cancelled" and answer["key"] == "a"


def test_del_of_what_nobody_announced(lapse, redis):
    redis.set("a", "x")
    lapse.refused(3, "del", "a", says="a: deleted; no expiry of it had been announced")
    assert redis.get("a") is None
    result = lapse.run("del", "a", "--json")
    assert result.out == b'{"result":"not-found","key":"a","db":0}\n'


def test_del_of_what_is_on_its_way(lapse, redis, daemon):
    lapse.ok("setex", "a", "1ms", "x")
    while not daemon.claim():
        pass
    lapse.refused(3, "del", "a", says="a: deleted; its expiry is already on its way")
    assert lapse.run("del", "a", "--json").out == b'{"result":"in-flight","key":"a","db":0}\n'


def test_binary_keys(lapse, redis):
    out = lapse.ok("setex", "%00%ff a", "30m", "x", "--encoded")
    assert out.startswith("set %00%FF%20a, expires ")
    assert redis.get(b"\x00\xff a") == b"x"
    assert lapse.json("show", "%00%FF%20a", "--watched", "--encoded")["key_base64"] == "AP8gYQ=="
    assert lapse.ok("del", "%00%FF%20a", "--encoded") == "deleted %00%FF%20a\n"


@pytest.mark.parametrize(
    "args, says",
    [
        (["a", "0", "x"], "more time to live than 0"),
        (["a", "soon", "x"], "DURATION: "),
        (["a", "30", "x"], "DURATION: "),
        (["a", "--", "-5m", "x"], "negative"),
        (["a", "-5m", "x"], "a dash needs -- in front of it"),
        (["a", "3000000d", "x"], "beyond the year 9999"),
        (["", "30m", "x"], "KEY: it is empty"),
        (["k" * 1025, "30m", "x"], "KEY: it has 1025 bytes"),
        (["lapse:{0}:due", "30m", "x"], "outside the namespace"),
        (["a", "30m"], "VALUE is missing"),
        (["a"], "DURATION is missing"),
        ([], "KEY is missing"),
        (["a", "30m", "x", "y"], "surplus argument y"),
        (["a", "30m", "x", "--db", "-1"], "--db: "),
        (["a", "30m", "x", "--db", "one"], "--db: "),
        (["a", "30m", "x", "--db", "99"], "db is none of this server"),
        (["a", "30m", "x", "--db", "4294967296"], "--db: "),
        (["a", "30m", "x", "--nocopy"], "did you mean --no-copy?"),
    ],
)
def test_bad_input_is_refused(lapse, redis, args, says):
    lapse.refused(2, "setex", *args, says=says)
    assert redis.keys() == []


def test_the_largest_value(lapse, redis):
    lapse.ok("setex", "a", "30m", "-", stdin=b"x" * 1000000)
    assert redis.strlen("a") == 1000000
    lapse.refused(2, "setex", "b", "30m", "-", stdin=b"x" * 1000001, says="more than 1000000")
    assert not redis.exists("b")


def test_a_key_that_no_route_takes_is_said(lapse, server, tmp_path):
    conf = tmp_path / "lapsed.conf"
    conf.write_text(f"[redis]\nurl = unix://{server.socket}\n[route a]\npattern = a:*\ntopic = t\n")
    lapse.ok("-c", str(conf), "setex", "a:1", "1h", "v")
    result = lapse.run("-c", str(conf), "setex", "b:1", "1h", "v")
    assert result.code == 0 and b"set b:1" in result.out, result.what
    assert f"lapse: warning: no route of {conf} takes this key" in result.err.decode()
