# SPDX-License-Identifier: BSD-2-Clause
"""The two protocols, as far as the proxy must know them.

A wire cuts a stream of bytes into whole messages and says what a request is
called, and which request a reply belongs to.
"""

import hashlib
import re
import struct
from collections import deque


def resp_end(text, at=0):
    """Where the RESP message that begins at `at` ends; -1 while it is not all there."""
    owed = 1
    while owed:
        line = text.find(b"\r\n", at)
        if line < 0:
            return -1
        kind, n = text[at:at + 1], text[at + 1:line]
        owed -= 1
        at = line + 2
        if kind == b"$" and int(n) >= 0:
            at += int(n) + 2
            if at > len(text):
                return -1
        elif kind == b"*" and int(n) > 0:
            owed += int(n)
    return at


def resp_words(message, most=1000):
    """The strings of a flat array, such as a command or a published message."""
    words, at = [], message.find(b"\r\n") + 2
    while at < len(message) and len(words) < most:
        line = message.find(b"\r\n", at)
        if message[at:at + 1] == b"$":
            n = int(message[at + 1:line])
            words.append(message[line + 2:line + 2 + n])
            at = line + 2 + n + 2
        else:
            words.append(message[at + 1:line])
            at = line + 2
    return words


class Redis:
    """One connection; scripts are called by their names: `claim`, `settle` ..."""

    _names = {}         # by SHA1, of all connections

    def __init__(self):
        self.owed = deque()         # the names of requests without a reply
        self.subscribed = False

    def split(self, text):
        """The whole messages, and what is left."""
        messages = []
        while text:
            end = resp_end(text)
            if end < 0:
                break
            messages.append(text[:end])
            text = text[end:]
        return messages, text

    def request(self, message):
        """Its name; it was seen, and its reply is owed."""
        words = resp_words(message, 3)
        name = words[0].decode().upper()
        if name == "SCRIPT" and words[1].upper() == b"LOAD":
            found = re.search(rb"return lapse_(\w+)\(KEYS, ARGV\)", words[2])
            if found:
                sha = hashlib.sha1(words[2]).hexdigest().encode()
                self._names[sha] = found.group(1).decode()
        elif name == "EVALSHA":
            name = self._names.get(words[1], name)
        if name in ("SUBSCRIBE", "PSUBSCRIBE"):
            self.subscribed = True
        else:
            self.owed.append(name)
        return name

    def reply(self, message):
        """The name of its request; `push` for what was published, `` for a confirmation."""
        if self.owed:
            return self.owed.popleft()
        kind = resp_words(message, 1) if self.subscribed else []
        return "push" if kind in ([b"message"], [b"pmessage"]) else ""


class Kafka:
    """One connection; produce requests are called `produce`, all others by number."""

    def __init__(self):
        self.owed = {}              # correlation id -> name

    def split(self, text):
        messages = []
        while len(text) >= 4:
            end = 4 + struct.unpack_from(">i", text)[0]
            if len(text) < end:
                break
            messages.append(text[:end])
            text = text[end:]
        return messages, text

    def request(self, message):
        api, _, number = struct.unpack_from(">hhi", message, 4)
        name = "produce" if api == 0 else f"api-{api}"
        self.owed[number] = name
        return name

    def reply(self, message):
        return self.owed.pop(struct.unpack_from(">i", message, 4)[0], "")


class Bytes:
    """No protocol at all: a replica's link."""

    def split(self, text):
        return [text], b""

    def request(self, _):
        return ""

    def reply(self, _):
        return ""
