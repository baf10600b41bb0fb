# SPDX-License-Identifier: BSD-2-Clause
"""Jobs with a time to run: schedule them, receive them from Kafka, end them.

usage: jobs.py TOPIC

Needs the libraries redis and confluent-kafka, and the functions that `lapse
install` has put into Redis.  LAPSED_REDIS_URL and
LAPSED_KAFKA_BOOTSTRAP_SERVERS name the two servers.
"""

import os
import sys

import redis
from confluent_kafka import Consumer

NAMESPACE = "lapse:{0}"
TOPIC = sys.argv[1]
store = redis.Redis.from_url(os.environ.get("LAPSED_REDIS_URL", "redis://localhost:6379"))


def schedule(name, payload):
    """Due in half a second; ten seconds to run, five attempts, growing pauses between."""
    store.fcall("lapse_schedule", 1, NAMESPACE, name, "+500", TOPIC, "", payload,
                "ttr", 10000, "attempts", 5, "backoff", "100:2:2000")
    print("scheduled", name, flush=True)


def work(name, attempt, headers):
    """One job; what it says to lapsed names the event by the ce_id it came with."""
    event = headers["ce_lapseshard"], headers["ce_id"]
    if name == "mail-2" and attempt == 1:
        store.fcall("lapse_fail", 1, *event, "mailbox full")
        return "failed"
    if name == "mail-3":
        store.fcall("lapse_touch", 1, *event, "+20000")     # this one takes longer
    store.fcall("lapse_finish", 1, *event)
    return "finished"


def main():
    consumer = Consumer({
        "bootstrap.servers": os.environ.get("LAPSED_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092"),
        "group.id": "mailer", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    for n in (1, 2, 3):
        schedule(f"mail-{n}", f"letter {n}")
    seen, finished = set(), 0
    while finished < 3:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        headers = dict(message.headers())
        if headers["ce_id"] in seen:        # sent twice; it is the same attempt
            continue
        seen.add(headers["ce_id"])
        name, attempt = headers["ce_subject"].decode(), int(headers["ce_lapseattempt"])
        result = work(name, attempt, headers)
        finished += result == "finished"
        print(f"{result} {name}, attempt {attempt}: {message.value().decode()}", flush=True)
    consumer.close()


main()
