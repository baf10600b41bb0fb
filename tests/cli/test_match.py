# SPDX-License-Identifier: BSD-2-Clause
"""match: which route takes a key, by the same rules as Redis."""

import json
import random

import pytest
from conftest import Lapse

ROUTES = """
[route pay]
pattern = order:pay:*
exclude = order:pay:test:*
topic = payments
key = {1}-{db}

[route rest]
pattern = order:*
topic = rest
value = none
type = com.example.order
content_type = text/plain
"""


@pytest.fixture
def conf(tmp_path):
    path = tmp_path / "lapsed.conf"
    path.write_text(ROUTES)
    return path


def test_which_route_and_what_record(conf):
    """There is no Redis."""
    lapse = Lapse("redis://localhost:1")
    out = lapse.ok("-c", conf, "match", "order:pay:42", "--db", "3").split()
    for word in ("pay", "payments", "42-3", "io.lapsed.expired", "order:pay:42",
                 "application/octet-stream"):
        assert word in out
    found = lapse.json("-c", conf, "match", "order:pay:test:1")
    assert found == {"key": "order:pay:test:1", "db": 0, "route": "rest", "topic": "rest",
                     "kafka_key": "order:pay:test:1", "copy": False, "mode": "binary",
                     "ce_type": "com.example.order", "ce_subject": "order:pay:test:1",
                     "content-type": "text/plain"}


TEMPLATES = """
[route per-kind]
pattern = *:*
topic = {1}-events
topics = order-*
topics = user-events
key = {2}
type = com.example.{1}
subject = {db}/{1}/{2}
databases = 0,3
"""


def test_templates(tmp_path):
    conf = tmp_path / "lapsed.conf"
    conf.write_text(TEMPLATES)
    lapse = Lapse("redis://localhost:1")
    for db in 0, 3:
        found = lapse.json("-c", conf, "match", "order:a b", "--db", str(db))
        assert (found["topic"], found["kafka_key"], found["ce_type"], found["ce_subject"]) == (
            "order-events", "a b", "com.example.order", f"{db}/order/a%20b")
    assert lapse.run("-c", conf, "match", "order:1", "--db", "1").code == 3
    for key, why in (("cart:1", "cart-events is not among the topics of the route"),
                     ("a b:1", '"a b-events" is no topic')):
        result = lapse.run("-c", conf, "match", key)
        assert result.code == 3 and why.encode() in result.out, result.what
        result = lapse.run("-c", conf, "match", "--json", key)
        assert json.loads(result.out) == {"key": key, "db": 0, "route": "per-kind", "error": why}


@pytest.mark.parametrize("mode, shown", [
    ("structured", {"ce_type", "ce_subject", "content-type"}), ("raw", {"content-type"})])
def test_other_modes(conf, mode, shown):
    conf.write_text(f"[route r]\npattern = *\ntopic = t\nmode = {mode}\ntype = own\n")
    found = Lapse("redis://localhost:1").json("-c", conf, "match", "k")
    assert found["mode"] == mode
    assert {name for name in found if name in (
        "ce_type", "ce_subject", "content-type")} == shown


def test_a_key_that_no_route_takes(conf):
    result = Lapse("redis://localhost:1").run("-c", conf, "match", "other", "order:1")
    assert result.code == 3
    assert b"other: no route" in result.out and b"order:1: route rest" in result.out
    assert Lapse("redis://localhost:1").run("-c", conf, "match", "lapse:{0}:x").code == 3


ATOMS = ["*", "?", "[abc]", "[a-c]", "[^ab]", "[^a-b]", "\\*", "\\[", "a", "b", "c", "-", ":"]


def test_random_patterns_as_in_redis(server, redis, tmp_path):
    """Each of some random names is matched just when KEYS gives it."""
    rng = random.Random(20261201)
    names = sorted({"".join(rng.choice("abc-:*[") for _ in range(rng.randint(1, 7)))
                    for _ in range(400)})
    for name in names:
        redis.set(name, "v")
    tried = 0
    for _ in range(60):
        pattern = "".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 6)))
        conf = tmp_path / "lapsed.conf"
        text = pattern.replace("\\", "\\\\")
        conf.write_text(f'[route r]\npattern = "{text}"\ntopic = t\n')
        result = Lapse("redis://localhost:1").run("-c", conf, "match", "--json", "--", *names)
        rows = [json.loads(line) for line in result.out.splitlines()]
        ours = {row["key"] for row in rows if "route" in row}
        assert len(rows) == len(names), result.what
        assert ours == {key.decode() for key in redis.keys(pattern)}, pattern
        tried += bool(ours)
    assert tried > 20
