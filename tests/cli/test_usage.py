# SPDX-License-Identifier: BSD-2-Clause
"""Help, versions, and the exit status of wrong usage."""

import re
import subprocess

import pytest
from conftest import PROGRAM, TOP, Lapse

VERBS = {
    "schedule": "in at topic key data data-file type content-type header nx"
                " if-due-before ttr attempts backoff file",
    "reschedule": "in at",
    "cancel": "file null",
    "finish": "",
    "touch": "for",
    "fail": "reason in",
    "purge": "topic yes",
    "setex": "db no-copy",
    "del": "db",
    "match": "db",
    "show": "watched db",
    "list": "limit due-before",
    "stats": "",
    "fsck": "repair",
    "watch": "count",
    "import zset": "topic unit id-prefix payload-from remove yes",
    "dead list": "topic reason limit summary",
    "dead show": "",
    "dead replay": "topic reason all",
    "dead drop": "topic reason all yes",
    "install": "",
    "completion": "",
    "version": "",
    "help": "",
}
GLOBAL = "config redis password-file namespace database encoded json help version"


@pytest.fixture
def lapse():
    """With nobody to talk to: none of this needs a server."""
    return Lapse("redis://127.0.0.1:1")


def test_help_lists_every_verb(lapse):
    text = lapse.ok("help")
    listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", text, re.MULTILINE)
    assert listed == list(VERBS)
    assert all(f"--{name}" in text for name in GLOBAL.split())
    assert lapse.ok("--help") == lapse.ok("-h") == text


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(lapse, verb):
    text = lapse.ok("help", *verb.split())
    assert text.startswith(f"usage: lapse {verb}")
    listed = re.findall(r"^  (?:-\w, )?--([a-z-]+)", text, re.MULTILINE)
    assert listed == VERBS[verb].split() + GLOBAL.split()
    assert lapse.ok(*verb.split(), "--help") == text
    assert lapse.ok("-h", *verb.split()) == text
    assert all(len(line) <= 80 for line in text.splitlines()[1:])


def test_a_family_has_help(lapse):
    text = lapse.ok("help", "dead")
    assert re.findall(r"^usage: lapse (dead \w+)", text, re.MULTILINE) == [
        "dead list", "dead show", "dead replay", "dead drop",
    ]
    assert lapse.ok("dead", "--help") == text


@pytest.mark.parametrize(
    "args, says",
    [
        (["frobnicate"], "unknown verb frobnicate; lapse help lists them"),
        (["schedul"], "did you mean schedule?"),
        (["Cancel", "a"], "did you mean cancel?"),
        (["stat"], "did you mean stats?"),
        (["help", "schedul"], "did you mean schedule?"),
        (["help", "dead", "rplay"], "did you mean dead replay?"),
        (["help", "a", "b", "c"], "surplus argument c"),
        (["cancel"], "ID or --file is needed"),
        (["cancel", "a", "b"], "surplus argument b"),
        (["show"], "ID is missing"),
        (["reschedule"], "ID is missing"),
        (["reschedule", "a"], "one of --in DURATION and --at TIME is needed"),
        (["reschedule", "a", "--in", "-1s"], "negative"),
        (["version", "x"], "surplus argument x"),
        (["list", "--redis"], "--redis lacks its value, URL"),
        (["list", "--redis", "--json"], "if --json is meant"),
        (["list", "--json=yes"], "--json takes no value"),
        (["list", "--json", "--json"], "--json is given twice"),
        (["--jsn", "list"], "did you mean --json?"),
        (["-x", "list"], "unknown option -x"),
        (["--json"], "no verb is given"),
    ],
)
def test_wrong_usage(lapse, args, says):
    result = lapse.refused(2, *args, says=says)
    assert result.out == b""


def test_wrong_usage_shows_the_right_one(lapse):
    err = lapse.run("show").err.decode()
    assert err == "lapse: show: ID is missing\nusage: lapse show ID [--watched [--db N]]\n"


def test_nothing_at_all(lapse):
    result = lapse.run()
    assert result.code == 2 and result.out == b""
    assert result.err.decode() == lapse.ok("help")


def test_complaints_are_safe_to_print(lapse):
    result = lapse.run("\x1b[31mx", "\n")
    assert result.code == 2
    assert b"unknown verb \\x1b[31mx" in result.err


def test_version(lapse):
    out = lapse.ok("version")
    assert re.fullmatch(r"lapse \d+\.\d+\.\d+\S*\n", out)
    assert lapse.ok("--version") == lapse.ok("-V") == out
    assert lapse.json("version") == {"version": out.split()[1]}


@pytest.mark.parametrize("verb", VERBS)
def test_the_manual_page_has_it_all(verb):
    text = (TOP / "docs" / "lapse.1").read_text()
    assert re.search(rf"^\.(It|Ic|Ss|Cm) .*{verb.split()[0]}", text, re.MULTILINE)
    for name in VERBS[verb].split() + GLOBAL.split():
        assert name.replace("-", r"\-") in text or name in text, name


@pytest.mark.parametrize("args", [
    ("-c", "/nowhere/lapsed.conf", "stats"), ("--namespace", "a/b", "stats"),
    ("--redis", "http://x", "stats"),
])
def test_complaints_of_the_configuration_have_a_name_in_front(args):
    Lapse().refused(2, *args)


@pytest.mark.parametrize("option", ["--dump", "--check"])
def test_lapsed_says_when_its_output_is_lost(option):
    env = {**Lapse().env, "LAPSED_KAFKA_BOOTSTRAP_SERVERS": "localhost:9092"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM.parent / "lapsed", option], stdout=full, check=False,
                              stderr=subprocess.PIPE, env=env)
    assert done.returncode == 1 and b"No space left" in done.stderr
