# SPDX-License-Identifier: BSD-2-Clause
"""The programs of examples/, against real parts."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "system")]

from kafka.broker import shared  # noqa: E402
from world import World  # noqa: E402


@pytest.fixture(scope="session")
def kafka():
    with shared() as cluster:
        yield cluster


@pytest.fixture
def world(kafka, tmp_path):
    """Its Redis listens on a port: not every client can do without."""
    with World(kafka, tmp_path) as w:
        w.use_redis(tcp=True)
        yield w
