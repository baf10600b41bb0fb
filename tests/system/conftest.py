# SPDX-License-Identifier: BSD-2-Clause
"""Real Redis, real Kafka, real lapsed processes; one World for each test."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kafka.broker import Broker, shared  # noqa: E402
from world import World  # noqa: E402


@pytest.fixture(scope="session")
def kafka():
    """The Kafka of all tests that do it no harm."""
    with shared() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def own_broker(kafka):
    """One that may be stopped; the same one where that is ours."""
    if isinstance(kafka, Broker):
        yield kafka
    else:
        with Broker() as broker:
            yield broker


@pytest.fixture
def broker(own_broker):
    """A broker that runs now, and whatever is done to it, runs afterwards."""
    own_broker.start()
    yield own_broker
    own_broker.start()
    own_broker.resume()


@pytest.fixture
def world(kafka, tmp_path):
    with World(kafka, tmp_path) as w:
        yield w


@pytest.fixture
def broker_world(broker, tmp_path):
    """A world whose Kafka the test may stop."""
    with World(broker, tmp_path) as w:
        yield w
