# SPDX-License-Identifier: BSD-2-Clause
"""What has arrived in Kafka, held against what was to arrive."""

import datetime
import uuid
from collections import Counter

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from limits import until


class Record:
    """One record; `time` is when the broker appended it, ms."""

    def __init__(self, message):
        self.topic = message.topic()
        self.partition = message.partition()
        self.offset = message.offset()
        self.time = message.timestamp()[1]
        self.key = message.key()
        self.value = message.value()
        self.header_list = message.headers() or []
        self.headers = dict(self.header_list)

    @property
    def id(self):
        return self.headers["ce_id"]

    @property
    def subject(self):
        return self.headers["ce_subject"].decode()

    @property
    def due(self):
        """ce_time, ms."""
        text = self.headers["ce_time"].decode().replace("Z", "+00:00")
        when = datetime.datetime.fromisoformat(text)
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return round((when - epoch) / datetime.timedelta(milliseconds=1))


class Ledger:
    """Reads topics, from their beginning, into `records`."""

    def __init__(self, bootstrap):
        self.records = []
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap,
            "group.id": f"ledger-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            "error_cb": lambda error: None,
        })
        self._partitions = []

    def add(self, topic):
        found = self._consumer.list_topics(topic, timeout=30).topics[topic]
        new = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in found.partitions]
        self._partitions += new
        self._consumer.incremental_assign(new)

    def close(self):
        self._consumer.close()

    def read(self):
        """What has come since; waits a moment for it."""
        for message in self._consumer.consume(10000, timeout=0.02):
            if message.error() is None:
                self.records.append(Record(message))
        return self.records

    def wait(self, count, limit=20):
        """Once there are so many records of different id."""
        def enough():
            self.read()
            return len(self.ids()) >= count
        try:
            until(enough, f"{count} events in Kafka", limit, pause=0)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; there are {len(self.ids())}") from None
        return self.records

    def wait_for(self, ids, limit=20):
        """Once all of `ids` are there."""
        missing = set(ids)

        def complete():
            self.read()
            missing.difference_update(self.ids())
            return not missing
        try:
            until(complete, "all events in Kafka", limit, pause=0)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; {len(missing)} are missing, such as "
                               f"{sorted(missing)[:5]}") from None
        return self.records

    def finish(self, limit=20):
        """Reads all that the broker has at this moment."""
        ends = {}
        for p in self._partitions:
            until(lambda p=p: self._end(p, ends), f"the end of {p.topic}", limit)
        until(lambda: self.read() is not None and self._read_to(ends), "the ends", limit,
              pause=0)
        return self.records

    def _end(self, p, ends):
        try:
            ends[p.topic, p.partition] = self._consumer.get_watermark_offsets(p, timeout=5)[1]
        except KafkaException:
            return False
        return True

    def _read_to(self, ends):
        read = Counter()
        for r in self.records:
            place = r.topic, r.partition
            read[place] = max(read[place], r.offset + 1)
        return all(read[place] >= end for place, end in ends.items())

    # -- the comparison

    def ids(self):
        return Counter(r.id for r in self.records)

    def by_id(self, ce_id):
        """The one record of this id."""
        found = [r for r in self.records if r.id == ce_id]
        assert len(found) == 1, f"{len(found)} records of {ce_id}"
        return found[0]

    def early(self):
        return [r for r in self.records if r.time < r.due]

    def duplicates(self):
        return {ce_id: n for ce_id, n in self.ids().items() if n > 1}

    def check(self, ids, duplicates=False, maybe=()):
        """
        Nothing lost, nothing early, nothing else, and nothing twice unless
        `duplicates` are allowed: those carry the same id.  `maybe`: subjects of
        what may have come besides.
        """
        seen, wanted = set(self.ids()), set(ids)
        lost = wanted - seen
        surplus = {r.id for r in self.records if r.subject not in maybe} - wanted
        assert not lost, f"{len(lost)} lost: {sorted(lost)[:5]}"
        assert not surplus, f"{len(surplus)} surplus: {sorted(surplus)[:5]}"
        assert not self.early(), f"{len(self.early())} came early"
        contents = {(r.id, r.key, r.value, r.due) for r in self.records}
        assert len(contents) == len(seen), "one id with two contents"
        if not duplicates:
            assert not self.duplicates(), f"came twice: {self.duplicates()}"
