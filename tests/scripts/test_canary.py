# SPDX-License-Identifier: BSD-2-Clause
"""canary: a key whose expiry an instance must hear of."""

import pytest
from harness.wait import until

KEY = b"lapse:{0}:canary:n1"


@pytest.fixture
def ears(daemon_shard):
    listener = daemon_shard.client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("__keyevent@3__:expired", daemon_shard.name("wake"))
    until(lambda: listener.get_message() is None and listener.subscribed)
    yield lambda: until(lambda: listener.get_message())["data"]
    listener.close()


def test_set_and_heard(daemon_shard, ears, lazy):
    assert daemon_shard.call("canary", 3, "n1", 1) == [b"1", b"1"]
    assert ears() == b"canary n1"
    daemon_shard.pass_by(daemon_shard.now() + 1)
    assert daemon_shard.call("canary", 3, "n1", 60000) == [b"1", b"1"]
    assert ears() == KEY
    assert ears() == b"canary n1"
    assert 0 < daemon_shard.db(3).pttl(KEY) <= 60000


def test_one_that_is_still_there(daemon_shard):
    daemon_shard.call("canary", 3, "n1", 60000)
    assert daemon_shard.call("canary", 3, "n1", 60000) == [b"0", b"1"]
    assert daemon_shard.call("canary", 3, "n2", 60000) == [b"1", b"1"]


def test_without_memory(daemon_shard, full):
    with full:
        assert daemon_shard.call("canary", 3, "n1", 1000) == [b"1", b"0"]
