#!/usr/bin/python3
"""Where perfd's threads run and how urgently: as configured; what a CPU without a reader of its own can promise, with its
load on that very CPU; and that the defaults lose nothing while other programs want all of every CPU."""
import contextlib
import os
import subprocess
import sys

import doings
import perfd
from checker import Checker
from host import while_cpus_run
from perfd import Daemon, Workload, add, check, equal, pb
from test_promises import CPUS, GETPPID, SLOW, SYS_ENTER, all_lost, lost, rows_of

ELSEWHERE = "version: 1\nreaders: {cpus: \"%d\"%s}\n"  # the reader of CPUS[0] runs on CPUS[1]


def need_two_cpus():
    if len(CPUS) < 2:
        raise perfd.Skip("a CPU without a reader needs another one")


def threads_of(daemon):
    """{name: tid}"""
    return dict(doings.threads_of(daemon.pid))


def scheduled(tid):
    """(policy, real-time priority, nice value)"""
    policy = os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
    return policy, os.sched_getparam(tid).sched_priority, os.getpriority(os.PRIO_PROCESS, tid)


def sums_of(ledger, name):
    """{cpu: row}: the sum of each row adds up, whether it is exact or not."""
    rows = {row.cpu: row for row in ledger.events if row.name == name}
    for row in rows.values():
        equal(row.delivered + row.filtered + sum(count.count for count in row.lost), row.occurred, f"the sum of {row}")
        check(row.balanced, f"not balanced: {row}")
    return rows


class Elsewhere(Checker):
    """A checker of a stream to which some of what it wants may come too late."""

    finish = Checker.finish_whatever_came_late


def test_priorities():
    own = os.nice(0)  # which is passed on
    usual = {"reader": (os.SCHED_FIFO, 1, own), "dispatcher": (os.SCHED_FIFO, 1, own)}
    cases = [(None, usual),
             ("readers: {priority: fifo:3}\ndispatcher: {priority: fifo:2}",
              {"reader": (os.SCHED_FIFO, 3, own), "dispatcher": (os.SCHED_FIFO, 2, own)}),
             ("readers: {priority: \"nice:-7\"}\ndispatcher: {priority: normal}",
              {"reader": (os.SCHED_OTHER, 0, -7), "dispatcher": (os.SCHED_OTHER, 0, own)})]
    for config, expected in cases:
        with Daemon(config=config and f"version: 1\n{config}\n") as daemon:
            threads = threads_of(daemon)
            perfd.wait_until(lambda d=daemon, t=threads["dispatcher"], e=expected: scheduled(t) == e["dispatcher"] and d,
                             f"{expected['dispatcher']} of the dispatcher")
            for cpu in perfd.online_cpus():
                perfd.wait_until(lambda t=threads[f"reader-{cpu}"], e=expected: scheduled(t) == e["reader"],
                                 f"{expected['reader']} of the reader of CPU {cpu}")
            equal(scheduled(daemon.pid), (os.SCHED_OTHER, 0, own), "the main thread")


def test_places():
    need_two_cpus()
    config = ELSEWHERE % (CPUS[1], "") + f"dispatcher: {{cpus: \"{CPUS[0]}\"}}\n"
    with Daemon(config=config) as daemon:
        threads = threads_of(daemon)
        for cpu in perfd.online_cpus():
            equal(os.sched_getaffinity(threads[f"reader-{cpu}"]), {CPUS[1]}, f"where the reader of CPU {cpu} runs")
        equal(os.sched_getaffinity(threads["dispatcher"]), {CPUS[0]}, "where the dispatcher runs")
    with Daemon() as daemon:
        for name, tid in threads_of(daemon).items():
            if name.startswith("reader-"):
                equal(os.sched_getaffinity(tid), {int(name[len("reader-"):])}, f"where {name} runs")
    for key in ("readers", "dispatcher"):
        perfd.fail_to_start(rf"{key}\.cpus: found '8000', and this host cannot have CPU 8000",
                            config=f"version: 1\n{key}: {{cpus: \"8000\"}}\n")


def test_settings_need_a_restart():
    need_two_cpus()
    with Daemon(config=ELSEWHERE % (CPUS[1], "")) as daemon, daemon.client() as client:
        yaml = "version: 1\nreaders: {priority: nice:3, guard: 7ms}\ndispatcher: {cpus: \"0\"}\n"
        found = {s.field: (s.before, s.after, s.restart) for s in client.request(plan=pb.PlanRequest(yaml=yaml)).plan.settings}
        equal(found, {"readers.priority": ("fifo:1", "nice:3", True), "readers.cpus": (str(CPUS[1]), "all", True),
                      "readers.guard": ("5ms", "7ms", True), "dispatcher.cpus": ("all", "0", True)}, "what is planned")
        no = perfd.refused(client, "needs-restart", apply=pb.ApplyRequest(yaml="version: 1\nrings: {size: 1MiB}\n"))
        check("readers.cpus" in no.message, f"no key in {no.message!r}")
        equal(daemon.status().ring_size, 4 << 20, "the ring's size after a refusal")


def load_elsewhere(order):
    """A load of a known number on a CPU without a reader and on one with it: their rows, and what the subscriber saw.

    It comes in parts that fit into the rings, which are read in between: nothing is lost, however slow the readers are."""
    calls, parts = 10_000, 10 if SLOW else 50
    with Daemon(config=ELSEWHERE % (CPUS[1], "")) as daemon, daemon.client() as client, \
            Workload("syscalls", calls, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Elsewhere(daemon, order, "calls", queue=1 << 28) as checker:
            for i in range(parts):
                load.go()
                equal(load.done(), [calls] * 2, "calls made")
                rows = rows_of(daemon.ledger(), "calls")  # nothing happens any more: both are exact
                for cpu in CPUS:
                    equal(rows[cpu].occurred, (calls + 1) * (i + 1), f"calls on CPU {cpu}")
            seen = checker.finish()
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
    for cpu in CPUS:
        equal(rows[cpu].occurred, (calls + 1) * parts, f"calls on CPU {cpu}")
        equal(lost(rows[cpu]), 0, f"lost on CPU {cpu}")
        equal(seen["cpus"][cpu], rows[cpu].delivered, f"samples of CPU {cpu}, {order}")
    equal(seen["late"], sum(lost(row, "late") for row in rows.values()), "late ones")
    equal(seen["outbox"], 0, "dropped")
    if order == "cpu":
        equal(seen["late"], 0, "late ones where nobody waits")
    return seen


def test_reading_from_elsewhere():
    """Every call is there, in order, or counted as late."""
    need_two_cpus()
    for order in ("time", "cpu"):
        seen = load_elsewhere(order)
        print(f"  order {order}: {seen['late']} of {seen['matched']} late")


def test_short_guard():
    """With a guard that is too short more comes late. It is counted, and the order holds."""
    need_two_cpus()
    with Daemon(config=ELSEWHERE % (CPUS[1], ", guard: 100us")) as daemon, daemon.client() as client, \
            Workload("flood", 2, 0, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Elsewhere(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            counts = load.done()
            seen = checker.finish(60)
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
    equal([rows[cpu].occurred for cpu in CPUS], [n + 1 for n in counts], "calls")
    if not SLOW:  # a sanitizer's dispatcher does not keep up with its readers, and no queue is endless
        equal(seen["outbox"], 0, "dropped")
    equal(sum(seen["cpus"]) + seen["outbox"], sum(row.delivered for row in rows.values()),
          f"samples that came, or are in gaps, and delivered ones: {seen}")
    equal(seen["late"], sum(lost(row, "late") for row in rows.values()), "late ones")
    print(f"  {seen['late']} of {seen['matched']} late")


def test_ledger_says_what_is_not_exact():
    """In the middle of a flood: the row of the CPU with a reader is exact, and that of the other one says whether it is."""
    need_two_cpus()
    inexact = 0
    rate = 20_000 if SLOW else 0  # flat out a sanitizer's readers never reach the end of the ring that is filled elsewhere
    with Daemon(config=ELSEWHERE % (CPUS[1], "")) as daemon, daemon.client() as client, \
            Workload("flood", 0, rate, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "filter": f"id == {GETPPID}",
                     "target": pb.Target(pids=load.pids)})
        with Elsewhere(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            last = dict.fromkeys(CPUS, 0)
            for _ in range(5 if SLOW else 30):
                ledger = daemon.ledger()
                rows = sums_of(ledger, "calls")
                for cpu in CPUS:
                    check(rows[cpu].occurred >= last[cpu], f"a count of CPU {cpu} went backwards")
                    last[cpu] = rows[cpu].occurred
                check(rows[CPUS[1]].exact, f"not exact: {rows[CPUS[1]]}")
                inexact += not rows[CPUS[0]].exact
                for row in (*ledger.rings, *ledger.subscribers):
                    check(row.balanced, f"not balanced: {row}")
            counts = load.done(stop=True)
            checker.finish(60)
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
    equal([rows[cpu].occurred for cpu in CPUS], counts, "calls")
    print(f"  {inexact} ledgers were not exact")


def change_from_elsewhere(rounds):
    """The row of the CPU without a reader after so many changes, and by how much it is wrong."""
    with Daemon(config=ELSEWHERE % (CPUS[1], "")) as daemon, daemon.client() as client, \
            Workload("flood", 0, 20_000, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "filter": f"id == {GETPPID}",
                     "target": pb.Target(pids=load.pids)})
        with Elsewhere(daemon, "cpu", "calls", queue=1 << 28) as checker:
            load.go()
            for i in range(rounds):
                client.request(set_filter=pb.SetFilterRequest(name="calls", filter=f"id == {GETPPID}" +
                                                              (f" && common_pid != {i + 1}" if i % 2 else "")))
            counts = load.done(stop=True)
            seen = checker.finish()
            rows = sums_of(daemon.ledger(), "calls")
        load.exit()
    equal(rows[CPUS[1]].occurred, counts[1], "calls on the CPU with a reader")
    check(rows[CPUS[1]].exact, f"not exact: {rows[CPUS[1]]}")
    apart = rows[CPUS[0]].occurred - counts[0]
    check(apart == 0 or not rows[CPUS[0]].exact or lost(rows[CPUS[0]], "kernel_unwritten"), f"{apart} that are not said: {rows[CPUS[0]]}")
    equal(sum(seen["cpus"]), sum(row.delivered for row in rows.values()), "samples and delivered ones")
    return rows[CPUS[0]], apart


def test_live_change_from_elsewhere():
    """Each change may meet one occurrence in its middle, on the CPU without a reader: then its row is not exact any more. No
    guard is long enough for a CPU that its host keeps from running in that middle."""
    need_two_cpus()
    rounds = 10 if SLOW else 50
    row, apart = while_cpus_run(lambda: change_from_elsewhere(rounds), lambda found: max(0, abs(found[1]) - rounds))
    check(abs(apart) <= rounds, f"{apart} by {rounds} changes on the CPU without a reader")
    print(f"  {apart} doubled (or missed, if negative), exact: {row.exact}")


@contextlib.contextmanager
def busy_loops(seconds):
    """A process for each online CPU that wants all of it, and ends by itself."""
    loops = []
    try:
        for cpu in perfd.online_cpus():
            loops.append(subprocess.Popen(
                [sys.executable, "-c", f"import os, time\nos.sched_setaffinity(0, {{{cpu}}})\n"
                                       f"end = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"]))
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def load_busy_cpus(seconds):
    """The rows of a flood beside a busy loop of ordinary priority on each CPU, and how many calls it made."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", seconds, 0, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 28) as checker:
            with busy_loops(seconds + perfd.PATIENCE):
                load.go()
                counts = load.done(seconds=seconds + perfd.PATIENCE)
            seen = checker.finish(60)
            ledger = daemon.ledger()
        load.exit()
    rows = rows_of(ledger, "calls")
    if not SLOW:
        equal(seen["outbox"], 0, "dropped")
    equal([rows[cpu].occurred for cpu in CPUS], [n + 1 for n in counts], "calls")
    check(all(row.balanced for row in (*ledger.events, *ledger.rings)), "a row is not balanced")
    return rows, counts


def test_nothing_is_lost_on_busy_cpus():
    """The default configuration loses nothing."""
    seconds = 2
    rows, counts = while_cpus_run(lambda: load_busy_cpus(seconds), lambda found: 0 if SLOW else all_lost(found[0]))
    if not SLOW:
        equal([lost(row) for row in rows.values()], [0] * len(rows), "lost with the default configuration")
    print(f"  {sum(counts) // seconds} calls a second beside busy loops")


if __name__ == "__main__":
    perfd.main(globals())
