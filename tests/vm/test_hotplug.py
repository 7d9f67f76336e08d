#!/usr/bin/python3
"""A CPU goes and comes back under load, 20 times: no sample of what runs is lost, none counted that was not there, and
nothing is left of the CPU while it is gone."""
import os
import signal
import subprocess
import time

import perfd
from perfd import Daemon, Workload, add, check, equal, pb
from test_lives import drown_words
from checker import Checker
from test_promises import GETPPID, SYS_ENTER, rows_of

ROUNDS = 20
EVENTS = 200
CPU = 1
ONLINE = f"/sys/devices/system/cpu/cpu{CPU}/online"


def switch(online):
    with open(ONLINE, "w", encoding="ascii") as f:
        f.write(str(int(online)))


def wait_for(daemon, word, n):
    """Until perfd has said for the n-th time that it is done with it."""
    perfd.wait_until(lambda: daemon.stderr().count(f"CPU {CPU} {word}") == n, f"CPU {CPU} {word}, {n} times")
    return daemon.status()


def test_hotplug_under_load():
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 2000, cpus=[0, CPU]) as load:
        calls = f"id == {GETPPID} && (common_pid == {load.pids[0]} || common_pid == {load.pids[1]})"
        add(client, {"event": SYS_ENTER, "name": "host", "filter": calls},
            {"event": SYS_ENTER, "name": "process", "filter": f"id == {GETPPID}", "target": pb.Target(pids=load.pids)},
            {"event": SYS_ENTER, "name": "there", "filter": calls, "target": pb.Target(cpus=str(CPU))},
            {"event": "sched:sched_switch"})
        n_fds, before = daemon.status().n_fds, daemon.fds()
        equal(n_fds, 2 * (1 + 1 + 2 + 1) + 1, "perf fds: carrier, host, two processes, switches; there")
        try:
            with Checker(daemon, "time", "host", queue=1 << 26) as host, \
                 Checker(daemon, "time", "process", queue=1 << 26) as process, \
                 Checker(daemon, "cpu", "there", queue=1 << 26) as there:
                load.go()
                for i in range(ROUNDS):
                    n = rows_of(daemon.ledger(), "there")[CPU].occurred
                    perfd.wait_until(lambda n=n: rows_of(daemon.ledger(), "there")[CPU].occurred > n + 20, "calls there")
                    switch(False)
                    equal(wait_for(daemon, "went offline", i + 1).n_fds, n_fds // 2, "perf fds without the CPU")
                    # the kernel has let its load run elsewhere: it may come back when there is someone to see it
                    os.sched_setaffinity(load.pids[1], [0])
                    check(rows_of(daemon.ledger(), "there")[CPU].occurred > n, "the row of a CPU that is gone")
                    switch(True)
                    equal(wait_for(daemon, "came online", i + 1).n_fds, n_fds, "perf fds with the CPU")
                    os.sched_setaffinity(load.pids[1], [CPU])
                counts = load.done(stop=True)
                seen = {"host": host.finish(), "process": process.finish(), "there": there.finish()}
            ledger = daemon.ledger()
            rows = {name: rows_of(ledger, name) for name in seen}
        finally:
            switch(True)
        perfd.wait_until(lambda: daemon.status().n_closing == 0, "what traces nothing any more to be closed")
        after = daemon.fds()
        equal({fd: after.count(fd) for fd in after}, {fd: before.count(fd) for fd in before}, "file descriptors")
        load.exit()
    for name in ("host", "process"):
        equal(seen[name]["items"], sum(counts), f"items of {name} and calls made")
        equal(sum(row.occurred for row in rows[name].values()), sum(counts), f"occurrences of {name} and calls made")
    equal(seen["there"]["items"], rows["there"][CPU].delivered, f"items of CPU {CPU}")
    equal(rows["there"][CPU].occurred, rows["host"][CPU].occurred, f"calls on CPU {CPU}, and those of the host there")


def test_many_events_come_back_at_once():
    """A CPU that is back gets all events in a few turns of the other readers, not in two for each."""
    def turns():
        return next(cpu.n_wakeups for cpu in daemon.status().cpus if cpu.cpu == 0)

    with Daemon() as daemon, daemon.client() as client:
        add(client, *({"event": "sched:sched_process_exec", "name": f"exec-{i}"} for i in range(EVENTS)))
        n_fds = daemon.status().n_fds
        try:
            switch(False)
            wait_for(daemon, "went offline", 1)
            before, begin = turns(), time.monotonic()
            switch(True)
            equal(wait_for(daemon, "came online", 1).n_fds, n_fds, "perf fds with the CPU")
            seconds, n = time.monotonic() - begin, turns() - before
        finally:
            switch(True)
        subprocess.run(["taskset", "-c", str(CPU), "/bin/true"], check=True)
        seen = [row.occurred for row in daemon.ledger().events if row.cpu == CPU and row.name.startswith("exec-")]
    print(f"  {EVENTS} events came back in {seconds:.1f} s and {n} turns")
    check(n < EVENTS / 2, f"{n} wakeups of the other CPU's reader for {EVENTS} events")
    check(len(seen) == EVENTS and min(seen) >= 1, f"events that see nothing on the CPU: {seen}")


def test_words_that_are_lost():
    """A CPU goes and comes back while perfd cannot hear, and so many other words follow that those of it are lost."""
    for is_active in (True, False):
        with Daemon() as daemon, daemon.client() as client:
            add(client, {"event": "sched:sched_process_exec", "name": "exec", "disabled": not is_active})
            os.kill(daemon.pid, signal.SIGSTOP)
            try:
                drown_words()
                switch(False)
                switch(True)
            finally:
                os.kill(daemon.pid, signal.SIGCONT)
            wait_for(daemon, "came online", 1)
            equal(daemon.stderr().count("were lost: perfd checks each"), 1, "what is said of lost words")
            client.request(enable=pb.SelectRequest(names=["exec"]))
            n = rows_of(daemon.ledger(), "exec")[CPU].occurred
            subprocess.run(["taskset", "-c", str(CPU), "/bin/true"], check=True)
            check(rows_of(daemon.ledger(), "exec")[CPU].occurred > n, "nothing is seen on the CPU that was away")


if __name__ == "__main__":
    perfd.main(globals(), seconds=180)
