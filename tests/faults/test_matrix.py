# SPDX-License-Identifier: BSD-2-Clause
"""The tables of docs/reliability.md name tests that exist, and all of ours."""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
TEXT = (TESTS.parent / "docs" / "reliability.md").read_text(encoding="utf-8")
NAME = r"`([a-z_]+)\.([a-z_0-9]+)(?:\[([^]`]+)\])?`"


def section(title):
    return re.search(rf"^### {title}\n(.*?)^##", TEXT, re.M | re.S).group(1)


@pytest.fixture(scope="module")
def cells():
    """Of this folder, as in the tables: (file, test) -> the names in brackets."""
    out = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider",
         "-k", "test", HERE], check=True, capture_output=True, text=True).stdout
    found = {}
    for file, test, cell in re.findall(r"test_(\w+)\.py::test_(\w+)(?:\[(.*)\])?$", out, re.M):
        found.setdefault((file, test), []).append(cell)
    return found


def places(file, test):
    """The files that have such a test."""
    python = [p for p in TESTS.glob(f"*/test_{file}.py")
              if re.search(rf"^def test_{test}\(", p.read_text(encoding="utf-8"), re.M)]
    return python + [p for p in TESTS.glob(f"unit/test_{file}.c")
                     if f"START_TEST({test})" in p.read_text(encoding="utf-8")]


def test_what_is_named_exists(cells):
    for file, test, cell in re.findall(NAME, section("Which fault strikes where")):
        assert places(file, test), f"{file}.{test}"
        if cell:
            assert fnmatch.filter(cells[file, test], cell), f"{file}.{test}[{cell}]"


def test_what_exists_is_named(cells):
    named = {m[:2] for m in re.findall(NAME, TEXT)}
    assert cells.keys() - named == {("matrix", t) for f, t in cells if f == "matrix"}


def test_cases_are_named_by_their_tests():
    """Case by case: each test is there, and its file speaks of the number."""
    rows = re.findall(r"^\| (\d+) \|[^|]*\| (.*) \|$",
                      section("What users of others ran into"), re.M)
    assert len(rows) > 40
    for number, tests in rows:
        for file, test, _ in re.findall(NAME, tests):
            speaks = rf"[Cc]ases? [^\"*]*\b{number}\b"
            assert any(re.search(speaks, p.read_text(encoding="utf-8"))
                       for p in places(file, test)), f"case {number}: {file}.{test}"
