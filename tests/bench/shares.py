#!/usr/bin/python3
"""Whether perfctl record finds what perf record finds: the shares of the same symbols, of the same load, by both in turns.

    sudo PERFD_BUILD=build tests/bench/shares.py [--json PATH] [--repetitions N] [--ms N] [--rate N]

The load (shares-load.c) is a command of both, which sample cpu-clock of it in user space; both files are read by perf script. For each of the 20
symbols that have most samples: its share by each, and how many standard deviations of the sampling lie between both, which are at most 4. Exits
with 1 if one has more. Its functions work for 1 to 24 parts of 300, so the share that is right is known too.
"""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import perfd
from test_perfctl import PERFCTL

TOP, SIGMAS = 20, 4
LOAD = os.path.join(perfd.BUILD, "tests", "bench", "shares-load")
WAYS = "perf record", "perfctl record"


def record(way, daemon, path, rate, ms):
    """{symbol: samples}"""
    event = ["-e", "cpu-clock:u", "-F", str(rate)]
    head = ["perf", "record", "-q", "-o", path, *event] if way == WAYS[0] else [PERFCTL, "--socket", daemon.control, "record", "-o", path, *event]
    subprocess.run([*head, "--", LOAD, str(ms)], stderr=subprocess.DEVNULL, check=True)
    lines = subprocess.run(["perf", "script", "-F", "comm,ip,sym", "-i", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return collections.Counter(line.split()[2] for line in lines if line.split()[0] == os.path.basename(LOAD))


def sigmas(a, all_a, b, all_b):
    both = (a + b) / (all_a + all_b)
    return (a / all_a - b / all_b) / math.sqrt(both * (1 - both) * (1 / all_a + 1 / all_b))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="PATH", help="all numbers")
    parser.add_argument("--repetitions", type=int, default=7, help="of each way (7)")
    parser.add_argument("--ms", type=int, default=1000, help="of CPU time of each run (1000)")
    parser.add_argument("--rate", type=int, default=1999, help="samples a second (1999)")
    a = parser.parse_args()
    perfd.need_root()
    counts = {way: collections.Counter() for way in WAYS}
    with perfd.Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-bench.") as folder:
        for i in range(a.repetitions):
            for way in WAYS if i % 2 == 0 else reversed(WAYS):
                counts[way].update(record(way, daemon, os.path.join(folder, f"{i}-{way[:5].strip()}"), a.rate, a.ms))
    perf, ours = (counts[way] for way in WAYS)
    rows = []
    for symbol, _ in (perf + ours).most_common(TOP):
        part = symbol.rpartition("_")[2]
        rows.append({"symbol": symbol, "perf": perf[symbol], "perfctl": ours[symbol], "expected": int(part) / 300 if part.isdigit() else None,
                     "sigmas": sigmas(perf[symbol], perf.total(), ours[symbol], ours.total())})
    print(f"{'symbol':12} {'right':>7} {'perf':>7} {'perfctl':>7} {'sigmas':>7}   of {perf.total()} and {ours.total()} samples")
    for row in rows:
        right = f"{100 * row['expected']:6.2f}%" if row["expected"] else ""
        print(f"{row['symbol']:12} {right:>7} {100 * row['perf'] / perf.total():6.2f}% {100 * row['perfctl'] / ours.total():6.2f}% {row['sigmas']:7.2f}")
    square = sum(row["sigmas"] ** 2 for row in rows)
    worst = max(abs(row["sigmas"]) for row in rows)
    print(f"at most {worst:.2f} of {SIGMAS} standard deviations; the sum of their squares is {square:.1f}, of some {len(rows)} that are expected")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "shares", "samples": [perf.total(), ours.total()], "rows": rows}, f, indent=1)
    return 0 if len(rows) == TOP and worst <= SIGMAS else 1


if __name__ == "__main__":
    sys.exit(main())
