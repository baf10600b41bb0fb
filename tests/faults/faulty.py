# SPDX-License-Identifier: BSD-2-Clause
"""A lapsed process that may be made to fail from inside."""

import os
import resource
import signal
import subprocess

from lapsed import BUILD, Lapsed, _die_with_parent
from limits import until


class Faulty(Lapsed):
    """
    failpoint   "<name>:<n>:<kill|stop>", for the next start only (src/failpoint.h)
    env         more of the environment
    limits      resource -> (soft, hard), for all starts
    stderr      a file descriptor in the place of the log file
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.failpoint = None
        self.env = {}
        self.limits = {}
        self.stderr = None
        self.faults = 0         # kills and stops

    def start(self, joined=True):
        assert self.process is None, "is running"
        self.mark()
        self._killed = False
        env = {**os.environ, **self.env}
        if self.failpoint:
            env["LAPSED_FAILPOINT"] = self.failpoint
            self._killed = self.failpoint.endswith(":kill")
            self.failpoint = None
        with open(self.log, "ab") as log:
            out = log if self.stderr is None else self.stderr
            self.process = subprocess.Popen(
                [str(BUILD / "lapsed"), "-c", str(self.config)], env=env,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=self._prepare)
        if joined:
            self.wait("slot.joined")
        return self

    def _prepare(self):
        _die_with_parent()
        for what, limit in self.limits.items():
            resource.setrlimit(what, limit)

    def fallen(self, limit=15):
        """Once its failure point has killed it."""
        assert self.ended(limit) == -signal.SIGKILL, self.tail()
        self.faults += 1

    def kill(self):
        self.faults += 1
        return super().kill()

    def pause(self):
        self.faults += 1
        super().pause()

    def is_stopped(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"

    def halted(self, limit=15):
        """Once its failure point has stopped it."""
        until(self.is_stopped, f"{self.config.stem} to stop\n{self.tail()}", limit)
        self.faults += 1

    def memory_kb(self):
        """The most it ever was."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))

    # -- what it says of itself

    def lives(self):
        """The lines of each start."""
        lives = []
        for line in self.lines():
            if line["event"] == "daemon.start":
                lives.append([])
            if lives:
                lives[-1].append(line)
        return lives

    def total(self, counter):
        """Over all its lives, as far as they were logged."""
        last = [[x for x in life if x["event"] == "stats"][-1:] for life in self.lives()]
        return sum(x[0].get(counter, 0) for x in last if x)

    def adopted(self):
        """Entries; this line is written as it happens, so that a kill does not hide it."""
        return sum(x["entries"] for x in self.find_ever("batch.adopted"))
