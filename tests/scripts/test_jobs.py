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


def test_a_job_that_was_touched_in_flight_and_is_refused_waits_for_nothing(shard, job):
    job.claim()
    assert shard.call("touch", job.token)[0] == b"touched"
    job.instance.settle(bury=[(b"s:a", job.token, "too large")])
    assert shard.keys() == {shard.name("dead"), shard.name("why")}


ENDS = {
    "finished": lambda shard, job: shard.call("finish", job.token),
    "cancelled": lambda shard, job: shard.call("cancel", "a"),
    "replaced": lambda shard, job: shard.schedule("a", "+60000", "t", "", "new"),
    "failed": lambda shard, job: shard.call("fail", job.token, "", "+60000"),
}


@pytest.mark.parametrize("end", list(ENDS))
def test_what_has_ended_in_flight_is_not_buried(shard, job, end):
    record = job.claim()
    ENDS[end](shard, job)
    job.instance.settle(bury=[(b"s:a", ce_id(b"s:a", record.birth), "too large")])
    assert not shard.keys() & {shard.name("dead"), shard.name("why")}


@pytest.mark.parametrize("end", list(ENDS))
def test_what_has_ended_in_flight_is_not_parked(shard, job, end):
    job.claim()
    ENDS[end](shard, job)
    job.instance.settle(groups=[(2, "t", shard.now() + 60000, ["s:a"])])
    assert not shard.open()


def two_lives_in_flight(shard, job):
    """The record of the newer one; the older is in the first batch."""
    job.claim()
    shard.schedule("a", "+0", "t", "", "new", "ttr", TTR)
    return job.claim()


def test_the_walk_tells_two_lives_in_flight_apart(shard, job):
    two_lives_in_flight(shard, job)
    assert walk(shard, "rec", "1") == []
    assert shard.due() == {}


def test_of_two_lives_in_flight_the_newer_is_shown_and_cancelled(shard, job):
    record = two_lives_in_flight(shard, job)
    job.instance.settle(2, groups=[(3, "t", shard.now() + 60000, ["s:a"])])
    answer = shard.call("show", "a")
    shown = dict(zip(answer[::2], answer[1::2]))
    assert (shown[b"state"], int(shown[b"birth"])) == (b"parked", record.birth)
    assert shard.call("cancel", "a")[2] == b"parked"
    assert list(shard.open()) == [b"0:1"]


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


# -- touch


@pytest.mark.parametrize("more,span", [([], TTR), (["+500"], 500), (["+604800000"], 604800000)])
def test_touch_moves_the_deadline(shard, job, more, span):
    token = job.deliver()
    before = shard.now()
    word, deadline = shard.call("touch", token, *more)
    assert word == b"touched" and waiting(shard) == {b"s:a": int(deadline)}
    assert before + span <= int(deadline) <= shard.now() + span
    assert shard.call("finish", token) == [b"finished", b"waiting"]


def test_a_touch_before_the_settle_is_kept_by_it(shard, job):
    record = job.claim()
    deadline = int(shard.call("touch", job.token, "+90000")[1])
    assert job.settle(record) == b"settled"
    assert waiting(shard) == {b"s:a": deadline}


@pytest.mark.parametrize("more", [["+0"], ["500"], ["+604800001"], ["+x"], ["+1", "x"], [""]])
def test_touch_refuses(shard, job, more):
    token = job.deliver()
    shard.refused("LAPSE_BADARG", "touch", token, *more)


# -- fail


def test_fail_gives_it_back_with_a_pause(shard):
    job = Job(shard, backoff="1000:2:3000")
    pauses = []
    for attempt in range(4):
        token = job.deliver()
        before = shard.now()
        word, due, next_token = shard.call("fail", token, f"no {attempt}")
        assert word == b"retry" and shard.due() == {b"s:a": int(due)}
        pauses.append((int(due) - before, int(due) - shard.now()))
        assert next_token == ce_id(b"s:a", shard.record("s:a").birth, attempt + 1)
        shard.refused("LAPSE_STALE", "finish", token)
        shard.refused("LAPSE_STALE", "finish", next_token)
        shard.client.zadd(shard.name("due"), {"s:a": shard.now() - 1})
    for (least, most), full in zip(pauses, (1000, 2000, 3000, 3000)):
        assert full * 3 // 4 - 1 <= least and most <= full
    assert history(shard.record("s:a")) == [(n, b"f", b"no %d" % n) for n in range(4)]


def test_jobs_that_fail_together_do_not_come_again_together(shard):
    jobs = [Job(shard, id=f"j{n}", backoff="600000:1:600000") for n in range(1)]
    instance = jobs[0].instance
    for n in range(1, 50):
        shard.schedule(f"j{n}", "+0", "t", "", "", "ttr", TTR, "backoff", "600000:1:600000")
    entries = instance.claim().entries
    assert len(entries) == 50
    records = {m: Record.unpack(e.record) for m, e in entries.items()}
    instance.settle(jobs=[(m, r.birth, r.attempt) for m, r in records.items()])
    shard.client.zadd(shard.name("wait"), {m: 1 for m in records})
    instance.claim()
    assert waiting(shard) == {}
    due = sorted(shard.due().values())
    assert len(due) == 50 and due[-1] - due[0] > 60000 and len(set(due)) > 40


def test_fail_takes_a_pause_of_the_callers(shard, job):
    token = job.deliver()
    before = shard.now()
    due = int(shard.call("fail", token, "", "+7000")[1])
    assert before + 7000 <= due <= shard.now() + 7000


def test_a_failure_before_the_settle(shard, job):
    record = job.claim()
    assert shard.call("fail", job.token)[0] == b"retry"
    assert job.settle(record) == b"settled"
    assert waiting(shard) == {} and job.claim().attempt == 1


def test_the_last_failure_is_its_death(shard):
    job = Job(shard, attempts=1)
    token = job.deliver()
    assert shard.call("fail", token, "why")[0] == b"dead"
    for verb in ("finish", "touch", "fail"):
        shard.refused("LAPSE_STALE", verb, token)
    assert state(shard) == b"dying"
    record = job.claim()
    assert record.attempt == 0 and history(record) == [(0, b"f", b"why")]
    job.instance.settle(bury=[(b"s:a", token, "attempt 1 of 1 failed: why")])
    assert state(shard) == b"dead"


@pytest.mark.parametrize("reason,kept", [
    (b"x" * 1024, b"x" * 1024), (b"x" * 1025, b"x" * 1021 + b"..."),
    ("ü".encode() * 600, "ü".encode() * 510 + b"..."), (b"\0\xff", b"\0\xff"),
])
def test_a_long_reason_is_cut_and_marked(shard, job, reason, kept):
    shard.call("fail", job.deliver(), reason)
    assert history(shard.record("s:a")) == [(0, b"f", kept)]


def test_the_latest_eight_attempts_are_remembered(shard):
    job = Job(shard, attempts=1000)
    for n in range(12):
        shard.call("fail", job.deliver(), f"no {n}")
    assert [n for n, _, _ in history(shard.record("s:a"))] == list(range(4, 12))


# -- tokens


@pytest.mark.parametrize("verb", ["finish", "touch", "fail"])
def test_only_the_token_that_counts_is_heeded(shard, job, verb):
    token = job.deliver().decode()
    head, birth, attempt = token[:-2].rsplit("@", 1)[0], *token.rsplit("@", 1)[1].split(".")
    for stale in (f"{head}@{birth}.1", f"{head}@{int(birth) - 1}.0", "s:other@1.0",
                  f"{head}@{birth}.65535"):
        shard.refused("LAPSE_STALE", verb, stale)
    for bad in ("", "a", "s:a", "s:a@1", "s:a@1.", "s:a@.0", "s:a@x.0", "k:0:a@1.0", "s:a@1.70000",
                "s:%41@1.0", "s:\xff@1.0", "s:a@99999999999999999.0", "a@1.0"):
        shard.refused("LAPSE_BADARG", verb, bad)
    shard.refused("LAPSE_BADARG", verb, token, keys=["lapse"])
    assert shard.call("finish", token)[0] == b"finished"
    shard.refused("LAPSE_STALE", verb, token)


def test_any_id_comes_back_encoded(shard):
    for odd in ("a b", "a%b", "ä", "a@1.0", "\n"):
        job = Job(shard, id=odd)
        shard.call("finish", job.deliver())
    assert shard.keys() == set()


@pytest.mark.parametrize("verb", ["finish", "touch", "fail"])
def test_what_is_not_due_was_not_delivered(shard, verb):
    job = Job(shard, when="+60000")
    shard.refused("LAPSE_STALE", verb, job.token)


def test_a_plain_event_has_nothing_to_finish(shard):
    instance = shard.join()
    token = shard.schedule("a", "+0")[2]
    shard.refused("LAPSE_STALE", "finish", token)
    instance.claim()
    shard.refused("LAPSE_STALE", "finish", token)
    instance.settle()
    shard.refused("LAPSE_STALE", "finish", token)


# -- cancel, replace, show


def state(shard, id="a"):
    answer = shard.call("show", id)
    return dict(zip(answer[::2], answer[1::2]))[b"state"]


def park(shard, job):
    job.claim()
    job.instance.settle(groups=[(2, "t", shard.now() + 60000, ["s:a"])])


STATES = {
    b"scheduled": lambda shard, job: None,
    b"in-flight": lambda shard, job: job.claim(),
    b"parked": park,
    b"waiting": lambda shard, job: job.deliver(),
}


@pytest.mark.parametrize("where", list(STATES))
def test_cancel_tells_where_it_was(shard, job, where):
    STATES[where](shard, job)
    assert state(shard) == where
    answer = shard.call("cancel", "a")
    assert answer[0] == b"cancelled" and answer[2] == where and int(answer[1]) > 0
    shard.refused("LAPSE_STALE", "finish", job.token)
    if where == b"in-flight":
        job.instance.settle(jobs=[("s:a", shard.now_us(), 0)])
    assert shard.keys() == set()


def test_what_is_dying_is_not_rescheduled(shard):
    job = Job(shard, attempts=1)
    shard.call("fail", job.deliver(), "why")
    assert shard.call("reschedule", "a", "+60000") == [b"dying"] and state(shard) == b"dying"
    shard.schedule("a", "+0")
    assert shard.call("reschedule", "a", "+60000")[0] == b"rescheduled"


def test_cancel_before_it_is_buried(shard):
    job = Job(shard, attempts=1)
    shard.call("fail", job.deliver(), "why")
    assert shard.call("cancel", "a")[2] == b"dying" and shard.keys() == set()


def test_cancel_tells_of_the_dead(shard):
    job = Job(shard, attempts=1)
    token = job.deliver()
    shard.call("fail", token, "why")
    job.claim()
    assert shard.call("cancel", "a") == [b"in-flight"]
    job.instance.settle(bury=[(b"s:a", token, "r")])
    word, died, name = shard.call("cancel", "a")
    assert word == b"dead" and name == token and abs(int(died) - shard.now()) < 60000
    assert shard.keys() == {shard.name("dead"), shard.name("why")}


@pytest.mark.parametrize("where", list(STATES))
@pytest.mark.parametrize("terms", [[], ["ttr", TTR]])
def test_a_new_life_ends_the_old_one(shard, job, where, terms):
    STATES[where](shard, job)
    word, due, token = shard.schedule("a", "+60000", "t", "", "new", *terms)
    assert word == b"replaced" and shard.due() == {b"s:a": int(due)} and waiting(shard) == {}
    shard.refused("LAPSE_STALE", "finish", job.token)
    if where == b"in-flight":
        record = Record.unpack(next(iter(shard.batch("0:1").values()))[10:])
        job.settle(record)
    assert waiting(shard) == {} and shard.record("s:a").get(b"p") == b"new"
    assert not shard.open()


def test_two_lives_in_flight_the_newer_waits(shard, job):
    old = job.claim()
    shard.schedule("a", "+0", "t", "", "new", "ttr", TTR)
    new = job.claim()
    for seq, record in ((1, old), (2, new)):
        job.instance.settle(seq, jobs=[("s:a", record.birth, record.attempt)])
    assert list(waiting(shard)) == [b"s:a"] and shard.record("s:a").birth == new.birth
    shard.refused("LAPSE_STALE", "finish", job.token)
    assert shard.call("finish", ce_id(b"s:a", new.birth))[0] == b"finished"
    assert shard.keys() == set()


@pytest.mark.parametrize("where", list(STATES))
def test_nx_refuses_while_it_lives(shard, job, where):
    STATES[where](shard, job)
    shard.refused("LAPSE_EXISTS", "schedule", "a", "+0", "t", "", "", "nx", "1")


def test_a_waiting_job_is_not_rescheduled(shard, job):
    job.deliver()
    assert shard.call("reschedule", "a", "+1") == [b"waiting"]
    assert state(shard) == b"waiting"


def test_show_tells_terms_and_history(shard):
    job = Job(shard, backoff="1000:1.5:60000")
    shard.call("fail", job.deliver(), "no answer", "+0")
    job.deliver()
    answer = shard.call("show", "a")
    shown = dict(zip(answer[::2], answer[1::2]))
    assert shown[b"state"] == b"waiting" and int(shown[b"deadline"]) == waiting(shard)[b"s:a"]
    assert shown[b"ttr"] == b"30000" and shown[b"attempts"] == b"5"
    assert shown[b"backoff"] == b"1000:1.5:60000" and shown[b"attempt"] == b"1"
    number, how, _, reason = shown[b"history"].split(b" ", 3)
    assert (number, how, reason) == (b"1", b"failed", b"no answer")


def test_a_replayed_job_begins_anew(shard):
    job = Job(shard, attempts=1)
    token = job.deliver()
    shard.call("fail", token, "why")
    job.claim()
    job.instance.settle(bury=[(b"s:a", token, "r")])
    shard.call("dead_replay", token)
    record = job.claim()
    assert record.attempt == 0 and history(record) == [] and record.get(b"j")[-1] == 0


# -- terms


@pytest.mark.parametrize("options", [
    ["ttr", "0"], ["ttr", "604800001"], ["ttr", "x"], ["ttr", "-1"], ["ttr", ""],
    ["ttr", "1", "ttr", "1"], ["attempts", "1"], ["backoff", "1:1:1"],
    ["ttr", "1", "attempts", "0"], ["ttr", "1", "attempts", "1001"], ["ttr", "1", "attempts", "x"],
    ["ttr", "1", "backoff", "1"], ["ttr", "1", "backoff", "1:2"], ["ttr", "1", "backoff", "a:2:3"],
    ["ttr", "1", "backoff", "1:2:3:4"], ["ttr", "1", "backoff", "9:2:3"],
    ["ttr", "1", "backoff", "1:0.5:3"], ["ttr", "1", "backoff", "1:1001:3"],
    ["ttr", "1", "backoff", "1:1.2.3:3"], ["ttr", "1", "backoff", "1:2:604800001"],
])
def test_terms_that_are_refused(shard, options):
    shard.refused("LAPSE_BADARG", "schedule", "a", "+0", "t", "", "", *options)


@pytest.mark.parametrize("pending,limit,moved", [
    ("+60000", "+30000", False), ("+60000", "+90000", True), (None, "+1", True),
])
def test_if_due_before(shard, pending, limit, moved):
    if pending:
        shard.schedule("a", pending)
    args = ["a", "+70000", "t", "", "new", "if_due_before", limit]
    if moved:
        assert shard.call("schedule", *args)[0] == (b"replaced" if pending else b"scheduled")
    else:
        shard.refused("LAPSE_EXISTS", "schedule", *args)
    shard.refused("LAPSE_BADARG", "schedule", *args[:-1], "x")


# -- bulk


def bulk(*events):
    flat = []
    for event in events:
        flat += [len(event), *event]
    return flat


def test_each_of_many_is_answered_for_itself(shard):
    shard.schedule("old")
    answers = shard.call("schedule_bulk", *bulk(
        ["a", "+60000", "t", "", "1"], ["b", "+1", "bad topic", "", ""], ["c", "+0"],
        ["old", "+5", "t", "", "", "nx", "1"], ["old", "+9", "t", "", "2"],
        ["d", "+1", "t", "", "", "ttr", "1", "attempts", "0"], ["a", "+7", "t", "", "3"]))
    assert words(answers) == ["scheduled", "LAPSE_BADARG", "LAPSE_BADARG", "LAPSE_EXISTS", "replaced",
                              "LAPSE_BADARG", "replaced"]
    assert set(shard.due()) == {b"s:a", b"s:old"} == set(shard.records())
    assert answers[0][2] != answers[6][2]


def words(answers):
    return [str(a).split()[0] if isinstance(a, Exception) else a[0].decode() for a in answers]


def test_an_event_that_comes_twice(shard):
    answers = shard.call("schedule_bulk", *bulk(
        ["a", "+60000", "t", "", "1"], ["b", "+1", "t", "", ""], ["a", "+7", "t", "", "2"],
        ["a", "+9", "t", "", "3"]))
    assert words(answers) == ["scheduled", "scheduled", "replaced", "replaced"]
    assert len({a[2] for a in answers}) == 4
    assert ce_id(b"s:a", shard.record("s:a").birth) == answers[3][2]
    assert shard.record("s:a").get(b"p") == b"3" and shard.due()[b"s:a"] == int(answers[3][1])


def test_options_see_what_came_before_in_the_same_call(shard):
    shard.schedule("old", "+60000")
    answers = shard.call("schedule_bulk", *bulk(
        ["a", "+60000", "t", "", "1", "nx", "1"], ["a", "+7", "t", "", "2", "nx", "1"],
        ["a", "+1", "t", "", "3", "if_due_before", "+50000"],
        ["a", "+40000", "t", "", "4", "if_due_before", "+70000"],
        ["old", "+1", "t", "", "5", "if_due_before", "+1"],
        ["b", "+1", "t", "", "6", "if_due_before", "soon"]))
    assert words(answers) == ["scheduled", "LAPSE_EXISTS", "LAPSE_EXISTS", "replaced",
                              "LAPSE_EXISTS", "LAPSE_BADARG"]
    assert set(shard.due()) == {b"s:a", b"s:old"} and shard.record("s:a").get(b"p") == b"4"


@pytest.mark.parametrize("where", ["claim", "deliver"])
def test_in_bulk_a_new_life_ends_a_job(shard, job, where):
    getattr(job, where)()
    answers = shard.call("schedule_bulk", *bulk(
        ["a", "+1", "t", "", "", "nx", "1"], ["a", "+60000", "t", "", "new"]))
    assert words(answers) == ["LAPSE_EXISTS", "replaced"] and waiting(shard) == {}
    shard.refused("LAPSE_STALE", "finish", job.token)
    assert shard.record("s:a").get(b"p") == b"new"


def test_in_bulk_nx_looks_into_the_batches(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    assert instance.claim().entries
    events = bulk(*([name, "+1", "t", "", "", "nx", "1"] for name in ("a", "b")))
    assert words(shard.call("schedule_bulk", *events)) == ["LAPSE_EXISTS", "scheduled"]
    shard.call("cancel", "b")
    shard.client.hset(shard.name("open"), mapping={f"9:{i}": "1 0" for i in range(10000)})
    assert words(shard.call("schedule_bulk", *events)) == ["LAPSE_EXISTS", "LAPSE_UNSURE"]
    assert words(shard.call("cancel_bulk", "a", "b")) == ["in-flight", "LAPSE_UNSURE"]


def test_nothing_of_a_bulk_is_stored(shard):
    with shard.client.pubsub() as heard:
        heard.subscribe(shard.name("wake"))
        heard.get_message(timeout=5)
        assert words(shard.call("schedule_bulk", *bulk(
            ["", "+1", "t", "", ""], ["a", "+1", "", "", ""]))) == ["LAPSE_BADARG"] * 2
        shard.schedule("a", "+60000")
        heard.get_message(timeout=5)
        assert words(shard.call("schedule_bulk", *bulk(
            ["a", "+1", "t", "", "", "nx", "1"]))) == ["LAPSE_EXISTS"]
        assert heard.get_message(timeout=0.2) is None


@pytest.mark.parametrize("where", ["parked", "in-flight", "waiting"])
def test_a_list_with_an_id_twice(shard, job, where):
    STATES[where.encode()](shard, job)
    first, second = shard.call("cancel_bulk", "a", "a")
    assert first[0] == b"cancelled" and first[2] == where.encode()
    assert second == [b"in-flight" if where == "in-flight" else b"not-found"]


def test_a_thousand_at_once(shard):
    answers = shard.call("schedule_bulk", *bulk(*([n, "+0", "t", "", "x"] for n in range(1000))))
    assert len(answers) == 1000 == len(shard.due()) == len(shard.records())
    shard.refused("LAPSE_BADARG", "schedule_bulk",
                  *bulk(*([n, "+0", "t", "", "x"] for n in range(1001))))
    answers = shard.call("cancel_bulk", *range(1000))
    assert {a[0] for a in answers} == {b"cancelled"} and shard.keys() == set()


@pytest.mark.parametrize("args", [[], ["x"], ["2", "a"], ["5", "a", "+0", "t", "", "", "1"], ["-1"]])
def test_bulk_that_can_not_be_taken_apart(shard, args):
    shard.refused("LAPSE_BADARG", "schedule_bulk", *args)


def test_bulk_wakes_for_the_first(shard):
    with shard.client.pubsub() as heard:
        heard.subscribe(shard.name("wake"))
        heard.get_message(timeout=5)
        answers = shard.call("schedule_bulk", *bulk(
            ["a", "+60000", "t", "", ""], ["b", "+30000", "t", "", ""]))
        message = heard.get_message(timeout=5)
    assert message["data"] == answers[1][1]


def test_cancel_by_list(shard):
    shard.schedule("a")
    answers = shard.call("cancel_bulk", "a", "b", "", "x" * 1025)
    assert answers[0][0] == b"cancelled" and answers[1] == [b"not-found"]
    assert all(isinstance(a, Exception) for a in answers[2:])
    shard.refused("LAPSE_BADARG", "cancel_bulk")


def test_purge_takes_a_topic_in_steps(daemon_shard):
    shard = daemon_shard
    job = Job(shard, id="waits")
    job.deliver()
    for n in range(300):
        shard.schedule(n, "+60000", "t" if n % 3 else "other", "k", "p")
    assert purge(shard) == (201, 0)
    assert len(shard.due()) == len(shard.records()) == 100 and waiting(shard) == {}


def purge(shard, count=50):
    """All steps: how many were taken back, how many can't be."""
    cursor, taken, flying = b"0", 0, 0
    while True:
        cursor, _, done, on_their_way = shard.call("purge", "t", cursor, count)
        taken, flying = taken + int(done), flying + int(on_their_way)
        if cursor == b"0":
            return taken, flying


def test_purge_takes_what_is_parked_and_counts_what_flies(daemon_shard):
    shard = daemon_shard
    instance = shard.join()
    for n in range(30):
        shard.schedule(n, "+0", "t" if n % 3 else "other")
    shard.schedule("job", "+0", "t", "", "", "ttr", TTR)
    shard.call("setex", "1", "v", key="k")
    members = sorted(instance.claim().entries)
    parked = [m for m in members if m[:3] in (b"s:1", b"s:2", b"s:j")]
    instance.settle(groups=[(2, "t", shard.now() + 60000, parked)])
    for n in range(5):
        shard.schedule(f"f{n}", "+0", "t")
    assert len(instance.claim(seq=3).entries) >= 5
    shard.schedule("pending", "+60000", "t")
    assert purge(shard, 3) == (len([m for m in parked if m == b"s:job" or int(m[2:]) % 3]) + 1, 5)
    left = {m for m in shard.batch("0:2")}
    assert left == {m for m in parked if m != b"s:job" and int(m[2:]) % 3 == 0}
    assert not shard.due().keys() & {b"s:pending"} and waiting(shard) == {}
    assert purge(shard) == (0, 5)


def test_purge_refuses_other_cursors(daemon_shard):
    for args in (["t", "x", "1"], ["t", "-1", "1"], ["t", "0", "0"], ["t", "0", "1001"],
                 ["t", "0"], ["t", "0", "1", "x"]):
        daemon_shard.refused("LAPSE_BADARG", "purge", *args)
