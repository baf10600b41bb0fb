# SPDX-License-Identifier: BSD-2-Clause
"""The sample ACL gives each user every command that its scripts call."""

import re
from pathlib import Path

import pytest
from harness import scripts

ACL = Path(__file__).resolve().parents[2] / "etc" / "lapsed.acl"


def commands(names):
    """What these scripts, and the files they use, call."""
    texts = [scripts.script_text(name) for name in names]
    calls = re.findall(r"(?:redis\.p?call|in_pieces)\('([A-Z]+)'", "".join(texts))
    return {name.lower() for name in calls}


def rights(user):
    (line,) = re.findall(rf"^user {user} (.*)$", ACL.read_text(), re.MULTILINE)
    return {word[1:] for word in line.split() if word.startswith("+")}


OPERATOR = (*scripts.FUNCTIONS, "dead_replay", "dead_drop")
DAEMON = sorted(set(scripts.scripts()) - set(OPERATOR))


@pytest.mark.parametrize("user,names", [
    ("lapsed", DAEMON), ("app", scripts.FUNCTIONS), ("lapse", OPERATOR),
])
def test_every_command_is_allowed(user, names):
    assert commands(names) <= rights(user)
