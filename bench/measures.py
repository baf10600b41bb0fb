# SPDX-License-Identifier: BSD-2-Clause
"""The benchmarks themselves.

Each takes a Lab and whether to be quick, and returns a dictionary: `rows` for
the table, as (what, figure, target or None, whether it is met or None), and
the raw figures beside them.
"""

import datetime
import statistics
import time

from lab import Failed, Others, cpu_s, memory_kb, until

HOUR = 3600000      # ms
ADOPTED = 10_000


def at_most(what, figure, target, unit=""):
    return (what, f"{figure:.4g}{unit}", f"<= {target:g}{unit}", figure <= target)


def at_least(what, figure, target, unit=""):
    return (what, f"{figure:.4g}{unit}", f">= {target:g}{unit}", figure >= target)


def plain(what, figure, unit=""):
    text = f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.4g}"
    return (what, text + unit, None, None)


def rate(result):
    return result["events"] / result["seconds"]


def wait_drained(lab, later=0, limit=600):
    """Until `later` events are pending and nothing is open; returns when that was so."""
    end = time.time() + limit
    while lab.pending() > later or lab.open_batches():
        if time.time() > end:
            raise Failed(f"{lab.pending()} events are still there after {limit} s")
        time.sleep(0.01)
    return time.time()


def check_all(got, n):
    if got["events"] != n or got["early"] or got["foreign"]:
        raise Failed(f"of {n} events {got['events']} arrived, {got['early']} of them early, "
                     f"{got['foreign']} that nobody sent")


def quiet_ones(rounds):
    """Those in which others took less than a tenth of the CPU, or all if none is."""
    return [r for r in rounds if r["others"] < 0.1] or rounds


# -- lateness

def lateness(lab, quick, kinds=("scheduled", "watched")):
    """1,000 events a second, half scheduled events and half watched keys."""
    seconds = 10 if quick else 60
    result = {"seconds": seconds, "rows": []}
    for kind in kinds:
        result[kind] = figures = _lateness(lab, kind, seconds)
        seen, own, bare = figures["consumer"], figures["daemon"], figures["kafka_alone"]
        result["rows"] += [
            at_most(f"{kind}: due to acknowledged, p50", own["lateness_total_p50_ms"], 2, " ms"),
            at_most(f"{kind}: due to acknowledged, p99", own["lateness_total_p99_ms"], 10, " ms"),
            plain("bare producer: handed over to acknowledged, p50", bare["took_p50_ms"], " ms"),
            plain("bare producer: handed over to acknowledged, p99", bare["took_p99_ms"], " ms"),
            plain(f"{kind}: due to seen by a consumer, p50", seen["lateness_p50_ms"], " ms"),
            plain(f"{kind}: due to seen by a consumer, p99", seen["lateness_p99_ms"], " ms"),
            at_most(f"{kind}: early", seen["early"] + own["early"], 0),
            plain(f"{kind}: CPU of lapsed", figures["cpu_percent"], " %"),
            plain("CPU taken by other programs", 100 * figures["others"], " %"),
        ]
    return result


def _lateness(lab, kind, seconds):
    per_second = 1000
    n = per_second * seconds
    how, name = {"scheduled": ("schedule", ""), "watched": ("setex", "watched:")}[kind]
    lab.quiet()
    with lab.topic() as topic:      # what Kafka takes for itself, and for a consumer
        consumer = lab.begin("consume", topic=topic, n=n, limit=seconds + 30)
        bare = lab.run("produce", topic=topic, n=n, rate=per_second)
        lab.end(consumer)
    lab.clean()
    lab.run("load", how="keys", n=100000, letter="o", min=HOUR, max=2 * HOUR)
    with lab.topic() as topic, lab.daemon(topic=topic) as daemon:
        daemon.ready()
        # The first events find out where the topic is; they are not counted.
        lab.run("load", how=how, topic=topic, n=100, letter="w", min=1, max=300)
        until(lambda: not lab.pending() and not lab.open_batches(), "the first events", 30)
        lab.quiet()
        others, before = Others(lab), daemon.cpu_s()
        consumer = lab.begin("consume", topic=topic, n=n, subject=name, limit=seconds + 30)
        lab.run("load", how=how, topic=topic, n=n, rate=per_second, min=1000, max=3000)
        seen = lab.end(consumer)
        cpu, share = daemon.cpu_s() - before, others.share()
        daemon.stop()
        own = daemon.stats()
    if seen["events"] != n:
        raise Failed(f"{n} events were made, {seen['events']} arrived")
    return {"consumer": seen, "daemon": own, "cpu_percent": 100 * cpu / (seconds + 2),
            "others": share, "kafka_alone": bare}


# -- sustained

def sustained(lab, quick):
    """Claim, produce, settle against what Redis and Kafka do alone."""
    n, rounds = (200000, 2) if quick else (500000, 5)
    result = {"events": n, "rounds": []}
    kafka_alone(lab, n)     # the broker's machine code is made now
    for _ in range(rounds):
        result["rounds"].append(_round(lab, n))
    counted = quiet_ones(result["rounds"])
    result["ratio"] = statistics.median(r["ratio"] for r in counted)
    middle = min(counted, key=lambda r: abs(r["ratio"] - result["ratio"]))
    result["rows"] = [
        plain("R: claim and settle alone", middle["redis"], " events/s"),
        plain("P: bare producer", middle["kafka"], " events/s"),
        plain("the limit, 1/(1/R + 1/P)", middle["limit"], " events/s"),
        plain("lapsed: due to acknowledged and settled", middle["lapsed"], " events/s"),
        at_least(f"ratio, median of {len(counted)} rounds", result["ratio"], 0.9),
        plain("CPU of lapsed", middle["lapsed_cpu_us"], " us/event"),
        plain("CPU of Redis", middle["redis_cpu_us"], " us/event"),
        plain("CPU of Kafka", middle["kafka_cpu_us"], " us/event"),
        plain("CPU taken by other programs", 100 * middle["others"], " %"),
    ]
    return result


class Used:
    """CPU that processes use from now on, us per event."""

    def __init__(self, **pids):
        self.pids = pids
        self.before = {name: cpu_s(pid) for name, pid in pids.items()}

    def per_event(self, n):
        return {f"{name}_cpu_us": 1e6 * (cpu_s(pid) - self.before[name]) / n
                for name, pid in self.pids.items()}


def redis_alone(lab, n, limit=250):
    lab.clean()
    lab.run("load", how="direct", n=n, min=-1000, max=-1)
    used = Used(redis=lab.redis.process.pid)
    got = lab.run("claim", limit=limit)
    return {"rate": rate(got), **used.per_event(n), "client_cpu_us": 1e6 * got["cpu_s"] / n}


def kafka_alone(lab, n, window=10000, **settings):
    more = ",".join(f"{k}:{v}" for k, v in settings.items())
    with lab.topic() as topic:
        used = Used(kafka=lab.broker.pid)
        got = lab.run("produce", n=n, topic=topic, window=window, **({"set": more} if more else {}))
        return {"rate": rate(got), **used.per_event(n), "client_cpu_us": 1e6 * got["cpu_s"] / n}


def _round(lab, n, **options):
    lab.quiet()
    others = Others(lab)
    redis = redis_alone(lab, n, options.get("claim_limit", 200))
    kafka = kafka_alone(lab, n, options.get("max_inflight", 10000), **options.get("kafka", {}))
    drained = drain(lab, n, **options)
    together = 1 / (1 / redis["rate"] + 1 / kafka["rate"])
    return {"redis": redis["rate"], "kafka": kafka["rate"], "limit": together, **drained,
            "ratio": drained["lapsed"] / together, "redis_alone": redis, "kafka_alone": kafka,
            "others": others.share()}


def drain(lab, n, pending=None, **options):
    """
    A backlog through one daemon, from its first claim to its last settle.

    pending   so many events are there already, not due, and stay
    """
    if pending is None:
        lab.clean()
    later = pending or 0
    with lab.topic() as topic:
        lab.run("load", how="direct", topic=topic, n=n, min=-1000, max=-1)
        servers = Used(redis=lab.redis.process.pid, kafka=lab.broker.pid)
        with lab.daemon(topic=topic, **options) as daemon:
            until(lambda: lab.pending() < later + n, "the first claim", limit=30, pause=0.001)
            start = time.time()
            seconds = wait_drained(lab, later) - start
            used = {**servers.per_event(n), "lapsed_cpu_us": 1e6 * daemon.cpu_s() / n}
            first = start - daemon.started
            most = memory_kb(daemon.pid, "VmHWM")
            daemon.stop()       # which logs its last statistics
            stats = daemon.stats()
        if stats["acknowledged"] != n or stats["settled"] != n:
            raise Failed(f"{n} events were due, {stats['acknowledged']} acknowledged, "
                         f"{stats['settled']} settled")
    return {"lapsed": n / seconds, "seconds": seconds, "first_claim_s": first, "rss_kb": most,
            **used}


# -- backlog

def backlog(lab, quick):
    """A daemon comes back to a million events that are overdue."""
    n = 200000 if quick else 1000000
    shared = _backlog(lab, n // 5)
    got = _backlog(lab, n, favoured=True)
    where = "Redis first on the CPU" if got["favoured"] else "Redis shares the CPU"
    return {"events": n, "sharing": shared, **got, "rows": [
        at_most("start of lapsed to first record at a consumer", got["first_s"], 1, " s"),
        plain("drained, consumer reading along", n / got["drained_s"], " events/s"),
        at_most(f"Redis PING, p99; {where}", got["ping"]["ping_p99_ms"], 5, " ms"),
        plain("max", got["ping"]["ping_max_ms"], " ms"),
        plain("Redis PING, p99; all share the CPU", shared["ping"]["ping_p99_ms"], " ms"),
        plain("duplicates", got["duplicates"]),
        plain("CPU taken by other programs", 100 * got["others"], " %"),
    ]}


def _backlog(lab, n, favoured=False):
    """
    favoured    Redis and the PING get the CPU when they want it, as if Redis had
                a machine of its own: what is measured is how long scripts run
    """
    lab.clean()
    with lab.topic() as topic:
        lab.run("load", how="direct", topic=topic, n=n, min=-60000, max=-1)
        lab.quiet()
        consumer = lab.begin("consume", topic=topic, n=n, limit=300)
        time.sleep(1)           # it is connected
        others = Others(lab)
        ping = lab.begin("ping", every=3)
        with lab.favour(ping.pid, lab.redis.process.pid, wanted=favoured) as favoured, \
                lab.daemon(topic=topic) as daemon:
            drained = wait_drained(lab) - daemon.started
            pings = lab.end(ping)
            seen = lab.end(consumer)
            first = seen["first_us"] / 1e6 - daemon.started
            share = others.share()
        check_all(seen, n)
    return {"first_s": first, "drained_s": drained, "ping": pings, "favoured": favoured,
            "duplicates": seen["duplicates"], "others": share}


# -- schedule

def schedule(lab, quick):
    """FCALL lapse_schedule against ZADD and HSET of the same bytes."""
    n, rounds = (50000, 3) if quick else (200000, 5)
    rounds = [_schedule_round(lab, n) for _ in range(rounds)]
    counted = quiet_ones(rounds)
    ratio = statistics.median(r["ratio"] for r in counted)
    middle = min(counted, key=lambda r: abs(r["ratio"] - ratio))
    ours, theirs = middle["schedule"], middle["plain"]
    return {"events": n, "rounds": rounds, "ratio": ratio, "rows": [
        plain("FCALL lapse_schedule, pipelined", ours["rate"], " events/s"),
        plain("ZADD and HSET, pipelined", theirs["rate"], " events/s"),
        at_least(f"ratio, median of {len(counted)} rounds", ratio, 0.7),
        plain("CPU of Redis, FCALL", ours["redis_cpu_us"], " us/event"),
        plain("CPU of Redis, ZADD and HSET", theirs["redis_cpu_us"], " us/event"),
        plain("CPU taken by other programs", 100 * middle["others"], " %"),
    ]}


def _schedule_round(lab, n):
    lab.quiet()
    others, took = Others(lab), {}
    for how in ("plain", "schedule"):
        lab.clean()
        used = Used(redis=lab.redis.process.pid)
        got = lab.run("load", how=how, n=n, min=HOUR, max=2 * HOUR)
        took[how] = {"rate": rate(got), **used.per_event(n)}
    return {**took, "ratio": took["schedule"]["rate"] / took["plain"]["rate"],
            "others": others.share()}


# -- memory, growth

def memory(lab, quick):
    """What pending events cost, in Redis and in the daemon."""
    few, many = 10000, 1000000 if quick else 10000000
    kafka_alone(lab, 100000)        # warm
    small, large = _pending(lab, few), _pending(lab, many)
    full = _kafka_down(lab)
    growth = {who: large[f"{who}_cpu_us"] / small[f"{who}_cpu_us"] for who in ("lapsed", "redis")}
    rows = [
        at_most(f"Redis, per pending event of {many:,}", large["bytes_per_event"], 360, " B"),
        plain("the same with a Kafka key of 16 bytes", large["bytes_with_key"], " B"),
        at_most(f"lapsed, {many:,} pending", large["rss_kb"] / 1024, 32, " MB"),
        at_most("lapsed, Kafka down and the window full", full["rss_kb"] / 1024, 96, " MB"),
    ]
    for who, name in (("lapsed", "lapsed"), ("redis", "Redis")):
        rows += [plain(f"CPU per event, {name}, {n:,} pending", r[f"{who}_cpu_us"], " us")
                 for n, r in ((few, small), (many, large))]
        rows.append(at_most("growth of it", growth[who], 1.5, " x"))
    return {"few": small, "many": large, "kafka_down": full, "growth": growth, "rows": rows}


def _bytes_per_event(lab, n, **how):
    lab.clean()
    before = lab.db.info("memory")["used_memory"]
    lab.run("load", how="direct", n=n, letter="p", min=HOUR, max=24 * HOUR, **how)
    return (lab.db.info("memory")["used_memory"] - before) / n


def _pending(lab, n):
    """Drains a backlog while `n` events are pending that are not due."""
    with_key = _bytes_per_event(lab, n)
    without = _bytes_per_event(lab, n, key=0)
    return {"pending": n, "bytes_per_event": without, "bytes_with_key": with_key,
            **drain(lab, 200000, pending=n)}


def _kafka_down(lab):
    """The window fills up while the broker hangs."""
    n = 50000
    lab.clean()
    with lab.topic() as topic:
        lab.run("load", how="direct", topic=topic, n=n, min=-1000, max=-1)
        with lab.daemon(topic=topic) as daemon:
            until(lambda: lab.pending() < n, "the first claim", limit=30, pause=0.001)
            lab.broker.pause()
            try:
                until(lambda: daemon.events("window.full"), "the window to be full", 30)
                time.sleep(3)
                rss = memory_kb(daemon.pid, "VmHWM")
            finally:
                lab.broker.resume()
            wait_drained(lab)
    return {"rss_kb": rss}


# -- idle

def idle(lab, quick):
    """What daemons cost that have nothing to do."""
    seconds = 10 if quick else 20
    result = {"rows": []}
    for n in (1, 3):
        lab.clean()
        lab.run("load", how="direct", n=100000, min=HOUR, max=2 * HOUR)
        result[str(n)] = figures = _idle(lab, n, seconds)
        who = "one daemon" if n == 1 else f"each of {n} daemons"
        result["rows"] += [
            at_most(f"CPU of {who}", figures["cpu_percent"], 0.2, " %"),
            plain(f"Redis commands of {who}", figures["commands_per_s"], " /s"),
        ]
    return result


def _idle(lab, n, seconds):
    with lab.topic() as topic:
        daemons = [lab.daemon(topic=topic, stats_interval="10s") for _ in range(n)]
        for daemon in daemons:
            daemon.start()
        for daemon in daemons:
            daemon.ready()
        time.sleep(3)       # the start is over
        commands, cpu = lab.commands(), [d.cpu_s() for d in daemons]
        time.sleep(seconds)
        cpu = [d.cpu_s() - c for d, c in zip(daemons, cpu)]
        now = lab.commands()
        for daemon in daemons:
            daemon.stop()
    new = {name: calls - commands.get(name, 0) for name, calls in now.items()}
    new["info"] = new.get("info", 0) - 1        # our own
    # What a script calls is counted too, and costs no round trip.
    asked = sum(new.get(name, 0) for name in ("evalsha", "ping", "psubscribe", "set", "get"))
    return {"cpu_percent": 100 * max(cpu) / seconds, "commands_per_s": asked / n / seconds,
            "cpu_percent_in_all": 100 * sum(cpu) / seconds,
            "commands": {k: v for k, v in new.items() if v}}


# -- cost

def cost(lab, quick):
    """What looking around costs: three daemons at rest, and passes that find nothing."""
    lab.clean()
    n = 200_000 if quick else 1_000_000
    lab.run("load", how="direct", n=n, min=HOUR, max=2 * HOUR)
    rest = _idle(lab, 3, 10 if quick else 20)
    sweep = _sweep(lab)
    late = [_adoption(lab, ADOPTED) for _ in range(3)]
    return {"rest": rest, "sweep": sweep, "adoption_ms": late, "rows": [
        at_most("CPU of three daemons at rest, together", rest["cpu_percent_in_all"], 0.5, " %"),
        at_most("Redis commands of all three", 3 * rest["commands_per_s"], 30, " /s"),
        at_most(f"scripts an interval of 1 s, {n} entries, none due, in Redis",
                sweep["ms_per_interval"], 10, " ms"),
        at_most(f"from the end of a lease to its first batch adopted, {ADOPTED} entries open",
                max(late), 1000, " ms"),
    ]}


def _adoption(lab, n):
    """From the end of a dead instance's lease until another has taken its first batch, ms."""
    lab.clean()
    with lab.topic() as topic:
        dead, heir = (lab.daemon(topic=topic, max_inflight=2 * n) for _ in range(2))
        dead.start()
        dead.ready()
        lab.broker.pause()
        lab.run("load", how="bulk", topic=topic, n=n)
        until(lambda: lab.pending() == 0, "all to be claimed", limit=60)
        heir.start()
        until(lambda: heir.events("slot.joined"), "a slot", limit=30)
        dead.kill()
        ends = lab.lease_end(dead.events("slot.joined")[-1]["slot"])
        until(lambda: heir.events("batch.adopted"), "the adoption", limit=60)
        lab.broker.resume()
        wait_drained(lab)
        heir.stop()
    return time_of(heir.events("batch.adopted")[0]) - ends


def time_of(line):
    """Of a line of the log, ms since the epoch."""
    return datetime.datetime.fromisoformat(line["ts"].replace("Z", "+00:00")).timestamp() * 1000


def _sweep(lab, seconds=15):
    """All scripts of that time, renewals and the canary too, for each interval."""
    with lab.topic() as topic:
        daemon = lab.daemon(topic=topic, stats_interval="1s", sweep_interval="1s")
        daemon.start()
        daemon.ready()
        time.sleep(3)       # the start is over
        lab.db.config_resetstat()
        time.sleep(seconds)
        spent = lab.db.info("commandstats")["cmdstat_evalsha"]["usec"]
        daemon.stop()
    return {"ms_per_interval": spent / 1000 / seconds}


# -- jobs

def jobs(lab, quick):
    """Jobs with a time to run: in bulk, through their whole life, and waiting."""
    n, rounds = (20000, 3) if quick else (100000, 5)
    bulk = [_bulk_round(lab, n) for _ in range(rounds)]
    ratio = statistics.median(r["ratio"] for r in quiet_ones(bulk))
    middle = min(bulk, key=lambda r: abs(r["ratio"] - ratio))
    life, waiting, whole = _life(lab, n), _waiting(lab, n), _whole(lab, n)
    where = "Redis first on the CPU" if life["favoured"] else "Redis shares the CPU"
    return {"jobs": n, "bulk": bulk, "life": life, "waiting": waiting, "whole": whole, "rows": [
        plain("scheduled in bulk, plain events", middle["bulk"], " events/s"),
        plain("ZADD and HSET of the same bytes, pipelined", middle["plain"], " events/s"),
        at_least(f"ratio, median of {rounds} rounds", ratio, 0.7),
        plain("CPU of Redis, in bulk", middle["bulk_cpu_us"], " us/event"),
        plain("CPU of Redis, ZADD and HSET", middle["plain_cpu_us"], " us/event"),
        plain("scheduled in bulk, jobs", middle["jobs"], " jobs/s"),
        plain(f"{n:,} due in one millisecond: due to last finish", life["seconds"], " s"),
        plain("of these delivered and finished", n / life["seconds"], " jobs/s"),
        plain("delivered twice", life["duplicates"]),
        at_most(f"Redis PING, p99; {where}", life["ping"]["ping_p99_ms"], 5, " ms"),
        plain("whole lives (schedule, deliver, finish)", whole["rate"], " jobs/s"),
        plain("the limit of their scripts", whole["limit"], " jobs/s"),
        plain("ratio of these", whole["rate"] / whole["limit"]),
        plain("Redis, per waiting job", waiting["bytes_per_job"], " B"),
    ]}


def _bulk_round(lab, n):
    lab.quiet()
    others, took = Others(lab), {}
    for name, how in (("plain", {"how": "plain"}), ("bulk", {"how": "bulk"}),
                      ("jobs", {"how": "bulk", "ttr": HOUR})):
        lab.clean()
        used = Used(redis=lab.redis.process.pid)
        took[name] = rate(lab.run("load", n=n, min=HOUR, max=2 * HOUR, key=0, **how))
        took[f"{name}_cpu_us"] = used.per_event(n)["redis_cpu_us"]
    return {**took, "ratio": took["bulk"] / took["plain"], "others": others.share()}


def _life(lab, n):
    """All due in the same millisecond; a consumer finishes each."""
    lab.clean()
    lab.quiet()
    with lab.topic() as topic, lab.daemon(topic=topic) as daemon:
        daemon.ready()
        consumer = lab.begin("consume", topic=topic, n=n, limit=300, redis=lab.redis.socket)
        due = int(time.time() * 1000) + 5000 + n // 20
        lab.run("load", how="bulk", topic=topic, n=n, at=due, ttr=HOUR)
        if time.time() * 1000 > due:
            raise Failed(f"{n} jobs took longer to schedule than until they were due")
        ping = lab.begin("ping", every=3)
        with lab.favour(ping.pid, lab.redis.process.pid) as favoured:
            seen = lab.end(consumer)
            pings = lab.end(ping)
        wait_drained(lab)
        until(lambda: lab.waiting() == 0, "the last job to be gone", limit=30)
    check_all(seen, n)
    return {"seconds": seen["last_us"] / 1e6 - due / 1e3, "duplicates": seen["duplicates"],
            "ping": pings, "favoured": favoured}


def _whole(lab, n):
    """
    Scheduled in bulk, due at once, delivered and finished, all at the same time;
    and how many there could be if Redis did nothing but run these scripts.
    """
    lab.clean()
    lab.quiet()
    with lab.topic() as topic, lab.daemon(topic=topic) as daemon:
        daemon.ready()
        consumer = lab.begin("consume", topic=topic, n=n, limit=300, redis=lab.redis.socket)
        time.sleep(1)           # it is connected
        lab.db.config_resetstat()
        start = time.time()
        lab.run("load", how="bulk", topic=topic, n=n, ttr=HOUR)
        seen = lab.end(consumer)
        wait_drained(lab)
        stats = lab.db.info("commandstats")
        until(lambda: lab.waiting() == 0, "the last job to be gone", limit=30)
    check_all(seen, n)
    spent = sum(stats[f"cmdstat_{name}"]["usec"] for name in ("fcall", "evalsha")) / 1e6
    return {"rate": n / (seen["last_us"] / 1e6 - start), "limit": n / spent}


def _waiting(lab, n):
    """Delivered, and nobody has finished them yet."""
    lab.clean()
    with lab.topic() as topic, lab.daemon(topic=topic) as daemon:
        daemon.ready()
        before = lab.db.info("memory")["used_memory"]
        lab.run("load", how="bulk", topic=topic, n=n, min=1000, max=1000, ttr=HOUR)
        until(lambda: lab.waiting() == n and lab.open_batches() == 0, "all to wait", limit=120)
        return {"bytes_per_job": (lab.db.info("memory")["used_memory"] - before) / n}


ALL = {f.__name__: f for f in (lateness, sustained, backlog, schedule, memory, idle,
                               cost, jobs)}
