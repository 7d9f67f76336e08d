#!/usr/bin/python3
"""What forks of the host cost perfd: side records are written only while somebody needs them. Needs root.

It is seen without a clock: while perfd stands still, more forks than its small ring holds leave room for a call, or none.
"""
import os
import signal

import perfd
from perfd import Daemon, Workload, add, equal, pb

GETPPID = "syscalls:sys_enter_getppid"
CPUS = perfd.online_cpus()[-1:]
FORKS, CALLS = 2000, 10  # FORK and EXIT of each are more than a hundred bytes
SMALL = "version: 1\nrings: { size: 64KiB }\n"


def stopped(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as f:
            if f.read().rpartition(")")[2].split()[0] != "T":
                return False
    return True


def add_calls(control, calls, *more):
    """An event of the whole host, of which only the calls of this program pass."""
    add(control, {"event": GETPPID, "name": "calls", "filter": f"common_pid == {calls.pids[0]}"}, *more)


def lost_behind_forks(daemon, control, calls):
    """How many of the calls are lost that come behind the forks."""
    with Workload("forks", FORKS, cpus=CPUS) as forks:
        before = lost(control)
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            perfd.wait_until(lambda: stopped(daemon.pid), "perfd to stand still")
            forks.go()
            equal(forks.done(), [FORKS], "forks")
            calls.go()
            equal(calls.done(), [CALLS], "calls")
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        forks.exit()
    return lost(control) - before


def lost(control):
    rows = control.request(ledger=pb.LedgerRequest(events=["calls"])).ledger.events
    return sum(count.count for row in rows for count in row.lost)


def test_nobody_needs_to_know():
    """An event of the host: nothing without a subscriber, before the first and behind the last."""
    with Daemon(config=SMALL) as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as calls:
        add_calls(control, calls)
        equal(lost_behind_forks(daemon, control, calls), 0, "calls lost before anybody subscribes")
        with daemon.client(stream=True) as stream:
            stream.request(subscribe=pb.SubscribeRequest(events=["calls"], order=pb.ORDER_TIME, payload=pb.PAYLOAD_FIELDS))
            equal(lost_behind_forks(daemon, control, calls), CALLS, "calls lost while somebody is told of tasks")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "the end of the stream")
        equal(lost_behind_forks(daemon, control, calls), 0, "calls lost when nobody is subscribed any more")


def test_births():
    """Whose children inherit an event has to be known, also while it is disabled; when it is gone, no longer."""
    with Daemon(config=SMALL) as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as calls:
        add_calls(control, calls, {"event": GETPPID, "name": "own", "target": pb.Target(pids=[os.getpid()]), "disabled": True})
        equal(lost_behind_forks(daemon, control, calls), CALLS, "calls lost while births are followed")
        control.request(remove=pb.SelectRequest(names=["own"]))
        equal(lost_behind_forks(daemon, control, calls), 0, "calls lost when no child inherits anything")


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
