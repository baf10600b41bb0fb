# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for a condition, with a limit; nothing else waits in tests."""

import time


def until(condition, what="the condition", limit=10.0, pause=0.002):
    """The first true result of condition(); TimeoutError after `limit` s."""
    deadline = time.monotonic() + limit
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit} s for {what}")
        time.sleep(pause)
