# SPDX-License-Identifier: BSD-2-Clause
"""What the documents show is what happens."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from lapsed import BUILD
from limits import until

TOP = Path(__file__).resolve().parents[2]
ADDRESS = "redis://localhost:6379"


def text(name):
    return (TOP / name).read_text(encoding="utf-8")


def block(name, mark):
    """The fenced block that follows a mark."""
    return re.search(re.escape(mark) + r".*?```\w*\n(.*?)```", text(name), re.S).group(1)


@pytest.fixture
def lapse(world):
    env = dict(os.environ, LAPSED_REDIS_URL=world.redis.url)

    def run(line):
        words = shlex.split(line, comments=True)
        assert words[0] == "lapse"
        return subprocess.run([str(BUILD / "lapse"), *words[1:]], env=env, check=True,
                              stdout=subprocess.PIPE, encoding="utf-8").stdout

    return run


def test_each_row_of_watching_is_a_test():
    """And that runs with one and with three instances."""
    table = text("docs/watching.md").split("| what your application does |")[1].split("\n\n")[0]
    rows = table.splitlines()[2:]
    sources = text("tests/system/test_watching.py") + text("tests/system/test_watching_reports.py")
    assert len(rows) > 20
    for row in rows:
        name = re.search(r"\| `(test_\w+)` \|$", row)
        assert name and f"\ndef {name.group(1)}(watching" in sources, row


def readme_config(world):
    """The configuration of the quick start, with the addresses of this test."""
    config = re.search(r"<<'EOF'\n(.*?)\nEOF", text("README.md"), re.S).group(1)
    config = config.replace(ADDRESS, world.redis.url)
    config = config.replace("localhost:9092", world.kafka.bootstrap)
    return config.replace("order-timeouts\nkey", world.topic + "\nkey")


def test_the_quick_start_of_the_readme(world, lapse, tmp_path):
    path = tmp_path / "quick.conf"
    path.write_text(readme_config(world))
    subprocess.run([str(BUILD / "lapsed"), "-c", str(path), "--check"], check=True)
    instance = world.lapsed()
    instance.stop()
    instance.config = path
    instance.start(joined=False)
    until(lambda: world.client.hgetall("lapse:{0}:slots"), "a slot to be held")
    commands = re.findall(r"^(lapse .*)$", text("README.md"), re.M)
    assert len(commands) >= 4
    for line in commands:
        lapse(line.replace("order-timeouts", world.topic)
              .replace("--in 2s", "--in 200ms").replace("5s", "300ms").replace("30m", "300ms"))
    world.ledger.wait(2)
    values = {r.key: r.value for r in world.ledger.records}
    assert values == {None: b"it works", b"42": b'{"order":42}'}


def test_the_call_from_any_language_in_the_readme(world, lapse):
    if world.redis.version < (7, 0):
        pytest.skip("functions came with Redis 7.0")
    instance = world.lapsed(routes={"orders": {"pattern": "order:pay:*"}})
    assert instance.alive()
    lapse("lapse install")
    call = re.search(r"`(FCALL .*?)`", text("README.md")).group(1)
    world.client.execute_command(*shlex.split(call.replace("1800000", "200")))
    world.ledger.wait(1)
    assert world.ledger.records[0].value == b'{"order":42}'


def test_the_record_in_events_md(world):
    shown = block("docs/events.md", "<!-- test: binary -->")
    world.lapsed(routes={"orders": {"pattern": "order:pay:*", "key": "{1}"}})
    value = re.search(r"value +(.*)", shown).group(1)
    world.setex("order:pay:42", "200", value)
    world.ledger.wait(1)
    record = world.ledger.records[0]
    headers = re.findall(r"^ +(?:headers +)?([a-z_-]+) {2,}(\S.*)$", shown.split("headers")[1], re.M)
    assert [name for name, _ in headers] == [name for name, _ in record.header_list]
    varying = {"ce_id", "ce_time", "ce_lapsetrigger", "ce_lapsecertainty"}
    for name, expected in headers:
        if name not in varying:
            assert record.headers[name].decode() == expected
    assert record.key == b"42" and record.value == value.encode()
    assert re.fullmatch(r"k:0:order:pay:42@\d{16}\.0", record.id.decode())


def test_the_structured_record_in_events_md(world):
    shown = json.loads(block("docs/events.md", "<!-- test: structured -->"))
    world.lapsed(lapsed={"mode": "structured"})
    world.schedule("order-42", "+200", world.topic, "", '{"order":42}',
                   "content-type", "application/json")
    record = world.records(1)[0]
    came = json.loads(record.value)
    assert list(came) == list(shown)
    same = set(shown) - {"id", "time", "lapsetrigger"}
    assert {k: came[k] for k in same} == {k: shown[k] for k in same}
    assert record.headers["content-type"] == b"application/cloudevents+json"


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{p.name}" for p in
                                                 sorted((TOP / "docs").glob("*.md")))])
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)\)", text(name)):
        if "://" not in target:
            assert ((TOP / name).parent / target).exists(), target
