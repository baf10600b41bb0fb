# SPDX-License-Identifier: BSD-2-Clause
"""Limits of waiting, longer where the programs are slower (sanitizers)."""

import os

from harness.wait import until as wait_until

SCALE = float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)


def scaled(seconds):
    return seconds * SCALE


def until(condition, what="the condition", limit=15.0, pause=0.005):
    return wait_until(condition, what, scaled(limit), pause)
