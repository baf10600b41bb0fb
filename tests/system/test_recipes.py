# SPDX-License-Identifier: BSD-2-Clause
"""The commands of docs/recipes.md do what it says."""

import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from lapsed import BUILD

RECIPES = (Path(__file__).resolve().parents[2] / "docs/recipes.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- test: (\S+) -->\n```sh\n(.*?)```", RECIPES, re.S))
TOPICS = {"order-timeouts", "reminders", "renewals", "jobs", "calls"}
ROUTES = {"orders": {"pattern": "order:pay:*", "key": "{1}"}}

# recipe -> id -> what arrives when its time has come; None: nothing, it was taken back
ARRIVES = {
    "order": {"order-42": None},
    "reminders": {"meeting-7/day": "tomorrow", "meeting-7/hour": "in an hour",
                  "meeting-7/minute": "now"},
    "token": {"renew-token-9": "9"},
    "zset": {"job-1": "the job"},
    "redisson": {"job-2": '{"job":2}'},
    "table": {"order-43": '{"order":43}'},
    "rabbitmq": {"call-1": '{"to":"+15550100"}'},
}


@pytest.fixture
def sh(world):
    """Runs a recipe, as written but for the topics; what it printed, by lines."""
    env = dict(os.environ, LAPSED_REDIS_URL=world.redis.url)
    before = (f"set -e\nlapse() {{ {BUILD}/lapse \"$@\"; }}\n"
              f"redis-cli() {{ command redis-cli -s {world.redis.socket} \"$@\"; }}\n")

    def run(text):
        text = re.sub(r"--topic (\S+)", f"--topic {world.topic}", text)
        return subprocess.run(["bash", "-c", before + text], env=env, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    return run


def test_every_recipe_is_tested():
    assert set(BLOCKS) == set(ARRIVES) | {"once", "listener", "import", "retry", "pool"}
    assert {t for text in BLOCKS.values() for t in re.findall(r"--topic (\S+)", text)} == TOPICS


@pytest.mark.parametrize("name", ARRIVES)
def test_recipe(world, sh, name):
    world.lapsed()
    sh(BLOCKS[name])
    now = world.now()
    for event, payload in ARRIVES[name].items():
        shown = world.show(event)
        if payload is None:
            assert shown[b"state"] == b"not-found"
        else:
            assert shown[b"state"] == b"scheduled" and int(shown[b"due"]) > now + 60000
            sh(f"lapse reschedule {event} --in 0")
    wanted = {k: v.encode() for k, v in ARRIVES[name].items() if v is not None}
    world.ledger.wait(len(wanted))
    world.drained()
    assert {r.subject: r.value for r in world.ledger.finish()} == wanted


def test_the_listener(world, sh):
    world.lapsed(routes=ROUTES)
    sh(BLOCKS["listener"].replace("30m", "300ms"))
    record = world.records(1)[0]
    assert record.key == b"42" and record.value == b'{"order":42}'


def test_once(sh):
    assert sh(BLOCKS["once"]) == ["OK", ""]


def test_once_in_a_database():
    """The statements in SQLite, which knows ON CONFLICT as PostgreSQL does."""
    statements = [s.strip() for s in re.search(r"```sql\n(.*?)```", RECIPES, re.S)[1].split(";")]
    begin, insert, update, commit = [re.sub("(?m)^--.*\n", "", s) for s in statements if s]
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE done (ce_id TEXT PRIMARY KEY)")
    db.execute("CREATE TABLE orders (id INT, state TEXT)")
    db.execute("INSERT INTO orders VALUES (42, 'unpaid')")
    acted = []
    for _ in range(2):
        db.execute(begin)
        if db.execute(insert).rowcount == 0:
            db.execute("ROLLBACK")
            continue
        acted.append(db.execute(update).rowcount)
        db.execute(commit)
    assert acted == [1] and db.execute("SELECT state FROM orders").fetchone() == ("closed",)


def test_the_import(world, sh):
    world.client.zadd("jobs", {"a": 1, "b": 2})
    world.client.zadd("bucket-1", {"c": 3})
    world.client.set("job:c", "body")
    said = sh(BLOCKS["import"])
    assert said[0] == "would import 2 of 2 entries, 0 would be skipped"
    world.lapsed()
    assert {r.subject: r.value for r in world.records(3)} == {"a": b"a", "b": b"b", "c": b"body"}


def job(world, sh, name):
    """Stored as the recipe does; its record."""
    if world.redis.version < (7, 0):
        pytest.skip("functions came with Redis 7.0")
    sh("lapse install")
    world.lapsed()
    sh(re.sub(r" (calls|jobs) ''", f" {world.topic} ''", BLOCKS[name]))
    world.ledger.wait(1)
    return world.ledger.records[0]


def call(sh, function, *args):
    return sh(f"redis-cli FCALL lapse_{function} 1 'lapse:{{0}}' " + " ".join(f"'{a}'" for a in args))


def test_the_retry(world, sh):
    first = job(world, sh, "retry")
    assert call(sh, "fail", first.id.decode(), "busy")[0] == "retry"
    shown = world.show("call-7")
    assert 0 < int(shown[b"due"]) - world.now() <= 1500
    sh("lapse reschedule call-7 --in 0")
    world.ledger.wait(2)
    second = world.ledger.records[1]
    assert second.value == first.value and second.headers["ce_lapseattempt"] == b"2"
    assert "LAPSE_STALE" in call(sh, "finish", first.id.decode())[0]
    assert call(sh, "finish", second.id.decode())[0] == "finished"
    world.drained()


def test_the_pool(world, sh):
    record = job(world, sh, "pool")
    assert record.value == b'{"image":9}'
    call(sh, "touch", record.id.decode(), "+60000")
    assert call(sh, "finish", record.id.decode())[0] == "finished"
    world.drained()
