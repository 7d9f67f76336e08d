#!/usr/bin/python3
"""Software events that another tool, of any user and with another clock, has beside perfd: the kernel prepares one sample for
all of them, with the id and the time of the tool that came first."""
import mmap
import subprocess

import perfd
from checker import Checker
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb, wait_until
from test_promises import CPUS, SYS_ENTER

PAGES = 20_000
CALLS = 5_000
FAULTS = f"import mmap; m = mmap.mmap(-1, {PAGES} * {mmap.PAGESIZE}); m.madvise({mmap.MADV_NOHUGEPAGE}); " \
         f"[m.__setitem__(i * {mmap.PAGESIZE}, 1) for i in range({PAGES})]"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def reasons(row):
    return {count.reason: count.count for count in row.lost}


def faults_beside(daemon, *options, prefix=()):
    """All page faults of the host, while perf records those of a program; perfd's rows of them and of its rings."""
    with daemon.client() as client:
        add(client, {"event": "page-faults:u", "name": "faults"})
        with Subscriber(daemon, "--quiet", "--queue-bytes", str(1 << 26), "faults") as all_faults:
            ran = subprocess.run([*prefix, "perf", "record", "-q", "-c", "1", *options, "-e", "page-faults:u", "-o", "/dev/null", "--",
                                  "/usr/bin/python3", "-c", FAULTS], capture_output=True, text=True, check=False, timeout=60, cwd="/")
            equal(ran.returncode, 0, f"the status of perf, which said {ran.stderr}")
            wait_until(lambda: sum(row.delivered for row in daemon.ledger("faults").events) >= PAGES, "the faults")
            ledger = daemon.ledger()
            all_faults.finish()
        client.request(remove=pb.SelectRequest(names=["faults"]))
    return [row for row in ledger.events if row.name == "faults"], ledger.rings


def calls_come(daemon):
    """A stream in the order of time gets all of them, in order and now."""
    with daemon.client() as client, Workload("syscalls", CALLS, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 26) as checker:
            load.go()
            load.done()
            seen = checker.finish()
        rows = [row for row in daemon.ledger("calls").events]
        load.exit()
    equal(sum(row.delivered for row in rows), (CALLS + 1) * len(CPUS), f"delivered, of {rows}")
    equal(seen["items"] - seen["records"], (CALLS + 1) * len(CPUS), "samples that came")


def test_foreign_clock():
    """CLOCK_REALTIME is many years ahead of perfd's clock: nothing waits for that."""
    with Daemon() as daemon:
        rows, rings = faults_beside(daemon, "-k", "CLOCK_REALTIME", prefix=NOBODY)
        check(all(row.balanced for row in rows), f"not balanced: {rows}")
        check(sum(ring.foreign_times for ring in rings) > PAGES // 2, f"perf was not the first: the test shows nothing: {rings}")
        check("another tool's clock" in daemon.stderr(), "the log does not say it")
        calls_come(daemon)


def test_foreign_id():
    """perf has the whole host, and its id where perfd looks for its own."""
    with Daemon() as daemon:
        rows, rings = faults_beside(daemon, "-a", "-k", "CLOCK_MONOTONIC", "--sample-identifier")
        for row in rows:
            check(row.balanced, f"not balanced: {row}")
        equal([reasons(ring).get("unknown_id", 0) for ring in rings], [0] * len(rings), "samples of nobody")
        unwritten = sum(reasons(row).get("kernel_unwritten", 0) for row in rows)
        check(unwritten < PAGES // 100, f"{unwritten} faults without a record")
        calls_come(daemon)


if __name__ == "__main__":
    perfd.main(globals())
