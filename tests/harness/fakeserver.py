# SPDX-License-Identifier: BSD-2-Clause
"""A server that answers as it is told, for what a real one does rarely."""

import socket
import threading


class FakeServer:
    """
    answers     command name in upper case -> RESP bytes, or None: hang up
    otherwise   what any other command gets
    """

    def __init__(self, answers=None, otherwise=b"+OK\r\n"):
        self.answers = answers or {}
        self.otherwise = otherwise
        self.seen = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=10)

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, client.makefile("rb") as stream:
                try:
                    self._talk(client, stream)
                except OSError:
                    pass

    def _talk(self, client, stream):
        while command := self._command(stream):
            self.seen.append(command)
            answer = self.answers.get(command[0].decode().upper(), self.otherwise)
            if answer is None:
                return
            client.sendall(answer)

    @staticmethod
    def _command(stream):
        head = stream.readline()
        if not head:
            return None
        words = []
        for _ in range(int(head[1:])):
            length = int(stream.readline()[1:])
            words.append(stream.read(length + 2)[:-2])
        return words
