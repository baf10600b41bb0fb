# SPDX-License-Identifier: BSD-2-Clause
"""A world whose wires go through proxies, and the judgement at the end."""

import time

from faulty import Faulty
from kafka.broker import Broker
from limits import until
from load import Load
from proxy import Proxy
from wires import Kafka, Redis
from world import World

ROUTES = {"load": {"pattern": "load-*"}}
QUICK = {"lease": "1s", "grace": "5ms"}


class ProxiedBroker(Broker):
    """A broker that tells whoever asks at `proxied` to go on through the proxy."""

    def __init__(self):
        super().__init__()
        self.proxy = Proxy(Kafka, ("127.0.0.1", 0))

    @property
    def proxied(self):
        return f"127.0.0.1:{self.proxy.port}"

    def _choose_ports(self):
        super()._choose_ports()
        broker, controller = self._ports
        inner = self.inner_port((broker, controller))
        self.proxy.target = "127.0.0.1", inner
        self.settings.update({
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},PROXIED://127.0.0.1:{inner},"
                         f"CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker},"
                                    f"PROXIED://127.0.0.1:{self.proxy.port}",
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
        })

    @staticmethod
    def inner_port(taken):
        from kafka.broker import _free_port
        return _free_port(taken)

    def close(self):
        super().close()
        self.proxy.close()


class Place(World):
    """
    A World whose instances reach Redis through `link` and Kafka through `bus`.
    """

    def __init__(self, kafka, folder):
        super().__init__(kafka, folder)
        self.bus = kafka.proxy
        self.link = None

    def __enter__(self):
        self.bus.heal()
        return super().__enter__()

    def __exit__(self, *args):
        self.bus.heal()
        self.link.heal()
        try:
            super().__exit__(*args)
        finally:
            self.link.close()

    def use_redis(self, **options):
        server = super().use_redis(**options)
        if self.link:
            self.link.target = server.socket
        else:
            self.link = Proxy(Redis, server.socket)
        return server

    def sections(self, routes=None, lapsed=None, redis=None, kafka=None):
        return super().sections(
            ROUTES if routes is None else routes, {**QUICK, **(lapsed or {})},
            {"url": f"redis://127.0.0.1:{self.link.port}", **(redis or {})},
            {"bootstrap.servers": self.kafka.proxied, **(kafka or {})})

    def instance(self, name=None, **sections):
        name = name or f"lapsed{len(self.instances)}"
        sections.setdefault("lapsed", {}).setdefault("instance", name)
        made = Faulty(self.folder, name, self.sections(**sections))
        self.instances.append(made)
        return made

    # -- the judgement

    def judge(self, load, limit=30, forgotten=()):
        """
        Nothing is lost, nothing early, nothing stays behind, and what came twice
        has the same id and a reason that was counted.  `forgotten` is what was
        stored while Redis itself may have lost it, or what became of it.
        """
        forgotten = set(forgotten)
        ledger = self.ledger
        ledger.wait_for(set(load.stored) - forgotten, limit)
        self.drained(limit)
        ledger.finish(limit)
        arrived = set(ledger.ids())
        ledger.check([i for i in load.stored if i not in forgotten or i in arrived],
                     duplicates=True, maybe=load.unsure)
        self.explain(ledger, len(forgotten))
        return ledger

    def explain(self, ledger, forgotten=0):
        for instance in self.instances:
            if instance.alive() and not instance.is_stopped() and instance.stderr is None:
                instance.stats()
        surplus = sum(n - 1 for n in ledger.duplicates().values())
        reasons = {"adopted": sum(i.adopted() for i in self.instances)}
        for counter in ("possible_duplicates", "forgotten"):
            reasons[counter] = sum(i.total(counter) for i in self.instances)
        assert surplus <= sum(reasons.values()) + forgotten, \
            f"{surplus} came again, of {reasons}, and {forgotten} that Redis may have forgotten"
        return surplus, reasons


class TimedLoad(Load):
    """One that knows when it stored what, and that can move to another server."""

    def __init__(self, place, **options):
        super().__init__(place, **options)
        self.when = []

    def _store(self, names):
        super()._store(names)
        self.when += [time.monotonic()] * (len(self.stored) - len(self.when))

    def since(self, moment):
        """What was stored after that."""
        return [i for i, at in zip(self.stored, self.when) if at > moment]

    def move(self, server):
        self._client = server.client(socket_timeout=5)
        self._scripts = None


def some(load, n=100):
    """When so much more has been stored."""
    wanted = len(load.stored) + n
    until(lambda: len(load.stored) >= wanted, "some load", 30)
