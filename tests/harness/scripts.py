# SPDX-License-Identifier: BSD-2-Clause
"""The Lua scripts, put together as the programs do (src/io/script.h)."""

import re
from pathlib import Path

LUA = Path(__file__).resolve().parents[2] / "src" / "lua"

# What `lapse install` loads, in its order.
FUNCTIONS = (
    "schedule",
    "cancel",
    "reschedule",
    "finish",
    "touch",
    "fail",
    "schedule_bulk",
    "cancel_bulk",
    "setex",
    "del",
    "show",
    "stats",
)


def source(name):
    return (LUA / f"{name}.lua").read_text()


def scripts():
    """The names of all files that are scripts and not library files."""
    return sorted(p.stem for p in LUA.glob("*.lua") if _head(p.read_text(), "uses"))


def _head(text, word):
    found = re.search(rf"^-- {word}:(.*)$", text, re.MULTILINE)
    return found.group(1).split() if found else []


def script_text(name, nsdb=0):
    """What EVALSHA runs."""
    text = source(name)
    libs = [source(lib) for lib in _head(text, "uses")]
    call = f"return lapse_{name}(KEYS, ARGV)\n"
    return "\n".join([f"local NSDB = {nsdb}", *libs, text, call])


def library_text(nsdb=0):
    """What FUNCTION LOAD takes."""
    texts = [source(name) for name in FUNCTIONS]
    libs = dict.fromkeys(lib for text in texts for lib in _head(text, "uses"))
    parts = ["#!lua name=lapse", f"local NSDB = {nsdb}", *map(source, libs), *texts]
    for name, text in zip(FUNCTIONS, texts):
        flags = "".join(f" '{flag}'," for flag in _head(text, "flags"))
        parts.append(
            f"redis.register_function{{ function_name = 'lapse_{name}', "
            f"callback = lapse_{name}, flags = {{{flags} }} }}"
        )
    return "\n".join(parts) + "\n"


class Scripts:
    """
    Calls scripts on one client.

    fcall   call those of FUNCTIONS through the function library
    """

    def __init__(self, client, nsdb=0, fcall=False):
        self.client = client
        self.nsdb = nsdb
        self.fcall = fcall
        self._sha = {}
        if fcall:
            client.execute_command("FUNCTION", "LOAD", "REPLACE", library_text(nsdb))

    def sha(self, name):
        if name not in self._sha:
            text = script_text(name, self.nsdb)
            self._sha[name] = self.client.execute_command("SCRIPT", "LOAD", text)
        return self._sha[name]

    def command(self, name, keys, args=()):
        """The words of the command that calls `name`."""
        if self.fcall and name in FUNCTIONS:
            head = ["FCALL", f"lapse_{name}"]
        else:
            head = ["EVALSHA", self.sha(name)]
        return [*head, len(keys), *keys, *args]

    def call(self, name, keys, args=(), client=None):
        return (client or self.client).execute_command(*self.command(name, keys, args))
