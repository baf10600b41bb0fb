# SPDX-License-Identifier: BSD-2-Clause
"""Events with a time to run, from their first delivery to their end."""

import datetime

import pytest
import redis

from limits import until
from world import PREFIX

TTR = 400


def of(world, name, count):
    """The records of that job, once there are so many."""
    subject = name.encode()

    def mine():
        return [r for r in world.ledger.read() if r.headers["ce_subject"] == subject]
    until(lambda: len(mine()) >= count, f"{count} deliveries of {name}", 20)
    return mine()


def deadline(record):
    text = record.headers["ce_lapsedeadline"].decode().replace("Z", "+00:00")
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def schedule(world, name, *options, when="+0", payload=b"p"):
    return world.schedule(name, when, None, "key", payload, *options)


def call(world, verb, *args):
    return world.scripts.call(verb, [PREFIX], args)


def test_it_is_finished_with_the_ce_id_it_came_with(world):
    world.lapsed()
    schedule(world, "job", "ttr", 60000, "attempts", 5, "backoff", "1000:2:60000")
    (record,) = of(world, "job", 1)
    assert record.headers["ce_lapseattempt"] == b"1"
    assert abs(deadline(record) - record.time - 60000) < 5000
    assert record.headers["ce_lapseshard"] == PREFIX.encode()
    assert call(world, "finish", record.id)[0] == b"finished"
    world.drained()
    assert len(world.ledger.finish()) == 1
    with pytest.raises(redis.ResponseError, match="LAPSE_STALE"):
        call(world, "finish", record.id)


def finish_latest(world, name):
    """Before the next attempt, which a slow machine may miss once or twice."""
    def finished():
        try:
            return call(world, "finish", of(world, name, 1)[-1].id)
        except redis.ResponseError as e:
            assert "LAPSE_STALE" in str(e)
    until(finished, f"{name} to be finished", 10)


def test_past_its_deadline_it_is_delivered_again(world):
    """Case 34: whoever finishes late is told so, and changes nothing."""
    world.lapsed()
    schedule(world, "job", "ttr", TTR, "attempts", 50)
    first, second = of(world, "job", 2)[:2]
    assert second.id != first.id and second.value == first.value == b"p"
    assert second.headers["ce_lapseattempt"] == b"2"
    assert second.time >= deadline(first)
    with pytest.raises(redis.ResponseError, match="LAPSE_STALE"):
        call(world, "finish", first.id)
    finish_latest(world, "job")
    world.drained()


def test_its_time_to_run_begins_with_its_delivery(world):
    """Case 44, 53: a delay longer than the time to run; it comes once."""
    world.lapsed()
    schedule(world, "job", "ttr", 5000, when="+6000")
    (record,) = of(world, "job", 1)
    assert record.headers["ce_lapseattempt"] == b"1" and not world.ledger.early()
    assert deadline(record) >= record.due + 5000
    assert call(world, "finish", record.id)[0] == b"finished"
    world.drained()
    assert len(world.ledger.finish()) == 1


def test_a_missed_deadline_is_one_attempt(world):
    """Case 49: with attempts left it comes again, and dies after the last, not before."""
    lapsed = world.lapsed()
    lapsed.errors.add("event.buried")
    schedule(world, "job", "ttr", TTR, "attempts", 3)
    records = of(world, "job", 3)
    world.drained(dead=True)
    assert [r.headers["ce_lapseattempt"] for r in world.ledger.finish()] == [b"1", b"2", b"3"]
    assert list(world.dead()) == [records[2].id]
    shown = world.scripts.call("show", [PREFIX], ["job"])
    history = [v.split()[:2] for n, v in zip(shown[::2], shown[1::2]) if n == b"history"]
    assert history == [[b"%d" % n, b"late"] for n in (1, 2, 3)]


def test_twenty_thousand_failures_at_once(world):
    """Case 49: every one of them is a dead letter."""
    lapsed = world.lapsed()
    lapsed.errors |= {"event.buried", "dead.many"}
    n, lot = 20000, 1000
    for first in range(0, n, lot):
        args = []
        for k in range(first, first + lot):
            args += [9, f"job-{k}", "+0", world.topic, "", "", "ttr", 600000, "attempts", 1]
        answers = call(world, "schedule_bulk", *args)
        assert {a[0] for a in answers} == {b"scheduled"}
    ids = {r.id for r in world.ledger.wait(n, limit=60)}
    pipe = world.client.pipeline(transaction=False)
    for id in ids:
        pipe.execute_command(*world.scripts.command("fail", [PREFIX], [id, "no answer"]))
    assert {a[0] for a in pipe.execute()} == {b"dead"}
    until(lambda: world.client.zcard(f"{PREFIX}:dead") == n, "all to be buried", 120)
    world.drained(dead=True)
    assert set(world.dead()) == ids and len(ids) == n


def test_what_keeps_failing_is_told_to_the_dead_letter_topic(world):
    dead = world.new_topic()
    lapsed = world.lapsed(lapsed={"dead_letter_topic": dead})
    lapsed.errors.add("event.buried")
    schedule(world, "job", "ttr", 60000, "attempts", 3, "backoff", "20:2:100")
    for n in range(3):
        record = of(world, "job", n + 1)[n]
        assert record.headers["ce_lapseattempt"] == b"%d" % (n + 1)
        answer = call(world, "fail", record.id, f"no answer {n}")
        assert answer[0] == (b"retry" if n < 2 else b"dead")
    told = of(world, "job", 4)[3]
    assert told.topic == dead and told.id == record.id
    reason = "attempt 3 of 3 failed: no answer 2"
    assert told.headers["ce_lapsereason"] == reason.encode()
    assert told.headers["ce_lapsetopic"] == world.topic.encode()
    world.drained(dead=True)
    assert world.dead() == {record.id: reason}
    shown = world.show("job")
    assert shown[b"state"] == b"dead" and shown[b"reason"] == reason.encode()


def test_touched_in_time_it_does_not_come_again(world):
    world.lapsed()
    schedule(world, "job", "ttr", 4000)      # longer than we take to touch it
    (record,) = of(world, "job", 1)
    call(world, "touch", record.id, "+60000")
    marker = schedule(world, "marker", when="+4500")
    until(lambda: marker in {r.id for r in world.ledger.read()}, "the marker", 20)
    assert len([r for r in world.ledger.records if r.id == record.id]) == 1
    assert call(world, "finish", record.id) == [b"finished", b"waiting"]
    world.drained()


def test_a_killed_instance_costs_no_job(world):
    """Delivered or not when it died: all are finished, each by one token."""
    first = world.lapsed(lapsed={"lease": "1s"})
    names = [f"job-{n}" for n in range(200)]
    for name in names:
        schedule(world, name, "ttr", 5000, "attempts", 100)
    until(lambda: len(world.ledger.read()) > 0, "the first job", 20)
    first.kill()
    world.instances.remove(first)
    world.lapsed(lapsed={"lease": "1s"})
    finished = set()

    def consume():
        for record in world.ledger.read():
            if record.id not in finished:
                try:
                    call(world, "finish", record.id)
                except redis.ResponseError as error:
                    assert "LAPSE_STALE" in str(error)
                else:
                    finished.add(record.id)
        return len(finished) == len(names)
    until(consume, "every job to be finished", 40)
    world.drained()
    assert {i.split(b"@")[0] for i in finished} == {b"s:" + n.encode() for n in names}
