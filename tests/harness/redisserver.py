# SPDX-License-Identifier: BSD-2-Clause
"""A real redis-server (or one that speaks like it) for the length of a test."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import redis

from .wait import until

DEFAULTS = {
    "save": "",
    "appendonly": "no",
    "daemonize": "no",
    "loglevel": "notice",
    "notify-keyspace-events": "Ex",
    "databases": "16",
}


def free_port():
    """A TCP port that nobody listened on a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def program():
    """LAPSED_REDIS_SERVER names another server to test with."""
    return os.environ.get("LAPSED_REDIS_SERVER", "redis-server")


class RedisServer:
    """
    One server with its own folder.  Data, socket and port outlive kill() and
    stop(), so that start() brings the same server back.

    tcp     also listen on a free port of 127.0.0.1 (`port`)
    config  redis.conf directives that differ from DEFAULTS
    """

    def __init__(self, folder=None, tcp=False, config=None):
        self._own_folder = folder is None
        self.folder = Path(folder or tempfile.mkdtemp(prefix="lapsed-redis-"))
        self.socket = self.folder / "redis.sock"
        self.log = self.folder / "redis.log"
        self.port = free_port() if tcp else 0
        self.config = {**DEFAULTS, **(config or {})}
        self.process = None
        self._clients = []

    # -- life

    def start(self):
        assert self.process is None, "is running"
        conf = {
            **self.config,
            "port": self.port,
            "bind": "127.0.0.1",
            "unixsocket": self.socket,
            "dir": self.folder,
        }
        if self._knows_debug_switch():
            conf.setdefault("enable-debug-command", "yes")
        path = self.folder / "redis.conf"
        lines = (f"{name} {self._quote(value)}\n" for name, value in conf.items())
        path.write_text("".join(lines))
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [program(), str(path)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        try:
            until(self._answers, "redis-server to answer", limit=30)
        except TimeoutError:
            self.kill()
            raise TimeoutError(self.log.read_text(errors="replace")) from None
        return self

    def stop(self):
        """As an operator stops it: SIGTERM, and wait."""
        self._end(signal.SIGTERM)

    def kill(self):
        """As a crash: SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self, kill=False):
        self._end(signal.SIGKILL if kill else signal.SIGTERM)
        return self.start()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        for client in self._clients:
            client.close()
        self._clients.clear()
        if self.process:
            self.kill()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    # -- use

    def client(self, db=0, **options):
        """A client that answers with bytes."""
        client = redis.Redis(unix_socket_path=str(self.socket), db=db, **options)
        self._clients.append(client)
        return client

    @property
    def url(self):
        return f"unix://{self.socket}"

    @property
    def tcp_url(self):
        assert self.port, "RedisServer(tcp=True)"
        return f"redis://127.0.0.1:{self.port}"

    @property
    def version(self):
        """(major, minor) of the Redis that it is compatible with."""
        major, minor, *_ = self.client().info("server")["redis_version"].split(".")
        return int(major), int(minor)

    # -- inside

    @staticmethod
    def _quote(value):
        text = str(value)
        return text if text and '"' not in text else '"' + text.replace('"', '\\"') + '"'

    @staticmethod
    def _knows_debug_switch():
        """Before 7.0 DEBUG was always allowed, and the switch unknown."""
        text = subprocess.run(
            [program(), "--version"], capture_output=True, text=True, check=True
        ).stdout
        return " v=6." not in text

    def _answers(self):
        if self.process.poll() is not None:
            raise TimeoutError("ended at once")
        try:
            with redis.Redis(unix_socket_path=str(self.socket)) as client:
                return client.ping()
        except (redis.ConnectionError, redis.BusyLoadingError):
            return False

    def _end(self, how):
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(how)
        process.wait(timeout=30)
