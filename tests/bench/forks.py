#!/usr/bin/python3
"""What a fork of any program on the host costs beside perfd, whose readers are told who comes and goes.

    sudo PERFD_BUILD=build tests/bench/forks.py [--json PATH] [--forks N]

A process forks children, one after the other, that exit at once; nothing of what is enabled ever happens (emulation-faults). Each
row is one state of perfd, all in turns, each beside a run without perfd: us/fork is the time of a fork with its exit and its
wait4(2), the least of all runs, because whatever else the host does makes it longer; x none is the ratio to the least of those
without perfd; CPU is what perfd spends for each fork, the median. What is to be there:

    idle          no event is enabled: perfd is told nothing, and spends nothing
    enabled       an event is, which nobody subscribes to and no child inherits: the same
    births        one that children of another process inherit is, too: the kernel writes side records, which the readers read
    inherited     the process that forks has that one, so that its children inherit it
    subscribed    somebody does: also of changed uids, by the connector of process events, whose messages each fork makes for all
                  who listen, though Linux keeps from perfd those that it did not ask for
    perf-record   perf record -a of the same event, for comparison, if it is installed
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "live"), os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import machine
import perfd
from perfd import pb

EVENT = "emulation-faults"
FORKS, REPETITIONS = 2000, 10
NO_CPU = 500  # ns of perfd for each fork where it is told nothing: what main and a look at an empty ring cost


class Nobody:
    """Without perfd; .pid of the one that is measured, or None."""

    name, pid = "none", None

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            self.start(self.stack)
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self, stack):
        pass


class Idle(Nobody):
    name, disabled = "idle", True

    def start(self, stack):
        self.daemon = stack.enter_context(perfd.Daemon(config="version: 1\n"))
        perfd.add(stack.enter_context(self.daemon.client()), {"event": EVENT, "disabled": self.disabled})
        self.pid = self.daemon.pid


class Enabled(Idle):
    name, disabled = "enabled", False


class Births(Enabled):
    name = "births"

    def start(self, stack):
        super().start(stack)
        self.add_own(stack, stack.enter_context(perfd.Family()).pid)

    def add_own(self, stack, pid):
        perfd.add(stack.enter_context(self.daemon.client()),
                  {"event": EVENT, "name": "own", "target": pb.Target(pids=[pid]), "disabled": True})


class Inherited(Births):
    name = "inherited"

    def start(self, stack):
        Enabled.start(self, stack)
        self.add_own(stack, os.getpid())


class Subscribed(Enabled):
    name = "subscribed"

    def start(self, stack):
        super().start(stack)
        client = stack.enter_context(self.daemon.client(stream=True))
        client.request(subscribe=pb.SubscribeRequest(events=[EVENT], order=pb.ORDER_TIME, payload=pb.PAYLOAD_FIELDS))


class PerfRecord(Nobody):
    name = "perf-record"

    def start(self, stack):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="perfd-forks."))
        process = stack.enter_context(subprocess.Popen(
            ["perf", "record", "-q", "-B", "-N", "-m", "4M", "-a", "-c", "1", "-e", EVENT, "-o", os.path.join(folder, "perf.data")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        stack.callback(process.kill)
        perfd.wait_until(lambda: machine.count_perf_events(process.pid) > 0, "perf record to trace")
        self.pid = process.pid


def measure(state, n):
    """(ns of a fork, ns of CPU that the state's process spends for it)."""
    with state() as beside, perfd.Workload("forks", n, cpus=perfd.online_cpus()[-1:]) as load:
        if beside.pid:
            machine.wait_quiet((beside.pid,))
        before = machine.process_time(beside.pid) if beside.pid else 0
        began = time.monotonic_ns()
        load.go()
        perfd.equal(load.done() or load.counts, [n], "forks")
        took = time.monotonic_ns() - began
        if beside.pid:
            machine.wait_quiet((beside.pid,))
        spent = machine.process_time(beside.pid) - before if beside.pid else 0
        load.exit()
    return took / n, spent / n


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="PATH", help="all numbers")
    parser.add_argument("--forks", type=int, default=FORKS, help=f"in each run ({FORKS})")
    a = parser.parse_args()
    perfd.need_root()
    states = [Idle, Enabled, Births, Inherited, Subscribed, *[PerfRecord] * (machine.missing("perf", 1) is None)]
    runs = {state.name: [] for state in states}
    for _ in range(REPETITIONS):
        for state in states:
            runs[state.name].append((*measure(Nobody, a.forks), *measure(state, a.forks)))
    rows = []
    print(f"{'beside':12} {'us/fork':>8} {'x none':>7} {'CPU us':>7}")
    for name, found in runs.items():
        least, without = min(run[2] for run in found), min(run[0] for of_state in runs.values() for run in of_state)
        row = {"beside": name, "ns": least, "ratio": least / without, "cpu_ns": statistics.median(run[3] for run in found)}
        print(f"{name:12} {row['ns'] / 1e3:8.1f} {row['ratio']:7.2f} {row['cpu_ns'] / 1e3:7.2f}")
        rows.append(row)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "forks", "forks": a.forks, "rows": rows, "runs": runs}, f, indent=1)
    missed = [row for row in rows if row["beside"] in ("idle", "enabled") and row["cpu_ns"] > NO_CPU]
    for row in missed:
        print(f"goal missed: {row['beside']}: {row['cpu_ns']:.0f} ns of CPU for each fork of which it is told nothing, above {NO_CPU}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
