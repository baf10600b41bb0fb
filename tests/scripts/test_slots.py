# SPDX-License-Identifier: BSD-2-Clause
"""join, renew and leave: who holds a slot, and under which epoch."""

import pytest

LEASE = 60000


def held(shard):
    """slot -> (epoch, nonce, highest seq)"""
    epochs = shard.client.hgetall(shard.name("epoch"))
    return {int(k): tuple(v.split(b":")) for k, v in epochs.items()}


def renew(instance, *args):
    """now us, {slot: (lease left, instance)}, orphaned batches"""
    answer = instance.call("renew", *(args or (LEASE,)))
    n = int(answer[1])
    rows = [answer[2 + 3 * i : 5 + 3 * i] for i in range(n)]
    return int(answer[0]), {int(s): (int(left), who) for s, left, who in rows}, answer[2 + 3 * n :]


def lose(shard, instance):
    """The lease ends without a renewal."""
    value = shard.client.hget(shard.name("slots"), instance.slot)
    epoch, _, who = value.split(b":", 2)
    ended = b"%s:%d:%s" % (epoch, shard.now(), who)
    shard.client.hset(shard.name("slots"), instance.slot, ended)


def batch_of(shard, instance, *ids):
    """Events claimed together, as an open batch of this instance."""
    for id in ids:
        shard.schedule(id, "+0")
    assert set(instance.claim().entries) == {b"s:" + id.encode() for id in ids}
    return instance.name()


def test_the_lowest_free_slot(daemon_shard):
    first = daemon_shard.join("n1")
    second = daemon_shard.join("n2")
    third = daemon_shard.join("n3")
    assert [i.slot for i in (first, second, third)] == [0, 1, 2]
    assert [i.epoch for i in (first, second, third)] == [1, 1, 1]
    second.call("leave")
    assert daemon_shard.join("n4").fence == [1, 2, "n4"]


def test_time_and_lease(daemon_shard):
    before = daemon_shard.now()
    answer = daemon_shard.call("join", "host:1/x y", "n1", 5000)
    after = daemon_shard.now()
    assert before <= int(answer[0]) // 1000 <= after
    epoch, ends, who = daemon_shard.client.hget(daemon_shard.name("slots"), "0").split(b":", 2)
    assert before + 5000 <= int(ends) <= after + 5000
    assert (epoch, who) == (b"1", b"host:1/x y")


def test_a_lost_answer_of_join_is_asked_for_again(daemon_shard):
    first = daemon_shard.join("n1")
    batch_of(daemon_shard, first, "a")
    again = daemon_shard.join("n1")
    assert again.fence == first.fence and again.seq == 1
    assert held(daemon_shard) == {0: (b"1", b"n1", b"1")}


def test_an_ended_lease_is_taken_over_with_a_new_epoch(daemon_shard):
    first = daemon_shard.join("n1")
    name = batch_of(daemon_shard, first, "a")
    lose(daemon_shard, first)
    second = daemon_shard.join("n2")
    assert second.fence == [0, 2, "n2"] and second.seq == 1
    assert second.left_open == [name.encode()]


@pytest.mark.parametrize("name,args", [
    ("renew", [LEASE]), ("leave", []), ("claim", [2, 10, 1000, 0, 0]),
    ("adopt", [2, 0, 1]), ("settle", [1, 0, 0]), ("forget", ["s:a", "1", "1", "-"]),
])
def test_the_former_holder_is_fenced(daemon_shard, name, args):
    first = daemon_shard.join("n1")
    batch_of(daemon_shard, first, "a")
    lose(daemon_shard, first)
    daemon_shard.join("n2")
    first.fenced(name, *args)


@pytest.mark.parametrize("fence", [[0, 1, "other"], [0, 2, "n1"], [0, 0, "n1"], [1, 1, "n1"]])
@pytest.mark.parametrize("name,args", [
    ("renew", [LEASE]), ("leave", []), ("claim", [2, 10, 1000, 0, 0]),
    ("adopt", [2, 0, 1]), ("settle", [1, 0, 0]), ("forget", ["s:a", "1", "1", "-"]),
])
def test_epoch_and_nonce_both_fence(daemon_shard, fence, name, args):
    """Two holders with one epoch are what a failover that forgets a join makes."""
    batch_of(daemon_shard, daemon_shard.join("n1"), "a")
    daemon_shard.refused("LAPSE_FENCED", name, *fence, *args)


def test_nonces_that_begin_alike_are_different(daemon_shard):
    daemon_shard.join("nonce")
    daemon_shard.refused("LAPSE_FENCED", "renew", 0, 1, "nonc", LEASE)
    daemon_shard.refused("LAPSE_FENCED", "renew", 0, 1, "nonce1", LEASE)


def test_renew_extends_and_tells_who_is_alive(daemon_shard):
    first = daemon_shard.join("n1", instance="a:1")
    second = daemon_shard.join("n2", instance="b:2")
    lose(daemon_shard, first)
    before = daemon_shard.now()
    now, live, orphans = renew(first)
    assert before <= now // 1000 <= daemon_shard.now()
    assert live[0] == (LEASE, b"a:1")
    assert LEASE - 5000 < live[1][0] <= LEASE and live[1][1] == b"b:2"
    assert orphans == []
    lose(daemon_shard, second)
    assert set(renew(first)[1]) == {0}
    ends = daemon_shard.client.hget(daemon_shard.name("slots"), 0).split(b":")[1]
    assert int(ends) >= before + LEASE


def test_renew_can_lengthen_the_lease(daemon_shard):
    instance = daemon_shard.join()
    renew(instance, 3600000)
    ends = daemon_shard.client.hget(daemon_shard.name("slots"), 0).split(b":")[1]
    assert int(ends) > daemon_shard.now() + 3500000


def test_renew_tells_of_orphans_only(daemon_shard):
    first, second = daemon_shard.join("n1"), daemon_shard.join("n2")
    mine = batch_of(daemon_shard, first, "a")
    theirs = batch_of(daemon_shard, second, "b")
    assert renew(first)[2] == []
    lose(daemon_shard, second)
    assert renew(first)[2] == [theirs.encode()]
    second.call("leave")
    assert renew(first)[2] == [theirs.encode()]
    assert mine.encode() in daemon_shard.open()


def test_renew_tells_of_a_hundred_orphans_at_most(daemon_shard):
    instance = daemon_shard.join()
    names = {f"7:{seq}": "1 0" for seq in range(250)}
    daemon_shard.client.hset(daemon_shard.name("open"), mapping=names)
    assert len(renew(instance)[2]) == 100


def test_join_tells_of_a_thousand_batches_at_most(daemon_shard):
    names = {f"0:{seq}": "1 0" for seq in range(1500)}
    daemon_shard.client.hset(daemon_shard.name("open"), mapping=names)
    assert len(daemon_shard.join().left_open) == 1000


def test_slots_whose_numbers_begin_alike(daemon_shard):
    instances = [daemon_shard.join(f"n{i}") for i in range(12)]
    batch_of(daemon_shard, instances[11], "a")
    lose(daemon_shard, instances[1])
    assert daemon_shard.join("new").left_open == []


def test_leave_frees_the_slot_and_keeps_the_batches(daemon_shard):
    first, second = daemon_shard.join("n1"), daemon_shard.join("n2")
    name = batch_of(daemon_shard, first, "a", "b")
    listener = daemon_shard.client.pubsub()
    listener.subscribe(daemon_shard.name("wake"))
    listener.get_message(timeout=1)
    assert first.call("leave") == [b"left"]
    assert listener.get_message(timeout=5)["data"] == b"left"
    listener.close()
    first.fenced("leave")
    first.fenced("settle", 1, 0, 0)
    assert renew(second)[2] == [name.encode()]
    third = daemon_shard.join("n3")
    assert third.fence == [0, 2, "n3"] and third.seq == 1
    assert third.left_open == [name.encode()]
    assert len(third.claim(seq=1).entries) == 2


def test_the_seq_goes_on_over_holders(daemon_shard):
    for holder in range(1, 6):
        instance = daemon_shard.join(f"n{holder}")
        assert instance.seq == holder - 1
        batch_of(daemon_shard, instance, f"a{holder}")
        instance.settle()
        instance.call("leave")


def test_renew_empties_what_was_seen_long_ago(daemon_shard):
    instance = daemon_shard.join()
    old = {f"k:0:{n}": daemon_shard.now() - 61000 for n in range(1500)}
    daemon_shard.client.zadd(daemon_shard.name("seen"), old)
    daemon_shard.client.zadd(daemon_shard.name("seen"), {"k:0:new": daemon_shard.now() - 59000})
    renew(instance)
    assert len(daemon_shard.seen()) == 501
    renew(instance)
    assert list(daemon_shard.seen()) == [b"k:0:new"]
