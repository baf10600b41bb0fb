# SPDX-License-Identifier: BSD-2-Clause
"""Wake messages: daemons are told of what comes before all they wait for."""

import pytest
import redis
from harness.scripts import Scripts
from harness.wait import until
from shard import Shard


@pytest.fixture
def wakes(shard):
    """Gives the messages since it was last called."""
    listener = shard.client.pubsub(ignore_subscribe_messages=False)
    listener.subscribe(shard.name("wake"))
    until(lambda: listener.get_message())

    def take():
        marker = b"marker"
        shard.client.publish(shard.name("wake"), marker)
        messages = []
        while not messages or messages[-1] != marker:
            messages.append(until(lambda: listener.get_message())["data"])
        return messages[:-1]

    yield take
    listener.close()


def test_only_a_new_head_wakes(shard, wakes):
    first = shard.schedule("a", "+60000")[1]
    assert wakes() == [first]
    shard.schedule("b", "+70000")
    shard.schedule("c", "@" + first.decode())
    assert wakes() == []
    second = shard.schedule("d", "+50000")[1]
    assert wakes() == [second]


def test_replacing_and_rescheduling(shard, wakes):
    shard.schedule("a", "+60000")
    wakes()
    shard.schedule("a", "+70000")
    shard.call("reschedule", "a", "+80000")
    earlier = shard.schedule("a", "+40000")[1]
    assert wakes() == [earlier]
    earliest = shard.call("reschedule", "a", "+30000")[1]
    assert wakes() == [earliest]
    shard.call("reschedule", "b", "+1")
    shard.call("cancel", "a")
    assert wakes() == []


def test_watched_keys(shard, wakes):
    due = shard.call("setex", "60000", "v", key="k")[1]
    assert wakes() == [due]
    shard.call("setex", "70000", "v", key="k")
    shard.call("del", key="k")
    assert wakes() == []


def test_due_now_wakes_even_behind_what_is_overdue(shard, wakes):
    """The overdue one may be held back, until the look at its key comes."""
    shard.pass_by(shard.schedule("a", "+0")[1])
    wakes()
    soon = shard.schedule("b", "+500")[1]
    assert wakes() == [soon]
    now = shard.schedule("c", "+0")[1]
    assert wakes() == [now]


def test_a_replayed_dead_letter(shard, wakes):
    instance = shard.join()
    name = shard.schedule("a", "+0")[2]
    instance.claim()
    instance.settle(bury=[("s:a", name, "r")])
    wakes()
    assert wakes() == []
    due = shard.call("dead_replay", name)[1]
    assert wakes() == [due]


def test_a_refused_call_wakes_nobody(shard, wakes):
    with pytest.raises(redis.ResponseError):
        shard.schedule("a", "+0", "..")
    assert wakes() == []


def test_the_channel_is_the_shards(shard, wakes):
    other = Shard(shard.client, shard.scripts, b"other:{0}")
    other.schedule("a", "+0")
    assert wakes() == []


@pytest.mark.parametrize("name,args,key", [
    ("schedule", ["a", "+0", "t", "", ""], None),
    ("reschedule", ["b", "+0"], None),
    ("setex", ["1000", "v"], "k"),
])
def test_a_user_without_the_channel_stores_nothing(shard, server, name, args, key):
    """An event that nobody is told of would be late: the whole call fails."""
    shard.schedule("b", "+60000")
    before = shard.dump()
    shard.client.execute_command(
        "ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "+@all", "resetchannels"
    )
    user = redis.Redis(unix_socket_path=str(server.socket), username="app", password="pw")
    with pytest.raises(redis.ResponseError, match="(?i)channel|permission"):
        shard.call(name, *args, key=key, client=user)
    assert shard.dump() == before
    shard.client.execute_command("ACL", "SETUSER", "app", "&lapse:*")
    assert shard.call(name, *args, key=key, client=user)
    shard.client.execute_command("ACL", "DELUSER", "app")
    user.close()
