#!/usr/bin/python3
"""What compression saves and costs: the same streams by a relay, through TLS on loopback, with and without.

    sudo PERFD_BUILD=build tests/bench/compression.py [--json PATH] [--seconds N] [--repetitions N] [--levels 1,3,6,9]

For each event all states in turns. A subscriber by libperfd reads every field of each sample. bytes is what the relay gives to TLS for
each sample; relay and client are CPU in ns for each, of all their threads. Figures are medians; ratios are those to the stream without
compression of the same repetition. Samples that were lost are said: the rest of the row is then of those that came.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "live"), os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import machine
import measure
import perfd
from perfd import pb
from relay import Relay

RATE = 300_000  # calls a second


class Calls:
    """Of one system call, at a rate."""

    name = event = "raw_syscalls:sys_enter"

    def __init__(self, seconds):
        self.load = perfd.Workload("flood", seconds, RATE, cpus=perfd.online_cpus()[-1:])
        self.pids = self.load.pids

    def run(self):
        self.load.go()
        self.load.done(seconds=600)

    def __enter__(self):
        self.load.__enter__()
        return self

    def __exit__(self, *exception):
        self.load.__exit__(*exception)


class Switches:
    """Two processes on one CPU that wait for each other, as fast as they can."""

    name = event = "sched:sched_switch"

    def __init__(self, seconds):
        self.n = seconds * 50_000
        self.gate, pipes = os.pipe(), [os.pipe(), os.pipe()]
        self.pids = []
        for i in range(2):
            pid = os.fork()
            if pid == 0:
                self.play(pipes[i][0], pipes[1 - i][1], i == 0)
            self.pids.append(pid)
        for fd in [self.gate[0], *pipes[0], *pipes[1]]:
            os.close(fd)

    def play(self, mine, theirs, begins):
        try:
            os.close(self.gate[1])
            os.sched_setaffinity(0, perfd.online_cpus()[-1:])
            os.read(self.gate[0], 1)
            if begins:
                os.write(theirs, b"x")
            for _ in range(self.n):
                os.read(mine, 1)
                os.write(theirs, b"x")
        finally:
            os._exit(0)

    def run(self):
        os.close(self.gate[1])
        self.gate = None
        for pid in self.pids:
            os.waitpid(pid, 0)
        self.pids = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.gate:
            os.close(self.gate[1])
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
            os.waitpid(pid, 0)


class Walk:
    """A program that does its work: du(1) of /usr."""

    name, event = "raw_syscalls:sys_enter of du", "raw_syscalls:sys_enter"

    def __init__(self, seconds):
        self.load = subprocess.Popen(["sh", "-c", 'read -r go; i=0; while [ $i -lt ' + str(seconds) +
                                      ' ]; do du -a /usr >/dev/null; i=$((i + 1)); done; read -r end'], stdin=subprocess.PIPE)
        self.pids = [self.load.pid]

    def run(self):
        self.load.stdin.write(b"go\nend\n")
        self.load.stdin.close()
        perfd.equal(self.load.wait(600), 0, "the status of the load")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.load.poll() is None:
            self.load.kill()
        self.load.wait()


class Client(perfd.Line):
    """live/decode.c, by TLS."""

    def __init__(self, relay, folder, event, is_compressed):
        os.environ.pop("COMPRESS", None)
        os.environ.update({"PERFD_TLS": folder, **({"COMPRESS": "1"} if is_compressed else {})})
        super().__init__([os.path.join(measure.HERE, "decode"), f"tls://localhost:{relay.port}", event, "0"])
        perfd.equal(self.hear(), ["ready"], "the first word of the subscriber")


def tls_folder(relay):
    folder = relay.at("tls")
    os.mkdir(folder)
    for name in "ca.crt", "client.crt", "client.key":
        os.symlink(relay.at(name), os.path.join(folder, name))
    return folder


def measure_once(kind, seconds, level):
    """level: 0 is without compression. Of each sample: bytes and ns of relay and client."""
    rules = f"[{{ name: client, events: ['*'], compress: {level or 1} }}]"
    with kind(seconds) as load, perfd.Daemon(config="version: 1\n") as daemon, Relay(daemon, rules) as relay, \
            daemon.client() as control:
        perfd.add(control, {"event": kind.event, "target": pb.Target(pids=load.pids)})
        with Client(relay, tls_folder(relay), kind.event, level > 0) as client:
            pids = relay.process.pid, client.process.pid
            perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the subscription")
            machine.wait_quiet(pids)
            before = [machine.process_time(pid) for pid in pids]
            load.run()
            machine.wait_quiet(pids, looks=5)
            spent = [machine.process_time(pid) - b for pid, b in zip(pids, before)]
            client.say("stop")
            said = json.loads(" ".join(client.hear()))
        n_bytes = int(relay.wait_for(r"has ended after (\d+) bytes")[1])
    return {"samples": said["items"], "missed": said["missed"], "bytes": n_bytes / said["items"], "relay": spent[0] / said["items"],
            "client": spent[1] / said["items"]}


def row_of(event, level, runs, plain):
    def median(key):
        return statistics.median(run[key] for run in runs)

    def ratio(key):
        return statistics.median(run[key] / other[key] for run, other in zip(runs, plain))

    return {"event": event, "level": level, "missed": sum(run["missed"] for run in runs), "samples": sum(run["samples"] for run in runs),
            **{key: median(key) for key in ("bytes", "relay", "client")},
            **{key + "_ratio": ratio(key) for key in ("bytes", "relay", "client")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="PATH", help="all numbers")
    parser.add_argument("--seconds", type=int, default=3, help="of each run (3)")
    parser.add_argument("--repetitions", type=int, default=5, help="of each state (5)")
    parser.add_argument("--levels", default="1,3,6,9", help="of compression (1,3,6,9)")
    a = parser.parse_args()
    perfd.need_root()
    levels, rows = [0, *map(int, a.levels.split(","))], []
    print(f"{'event':28} {'level':>5} {'bytes':>7} {'x':>5} {'relay ns':>9} {'x':>5} {'client ns':>9} {'x':>5} {'lost':>7}")
    for kind in Calls, Switches, Walk:
        runs = {level: [] for level in levels}
        for _ in range(a.repetitions):
            for level in levels:
                runs[level].append(measure_once(kind, a.seconds, level))
        for level in levels:
            row = row_of(kind.name, level, runs[level], runs[0])
            rows.append({**row, "runs": runs[level]})
            print(f"{row['event']:28} {level or '-':>5} {row['bytes']:7.1f} {row['bytes_ratio']:5.2f} {row['relay']:9.1f} "
                  f"{row['relay_ratio']:5.2f} {row['client']:9.1f} {row['client_ratio']:5.2f} {row['missed']:7}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "compression", "rate": RATE, "seconds": a.seconds, "rows": rows}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
