#!/usr/bin/python3
"""The model of the ledger (tests/integration/model.py) on a machine whose second CPU goes and comes back between the loads: what
is changed meanwhile, and what was there before, has to be as known as ever.

usage: test_model.py [--steps N] [--seed N] [--trace]
"""
import argparse
import collections
import os
import random
import sys
import time

import model
import perfd
from perfd import check
from serials import CPUS
from test_hotplug import CPU, switch

STEPS, SEQUENCE, SECONDS = 60, 10, 70  # no sequence begins when the time is over: an emulated machine on a busy host is slow
TOGGLES = 0.25  # of the changes between loads


class Load:
    """What the load is told, but for a CPU that is away: its process would call on another one."""

    def __init__(self, load, of):
        self.load, self.of, self.pids, self.hear = load, of, load.pids, load.hear

    def say(self, words):
        words = words.split()  # go FORKS PACE FIRST COUNT...
        if words[0] == "go" and not self.of.is_online:
            words[4 + 2 * CPUS.index(CPU)] = "0"
            self.of.run[CPU] = []
        self.load.say(" ".join(words))


class HotplugModel(model.Model):
    def __init__(self, daemon, client, load, *more):
        super().__init__(daemon, client, load, *more)
        self.load, self.is_online, self.n_said = Load(load, self), True, collections.Counter()

    def toggle(self):
        self.is_online = not self.is_online
        word = "came online" if self.is_online else "went offline"
        self.n_said[word] += 1
        switch(self.is_online)
        perfd.wait_until(lambda: self.daemon.stderr().count(f"CPU {CPU} {word}") == self.n_said[word], f"CPU {CPU} {word}")
        if self.is_online:  # the kernel may have let it run elsewhere
            os.sched_setaffinity(self.pids[CPU], [CPU])
        self.found[f"CPU {word}"] += 1
        return f"CPU {CPU} {word}"

    def cpus_of_events(self):
        """An event that could be on no CPU now is refused."""
        return [cpus for cpus in super().cpus_of_events() if self.is_online or cpus != [CPU]]

    def change(self):
        """Never beside a load, whose process would go on elsewhere."""
        return self.toggle() if not self.run and self.rng.random() < TOGGLES else super().change()

    def abort(self):
        switch(True)
        super().abort()


def configuration(rng, plain=model.configuration):
    """As perfd.EMULATED: the CPUs of such a machine stand still for long."""
    return plain(rng).replace("readers: {", "readers: { guard: 100ms,")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--trace", action="store_true", help="print what is done")
    args = parser.parse_args()
    perfd.need_root()
    model.Model, model.configuration, model.SLOW = HotplugModel, configuration, True
    found, begin, done, seed = collections.Counter(), time.monotonic(), 0, args.seed
    try:
        while done < args.steps and time.monotonic() < begin + SECONDS:
            print(f"seed {seed}, {SEQUENCE} steps", flush=True)
            model.run_sequence(seed, SEQUENCE, found, args.trace)
            done, seed = done + SEQUENCE, seed + 1
    finally:
        switch(True)
    print(f"{done} steps in {time.monotonic() - begin:.0f} s: " + ", ".join(f"{what} {n}" for what, n in sorted(found.items())))
    check(found["CPU went offline"] > 0 and found["CPU came online"] > 0, "the CPU never went and came")
    return 0


if __name__ == "__main__":
    sys.exit(main())
