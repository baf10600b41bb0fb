# SPDX-License-Identifier: BSD-2-Clause
"""Keys and events that are set again, kept, or taken back."""

from limits import until

ROUTES = {"orders": {"pattern": "order:*"}}


def gone(world, key):
    until(lambda: not world.client.exists(key), f"{key} to expire")


def test_only_the_later_time_counts_with_setex(world):
    world.lapsed(routes=ROUTES)
    first = world.setex("order:1", "400", b"one")
    second = world.setex("order:1", "1000", b"two")
    assert first != second
    ledger = world.settle([second])
    assert ledger.records[0].value == b"two"


def test_only_the_later_time_counts_with_plain_set(world):
    """The shadow follows the key."""
    lapsed = world.lapsed(routes=ROUTES)
    ids = [world.setex("order:1", "300")]
    world.client.set("order:1", "v", px=1200)
    later = world.now() + 1200
    ledger = world.settle(ids)
    assert abs(ledger.records[0].due - later) < 100
    assert lapsed.stats()["followed"] >= 1


def test_only_the_later_time_counts_for_a_key_that_is_only_heard(world):
    world.lapsed(routes=ROUTES)
    world.client.set("order:1", "v", px=300)
    world.client.set("order:1", "v", px=1000)
    later = world.now() + 1000
    assert world.records(1)[0].time >= later - 50


def test_an_earlier_time_counts_too(world):
    """EXPIRE behind our back: the notification tells."""
    world.lapsed(routes=ROUTES)
    ids = [world.setex("order:1", "3600000")]
    world.client.pexpire("order:1", 100)
    gone(world, "order:1")
    world.settle(ids)


def test_a_key_made_persistent_makes_no_record(world):
    """Case 11: and the shadow lets go of it."""
    world.lapsed(routes=ROUTES)
    world.setex("order:1", "300")
    world.client.persist("order:1")
    world.drained()
    assert world.ledger.finish() == []
    assert world.client.exists("order:1")


def test_a_bare_del_of_a_registered_key_is_no_cancel(world):
    """Case 12: by default it is sent and says so; `lapse_del` takes it back."""
    world.lapsed(routes=ROUTES)
    ids = [world.setex("order:1", "300")]
    world.client.delete("order:1")
    ledger = world.settle(ids)
    assert ledger.records[0].headers["ce_lapsecertainty"] == b"inferred"


def test_inferred_drop_makes_a_bare_del_a_cancel(world):
    """Case 12: as the route asks; what really expired still goes."""
    lapsed = world.lapsed(routes={"orders": {"pattern": "order:*", "inferred": "drop"}})
    world.setex("order:1", "300")
    ids = [world.setex("order:2", "300")]
    world.client.delete("order:1")
    world.settle(ids)
    until(lambda: lapsed.stats()["inferred_dropped"] == 1, "the drop to be counted")


def test_cancel_before_it_is_due(world):
    world.lapsed(routes=ROUTES)
    world.schedule("job", "+400")
    world.setex("order:1", "400")
    ids = [world.schedule("other", "+700")]
    assert world.cancel("job")[0] == b"cancelled"
    assert world.delete("order:1")[0] == b"cancelled"
    assert not world.client.exists("order:1")
    world.settle(ids)


def test_cancel_after_it_went(world):
    world.lapsed(routes=ROUTES)
    ids = [world.schedule("job"), world.setex("order:1", "1")]
    world.settle(ids)
    assert world.cancel("job") == [b"not-found"]
    assert world.delete("order:1") == [b"not-found"]


def test_cancel_of_what_is_due_but_not_claimed(world):
    """Nobody runs: it can still be taken back, and stays so."""
    world.schedule("job")
    world.setex("order:1", "1")
    gone(world, "order:1")
    assert world.cancel("job")[0] == b"cancelled"
    assert world.delete("order:1")[0] == b"cancelled"
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.wait("gap.closed")
    world.drained()
    assert world.ledger.finish() == []


def test_cancel_in_flight(broker_world, broker):
    """Case 46: claimed and not yet acknowledged: it goes, and the answer says so."""
    world = broker_world
    lapsed = world.lapsed(routes=ROUTES)
    world.settle([world.schedule("warm")])
    broker.pause()
    ids = [world.schedule("job"), world.setex("order:1", "1")]
    until(lambda: lapsed.stats()["kafka_outstanding"] == 2, "both to be in flight")
    assert world.show("job")[b"state"] == b"in-flight"
    assert world.cancel("job") == [b"in-flight"]
    assert world.delete("order:1") == [b"in-flight"]
    broker.resume()
    world.settle([*ids, *world.ledger.ids()])


def test_a_new_life_while_the_old_is_in_flight(broker_world, broker):
    """Case 37, 47: both are sent, each under its own id."""
    world = broker_world
    lapsed = world.lapsed(routes=ROUTES)
    world.settle([world.schedule("warm")])
    broker.pause()
    ids = [world.schedule("job", payload=b"old"), world.setex("order:1", "1", b"old")]
    until(lambda: lapsed.stats()["kafka_outstanding"] == 2, "both to be in flight")
    ids += [world.schedule("job", "+100", payload=b"new"),
            world.setex("order:1", "100", b"new")]
    broker.resume()
    assert len(set(ids)) == 4
    ledger = world.settle([*ids, *world.ledger.ids()])
    assert [ledger.by_id(i).value for i in ids] == [b"old", b"old", b"new", b"new"]


def test_a_key_expires_twice_within_a_second(world):
    world.lapsed(routes=ROUTES)
    ids = []
    for _ in range(2):
        ids.append(world.setex("order:1", "100"))
        world.ledger.wait(len(ids))
    assert world.ledger.records[1].time - world.ledger.records[0].time < 1000
    world.settle(ids)


def test_a_key_expires_twice_before_anybody_claims_it(world):
    """The first life waits aside until a daemon comes."""
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.pause()
    ids = [world.setex("order:1", "20", b"one")]
    gone(world, "order:1")
    ids.append(world.setex("order:1", "20", b"two"))
    gone(world, "order:1")
    lapsed.cont()
    ledger = world.settle(ids)
    assert [ledger.by_id(i).value for i in ids] == [b"one", b"two"]


def test_a_rescheduled_event_goes_once_at_its_new_time(world):
    """Case 36: one step, the id kept."""
    world.lapsed()
    ids = [world.schedule("job", "+300")]
    answer = world.scripts.call("reschedule", ["lapse:{0}"], ["job", "+900"])
    assert answer[0] == b"rescheduled"
    ledger = world.settle(ids)
    assert ledger.records[0].due == int(answer[1])


def test_the_same_id_after_it_went(world):
    """Case 37: accepted, and a life of its own."""
    world.lapsed()
    ids = [world.schedule("job")]
    world.ledger.wait(1)
    ids.append(world.schedule("job", "+0", None, "", b"", "nx", "1"))
    world.settle(ids)
