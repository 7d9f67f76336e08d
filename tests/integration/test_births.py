#!/usr/bin/python3
"""Children that are born while an inherited event changes: the row says that it is not exact where one may have been passed
by, and is exact where none can have been. Needs root."""
import ctypes
import mmap
import os
import re
import select
import sys

import perfd
from asleep import wait_until_asleep
from perfd import Daemon, add, check, equal, pb

EVENT, BIG = "syscalls:sys_enter_getppid", 512 << 20
CALLS = 500


def births(n=None):
    """Forks that take a while, as of each page there is something to do: n of them, or until stdin ends."""
    memory = mmap.mmap(-1, BIG)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, BIG, mmap.PAGESIZE):
        memory[at] = 1
    print("ready", flush=True)
    done = 0
    while done < n if n is not None else not select.select([sys.stdin], [], [], 0)[0]:
        pid = os.fork()
        if pid == 0:
            os.getppid()
            os._exit(0)
        os.waitpid(pid, 0)
        done += 1


def parent():
    """Starts, on "family", a child that forks on "births" until its stdin ends, and waits in between."""
    print(os.getpid(), flush=True)
    while sys.stdin.readline().strip() == "family":
        if os.fork() == 0:
            print("asleep", os.getpid(), flush=True)
            word = sys.stdin.readline().strip()
            if word:
                births(5 if word == "few" else None)
            os._exit(0)
        os.wait()
        print("over", flush=True)


def crowd():
    """Children that run at the same time, each of which calls a function of libc; the parent too, before that."""
    call = ctypes.CDLL(None).getppid
    print(os.getpid(), flush=True)
    while n := int(sys.stdin.readline() or 0):
        for _ in range(CALLS):
            call()
        for _ in range(n - 1):
            if os.fork() == 0:
                for _ in range(CALLS):
                    call()
                os._exit(0)
        for _ in range(n - 1):
            os.wait()
        print("over", flush=True)


def libc():
    with open("/proc/self/maps", encoding="ascii") as f:
        return next(line.split()[-1] for line in f if re.search(r"/libc\.so", line))


def test_probe_on_children():
    """Linux loses hits of a user probe that children have inherited, if they run at the same time: then the rows are not exact."""
    command = [sys.executable, os.path.abspath(__file__), "crowd"]
    with Daemon(config="version: 1\n") as daemon, daemon.client() as control, perfd.Line(command) as line:
        pid = int(line.hear()[0])
        probe = f"uprobe:{libc()}:getppid"
        add(control, {"event": probe, "name": "calls", "target": pb.Target(pids=[pid])})
        add(control, {"event": probe, "name": "alone", "target": pb.Target(pids=[pid], no_inherit=True)})
        for n, is_exact in (1, True), (20, False):
            line.say(str(n))
            equal(line.hear(), ["over"], "the crowd")
            rows = daemon.ledger("calls").events
            check(all(row.balanced and row.exact == is_exact for row in rows), f"behind {n}: {rows}")
            print(f"  {n} of them: {sum(row.occurred for row in rows)} calls")
        rows = daemon.ledger("alone").events
        check(all(row.balanced and row.exact for row in rows), f"without children: {rows}")
        equal(sum(row.occurred for row in rows), 2 * CALLS, "calls of the parent")


def family():
    return perfd.Line([sys.executable, os.path.abspath(__file__), "parent"])


def exact(daemon):
    return all(row.exact for row in daemon.ledger("calls").events)


def switch(control):
    control.request(disable=pb.SelectRequest(names=["calls"]))
    control.request(enable=pb.SelectRequest(names=["calls"]))


def begin(daemon, control, line):
    """Both sleep behind it: of a task that runs nobody knows whether it is in the middle of a fork."""
    own = int(line.hear()[0])
    add(control, {"event": EVENT, "name": "calls", "target": pb.Target(pids=[own])})
    line.say("family")
    word, child = line.hear()
    equal(word, "asleep", "the child")
    for pid in own, int(child):
        wait_until_asleep(pid)
    check(exact(daemon), "an event that nobody has changed is not exact")


def test_asleep():
    """A child that waited during the changes, and has children of its own afterwards: nothing can have been missed."""
    with Daemon(config="version: 1\n") as daemon, daemon.client() as control, family() as line:
        begin(daemon, control, line)
        for _ in range(10):
            switch(control)
        line.say("few")
        equal(line.hear(), ["ready"], "the child")
        equal(line.hear(), ["over"], "the child")
        rows = daemon.ledger("calls").events
        equal(sum(row.occurred for row in rows), 5, "calls of five children")
        check(exact(daemon), f"no birth met a change: {rows}")


def test_in_a_fork():
    """
    A child whose forks take long is in the middle of one when the event changes: what is to be said is said. Nothing ties the
    changes to the forks, so that sooner or later one meets the other.
    """
    with Daemon(config="version: 1\n") as daemon, daemon.client() as control, family() as line:
        begin(daemon, control, line)
        line.say("births")
        equal(line.hear(), ["ready"], "the child")

        def is_noticed():
            switch(control)
            return not exact(daemon)

        perfd.wait_until(is_noticed, "rows that are not exact, of an event that changes beside forks")
        for row in daemon.ledger("calls").events:
            check(row.balanced, f"not balanced: {row}")


if __name__ == "__main__":
    if sys.argv[1:] in (["parent"], ["crowd"]):
        sys.exit(globals()[sys.argv[1]]())
    perfd.need_root()
    perfd.main(globals())
