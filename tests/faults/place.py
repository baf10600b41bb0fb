# SPDX-License-Identifier: BSD-2-Clause
"""A world whose wires go through proxies, and the judgement at the end."""

import contextlib
import re
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from faulty import Faulty
from kafka.broker import Broker, Cluster, _free_port, wait_for
from limits import scaled, until
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
        self._tls_port = None
        self._certificate = self.folder / "certificate.pem"

    @property
    def proxied(self):
        return f"127.0.0.1:{self.proxy.port}"

    def tls(self):
        """What a client sets to come in through TLS, past the proxy."""
        return {"bootstrap.servers": f"localhost:{self._tls_port}",
                "security.protocol": "ssl", "broker.address.family": "v4",
                "ssl.ca.location": str(self._certificate)}

    def _make_certificate(self):
        """For localhost; the file that the broker reads has the key as well."""
        key = self.folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", key, "-out", self._certificate], check=True, capture_output=True)
        both = self.folder / "both.pem"
        both.write_bytes(key.read_bytes() + self._certificate.read_bytes())
        return str(both)

    def _choose_ports(self):
        super()._choose_ports()
        broker, controller = self._ports
        inner = _free_port((broker, controller))
        self._tls_port = _free_port((broker, controller, inner))
        self.proxy.target = "127.0.0.1", inner
        self.settings.update({
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},PROXIED://127.0.0.1:{inner},"
                         f"TLS://127.0.0.1:{self._tls_port},"
                         f"CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker},"
                                    f"PROXIED://127.0.0.1:{self.proxy.port},"
                                    f"TLS://localhost:{self._tls_port}",
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM", "ssl.keystore.location": self._make_certificate(),
            "inter.broker.listener.name": "PLAINTEXT",
        })

    def pause(self):
        self.proxy.faults += 1
        super().pause()

    def _end(self, number):
        self.proxy.faults += self.process is not None
        super()._end(number)

    def close(self):
        super().close()
        self.proxy.close()


class Member(Broker):
    """One of several brokers; the first one is the controller as well."""

    def __init__(self, number, first=None):
        super().__init__()
        self.number = number
        self.first = first or self
        self.cluster_id = self.first.cluster_id

    def _choose_ports(self):
        super()._choose_ports()
        quorum = f"1@127.0.0.1:{self.first._ports[1]}"
        self.settings.update({"node.id": str(self.number), "controller.quorum.voters": quorum,
                              "controlled.shutdown.enable": "true",
                              "replica.lag.time.max.ms": "2000"})
        if self.first is not self:
            self.settings.update({"process.roles": "broker",
                                  "listeners": f"PLAINTEXT://{self.bootstrap}"})

    def _answers(self):
        with contextlib.suppress(Exception):
            return self.number in self.admin().list_topics(timeout=1).brokers

    def _ready(self):
        assert self.process.poll() is None, self.log()
        return self._answers()


class Trio(Cluster):
    """Three brokers; the second and the third may fall."""

    def __init__(self):
        super().__init__(None)
        self.members = []
        self._pool = ThreadPoolExecutor()       # brokers die with the thread that made them

    def __enter__(self):
        for number in (1, 2, 3):
            self.members.append(Member(number, self.members[0] if self.members else None))
        first, *others = self.members
        first.start()
        list(self._pool.map(Member.start, others))
        self.bootstrap = ",".join(m.bootstrap for m in self.members)
        return self

    def __exit__(self, *_):
        for member in reversed(self.members):
            member.close()
        self._pool.shutdown()

    def mend(self):
        """Whoever is down comes back."""
        for member in self.members:
            member.start()

    def new_topic(self):
        """Two copies on the second and the third."""
        from confluent_kafka.admin import NewTopic
        name = f"t-{uuid.uuid4().hex[:12]}"
        topic = NewTopic(name, num_partitions=1, replica_assignment=[[2, 3]],
                         config={"message.timestamp.type": "LogAppendTime"})
        admin = self.admin()
        admin.create_topics([topic], operation_timeout=30)[name].result()
        wait_for(lambda: self._has_leaders(admin, name), 30, f"leaders of {name}")
        return name

    def leader(self, topic):
        """The member that leads it, as the first one sees it."""
        admin = self.members[0].admin()
        found = admin.list_topics(topic, timeout=10).topics[topic]
        return next((m for m in self.members if m.number == found.partitions[0].leader), None)


class Place(World):
    """
    A World whose instances reach Redis through `link` and Kafka through `bus`.
    """

    def __init__(self, kafka, folder):
        super().__init__(kafka, folder)
        self.bus = kafka.proxy
        self.link = None
        self.figures = {}       # of the summary, when it has ended
        self.missing = 0        # what Redis itself has lost
        self._faults = self.bus.faults

    def __enter__(self):
        self.bus.heal()
        return super().__enter__()

    def __exit__(self, *args):
        self.bus.heal()
        self.link.heal()
        try:
            self.sum_up()
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

    def use_cluster(self, kafka, topic):
        """Another one than all tests share, without a proxy."""
        self.kafka = kafka
        self.topic = topic
        self.topics = [topic]

    def sections(self, routes=None, lapsed=None, redis=None, kafka=None):
        return super().sections(
            ROUTES if routes is None else routes, {**QUICK, **(lapsed or {})},
            {"url": f"redis://127.0.0.1:{self.link.port}", **(redis or {})},
            {"bootstrap.servers": getattr(self.kafka, "proxied", ""), **(kafka or {})})

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
        stored while Redis itself may have lost it, or what became of it: a key
        that it does not know any more, and whose expiry was heard, comes under
        an id of its own.
        """
        forgotten = set(forgotten)
        ledger = self.ledger
        ledger.wait_for(set(load.stored) - forgotten, limit)
        self.drained(limit)
        ledger.finish(limit)
        arrived = set(ledger.ids())
        self.missing += len(set(load.stored) - arrived)
        ledger.check([i for i in load.stored if i not in forgotten or i in arrived],
                     duplicates=True, maybe=load.unsure | {name_of(i) for i in forgotten})
        self.explain(ledger, len(forgotten))
        return ledger

    def sum_up(self):
        """What was done here and what came of it."""
        faults = self.bus.faults - self._faults + self.link.faults
        ids = self._ledger.ids() if self._ledger else {}
        records = self._ledger.records if self._ledger else []
        self.figures = {
            "faults": max(1, faults + sum(i.faults for i in self.instances)),
            "events": len(ids), "redis lost": self.missing,
            "twice": sum(ids.values()) - len(ids),
            "adopted": sum(i.adopted() for i in self.instances),
            "maybe": sum(i.total("possible_duplicates") for i in self.instances),
            "gone": sum(i.total("forgotten") for i in self.instances),
            "latest": max((r.time - r.due for r in records), default=0),
        }

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


def name_of(ce_id):
    """Of the key or event, which is the subject of its record."""
    return re.fullmatch(rb"(?:s|k:\d+):(.*)@.*", ce_id).group(1).decode()


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


class Pulse(threading.Thread):
    """How long this machine lets a thread wait that wants to run: what its limits owe to it."""

    BEAT = 0.05

    def __init__(self):
        super().__init__(daemon=True)
        self.worst = 0.0
        self._over = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()

    def run(self):
        began = time.monotonic()
        while not self._over.wait(self.BEAT):
            now = time.monotonic()
            self.worst = max(self.worst, now - began - self.BEAT)
            began = now

    def limit(self, seconds):
        """Several have to run, one after the other, for anything to be noticed."""
        return scaled(seconds) + 4 * self.worst
