# SPDX-License-Identifier: BSD-2-Clause
"""claim of keys that were heard to expire: once, however many instances hear."""

import pytest
from harness.wait import until
from harness.wire import Record

KEY = "k:0:k"


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


@pytest.fixture
def instances(shard):
    return [shard.join(f"n{i}") for i in range(5)]


def test_a_key_that_nobody_announced_is_forwarded_once(shard, instances):
    answers = [instance.claim(KEY, 7) for instance in instances]
    assert [len(a.entries) for a in answers] == [1, 0, 0, 0, 0]
    assert [a.absorbed for a in answers] == [0, 1, 1, 1, 1]
    envelope = answers[0].entries[b"k:0:k"]
    assert envelope.due == answers[0].now_us // 1000 - 7
    assert envelope.certainty == "h"
    assert Record.unpack(envelope.record) == Record(answers[0].now_us)


def test_a_key_that_nobody_announced_fits_beside_a_large_record(shard, instances, lazy):
    due = shard.call("setex", "1", "v" * 1000, key="large")[1]
    shard.pass_by(due)
    answer = instances[0].claim("k:0:large", "-", KEY, 7, size=100)
    assert list(answer.entries) == [b"k:0:large", b"k:0:k"]


def test_heard_again_after_the_window(shard, instances):
    one, two = instances[:2]
    first = one.claim(KEY, 0, window=50)
    assert two.claim(KEY, 0, window=60000).absorbed == 1
    shard.pass_by(first.now_us // 1000 + 50)
    assert len(two.claim(KEY, 0, window=50).entries) == 1


def test_the_age_of_a_late_notification_counts(shard, instances):
    """Heard 300 ms ago, asked for now: the claim in between was of this expiry."""
    one, two = instances[:2]
    first = one.claim(KEY, 0, window=50)
    shard.pass_by(first.now_us // 1000 + 100)
    assert two.claim(KEY, 300, window=50).absorbed == 1
    assert len(two.claim(KEY, 0, window=50).entries) == 1


def test_only_if_it_is_in_the_shadow(shard, instances, lazy):
    answer = instances[0].claim(KEY, "-")
    assert answer.entries == {} and answer.absorbed == 1
    due = int(shard.call("setex", "1", "v", key="k")[1])
    shard.pass_by(due)
    member, envelope = instances[0].claim_one(KEY, "-", limit=1)
    assert (envelope.due, envelope.certainty) == (due, "h")


def test_an_old_word_is_not_of_a_life_that_was_due_later(shard, instances, lazy):
    """Whether it may be claimed without a shadow or not."""
    one = instances[0]
    one.claim(KEY, 0)
    due = int(shard.call("setex", "1", "v", key="k")[1])
    shard.pass_by(due + 1)
    assert shard.client.get("k") is None
    for word in ("1000", "1000-"):
        assert one.claim(KEY, word, hush=60000).absorbed == 1, word
    assert set(shard.due()) == {b"k:0:k"}


def test_a_word_that_comes_after_its_life_was_inferred(shard, instances, lazy):
    """An old word came before it: that one is not when this life was claimed."""
    one, two = instances[:2]
    one.claim(KEY, 0)
    due = int(shard.call("setex", "1", "v", key="k")[1])
    shard.pass_by(due + 1)
    assert shard.client.get("k") is None
    assert one.claim_one(KEY, "5000")[1].certainty == "i"
    assert two.claim(KEY, "0").absorbed == 1


def test_the_echo_of_our_own_look(shard, instances, lazy):
    """Looking at an overdue key makes Redis tell everybody that it expired."""
    listener = shard.client.pubsub()
    listener.subscribe("__keyevent@0__:expired")
    until(lambda: listener.get_message())
    shard.pass_by(shard.call("setex", "1", "v", key="k")[1])
    assert instances[0].claim_one()[1].certainty == "f"
    assert until(lambda: listener.get_message())["data"] == b"k"
    listener.close()
    for instance in instances:
        assert instance.claim(KEY, 0).absorbed == 1


def test_all_instances_hear_an_announced_key(shard, instances):
    shard.pass_by(shard.call("setex", "1", "v", key="k")[1])
    until(lambda: shard.client.get("k") is None)
    answers = [instance.claim(KEY, 0) for instance in instances]
    assert [len(a.entries) for a in answers] == [1, 0, 0, 0, 0]
    assert [a.absorbed for a in answers] == [0, 1, 1, 1, 1]


def test_a_new_life_is_not_claimed_by_the_old_ones_notification(shard, instances):
    due = shard.call("setex", "60000", "v", key="k")[1]
    answer = instances[0].claim(KEY, 0)
    assert (answer.entries, answer.absorbed, answer.next_due) == ({}, 0, int(due))


def test_heard_before_its_announced_time(shard, instances):
    """The application shortened the TTL with EXPIRE: the notification decides."""
    shard.call("setex", "60000", "v", key="k")
    shard.client.pexpire("k", 1)
    until(lambda: shard.client.get("k") is None)
    answer = instances[0].claim(KEY, 0)
    envelope = answer.entries[b"k:0:k"]
    assert envelope.certainty == "h" and envelope.due == answer.now_us // 1000
    assert shard.due() == {}


def test_heard_while_the_key_lives_longer(shard, instances):
    """A stale notification of a key whose TTL was extended since."""
    due = int(shard.call("setex", "1", "v", key="k")[1])
    shard.client.set("k", "v", px=60000)
    shard.pass_by(due)
    answer = instances[0].claim(KEY, 0)
    assert answer.entries == {} and shard.due()[b"k:0:k"] > due + 50000


def test_heard_while_the_key_is_persistent(shard, instances):
    shard.pass_by(shard.call("setex", "1", "v", key="k")[1])
    shard.client.set("k", "v")
    assert instances[0].claim(KEY, 0).entries == {}
    assert shard.due() == {} and shard.records() == {}


def test_the_life_before_was_heard_and_this_one_is_found(shard, instances, lazy):
    """What was heard a while ago was not of a life that ends by this look."""
    due = int(shard.call("setex", "50", "v", key="k")[1])
    shard.pass_by(due)
    member, envelope = instances[0].claim_one(KEY, 5000)
    assert (member, envelope.due, envelope.certainty) == (b"k:0:k", due, "f")


def test_a_word_from_before_this_life_says_nothing_of_it(shard, instances):
    """The life in the shadow is younger than the word, so nobody told of its end."""
    shard.pass_by(shard.call("setex", "50", "v", key="k")[1])
    until(lambda: shard.client.get("k") is None)
    member, envelope = instances[0].claim_one(KEY, "5000!")
    assert envelope.certainty == "i"


def again_after_a_claim(shard, instance):
    """The key has expired and was claimed; registered anew, that life is over too."""
    shard.pass_by(shard.call("setex", "1", "v", key="k")[1])
    instance.claim_one(KEY, 0)
    due = int(shard.call("setex", "20", "w", key="k")[1])
    shard.pass_by(due + 2)
    shard.client.set("k", "x", px=60000)
    return due


def test_expired_and_set_again_right_behind_a_claim(shard, instances):
    """The claim of the life before is no reason to take this one for moved."""
    due = again_after_a_claim(shard, instances[0])
    member, envelope = instances[1].claim_one(KEY, "0!")
    assert (member, envelope.due, envelope.certainty) == (b"k:0:k", due, "h")
    assert Record.unpack(envelope.record).get(b"p") == b"w"
    assert shard.due()[b"k:0:k"] > due + 50000


def test_what_is_heard_and_comes_later_is_not_followed(shard, instances):
    """With more to come, the end of a life that is due may be among it."""
    due = again_after_a_claim(shard, instances[0])
    answer = instances[1].claim("k:0:other", "-+")
    assert (answer.entries, answer.followed) == ({}, 0) and shard.due()[b"k:0:k"] == due
    assert instances[1].claim_one(KEY, "0!")[1].due == due


def test_heard_keys_come_first_and_count(shard, instances):
    for n in range(10):
        shard.schedule(n, "+0")
    heard = sum(((f"k:0:{n}", 0) for n in range(6)), ())
    first = instances[0].claim(*heard, limit=8)
    assert len(first.entries) == 8
    assert set(list(first.entries)[:6]) == {b"k:0:%d" % n for n in range(6)}
    assert first.next_due <= shard.now()
    assert len(instances[0].claim(limit=8).entries) == 8


def test_as_many_as_the_limit(shard, instances):
    heard = sum(((f"k:0:{n}", 0) for n in range(1000)), ())
    assert len(instances[0].claim(*heard).entries) == 1000
    assert instances[1].claim(*heard).absorbed == 1000
    assert len(shard.seen()) == 1000


def test_a_lost_answer_with_heard_keys_is_asked_for_again(shard, instances):
    first = instances[0].claim(KEY, 0)
    again = instances[0].claim(KEY, 0, seq=1)
    assert again.entries == first.entries


def test_other_databases_are_other_keys(shard, instances):
    assert list(instances[0].claim("k:0:k", 0, "k:3:k", 0).entries) == [b"k:0:k", b"k:3:k"]


def test_seen_is_trimmed_as_it_is_used(shard, instances):
    now = shard.now()
    shard.client.zadd(shard.name("seen"), {f"k:0:old{n}": now - 61000 for n in range(50)})
    shard.client.zadd(shard.name("seen"), {"k:0:recent": now - 30000})
    instances[0].claim(KEY, 0)
    assert set(shard.seen()) == {b"k:0:recent", b"k:0:k"}


def test_seen_stays_bounded(shard, instances):
    now = shard.now()
    old = {f"k:0:old{n}": now - 61000 for n in range(5000)}
    shard.client.zadd(shard.name("seen"), old)
    for n in range(60):
        instances[0].claim(f"k:0:{n}", 0)
    assert len(shard.seen()) == 60


def test_scheduled_events_are_not_seen(shard, instances):
    shard.schedule("a", "+0")
    instances[0].claim()
    assert shard.seen() == {}
