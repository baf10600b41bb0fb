# SPDX-License-Identifier: BSD-2-Clause
"""install, and what an application can do afterwards."""

import pytest
from conftest import PREFIX, Lapse
from harness.fakeserver import FakeServer

from harness.redisserver import RedisServer

FUNCTIONS = ["schedule", "cancel", "reschedule", "finish", "touch", "fail",
             "schedule_bulk", "cancel_bulk", "setex", "del", "show", "stats"]


def fcall(client, name, keys, *args):
    return client.execute_command("FCALL", f"lapse_{name}", len(keys), *keys, *args)


@pytest.fixture
def old_server():
    """Answers as Redis 6.2 does, which does not know FUNCTION, if it is none."""
    with RedisServer() as probe:
        old = probe.version < (7, 0)
    config = {} if old else {"rename-command FUNCTION": ""}
    with RedisServer(config=config) as server:
        yield server


@pytest.mark.usefixtures("functions")
def test_install_says_what_it_did(lapse, server):
    out = lapse.ok("install")
    assert out.startswith(f"installed library lapse at {server.socket}, for keys in database 0:\n")
    assert all(f" lapse_{name}" in out for name in FUNCTIONS)
    assert f"FCALL lapse_schedule 1 {PREFIX} order-42 +1800000 order-timeouts 42 " in out


@pytest.mark.usefixtures("functions")
def test_the_example_works_as_printed(lapse, redis):
    example = lapse.ok("install").splitlines()[-1].replace("'", "").split()
    state, due, ce_id = redis.execute_command(*example)
    assert state == b"scheduled" and ce_id.startswith(b"s:order-42@")
    assert lapse.json("show", "order-42")["due_ms"] == int(due)


@pytest.mark.usefixtures("functions")
def test_install_in_json(lapse):
    answer = lapse.json("install", "--namespace", "shop")
    assert answer["result"] == "installed" and answer["library"] == "lapse"
    assert answer["functions"] == [f"lapse_{name}" for name in FUNCTIONS]
    assert answer["prefix"] == "shop:{0}" and answer["database"] == 0


@pytest.mark.usefixtures("functions")
def test_every_function_can_be_called(lapse, redis):
    lapse.ok("install")
    lapse.ok("install")
    fcall(redis, "schedule", [PREFIX], "a", "+60000", "t", "", "payload")
    assert b"payload" in fcall(redis, "show", [PREFIX], "a")
    assert fcall(redis, "reschedule", [PREFIX], "a", "+90000")[0] == b"rescheduled"
    assert fcall(redis, "cancel", [PREFIX], "a")[0] == b"cancelled"
    assert fcall(redis, "setex", [PREFIX, "key"], 60000, "value")[0] == b"set"
    assert fcall(redis, "del", [PREFIX, "key"])[0] == b"cancelled"
    assert b"due_total" in fcall(redis, "stats", [PREFIX])


@pytest.mark.usefixtures("functions")
def test_functions_say_what_they_do(lapse, redis):
    lapse.ok("install")
    (library,) = redis.execute_command("FUNCTION", "LIST", "LIBRARYNAME", "lapse")
    library = dict(zip(library[::2], library[1::2]))
    flags = {}
    for function in library[b"functions"]:
        function = dict(zip(function[::2], function[1::2]))
        flags[function[b"name"].decode()] = function[b"flags"]
    assert sorted(flags) == sorted(f"lapse_{name}" for name in FUNCTIONS)
    assert b"no-writes" in flags["lapse_show"] and b"no-writes" in flags["lapse_stats"]
    assert b"allow-oom" in flags["lapse_cancel"]
    assert flags["lapse_schedule"] == []


@pytest.mark.usefixtures("functions")
def test_the_database_is_written_into_the_library(lapse, redis, server):
    lapse.ok("install", "--database", "4")
    fcall(redis, "schedule", [PREFIX], "a", "+60000", "t", "", "")
    assert server.client(db=4).zcard(f"{PREFIX}:due") == 1
    assert redis.keys() == []
    assert lapse.json("show", "a", "--database", "4")["state"] == "scheduled"
    lapse.refused(3, "show", "a", says="not found")


def test_a_server_without_functions(old_server):
    result = Lapse(old_server.url).refused(1, "install", says=f"{old_server.socket} has no ")
    if old_server.version < (7, 0):
        assert b"they need Redis 7 or Valkey, and its version is 6." in result.err
    else:
        assert b"so it was disabled there" in result.err
    assert result.out == b""


def test_an_old_server():
    answers = {
        "FUNCTION": b"-ERR unknown command `FUNCTION`, with args beginning with: `LOAD`\r\n",
        "INFO": b"$47\r\n# Server\r\nredis_version:6.2.14\r\nredis_mode:no\r\n\r\n",
    }
    with FakeServer(answers) as server:
        says = "has no functions: they need Redis 7 or Valkey, and its version is 6.2.14;"
        Lapse(server.url).refused(1, "install", says=says)
        server.answers["INFO"] = b"-NOPERM no\r\n"
        Lapse(server.url).refused(1, "install", says="its version is unknown;")


def test_a_server_without_functions_serves_all_else(old_server):
    lapse = Lapse(old_server.url)
    lapse.ok("schedule", "a", "--in", "1h", "--topic", "t")
    assert lapse.ok("cancel", "a") == "cancelled a\n"


@pytest.mark.usefixtures("functions")
def test_a_replica_refuses(server):
    config = {"replicaof": f"127.0.0.1 {server.port}"}
    with RedisServer(config=config) as replica:
        lapse = Lapse(replica.url)
        lapse.refused(1, "install", says="is a read-only replica: name the master")


def test_install_takes_no_argument(lapse):
    lapse.refused(2, "install", "now", says="surplus argument now")
