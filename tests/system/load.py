# SPDX-License-Identifier: BSD-2-Clause
"""An application that goes on storing events while servers and daemons fall."""

import itertools
import random
import threading
import time

import redis

from harness.scripts import Scripts

PREFIX = "lapse:{0}"
BATCH = 10


class Load(threading.Thread):
    """
    Stores events and keys, a few hundred a second, due now or soon:

        with Load(world) as load:
            ... harm ...
        load.settle()

    stored  the ce_ids that Redis said it has
    unsure  the names of those whose answer was lost
    """

    def __init__(self, world, keys=True, soon_ms=300):
        super().__init__(daemon=True)
        self.world = world
        self.stored = []
        self.unsure = set()
        self._client = world.redis.client(socket_timeout=5)
        self._scripts = None
        self._over = threading.Event()
        self._keys = keys
        self._soon = soon_ms
        self._names = (f"load-{i}" for i in itertools.count())
        self._random = random.Random(1)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()

    def run(self):
        while not self._over.wait(0.02):
            names = list(itertools.islice(self._names, BATCH))
            try:
                self._store(names)
            except redis.RedisError:
                # Sent or not: nobody knows.  Names are never used again.
                self.unsure.update(names)
                self._scripts = None
                time.sleep(0.02)

    def _store(self, names):
        self._scripts = self._scripts or Scripts(self._client)
        pipe = self._client.pipeline(transaction=False)
        for i, name in enumerate(names):
            pipe.execute_command(*self._command(name, self._keys and i % 3 == 0))
        for name, answer in zip(names, pipe.execute(raise_on_error=False)):
            if isinstance(answer, Exception):
                self._scripts = None        # LOADING, NOSCRIPT: not stored
            else:
                self.stored.append(answer[2])

    def _command(self, name, as_key):
        delay = self._random.randrange(self._soon) + 1
        if as_key:
            return self._scripts.command("setex", [PREFIX, name], [delay, name])
        args = [name, f"+{delay}", self.world.topic, "", name]
        return self._scripts.command("schedule", [PREFIX], args)

    def settle(self, duplicates=True, limit=40, dead=False):
        """All that was stored arrives; what was perhaps stored may."""
        assert len(self.stored) > BATCH, "hardly any load"
        ledger = self.world.ledger
        ledger.wait_for(self.stored, limit)
        self.world.drained(limit, dead)
        ledger.finish(limit)
        ledger.check(self.stored, duplicates, maybe=self.unsure)
        return ledger
