#!/usr/bin/python3
"""What it costs to record to a file: perfd and perfctl record together, beside perf record.

    sudo PERFD_BUILD=build tests/bench/record.py [--json PATH] [--seconds N] [--repetitions N] [--rates N,...]

The command of both is a process on the last CPU that calls getppid(2) at a rate (live/flood.c), and both record raw_syscalls:sys_enter of it,
into rings of 2 MiB, in turns. CPU is user and system time of all that each way needs, from its start to its end, with what it reads of the host
then: the recorder, and of perfd the daemon, whose start alone is left out. Lost are calls that no sample is of. Figures are medians; ratios are
those to perf record in the same turn, and the median of these.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "live"), os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import machine
import measure
import perfd
from test_perfctl import PERFCTL
from test_recording import info

WAYS = "perf record", "perfctl record"


def commands(way, daemon):
    if way == "perf record":
        return ["perf", "record", "-q", "-B", "-N", "-m", "2M", "-c", "1", "-e", measure.EVENT]
    return [PERFCTL, "--socket", daemon.control, "record", "--allow-loss", measure.EVENT]


def record(way, daemon, rate, seconds, path):
    flood = [os.path.join(measure.HERE, "flood"), str(seconds), str(rate), str(perfd.online_cpus()[-1])]
    before = machine.process_time(daemon.pid)
    with open(os.devnull, "wb") as null, perfd.Line([*commands(way, daemon), "-o", path, "--", *flood], stderr=null) as line:
        perfd.equal(line.hear()[0], "ready", "the first word of the flood")
        line.say("go")
        word, calls, _ = line.hear(seconds + perfd.PATIENCE)
        perfd.equal(word, "done", "the last word of the flood")
        line.say("exit")
        ended = os.waitid(os.P_PID, line.process.pid, os.WEXITED | os.WNOWAIT)  # it is still there, and so is what it has spent
        spent = machine.process_time(line.process.pid)
        perfd.equal(ended.si_status, 0, f"the status of {way}")
    spent += machine.process_time(daemon.pid) - before if way != "perf record" else 0
    said = info(path)
    perfd.equal(said["damage"], [], f"damage of what {way} wrote")
    n = said["samples"]
    perfd.check(n > 0, f"{way} has no samples")
    return {"samples": n, "lost": max(0, int(calls) - n), "ns": spent / n, "bytes": os.path.getsize(path) / n}


def rows_of(rate, runs):
    for way in WAYS:
        row = {key: statistics.median(run[key] for run in runs[way]) for key in ("samples", "lost", "ns", "bytes")}
        row.update({f"{key}_ratio": statistics.median(run[key] / beside[key] for run, beside in zip(runs[way], runs[WAYS[0]]))
                    for key in ("ns", "bytes")})
        yield {"rate": rate, "way": way, **row, "runs": runs[way]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="PATH", help="all numbers")
    parser.add_argument("--seconds", type=int, default=2, help="of each run (2)")
    parser.add_argument("--repetitions", type=int, default=5, help="of each way (5)")
    parser.add_argument("--rates", default="1000,100000,1000000", help="calls a second (1000,100000,1000000)")
    a = parser.parse_args()
    perfd.need_root()
    rows = []
    print(f"{'calls/s':>9} {'':15} {'samples':>9} {'lost':>9} {'ns':>9} {'x':>6} {'bytes':>7} {'x':>6}")
    for rate in map(int, a.rates.split(",")):
        runs = {way: [] for way in WAYS}
        with perfd.Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-bench.") as folder:
            for _ in range(a.repetitions):
                for way in WAYS:
                    path = os.path.join(folder, "perf.data")
                    runs[way].append(record(way, daemon, rate, a.seconds, path))
                    for name in os.listdir(folder):
                        os.unlink(os.path.join(folder, name))
        for row in rows_of(rate, runs):
            rows.append(row)
            print(f"{rate:9} {row['way']:15} {row['samples']:9.0f} {row['lost']:9.0f} {row['ns']:9.0f} {row['ns_ratio']:6.2f} {row['bytes']:7.1f} "
                  f"{row['bytes_ratio']:6.2f}", flush=True)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "record", "seconds": a.seconds, "rows": rows}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
