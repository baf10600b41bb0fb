# SPDX-License-Identifier: BSD-2-Clause
"""Every fault on real parts; one Place for each test, one broker for all."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1]),
                str(Path(__file__).resolve().parents[1] / "system")]

from place import Place, ProxiedBroker  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="each cell three times")


def pytest_generate_tests(metafunc):
    if metafunc.config.getoption("--full"):
        metafunc.fixturenames.append("again")
        metafunc.parametrize("again", range(3))


@pytest.fixture(scope="session")
def own_kafka():
    with ProxiedBroker() as broker:
        yield broker


@pytest.fixture
def broker(own_kafka):
    """It runs now, and whatever is done to it, runs afterwards."""
    own_kafka.start()
    yield own_kafka
    own_kafka.start()
    own_kafka.resume()


@pytest.fixture
def place(broker, tmp_path):
    with Place(broker, tmp_path) as p:
        yield p
