# SPDX-License-Identifier: BSD-2-Clause
"""One shard of the test server, as an application and as instances see it."""

import pytest
import redis
from harness.wait import until
from harness.wire import Batch, Record

PREFIX = b"lapse:{0}"


class Shard:
    def __init__(self, client, scripts, prefix=PREFIX):
        self.client = client
        self.scripts = scripts
        self.prefix = prefix
        self._dbs = {}

    # -- calls

    def call(self, name, *args, key=None, client=None):
        keys = [self.prefix] if key is None else [self.prefix, key]
        return self.scripts.call(name, keys, args, client)

    def schedule(self, id="a", when="+60000", topic="t", key="", payload="", *options):
        return self.call("schedule", id, when, topic, key, payload, *options)

    def refused(self, code, name, *args, key=None, keys=None):
        """The call is refused with this code, and nothing has changed."""
        before = self.dump()
        with pytest.raises(redis.ResponseError) as caught:
            if keys is None:
                self.call(name, *args, key=key)
            else:
                self.scripts.call(name, keys, args)
        assert self.dump() == before
        text = str(caught.value)
        assert text.split()[0] == code or code in text, text
        return text

    # -- what stands in Redis

    def name(self, suffix):
        return self.prefix + b":" + suffix.encode()

    def due(self):
        """member -> due ms"""
        return {m: int(s) for m, s in self.client.zrange(self.name("due"), 0, -1, withscores=True)}

    def records(self):
        return self.client.hgetall(self.name("rec"))

    def record(self, member):
        text = self.client.hget(self.name("rec"), member)
        return None if text is None else Record.unpack(text)

    def open(self):
        return self.client.hgetall(self.name("open"))

    def seen(self):
        return {m: int(s) for m, s in self.client.zrange(self.name("seen"), 0, -1, withscores=True)}

    def batch(self, name):
        return self.client.hgetall(self.name("b:" + name))

    def keys(self):
        """All keys below the prefix, but for the leases."""
        lease = {self.name("epoch"), self.name("slots")}
        return {k for k in self.client.keys("*") if k.startswith(self.prefix)} - lease

    def db(self, number):
        """A client of another database."""
        if number not in self._dbs:
            options = self.client.connection_pool.connection_kwargs
            self._dbs[number] = redis.Redis(unix_socket_path=options["path"], db=number)
        return self._dbs[number]

    def dump(self):
        """Every key of every database: type, value, end of life."""
        everything = {}
        for name in self.client.info("keyspace"):
            number = int(name[2:])
            client = self.db(number)
            for key in client.keys("*"):
                value = self._read(client, key)
                if value is not None:
                    everything[number, key] = (value, self._ends(client, key))
        return everything

    @staticmethod
    def _read(client, key):
        kind = client.type(key)
        if kind == b"string":
            return client.get(key)
        if kind == b"hash":
            return client.hgetall(key)
        if kind == b"zset":
            return client.zrange(key, 0, -1, withscores=True)
        assert kind == b"none"
        return None

    @staticmethod
    def _ends(client, key):
        try:
            return client.execute_command("PEXPIRETIME", key)
        except redis.ResponseError:  # before 7.0
            return client.ttl(key) >= 0

    # -- time

    def now_us(self):
        seconds, micros = self.client.time()
        return seconds * 1000000 + micros

    def now(self):
        return self.now_us() // 1000

    def pass_by(self, ms):
        """Returns when Redis' clock is beyond that millisecond."""
        until(lambda: self.now() > int(ms), f"millisecond {ms} to pass", pause=0.0005)

    # -- instances

    def join(self, nonce="n1", lease=60000, instance="host/1"):
        return Instance(self, nonce, lease, instance)


class Instance:
    """Who holds a slot: its calls carry the fence and parse the answers."""

    def __init__(self, shard, nonce, lease, instance):
        self.shard = shard
        self.nonce = nonce
        answer = shard.call("join", instance, nonce, lease)
        self.slot, self.epoch, self.seq = (int(x) for x in answer[1:4])
        self.left_open = answer[4:]

    @property
    def fence(self):
        return [self.slot, self.epoch, self.nonce]

    def call(self, name, *args):
        return self.shard.call(name, *self.fence, *args)

    def fenced(self, name, *args):
        self.shard.refused("LAPSE_FENCED", name, *self.fence, *args)

    def claim(self, *heard, seq=None, limit=1000, size=1 << 20, hush=0, window=1000):
        """Under the next seq, which is used only when something was claimed."""
        mine = self.seq + 1 if seq is None else seq
        answer = Batch.parse(self.call("claim", mine, limit, size, hush, window, *heard))
        if answer.entries and seq is None:
            self.seq = mine
        return answer

    def claim_one(self, *heard, **options):
        """The one entry that this claim has: member and envelope."""
        (entry,) = self.claim(*heard, **options).entries.items()
        return entry

    def settle(self, seq=None, bury=(), groups=(), keep=0, jobs=()):
        """
        bury: (member, ce_id, reason); groups: (seq, topic, retry, members); jobs:
        (member, birth, attempt).  The answer's first word; `said` is all of it.
        """
        args = [self.seq if seq is None else seq, len(bury)]
        for burial in bury:
            args += burial
        args += [keep, len(jobs)]
        for job in jobs:
            args += job
        for to, topic, retry, members in groups:
            args += [to, topic, retry, len(members), *members]
            self.seq = max(self.seq, to)
        self.said = self.call("settle", *args)
        return self.said[0]

    def adopt(self, slot, seq):
        mine = self.seq + 1
        answer = Batch.parse(self.call("adopt", mine, slot, seq))
        if self.shard.open().get(b"%d:%d" % (self.slot, mine)):
            self.seq = mine
        return answer

    def name(self, seq=None):
        return f"{self.slot}:{self.seq if seq is None else seq}"
