#!/usr/bin/python3
"""What a fleet costs: so many relays publish the calls of one flood to one nats-server, and perfctl fleet reads all of them.

    sudo PERFD_BUILD=build tests/bench/fleet.py [--hosts 200] [--rate 1000] [--seconds 10] [--repetitions 3]

Each relay is a process with the name of a host of its own and a subscription of its own, so each publishes every call of the flood; all
run on this machine, beside nats-server and perfd. A row for each repetition: what was published and consumed, the CPU of each part while
the flood runs and until all is stored, its memory (PSS of the relays, RSS of the others), and the medians behind them. It fails if one sum
does not close. Needs root, tracefs and nats-server.
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
sys.path[:0] = [os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import perfd
from fleet_hosts import Hosts
from nats import Server
from perfd import Daemon, Workload, add, check, equal, pb
from test_perfctl import GETPPID
from test_promises import CPUS

PERFCTL = f"{perfd.BUILD}/client/perfctl/perfctl"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """Seconds, of all its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(pid, key="Rss"):
    """MB"""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key + ":")) / 1024


class Parts:
    """CPU seconds of each part since then."""

    def __init__(self, daemon, server, hosts):
        self.pids = {"perfd": [daemon.pid], "nats-server": [server.process.pid], "relays": [p.pid for p in hosts.processes.values()]}
        self.before = self.now()

    def now(self):
        return {part: sum(map(cpu_of, pids)) for part, pids in self.pids.items()}

    def spent(self):
        return {part: seconds - self.before[part] for part, seconds in self.now().items()}


def consume(server, *words):
    """The lines, seconds of CPU, of the clock, and the most memory in MB, to some ms before its end."""
    most = 0
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        pid = subprocess.Popen([PERFCTL, "--json", "fleet", "--nats", server.url, *words], stdout=out).pid
        while not (ended := os.wait4(pid, os.WNOHANG))[0]:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/status", encoding="ascii") as f:
                most = next((int(line.split()[1]) for line in f if line.startswith("VmHWM:")), most)
            time.sleep(0.005)
        took = time.monotonic() - began
        check(os.waitstatus_to_exitcode(ended[1]) in (0, 4), f"perfctl fleet ends with {ended[1]}")  # 4: something was lost
        out.seek(0)
        return [json.loads(line) for line in out], ended[2].ru_utime + ended[2].ru_stime, took, most / 1024


def run(options):
    with Daemon() as daemon, daemon.client() as control, Server() as server, \
            Workload("flood", options.seconds, options.rate, cpus=CPUS[:1]) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Hosts(daemon, server, options.hosts) as hosts:
            parts = Parts(daemon, server, hosts)
            load.go()
            load.done(seconds=options.seconds + perfd.PATIENCE)
            time.sleep(1)  # belongs to what is measured, as the divisor below says: the last batches come in it
            spent = parts.spent()
            relays = sum(memory_of(pid, "Pss") for pid in parts.pids["relays"]) / options.hosts
            memory = {"perfd": memory_of(daemon.pid), "nats-server": memory_of(server.process.pid), "relay": relays}
            hosts.stop()
            rows, cpu, took, most = consume(server, "ledger")
            n = sum(load.counts)
            equal(sorted((r["host"], r["state"], r["matched"]) for r in rows), [(name, "ended", n) for name in hosts.names], "the streams")
            for row in rows:
                check(row["matched"] == row["consumed"] + sum(row["lost"].values()), f"a sum that does not close: {row}")
            consumed = sum(r["consumed"] for r in rows)
            return {
                "items": consumed, "lost": sum(sum(r["lost"].values()) for r in rows), "messages": sum(r["messages"] for r in rows),
                "MB": sum(r["bytes"] for r in rows) / 1e6,
                **{f"{part}, % of a CPU": 100 * seconds / (options.seconds + 1) for part, seconds in spent.items()},
                **{f"{part}, ns an item": 1e9 * seconds / consumed for part, seconds in spent.items()},
                **{f"{part}, MB": mb for part, mb in memory.items()},
                "perfctl fleet ledger, s": took, "its CPU, ns an item": 1e9 * cpu / consumed, "items a second of it": consumed / took,
                "its memory at most, MB": most,
            }


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--hosts", type=int, default=200)
    p.add_argument("--rate", type=int, default=1000, help="calls a second, which each host publishes")
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--repetitions", type=int, default=3)
    options = p.parse_args()
    perfd.need_root()
    runs = []
    for i in range(options.repetitions):
        runs.append(run(options))
        print(json.dumps(runs[-1]), flush=True)
    print("| figure | median |\n| --- | --- |")
    for key in runs[0]:
        print(f"| {key} | {statistics.median(r[key] for r in runs):,.1f} |")


if __name__ == "__main__":
    main()
