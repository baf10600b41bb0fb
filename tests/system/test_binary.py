# SPDX-License-Identifier: BSD-2-Clause
"""Every byte arrives as it was; the records are what docs/events.md says."""

import base64
import json

import pytest
import redis

# Case 13.
NAMES = {
    "nul": b"a\x00b",
    "crlf": b"a\r\nb",
    "not-utf8": b"\xff\xfe\x80",
    "colons": b"a:b:c:*?[x]",
    "percent": b"100%@1.0",
    "one-byte": b"\x00",
    "longest": bytes(range(256)) * 4,
}
PAYLOADS = {
    "empty": b"",
    "nul": b"\x00",
    "crlf": b"\r\n\r\n",
    "not-utf8": bytes(range(256)),
    "largest": bytes(range(256)) * 3906 + b"\x00" * 64,
}


def quoted(raw):
    """As in a ce_id."""
    return "".join(chr(c) if 0x21 <= c <= 0x7e and c != 0x25 else f"%{c:02X}"
                   for c in raw).encode()


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names(world, name):
    """Ids, Kafka keys and watched keys."""
    world.lapsed(routes={"all": {"pattern": "*"}})
    event = world.schedule(name, key=name, payload=name)
    key = world.setex(name, "1", name)
    ledger = world.settle([event, key])
    assert ledger.by_id(event).key == name
    assert ledger.by_id(event).value == name
    assert ledger.by_id(key).key == name
    assert ledger.by_id(key).value == name
    assert event.startswith(b"s:" + quoted(name) + b"@")
    assert key.startswith(b"k:0:" + quoted(name) + b"@")
    assert ledger.by_id(key).headers["ce_subject"] == quoted(name)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_that_are_only_heard(world, name):
    world.lapsed(routes={"all": {"pattern": "*"}}).wait("redis.subscribed")
    world.client.set(name, "v", px=50)
    r = world.records(1)[0]
    assert (r.key, r.value) == (name, b"")


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_payloads(world, payload):
    assert len(PAYLOADS["largest"]) == 1_000_000
    world.lapsed(routes={"all": {"pattern": "*"}})
    event = world.schedule("job", payload=payload)
    key = world.setex("key", "1", payload)
    ledger = world.settle([event, key])
    assert ledger.by_id(event).value == payload
    assert ledger.by_id(key).value == payload


def test_an_empty_name_is_refused(world):
    """Case 13: Redis allows an empty key; nothing we say of it fits."""
    for call in (lambda: world.schedule(b""), lambda: world.setex(b"", "1")):
        with pytest.raises(Exception, match="LAPSE_BADARG"):
            call()
    assert not world.client.keys("*")


def test_the_value_is_that_of_the_shadow_copy(world):
    """Case 9: after the expiry there is nothing to GET."""
    world.lapsed(routes={"orders": {"pattern": "order:*"}})
    ids = [world.setex("order:1", "50", b"\x00copy\xff")]
    ledger = world.settle(ids)
    assert world.client.get("order:1") is None
    assert ledger.records[0].value == b"\x00copy\xff"


def test_without_a_copy_the_value_is_empty(world):
    """Case 10: never null, which would be a tombstone."""
    world.lapsed(routes={"orders": {"pattern": "order:*"}})
    world.setex("order:1", "50", b"secret", "copy", "0")
    assert world.records(1)[0].value == b""


def test_headers_of_a_scheduled_event(world):
    """Every header of design section 6, in binary mode, in order."""
    world.lapsed(lapsed={"source": "/test/source"})
    ce_id = world.schedule(
        "job 1", "+100", None, "the-key", b'{"a":1}', "type", "com.example.due",
        "content-type", "application/json", "header.traceparent", "00-ab-cd-01",
        "header.x", b"\x00\xff")
    r = world.settle([ce_id]).records[0]
    assert r.key == b"the-key"
    assert r.value == b'{"a":1}'
    assert [name for name, _ in r.header_list] == [
        "ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time", "ce_subject",
        "content-type", "ce_lapsetrigger", "ce_lapsecertainty", "ce_lapseattempt",
        "ce_lapseshard", "traceparent", "x"]
    birth = ce_id.rsplit(b"@", 1)[1]
    assert birth.endswith(b".0")
    assert r.headers["ce_lapsetrigger"] in (b"timer", b"wake", b"sweep")
    expected = {
        "ce_specversion": b"1.0", "ce_id": b"s:job%201@" + birth,
        "ce_source": b"/test/source", "ce_type": b"com.example.due",
        "ce_subject": b"job%201", "content-type": b"application/json",
        "ce_lapseattempt": b"1", "ce_lapseshard": b"lapse:{0}",
        "traceparent": b"00-ab-cd-01", "x": b"\x00\xff",
    }
    assert {name: r.headers[name] for name in expected} == expected
    assert r.due == int(birth.split(b".")[0]) // 1000 + 100


def test_headers_of_an_expired_key(world):
    world.lapsed(routes={"orders": {
        "pattern": "order:*:*", "key": "{2}-{1}-{db}", "content_type": "text/plain"}})
    ce_id = world.setex("order:7:ü".encode(), "100", b"v")
    r = world.settle([ce_id]).records[0]
    assert r.key == "ü-7-0".encode()
    expected = {
        "ce_specversion": b"1.0", "ce_id": ce_id, "ce_source": b"lapsed",
        "ce_type": b"io.lapsed.expired", "ce_subject": b"order:7:%C3%BC",
        "content-type": b"text/plain", "ce_lapsecertainty": b"found",
        "ce_lapseattempt": b"1", "ce_lapseshard": b"lapse:{0}",
    }
    assert {name: r.headers[name] for name in expected} == expected
    assert r.headers["ce_lapsetrigger"] in (b"timer", b"sweep", b"wake")


def test_structured_mode(world):
    world.lapsed(routes={
        "json": {"pattern": "json:*", "mode": "structured",
                 "content_type": "application/json"},
        "bytes": {"pattern": "bytes:*", "mode": "structured"},
    })
    ids = [world.setex("json:1", "50", b'{"a":[1,2]}'),
           world.setex("bytes:1", "50", b"\x00\xff")]
    world.records(2)
    by_key = {r.key: r for r in world.ledger.records}
    body = json.loads(by_key[b"json:1"].value)
    assert by_key[b"json:1"].headers["content-type"] == b"application/cloudevents+json"
    assert body["id"].encode() == ids[0]
    assert body["data"] == {"a": [1, 2]}
    assert body["specversion"] == "1.0"
    assert body["type"] == "io.lapsed.expired"
    assert body["subject"] == "json:1"
    body = json.loads(by_key[b"bytes:1"].value)
    assert base64.b64decode(body["data_base64"]) == b"\x00\xff"
    assert body["id"].encode() == ids[1]


def test_raw_mode(world):
    world.lapsed(routes={"raw": {"pattern": "raw:*", "mode": "raw"}})
    ce_id = world.setex("raw:1", "50", b"\x00\xff")
    r = world.records(1)[0]
    assert r.value == b"\x00\xff"
    assert r.header_list == [("content-type", b"application/octet-stream"), ("ce_id", ce_id)]


@pytest.mark.parametrize("mode", ["structured", "raw"])
def test_the_mode_of_scheduled_events(world, mode):
    """[lapsed] mode is how scheduled events are laid out."""
    world.lapsed(lapsed={"mode": mode})
    ce_id = world.schedule("job", payload=b"text")
    r = world.records(1)[0]
    if mode == "raw":
        assert r.value == b"text"
        assert dict(r.header_list) == {"content-type": b"application/octet-stream",
                                       "ce_id": ce_id}
    else:
        body = json.loads(r.value)
        assert body["id"].encode() == ce_id
        assert base64.b64decode(body["data_base64"]) == b"text"


def test_the_largest_event(world):
    """What lapse_schedule takes, Kafka takes, with all that lapsed adds."""
    world.lapsed()
    name, topic = b"\xff" * 1024, world.new_topic(world.topic.ljust(249, "T"))
    headers = sum(((f"header.{i:02}{'h' * 253}", b"x" * 8192) for i in range(32)), ())
    most = 1040000 - sum(len(h) + 3 - len("header.") + len(v) for h, v in
                         zip(headers[::2], headers[1::2]))
    for payload in range(most, most - 1000, -50):
        try:
            made = world.schedule(name, "+0", topic, b"k" * 1024, bytes(payload), *headers,
                                  "type", "t" * 255, "content-type", "c" * 255)
            break
        except redis.ResponseError as e:
            assert "1040000 bytes together" in str(e)
    world.settle([made])
