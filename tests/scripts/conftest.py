# SPDX-License-Identifier: BSD-2-Clause
"""One server for all tests of the scripts, emptied before each."""

import sys
from pathlib import Path

import pytest
import redis

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.redisserver import RedisServer  # noqa: E402
from harness.scripts import Scripts  # noqa: E402
from shard import Shard  # noqa: E402

FIGURES = []


@pytest.fixture(scope="session")
def server():
    with RedisServer() as server:
        yield server


@pytest.fixture
def client(server):
    """Of database 0, empty, with active expiry on and memory without limit."""
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        client.flushall()
        client.config_set("maxmemory", 0)
        client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
        yield client
        client.config_set("maxmemory", 0)


@pytest.fixture(scope="session")
def has_functions(server):
    return server.version >= (7, 0)


@pytest.fixture(params=["evalsha", "fcall"])
def shard(request, client, has_functions):
    """Every test of a script for applications runs both ways."""
    fcall = request.param == "fcall"
    if fcall and not has_functions:
        pytest.skip("functions came with Redis 7.0")
    return Shard(client, Scripts(client, fcall=fcall))


@pytest.fixture
def daemon_shard(client):
    """For the scripts that only the daemon calls, by EVALSHA."""
    return Shard(client, Scripts(client))


@pytest.fixture
def lazy(client):
    """Keys expire only when they are looked at."""
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    yield
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)


@pytest.fixture
def full(client):
    """A context in which Redis is out of memory."""

    class Full:
        def __enter__(self):
            client.config_set("maxmemory", 1)

        def __exit__(self, *_):
            client.config_set("maxmemory", 0)

    return Full()


@pytest.fixture
def figure():
    """Notes a measured figure for the end of the run."""
    return FIGURES.append


def pytest_terminal_summary(terminalreporter):
    for line in FIGURES:
        terminalreporter.write_line(line)
