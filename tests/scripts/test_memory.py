# SPDX-License-Identifier: BSD-2-Clause
"""What a pending event costs, in memory and in time of Redis."""

TOPIC = "orders"
PAYLOAD = b"x" * 128


def fill(shard, numbers):
    pipeline = shard.client.pipeline(transaction=False)
    for n in numbers:
        args = ("order-%010d" % n, "+%d" % (60000 + n), TOPIC, "", PAYLOAD)
        pipeline.execute_command(*shard.scripts.command("schedule", [shard.prefix], args))
        if n % 1000 == 999:
            pipeline.execute()
    pipeline.execute()


def test_memory_of_a_pending_event(daemon_shard, figure):
    """With hash tables just filled; at 100,000 they have room for 31,072 more."""
    shard = daemon_shard
    before = shard.client.info("memory")["used_memory"]
    done = 0
    for entries in (100000, 131072):
        fill(shard, range(done, entries))
        done = entries
        used = (shard.client.info("memory")["used_memory"] - before) / entries
        figure(f"memory per pending event, 128 B of payload, {entries} of them: {used:.0f} B")
    assert len(shard.due()) == done
    assert used <= 360
