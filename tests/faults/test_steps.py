# SPDX-License-Identifier: BSD-2-Clause
"""Killed, or stopped for longer than the lease, at every step of its work.

Cases 19, 31-33: between any two effects; 34, 35: the late owner finds that it
owns nothing any more.
"""

import pytest

from load import Load
from limits import until
from place import some
from world import PREFIX

WHEN = ("ask", "sent", "answer", "done")

# How often the point is passed before it takes effect.
STEPS = {
    **{f"join.{w}": 1 for w in WHEN},
    **{f"renew.{w}": 3 for w in WHEN},
    **{f"claim.{w}": 10 for w in WHEN},
    "produce.ask": 40, "produce.taken": 40, "report": 40,
    **{f"settle.{w}": 10 for w in WHEN},
    **{f"walk.{w}": 3 for w in WHEN},
}


def strike(victim, how):
    """Once its failure point has been reached."""
    if how == "kill":
        victim.fallen()
    else:
        victim.halted()


def revive(place, victim, how, point):
    """As an operator's supervisor would, or as a machine that wakes up."""
    if how == "kill":
        victim.start()
        return
    heir = place.lapsed()
    if not point.startswith("join"):
        # It is alone now, and has looked around since the lease ended.
        until(lambda: heir.stats()["instances"] == 1, "the end of the lease")
    victim.cont()
    victim.wait("slot.joined")


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("point", STEPS)
def test_step(place, point, how):
    victim = place.instance()
    victim.failpoint = f"{point}:{STEPS[point]}:{how}"
    with Load(place) as load:
        victim.start(joined=False)
        strike(victim, how)
        some(load, 50)
        revive(place, victim, how, point)
        some(load, 50)
    place.judge(load)


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("when", WHEN)
def test_adopt(place, when, how):
    """The heir falls as well, over what it inherits."""
    first = place.instance()
    first.failpoint = "produce.taken:40:kill"
    victim = place.instance()
    victim.failpoint = f"adopt.{when}:1:{how}"
    with Load(place) as load:
        first.start()
        strike(first, "kill")
        victim.start()
        strike(victim, how)
        some(load, 50)
        revive(place, victim, how, f"adopt.{when}")
    place.judge(load)


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("when", WHEN)
def test_leave(place, when, how):
    """At its end, having been told to stop."""
    victim = place.instance()
    victim.failpoint = f"leave.{when}:1:{how}"
    with Load(place) as load:
        victim.start()
        some(load, 100)
        victim.term()
        strike(victim, how)
        some(load, 50)
        heir = place.lapsed()
        if how == "stop":
            until(lambda: heir.stats()["instances"] == 1, "the end of the lease")
            victim.cont()
            assert victim.ended() == 0
    place.judge(load)


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("when", WHEN)
def test_forget(place, when, how):
    """A failover lost a claim: the batch is gone, its lives are pending again."""
    ids = place.schedule_many([f"job-{i}" for i in range(100)])
    before = {name: place.client.dump(f"{PREFIX}:{name}") for name in ("due", "rec")}
    victim = place.instance(lapsed={"max_inflight": "100", "claim_limit": "100"})
    victim.failpoint = f"forget.{when}:1:{how}"
    place.bus.hold()
    victim.start()
    until(lambda: not place.client.exists(f"{PREFIX}:due"), "all to be claimed")
    pipe = place.client.pipeline()
    pipe.delete(f"{PREFIX}:open", *place.client.keys(f"{PREFIX.replace('{', '[{]')}:b:*"))
    for name, content in before.items():
        pipe.restore(f"{PREFIX}:{name}", 0, content)
    pipe.execute()
    place.bus.let_go()
    strike(victim, how)
    revive(place, victim, how, f"forget.{when}")
    ledger = place.settle(ids, duplicates=True)
    # Some may have been claimed anew before they were forgotten.
    assert sum(ledger.duplicates().values()) <= 2 * len(ids)
