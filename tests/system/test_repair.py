# SPDX-License-Identifier: BSD-2-Clause
"""What is harmed by hand below the prefix, lapsed finds and repairs by itself."""

import pytest
from limits import until
from world import PREFIX

QUICK = {"sweep_interval": "1s", "lease": "1s"}


def repaired(lapsed, finding):
    line = lapsed.wait("sweep.repaired", finding=finding)
    assert line["entries"] == 1
    until(lambda: lapsed.stats()["repaired"] == 1, "the repair to be counted")
    return line["first"]


def test_nothing_to_repair(world):
    lapsed = world.lapsed(lapsed=QUICK)
    ids = world.schedule_many([f"now-{i}" for i in range(200)])
    world.schedule_many([f"later-{i}" for i in range(300)], "+3600000")
    until(lambda: lapsed.stats()["walked"] > 1200, "two walks through all")
    assert lapsed.stats()["repaired"] == 0 and not lapsed.find("sweep.repaired")
    for i in range(300):
        world.cancel(f"later-{i}")
    world.settle(ids)


def test_a_record_without_a_due_time_is_sent(world):
    lapsed = world.lapsed(lapsed=QUICK)
    ids = [world.schedule("job", "+3600000")]
    world.client.zrem(f"{PREFIX}:due", "s:job")
    world.settle(ids)
    assert repaired(lapsed, "record-without-due") == "s:job"


def test_what_is_put_right_in_time_is_left_alone(world):
    """Before it is seen twice nothing is done."""
    lapsed = world.lapsed(lapsed={**QUICK, "sweep_interval": "20s"})
    ids = [world.schedule("job", "+3600000")]
    world.client.zrem(f"{PREFIX}:due", "s:job")
    until(lambda: lapsed.stats()["walked"] > 0, "a step", 30)
    due = world.now() + 2000
    world.client.zadd(f"{PREFIX}:due", {"s:job": due})
    ledger = world.settle(ids)
    assert ledger.records[0].due == due
    assert lapsed.stats()["repaired"] == 0


def test_a_due_time_without_a_record_is_a_dead_letter(world):
    lapsed = world.lapsed(lapsed=QUICK)
    world.schedule("job", "+3600000")
    world.client.hdel(f"{PREFIX}:rec", "s:job")
    assert repaired(lapsed, "due-without-record") == "s:job"
    assert list(world.dead().values()) == ["its record is missing"]


@pytest.mark.parametrize("alive", [True, False])
def test_a_batch_that_is_not_open_is_adopted(world, alive):
    """Whether its slot is held by one that does not know it, or by nobody."""
    lapsed = world.lapsed(lapsed=QUICK)
    ids = [world.schedule("job", "+3600000")]
    slot = 0 if alive else 5
    record = world.client.hget(f"{PREFIX}:rec", "s:job")
    envelope = b"\x01" + world.now().to_bytes(8, "big") + b"-" + record
    fence = world.client.hget(f"{PREFIX}:epoch", "0").decode().rsplit(":", 1)[0]
    world.client.hset(f"{PREFIX}:epoch", slot, f"{fence}:50" if alive else "3::50")
    world.client.hset(f"{PREFIX}:b:{slot}:40", "s:job", envelope)
    world.cancel("job")
    world.settle(ids)
    assert repaired(lapsed, "batch-without-open") == f"{slot}:40"


def test_a_name_without_its_batch_goes(world):
    lapsed = world.lapsed(lapsed=QUICK)
    world.client.hset(f"{PREFIX}:epoch", "5", "3::50")
    world.client.hset(f"{PREFIX}:open", "5:40", "1 0")
    until(lambda: not world.client.exists(f"{PREFIX}:open"), "the name to go")
    world.drained()
    assert lapsed.alive()


def test_dead_letters_that_are_not_whole(world):
    lapsed = world.lapsed(lapsed=QUICK)
    world.client.hset(f"{PREFIX}:why", "s:a@1.0", b"\x01\0\1x\0\3s:a" + bytes(10))
    assert repaired(lapsed, "why-without-dead") == "s:a@1.0"
    assert world.client.zscore(f"{PREFIX}:dead", "s:a@1.0")
    lapsed.mark()
    world.client.zadd(f"{PREFIX}:dead", {"s:b@1.0": 5})
    assert lapsed.wait("sweep.repaired", finding="dead-without-why")["first"] == "s:b@1.0"
    assert world.client.zrange(f"{PREFIX}:dead", 0, -1) == [b"s:a@1.0"]


def test_an_old_backup_is_put_back(world):
    """The epochs go on above those that were used; nothing is lost or sent twice."""
    lapsed = world.lapsed(lapsed=QUICK)
    for n in range(3):
        lapsed.stop()
        lapsed.start()
    epoch = lapsed.find("slot.joined")[-1]["epoch"]
    ids = [world.schedule("before"), world.schedule("later", "+1500")]
    world.ledger.wait(1, 10)
    world.client.hset(f"{PREFIX}:epoch", "0", "1::0")
    world.client.delete(f"{PREFIX}:slots")
    lapsed.mark()
    assert lapsed.wait("slot.joined")["epoch"] > epoch
    world.settle(ids)


def test_two_instances_repair_once(world):
    pair = [world.lapsed(lapsed=QUICK) for _ in range(2)]
    ids = world.schedule_many([f"job-{i}" for i in range(150)], "+3600000")
    world.client.delete(f"{PREFIX}:due")
    world.settle(ids, limit=40)
    assert sum(lapsed.stats()["repaired"] for lapsed in pair) == 150


def test_without_the_right_to_walk_all_else_goes_on(world):
    world.client.execute_command("ACL", "SETUSER", "lapsed", "on", ">pw", "~*", "&*", "+@all",
                                 "-zscan", "-hscan")
    path = world.folder / "password"
    path.write_text("pw")
    path.chmod(0o600)
    lapsed = world.instance(lapsed=QUICK, redis={"username": "lapsed", "password_file": str(path)})
    lapsed.errors |= {"script.error"}
    lapsed.start()
    assert lapsed.wait("script.error")["script"] == "walk"
    ledger = world.settle(world.schedule_many([f"job-{i}" for i in range(100)]))
    assert max(r.time - r.due for r in ledger.records) < 1000
