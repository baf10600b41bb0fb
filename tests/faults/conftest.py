# SPDX-License-Identifier: BSD-2-Clause
"""Every fault on real parts; one Place for each test, one broker for all."""

import json
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1]),
                str(Path(__file__).resolve().parents[1] / "system")]

from lapsed import BUILD  # noqa: E402
from place import Place, ProxiedBroker  # noqa: E402

CELLS = {}      # of the summary: test -> its figures


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true",
                     help="each cell three times, those too that take long")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: only with --full, or when it is named by -k")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--full") or config.getoption("keyword"):
        return
    left_out = [i for i in items if i.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [i for i in items if i not in left_out]


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
def place(broker, tmp_path, request):
    with Place(broker, tmp_path) as p:
        yield p
    add_up(request.node, p.figures)


def add_up(node, figures):
    """All cells of one test are one line."""
    name = f"{node.path.stem[5:]}.{node.originalname[5:]}"
    line = CELLS.setdefault(name, {"cells": 0})
    line["cells"] += 1
    for what, n in figures.items():
        line[what] = max(line.get(what, 0), n) if what == "latest" else line.get(what, 0) + n


def pytest_terminal_summary(terminalreporter):
    """
    What came of it: `twice` is explained by what was adopted, was perhaps
    delivered (`maybe`), was claimed before Redis forgot it (`gone`), or had
    been settled before.  Milliseconds from being due to being in Kafka.
    """
    if not CELLS:
        return
    (BUILD / "faults.json").write_text(json.dumps(CELLS, indent=1))
    heads = [k for k in next(iter(CELLS.values()))]
    lines = [["", *heads]] + [[n, *(str(c[h]) for h in heads)] for n, c in CELLS.items()]
    for name, *rest in lines:
        terminalreporter.write_line(f"{name:36}" + "".join(f"{x:>11}" for x in rest))
