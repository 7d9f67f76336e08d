#!/usr/bin/python3
"""A CPU goes, and comes back, while the thread of its reader is stopped by a debugger: perfd waits for that thread for a bounded
time, goes on without it, and has lost nothing of what was there before when the thread ends."""
import os
import signal

import perfd
from checker import Checker
from perfd import Daemon, Workload, add, check, equal, pb
from test_failover import failovers
from test_hotplug import CPU, switch
from test_placement import threads_of
from test_promises import GETPPID as GETPPID_NUMBER, SYS_ENTER
from test_stalled import GETPPID, answers_again, call, reap, rows, stalled, stopped, stopped_thread, unjoined

OTHER = 0


def said(daemon, text):
    return daemon.stderr().count(text)


def wait_for(daemon, word, n=1):
    perfd.wait_until(lambda: said(daemon, f"CPU {CPU} {word}") == n, f"CPU {CPU} {word}, {n} times")


def is_left_out(daemon):
    perfd.wait_until(lambda: stalled(daemon) == {CPU}, "the CPU is left out")


def sent(daemon):
    """Items of each stream."""
    return [row.sent for row in daemon.ledger().subscribers]


def test_gone_under_load():
    """A backup reads all that the CPU has written, under load, and does all but to end in the place of the thread."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 2000, cpus=[OTHER, CPU]) as load:
        calls = f"id == {GETPPID_NUMBER} && (common_pid == {load.pids[0]} || common_pid == {load.pids[1]})"
        add(client, {"event": SYS_ENTER, "name": "host", "filter": calls})
        try:
            with Checker(daemon, "time", "host", queue=1 << 26) as by_time, Checker(daemon, "cpu", "host", queue=1 << 26) as by_cpu:
                with stopped_thread(daemon, f"reader-{CPU}"):
                    load.go()
                    perfd.wait_until(lambda: failovers(daemon) > 0 and rows(daemon, "host")[CPU].occurred > 100, "a backup reads")
                    switch(False)
                    is_left_out(daemon)
                    row = rows(daemon, "host")[OTHER]
                    equal((row.balanced, row.exact), (True, True), "the row of the CPU that is there")
                    before = sent(daemon)
                    perfd.wait_until(lambda: min(sent(daemon)) > max(before) + 100, "both streams go on")
                answers_again(daemon)
                perfd.wait_until(lambda: f"reader-{CPU}" not in threads_of(daemon), "the thread ends")
                counts = load.done(stop=True)
                # who emulates this machine may keep a CPU from running for longer than the guard: what is late then is counted
                seen = {"time": by_time.finish_whatever_came_late(), "cpu": by_cpu.finish()}
            found = rows(daemon, "host")
        finally:
            switch(True)
        wait_for(daemon, "came online")
        load.exit()
    print(f"  {seen['time']['late']} items came too late")
    equal({order: of["items"] + of["late"] for order, of in seen.items()}, dict.fromkeys(seen, sum(counts)), "items of streams, and calls made")
    equal(sum(row.occurred for row in found.values()), sum(counts), "occurrences, and calls made")
    equal([(row.balanced, row.exact) for row in found.values()], [(True, True)] * 2, "rows")


def test_back_before_it_ends():
    """The CPU is back while the old thread still stands there: it is observed again when that has ended, and the ledger says so."""
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()], no_inherit=True)})
        daemon.status()
        fds = daemon.fds()
        try:
            with perfd.Subscriber(daemon, "--quiet", "--order", "cpu", "calls") as subscriber:
                with stopped_thread(daemon, f"reader-{CPU}") as tid:
                    call(CPU, 300)
                    switch(False)
                    is_left_out(daemon)
                    check(f"(reader-{CPU}, tid {tid}) has not responded" in daemon.stderr() and "asked to end" in daemon.stderr(),
                          daemon.stderr())
                    switch(True)
                    call(CPU, 70)  # which nobody sees
                    call(OTHER, 500)
                    equal(rows(daemon, "calls")[OTHER].occurred, 500, "calls on the CPU whose reader goes on")
                    equal((stalled(daemon), said(daemon, f"CPU {CPU} came online")), ({CPU}, 0), "while the thread stands")
                wait_for(daemon, "came online")
                equal(stalled(daemon), set(), "CPUs whose reader does not answer")
                call(CPU, 200)
                found = [row for row in subscriber.finish() if row["kind"] == "event"]
        finally:
            switch(True)
        row = rows(daemon, "calls")
        equal((row[CPU].occurred, row[CPU].balanced, row[CPU].exact), (500, True, False), "of the CPU that was away")
        equal((row[OTHER].occurred, row[OTHER].balanced, row[OTHER].exact), (500, True, True), "of the other one")
        equal(sum(row["delivered"] for row in found), 1000, "of the stream")
        perfd.wait_until(lambda: daemon.fds() == fds, "nothing is left of the old thread")


def test_away_while_stalled():
    """Its reader, in the middle of its work, is known not to answer when the CPU goes and comes back."""
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()], no_inherit=True)})
        try:
            with perfd.Subscriber(daemon, "--quiet", "--order", "cpu", "calls") as subscriber:
                with stopped(daemon, CPU):
                    call(CPU, 300)
                    rows(daemon, "calls")  # waits for it, in vain
                    equal(stalled(daemon), {CPU}, "CPUs whose reader does not answer")
                    switch(False)
                    wait_for(daemon, "went offline")
                    add(control, {"event": GETPPID, "name": "comes", "target": pb.Target(pids=[os.getpid()], no_inherit=True)})
                    call(OTHER, 500)
                    equal(rows(daemon, "comes")[OTHER].occurred, 500, "an event that comes meanwhile")
                    switch(True)
                    call(CPU, 100)  # events of tasks are still there
                wait_for(daemon, "came online")
                call(CPU, 200)
                found = [row for row in subscriber.finish() if row["kind"] == "event"]
        finally:
            switch(True)
        row = rows(daemon, "calls")
        equal((row[CPU].occurred, row[CPU].balanced, row[CPU].exact), (600, True, False), "of the CPU that was away")
        equal((row[OTHER].occurred, row[OTHER].balanced, row[OTHER].exact), (500, True, True), "of the other one")
        equal(sum(row["delivered"] for row in found), 1100, "of the stream")
        row = rows(daemon, "comes")[CPU]
        equal((row.occurred, row.balanced, row.exact), (200, True, False), "of the event that came meanwhile")


def end_while_it_stands(waits):
    with Daemon(env=unjoined()) as daemon, daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls"})
        try:
            with stopped_thread(daemon, f"reader-{CPU}") as tid:
                switch(False)
                if waits:
                    is_left_out(daemon)
                os.kill(daemon.pid, signal.SIGTERM)
                reap(tid)
                daemon.stop()
                check("exits while a reader does not respond" in daemon.stderr(), daemon.stderr())
        finally:
            switch(True)


def test_end_meanwhile():
    """SIGTERM while main may wait for the thread's end, and when it does not any more: perfd ends without it."""
    for waits in (False, True):
        end_while_it_stands(waits)


if __name__ == "__main__":
    perfd.main(globals(), seconds=150)
