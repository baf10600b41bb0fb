# SPDX-License-Identifier: BSD-2-Clause
"""settle and forget: the end of a batch, and of lives whose batch is lost."""

import pytest
from harness.wire import Obituary, Record, ce_id
from test_slots import batch_of


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


@pytest.fixture
def instance(shard):
    return shard.join()


def parked(shard, name):
    """claimed, adopted, retry, topic of an open batch"""
    return shard.open()[name.encode()].split(b" ")


def test_everything_is_forgotten(shard, instance):
    batch_of(shard, instance, "a", "b", "c")
    assert instance.settle() == b"settled"
    assert shard.keys() == set()


def test_a_second_settle_says_gone(shard, instance):
    batch_of(shard, instance, "a")
    instance.settle()
    state = shard.dump()
    assert instance.settle() == b"gone"
    assert instance.settle(7) == b"gone"
    assert shard.dump() == state


def test_a_batch_lost_without_its_entry_in_open(shard, instance):
    batch_of(shard, instance, "a")
    shard.client.delete(shard.name("b:0:1"))
    assert instance.settle() == b"gone"
    assert shard.open() == {}


def test_only_the_named_batch(shard, instance):
    batch_of(shard, instance, "a")
    batch_of(shard, instance, "b")
    assert instance.settle(1) == b"settled"
    assert list(shard.open()) == [b"0:2"] and list(shard.batch("0:2")) == [b"s:b"]


def test_a_newer_life_stays(shard, instance):
    batch_of(shard, instance, "a")
    shard.schedule("a", "+60000", "t", "", "new")
    instance.settle()
    assert list(shard.due()) == [b"s:a"]
    assert shard.record("s:a").get(b"p") == b"new"


# -- burial


def test_a_burial_keeps_everything_but_the_pending_state(shard, instance):
    batch_of(shard, instance, "a", "b")
    envelope = shard.batch("0:1")[b"s:b"]
    before = shard.now()
    bury = [("s:b", "s:b@1.0", "too large: 1048577 bytes")]
    assert instance.settle(bury=bury) == b"settled"
    dead = shard.client.zrange(shard.name("dead"), 0, -1, withscores=True)
    assert [name for name, _ in dead] == [b"s:b@1.0"]
    assert before <= dead[0][1] <= shard.now()
    why = shard.client.hgetall(shard.name("why"))
    assert Obituary.unpack(why[b"s:b@1.0"]) == Obituary(b"too large: 1048577 bytes", b"s:b", envelope)
    assert shard.keys() == {shard.name("dead"), shard.name("why")}


@pytest.mark.parametrize("odd", [b"", b"\0", b"\r\n\xff" * 300, b"r" * 65535])
def test_any_byte_in_reason_and_member(shard, instance, odd):
    member = b"s:" + (odd[:1024] or b"x")
    shard.schedule(member[2:], "+0")
    instance.claim()
    envelope = shard.batch("0:1")[member]
    instance.settle(bury=[(member, "id", odd)])
    text = shard.client.hget(shard.name("why"), "id")
    assert Obituary.unpack(text) == Obituary(odd, member, envelope)


def test_a_corrupt_envelope_is_buried_as_it_is(shard, instance):
    batch_of(shard, instance, "a")
    shard.client.hset(shard.name("b:0:1"), "s:a", b"\xff??")
    instance.settle(bury=[("s:a", "id", "unreadable")])
    assert Obituary.unpack(shard.client.hget(shard.name("why"), "id")).envelope == b"\xff??"


def test_what_is_not_in_the_batch_is_not_buried(shard, instance):
    batch_of(shard, instance, "a")
    assert instance.settle(bury=[("s:x", "id", "r")]) == b"settled"
    assert shard.keys() == set()


def test_a_thousand_burials(shard, instance):
    batch_of(shard, instance, *map(str, range(1000)))
    instance.settle(bury=[(f"s:{n}", f"id{n}", "r") for n in range(1000)])
    assert shard.client.hlen(shard.name("why")) == 1000
    assert shard.client.zcard(shard.name("dead")) == 1000


# -- a limit of dead letters


def bury_all(shard, instance, *ids, keep=0):
    batch_of(shard, instance, *ids)
    assert instance.settle(bury=[(f"s:{i}", f"id-{i}", "r") for i in ids], keep=keep) == b"settled"
    return instance.said[1:]


def dead(shard):
    """The ce_ids, the oldest first, of which each has its obituary."""
    names = shard.client.zrange(shard.name("dead"), 0, -1)
    assert set(shard.client.hkeys(shard.name("why"))) == set(names)
    return names


def test_the_answer_tells_how_many_are_dead(shard, instance):
    assert bury_all(shard, instance, "a", "b") == [b"2", b"0"]
    assert bury_all(shard, instance, "c") == [b"3", b"0"]
    batch_of(shard, instance, "d")
    instance.settle()
    assert instance.said == [b"settled"]


def test_the_oldest_beyond_the_limit_are_dropped(shard, instance):
    for id in "abc":
        bury_all(shard, instance, id)
        shard.pass_by(shard.now())
    assert bury_all(shard, instance, "d", keep=4) == [b"4", b"0"]
    shard.pass_by(shard.now())
    assert bury_all(shard, instance, "e", keep=3) == [b"3", b"2", b"id-a"]
    assert dead(shard) == [b"id-c", b"id-d", b"id-e"]


def test_more_burials_than_may_be_kept(shard, instance):
    assert bury_all(shard, instance, "a", "b", "c", keep=1) == [b"1", b"2", b"id-a"]
    assert dead(shard) == [b"id-c"]


def test_without_a_burial_nothing_is_dropped(shard, instance):
    bury_all(shard, instance, "a", "b")
    batch_of(shard, instance, "c")
    instance.settle(keep=1)
    assert instance.said == [b"settled"]
    assert len(dead(shard)) == 2


def test_a_run_drops_a_thousand_at_most(shard, instance):
    names = {f"old-{n:04}": n for n in range(2500)}
    shard.client.zadd(shard.name("dead"), names)
    shard.client.hset(shard.name("why"), mapping=dict.fromkeys(names, "x"))
    assert bury_all(shard, instance, "a", keep=10) == [b"1501", b"1000", b"old-0000"]
    assert bury_all(shard, instance, "b", keep=10) == [b"502", b"1000", b"old-1000"]
    assert bury_all(shard, instance, "c", keep=10) == [b"10", b"493", b"old-2000"]
    assert dead(shard)[-3:] == [b"id-a", b"id-b", b"id-c"]


# -- parking


def test_parked_groups_wait_under_new_numbers(shard, instance):
    batch_of(shard, instance, "a", "b", "c", "d")
    entries = shard.batch("0:1")
    claimed = shard.open()[b"0:1"].split()[0]
    groups = [(2, "orders", 111, ["s:a", "s:c"]), (3, "other", 222, ["s:d"])]
    assert instance.settle(groups=groups) == b"settled"
    assert shard.batch("0:1") == {}
    assert shard.batch("0:2") == {m: entries[m] for m in (b"s:a", b"s:c")}
    assert shard.batch("0:3") == {b"s:d": entries[b"s:d"]}
    assert parked(shard, "0:2") == [claimed, b"0", b"111", b"orders"]
    assert parked(shard, "0:3") == [claimed, b"0", b"222", b"other"]
    assert instance.claim(seq=4).entries == {}


def test_a_parked_batch_is_read_by_its_number(shard, instance):
    batch_of(shard, instance, "a", "b")
    entries = shard.batch("0:1")
    instance.settle(groups=[(2, "orders", 111, ["s:b"])])
    answer = instance.claim(seq=2)
    assert {m: e.pack() for m, e in answer.entries.items()} == {b"s:b": entries[b"s:b"]}
    assert (answer.topic, answer.retry) == (b"orders", 111)
    assert instance.settle(2) == b"settled"
    assert shard.keys() == set()


def test_more_of_the_same_topic_joins_a_parked_batch(shard, instance):
    batch_of(shard, instance, "a")
    instance.settle(groups=[(2, "orders", 111, ["s:a"])])
    shard.schedule("b", "+0")
    instance.seq = 2
    instance.claim()
    assert instance.settle(3, groups=[(2, "orders", 333, ["s:b"])]) == b"settled"
    assert set(shard.batch("0:2")) == {b"s:a", b"s:b"}
    assert parked(shard, "0:2")[2:] == [b"333", b"orders"]
    assert held_seq(shard) == 3


def held_seq(shard):
    return int(shard.client.hget(shard.name("epoch"), 0).split(b":")[2])


def test_a_parked_batch_is_parked_again(shard, instance):
    batch_of(shard, instance, "a", "b")
    instance.settle(groups=[(2, "orders", 111, ["s:a", "s:b"])])
    instance.claim(seq=2)
    assert instance.settle(2, groups=[(3, "orders", 555, ["s:a"])]) == b"settled"
    assert list(shard.open()) == [b"0:3"] and list(shard.batch("0:3")) == [b"s:a"]
    assert parked(shard, "0:3")[2:] == [b"555", b"orders"]


def test_lives_of_one_id_wait_side_by_side(shard, instance):
    """A parked life is not overwritten by the next one of its id."""
    names = []
    for n in range(3):
        names.append(shard.schedule("a:b", "+0", "orders", "", f"life {n}")[2])
        instance.claim()
        instance.settle(instance.seq, groups=[(1000, "orders", 1, ["s:a:b"])])
        instance.seq = 1001 + n
    entries = instance.claim(seq=1000).entries
    births = [Record.unpack(e.record).birth for e in entries.values()]
    assert list(entries) == [b"s:a:b", *(b"p:%d:a:b" % b for b in births[1:])]
    assert [ce_id(b"s:a:b", b) for b in births] == names
    burials = [(m, n, "r") for m, n in zip(entries, names)]
    assert instance.settle(1000, bury=burials) == b"settled"
    for name in names:
        assert Obituary.unpack(shard.client.hget(shard.name("why"), name)).member == b"s:a:b"
    assert shard.call("dead_replay", names[2])[0] == b"replayed"
    assert shard.record("s:a:b").get(b"p") == b"life 2"


def test_lives_of_one_key_wait_side_by_side(shard, instance, lazy):
    for n in range(2):
        shard.pass_by(shard.call("setex", "1", f"life {n}", "db", "3", key="k:1")[1])
        instance.claim()
        instance.settle(instance.seq, groups=[(1000, "orders", 1, ["k:3:k:1"])])
        instance.seq = 1001 + n
    entries = instance.claim(seq=1000).entries
    values = [Record.unpack(e.record).get(b"p") for e in entries.values()]
    assert values == [b"life 0", b"life 1"]
    second = Record.unpack(entries[list(entries)[1]].record).birth
    assert list(entries) == [b"k:3:k:1", b"e:%d:3:k:1" % second]


def test_the_times_adopted_go_along(shard, instance):
    batch_of(shard, instance, "a")
    shard.client.hset(shard.name("open"), "0:1", "77 2")
    instance.settle(groups=[(2, "orders", 111, ["s:a"])])
    assert parked(shard, "0:2") == [b"77", b"2", b"111", b"orders"]


def test_left_open_without_a_topic(shard, instance):
    batch_of(shard, instance, "a", "b")
    claimed = shard.open()[b"0:1"].split()[0]
    instance.settle(groups=[(2, "", 0, ["s:b"])])
    assert shard.open() == {b"0:2": claimed + b" 0"}
    assert list(shard.batch("0:2")) == [b"s:b"]


def test_a_group_of_strangers_makes_no_batch(shard, instance):
    batch_of(shard, instance, "a")
    assert instance.settle(groups=[(2, "orders", 1, ["s:x", "s:y"])]) == b"settled"
    assert shard.keys() == set()


def test_bury_park_leave_and_forget_in_one(shard, instance):
    batch_of(shard, instance, "a", "b", "c", "d", "e")
    word = instance.settle(
        bury=[("s:a", "ida", "r")],
        groups=[(2, "orders", 9, ["s:b"]), (3, "", 0, ["s:c", "s:d"])],
    )
    assert word == b"settled"
    assert shard.client.hkeys(shard.name("why")) == [b"ida"]
    assert list(shard.batch("0:2")) == [b"s:b"]
    assert set(shard.batch("0:3")) == {b"s:c", b"s:d"}
    assert shard.due() == {} and shard.records() == {}


def test_five_thousand_parked_at_once(shard, instance):
    record = b"\x01" + b"\0" * 20
    entries = {f"s:{n}": record for n in range(5000)}
    shard.client.hset(shard.name("b:0:1"), mapping=entries)
    shard.client.hset(shard.name("open"), "0:1", "1 0")
    assert instance.settle(1, groups=[(2, "orders", 1, list(entries))]) == b"settled"
    assert len(shard.batch("0:2")) == 5000


# -- forget


def test_forget_by_token(shard, instance):
    due = shard.schedule("a")[1]
    birth = shard.record("s:a").birth
    assert instance.call("forget", "s:a", birth, due, "-") == [b"1"]
    assert shard.keys() == set()
    assert instance.call("forget", "s:a", birth, due, "-") == [b"0"]


def test_a_newer_life_is_not_forgotten(shard, instance):
    due = shard.schedule("a")[1]
    birth = shard.record("s:a").birth
    shard.schedule("a")
    state = shard.dump()
    assert instance.call("forget", "s:a", birth, due, "-") == [b"0"]
    assert instance.call("forget", "s:a", birth, shard.due()[b"s:a"], "-") == [b"0"]
    assert shard.dump() == state


def test_a_rescheduled_life_is_the_same_life(shard, instance):
    due = shard.schedule("a")[1]
    birth = shard.record("s:a").birth
    shard.call("reschedule", "a", "+90000")
    assert instance.call("forget", "s:a", birth, due, "-") == [b"1"]


def test_without_a_record_the_due_time_is_the_token(shard, instance):
    due = int(shard.call("setex", "60000", "v", "copy", "0", key="k")[1])
    assert instance.call("forget", "k:0:k", 12345, due + 1, "-") == [b"0"]
    assert instance.call("forget", "k:0:k", 12345, due, "-") == [b"1"]
    assert shard.due() == {}


def test_an_unreadable_record_is_nobodys(shard, instance):
    due = shard.schedule("a")[1]
    shard.client.hset(shard.name("rec"), "s:a", "?")
    assert instance.call("forget", "s:a", 1, due, "-") == [b"0"]


def test_forget_many(shard, instance):
    args = []
    for n in range(500):
        due = shard.schedule(n)[1]
        args += [f"s:{n}", shard.record(f"s:{n}").birth + n % 2, due, "-"]
    assert instance.call("forget", *args) == [b"250"]
    assert len(shard.due()) == len(shard.records()) == 250
    assert instance.call("forget") == [b"0"]
