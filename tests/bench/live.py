#!/usr/bin/python3
"""What perfd costs on this machine while a flood of system calls is traced, beside what nothing can go below.

    sudo PERFD_BUILD=build tests/bench/live.py [--only CASE...] [--rates N,...] [--json PATH] [--quick] ...

PERFD_BUILD is any folder of a build (`build` if not set). One process, pinned to the last CPU, makes getppid(2) calls
at 10, 1 k, 10 k, 100 k, 300 k and 1 M a second and flat out (live/flood.c), or never runs: nothing happens. Each case
traces it by pid with raw_syscalls:sys_enter, on its own, all cases in turns, several times over, each behind the one
that it is compared with. live/cases.py lists them and what they are to reach:

    bare-...             loops on the same ring that do nothing but what their names say (live/bare-*.c)
    perf-... bpftrace    other programs, as far as they are installed (tests/packages bench)
    latency-...          perfd, whose subscriber looks at the clock: from the kernel's time stamp to its read(2);
                         bare-latency-...: a loop on the ring that looks at it as often, which shows what this machine's
                         timers are worth
    decoded...           perfd, whose subscriber reads every field by libperfd (live/decode.c), with the default latency and others
    ...-2                with a flood on each of two CPUs
    relay publish        perfd and perfd-relay together, for another host, by TLS and to a nats-server; beside them relay-bare,
                         perfd whose bytes a loop copies by SSL_write() and SSL_read() (live/tls-copy.c), and perf-ssh,
                         `perf record -o - | ssh localhost`. What the other side spends on TLS, sshd or the server is its reader's
    shared...            perfd, with subscribers in shared memory, as libperfd asks for it
    the others           perfd, with subscribers that read and discard (live/discard.c), a daemon of its own for each; they
                         have their streams in shared memory, as libperfd does, those of ...-socket by their sockets
    resting              wakeups and memory without a flood
    sizes                bytes of a sample in the ring, and what it takes of the traced program, beside perf record's
    simulated            bench-pipeline: the same code on rings in memory, with up to 128 CPUs, in a table of its own

ns/event is the CPU of all threads of the consumer for each event that it took from the kernel; what it costs to read
its output is beside it (+reader). `call ns` is how long a traced call took, as the traced program sees it; `own`, how
much CPU it needed itself, flat out. What wakes while few events happen, or none, is in a table of its own: % of a CPU
and wakeups are of all threads of the consumer and its reader while the flood runs, which is three seconds at least
there. Figures are medians over the repetitions. Ratios, and all goals, are those within a repetition, and the median of
these: on a machine that has other things to do too they hold, and ns do not.

Only root can run this; it needs tracefs. All of it takes about 45 minutes, --quick less than one.
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
import markdown
import perfd
import resting
import simulated
import sizes
import table

REPETITIONS = 5
SECONDS, QUICK_SECONDS = 2, 0.75
IDLE_SECONDS, QUICK_IDLE_SECONDS = 10, 3


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", nargs="+", metavar="CASE", help="these, by name or glob, and what their goals need beside")
    p.add_argument("--rates", help="only these calls a second, separated by commas; 0 is flat out, `nothing` no flood at all")
    p.add_argument("--json", metavar="PATH", help="all numbers, also of the single runs")
    p.add_argument("--markdown", action="store_true", help="tables as they are in RESULTS.md")
    p.add_argument("--results", metavar="PATH", help="writes them into that paper, between its two marks")
    p.add_argument("--load", metavar="PATH", help="measure nothing, print what an earlier run wrote by --json")
    p.add_argument("--quick", action="store_true", help="less than a minute: one repetition, few cases")
    p.add_argument("--seconds", type=float, help="of each flood (2)")
    p.add_argument("--repetitions", type=int, help="of everything (5)")
    return p.parse_args()


def is_wanted(name, globs):
    return not globs or any(fnmatch.fnmatch(name, glob) for glob in globs)


def rate_of(word):
    if word != cases.IDLE[0] and not word.isdigit():
        sys.exit(f"--rates: {word} is neither a number nor `{cases.IDLE[0]}`")
    return word if word == cases.IDLE[0] else int(word)


def choose(a):
    """The (case, rate) pairs of a run, by rate; says what cannot be measured."""
    everything = cases.COSTS + cases.LATENCIES
    names = [case.name for case in everything] + [resting.NAME, sizes.NAME, simulated.NAME]
    if not any(is_wanted(name, a.only) for name in names):
        sys.exit(f"no such case; there are: {', '.join(names)}")
    wanted = {case.name for case in everything
              if is_wanted(case.name, a.only) and (case.quick or a.only or not a.quick)}
    if a.only and any(case.name in wanted for case in cases.COSTS):
        wanted |= {cases.SOCKET}.union(*(case.needs() for case in everything if case.name in wanted))
    for case in everything:
        if case.name in wanted and case.missing:
            print(f"not measured: {case.name}: {case.missing}")
            wanted.remove(case.name)
    rates = cases.QUICK if a.quick else cases.EVERY
    if a.rates:
        rates = list(dict.fromkeys(rate_of(word) for word in a.rates.split(",")))
    return ([(case, rate) for rate in rates for case in cases.COSTS
             if case.name in wanted and (a.rates or rate in case.rates)],
            [(case, case.rates[0]) for case in cases.LATENCIES if case.name in wanted])


def say_progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


def next_to_each_other(chosen):
    """The same, each behind the one that it is compared with, before any other: minutes later the host does something else."""
    names = {(case.name, rate) for case, rate in chosen}
    beside = {(case.name, rate): next((name for name in case.needs(rate) if (name, rate) in names), None)
              for case, rate in chosen}

    def behind(name, at):
        for case, rate in chosen:
            if rate == at and beside[case.name, rate] == name:
                yield case, rate
                yield from behind(case.name, rate)

    order = [pair for rate in dict.fromkeys(rate for _, rate in chosen) for pair in behind(None, rate)]
    assert len(order) == len(chosen)  # no two are compared with each other
    return order


def measure(chosen, seconds, repetitions, cpus):
    """{(case's name, rate): what each repetition gave}, in turns. Another program that fails is left out, and said."""
    results = {(case.name, rate): [] for case, rate in chosen}
    for repetition in range(repetitions):
        for case, rate in next_to_each_other(chosen):
            if (case.name, rate) not in results:
                continue
            say_progress(f"{repetition + 1}/{repetitions} {table.rate_text(rate)} {case.name}")
            try:
                results[case.name, rate].append(case.run(rate, seconds, cpus))
            except (AssertionError, OSError) as why:
                if not case.program:
                    raise
                print(f"not measured: {case.name} {table.at(rate)}: {why}")
                del results[case.name, rate]
    say_progress("")
    return results


def run(a):
    """Everything that was asked for, as it is written to JSON."""
    perfd.need_root()
    if not os.path.exists(f"{perfd.TRACING}/events"):
        print(f"skipped: tracefs is not mounted on {perfd.TRACING}")
        sys.exit(77)
    seconds = a.seconds or (QUICK_SECONDS if a.quick else SECONDS)
    repetitions = a.repetitions or (1 if a.quick else REPETITIONS)
    costs, latencies = choose(a)
    results = measure(costs + latencies, seconds, repetitions, perfd.online_cpus())
    found = {"benchmark": "live", "machine": machine.describe(), "seconds": seconds, "repetitions": repetitions,
             resting.NAME: [], simulated.NAME: None, "costs": [], "loads": [], "latencies": []}
    for case, rate in costs + latencies:
        if (case.name, rate) in results:
            row = table.make_row(case, rate, seconds, results, cases.SOCKET)
            row["runs"] = results[case.name, rate]
            for kind in case.tables(rate) if case in cases.COSTS else ["latencies"]:
                found[kind].append(row)
    if is_wanted(resting.NAME, a.only):
        found[resting.NAME] = resting.idle(QUICK_IDLE_SECONDS if a.quick else IDLE_SECONDS) + resting.memory()
    if is_wanted(sizes.NAME, a.only) and (a.only or not a.quick):
        found[resting.NAME] += sizes.run()
    if is_wanted(simulated.NAME, a.only):
        found[simulated.NAME] = simulated.run(a.quick)
    return found


def main():
    a = arguments()
    if a.results:
        markdown.split(a.results)  # before half an hour is spent on what could not be written
    if a.load:
        with open(a.load, encoding="utf-8") as f:
            found = json.load(f)
    else:
        found = run(a)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)
    if a.results:
        markdown.write(found, a.results)
    else:
        (markdown if a.markdown else table).print_all(found)


if __name__ == "__main__":
    main()
