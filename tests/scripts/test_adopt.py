# SPDX-License-Identifier: BSD-2-Clause
"""adopt: batches of dead and left slots, and nobody else's."""

import pytest
from test_slots import LEASE, batch_of, held, lose


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


@pytest.fixture
def late(shard):
    return shard.join("late")


@pytest.fixture
def heir(shard, late):
    return shard.join("heir")


def test_of_a_dead_slot(shard, late, heir):
    batch_of(shard, late, "a", "b")
    original = shard.batch("0:1")
    lose(shard, late)
    answer = heir.adopt(0, 1)
    assert set(answer.entries) == {b"s:a", b"s:b"} and answer.adopted == 1
    assert shard.batch("1:1") == original and shard.batch("0:1") == {}
    assert list(shard.open()) == [b"1:1"]
    assert heir.settle() == b"settled"
    assert shard.keys() == set()


def test_the_late_owner_is_fenced_before_the_first_batch_moves(shard, late, heir):
    batch_of(shard, late, "a")
    batch_of(shard, late, "b")
    lose(shard, late)
    heir.adopt(0, 1)
    assert held(shard)[0] == (b"2", b"", b"2")
    for call in (("settle", 2, 0, 0), ("claim", 3, 10, 1000, 0, 0), ("renew", LEASE), ("leave",)):
        late.fenced(*call)
    again = shard.join("late2")
    assert again.fence == [0, 3, "late2"] and again.left_open == [b"0:2"]


def test_the_epoch_moves_once(shard, late, heir):
    batch_of(shard, late, "a")
    batch_of(shard, late, "b")
    lose(shard, late)
    heir.adopt(0, 1)
    heir.adopt(0, 2)
    assert held(shard)[0] == (b"2", b"", b"2")


def test_of_a_living_slot_is_refused(shard, late, heir):
    batch_of(shard, late, "a")
    before = shard.dump()
    answer = heir.adopt(0, 1)
    assert answer.entries == {} and answer.adopted == 0
    assert shard.dump() == before
    assert late.settle() == b"settled"


def test_of_a_left_slot_at_once(shard, late, heir):
    batch_of(shard, late, "a")
    late.call("leave")
    assert list(heir.adopt(0, 1).entries) == [b"s:a"]
    assert held(shard)[0] == (b"1", b"", b"1")


def test_of_a_slot_taken_again_is_refused(shard, late, heir):
    batch_of(shard, late, "a")
    late.call("leave")
    assert shard.join("new").slot == 0
    assert heir.adopt(0, 1).entries == {}


def test_of_our_own_slots_former_holder(shard, late):
    batch_of(shard, late, "a")
    late.call("leave")
    new = shard.join("new")
    answer = new.adopt(0, 1)
    assert list(answer.entries) == [b"s:a"] and answer.adopted == 1
    assert new.name() == "0:2" and list(shard.open()) == [b"0:2"]
    assert new.settle() == b"settled"


def test_of_a_slot_that_nobody_ever_held(shard, heir):
    """A failover may have forgotten the join and kept the batch."""
    shard.client.hset(shard.name("b:9:4"), "s:a", b"envelope")
    shard.client.hset(shard.name("open"), "9:4", "5 0")
    assert shard.call("adopt", *heir.fence, 1, 9, 4)[7:] == [b"s:a", b"envelope"]
    assert 9 not in held(shard)


def test_a_lost_answer_is_asked_for_again(shard, late, heir):
    batch_of(shard, late, "a", "b")
    lose(shard, late)
    first = shard.call("adopt", *heir.fence, 1, 0, 1)
    state = shard.dump()
    again = shard.call("adopt", *heir.fence, 1, 0, 1)
    assert again[1:] == first[1:]
    assert shard.dump() == state


def test_how_often_is_counted(shard):
    batch_of(shard, shard.join("n0"), "a")
    name = (0, 1)
    for times in range(1, 6):
        lose(shard, Slot(name[0]))
        instance = shard.join(f"n{times}")
        answer = instance.adopt(*name)
        assert answer.adopted == times and list(answer.entries) == [b"s:a"]
        name = (instance.slot, instance.seq)


class Slot:
    def __init__(self, slot):
        self.slot = slot


def test_a_batch_that_is_gone(shard, late, heir):
    lose(shard, late)
    assert heir.adopt(0, 1).entries == {}
    shard.client.hset(shard.name("open"), "0:1", "5 0")
    assert heir.adopt(0, 1).entries == {}
    assert shard.open() == {}
    assert heir.seq == 0


def test_two_heirs_and_one_batch(shard, late, heir):
    other = shard.join("other")
    batch_of(shard, late, "a")
    lose(shard, late)
    assert heir.adopt(0, 1).entries and not other.adopt(0, 1).entries
    assert other.seq == 0


def test_a_parked_batch_comes_without_its_entries(shard, late, heir):
    batch_of(shard, late, "a", "b")
    retry = shard.now() + 30000
    late.settle(groups=[(2, "orders", retry, ["s:a", "s:b"])])
    lose(shard, late)
    answer = heir.adopt(0, 2)
    assert (answer.entries, answer.topic, answer.retry) == ({}, b"orders", retry)
    assert answer.adopted == 1 and heir.seq == 1
    again = heir.claim(seq=1)
    assert set(again.entries) == {b"s:a", b"s:b"}
    assert (again.topic, again.retry, again.adopted) == (b"orders", retry, 1)
    assert heir.settle() == b"settled" and shard.keys() == set()


def test_what_a_stopping_instance_left_open(shard, late, heir):
    batch_of(shard, late, "a", "b")
    late.settle(groups=[(2, "", 0, ["s:b"])])
    late.call("leave")
    answer = heir.adopt(0, 2)
    assert list(answer.entries) == [b"s:b"] and answer.topic == b""


def test_a_batch_whose_holders_keep_dying_is_halved(shard, late):
    """Case 56: whoever reads it may die of one record, which ends up alone."""
    batch_of(shard, late, *"abcdefg")
    rounds = []
    holder = late
    for n in range(7):
        lose(shard, holder)
        holder = shard.join(f"heir{n}")
        for name in sorted(shard.open()):
            holder.adopt(*name.split(b":"))
        rounds.append(sorted(len(shard.batch(name.decode())) for name in shard.open()))
    assert rounds[:2] == [[7], [7]]
    assert rounds[2] == [3, 4]
    assert rounds[-1] == [1] * 7
