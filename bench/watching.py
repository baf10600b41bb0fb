# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to watch the keys of an application that knows nothing of lapsed."""

import time

from lab import Failed, Others, until
from measures import HOUR, at_most, check_all, kafka_alone, plain, rate

FLAGS = "Exg$"
STEM = "watched:sessio"             # and 16 bytes more


def route(topic, register="events", **options):
    lines = {"topic": topic, "pattern": "watched:*", "register": register, **options}
    return "[route watched]\n" + "".join(f"{k} = {v}\n" for k, v in lines.items())


def routes(topic, n):
    """So many that no key of anybody matches, of all the shapes there are, and the one."""
    shapes = ["svc{}:session:*", "session:*:{}", "*:{}:done", "svc{}:*:done"]
    return "".join(f"[route r{i}]\ntopic = {topic}\nregister = events\n"
                   f"pattern = {shapes[i % 4].format(i)}\n" for i in range(n)) + route(topic)


def watch(lab, quick):
    """Keys of an application that knows nothing of lapsed."""
    lab.db.config_set("notify-keyspace-events", FLAGS)
    kafka_alone(lab, 50_000)    # the broker's machine code is made now
    result = {"lateness": {}, "rows": []}
    for others in (0, 100_000) if quick else (0, 100_000, 1_000_000):
        result["lateness"][others] = figures = _lateness(lab, others, 10 if quick else 60)
        result["rows"] += _lateness_rows(others, figures)
    n = 50_000 if quick else 90_000
    for value in ("none", "copy"):
        result[f"register_{value}"] = figures = _register(lab, n, value)
        result["rows"].append(plain(f"registered as they are heard of, value = {value}",
                                    figures["rate"], " keys/s"))
    result["scan"] = figures = _scan(lab, 200_000 if quick else 1_000_000)
    result["rows"] += _scan_rows(figures)
    result["foreign"] = {n: _foreign(lab, n, 10 if quick else 30) for n in (1, 1000)}
    result["rows"] += _foreign_rows(result["foreign"])
    return result


# -- lateness

def _lateness(lab, others, seconds):
    """Keys that are only set, each beside a twin that nobody watches."""
    per_second = 200
    n = per_second * seconds
    lab.clean()
    if others:
        lab.run("load", how="keys", n=others, letter="o", min=HOUR, max=2 * HOUR)
    with lab.topic() as topic, lab.daemon(topic=topic, routes=route(topic)) as daemon:
        daemon.ready()
        # The first events find out where the topic is; they are not counted.
        lab.run("load", how="set", n=100, letter="w", min=100, max=300)
        until(lambda: not lab.pending() and not lab.open_batches(), "the first events", 30)
        lab.quiet()
        share = Others(lab)
        consumer = lab.begin("consume", topic=topic, n=n, subject="watched:", limit=seconds + 60)
        twins = lab.begin("expired", n=n)
        lab.run("load", how="set", n=n, rate=per_second, min=1000, max=3000, twin=1)
        seen = lab.end(consumer)
        time.sleep(5)
        expired = lab.end(twins)
        taken = share.share()
        daemon.stop()
        own = daemon.stats()
    if seen["events"] != n or seen["early"]:
        raise Failed(f"{n} keys were set, {seen['events']} events came, {seen['early']} early")
    return {"keys": n, "consumer": seen, "daemon": own, "expired": expired, "others": taken}


def _lateness_rows(others, figures):
    own, expired = figures["daemon"], figures["expired"]
    where = f"{others:,} other keys"
    return [
        plain(f"{where}: due to acknowledged, p50", own["lateness_total_p50_ms"], " ms"),
        at_most(f"{where}: due to acknowledged, p99", own["lateness_total_p99_ms"], 20, " ms"),
        plain(f"{where}: Redis' own event of a twin, p50 of those that came",
              expired["lateness_p50_ms"], " ms"),
        plain(f"{where}: the same, p99", expired["lateness_p99_ms"], " ms"),
        plain(f"{where}: those that came within 5 s", 100 * expired["events"] / figures["keys"],
              " %"),
    ]


# -- registration

def _register(lab, n, value):
    """Keys set as fast as they can be, until the last is in the shadow."""
    lab.clean()
    with lab.topic() as topic, \
            lab.daemon(topic=topic, routes=route(topic, value=value)) as daemon:
        daemon.ready()
        lab.quiet()
        start, cpu = time.time(), daemon.cpu_s()
        lab.run("load", how="set", n=n, min=HOUR, max=2 * HOUR)
        until(lambda: lab.pending() == n, "all to be registered", limit=120)
        took, cpu = time.time() - start, daemon.cpu_s() - cpu
    return {"keys": n, "rate": n / took, "cpu_us": 1e6 * cpu / n}


def _used(lab):
    return lab.db.info("memory")["used_memory"]


def _scan(lab, n):
    """So many keys are there before lapsed is; then as many that are nobody's."""
    result = {"keys": n}
    for value in ("none", "copy"):
        lab.clean()
        lab.run("load", how="set", stem=STEM, n=n, min=HOUR, max=2 * HOUR)
        before = _used(lab)
        with lab.topic() as topic, lab.daemon(
                topic=topic, routes=route(topic, "scan", value=value),
                scan_rate=1_000_000) as daemon:
            daemon.ready()
            start = time.time()
            until(lambda: lab.pending() == n, "all to be registered", limit=300)
            result[f"rate_{value}"] = n / (time.time() - start)
            until(lambda d=daemon: d.events("scan.done"), "the end of the pass", 30)
            result[f"bytes_{value}"] = (_used(lab) - before) / n
    lab.clean()
    lab.run("load", how="keys", n=n, min=HOUR, max=2 * HOUR)
    lab.quiet()
    with lab.topic() as topic:
        ping = lab.begin("ping", every=3)
        lab.db.config_resetstat()
        with lab.favour(ping.pid, lab.redis.process.pid) as favoured, lab.daemon(
                topic=topic, routes=route(topic, "scan") + "pattern = w:*\n",
                scan_rate=50_000) as daemon:
            until(lambda: daemon.events("scan.done"), "the end of the pass", 120)
            scripts = lab.db.info("commandstats")["cmdstat_evalsha"]
            result["walk"] = {**lab.end(ping), "favoured": favoured,
                              "step_us": scripts["usec_per_call"],
                              "seconds": daemon.events("scan.done")[0]["took_ms"] / 1000}
    return result


def _scan_rows(figures):
    walk, n = figures["walk"], figures["keys"]
    where = "Redis first on the CPU" if walk["favoured"] else "Redis shares the CPU"
    return [
        plain(f"{n:,} keys that were there: found and registered, value = none",
              figures["rate_none"], " keys/s"),
        plain("the same, value = copy", figures["rate_copy"], " keys/s"),
        at_most("shadow, per key with a name of 30 bytes, value = none",
                figures["bytes_none"], 200, " B"),
        at_most("the same with a copy of 128 bytes", figures["bytes_copy"], 400, " B"),
        at_most(f"{n:,} foreign keys walked, 50,000 a second at most: PING, p99; {where}",
                walk["ping_p99_ms"], 5, " ms"),
        plain("the same, max", walk["ping_max_ms"], " ms"),
        plain("the same, Redis' time for a step", walk["step_us"], " us"),
    ]


# -- foreign events

def _foreign(lab, n_routes, seconds, per_second=25_000):
    """Each SET of a foreign key is two events, `set` and `expire`."""
    n, own = per_second * seconds, 100 * seconds
    lab.clean()
    with lab.topic() as topic, lab.daemon(topic=topic,
                                          routes=routes(topic, n_routes - 1)) as daemon:
        daemon.ready()
        lab.run("load", how="set", n=100, letter="w", min=100, max=300)
        until(lambda: not lab.pending() and not lab.open_batches(), "the first events", 30)
        lab.quiet()
        alone = daemon.cpu_s()
        lab.run("load", how="keys", letter="o", n=n, rate=per_second, min=HOUR, max=2 * HOUR)
        time.sleep(1)
        alone = daemon.cpu_s() - alone
        # The same keys again, which takes no more memory, beside some of our own.
        share = Others(lab)
        consumer = lab.begin("consume", topic=topic, n=own, subject="watched:",
                             limit=seconds + 60)
        flood = lab.begin("load", how="keys", letter="o", n=n, rate=per_second,
                          min=HOUR, max=2 * HOUR)
        lab.run("load", how="set", n=own, rate=100, min=1000, max=3000)
        made, seen = lab.end(flood), lab.end(consumer)
        taken = share.share()
        daemon.stop()
        stats = daemon.stats()
    check_all({**seen, "foreign": 0}, own)
    return {"events": stats["heard_foreign"], "cpu_us": 1e6 * alone / (2 * n), "gaps": stats["gaps"],
            "events_per_s": 2 * rate(made), "lateness_p50_ms": stats["lateness_total_p50_ms"],
            "lateness_p99_ms": stats["lateness_total_p99_ms"], "others": taken}


def _foreign_rows(figures):
    one, many = figures[1], figures[1000]
    return [
        plain("foreign events", one["events_per_s"], " /s"),
        plain("CPU of lapsed per foreign event, 1 route", one["cpu_us"], " us"),
        plain("the same with 1,000 routes", many["cpu_us"], " us"),
        at_most("what 1,000 routes add to it", max(many["cpu_us"] - one["cpu_us"], 0), 2, " us"),
        at_most("times that the subscription was cut", one["gaps"] + many["gaps"], 0),
        plain("our own meanwhile: due to acknowledged, p50", one["lateness_p50_ms"], " ms"),
        at_most("our own meanwhile: due to acknowledged, p99", one["lateness_p99_ms"], 20, " ms"),
        plain("CPU taken by other programs", 100 * one["others"], " %"),
    ]
