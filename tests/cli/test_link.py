# SPDX-License-Identifier: BSD-2-Clause
"""The way to Redis: where, as whom, and what is said when it is barred."""

import subprocess

import pytest
from conftest import PREFIX, PROGRAM, Lapse
from harness.fakeserver import FakeServer

from harness.redisserver import RedisServer, free_port

SCHEDULE = ("schedule", "a", "--in", "1h", "--topic", "t")


def write(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@pytest.fixture(scope="module")
def guarded():
    """Wants a password; has a user of few rights."""
    config = {"acl-pubsub-default": "resetchannels"}
    with RedisServer(tcp=True, config=config) as server:
        client = server.client()
        client.acl_setuser(
            "app", enabled=True, passwords=["++app pass"], keys=["lapse:*", "order:*"],
            channels=["lapse:*"], commands=["+@all", "-flushall"],
        )
        client.acl_setuser("guest", enabled=True, nopass=True, commands=["+ping", "-evalsha"])
        client.acl_setuser(
            "weak", enabled=True, passwords=["+pw"], keys=["lapse:*"],
            channels=["lapse:*"], commands=["+evalsha", "+script|load", "+time"],
        )
        client.config_set("requirepass", "top secret")
        yield server


# -- where

def test_url_of_the_environment(server):
    Lapse(server.url).ok(*SCHEDULE)
    Lapse(server.tcp_url).ok("cancel", "a")


def test_the_command_line_beats_the_environment(server):
    lapse = Lapse("redis://127.0.0.1:1")
    lapse.ok(*SCHEDULE, "--redis", server.tcp_url)
    lapse.ok("--redis=" + server.url, "cancel", "a")


def test_url_of_a_configuration(server, tmp_path):
    text = f"[lapsed]\nnamespace = shop\ndatabase = 3\n[redis]\nurl = {server.url}\n"
    conf = write(tmp_path / "lapsed.conf", text)
    lapse = Lapse()
    lapse.ok("-c", conf, *SCHEDULE)
    assert server.client(db=3).zcard("shop:{0}:due") == 1
    assert lapse.lines("list", "-c", conf)[0]["id"] == "a"
    lapse.ok(*SCHEDULE, "-c", conf, "--namespace", "other", "--database", "4")
    assert server.client(db=4).zcard("other:{0}:due") == 1


def test_the_sections_of_the_daemon_are_passed_over(server, tmp_path):
    text = f"[redis]\nurl = {server.url}\n[kafka]\nno.such.thing = 1\n[route x]\npattern = a\n"
    Lapse().ok("-c", write(tmp_path / "lapsed.conf", text), *SCHEDULE)


@pytest.mark.parametrize(
    "args, says",
    [
        (["--redis", "http://localhost"], "--redis"),
        (["--redis", "redis://localhost:99999"], "--redis"),
        (["--redis", ""], "--redis is empty"),
        (["--namespace", "a{b"], "--namespace"),
        (["--namespace", ""], "--namespace is empty"),
        (["--database", "x"], "--database: "),
        (["--database", "-1"], "--database: "),
        (["-c", "/nowhere/lapsed.conf"], "/nowhere/lapsed.conf"),
        (["-c", ""], "--config is empty"),
        (["--password-file", "/nowhere/password"], "/nowhere/password"),
    ],
)
def test_bad_addresses_are_wrong_usage(lapse, redis, args, says):
    result = lapse.run(*SCHEDULE, *args)
    assert result.code == 2 and says in result.err.decode(), result.what
    assert redis.keys() == []


def test_nobody_listens(tmp_path):
    port = free_port()
    lapse = Lapse(f"redis://127.0.0.1:{port}")
    lapse.refused(1, "list", says=f"can't connect to 127.0.0.1:{port}: Connection refused (is")
    missing = tmp_path / "redis.sock"
    lapse = Lapse(f"unix://{missing}")
    lapse.refused(1, "list", says=f"can't connect to {missing}: No such file or directory")


def test_a_database_that_is_none(lapse):
    lapse.refused(1, "list", "--database", "99", says="refuses SELECT: ERR DB index is out of")


# -- as whom

def test_a_password_from_the_environment(guarded):
    Lapse(guarded.url, LAPSED_REDIS_PASSWORD="top secret").ok("stats")


def test_a_password_from_a_file(guarded, tmp_path):
    file = write(tmp_path / "password", "top secret\n")
    Lapse(guarded.url).ok("stats", "--password-file", file)
    conf = write(
        tmp_path / "lapsed.conf", f"[redis]\nurl = {guarded.url}\npassword_file = {file}\n"
    )
    Lapse().ok("stats", "-c", conf)


def test_a_user_and_a_password_that_needs_encoding(guarded):
    url = f"redis://app:%2Bapp%20pass@127.0.0.1:{guarded.port}"
    Lapse(f"redis://app@127.0.0.1:{guarded.port}", LAPSED_REDIS_PASSWORD="+app pass").ok("stats")
    Lapse(url).ok("stats")


def test_a_password_on_the_command_line_is_warned_of(guarded):
    url = f"redis://app:%2Bapp%20pass@127.0.0.1:{guarded.port}"
    result = Lapse().run("stats", "--redis", url)
    assert result.code == 0, result.what
    assert b"lapse: warning: everyone can see a password" in result.err
    assert b"app%20pass" not in result.err and b"app pass" not in result.err


def test_no_password(guarded):
    lapse = Lapse(guarded.url)
    lapse.refused(1, "list", says=f"{guarded.socket} wants a password: set LAPSED_REDIS_PASSWORD")
    lapse.refused(1, "stats", says="wants a password")
    # Whose scripts are longer than a server reads from who has not said who he is.
    lapse.refused(1, "install", says="wants a password")
    lapse.refused(1, "fsck", says="wants a password")


def test_a_wrong_password(guarded):
    lapse = Lapse(guarded.url, LAPSED_REDIS_PASSWORD="guess")
    result = lapse.refused(1, "list", says="refuses the user name or password (WRONGPASS")
    assert b"guess" not in result.err


def test_a_user_without_rights(guarded):
    url = f"redis://guest@127.0.0.1:{guarded.port}"
    Lapse(url).refused(1, "list", says="does not permit this user to run TIME: the ACL")
    Lapse(url).refused(1, *SCHEDULE, says="does not permit this user to run SCRIPT")


def test_a_right_that_only_the_script_needs(guarded):
    lapse = Lapse(f"redis://weak@127.0.0.1:{guarded.port}", LAPSED_REDIS_PASSWORD="pw")
    lapse.refused(1, *SCHEDULE, says="does not permit this user to run EVALSHA")
    assert guarded.client(password="top secret").keys() == []


# -- what a server may say

@pytest.mark.parametrize(
    "reply, says",
    [
        ("LOADING Redis is loading the dataset in memory", "is still loading its data"),
        ("BUSY Redis is busy running a script.", "is busy with a long script"),
        ("MASTERDOWN Link with MASTER is down", "has lost its master"),
        ("CLUSTERDOWN The cluster is down", "belongs to a cluster that is down"),
        ("READONLY You can't write against a read only replica.", "is a read-only replica"),
        ("MOVED 3999 127.0.0.1:6381", "the node of the cluster that has these keys"),
        ("OOM command not allowed when used memory > 'maxmemory'.", "is out of memory"),
        ("ERR Error running script (call to f_9): @user_script:1: @user_script: 1: -OOM command "
         "not allowed", "is out of memory"),
        ("MISCONF Redis is configured to save RDB snapshots", "can't save its data"),
        ("NOREPLICAS Not enough good replicas to write.", "too few replicas"),
        ("NOPERM this user has no permissions", "does not permit this user to run EVALSHA"),
        ("WRONGTYPE Operation against a key", "keys under this namespace that are not"),
        ("ERR unknown command 'EVALSHA'", "refuses EVALSHA: ERR unknown command"),
    ],
)
def test_refusals_are_put_into_words(reply, says):
    sha = b"$40\r\n" + b"a" * 40 + b"\r\n"
    answers = {"SCRIPT": sha, "EVALSHA": f"-{reply}\r\n".encode()}
    with FakeServer(answers) as server:
        result = Lapse(server.url).refused(1, *SCHEDULE, says=says)
        assert f"127.0.0.1:{server.port} " in result.err.decode()
        assert reply in result.err.decode()


def test_a_lost_script_is_loaded_again():
    sha = b"$40\r\n" + b"a" * 40 + b"\r\n"
    answers = {"SCRIPT": sha, "EVALSHA": b"-NOSCRIPT No matching script.\r\n"}
    with FakeServer(answers) as server:
        Lapse(server.url).refused(1, *SCHEDULE, says="refuses EVALSHA: NOSCRIPT")
        names = [command[0] for command in server.seen]
    assert names == [b"PING", b"SCRIPT", b"EVALSHA", b"SCRIPT", b"EVALSHA"]


def test_a_script_that_was_flushed_meanwhile(lapse, redis):
    lapse.ok(*SCHEDULE)
    redis.script_flush()
    lapse.ok("cancel", "a")


def test_a_server_that_hangs_up():
    sha = b"$40\r\n" + b"a" * 40 + b"\r\n"
    with FakeServer({"SCRIPT": sha, "EVALSHA": None}) as server:
        result = Lapse(server.url).refused(1, *SCHEDULE, says="lost the connection to 127.0.0.1:")
        assert b"whether it was carried out is not known" in result.err
    with FakeServer({"TIME": None}) as server:
        result = Lapse(server.url).refused(1, "list", says="before TIME was answered")
        assert b"carried out" not in result.err


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n", b"*-7\r\n", b"$-9\r\n", b":1\r\n", b"*0\r\n"]
)
@pytest.mark.parametrize("verb", [SCHEDULE, ("list",), ("stats",), ("show", "a"), ("dead", "list")])
def test_a_server_that_talks_nonsense(answer, verb):
    with FakeServer({"SCRIPT": b"$1\r\nx\r\n"}, otherwise=answer) as server:
        done = Lapse(server.url).run(*verb)
        assert done.code == 1 or answer == b"*0\r\n", done.what


def test_closed_descriptors_do_no_harm(lapse):
    """Neither the answer nor a complaint gets into the connection."""
    closed = ["sh", "-c", 'exec "$0" "$@" >&- 2>&- <&-', str(PROGRAM)]
    for args, status in ((SCHEDULE, 0), (("stats",), 0), (("list",), 0), (("cancel", "b"), 3)):
        done = subprocess.run([*closed, *args], env=lapse.env, timeout=60)
        assert done.returncode == status, args
    assert lapse.ok("cancel", "a") == "cancelled a\n"


def test_a_real_server_out_of_memory(lapse, redis):
    redis.config_set("maxmemory", "1")
    try:
        lapse.refused(1, *SCHEDULE, says="is out of memory (maxmemory)")
    finally:
        redis.config_set("maxmemory", "0")
    assert redis.keys() == []


def test_keys_of_somebody_else(lapse, redis):
    redis.set(f"{PREFIX}:due", "x")
    lapse.refused(1, *SCHEDULE, says="keys under this namespace that are not lapsed's")
    lapse.refused(1, "list", says="keys under this namespace that are not lapsed's")
