# SPDX-License-Identifier: BSD-2-Clause
"""lapse_stats: one look at everything."""

import pytest
from harness.wire import pairs
from test_slots import LEASE, batch_of, lose


def stats(shard):
    return {k.decode(): v for k, v in pairs(shard.call("stats")).items()}


def test_of_nothing(shard):
    before = shard.now_us()
    found = stats(shard)
    assert before <= int(found.pop("now_us")) <= shard.now_us()
    assert found.pop("oldest_due") == found.pop("next_deadline") == b"-1"
    assert found.pop("slots") == found.pop("open") == found.pop("parked") == []
    assert {found.pop(f"scan_{name}") for name in ("begun", "at", "done")} == {b"-1"}
    assert len(found) == 18 and set(found.values()) == {b"0"}


def test_of_all_there_is(shard, lazy):
    one, two = shard.join("n1", instance="a/1"), shard.join("n2", instance="b/2")
    batch_of(shard, one, *"abcdefg")
    one.settle(
        bury=[("s:a", "s:a@1.0", "r")],
        groups=[(2, "orders", shard.now() + 30000, ["s:b", "s:c"]), (3, "mail", 1, ["s:d"]),
                (4, "", 0, ["s:e"])],
    )
    batch_of(shard, two, "h", "i")
    two.settle(groups=[(2, "orders", shard.now() + 10000, ["s:h"])])
    two.seq = 2
    shard.pass_by(shard.call("setex", "1", "v", key="k")[1])
    assert two.claim().entries
    batch_of(shard, two, "j", "k")
    oldest = shard.schedule("l", "+0")[1]
    shard.pass_by(oldest)
    shard.schedule("m", "+60000")
    shard.call("setex", "60000", "v", "copy", "0", key="k")
    lose(shard, two)
    shard.client.hset(shard.name("sure"), mapping={"heard": 7, "found": 8, "inferred": 9,
                                                   "slot:0": "1:1"})
    shard.client.hset(shard.name("scan"), mapping={
        "begun": 1000, "place": "0:17", "at": 2000, "looked": 10, "keys": 20, "done": 1500})

    found = stats(shard)
    slots, opened, parked = (found.pop(k) for k in ("slots", "open", "parked"))
    del found["now_us"]
    assert {k: int(v) for k, v in found.items()} == {
        "waiting": 0, "late": 0, "next_deadline": -1,
        "due_total": 3, "due_now": 1, "oldest_due": int(oldest), "records": 2,
        "batches": 6, "looked": 6, "open_batches": 3, "open_entries": 4, "parked_batches": 3,
        "parked_entries": 4, "dead": 1, "seen": 1,
        "heard": 7, "found": 8, "inferred": 9,
        "scan_begun": 1000, "scan_at": 2000, "scan_done": 1500, "scan_looked": 10, "scan_keys": 20,
    }
    assert [s[:2] + s[3:] for s in slots] == [[b"0", b"1", b"a/1"], [b"1", b"1", b"b/2"]]
    assert LEASE - 10000 < int(slots[0][2]) <= LEASE and slots[1][2] == b"0"
    assert opened == [[b"0", b"1", b"1"], [b"1", b"2", b"3"]]
    assert [row[:3] for row in parked] == [[b"mail", b"1", b"1"], [b"orders", b"2", b"3"]]
    assert parked[0][3] == b"0" and 0 < int(parked[1][3]) <= 10000


@pytest.mark.parametrize("n,least", [(3000, 3000), (30000, 9000)])
def test_ten_thousand_batches_are_looked_into(shard, n, least):
    shard.client.hset(shard.name("open"), mapping={f"{i % 3}:{i}": "1 0" for i in range(n)})
    found = stats(shard)
    assert found["batches"] == b"%d" % n
    assert found["open_batches"] == found["looked"]
    assert found["open_batches"] == b"%d" % sum(int(row[1]) for row in found["open"])
    assert least <= int(found["open_batches"]) <= 10000


def test_changes_nothing(shard):
    instance = shard.join()
    batch_of(shard, instance, "a", "b")
    shard.schedule("c")
    before = shard.dump()
    stats(shard)
    assert shard.dump() == before


@pytest.mark.parametrize("args,keys", [
    (["x"], None), (["x", "y"], None), ([], []), ([], ["lapse"]), ([], ["lapse:{0}", "k"]),
])
def test_bad_arguments(shard, args, keys):
    shard.refused("LAPSE_BADARG", "stats", *args, keys=keys)
