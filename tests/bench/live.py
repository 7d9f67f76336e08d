#!/usr/bin/python3
"""What perfd costs on this machine while a flood of system calls is traced, beside what nothing can go below.

    sudo PERFD_BUILD=build tests/bench/live.py [--only CASE...] [--json PATH] [--quick] ...

PERFD_BUILD is any folder of a build (`build` if not set). One process, pinned to the last CPU, makes getppid(2) calls at
100 k, 300 k and 1 M a second and flat out (live/flood.c). Each case traces it by pid with raw_syscalls:sys_enter, on its
own, all cases in turns, several times over (live/cases.py is the list):

    bare-...     loops on the same ring that do nothing but what their names say (live/bare-*.c)
    the others   perfd, with subscribers that read and discard (live/discard.c), a daemon of its own for each

ns/event is the CPU of all threads of the consumer for each event that it took from the kernel; what its reader spends is
beside it. Figures of one run are medians over the repetitions. Ratios, and all goals, are those within a repetition,
and the median of these: on a machine that has other things to do too they hold, and ns do not.

Only root can run this; it needs tracefs.
"""
import argparse
import fnmatch
import json
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "live"), os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import cases
import machine
import perfd
import table


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", nargs="+", metavar="CASE", help="these, by name or glob, and what their goals need beside")
    p.add_argument("--rates", help="only these calls a second, separated by commas; 0 is flat out")
    p.add_argument("--json", metavar="PATH", help="all numbers, also of the single runs")
    p.add_argument("--quick", action="store_true", help="one repetition of few cases: less than a minute")
    p.add_argument("--seconds", type=float, help="of each flood (2)")
    p.add_argument("--repetitions", type=int, help="of everything (5)")
    return p.parse_args()


def choose(a):
    """The (case, rate) pairs of a run, by rate."""
    names = {case.name for case in cases.CASES if not a.only or any(fnmatch.fnmatch(case.name, glob) for glob in a.only)}
    if not names:
        sys.exit(f"no such case; there are: {', '.join(case.name for case in cases.CASES)}")
    if a.only:
        names |= {cases.SOCKET}.union(*(case.needs() for case in cases.CASES if case.name in names))
    rates = [int(rate) for rate in a.rates.split(",")] if a.rates else cases.BOTH if a.quick else cases.ALL
    return [(case, rate) for rate in rates for case in cases.CASES if case.name in names and rate in case.rates]


def say_progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


def main():
    a = arguments()
    perfd.need_root()
    if not os.path.exists(f"{perfd.TRACING}/events"):
        print(f"skipped: tracefs is not mounted on {perfd.TRACING}")
        sys.exit(77)
    seconds = a.seconds or (1 if a.quick else 2)
    repetitions = a.repetitions or (1 if a.quick else 5)
    cpu = perfd.online_cpus()[-1]
    chosen = choose(a)
    results = {(case.name, rate): [] for case, rate in chosen}
    for repetition in range(repetitions):
        for case, rate in chosen:
            say_progress(f"{repetition + 1}/{repetitions} {table.rate_text(rate)} {case.name}")
            results[case.name, rate].append(case.run(rate, seconds, cpu))
    say_progress("")

    host = machine.describe()
    print(f"{host['n_cpus']} x {host['cpu']}, Linux {host['kernel']}; medians of {repetitions} x {seconds:g} s\n")
    rows = [table.make_row(case, rate, seconds, results, cases.SOCKET) for case, rate in chosen]
    table.print_costs(rows)
    if a.json:
        for row in rows:
            row["runs"] = results[row["case"], row["rate"]]
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "live", "machine": host, "seconds": seconds, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
