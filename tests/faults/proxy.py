# SPDX-License-Identifier: BSD-2-Clause
"""A wire between lapsed and a server, which can be treated badly.

    with Proxy(Redis, ("127.0.0.1", 6379)) as proxy:
        ... lapsed with redis://127.0.0.1:{proxy.port} ...
        proxy.cut()                         # reset every connection
        proxy.hold(); proxy.let_go()        # nothing arrives; then all of it does
        proxy.lose("settle")                # the next settle has its effect, its answer is lost
        proxy.at("claim", server.kill, 10)  # just before the tenth claim from now

Everything that changes its behaviour may be called from any thread.
"""

import asyncio
import random
import socket
import struct
import threading

from wires import resp_words

CHUNK = 1 << 16


class Proxy:
    """
    wire        Redis or Kafka, of wires.py
    target      (host, port) or the path of a socket; may be changed, for a failover
    passed      how many requests of each name, and replies (`claim.reply`), came
    lost        the names of those that were lost
    swallowed   how many published messages were
    faults      how many there were in all
    """

    def __init__(self, wire, target):
        self.wire = wire
        self.target = target
        self.delay = 0.0            # s, each way
        self.drip = 0               # bytes at a time; 0: all
        self.share = 1.0            # of what is published, so much gets through,
        self.copies = 1             # so many times
        self.only = b""             # channels that contain this
        self.passed = {}
        self.swallowed = 0
        self.faults = 0
        self.lost = []
        self._random = random.Random(1)
        self._to_lose = []
        self._at = []               # [name, how many more, what to do]
        self._links = set()
        self._refusing = False
        self._loop = asyncio.new_event_loop()
        self._flow = None
        self._server = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._run(self._listen())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- what is done to it

    def cut(self):
        """Both sides of all connections get a reset."""
        self.faults += 1
        self._run(self._each(Link.reset))

    def refuse(self, yes=True):
        """New connections are closed at once; those that are there stay."""
        self.faults += yes
        self._refusing = yes

    def hold(self):
        """Nothing goes through, as when packets are dropped; new ones hang as well."""
        self.faults += 1
        self._run(self._set_flow(False))

    def let_go(self):
        """What was held goes on."""
        self._run(self._set_flow(True))

    def half_open(self):
        """The server's side is gone, and the client is not told, nor answered."""
        self.faults += 1
        self._run(self._each(Link.forget))

    def lose(self, name, times=1):
        """
        Such requests have their effect; then, instead of a reply, a reset comes.
        `claim.request` instead of `claim`: it comes instead of the effect.
        """
        self._to_lose += [name] * times

    def at(self, name, what, n=1):
        """Does `what` before the n-th such request from now goes on."""
        self._at.append([name, n, what])

    def heal(self):
        self.delay, self.drip, self.share, self.copies, self.only = 0.0, 0, 1.0, 1, b""
        self._to_lose.clear()
        self._at.clear()
        self.refuse(False)
        self.let_go()

    @property
    def links(self):
        """How many connections go through it."""
        return len(self._links)

    # -- inside, in the thread of the loop

    def _run(self, what):
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _listen(self):
        self._flow = asyncio.Event()
        self._flow.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def _close(self):
        self._server.close()
        await self._each(Link.reset)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _each(self, action):
        for link in list(self._links):
            action(link)

    async def _set_flow(self, yes):
        (self._flow.set if yes else self._flow.clear)()

    async def _serve(self, reader, writer):
        link = Link(self, reader, writer)
        self._links.add(link)
        try:
            if not self._refusing:
                await link.run()
        except OSError:
            pass
        finally:
            link.reset()
            self._links.discard(link)

    async def flowing(self):
        await self._flow.wait()

    async def before(self, name):
        """A request comes."""
        for one in list(self._at):
            if one[0] == name:
                one[1] -= 1
                if one[1] == 0:
                    self._at.remove(one)
                    self.faults += 1
                    await self._loop.run_in_executor(None, one[2])

    def losing(self, name):
        if name not in self._to_lose:
            return False
        self._to_lose.remove(name)
        self.lost.append(name)
        self.faults += 1
        return True

    def verdict(self, name, message):
        """How often a reply is passed on; -1: not at all, and the link is cut."""
        if self.losing(name):
            return -1
        if name == "push" and self.only in resp_words(message, 3)[1]:
            if self._random.random() >= self.share:
                self.swallowed += 1
                self.faults += 1
                return 0
            self.faults += self.copies - 1
            return self.copies
        return 1


class Link:
    """One connection: two ways, each a reader and a writer with a queue between."""

    def __init__(self, proxy, reader, writer):
        self.proxy = proxy
        self.wire = proxy.wire()
        self.client = reader, writer
        self.server = None
        self.forgotten = False

    async def run(self):
        await self.proxy.flowing()
        if isinstance(self.proxy.target, tuple):
            self.server = await asyncio.open_connection(*self.proxy.target)
        else:
            self.server = await asyncio.open_unix_connection(str(self.proxy.target))
        there = [self._read(self.client[0], self.server[1], self._request),
                 self._read(self.server[0], self.client[1], self._reply)]
        tasks = [asyncio.ensure_future(way) for way in there]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if self.forgotten:      # only the client ends it
            await asyncio.wait(tasks[:1])
        for task in tasks:
            task.cancel()

    def forget(self):
        self.forgotten = True
        if self.server:
            self.server[1].close()

    def reset(self):
        for side in (self.client, self.server):
            if side:
                _abort(side[1])

    async def _read(self, reader, writer, see):
        queue, rest = asyncio.Queue(), b""
        sender = asyncio.ensure_future(self._send(queue, writer))
        now = self.proxy._loop.time
        try:
            while chunk := await reader.read(CHUNK):
                messages, rest = self.wire.split(rest + chunk)
                for message in messages:
                    copies = await see(message)
                    await queue.put((now() + self.proxy.delay, message, copies))
            await queue.put(None)
            await sender
        except OSError:
            pass
        finally:
            sender.cancel()

    async def _send(self, queue, writer):
        while item := await queue.get():
            at, message, copies = item
            wait = at - self.proxy._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            await self.proxy.flowing()
            if self.forgotten:
                continue
            if copies < 0:
                self.reset()
                return
            for _ in range(copies):
                await self._write(writer, message)

    async def _write(self, writer, message):
        step = self.proxy.drip or len(message)
        for at in range(0, len(message), step):
            writer.write(message[at:at + step])
            await writer.drain()
            if self.proxy.drip:
                await asyncio.sleep(0.0005)

    def _count(self, name):
        self.proxy.passed[name] = self.proxy.passed.get(name, 0) + 1

    async def _request(self, message):
        name = self.wire.request(message)
        self._count(name)
        await self.proxy.before(name)
        return -1 if self.proxy.losing(f"{name}.request") else 1

    async def _reply(self, message):
        name = self.wire.reply(message)
        self._count(f"{name}.reply")
        return self.proxy.verdict(name, message)


def _abort(writer):
    sock = writer.get_extra_info("socket")
    if sock and sock.family == socket.AF_INET and sock.fileno() >= 0:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
    writer.transport.abort()
