# SPDX-License-Identifier: BSD-2-Clause
"""lapse watch: shows what falls due, as Kafka has it."""

import json
import os
import re
import subprocess

import pytest
from lapsed import BUILD
from limits import until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Watching:
    def __init__(self, world, *args, **env):
        self.err = world.folder / "watch.err"
        env = {**os.environ, "LAPSED_KAFKA_BOOTSTRAP_SERVERS": world.kafka.bootstrap, **env}
        with self.err.open("wb") as err:
            self.process = subprocess.Popen([str(BUILD / "lapse"), "watch", *args], env=env,
                                            stdout=subprocess.PIPE, stderr=err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def said(self):
        return self.err.read_text()

    def ready(self):
        until(lambda: "from here on" in self.said(), "lapse watch")

    def lines(self):
        """When it has ended by itself."""
        out, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, self.said()
        return out.decode().splitlines()


def test_the_topics_of_the_routes(world):
    lapsed = world.lapsed(routes={"orders": {"pattern": "order:*"}})
    world.settle_one()
    with Watching(world, "-c", str(lapsed.config), "--count", "2") as watching:
        watching.ready()
        world.schedule("job 1", "+0", world.topic, "", "x")
        until(lambda: world.ledger.read() and len(world.ledger.records) == 2, "the first")
        world.setex("order:1", "100")
        head, first, second = watching.lines()
    assert head.split() == ["DUE", "LATE", "ATTEMPT", "TRIGGER", "TOPIC", "ID", "OR", "KEY"]
    pattern = rf"{TIME}  \d+m?s +1 +(wake|timer|expired) +{world.topic[:20]}\S* +"
    assert re.fullmatch(pattern + "job%201", first), first
    assert re.fullmatch(pattern + "order:1", second), second


def test_in_json_and_a_topic_that_comes_later(world):
    world.lapsed()
    later = world.topic + "-later"
    with Watching(world, world.topic, later, "--json", "--count",
                  "2") as watching:
        until(lambda: f"there is no topic {later} yet" in watching.said(), "it to be missed")
        world.new_topic(later)
        ids = [world.schedule("late", "+0", later, "", b"\xff")]
        got = json.loads(watching.process.stdout.readline())
        assert got["topic"] == later and got["ce_id"] == ids[0].decode() and got["id"] == "late"
        assert got["payload_base64"] == "/w==" and got["attempt"] == "1"
        assert 0 <= got["lateness_ms"] < 60000 and got["due_ms"] > 0
        world.schedule("other", "+0")
        assert json.loads(watching.lines()[0])["id"] == "other"


def test_records_in_structured_mode(world):
    world.lapsed(lapsed={"mode": "structured"})
    with Watching(world, world.topic, "missing", "--json", "--count", "3") as watching:
        until(lambda: "there is no topic missing yet" in watching.said(), "lapse watch")
        names = []
        for id, data, more in (("a b", '{"n": [1, "}"]}', ["content-type", "application/json"]),
                               ("text", 'x"\n', ["content-type", "text/plain"]),
                               ("bytes", b"\0\xff", [])):
            names.append(world.schedule(id, "+0", world.topic, "", data, *more).decode())
        got = {line["ce_id"]: line for line in map(json.loads, watching.lines())}
    first, second, third = (got[name] for name in names)
    assert first["id"] == "a%20b" and json.loads(first["payload"]) == {"n": [1, "}"]}
    assert second["id"] == "text" and second["payload"] == 'x"\n'
    assert third["payload_base64"] == "AP8=" and third["trigger"] and third["attempt"] == "1"
    assert all(0 <= line["lateness_ms"] < 60000 for line in got.values())


def test_it_ends_when_it_is_told_to(world):
    with Watching(world, world.topic) as watching:
        watching.ready()
        watching.process.terminate()
        assert watching.lines() == []


@pytest.mark.parametrize("args, says", [
    ((), "no route names a topic"),
    (("a b",), "is no name of a Kafka topic"),
    (("t", "--count", "x"), "--count"),
])
def test_refusals(world, args, says):
    with Watching(world, *args) as watching:
        watching.process.communicate(timeout=30)
        assert watching.process.returncode == 2 and says in watching.said()


def test_no_broker(world):
    with Watching(world, "t",
                  LAPSED_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1") as watching:
        watching.process.communicate(timeout=30)
        assert watching.process.returncode == 1 and "lapse: Kafka: " in watching.said()
