# SPDX-License-Identifier: BSD-2-Clause
"""The bytes of docs/protocol.md, written a second time to check the first."""

import struct
from dataclasses import dataclass, field


@dataclass
class Record:
    birth: int
    attempt: int = 0
    fields: list = field(default_factory=list)  # (tag, value), both bytes

    def pack(self):
        text = struct.pack(">BQH", 1, self.birth, self.attempt)
        for tag, value in self.fields:
            text += tag if tag == b"p" else tag + struct.pack(">H", len(value))
            text += value
        return text

    @classmethod
    def unpack(cls, text):
        version, birth, attempt = struct.unpack_from(">BQH", text)
        assert version == 1
        fields, at = [], 11
        while at < len(text):
            tag = text[at : at + 1]
            if tag == b"p":
                value, at = text[at + 1 :], len(text)
            else:
                (size,) = struct.unpack_from(">H", text, at + 1)
                value, at = text[at + 3 : at + 3 + size], at + 3 + size
                assert len(value) == size
            fields.append((tag, value))
        return cls(birth, attempt, fields)

    def get(self, tag):
        """The field's value; None without the field."""
        return dict(self.fields).get(tag)

    @property
    def headers(self):
        pairs = [value.split(b"\0", 1) for tag, value in self.fields if tag == b"h"]
        return {name: value for name, value in pairs}


@dataclass
class Envelope:
    due: int
    certainty: str
    record: bytes

    def pack(self):
        return struct.pack(">BQ1s", 1, self.due, self.certainty.encode()) + self.record

    @classmethod
    def unpack(cls, text):
        version, due, certainty = struct.unpack_from(">BQ1s", text)
        assert version == 1
        return cls(due, certainty.decode(), text[10:])


@dataclass
class Obituary:
    reason: bytes
    member: bytes
    envelope: bytes

    def pack(self):
        text = b"\x01"
        for part in (self.reason, self.member):
            text += struct.pack(">H", len(part)) + part
        return text + self.envelope

    @classmethod
    def unpack(cls, text):
        assert text[:1] == b"\x01"
        parts, at = [], 1
        for _ in range(2):
            (size,) = struct.unpack_from(">H", text, at)
            parts.append(text[at + 2 : at + 2 + size])
            at += 2 + size
        return cls(*parts, text[at:])


def ce_id(member, birth, attempt=0):
    if member.startswith(b"e:"):
        member = b"k:" + member.split(b":", 2)[2]
    name = b"".join(
        b"%c" % c if 0x21 <= c <= 0x7E and c != 0x25 else b"%%%02X" % c for c in member
    )
    return name + b"@%d.%d" % (birth, attempt)


@dataclass
class Batch:
    """A batch answer."""

    now_us: int
    next_due: int
    absorbed: int
    followed: int
    adopted: int
    topic: bytes
    retry: int
    entries: dict  # member -> Envelope, in the order of the answer

    @classmethod
    def parse(cls, answer):
        followed = answer[3] if isinstance(answer[3], list) else []
        head = [*map(int, answer[:3]), len(followed), int(answer[4])]
        members, envelopes = answer[7::2], map(Envelope.unpack, answer[8::2])
        entries = dict(zip(members, envelopes))
        assert len(entries) == len(members), "a member twice"
        return cls(*head, answer[5], int(answer[6]), entries)


def pairs(flat):
    """A flat name value list as a dict."""
    assert len(flat) % 2 == 0
    return dict(zip(flat[::2], flat[1::2]))
