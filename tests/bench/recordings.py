#!/usr/bin/python3
"""What it costs to read a recording of perf: perfctl beside perf script, of the same file.

    sudo PERFD_BUILD=build tests/bench/recordings.py [--json PATH] [--samples N] [--repetitions N]

perf makes the recordings: tracepoints of a program that does nothing but system calls, and a profile by cpu-clock with callchains. Each
row is one way to print all samples of one. CPU is user and system time of the whole process, to /dev/null; ratio is how many times as
much `perf script` takes for the same file in the same repetition. Figures are medians. Before anything is timed both must print as many
samples. Goal: 10. What does not reach it is said.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "integration"))
# pylint: disable=wrong-import-position
import perfd

PERFCTL = os.path.join(perfd.BUILD, "client/perfctl/perfctl")
GOAL = 10
WAYS = {
    "script": [],
    "script --json": ["--json"],
    "script --no-symbols": ["--no-symbols"],
    "script --order file --no-symbols": ["--order", "file", "--no-symbols"],
}
PROFILE_HZ = 10_000


def record(path, samples):
    """{what: path}"""
    calls = ["dd", "if=/dev/zero", "of=/dev/null", "status=none", "bs=1", f"count={samples // 2}"]  # each reads and writes
    blocks = ["dd", "if=/dev/zero", "of=/dev/null", "status=none", "bs=4k", f"count={samples * 4}"]
    made = {"tracepoints": (["-m", "16M", "-e", "raw_syscalls:sys_enter", "-e", "sched:sched_switch"], calls),
            "profile": (["-m", "8M", "-e", "cpu-clock", "-F", str(PROFILE_HZ), "-g"], blocks)}
    for what, (options, load) in made.items():
        subprocess.run(["perf", "record", "-q", "-o", f"{path}/{what}", *options, "--", *load], check=True, timeout=600)
    return {what: f"{path}/{what}" for what in made}


def count(file):
    """Samples by both, which must be as many."""
    by_perf = subprocess.run(["perf", "script", "-i", file, "-F", "time"], check=True, stdout=subprocess.PIPE, timeout=600).stdout.count(b":")
    ours = subprocess.run([PERFCTL, "script", "-i", file, "--json"], check=True, stdout=subprocess.PIPE, timeout=600).stdout.count(b"\n")
    perfd.equal(ours, by_perf, f"samples of {file}")
    return ours


def cpu(command):
    """Seconds of a process that ends well."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    perfd.equal(process.returncode, 0, " ".join(command))
    return used.ru_utime + used.ru_stime


def measure(file, repetitions):
    """Times of perf, and {way: times}."""
    perf, ours = [], {way: [] for way in WAYS}
    for _ in range(repetitions):
        perf.append(cpu(["perf", "script", "-i", file]))
        for way, options in WAYS.items():
            ours[way].append(cpu([PERFCTL, "script", "-i", file, *options]))
    return perf, ours


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="PATH", help="all numbers")
    parser.add_argument("--samples", type=int, default=500_000, help="of the recording of tracepoints, about")
    parser.add_argument("--repetitions", type=int, default=3)
    a = parser.parse_args()
    perfd.need_root()
    rows = []
    with tempfile.TemporaryDirectory() as path:
        for what, file in record(path, a.samples).items():
            n = count(file)
            perf, ours = measure(file, a.repetitions)
            print(f"{what}, {n:,} samples: perf script {statistics.median(perf) / n * 1e9:,.0f} ns each")
            for way, times in ours.items():
                ratio = statistics.median(theirs / mine for theirs, mine in zip(perf, times))
                rows.append({"recording": what, "samples": n, "way": way, "perf": perf, "seconds": times, "ratio": ratio})
                print(f"  {way:36}{statistics.median(times) / n * 1e9:8,.0f} ns {ratio:6.2f}{'' if ratio >= GOAL else '  goal missed'}",
                      flush=True)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "recordings", "goal": GOAL, "rows": rows}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
