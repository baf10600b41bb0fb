# SPDX-License-Identifier: BSD-2-Clause
"""Servers, daemons and programs of the performance suite."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests"))

from harness.redisserver import RedisServer  # noqa: E402
from harness.wait import until  # noqa: E402
from kafka.broker import Broker  # noqa: E402

BUILD = Path(os.environ.get("LAPSED_BUILD") or TOP / "build").resolve()
PREFIX = "lapse:{0}"
PARTITIONS = 4
PAYLOAD = 128


class Failed(Exception):
    """A figure can't be had."""


def build_programs():
    """The helpers are not part of what `make` builds."""
    done = subprocess.run(["make", "-C", str(BUILD), "bench-programs"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Failed(f"building the programs in {BUILD} failed:\n{done.stdout}")


def cpu_s(pid):
    """Seconds of CPU that the threads of a process have used so far."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):     # a thread that just ended
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def memory_kb(pid, field="VmRSS"):
    """VmRSS: now; VmHWM: the most it ever was."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise Failed(f"no {field} of process {pid}")


def machine_cpu_s():
    """Seconds of CPU that the whole machine has used so far."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, *irq_and_steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + sum(irq_and_steal)) / os.sysconf("SC_CLK_TCK")


class Others:
    """The share of this machine's CPU that programs not of this suite take."""

    def __init__(self, lab):
        self.lab = lab
        self.start = self._now()

    def _now(self):
        times = os.times()
        ours = times.user + times.system + times.children_user + times.children_system
        return time.monotonic(), machine_cpu_s(), ours + sum(map(cpu_s, self.lab.pids()))

    def share(self):
        wall, all_, ours = (now - then for now, then in zip(self._now(), self.start))
        return max(0.0, (all_ - ours) / wall / os.cpu_count())


class Lab:
    """
    One Redis, one Kafka, for as many measurements as one likes.

    patience    before each measurement wait for a quiet machine, at most this
                long, s
    """

    def __init__(self, patience=0):
        self.patience = patience
        self.redis = RedisServer()
        self.broker = Broker()
        self.db = None
        self._started = []
        self._topics = 0
        self._folder = tempfile.TemporaryDirectory(prefix="lapsed-bench-")
        self.folder = Path(self._folder.name)

    def __enter__(self):
        try:
            self.redis.start()
            self.db = self.redis.client()
            self.broker.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.broker.close()
        self.redis.close()
        self._folder.cleanup()

    # -- servers

    def clean(self):
        """An empty Redis with our function library."""
        self.db.flushall()
        self.lapse("install")

    @contextlib.contextmanager
    def topic(self):
        """A new topic; gone afterwards, so that disks do not fill."""
        self._topics += 1
        name = f"bench{self._topics}"
        self.broker.create_topic(name, PARTITIONS)
        yield name
        self.broker.delete_topic(name)

    def pending(self):
        return self.db.zcard(f"{PREFIX}:due")

    def waiting(self):
        return self.db.zcard(f"{PREFIX}:wait")

    def open_batches(self):
        return self.db.hlen(f"{PREFIX}:open")

    def lease_end(self, slot):
        """ms since the epoch."""
        return int(self.db.hget(f"{PREFIX}:slots", slot).split(b":")[1])

    def commands(self):
        """Commands that Redis has run so far, scripts' own ones left out."""
        return {name[8:]: values["calls"]
                for name, values in self.db.info("commandstats").items()}

    def pids(self):
        """Of all that runs now."""
        servers = [self.redis.process, self.broker.process]
        return [p.pid for p in servers + self._started if p and p.poll() is None]

    def quiet(self):
        """Waits until others take less than a tenth of the CPU, or patience ends."""
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            others = Others(self)
            time.sleep(2)
            if others.share() < 0.1:
                return

    # -- programs

    def lapse(self, *args):
        command = [str(BUILD / "lapse"), "--redis", self.redis.url, *args]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}:\n{done.stderr}")
        return done.stdout

    def _command(self, name, args):
        where = {"redis": self.redis.socket} if name in ("load", "claim", "ping", "expired") else {
            "kafka": self.broker.bootstrap, "partitions": PARTITIONS}
        pairs = {**where, "payload": PAYLOAD, **args}
        return [str(BUILD / "bench" / f"bench-{name}"),
                *(f"{key}={value}" for key, value in pairs.items())]

    def begin(self, name, **args):
        """Starts bench-NAME; its figures come from end()."""
        process = subprocess.Popen(self._command(name, args), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self._started.append(process)
        return process

    @contextlib.contextmanager
    def favour(self, *pids, wanted=True):
        """These before all others, where we may; yields whether that is so."""
        try:
            for pid in pids if wanted else ():
                os.setpriority(os.PRIO_PROCESS, pid, -20)
        except PermissionError:
            wanted = False
        yield wanted
        for pid in pids if wanted else ():
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, pid, 0)

    def end(self, process, limit=600):
        out, _ = process.communicate(timeout=limit)
        self._started.remove(process)
        if process.returncode != 0:
            raise Failed(f"{' '.join(process.args)} ended with {process.returncode}")
        return json.loads(out)

    def run(self, name, **args):
        return self.end(self.begin(name, **args))

    def daemon(self, **options):
        return Daemon(self, **options)


class Daemon:
    """
    One lapsed, from start() to stop().

    kafka   settings of [kafka]
    routes  the text of the routes, in place of one of lapse_setex
    others  settings of [lapsed]
    """

    count = 0
    program = BUILD / "lapsed"

    def __init__(self, lab, kafka=None, topic="bench", routes=None, **settings):
        Daemon.count += 1
        self.lab = lab
        self.conf = lab.folder / f"lapsed{Daemon.count}.conf"
        self.log = lab.folder / f"lapsed{Daemon.count}.log"
        self.process = None
        self.started = None
        settings = {"log_format": "json", "stats_interval": "1s",
                    "instance": f"bench{Daemon.count}", **settings}
        lines = ["[lapsed]", *(f"{k} = {v}" for k, v in settings.items()),
                 "[redis]", f"url = {lab.redis.url}",
                 "[kafka]", f"bootstrap.servers = {lab.broker.bootstrap}",
                 *(f"{k} = {v}" for k, v in (kafka or {}).items()),
                 routes or "[route watched]\npattern = watched:*\nregister = app\n"
                 f"topic = {topic}"]
        self.conf.write_text("\n".join(lines) + "\n")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process:
            self.stop()

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(self.program), "-c", str(self.conf)],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.started = time.time()
        self.lab._started.append(self.process)

    def ready(self):
        """Waits until it holds a slot, knows its broker, and listens."""
        for event in ("slot.joined", "kafka.ready", "redis.subscribed"):
            until(lambda e=event: self.events(e), f"{event} in the log", limit=30)

    def stop(self):
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.lab._started.remove(process)
        if process.returncode != 0:
            raise Failed(f"lapsed ended with {process.returncode}:\n{self.log.read_text()}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.lab._started.remove(self.process)
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def cpu_s(self):
        return cpu_s(self.pid)

    def events(self, name):
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if entry.get("event") == name:
                    found.append(entry)
        return found

    def stats(self):
        """The newest line of statistics."""
        lines = self.events("stats")
        if not lines:
            raise Failed("lapsed has logged no statistics")
        return lines[-1]
