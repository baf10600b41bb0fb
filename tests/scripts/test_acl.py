# SPDX-License-Identifier: BSD-2-Clause
"""The sample ACL gives each user every command that its scripts call."""

import re
from pathlib import Path

import pytest
from harness import scripts
from harness.redisserver import RedisServer

ACL = Path(__file__).resolve().parents[2] / "etc" / "lapsed.acl"


def commands(names):
    """What these scripts, and the files they use, call."""
    texts = [scripts.script_text(name) for name in names]
    calls = re.findall(r"(?:redis\.p?call|in_pieces)\('([A-Z]+)'", "".join(texts))
    return {name.lower() for name in calls}


def rights(user):
    (line,) = re.findall(rf"^user {user} (.*)$", ACL.read_text(), re.MULTILINE)
    return {word[1:] for word in line.split() if word.startswith("+")}


DEAD = {"dead_replay", "dead_drop", "purge"}
DAEMON = set(scripts.scripts()) - set(scripts.FUNCTIONS) - DEAD
OPERATOR = {*scripts.FUNCTIONS, *DEAD, *(DAEMON & {"walk"})}
# Of walk, for fsck alone; scan.lua is for register = scan.
FSCK_ONLY = set()


@pytest.mark.parametrize("user,names,but", [
    ("lapsed", DAEMON, FSCK_ONLY), ("app", scripts.FUNCTIONS, set()), ("lapse", OPERATOR, set()),
])
def test_every_command_is_allowed(user, names, but):
    assert commands(names) - but - rights(user) == set()


def test_redis_takes_the_users(tmp_path, has_functions):
    if not has_functions:
        pytest.skip("the sample is for Redis 7.0 and later")
    lines = [line for line in ACL.read_text().splitlines(True) if line.startswith("user ")]
    path = tmp_path / "users.acl"
    path.write_text("".join(lines))
    with RedisServer(config={"aclfile": path}) as server:
        users = server.client().execute_command("ACL", "USERS")
    assert set(users) == {b"app", b"default", b"lapse", b"lapsed"}
