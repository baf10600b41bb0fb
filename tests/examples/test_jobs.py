# SPDX-License-Identifier: BSD-2-Clause
"""The same jobs in four languages: scheduled, received, failed, touched, finished."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lapsed import BUILD

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# language -> the commands that make it ready, in a copy of its folder; how it is run
PROGRAMS = {
    "python": ([], ["/usr/bin/python3", "jobs.py"]),
    "node": ([["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]],
             ["node", "jobs.js"]),
    "java": ([["mvn", "-q", "-B", "compile"]],
             ["mvn", "-q", "-B", "exec:java", "-Dexec.mainClass=Jobs", "-Dexec.args={topic}"]),
    "go": ([["go", "build", "-o", "jobs", "."]], ["./jobs"]),
}
SAID = [
    "failed mail-2, attempt 1: letter 2",
    "finished mail-1, attempt 1: letter 1",
    "finished mail-2, attempt 2: letter 2",
    "finished mail-3, attempt 1: letter 3",
    "scheduled mail-1", "scheduled mail-2", "scheduled mail-3",
]


def run(command, folder, **env):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True,
                          text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("language", PROGRAMS)
def test_jobs(world, tmp_path, language):
    ready, start = PROGRAMS[language]
    folder = tmp_path / language
    shutil.copytree(EXAMPLES / language, folder)
    for command in ready:
        run(command, folder)
    world.lapsed()
    url = f"redis://127.0.0.1:{world.redis.port}"
    run([str(BUILD / "lapse"), "install"], folder, LAPSED_REDIS_URL=url)
    start = [word.format(topic=world.topic) for word in start]
    if language != "java":
        start.append(world.topic)
    said = run(start, folder, LAPSED_REDIS_URL=url,
               LAPSED_KAFKA_BOOTSTRAP_SERVERS=world.kafka.bootstrap)
    said = re.sub(r"\x1b\[\d*m", "", said)      # Maven's, with nothing in between
    assert sorted(said.split("\n"))[1:] == SAID
    world.drained()
