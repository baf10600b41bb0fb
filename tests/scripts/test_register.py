# SPDX-License-Identifier: BSD-2-Clause
"""register: the shadow follows the keys, whatever was heard of them."""

import json

import pytest
from harness.wire import Envelope, Record

KEY = "k:0:k"
MEMBER = b"k:0:k"
WORDS = ("registered", "moved", "unregistered", "cancelled", "aside", "evicted", "dropped", "bare")


@pytest.fixture
def shard(daemon_shard):
    return daemon_shard


@pytest.fixture
def register(shard):
    def register(*keys):
        """Each key: member, signs, largest value, age; what was done, without the zeros."""
        args = []
        for key in keys:
            member, signs, largest, age, *heard = *key, *("", "-", "-")[len(key) - 1:]
            heard = heard or [0 if "s" in signs else "-"]
            args += [member, signs.replace("s", ""), largest, age, *heard]
        answer = [int(x) for x in shard.call("register", *args)]
        assert abs(answer[0] - shard.now()) < 5000
        return {word: n for word, n in zip(WORDS, answer[1:]) if n}
    return register


def ends(shard, key="k"):
    return shard.now() + shard.client.pttl(key)


def near(a, b):
    """Before 7.0 Redis tells ends by a clock that is a little behind."""
    return abs(a - b) <= 5


def test_a_key_with_a_ttl_is_registered(shard, register):
    shard.client.set("k", "v", px=60000)
    assert register((KEY,)) == {"registered": 1}
    assert near(shard.due()[MEMBER], ends(shard))
    assert shard.records() == {}
    before = shard.dump()
    assert register((KEY,)) == {}
    assert shard.dump() == before


def test_with_a_copy(shard, register):
    shard.client.set("k", b"v\0\xff", px=60000)
    assert register((KEY, "s", 100)) == {"registered": 1}
    record = shard.record(MEMBER)
    assert record.fields == [(b"p", b"v\0\xff")]
    assert abs(record.birth - shard.now_us()) < 5000000
    before = shard.dump()
    assert register((KEY, "s", 100)) == {}
    assert shard.dump() == before


def test_without_a_ttl_it_is_not(shard, register):
    shard.client.set("k", "v")
    assert register((KEY, "s", 100)) == {}
    assert register(("k:0:none", "s", 100)) == {}
    assert shard.keys() == set()


@pytest.mark.parametrize("ttl", [90000, 30000])
def test_another_ttl_is_followed_and_the_life_stays(shard, register, ttl):
    shard.client.set("k", "v", px=60000)
    register((KEY, "s", 100))
    record = shard.record(MEMBER)
    shard.client.pexpire("k", ttl)
    assert register((KEY, "", 100)) == {"moved": 1}
    assert near(shard.due()[MEMBER], ends(shard))
    assert shard.record(MEMBER) == record


def test_persist(shard, register):
    shard.client.set("k", "v", px=60000)
    register((KEY, "s", 100))
    shard.client.persist("k")
    assert register((KEY, "", 100)) == {"unregistered": 1}
    assert shard.keys() == set()


@pytest.mark.parametrize("deletion", ["delete", "unlink", "rename"])
def test_deleted(shard, register, deletion):
    shard.client.set("k", "v", px=60000)
    register((KEY, "s", 100))
    if deletion == "rename":
        shard.client.rename("k", "other")
    else:
        getattr(shard.client, deletion)("k")
    assert register((KEY, "d", 100)) == {"cancelled": 1}
    assert shard.keys() == set()


def test_gone_without_a_word_is_left_to_the_claim(shard, register):
    shard.client.set("k", "v", px=60000)
    register((KEY, "s", 100))
    shard.client.delete("k")
    assert register((KEY, "", 100)) == {}
    assert set(shard.due()) == {MEMBER}


def test_set_again_is_another_life(shard, register):
    shard.client.set("k", "one", px=60000)
    register((KEY, "s", 100))
    first = shard.record(MEMBER)
    shard.client.set("k", "two", px=70000)
    assert register((KEY, "s", 100)) == {"moved": 1}
    second = shard.record(MEMBER)
    assert second.get(b"p") == b"two" and second.birth > first.birth
    assert near(shard.due()[MEMBER], ends(shard))


def test_written_to_with_the_ttl_kept(shard, register):
    shard.client.set("k", "one", px=60000)
    register((KEY, "s", 100))
    due = shard.due()
    shard.client.append("k", "two")
    assert register((KEY, "s", 100)) in ({}, {"moved": 1})
    assert shard.record(MEMBER).get(b"p") == b"onetwo"
    assert near(shard.due()[MEMBER], due[MEMBER])


def test_what_was_written_since_is_another_matter(shard, register):
    """The others hear of the SET as well, and look at it later."""
    shard.client.set("k", "one", px=60000)
    register((KEY, "s", 100))
    shard.client.append("k", "two")
    assert register((KEY, "", 100, "-", 1000)) in ({}, {"moved": 1})
    assert shard.record(MEMBER).get(b"p") == b"one"
    register((KEY, "", 100, "-", 0))
    assert shard.record(MEMBER).get(b"p") == b"onetwo"


def test_expired_and_set_again_before_anybody_looked(shard, register):
    shard.client.set("k", "one", px=200)
    register((KEY, "s", 100))
    due, record = shard.due()[MEMBER], shard.record(MEMBER)
    shard.pass_by(due + 5)
    shard.client.set("k", "two", px=60000)
    assert register((KEY, "xs", 100, 0)) == {"aside": 1, "registered": 1}
    aside = b"e:%d:0:k" % record.birth
    assert shard.due()[aside] == due and near(shard.due()[MEMBER], ends(shard))
    assert shard.record(aside).fields == [(b"e", b"h"), *record.fields]
    assert shard.record(MEMBER).get(b"p") == b"two"
    assert shard.record(MEMBER).birth > record.birth
    (member, envelope), = shard.join().claim().entries.items()
    assert (member, envelope.due, envelope.certainty) == (aside, due, "h")


def test_expired_and_set_again_without_a_ttl(shard, register):
    shard.client.set("k", "one", px=200)
    register((KEY, "", 100))
    due = shard.due()[MEMBER]
    shard.pass_by(due + 5)
    shard.client.set("k", "two")
    assert register((KEY, "xs", "-", 0)) == {"aside": 1}
    (member, score), = shard.due().items()
    assert member.startswith(b"e:") and score == due
    assert shard.record(MEMBER) is None


def test_an_expiry_of_long_ago_is_not_of_this_life(shard, register):
    """Its end came after what was heard: that was of the life before."""
    shard.client.set("k", "one", px=200)
    register((KEY, "s", 100))
    due = shard.due()[MEMBER]
    shard.pass_by(due + 5)
    shard.client.set("k", "two", px=60000)
    assert register((KEY, "xs", 100, 5000)) == {"moved": 1}
    assert set(shard.due()) == {MEMBER}


@pytest.mark.parametrize("signs", ["xds", "xvs", "xves"])
def test_gone_after_it_had_expired(shard, register, signs):
    """Expired, set again, deleted or evicted: the expiry stays for the claim."""
    shard.client.set("k", "one", px=200)
    register((KEY, "s", 100))
    shard.pass_by(shard.due()[MEMBER] + 5)
    assert register((KEY, signs, 100, 0)) == {}
    assert set(shard.due()) == {MEMBER}


def test_evicted_and_dropped(shard, register):
    shard.client.set("k", "one", px=60000)
    register((KEY, "s", 100))
    shard.client.delete("k")
    assert register((KEY, "v", 100)) == {"dropped": 1}
    assert shard.keys() == set()


def test_evicted_and_emitted(shard, register):
    shard.client.set("k", "one", px=60000)
    register((KEY, "s", 100))
    birth = shard.record(MEMBER).birth
    shard.client.delete("k")
    assert register((KEY, "ve", 100)) == {"evicted": 1}
    (member, envelope), = shard.join().claim().entries.items()
    assert member == b"e:%d:0:k" % birth
    record = Record.unpack(envelope.record)
    assert record.fields == [(b"e", b"h"), (b"y", b"io.lapsed.evicted"), (b"p", b"one")]


def test_a_value_over_the_limit(shard, register):
    shard.client.set("k", "x" * 101, px=60000)
    assert register((KEY, "s", 100)) == {"registered": 1, "bare": 1}
    assert shard.record(MEMBER).headers == {b"ce_lapsevalue": b"too-large"}
    assert shard.record(MEMBER).get(b"p") is None


def fill_hash(c):
    c.hset("k", mapping={"b": "2", "a": '"\n'})
    return {"b": "2", "a": '"\n'}


def fill_odd_hash(c):
    c.hset("k", mapping={"b": b"\xff\0", b"\xfe": "x"})
    return [["b", {"base64": "/wA="}], [{"base64": "/g=="}, "x"]]


def fill_list(c):
    c.rpush("k", *range(250), "ä", b"\xc3")
    return [str(i) for i in range(250)] + ["ä", {"base64": "ww=="}]


def fill_set(c):
    c.sadd("k", "1", "2", "3")
    return ["1", "2", "3"]


def fill_zset(c):
    c.zadd("k", {"a": 1.5, "b": float("inf"), "c": -2})
    return [["c", -2], ["a", 1.5], ["b", "inf"]]


def fill_stream(c):
    for i in range(1, 102):
        c.xadd("k", {"f": i}, id=f"{i}-0")
    return [{"id": f"{i}-0", "fields": {"f": str(i)}} for i in range(1, 102)]


@pytest.mark.parametrize("fill", [fill_hash, fill_odd_hash, fill_list, fill_set, fill_zset,
                                  fill_stream])
def test_other_types_are_json(shard, register, fill):
    expected = fill(shard.client)
    shard.client.pexpire("k", 60000)
    assert register((KEY, "s", 10000)) == {"registered": 1}
    record = shard.record(MEMBER)
    assert record.get(b"c") == b"application/json"
    assert json.loads(record.get(b"p")) == expected
    for limit in 3, len(record.get(b"p")) - 1:
        shard.client.delete(shard.name("rec"), shard.name("due"))
        assert register((KEY, "s", limit)) == {"registered": 1, "bare": 1}


@pytest.mark.parametrize("text,binary", [
    (b"\xc2\x80", 0), (b"\xc1\x80", 1), (b"\xe0\xa0\x80", 0), (b"\xe0\x9f\x80", 1),
    (b"\xed\x9f\xbf", 0), (b"\xed\xa0\x80", 1), (b"\xf0\x90\x80\x80", 0),
    (b"\xf0\x8f\x80\x80", 1), (b"\xf4\x8f\xbf\xbf", 0), (b"\xf4\x90\x80\x80", 1),
    (b"\xe2\x82", 1), (b"\x80", 1), (b"a\xc3\xa4b\xff", 1), (b"\xf5\x80\x80\x80", 1),
])
def test_what_is_utf8(shard, register, text, binary):
    shard.client.rpush("k", text)
    shard.client.pexpire("k", 60000)
    register((KEY, "s", 100))
    (value,) = json.loads(shard.record(MEMBER).get(b"p"))
    if binary:
        import base64
        assert base64.b64decode(value["base64"]) == text
    else:
        assert value.encode() == text


def test_a_key_of_another_database(shard, register):
    shard.db(3).set("k", "three", px=60000)
    shard.client.set("k", "zero", px=70000)
    assert register((KEY, "s", 100), ("k:3:k", "s", 100)) == {"registered": 2}
    assert shard.record(b"k:3:k").get(b"p") == b"three"
    assert shard.record(MEMBER).get(b"p") == b"zero"
    assert register(("k:99999:k", "d")) == {}


def test_the_daemons_are_woken(shard, register):
    with shard.client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe(shard.name("wake"))
        heard.get_message(timeout=5)
        shard.client.set("k", "v", px=60000)
        shard.client.set("l", "v", px=50000)
        register((KEY,), ("k:0:l",))
        message = heard.get_message(timeout=5)
        assert int(message["data"]) == shard.due()[b"k:0:l"]
        shard.client.set("m", "v", px=90000)
        register(("k:0:m",))
        assert heard.get_message(timeout=0.05) is None


def test_claimed_when_it_is_due(shard, register):
    shard.client.set("k", "v", px=30)
    register((KEY, "s", 100))
    due = shard.due()[MEMBER]
    shard.pass_by(due + 5)
    (member, envelope), = shard.join().claim(hush=0).entries.items()
    assert member == MEMBER and envelope.due == due
    assert Record.unpack(envelope.record).get(b"p") == b"v"


def test_heard_to_expire_and_there_again_is_claimed(shard, register):
    """The old life goes, the new one takes its place."""
    shard.client.set("k", "one", px=200)
    register((KEY, "s", 100))
    due = shard.due()[MEMBER]
    shard.pass_by(due + 5)
    shard.client.set("k", "two", px=60000)
    (member, envelope), = shard.join().claim(KEY, "0!").entries.items()
    assert (member, envelope.due, envelope.certainty) == (MEMBER, due, "h")
    assert Record.unpack(envelope.record).get(b"p") == b"one"
    assert near(shard.due()[MEMBER], ends(shard))
    assert register((KEY, "xs", 100, 0)) in ({}, {"moved": 1})
    assert shard.record(MEMBER).get(b"p") == b"two"
