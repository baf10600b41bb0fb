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


def test_past_its_deadline_it_is_delivered_again(world):
    world.lapsed()
    schedule(world, "job", "ttr", TTR, "attempts", 5)
    first, second = of(world, "job", 2)[:2]
    assert second.id != first.id and second.value == first.value == b"p"
    assert second.headers["ce_lapseattempt"] == b"2"
    assert second.time >= deadline(first)
    with pytest.raises(redis.ResponseError, match="LAPSE_STALE"):
        call(world, "finish", first.id)
    call(world, "finish", of(world, "job", 2)[-1].id)
    world.drained()
