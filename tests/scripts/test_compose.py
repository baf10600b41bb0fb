# SPDX-License-Identifier: BSD-2-Clause
"""The shape of the files of src/lua, and the library made of them."""

import re

import pytest
from harness import scripts


@pytest.mark.parametrize("path", sorted(scripts.LUA.glob("*.lua")), ids=lambda p: p.stem)
def test_a_file_holds_local_functions_only(path):
    lines = path.read_text().splitlines()
    assert lines[0] == "-- SPDX-License-Identifier: BSD-2-Clause"
    for line in lines:
        assert re.match(r"(\t|--|local |end$|\}$|$)", line), line


@pytest.mark.parametrize("name", scripts.scripts())
def test_a_script_says_what_it_uses_and_defines_its_function(name):
    text = scripts.source(name)
    assert text.splitlines()[1].startswith("-- uses: common")
    functions = re.findall(r"^local function (lapse_\w+)\((.*)\)$", text, re.MULTILINE)
    assert functions == [(f"lapse_{name}", "keys, argv")]


def test_names_do_not_meet_in_the_library():
    """Every file's names are local to one text there."""
    text = scripts.library_text()
    names = re.findall(r"^local (?:function )?(\w+)", text, re.MULTILINE)
    assert sorted(names) == sorted(set(names))
    assert len(names) < 180, "Lua allows 200 locals"


@pytest.mark.parametrize("name", scripts.scripts())
def test_redis_takes_it(client, name):
    assert client.execute_command("SCRIPT", "LOAD", scripts.script_text(name))


def test_the_library(client, has_functions):
    if not has_functions:
        pytest.skip("functions came with Redis 7.0")
    client.execute_command("FUNCTION", "LOAD", "REPLACE", scripts.library_text())
    ((_, name, *_, functions),) = [
        library[:5] + [library[5]]
        for library in client.execute_command("FUNCTION", "LIST", "LIBRARYNAME", "lapse")
    ]
    assert name == b"lapse"
    flags = {f[1]: set(f[5]) for f in functions}
    assert set(flags) == {b"lapse_" + n.encode() for n in scripts.FUNCTIONS}
    for read_only in (b"lapse_show", b"lapse_stats"):
        assert flags[read_only] == {b"no-writes"}
    for removes_only in (b"lapse_cancel", b"lapse_del"):
        assert flags[removes_only] == {b"allow-oom"}
    for adds in (b"lapse_schedule", b"lapse_reschedule", b"lapse_setex"):
        assert flags[adds] == set()
