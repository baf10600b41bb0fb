# SPDX-License-Identifier: BSD-2-Clause
"""Rights and passwords change while lapsed runs; it is loud, slow, and recovers.

Case 7, 8: the log says what is missing; nothing is lost meanwhile.
"""

import pytest

from limits import until
from place import TimedLoad, some
from world import PREFIX

PASSWORD = "secret"
ALL = ("on", f">{PASSWORD}", "~*", "+@all", "allchannels")
ERRORS = {"redis.auth", "redis.refused", "redis.subscribe_refused", "script.error"}


def user(place, *rules):
    place.client.execute_command("ACL", "SETUSER", "lapsed", *rules)


def take(place, away):
    """From its connections as well, which keep what they had."""
    user(place, *away)
    place.client.execute_command("CLIENT", "KILL", "USER", "lapsed")


def instance(place, lapsed=None):
    """Its user is `lapsed`."""
    user(place, *ALL)
    path = place.folder / "password"
    path.write_text(PASSWORD)
    path.chmod(0o600)
    made = place.instance(redis={"username": "lapsed", "password_file": str(path)},
                          lapsed=dict(lapsed or {}))
    made.errors |= ERRORS
    return made


def trouble(lapsed, word):
    """The first line that names it."""
    def found():
        return [x for x in lapsed.lines()[lapsed._mark:]
                if x["level"] in ("warn", "error") and word in str(x)]
    return until(found, f"{word} in the log")[0]


TAKEN = {
    "evalsha": (("-evalsha",), ("+evalsha",), "NOPERM"),
    "load": (("-script",), ("+script",), "NOPERM"),
    "publish": (("resetchannels",), ("allchannels",), "NOPERM"),
    "keys": (("resetkeys",), ("~*",), "NOPERM"),
    "hset": (("-hset",), ("+hset",), "NOPERM"),
    "rename": (("-rename",), ("+rename",), "NOPERM"),
    "all": (("off", "resetpass"), ALL, "WRONGPASS"),
}


def cells_of_right():
    """Where the next try comes after five seconds, each of the two once: all is WRONGPASS."""
    for right in TAKEN:
        for phase in ("start", "work"):
            slow = (right, phase) in (("load", "start"), ("all", "work"))
            yield pytest.param(right, phase, marks=[pytest.mark.full] if slow else [])


@pytest.mark.parametrize("right, phase", cells_of_right())
def test_right(place, right, phase):
    """Taken away, and given back: what waited is delivered."""
    away, back, word = TAKEN[right]
    lapsed = instance(place)
    if phase == "start":
        user(place, *away)
    if right == "rename":                   # adopting needs it
        first = instance(place)
        first.failpoint = "produce.taken:40:kill"
        user(place, *away)
    with TimedLoad(place) as load:
        if right == "rename":
            first.start()
            first.fallen()
        lapsed.start(joined=False)
        some(load, 50)
        if phase == "work":
            lapsed.wait("slot.joined")
            lapsed.mark()
            take(place, away)
        trouble(lapsed, word)
        some(load, 50)
        user(place, *back)
    place.judge(load)


@pytest.mark.parametrize("right", ["evalsha", "all"])
def test_stop(place, right):
    """Told to end without it: within its limit, and the next one delivers."""
    away, back, word = TAKEN[right]
    lapsed = instance(place, {"stop_timeout": "1s"}).start()
    with TimedLoad(place) as load:
        some(load, 50)
        lapsed.mark()
        take(place, away)
        trouble(lapsed, word)
        assert lapsed.stop() == 0
        user(place, *back)
        lapsed.start()
        some(load, 50)
    place.judge(load)


@pytest.mark.parametrize("how", ["rotated", "demanded"])
def test_password(place, how):
    """WRONGPASS, NOAUTH: one error, a try every five seconds, and back by itself."""
    if how == "rotated":
        lapsed = instance(place)
    else:
        lapsed = place.instance()
        lapsed.errors |= ERRORS
    lapsed.start()
    with TimedLoad(place) as load:
        some(load, 50)
        lapsed.mark()
        if how == "rotated":
            user(place, "resetpass", ">other")
        else:
            place.client.execute_command("ACL", "SETUSER", "default", "resetpass", ">other")
        place.link.cut()
        line = trouble(lapsed, "WRONGPASS" if how == "rotated" else "NOAUTH")
        assert (line["event"], line["level"]) == ("redis.auth", "error")
        assert line["retry_ms"] >= 5000
        asked = place.link.passed["SELECT"]
        if how == "rotated":
            user(place, "resetpass", f">{PASSWORD}")
        else:
            place.client.execute_command("ACL", "SETUSER", "default", "nopass")
        lapsed.wait("redis.connected", limit=10)
        assert place.link.passed["SELECT"] - asked <= 4, "a hot loop"
        some(load, 50)
    place.judge(load)
    assert place.client.exists(f"{PREFIX}:epoch")
