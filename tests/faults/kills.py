#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 all over, under load: kills.py [--kills N] [--seed N]

Two or three instances are killed at failure points and at random moments, and
started again at once.  Every hundred kills all must have arrived, and what came
twice must be explained.  LAPSED_BUILD is a build with failure points.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "system")]

from load import Load  # noqa: E402
from place import Place, ProxiedBroker  # noqa: E402

ROUND = 100
POINTS = [f"{script}.{when}" for script in ("join", "renew", "claim", "adopt", "settle")
          for when in ("ask", "sent", "answer", "done")]
POINTS += ["produce.ask", "produce.taken", "report"]


class Round:
    def __init__(self, place, chance, kills):
        self.place = place
        self.chance = chance
        self.wanted = kills
        self.kills = Counter()      # by where
        self.doomed = {}            # instance -> when it dies at the latest

    def arm(self, instance):
        """Most of them die at a failure point, if they get there in time."""
        point = self.chance.choice(POINTS)
        n = self.chance.choice((1, 1, 2, 3, 5, 10))
        if point.startswith(("produce", "report")):
            n *= self.chance.choice((1, 5, 20))
        patience = 0.03, 0.8
        if self.chance.random() < 0.7:
            instance.failpoint = f"{point}:{n}:kill"
            patience = 0.5, 3.0
        instance.point = point
        self.doomed[instance] = time.monotonic() + self.chance.uniform(*patience)
        instance.start(joined=False)

    def bury(self, instance, where):
        instance._killed = True
        instance.ended()
        self.kills[where] += 1

    def step(self):
        dead = [i for i in self.doomed if not i.alive()]
        for instance in dead:
            self.bury(instance, instance.point)
        late = [i for i in self.doomed if i.alive() and time.monotonic() > self.doomed[i]]
        if late and self.chance.random() < 0.1:
            late = [i for i in self.doomed if i.alive()]        # all at once
        for instance in late:
            instance.process.kill()
            self.bury(instance, "anywhere")
        for instance in dead + late:
            self.arm(instance)
        time.sleep(0.002)

    def run(self):
        instances = [self.place.instance() for _ in range(self.chance.choice((2, 3)))]
        with Load(self.place) as load:
            for instance in instances:
                self.arm(instance)
            while sum(self.kills.values()) < self.wanted:
                self.step()
            for instance in instances:
                if instance.alive():
                    instance.process.kill()
                self.bury(instance, "anywhere")
                instance.start(joined=False)
        ledger = self.place.judge(load, limit=60)
        surplus, reasons = self.place.explain(ledger)
        return len(load.stored), surplus, reasons


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    total, where, began = Counter(), Counter(), time.monotonic()
    with ProxiedBroker() as kafka:
        number = options.seed
        while sum(where.values()) < options.kills:
            chance = random.Random(number)
            with tempfile.TemporaryDirectory(prefix="lapsed-kills-") as folder:
                with Place(kafka, Path(folder)) as place:
                    one = Round(place, chance, min(ROUND, options.kills))
                    events, surplus, reasons = one.run()
            where += one.kills
            total.update({"rounds": 1, "events": events, "lost": 0, "came again": surplus,
                          **{f"reasons: {k}": v for k, v in reasons.items()}})
            print(json.dumps({"seed": number, "kills": sum(where.values()), **total,
                              "seconds": round(time.monotonic() - began)}), flush=True)
            number += 1
    print(json.dumps(dict(where.most_common())))


if __name__ == "__main__":
    main()
