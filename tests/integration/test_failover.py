#!/usr/bin/python3
"""A reader whose CPU is taken by a real-time program, or that is stopped by a debugger: its ring is read from another CPU
before it overflows, in the order of time, and by the reader itself as soon as that runs again."""
import contextlib
import ctypes
import os
import struct

import perfd
from checker import Checker
from host import while_cpus_run
from perfd import Daemon, Workload, add, check, equal, pb
from test_placement import Elsewhere, need_two_cpus, threads_of
from test_promises import CPUS, SLOW, SYS_ENTER, all_lost, lost, rows_of

CALLS = 40_000 if SLOW else 400_000
RATE = 400_000  # a second, at which perf record -a with rings of the same size loses nothing
SCHED_SETATTR, SCHED_DEADLINE = 314, 6
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
MS = 1_000_000


def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def be_fifo(pids):
    for pid in pids:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(50))


def be_deadline(pids):
    """90 of each 100 ms, on whatever CPU: the kernel pins none that has a deadline."""
    attr = struct.pack("=IIQiIQQQ", 48, SCHED_DEADLINE, 0, 0, 0, 90 * MS, 100 * MS, 100 * MS)
    for pid in pids:
        os.sched_setaffinity(pid, perfd.online_cpus())
        call(LIBC.syscall(SCHED_SETATTR, pid, attr, 0))


@contextlib.contextmanager
def debugged(tid):
    """A thread in the hands of a debugger, which has stopped it."""
    call(LIBC.ptrace(ctypes.c_long(PTRACE_SEIZE), ctypes.c_long(tid), ctypes.c_long(0), ctypes.c_long(0)))
    try:
        call(LIBC.ptrace(ctypes.c_long(PTRACE_INTERRUPT), ctypes.c_long(tid), ctypes.c_long(0), ctypes.c_long(0)))
        os.waitpid(tid, WALL)
        yield
    finally:
        call(LIBC.ptrace(ctypes.c_long(PTRACE_DETACH), ctypes.c_long(tid), ctypes.c_long(0), ctypes.c_long(0)))


def write(path, value):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(value))


@contextlib.contextmanager
def throttled(pid):
    """A process that gets a tenth of a CPU, in all its threads: cpu.max, or the same of the older hierarchy."""
    root = "/sys/fs/cgroup/cpu"
    if not os.path.exists(f"{root}/cpu.cfs_quota_us"):
        root = "/sys/fs/cgroup"
        if not os.path.exists(f"{root}/cgroup.controllers"):
            raise perfd.Skip("no cgroup has a quota of CPU time here")
        with open(f"{root}/cgroup.subtree_control", encoding="ascii") as f:
            if "cpu" not in f.read().split():
                raise perfd.Skip("the controller of CPU time is not on for cgroups here")
    cgroup = f"{root}/perfd-test-{os.getpid()}"
    os.mkdir(cgroup)
    try:
        if os.path.exists(f"{cgroup}/cpu.max"):
            write(f"{cgroup}/cpu.max", "10000 100000")
        else:
            write(f"{cgroup}/cpu.cfs_quota_us", 10000)
        if os.path.exists(f"{cgroup}/cpu.rt_runtime_us"):  # or no thread with a real-time priority may come
            write(f"{cgroup}/cpu.rt_runtime_us", 100000)
        write(f"{cgroup}/cgroup.procs", pid)
        try:
            yield
        finally:
            write(f"{root}/cgroup.procs", pid)
    finally:
        perfd.wait_until(lambda: not open(f"{cgroup}/cgroup.procs", encoding="ascii").read(), "an empty cgroup")
        os.rmdir(cgroup)


def failovers(daemon):
    return sum(cpu.n_failovers for cpu in daemon.status().cpus)


def check_home(daemon):
    for name, tid in threads_of(daemon).items():
        if name.startswith("reader-"):
            home = {int(name[len("reader-"):])}
            perfd.wait_until(lambda: os.sched_getaffinity(tid) == home, f"{name} to run on its own CPU again")
    perfd.wait_until(lambda: not any(name.startswith("backup") for name in threads_of(daemon)), "the backups to end")


def load(cpus, scheduled, stopped=None, order="time", throttles=False):
    """The rows of a load of a known number on these CPUs, while a reader is stopped or perfd throttled, what a subscriber saw, and how often a
    backup began."""
    with Daemon() as daemon, daemon.client() as client, Workload("spin", CALLS, RATE, cpus=cpus) as work:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=work.pids)})
        with Elsewhere(daemon, order, "calls", queue=1 << 28) as checker, contextlib.ExitStack() as stack:
            scheduled(work.pids)
            if stopped is not None:
                stack.enter_context(debugged(threads_of(daemon)[f"reader-{stopped}"]))
            if throttles:
                stack.enter_context(throttled(daemon.pid))
            work.go()
            equal(work.done(), [CALLS] * len(cpus), "calls made")
            stack.close()
            seen = checker.finish()
            ledger = daemon.ledger()
        check_home(daemon)
        work.exit()
        n = failovers(daemon)
    rows = rows_of(ledger, "calls")
    equal(sum(row.occurred for row in rows.values()), (CALLS + 1) * len(cpus), "calls")
    check(all(row.balanced for row in (*ledger.events, *ledger.rings)), "a row is not balanced")
    return rows, seen, n


def nothing_is_lost(*what, **more):
    need_two_cpus()
    rows, seen, n = while_cpus_run(lambda: load(*what, **more), lambda found: 0 if SLOW else all_lost(found[0]))
    if not SLOW:
        equal(all_lost(rows), 0, "lost")
    equal(seen["late"], sum(lost(row, "late") for row in rows.values()), "late ones")
    equal(sum(seen["cpus"]) + seen["outbox"], sum(row.delivered for row in rows.values()), "samples that came, or are in gaps")
    check(n > 0, "no backup has read")
    print(f"  {all_lost(rows)} of {sum(row.occurred for row in rows.values())} lost, {seen['late']} late, {n} failovers")


def test_fifo():
    """A real-time program that keeps its CPU for a second."""
    nothing_is_lost(CPUS[1:2], be_fifo)


def test_deadline():
    """One with a deadline, which leaves each reader its CPU now and then."""
    nothing_is_lost(CPUS[1:2], be_deadline)


def test_debugged():
    """The thread of a reader in the hands of a debugger."""
    nothing_is_lost(CPUS[1:2], lambda pids: None, stopped=CPUS[1])


def test_all_cpus_taken():
    """Nobody can read then; what is lost is counted."""
    need_two_cpus()
    rows, _, _ = load(CPUS, be_fifo)
    print(f"  {all_lost(rows)} of {sum(row.occurred for row in rows.values())} lost")


def test_throttled():
    """All of perfd has a tenth of a CPU, so that no other thread can read either; what is lost is counted, and it goes on."""
    rows, seen, _ = load(CPUS, lambda pids: None, throttles=True)
    equal(sum(seen["cpus"]) + seen["outbox"], sum(row.delivered for row in rows.values()), "samples that came, or are in gaps")
    print(f"  {all_lost(rows)} of {sum(row.occurred for row in rows.values())} lost, {seen['late']} late")


if __name__ == "__main__":
    perfd.main(globals(), 120)
