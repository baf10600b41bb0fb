# SPDX-License-Identifier: BSD-2-Clause
"""A real lapsed process, and what it says in its log."""

import ctypes
import json
import os
import signal
import subprocess
from pathlib import Path

from limits import scaled, until

BUILD = Path(os.environ.get("LAPSED_BUILD")
             or Path(__file__).resolve().parents[2] / "build")

DEFAULTS = {
    "lapsed": {
        "log_format": "json",
        "log_level": "debug",
        "stats_interval": "100ms",
        "lease": "2s",
        "sweep_interval": "1s",
        "park_min": "100ms",
        "park_max": "500ms",
    },
    "kafka": {
        "reconnect.backoff.ms": "20",
        "reconnect.backoff.max.ms": "200",
        "topic.metadata.refresh.interval.ms": "1000",
    },
}

def write_config(path, sections):
    """`sections`: name -> options; an option may be a list (given repeatedly)."""
    with open(path, "w", encoding="utf-8") as f:
        for name, options in sections.items():
            f.write(f"[{name}]\n")
            for option, value in options.items():
                for one in value if isinstance(value, list) else [value]:
                    f.write(f"{option} = {one}\n")
    return path


class Lapsed:
    """
    One instance; start() may be called again after its end.

    errors  the events that it may log at level error
    """

    def __init__(self, folder, name, sections):
        self.config = Path(folder) / f"{name}.conf"
        self.log = Path(folder) / f"{name}.log"
        self.process = None
        self.status = None              # of the last end
        self.errors = set()
        self._lines = []
        self._partial = b""
        self._offset = 0
        self._mark = 0
        self._killed = False
        self.configure(sections)

    def configure(self, sections):
        write_config(self.config, sections)

    # -- life

    def start(self, joined=True):
        assert self.process is None, "is running"
        self._mark = len(self.lines())
        self._killed = False
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(BUILD / "lapsed"), "-c", str(self.config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=_die_with_parent)
        if joined:
            self.wait("slot.joined")
        return self

    def term(self):
        self.process.send_signal(signal.SIGTERM)

    def hup(self):
        self.process.send_signal(signal.SIGHUP)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def cont(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self._killed = True
        self.process.kill()
        return self.ended()

    def stop(self, limit=20):
        self.term()
        return self.ended(limit)

    def ended(self, limit=20):
        """The exit status, once there is one; negative: a signal."""
        process = self.process
        until(lambda: process.poll() is not None, f"the end of {self.config.stem}", limit)
        self.process = None
        self.status = process.returncode
        return self.status

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        """Whatever state it is in; says what was wrong with it."""
        if self.process:
            self.cont()
            self.term()
            try:
                self.ended()
            except TimeoutError:
                self.kill()
                return [f"{self.config.stem} did not stop when told to"]
        return self._complaints()

    # -- log

    def lines(self):
        """All that it has logged, in all its lives."""
        if self.log.exists():
            with open(self.log, "rb") as f:
                f.seek(self._offset)
                text = self._partial + f.read()
                self._offset = f.tell()
            *whole, self._partial = text.split(b"\n")
            self._lines += [self._parse(line) for line in whole]
        return self._lines

    def mark(self):
        """wait() and find() look no further back than here."""
        self._mark = len(self.lines())

    def find(self, event, **fields):
        """The lines of this life, or since mark()."""
        return [line for line in self.lines()[self._mark:] if line.get("event") == event
                and all(line.get(k) == v for k, v in fields.items())]

    def find_ever(self, event):
        """Those of former lives as well."""
        return [line for line in self.lines() if line["event"] == event]

    def wait(self, event, limit=15, **fields):
        """The first such line."""
        def seen():
            found = self.find(event, **fields)
            if not found and self.process and self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode} before {event}"
                                     f"\n{self.tail()}")
            return found
        try:
            return until(seen, f"{event} {fields or ''}", limit)[0]
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.tail()}") from None

    def stats(self):
        """The next figures it logs."""
        seen = len(self.find("stats"))
        until(lambda: len(self.find("stats")) > seen, "stats", 10)
        return self.find("stats")[-1]

    def tail(self, n=20):
        shown = [x for x in self.lines() if x.get("event") != "stats"][-n:]
        return "\n".join(json.dumps(x) for x in shown)

    # -- inside

    @staticmethod
    def _parse(line):
        try:
            return json.loads(line)
        except ValueError:
            return {"event": None, "text": line.decode(errors="replace")}

    def _complaints(self):
        name, bad = self.config.stem, []
        for line in self.lines():
            if line["event"] is None:
                if not line["text"].startswith("warning: "):    # of the configuration
                    bad.append(f"{name} printed: {line['text']}")
            elif line["level"] == "error" and line.get("of", line["event"]) not in self.errors:
                bad.append(f"{name} logged an error: {json.dumps(line)}")
        if self.status is not None and self.status < 0 and not self._killed:
            bad.append(f"{name} died by signal {-self.status}")
        return bad


def _die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def check(config):
    """lapsed --check; its exit status and what it printed."""
    done = subprocess.run([str(BUILD / "lapsed"), "--check", "-c", str(config)],
                          capture_output=True, text=True, timeout=scaled(10), check=False)
    return done.returncode, done.stdout + done.stderr
