# SPDX-License-Identifier: BSD-2-Clause
"""What bash offers for a command line that is not finished."""

import shutil
import subprocess

import pytest
from conftest import Lapse

COMPLETE = """
words=("$@")
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
_lapse
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def offered(lapse, tmp_path):
    script = lapse.ok("completion", "bash") + COMPLETE

    def run(*words):
        done = subprocess.run(["bash", "-euc", script, "-", "lapse", *words], cwd=tmp_path,
                              capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1) and done.stderr == "", done.stderr
        return set(done.stdout.split())

    return run


def test_verbs(offered):
    assert {"schedule", "cancel", "dead", "stats", "completion"} <= offered("")
    assert offered("re") == {"reschedule"}
    assert offered("dead", "") == {"list", "show", "replay", "drop"}
    assert offered("dead", "re") == {"replay"}


def test_options_of_the_verb_and_of_all(offered):
    assert offered("schedule", "id", "--i") == {"--in", "--if-due-before"}
    assert {"--in", "--at", "--json", "--redis"} <= offered("schedule", "--")
    assert "--in" not in offered("stats", "--")
    assert offered("dead", "list", "--s") == {"--summary"}
    assert offered("--redis", "unix:///x", "--json", "cancel", "--enc") == {"--encoded"}


def test_files_and_other_values(offered, tmp_path):
    (tmp_path / "lapsed.conf").touch()
    assert offered("-c", "lap") == {"lapsed.conf"}
    assert offered("schedule", "--data-file", "") == {"lapsed.conf"}
    assert offered("schedule", "--topic", "") == set()


def test_zsh_can_read_it(lapse):
    script = lapse.ok("completion", "zsh")
    assert script.startswith("#compdef lapse\n")
    zsh = shutil.which("zsh")
    if not zsh:
        pytest.skip("there is no zsh")
    script = "autoload -Uz compinit && compinit -D\n" + script + "\nprint ${_comps[lapse]}"
    done = subprocess.run([zsh, "-fc", script], capture_output=True, text=True, check=False)
    assert done.stderr == "" and "_lapse" in done.stdout, done.stderr


def test_another_shell():
    Lapse().refused(2, "completion", "fish", says="bash and zsh")
