# SPDX-License-Identifier: BSD-2-Clause
"""lapse_schedule: what it stores, answers and refuses."""

import pytest
import redis
from harness.wire import Record, ce_id

LAST_MS = 253402300799999

ODD_BYTES = [
    b"\0",
    b"a\0b",
    b"\r\n$5\r\n",
    b"\xff\xfe\x80",
    b" % ",
    "schlüssel".encode(),
    b"x" * 1024,
    b"@1.0",
    b"-",
]


def test_stores_one_member_and_one_record(shard):
    before = shard.now_us()
    word, due, name = shard.schedule("order-42", "+1800000", "order-timeouts", "42", '{"order":42}')
    after = shard.now_us()
    assert word == b"scheduled"
    assert shard.due() == {b"s:order-42": int(due)}
    record = shard.record("s:order-42")
    assert before <= record.birth <= after
    assert before // 1000 + 1800000 <= int(due) <= after // 1000 + 1800000
    assert record.attempt == 0
    assert record.fields == [
        (b"t", b"order-timeouts"),
        (b"k", b"42"),
        (b"p", b'{"order":42}'),
    ]
    assert name == ce_id(b"s:order-42", record.birth)
    assert shard.keys() == {shard.name("due"), shard.name("rec")}


def test_keys_have_no_ttl(shard):
    shard.schedule()
    assert all(shard.client.ttl(key) == -1 for key in shard.keys())


def test_absolute_time_is_taken_as_it_is(shard):
    at = shard.now() + 123456
    assert shard.schedule("a", f"@{at}")[1] == b"%d" % at
    assert shard.schedule("b", f"@00{at}")[1] == b"%d" % at
    assert shard.due() == {b"s:a": at, b"s:b": at}


@pytest.mark.parametrize("when", ["+0", "@0", "@1", "@1500000000000", "+0000000000000000"])
def test_the_past_means_now(shard, when):
    before = shard.now()
    due = int(shard.schedule("a", when)[1])
    assert before <= due <= shard.now()
    assert shard.due() == {b"s:a": due}


def test_the_last_millisecond_of_the_year_9999(shard):
    assert shard.schedule("a", f"@{LAST_MS}")[1] == b"%d" % LAST_MS
    assert shard.due() == {b"s:a": LAST_MS}
    shard.refused("LAPSE_BADARG", "schedule", "b", f"@{LAST_MS + 1}", "t", "", "")
    shard.refused("LAPSE_BADARG", "schedule", "b", f"+{LAST_MS}", "t", "", "")


def test_an_empty_key_is_no_key_and_an_empty_payload_a_payload(shard):
    shard.schedule("a", "+1", "t", "", "")
    assert shard.record("s:a").fields == [(b"t", b"t"), (b"p", b"")]


def test_options_become_fields_and_the_payload_stays_last(shard):
    options = [
        ("header.traceparent", "00-1-2-01"),
        ("type", "com.example.order"),
        ("header.x", ""),
        ("content-type", "application/json; charset=utf-8"),
        ("header.b", b"\0\r\n\xff"),
    ]
    shard.schedule("a", "+1", "t", "k", "p", *sum(options, ()))
    record = shard.record("s:a")
    assert record.get(b"y") == b"com.example.order"
    assert record.get(b"c") == b"application/json; charset=utf-8"
    assert record.headers == {b"traceparent": b"00-1-2-01", b"x": b"", b"b": b"\0\r\n\xff"}
    assert record.fields[-1] == (b"p", b"p")
    assert len(record.fields) == 8


@pytest.mark.parametrize("odd", ODD_BYTES)
def test_any_byte_goes_in_id_key_and_payload(shard, odd):
    name = shard.schedule(odd, "+60000", "t", odd, odd)[2]
    member = b"s:" + odd
    record = shard.record(member)
    assert list(shard.due()) == [member]
    assert record.fields == [(b"t", b"t"), (b"k", odd), (b"p", odd)]
    assert name == ce_id(member, record.birth)


def test_the_largest_event(shard):
    payload = bytes(range(256)) * 3907
    payload = payload[:768600]
    headers = sum(((f"header.{'h' * 253}{i:02}", b"\xff" * 8192) for i in range(32)), ())
    shard.schedule(b"i" * 1024, "+1", "T" * 249, b"k" * 1024, payload, *headers,
                   "type", "y" * 255, "content-type", "c" * 255)
    record = shard.record(b"s:" + b"i" * 1024)
    assert record.get(b"p") == payload
    assert record.get(b"t") == b"T" * 249
    assert len(record.headers) == 32
    assert {len(v) for v in record.headers.values()} == {8192}
    more = payload + b"+" * 1000
    text = shard.refused("LAPSE_BADARG", "schedule", "more", "+1", "t", "", more, *headers)
    assert "1040000" in text
    assert shard.schedule("whole", "+1", "t", "", bytes(1000000))[0] == b"scheduled"


def test_every_character_of_topic_and_header_name(shard):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
    shard.schedule("a", "+1", letters, "", "", f"header.{letters}", "v")
    record = shard.record("s:a")
    assert record.get(b"t") == letters.encode()
    assert record.headers == {letters.encode(): b"v"}


BAD = [
    # missing and surplus
    [],
    ["a"],
    ["a", "+1", "t", "k"],
    ["a", "+1", "t", "k", "p", "nx"],
    ["a", "+1", "t", "k", "p", "type", "x", "nx"],
    # id
    ["", "+1", "t", "", ""],
    ["i" * 1025, "+1", "t", "", ""],
    # time
    ["a", "", "t", "", ""],
    ["a", "1", "t", "", ""],
    ["a", "+", "t", "", ""],
    ["a", "@", "t", "", ""],
    ["a", "+-1", "t", "", ""],
    ["a", "-1", "t", "", ""],
    ["a", "++1", "t", "", ""],
    ["a", "+1.5", "t", "", ""],
    ["a", "+1e3", "t", "", ""],
    ["a", "+0x10", "t", "", ""],
    ["a", "+ 1", "t", "", ""],
    ["a", "+1 ", "t", "", ""],
    ["a", "+1\0", "t", "", ""],
    ["a", "+1\n", "t", "", ""],
    ["a", "+nan", "t", "", ""],
    ["a", "+inf", "t", "", ""],
    ["a", "+10000000000000000", "t", "", ""],
    ["a", "@99999999999999999999", "t", "", ""],
    ["a", "30m", "t", "", ""],
    # topic
    ["a", "+1", "", "", ""],
    ["a", "+1", ".", "", ""],
    ["a", "+1", "..", "", ""],
    ["a", "+1", "t" * 250, "", ""],
    ["a", "+1", "a b", "", ""],
    ["a", "+1", "a/b", "", ""],
    ["a", "+1", "t\n", "", ""],
    ["a", "+1", "t\0", "", ""],
    ["a", "+1", "é", "", ""],
    ["a", "+1", b"\xe9", "", ""],
    # key, payload
    ["a", "+1", "t", "k" * 1025, ""],
    ["a", "+1", "t", "", "p" * 1000001],
    # options
    ["a", "+1", "t", "", "", "nx", "0"],
    ["a", "+1", "t", "", "", "nx", "yes"],
    ["a", "+1", "t", "", "", "nx", ""],
    ["a", "+1", "t", "", "", "nx", "1", "nx", "1"],
    ["a", "+1", "t", "", "", "NX", "1"],
    ["a", "+1", "t", "", "", "", ""],
    ["a", "+1", "t", "", "", "ttl", "10"],
    ["a", "+1", "t", "", "", "db", "0"],
    ["a", "+1", "t", "", "", "a\r\nb", "1"],
    ["a", "+1", "t", "", "", b"\0\xff", "1"],
    ["a", "+1", "t", "", "", "x" * 100000, "1"],
    ["a", "+1", "t", "", "", "type", ""],
    ["a", "+1", "t", "", "", "type", "x" * 256],
    ["a", "+1", "t", "", "", "type", "a\x7f"],
    ["a", "+1", "t", "", "", "type", "a\n"],
    ["a", "+1", "t", "", "", "type", "a\0"],
    ["a", "+1", "t", "", "", "type", "é"],
    ["a", "+1", "t", "", "", "type", "x", "type", "y"],
    ["a", "+1", "t", "", "", "content-type", ""],
    ["a", "+1", "t", "", "", "content-type", "x" * 256],
    ["a", "+1", "t", "", "", "content-type", "\t"],
    ["a", "+1", "t", "", "", "content-type", "x", "content-type", "x"],
    ["a", "+1", "t", "", "", "header.", "v"],
    ["a", "+1", "t", "", "", "header." + "n" * 256, "v"],
    ["a", "+1", "t", "", "", "header.a b", "v"],
    ["a", "+1", "t", "", "", "header.a\0", "v"],
    ["a", "+1", "t", "", "", "header.é", "v"],
    ["a", "+1", "t", "", "", "header.ce_id", "v"],
    ["a", "+1", "t", "", "", "header.ce_", "v"],
    ["a", "+1", "t", "", "", "header.content-type", "v"],
    ["a", "+1", "t", "", "", "header.n", "v" * 8193],
    ["a", "+1", "t", "", "", "header.n", "v", "header.n", "w"],
    ["a", "+1", "t", "", "", *sum((["header.h%d" % i, ""] for i in range(33)), [])],
]


@pytest.mark.parametrize("args", BAD, ids=lambda args: repr(args)[:60])
def test_bad_arguments_store_nothing(shard, args):
    shard.schedule("a", "+60000", "old", "k", "p")
    text = shard.refused("LAPSE_BADARG", "schedule", *args)
    assert len(text) < 400 and text.isprintable()


@pytest.mark.parametrize("keys", [
    [],
    ["lapse:{0}", "lapse:{0}"],
    [""],
    ["}"],
    ["lapse"],
    ["lapse:0"],
    ["lapse:{}"],
    ["lapse:{a}"],
    ["lapse:{0}:due"],
    ["{0}"],
    [":{0}"],
])
def test_bad_keys_store_nothing(shard, keys):
    shard.refused("LAPSE_BADARG", "schedule", "a", "+1", "t", "", "", keys=keys)


def test_replaces_by_id_with_a_later_birth(shard):
    first = shard.schedule("a", "+60000", "t", "k", "old")
    assert first[0] == b"scheduled"
    old = shard.record("s:a")
    word, due, name = shard.schedule("a", "+30000", "u", "", "new")
    new = shard.record("s:a")
    assert word == b"replaced"
    assert shard.due() == {b"s:a": int(due)}
    assert new.birth > old.birth
    assert new.fields == [(b"t", b"u"), (b"p", b"new")]
    assert name == ce_id(b"s:a", new.birth)


def test_a_replacement_is_younger_even_when_the_clock_went_back(shard):
    shard.schedule("a")
    tomorrow = shard.now_us() + 86400_000000
    shard.client.hset(shard.name("rec"), "s:a", Record(tomorrow, 7, [(b"t", b"t")]).pack())
    name = shard.schedule("a")[2]
    assert shard.record("s:a") == Record(tomorrow + 1, 0, [(b"t", b"t"), (b"p", b"")])
    assert name == ce_id(b"s:a", tomorrow + 1)


@pytest.mark.parametrize("text", [None, b"", b"\x02" + b"x" * 40, b"\x01short"])
def test_replaces_what_it_cannot_read(shard, text):
    shard.schedule("a")
    if text is None:
        shard.client.hdel(shard.name("rec"), "s:a")
    else:
        shard.client.hset(shard.name("rec"), "s:a", text)
    assert shard.schedule("a", "+1", "t", "", "new")[0] == b"replaced"
    assert shard.record("s:a").get(b"p") == b"new"


def test_nx_refuses_what_is_pending(shard):
    assert shard.schedule("a", "+60000", "t", "", "1", "nx", "1")[0] == b"scheduled"
    shard.refused("LAPSE_EXISTS", "schedule", "a", "+1", "t", "", "2", "nx", "1")
    assert shard.schedule("b", "+60000", "t", "", "1", "nx", "1")[0] == b"scheduled"


def test_nx_refuses_what_is_in_flight_or_parked(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    assert instance.claim().entries
    args = ("schedule", "a", "+1", "t", "", "2", "nx", "1")
    shard.refused("LAPSE_EXISTS", *args)
    assert instance.settle(groups=[(2, "t", shard.now() + 60000, ["s:a"])]) == b"settled"
    shard.refused("LAPSE_EXISTS", *args)


def many_open(shard, n):
    shard.client.hset(shard.name("open"), mapping={f"9:{i}": "1 0" for i in range(n)})


def test_nx_looks_into_thousands_of_batches(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    assert instance.claim().entries
    many_open(shard, 9999)
    shard.refused("LAPSE_EXISTS", "schedule", "a", "+1", "t", "", "2", "nx", "1")
    assert shard.schedule("b", "+1", "t", "", "2", "nx", "1")[0] == b"scheduled"


def test_more_batches_than_can_be_looked_into(shard):
    """Nobody is told that an id is free, or not found, when that is not known."""
    many_open(shard, 10001)
    for call in (("schedule", "a", "+1", "t", "", "2", "nx", "1"), ("cancel", "a"),
                 ("reschedule", "a", "+1"), ("show", "a")):
        shard.refused("LAPSE_UNSURE", *call)
    assert shard.schedule("a", "+60000")[0] == b"scheduled"
    assert shard.call("show", "a")[1] == b"scheduled"
    assert shard.call("cancel", "a")[0] == b"cancelled"


def test_del_deletes_although_it_is_unsure(shard):
    many_open(shard, 10001)
    shard.client.set("k", "v")
    with pytest.raises(redis.ResponseError, match="LAPSE_UNSURE"):
        shard.call("del", key="k")
    assert not shard.client.exists("k")


def test_nx_takes_an_id_whose_life_has_ended(shard):
    instance = shard.join()
    shard.schedule("a", "+0")
    instance.claim()
    instance.settle()
    assert shard.schedule("a", "+1", "t", "", "", "nx", "1")[0] == b"scheduled"


def test_without_nx_a_new_life_stands_beside_the_one_in_flight(shard):
    instance = shard.join()
    first = shard.schedule("a", "+0", "t", "", "old")[2]
    instance.claim()
    word, _, second = shard.schedule("a", "+60000", "t", "", "new")
    assert word == b"scheduled" and first != second
    instance.settle()
    assert shard.record("s:a").get(b"p") == b"new"


def test_ids_that_look_like_other_members(shard):
    shard.schedule("k:0:x")
    shard.schedule("s:a")
    shard.schedule("e:1:0:x")
    assert set(shard.due()) == {b"s:k:0:x", b"s:s:a", b"s:e:1:0:x"}
