#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A real Apache Kafka, one node, for tests and benchmarks.

    with Broker() as broker:                    # fetched, formatted, running
        broker.create_topic("events", partitions=4)
        ... broker.bootstrap ...                # "127.0.0.1:port"
        broker.kill()                           # kill -9
        broker.restart()                        # same port, same data

A broker lives in a temporary folder and dies with the process that made it.
`shared()` gives tests that do no harm to the broker one for the whole run.

As a program: broker.py fetch | start [DIR] | stop [DIR], where DIR is where
the state of a running broker is kept (.kafka/run); `start` prints the address.
"""

import atexit
import base64
import contextlib
import ctypes
import fcntl
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

TOP = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("LAPSED_KAFKA_CACHE") or TOP / ".kafka")
VERSION = os.environ.get("LAPSED_KAFKA_VERSION") or "4.2.1"

# Below the range that the kernel gives to outgoing connections: a port stays
# ours while its broker is down, and no client connects to itself.
PORTS = range(15000, 32000)
START_LIMIT_S = 90
STOP_LIMIT_S = 30

COPY = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lapsed</groupId>
  <artifactId>kafka-for-tests</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""

JAVA = [
    "java", "-Xms64m", "-Xmx256m", "-Xss512k", "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.enable": "false",
    # A restarted broker waits until its former self has timed out (9 s else).
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "400",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
}


class KafkaError(Exception):
    pass


class AddressInUse(KafkaError):
    pass


def fetch():
    """The folder with Kafka's jars; downloads them once, through Maven."""
    lib = CACHE / f"lib-{VERSION}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not lib.is_dir():
            _download(lib)
    return lib


def _download(lib):
    print(f"fetching Apache Kafka {VERSION}", file=sys.stderr)
    part = lib.with_suffix(".part")
    with tempfile.TemporaryDirectory(prefix="lapsed-pom-") as folder:
        pom = pathlib.Path(folder) / "pom.xml"
        pom.write_text(POM.format(version=VERSION), encoding="ascii")
        command = [
            "mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom), COPY,
            f"-DoutputDirectory={part}", "-DincludeScope=runtime",
        ]
        for _ in range(3):      # the network may have a bad moment
            shutil.rmtree(part, ignore_errors=True)
            done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False)
            if done.returncode == 0:
                part.rename(lib)
                return
    raise KafkaError(f"Maven could not fetch Kafka {VERSION}:\n{done.stdout}")


def _free_port(taken=()):
    while True:
        port = random.choice(PORTS)
        if port in taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def wait_for(condition, limit_s, what):
    """What `condition` returns once that is true."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise KafkaError(f"{what}: not within {limit_s} s")
        time.sleep(0.05)


class Cluster:
    """A Kafka that runs at `bootstrap`, whoever started it."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap

    def admin(self):
        from confluent_kafka.admin import AdminClient
        return AdminClient({
            "bootstrap.servers": self.bootstrap,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
            "error_cb": lambda error: None,
        })

    def create_topic(self, name, partitions=1, config=None):
        """Returns once the topic has its leaders; it may exist already."""
        from confluent_kafka import KafkaError as Code, KafkaException
        from confluent_kafka.admin import NewTopic
        admin = self.admin()
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1,
                         config=config or {})
        try:
            admin.create_topics([topic], operation_timeout=30)[name].result()
        except KafkaException as error:
            if error.args[0].code() != Code.TOPIC_ALREADY_EXISTS:
                raise
        wait_for(lambda: self._has_leaders(admin, name), 30, f"leaders of {name}")

    @staticmethod
    def _has_leaders(admin, name):
        topic = admin.list_topics(name, timeout=10).topics.get(name)
        return topic and not topic.error and topic.partitions and all(
            partition.leader >= 0 for partition in topic.partitions.values())

    def delete_topic(self, name):
        admin = self.admin()
        admin.delete_topics([name], operation_timeout=30)[name].result()
        wait_for(lambda: name not in admin.list_topics(timeout=10).topics, 30,
                 f"end of {name}")


class Broker(Cluster):
    """A broker of our own.

    start() formats the folder at the first call; kill(), stop() and pause()
    leave it as it is and the next start() goes on there, on the same port.
    close() (or the end of `with`, or of the process) removes it.  `settings`
    override those above and are read at each start().
    """

    def __init__(self, settings=None, detach=False):
        super().__init__(None)
        self.settings = dict(settings or {})
        self.detach = detach
        self.process = None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lapsed-kafka-"))
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]
        if self.cluster_id.startswith("-"):     # would read as an option
            self.cluster_id = "A" + self.cluster_id[1:]
        self._lib = None
        self._ports = None
        if not detach:
            atexit.register(self.close)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self.process.pid if self.process else None

    def start(self):
        """Returns when the broker answers; no-op while it runs."""
        if self.process:
            return
        self._lib = self._lib or fetch()
        first = self._ports is None
        for attempt in range(20):
            if first:
                self._choose_ports()
            try:
                self._run()
                return
            except AddressInUse:
                if attempt == 19:
                    raise
                time.sleep(0 if first else 0.5)

    def stop(self):
        """A clean end (SIGTERM)."""
        self._end(signal.SIGTERM)

    def kill(self):
        """An end without a word (SIGKILL)."""
        self._end(signal.SIGKILL)

    def restart(self):
        self.stop()
        self.start()

    def pause(self):
        """Hangs: connections stay, nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        atexit.unregister(self.close)
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        """What the broker printed since its last start."""
        try:
            return (self.folder / "log").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def _choose_ports(self):
        broker = _free_port()
        self._ports = broker, _free_port((broker,))
        self.bootstrap = f"127.0.0.1:{broker}"
        shutil.rmtree(self.folder / "data", ignore_errors=True)

    def _java(self, *args):
        return [*JAVA, "-cp", f"{self._lib}/*", *args]

    def _write_settings(self):
        broker, controller = self._ports
        settings = SETTINGS | {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},"
                         f"CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(self.folder / "data"),
        } | self.settings
        path = self.folder / "server.properties"
        path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()),
                        encoding="ascii")
        return str(path)

    def _run(self):
        properties = self._write_settings()
        if not (self.folder / "data" / "meta.properties").exists():
            done = subprocess.run(
                self._java("kafka.tools.StorageTool", "format", "--cluster-id",
                           self.cluster_id, "-c", properties),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                raise KafkaError(f"Kafka's format failed:\n{done.stdout}")
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                self._java("kafka.Kafka", properties), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                preexec_fn=None if self.detach else _die_with_parent)
        try:
            wait_for(self._ready, START_LIMIT_S, "Kafka's start")
        except BaseException as error:
            self.kill()
            if isinstance(error, KafkaError) and not isinstance(error, AddressInUse):
                raise KafkaError(f"{error}\n{self.log()}") from None
            raise

    def _ready(self):
        if "Address already in use" in self.log():
            raise AddressInUse(self.bootstrap)
        if self.process.poll() is not None:
            raise KafkaError("Kafka ended while it started")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self._ports[0])) != 0:
                return False
        from confluent_kafka import KafkaException
        try:
            found = self.admin().list_topics(timeout=1)
        except KafkaException:
            return False
        # Someone else's broker may have been quicker to take the port.
        return found.cluster_id == self.cluster_id and len(found.brokers) == 1

    def _end(self, number):
        if not self.process:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def shared():
    """The broker that LAPSED_KAFKA (host:port) names, or a new one."""
    bootstrap = os.environ.get("LAPSED_KAFKA")
    if bootstrap:
        yield Cluster(bootstrap)
    else:
        with Broker() as broker:
            yield broker


# The state of a broker that outlives this program: DIR/address, pid, folder.

def _read(state, name):
    try:
        return (state / name).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def _alive(state):
    """Whether the pid kept in `state` still is the broker kept there."""
    pid, folder = _read(state, "pid"), _read(state, "folder")
    try:
        command = pathlib.Path(f"/proc/{int(pid)}/cmdline").read_bytes()
    except (OSError, ValueError):
        return False
    return bool(folder) and f"{folder}/server.properties".encode() in command


def start_detached(state):
    if _alive(state):
        return _read(state, "address")
    stop_detached(state)
    broker = Broker(detach=True)
    try:
        broker.start()
        state.mkdir(parents=True, exist_ok=True)
        for name, value in (("folder", broker.folder), ("pid", broker.pid),
                            ("address", broker.bootstrap)):
            (state / name).write_text(f"{value}\n", encoding="utf-8")
    except BaseException:
        broker.close()
        raise
    return broker.bootstrap


def stop_detached(state):
    if _alive(state):
        pid = int(_read(state, "pid"))
        os.kill(pid, signal.SIGTERM)
        try:
            wait_for(lambda: not _alive(state), STOP_LIMIT_S, "Kafka's end")
        except KafkaError:
            os.kill(pid, signal.SIGKILL)
    folder = _read(state, "folder")
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(state, ignore_errors=True)


def main(args):
    state = pathlib.Path(args[1]) if len(args) == 2 else CACHE / "run"
    if args == ["fetch"]:
        print(fetch())
    elif args[:1] == ["start"] and len(args) <= 2:
        print(start_detached(state))
    elif args[:1] == ["stop"] and len(args) <= 2:
        stop_detached(state)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KafkaError as problem:
        sys.exit(f"broker.py: {problem}")
