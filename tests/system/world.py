# SPDX-License-Identifier: BSD-2-Clause
"""A Redis, some topics, some instances, and what an application would do."""

import copy
import uuid

from harness.redisserver import RedisServer
from harness.scripts import Scripts
from lapsed import DEFAULTS, Lapsed
from ledger import Ledger
from limits import until

PREFIX = "lapse:{0}"

# What may be left when all is done (design, section 3).
CANARY = f"{PREFIX}:canary:".encode()
LASTING = {f"{PREFIX}:{name}".encode()
           for name in ("epoch", "slots", "seen", "scan", "sure")}


class World:
    """Everything that a test starts ends with it."""

    def __init__(self, kafka, folder):
        self.kafka = kafka
        self.folder = folder
        self.redis = None
        self.topics = []
        self.instances = []
        self.warm = []          # ce_ids of settle_one()
        self._ledger = None
        self._servers = []

    def __enter__(self):
        self.use_redis()
        self.topic = self.new_topic()
        return self

    def __exit__(self, kind, *_):
        complaints = [c for i in self.instances for c in i.close()]
        if self._ledger:
            self._ledger.close()
        for server in self._servers:
            server.close()
        if kind is None:
            assert not complaints, "\n".join(complaints)

    # -- servers

    def use_redis(self, **options):
        """A new server, which takes the place of the one there was."""
        folder = self.folder / f"redis{len(self._servers)}"
        folder.mkdir()
        if self.redis:
            self.redis.close()
        self.redis = self.keep(RedisServer(folder, **options).start())
        self.use_scripts()
        return self.redis

    def keep(self, server):
        """It ends after the instances, which give their slots back."""
        self._servers.append(server)
        return server

    def use_scripts(self):
        """After a restart of Redis, which forgets them."""
        self.client = self.redis.client()
        self.scripts = Scripts(self.client)

    def new_topic(self, name=None, partitions=1, **config):
        """Records in it tell when they came."""
        name = name or f"t-{uuid.uuid4().hex[:12]}"
        settings = {"message.timestamp.type": "LogAppendTime"}
        settings.update({k.replace("_", "."): str(v) for k, v in config.items()})
        self.kafka.create_topic(name, partitions, settings)
        self.topics.append(name)
        if self._ledger:
            self._ledger.add(name)
        return name

    # -- instances

    def sections(self, routes=None, lapsed=None, redis=None, kafka=None):
        """The configuration; `routes`: name -> options, of which topic may be left out."""
        result = copy.deepcopy(DEFAULTS)
        result["lapsed"].update(lapsed or {})
        result["redis"] = {"url": self.redis.url, **(redis or {})}
        result["kafka"] = {"bootstrap.servers": self.kafka.bootstrap, **result["kafka"],
                           **(kafka or {})}
        for name, options in (routes or {}).items():
            result[f"route {name}"] = {"topic": self.topic, **options}
        return result

    def instance(self, name=None, **sections):
        """One that is not started yet."""
        name = name or f"lapsed{len(self.instances)}"
        sections.setdefault("lapsed", {}).setdefault("instance", name)
        made = Lapsed(self.folder, name, self.sections(**sections))
        self.instances.append(made)
        return made

    def lapsed(self, name=None, **sections):
        return self.instance(name, **sections).start()

    # -- what an application does

    def schedule(self, name, when="+0", topic=None, key="", payload=b"", *options):
        """The ce_id."""
        args = [name, when, topic or self.topic, key, payload, *options]
        return self.scripts.call("schedule", [PREFIX], args)[2]

    def schedule_many(self, names, when="+0", payload=b"x", topic=None):
        """The ce_ids, in the order of `names`."""
        pipe = self.client.pipeline(transaction=False)
        for name in names:
            pipe.execute_command(*self.scripts.command(
                "schedule", [PREFIX], [name, when, topic or self.topic, "", payload]))
        return [answer[2] for answer in pipe.execute()]

    def setex(self, key, when, value=b"v", *options):
        return self.scripts.call("setex", [PREFIX, key], [when, value, *options])[2]

    def setex_many(self, keys, when, value=b"v"):
        pipe = self.client.pipeline(transaction=False)
        for key in keys:
            pipe.execute_command(*self.scripts.command("setex", [PREFIX, key], [when, value]))
        return [answer[2] for answer in pipe.execute()]

    def delete(self, key):
        return self.scripts.call("del", [PREFIX, key])

    def cancel(self, name):
        return self.scripts.call("cancel", [PREFIX], [name])

    def show(self, name, *options):
        answer = self.scripts.call("show", [PREFIX], [name, *options])
        return dict(zip(answer[::2], answer[1::2]))

    def now(self):
        """Redis' clock, ms."""
        seconds, micro = self.client.time()
        return seconds * 1000 + micro // 1000

    # -- what came of it

    @property
    def ledger(self):
        """Of all topics of this world."""
        if not self._ledger:
            self._ledger = Ledger(self.kafka.bootstrap)
            for topic in self.topics:
                self._ledger.add(topic)
        return self._ledger

    def left(self):
        """The keys of lapsed that are there, but for those that may stay."""
        busy = [f"{PREFIX}:{name}" for name in ("due", "rec", "open")]
        if self.client.exists(*busy):       # no need to look at every key there is
            return {key.encode() for key in busy if self.client.exists(key)}
        keys = set(self.client.scan_iter(match=b"lapse:{*", count=1000))
        return {k for k in keys - LASTING if not k.startswith(CANARY)}

    def drained(self, limit=20, dead=False):
        """
        Once every key is empty that should be when all is settled; `dead`: there
        are dead letters.
        """
        kept = {f"{PREFIX}:dead".encode(), f"{PREFIX}:why".encode()} if dead else set()
        try:
            until(lambda: self.left() == kept, "everything to be settled", limit)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; left are {self.left()}") from None

    def dead(self):
        """ce_id -> reason of each dead letter."""
        return {ce_id: why[3:3 + int.from_bytes(why[1:3], "big")].decode()
                for ce_id, why in self.client.hgetall(f"{PREFIX}:why").items()}

    def records(self, count, limit=20):
        """Exactly so many in all, when everything is settled."""
        until(lambda: len(self.ledger.read()) >= count, f"{count} records", limit)
        self.drained(limit)
        assert len(self.ledger.finish(limit)) == count
        return self.ledger.records

    def settle_one(self):
        """Proof that everything works, before it is harmed."""
        self.warm.append(self.schedule(f"warm-{len(self.warm)}"))
        lapsed = self.lapsed()
        self.settle(self.warm)
        lapsed.stop()
        self.instances.remove(lapsed)

    def settle(self, ids, duplicates=False, limit=20, dead=False):
        """All of `ids` arrive, and nothing else, and Redis forgets them."""
        self.ledger.wait(len(set(ids)), limit)
        self.drained(limit, dead)
        self.ledger.finish(limit)
        self.ledger.check(ids, duplicates)
        return self.ledger
