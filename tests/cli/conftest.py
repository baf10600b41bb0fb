# SPDX-License-Identifier: BSD-2-Clause
"""The program `lapse`, run against a real server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

from harness.redisserver import RedisServer  # noqa: E402
from harness.scripts import Scripts  # noqa: E402

PREFIX = "lapse:{0}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
PROGRAM = Path(os.environ.get("LAPSED_BUILD", TOP / "build")) / "lapse"


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.what = f"lapse {done.args[1:]}: {self.code}\n{self.out!r}\n{self.err!r}"


class Lapse:
    """Runs lapse with an environment of its own."""

    def __init__(self, url=None, **env):
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("LAPSED_")}
        self.env.update(env)
        if url:
            self.env["LAPSED_REDIS_URL"] = url

    def run(self, *args, stdin=b"", **env):
        done = subprocess.run(
            [str(PROGRAM), *args],
            input=stdin,
            capture_output=True,
            timeout=60,
            env={**self.env, **env},
        )
        result = Result(done)
        assert "Sanitizer" not in result.err.decode(errors="replace"), result.what
        assert result.code in (0, 1, 2, 3), result.what
        return result

    def ok(self, *args, **options):
        """What it says, when all is well."""
        result = self.run(*args, **options)
        assert result.code == 0 and result.err == b"", result.what
        return result.out.decode()

    def lines(self, *args, **options):
        """Its answer as JSON, an object a line."""
        out = self.ok(*args, "--json", **options)
        return [json.loads(line) for line in out.splitlines()]

    def json(self, *args, **options):
        """Its answer as one JSON object."""
        (answer,) = self.lines(*args, **options)
        return answer

    def refused(self, status, *args, says="", **options):
        """Its complaint: the status and a part of it are as expected."""
        result = self.run(*args, **options)
        err = result.err.decode()
        assert result.code == status, result.what
        assert err.startswith("lapse: ") and says in err, result.what
        return result


@pytest.fixture(scope="session")
def session_server():
    with RedisServer(tcp=True) as server:
        yield server


@pytest.fixture
def server(session_server):
    """A server without a key."""
    session_server.client().flushall()
    return session_server


@pytest.fixture
def redis(server):
    return server.client()


@pytest.fixture
def functions(server):
    """The server can have function libraries."""
    if server.version < (7, 0):
        pytest.skip("Redis 6.2 has no functions")


@pytest.fixture
def lapse(server):
    return Lapse(server.url)


class Daemon:
    """What lapsed does to Redis: a slot, claims, burials, parked topics."""

    def __init__(self, client):
        self.scripts = Scripts(client)
        self.seq = 0
        joined = self.call("join", "test:1", "nonce", 60000)
        self.fence = [joined[1], joined[2], "nonce"]

    def call(self, name, *args):
        return self.scripts.call(name, [PREFIX], list(args))

    def claim(self):
        """The members of a batch of all that is due."""
        self.seq += 1
        limits = [1000, 10_000_000, 0, 5000]
        answer = self.call("claim", *self.fence, self.seq, *limits)
        return answer[7::2]

    def bury(self, members, reason):
        """Claims must have left these in the latest batch."""
        self.bury_each([(member, ce_id, reason) for member, ce_id in members])

    def bury_each(self, burials):
        """(member, ce_id, reason) of each"""
        flat = [word for burial in burials for word in burial]
        answer = self.call("settle", *self.fence, self.seq, len(burials), *flat, 0)
        assert answer[0] == b"settled"

    def park(self, topic, members, retry_ms):
        batch, self.seq = self.seq, self.seq + 1
        group = [self.seq, topic, retry_ms, len(members), *members]
        answer = self.call("settle", *self.fence, batch, 0, 0, 0, *group)
        assert answer == [b"settled"]


@pytest.fixture
def daemon(redis):
    return Daemon(redis)
