# SPDX-License-Identifier: BSD-2-Clause
"""claim of scheduled events: what is due goes into a batch, whole and once."""

import pytest
from harness.wire import Record, ce_id
from test_schedule import LAST_MS, ODD_BYTES


def test_what_is_due_and_nothing_else(daemon_shard):
    shard = daemon_shard
    instance = shard.join()
    due = shard.schedule("now", "+0", "t", "k", "p")[1]
    later = shard.schedule("later", "+60000")[1]
    record = shard.records()[b"s:now"]
    answer = instance.claim()
    assert list(answer.entries) == [b"s:now"]
    envelope = answer.entries[b"s:now"]
    assert (envelope.due, envelope.certainty, envelope.record) == (int(due), "-", record)
    assert answer.next_due == int(later)
    assert (answer.absorbed, answer.followed, answer.adopted) == (0, 0, 0)
    assert (answer.topic, answer.retry) == (b"", 0)
    assert list(shard.due()) == list(shard.records()) == [b"s:later"]
    assert shard.batch(instance.name()) == {b"s:now": envelope.pack()}
    (claimed, adopted) = shard.open()[instance.name().encode()].split()
    assert int(claimed) == answer.now_us // 1000 and adopted == b"0"


def test_never_early(daemon_shard):
    instance = daemon_shard.join()
    for n in range(200):
        due = int(daemon_shard.schedule("a", "+2")[1])
        while True:
            answer = instance.claim()
            if answer.entries:
                break
            assert answer.next_due == due
        assert answer.now_us >= due * 1000
        instance.settle()


def test_nothing_due_uses_no_seq(daemon_shard):
    instance = daemon_shard.join()
    assert instance.claim().next_due == -1
    due = int(daemon_shard.schedule("a", "+60000")[1])
    before = daemon_shard.dump()
    assert instance.claim().next_due == due
    assert daemon_shard.dump() == before
    daemon_shard.schedule("b", "+0")
    assert instance.claim(seq=1).entries


def test_in_the_order_of_due_times(daemon_shard):
    instance = daemon_shard.join()
    base = daemon_shard.now() - 1000
    due = {b"s:%d" % n: base + (n * 7) % 100 for n in range(100)}
    for n in range(100):
        daemon_shard.schedule(n, "+0")
    daemon_shard.client.zadd(daemon_shard.name("due"), due)
    entries = instance.claim().entries
    assert [e.due for e in entries.values()] == sorted(due.values())
    assert {m: e.due for m, e in entries.items()} == due


def test_the_limit_and_the_rest(daemon_shard):
    instance = daemon_shard.join()
    for n in range(10):
        daemon_shard.schedule(n, "+0")
    first = instance.claim(limit=4)
    assert len(first.entries) == 4 and first.next_due <= daemon_shard.now()
    second = instance.claim(limit=4)
    third = instance.claim(limit=4)
    assert [len(b.entries) for b in (second, third)] == [4, 2]
    assert third.next_due == -1
    claimed = [*first.entries, *second.entries, *third.entries]
    assert sorted(claimed) == sorted(b"s:%d" % n for n in range(10))
    assert sorted(daemon_shard.open()) == [b"0:1", b"0:2", b"0:3"]


def test_exactly_the_limit_says_when_to_come_again(daemon_shard):
    instance = daemon_shard.join()
    daemon_shard.schedule("a", "+0")
    later = int(daemon_shard.schedule("b", "+60000")[1])
    assert instance.claim(limit=1).next_due == later


@pytest.mark.parametrize("size,expected", [(1, 1), (999, 1), (2100, 2), (3300, 3), (1 << 20, 5)])
def test_the_limit_of_bytes_and_at_least_one(daemon_shard, size, expected):
    instance = daemon_shard.join()
    for n in range(5):
        daemon_shard.schedule(n, "+0", "t", "", "p" * 1000)
    answer = instance.claim(size=size)
    assert len(answer.entries) == expected
    assert answer.next_due == -1 if expected == 5 else answer.next_due <= daemon_shard.now()


def test_a_thousand_of_the_largest_are_claimed_piece_by_piece(daemon_shard):
    instance = daemon_shard.join()
    for n in range(5):
        daemon_shard.schedule(n, "+0", "t", "", "p" * 1000000)
    answer = instance.claim(limit=1000, size=2500000)
    assert len(answer.entries) == 2
    assert all(len(e.record) > 1000000 for e in answer.entries.values())


def test_five_thousand_at_once(daemon_shard):
    """Above the size of one unpack() in Lua."""
    instance = daemon_shard.join()
    members = {b"s:%d" % n: 1 for n in range(5000)}
    record = Record(1, 0, [(b"t", b"t")]).pack()
    daemon_shard.client.zadd(daemon_shard.name("due"), members)
    daemon_shard.client.hset(daemon_shard.name("rec"), mapping=dict.fromkeys(members, record))
    assert set(instance.claim(limit=5000).entries) == set(members)
    assert daemon_shard.due() == {} and daemon_shard.records() == {}
    assert instance.settle() == b"settled"
    assert daemon_shard.keys() == set()


def test_a_seq_used_before_gives_its_batch_again(daemon_shard):
    instance = daemon_shard.join()
    for n in range(3):
        daemon_shard.schedule(n, "+0")
    first = instance.claim()
    daemon_shard.schedule("new", "+0")
    before = daemon_shard.dump()
    again = instance.claim(seq=1)
    assert again.entries == first.entries
    assert daemon_shard.dump() == before
    assert list(instance.claim().entries) == [b"s:new"]
    assert instance.claim(seq=1).entries == first.entries


def test_a_settled_seq_gives_nothing(daemon_shard):
    instance = daemon_shard.join()
    daemon_shard.schedule("a", "+0")
    instance.claim()
    instance.settle()
    daemon_shard.schedule("b", "+0")
    assert instance.claim(seq=1).entries == {}
    assert list(instance.claim(seq=2).entries) == [b"s:b"]


def test_two_instances_share_without_overlap(daemon_shard):
    one, two = daemon_shard.join("n1"), daemon_shard.join("n2")
    for n in range(20):
        daemon_shard.schedule(n, "+0")
    taken = []
    for instance in (one, two, one, two):
        taken += instance.claim(limit=5).entries
    assert sorted(taken) == sorted(b"s:%d" % n for n in range(20))


@pytest.mark.parametrize("odd", ODD_BYTES)
def test_any_byte(daemon_shard, odd):
    instance = daemon_shard.join()
    name = daemon_shard.schedule(odd, "+0", "t", odd, odd)[2]
    member, envelope = instance.claim_one()
    record = Record.unpack(envelope.record)
    assert member == b"s:" + odd and record.get(b"p") == odd
    assert ce_id(member, record.birth) == name
    assert instance.claim(seq=1).entries == {member: envelope}


@pytest.mark.parametrize("text", [b"", b"\0", b"garbage", b"\x02" + b"\xff" * 50])
def test_a_corrupt_record_passes_through(daemon_shard, text):
    instance = daemon_shard.join()
    for id in ("a", "b", "c"):
        daemon_shard.schedule(id, "+0")
    daemon_shard.client.hset(daemon_shard.name("rec"), "s:b", text)
    entries = instance.claim().entries
    assert entries[b"s:b"].record == text and len(entries) == 3


def test_an_event_without_a_record_comes_empty(daemon_shard):
    instance = daemon_shard.join()
    daemon_shard.schedule("a", "+0")
    daemon_shard.client.hdel(daemon_shard.name("rec"), "s:a")
    assert instance.claim_one()[1].record == b""


@pytest.mark.parametrize("member", [
    b"", b"x", b"s:", b"k:", b"k:x", b"k:0", b"k:99:key", b"k::x", b"k:99999999999999999999:x",
    b"e:", b"e:x", b"\0\xff",
])
def test_a_member_that_makes_no_sense_blocks_nobody(daemon_shard, member):
    instance = daemon_shard.join()
    daemon_shard.schedule("a", "+0")
    daemon_shard.client.zadd(daemon_shard.name("due"), {member: 1})
    daemon_shard.schedule("b", "+0")
    entries = instance.claim().entries
    assert set(entries) == {member, b"s:a", b"s:b"}
    assert instance.settle() == b"settled"
    assert daemon_shard.keys() <= {daemon_shard.name("seen")}


@pytest.mark.parametrize("score", [0, -1, 0.5, float("-inf"), 1e3])
def test_an_odd_score_blocks_nobody(daemon_shard, score):
    instance = daemon_shard.join()
    daemon_shard.schedule("a", "+0")
    daemon_shard.client.zadd(daemon_shard.name("due"), {b"s:a": score})
    daemon_shard.schedule("b", "+0")
    assert set(instance.claim().entries) == {b"s:a", b"s:b"}


def test_the_year_9999_is_a_next_due(daemon_shard):
    instance = daemon_shard.join()
    daemon_shard.schedule("a", f"@{LAST_MS}")
    assert instance.claim().next_due == LAST_MS
