# SPDX-License-Identifier: BSD-2-Clause
"""The life of an event with a time to run (src/lua/job.lua)."""

import struct

import pytest
from harness.wire import Obituary, Record, ce_id

TTR = 30000


class Job:
    """One scheduled job and the instance that delivers it."""

    def __init__(self, shard, id="a", ttr=TTR, attempts=5, backoff="0:1:0", when="+0", *options):
        self.shard = shard
        self.id = id
        self.member = b"s:" + id.encode()
        self.instance = shard.join()
        terms = ["ttr", ttr, "attempts", attempts, "backoff", backoff]
        answer = shard.schedule(id, when, "t", "k", "p", *terms, *options)
        self.due, self.token = answer[1], answer[2]

    def claim(self):
        """Its record in the batch."""
        entries = self.instance.claim().entries
        return Record.unpack(entries[self.member].record)

    def settle(self, record):
        return self.instance.settle(jobs=[(self.member, record.birth, record.attempt)])

    def deliver(self):
        """Claim, Kafka's acknowledgement, settle; gives the ce_id that was sent."""
        record = self.claim()
        assert self.settle(record) == b"settled"
        return ce_id(self.member, record.birth, record.attempt)

    def run_out(self):
        """Its deadline passes."""
        self.shard.client.zadd(self.shard.name("wait"), {self.member: self.shard.now() - 1})


@pytest.fixture
def job(shard):
    return Job(shard)


def waiting(shard):
    return {m: int(s) for m, s in shard.client.zrange(shard.name("wait"), 0, -1, withscores=True)}


def history(record):
    found = []
    for tag, value in record.fields:
        if tag == b"a":
            attempt, ended, kind = struct.unpack_from(">HQc", value)
            found.append((attempt, kind, value[11:]))
    return found


def test_its_time_to_run_counts_from_the_settle(shard, job):
    record = job.claim()
    assert waiting(shard) == {}
    before = shard.now()
    job.settle(record)
    after = shard.now()
    assert before + TTR <= waiting(shard)[b"s:a"] <= after + TTR
    assert shard.keys() == {shard.name("wait"), shard.name("rec")}


def test_finish_ends_it(shard, job):
    token = job.deliver()
    assert token == job.token
    assert shard.call("finish", token) == [b"finished", b"waiting"]
    assert shard.keys() == set()
    shard.refused("LAPSE_STALE", "finish", token)


def test_a_consumer_may_be_faster_than_the_settle(shard, job):
    record = job.claim()
    assert shard.call("finish", job.token) == [b"finished", b"in-flight"]
    assert job.settle(record) == b"settled"
    assert shard.keys() == set()


def test_past_the_deadline_it_comes_again(shard, job):
    first = job.deliver()
    job.run_out()
    record = job.claim()
    assert record.attempt == 1 and history(record) == [(0, b"t", b"")]
    assert waiting(shard) == {}
    shard.refused("LAPSE_STALE", "finish", first)
    job.settle(record)
    second = ce_id(b"s:a", record.birth, 1)
    shard.refused("LAPSE_STALE", "finish", first)
    assert shard.call("finish", second) == [b"finished", b"waiting"]
    assert shard.keys() == set()


def test_the_claim_tells_of_the_next_deadline(shard, job):
    job.deliver()
    assert job.instance.claim().next_due == waiting(shard)[b"s:a"]


def test_the_daemons_hear_of_a_deadline(shard, job):
    with shard.client.pubsub() as heard:
        heard.subscribe(shard.name("wake"))
        heard.get_message(timeout=5)
        job.deliver()
        message = heard.get_message(timeout=5)
    assert int(message["data"]) == waiting(shard)[b"s:a"]


def test_after_its_last_attempt_it_is_buried(shard):
    job = Job(shard, attempts=2)
    job.deliver()
    job.run_out()
    last = job.deliver()
    job.run_out()
    record = job.claim()
    assert record.attempt == 1 and record.get(b"j")[-1] == 1
    assert history(record) == [(0, b"t", b""), (1, b"t", b"")]
    assert shard.records() == {}
    shard.refused("LAPSE_STALE", "finish", last)
    job.instance.settle(bury=[(b"s:a", last, "attempts used up")])
    obituary = Obituary.unpack(shard.client.hget(shard.name("why"), last))
    assert obituary.member == b"s:a"
    assert shard.keys() == {shard.name("dead"), shard.name("why")}


def test_a_job_that_kafka_refuses_is_buried_and_nowhere_else(shard, job):
    job.claim()
    job.instance.settle(bury=[(b"s:a", job.token, "too large")])
    assert shard.keys() == {shard.name("dead"), shard.name("why")}


def walk(shard, part, repair="0"):
    return shard.call("walk", part, "0", "100", repair)[2:]


def test_the_walk_leaves_every_state_alone(shard, job):
    parts = ("due", "rec", "wait", "open")
    assert [walk(shard, part) for part in parts] == [[]] * 4
    record = job.claim()
    assert [walk(shard, part) for part in parts] == [[]] * 4
    job.settle(record)
    assert [walk(shard, part) for part in parts] == [[]] * 4


def test_the_walk_finds_a_job_whose_batch_is_lost(shard, job):
    job.claim()
    shard.client.delete(shard.name("b:0:1"), shard.name("open"))
    assert walk(shard, "rec", "1") == [b"record-without-due", b"s:a", b"put back"]
    assert job.deliver() == job.token


def test_the_walk_buries_a_wait_without_its_record(shard, job):
    job.deliver()
    shard.client.delete(shard.name("rec"))
    assert walk(shard, "wait", "1") == [b"wait-without-record", b"s:a", b"buried"]
    assert shard.keys() == {shard.name("dead"), shard.name("why")}


def test_the_walk_ends_a_wait_beside_a_due_time(shard, job):
    job.deliver()
    shard.client.zadd(shard.name("due"), {"s:a": shard.now() + 60000})
    assert walk(shard, "wait", "1") == [b"wait-beside-due", b"s:a", b"removed"]
    assert shard.keys() == {shard.name("due"), shard.name("rec")}
