# SPDX-License-Identifier: BSD-2-Clause
"""Starting, reloading, stopping; what an operator sees of it."""

import subprocess

import pytest

from lapsed import BUILD, check, write_config
from limits import scaled, until
from load import Load
from world import LASTING, PREFIX

ROUTES = {"orders": {"pattern": "order:*"}}


def test_reload_of_routes(world):
    """HUP: a new route hears, an old one is forgotten, what was stored goes on."""
    other = world.new_topic()
    lapsed = world.lapsed(routes={"a": {"pattern": "a:*"}, "b": {"pattern": "b:*"}})
    before = world.setex("a:1", "1500")
    lapsed.configure(world.sections(routes={
        "a": {"pattern": "a:*", "topic": other}, "c": {"pattern": "c:*"}}))
    lapsed.hup()
    assert lapsed.wait("daemon.reload")["mistakes"] == 0
    assert lapsed.find("daemon.config")
    for name in "abc":
        world.client.set(f"{name}:heard", "v", px=50)
    keys = {r.key: r.topic for r in world.records(3)}
    assert keys == {b"a:1": other, b"a:heard": other, b"c:heard": world.topic}
    assert before in world.ledger.ids()


def test_reload_of_a_broken_file(world):
    """The old configuration stays, and the log says why."""
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.errors |= {"daemon.reload", "daemon.config"}
    for text in ("nonsense\n", "[lapsed]\nlease = soon\n", "[route x]\npattern = x\n", ""):
        lapsed.mark()
        lapsed.config.write_text(text)
        lapsed.hup()
        assert lapsed.wait("daemon.reload", level="error")["mistakes"] > 0
        world.settle([*world.ledger.ids(), world.setex("order:1", "1")])
    assert lapsed.find_ever("daemon.config")
    lapsed.config.unlink()
    lapsed.mark()
    lapsed.hup()
    lapsed.wait("daemon.reload", level="error")
    world.settle([*world.ledger.ids(), world.setex("order:1", "1")])


def test_reload_under_load(world):
    """Again and again, with events of every kind in flight."""
    routes = {"load": {"pattern": "load-*"}}
    lapsed = world.lapsed(routes=routes)
    with Load(world) as load:
        for i in range(20):
            lapsed.mark()
            lapsed.configure(world.sections(routes=routes, lapsed={
                "max_inflight": str(100 + i), "claim_limit": str(10 + i)}))
            lapsed.hup()
            lapsed.wait("daemon.reload", mistakes=0)
            wanted = len(load.stored) + 10
            until(lambda w=wanted: len(load.stored) >= w, "some load")
    load.settle(duplicates=False)


def test_reload_of_what_needs_a_restart(world):
    """It is said, and the rest is taken over."""
    lapsed = world.lapsed(routes=ROUTES)
    lapsed.configure(world.sections(
        routes=ROUTES, lapsed={"namespace": "other", "log_level": "info"}))
    lapsed.hup()
    lapsed.wait("daemon.reload")
    assert any("namespace" in x["msg"] and "restart" in x["msg"]
               for x in lapsed.find("daemon.config"))
    world.settle([world.setex("order:1", "1")])


@pytest.mark.parametrize("change, names", [
    ({"kafka": None}, "bootstrap.servers"),
    ({"lapsed": {"leese": "1s"}}, "leese"),
    ({"lapsed": {"lease": "0"}}, "lease"),
    ({"kafka": {"acks": "1"}}, "acks"),
    ({"kafka": {"no.such.property": "1"}}, "no.such.property"),
    ({"redis": {"url": "http://localhost"}}, "url"),
    ({"route x": {"pattern": "x"}}, "topic"),
    ({"route x": {"topic": "x"}}, "pattern"),
    ({"route x": {"pattern": "x", "topic": "a/b"}}, "topic"),
    ({"route x": {"pattern": "x*", "topic": "x", "key": "{2}"}}, "{2}"),
    ({"nonsense": {"a": "b"}}, "nonsense"),
], ids=lambda x: None if isinstance(x, str) else str(x))
def test_a_mistake_in_the_configuration(world, tmp_path, change, names):
    """Status 2, the option named, with its line; --check says the same."""
    sections = world.sections()
    for section, more in change.items():
        if more is None:
            del sections[section]
        else:
            sections[section] = {**sections.get(section, {}), **more}
    config = write_config(tmp_path / "bad.conf", sections)
    status, text = check(config)
    assert status == 2
    assert names in text
    done = subprocess.run([BUILD / "lapsed", "-c", config], capture_output=True, text=True,
                          timeout=scaled(10), check=False)
    assert done.returncode == 2
    assert names in done.stderr


def test_a_file_that_is_not_there(world, tmp_path):
    status, text = check(tmp_path / "none.conf")
    assert status == 2
    assert "none.conf" in text


def test_everything_is_empty_when_all_is_done(world):
    """Case 27: whatever happened before."""
    lapsed = [world.lapsed(routes=ROUTES) for _ in range(3)]
    ids = world.schedule_many([f"job-{i}" for i in range(100)], "+200")
    ids += world.setex_many([f"order:{i}" for i in range(100)], "200")
    world.cancel("job-0")
    world.delete("order:0")
    gone = {ids[0], ids[100]}
    world.settle([i for i in ids if i not in gone])
    for instance in lapsed:
        assert instance.stop() == 0
    until(lambda: set(world.client.keys("*")) <= LASTING, "the canaries to run out")
    assert world.client.hlen(f"{PREFIX}:slots") == 0


def test_own_keys_match_no_route(world):
    """Case 14: not even with pattern `*`."""
    lapsed = world.lapsed(routes={"all": {"pattern": "*"}})
    lapsed.wait("redis.subscribed")
    for name in ("slots:x", "b:0:1", "anything"):
        world.client.set(f"{PREFIX}:{name}", "v", px=50)
    with pytest.raises(Exception, match="LAPSE_BADARG"):
        world.setex(f"{PREFIX}:due2", "50")
    world.client.set("lapse", "v", px=50)
    world.client.set("other", "v", px=50)
    assert {r.key for r in world.records(2)} == {b"lapse", b"other"}


def test_the_echo_of_our_own_look(world):
    """Case 15: looking at a due key makes Redis tell everybody of its expiry."""
    instances = [world.lapsed(routes=ROUTES) for _ in range(3)]
    for instance in instances:
        instance.wait("redis.subscribed")
    ids = world.setex_many([f"order:{i}" for i in range(300)], "300")
    ledger = world.settle(ids)
    found = sum(r.headers["ce_lapsecertainty"] == b"found" for r in ledger.records)
    assert found > 150

    def heard():
        figures = [i.stats() for i in instances]
        return all(f["heard"] == 300 for f in figures)
    until(heard, "all notifications")
    world.settle(ids)


def test_the_figures_add_up(world):
    """What was claimed was acknowledged and settled; nothing is in flight."""
    lapsed = world.lapsed(routes=ROUTES)
    ids = world.schedule_many([f"job-{i}" for i in range(500)], "+200")
    world.settle(ids)
    figures = lapsed.stats()
    for name in ("claimed", "produced", "acknowledged", "settled"):
        assert figures[name] == 500, name
    for name in ("retried", "possible_duplicates", "buried", "early", "inflight_events",
                 "inflight_bytes", "open_batches", "kafka_outstanding", "parked_topics"):
        assert figures[name] == 0, name
    assert figures["lateness_total_count"] == 500
    assert figures["slot"] == 0
    assert figures["instances"] == 1


def test_a_log_that_nobody_reads(world):
    """A full pipe stops nothing."""
    lapsed = world.instance(routes=ROUTES, lapsed={"stats_interval": "1ms"})
    process = subprocess.Popen([BUILD / "lapsed", "-c", lapsed.config],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        ids = world.schedule_many([f"job-{i}" for i in range(500)], "+500")
        world.settle(ids)
        process.terminate()
        until(lambda: process.poll() is not None, "its end")
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
