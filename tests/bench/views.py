#!/usr/bin/python3
"""What it costs to make views of a recording: report and inlined functions beside perf, the order of time in memory, flame graphs beside reading.

    sudo PERFD_BUILD=build tests/bench/views.py [--json PATH] [--only report,inline,order,flame] [--samples N] [--repetitions N]
                                                [--inline-samples N] [--order-size MIB] [--flame-samples N] [--folder PATH]

report: perf report --stdio and perfctl report of one recording of cpu-clock with callchains, by symbols, by comm,dso,symbol, and with children
and calls below them. inline: perf script -F +srcline --inline, which has addr2line look at each address, and perfctl script --inline, of a
program with debug information that is made here. Both must find as many samples. order: script --order time of a made recording (see
made_recording.py), with rounds and without: the most memory that it had, all pages counted. flame: the same file, by cat, info, report and
flame. CPU is user and system time of a process and all that it has started; ratios are of the same repetition; figures are medians. Goals:
report 5, inline 50, order 64 MiB. The files take 4 GiB and 1.6 GB of --folder.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import made_recording
import perfd

PERFCTL = os.path.join(perfd.BUILD, "client/perfctl/perfctl")
REPORT_GOAL, INLINE_GOAL, ORDER_GOAL = 5, 50, 64 << 10  # the last one in KiB
FUNCTIONS, HZ, CALLS_A_SAMPLE = 2000, 20_000, 16
PR_SET_CHILD_SUBREAPER = 36
REPORTS = {
    "--sort symbol": (["--no-children", "-g", "none", "--sort", "symbol"], ["--sort", "symbol"]),
    "--sort comm,dso,symbol": (["--no-children", "-g", "none", "--sort", "comm,dso,symbol"], ["--sort", "comm,dso,symbol"]),
    "--children --graph": (["--children", "-g", "graph,0.5,caller"], ["--children", "--graph"]),
}
INLINE = ["-F", "comm,tid,time,ip,sym,dso,srcline", "--inline"]


def spent(command, **more):
    """Seconds of CPU of a command that ends well, with what it leaves behind, and the most memory in KiB of the command itself."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **more) as process:
        seconds, most = 0, 0
        while True:
            try:
                pid, status, used = os.wait4(-1, 0)
            except ChildProcessError:
                break
            seconds += used.ru_utime + used.ru_stime
            if pid == process.pid:
                process.returncode, most = os.waitstatus_to_exitcode(status), used.ru_maxrss
    perfd.equal(process.returncode, 0, " ".join(command))
    return seconds, most


def by_perf(command):
    return spent(["perf", *command], stderr=subprocess.DEVNULL)[0]


def source():
    """Functions that call each other, each with two that are inlined into it, one within the other."""
    lines = ["#include <stdlib.h>", "volatile unsigned long sink;",
             "static inline __attribute__((always_inline)) unsigned long inner(unsigned long x, unsigned long k)",
             "{", "    x ^= x >> 7;", "    return x * (k + 3);", "}",
             "static inline __attribute__((always_inline)) unsigned long outer(unsigned long x, unsigned long k)",
             "{", "    return inner(x, k) + inner(x + 1, k + 1);", "}"]
    lines += [f"unsigned long step{i}(unsigned long x, int depth);" for i in range(FUNCTIONS)]
    for i in range(FUNCTIONS):
        lines += [f"__attribute__((noinline)) unsigned long step{i}(unsigned long x, int depth)", "{",
                  "    for (int i = 0; i < 40; i++)", f"        x = outer(x, {i}) + i;", "    sink = x;", "    if (depth > 0)",
                  f"        x += x & 64 ? step{i * 7 % FUNCTIONS}(x, depth - 1) : step{(i * 3 + 1) % FUNCTIONS}(x, depth - 1);",
                  f"    return outer(x, {i});", "}"]
    steps = ", ".join(f"step{i}" for i in range(FUNCTIONS))
    lines += ["int main(int n, char **words)", "{", f"    unsigned long (*all[])(unsigned long, int) = {{ {steps} }}, x = 1;",
              "    for (long i = 0; i < atol(words[n - 1]); i++)", f"        x = all[(x >> 7) % {FUNCTIONS}](x, 20);", "    return 0;", "}"]
    return "\n".join(lines) + "\n"


def program(folder):
    path = os.path.join(folder, "steps")
    with open(f"{path}.c", "w", encoding="utf-8") as f:
        f.write(source())
    subprocess.run(["gcc", "-g", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", path, f"{path}.c"], check=True, timeout=600)
    return path


def record(path, hz, *command):
    subprocess.run(["perf", "record", "-q", "-m", "8M", "-e", "cpu-clock", "-F", str(hz), "-g", "-o", path, "--", *command], check=True,
                   stderr=subprocess.DEVNULL, timeout=600)
    return path


def samples_of(path):
    return json.loads(subprocess.run([PERFCTL, "--json", "info", path], check=True, stdout=subprocess.PIPE, timeout=600).stdout)["samples"]


def row(rows, what, n, figures, ratio=None, goal=None):
    is_missed = goal is not None and ratio < goal
    rows.append({"what": what, "samples": n, **figures, "ratio": ratio, "goal": goal})
    print(f"{what:46}{n:11,} samples  " + "  ".join(f"{name} {value:,.3f}" for name, value in figures.items()) +
          (f"  ratio {ratio:.2f}" if ratio is not None else "") + ("  goal missed" if is_missed else ""), flush=True)


def beside_perf(rows, what, n, runs, goal):
    perf, ours = zip(*runs)
    row(rows, what, n, {"perf": statistics.median(perf), "perfctl": statistics.median(ours)},
        statistics.median(theirs / mine for theirs, mine in runs), goal)


def reports(rows, folder, a):
    """A program in user space, one in the kernel, and an interpreter, each a third of the samples or so."""
    third = a.samples / HZ / 3
    load = f"timeout {third} {program(folder)} 1000000000; timeout {third} dd if=/dev/zero of=/dev/null bs=4k status=none;" \
           f"timeout {third} {sys.executable} -c 'import json\nwhile True: json.loads(json.dumps(list(range(1000))))'; true"
    path = record(f"{folder}/report.data", HZ, "sh", "-c", load)
    for what, (theirs, mine) in REPORTS.items():
        runs = [(by_perf(["report", "--stdio", "-i", path, *theirs]), spent([PERFCTL, "report", "-i", path, *mine])[0]) for _ in range(a.repetitions)]
        beside_perf(rows, f"report {what}", samples_of(path), runs, REPORT_GOAL)


def inline(rows, folder, a):
    path = record(f"{folder}/inline.data", HZ, program(folder), str(a.inline_samples * CALLS_A_SAMPLE))
    runs = [(by_perf(["script", "-i", path, *INLINE]), spent([PERFCTL, "script", "--inline", "-i", path])[0]) for _ in range(a.repetitions)]
    beside_perf(rows, "script --inline", samples_of(path), runs, INLINE_GOAL)


def order(rows, folder, a):
    path = f"{folder}/order.data"
    for has_rounds in (True, False):
        n = made_recording.write(path, (a.order_size << 20) // made_recording.SAMPLE_SIZE + 1, has_rounds, PERFCTL)
        seconds, most = spent([PERFCTL, "script", "-i", path, "--order", "time", "--no-symbols"])
        perfd.equal(samples_of(path), n, "samples")
        row(rows, f"script --order time, {'rounds' if has_rounds else 'no rounds'}", n,
            {"GiB": os.path.getsize(path) / 2 ** 30, "seconds": seconds, "MiB of memory": most / 1024}, ORDER_GOAL / most, 1)
        os.unlink(path)


def flame(rows, folder, a):
    path = f"{folder}/flame.data"
    n = made_recording.write(path, a.flame_samples, True, PERFCTL)
    ways = {"cat": ["cat", path], "info": [PERFCTL, "info", path], "report": [PERFCTL, "report", "-i", path],
            "flame": [PERFCTL, "flame", "-i", path, "-o", f"{folder}/flame.html"]}
    runs = [{way: spent(command)[0] for way, command in ways.items()} for _ in range(a.repetitions)]
    row(rows, "flame, in seconds", n, {way: statistics.median(run[way] for run in runs) for way in ways})
    os.unlink(path)


def main():
    kinds = {"report": reports, "inline": inline, "order": order, "flame": flame}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="PATH", help="all numbers")
    parser.add_argument("--only", default=",".join(kinds), help="which of them, with commas between them")
    parser.add_argument("--samples", type=int, default=200_000, help="of the recording of report, about")
    parser.add_argument("--inline-samples", type=int, default=30_000, help="of that with lines, about")
    parser.add_argument("--order-size", type=int, default=4096, help="MiB")
    parser.add_argument("--flame-samples", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--folder", help="for recordings, on a disk")
    a = parser.parse_args()
    perfd.need_root()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # perf does not wait for its addr2line
    rows = []
    for kind in a.only.split(","):
        with tempfile.TemporaryDirectory(dir=a.folder) as folder:
            kinds[kind](rows, folder, a)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "views", "rows": rows}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
