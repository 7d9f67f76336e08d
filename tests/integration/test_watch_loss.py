#!/usr/bin/python3
"""`perfctl watch` says what it does not show, with a status of its own: a ring that is too small for what comes while perfd
stands still, and a reader of its output that does not read. Needs root."""
import contextlib
import json
import os
import re
import signal

import perfd
from perfd import Daemon, Workload, add, check, equal, pb
from test_closing import watch_rows
from test_perfctl import GETPPID, start
from test_promises import CPUS

CALLS = 50_000
SMALL = "version: 1\nrings: { size: 64KiB }\n"


@contextlib.contextmanager
def stopped(daemon):
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def watch(daemon, load, *options, standstill=False):
    """All calls of the load, before it is stopped as by Ctrl-C. What the process says, and its status."""
    process = start(daemon, "watch", "calls", *options)
    perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
    with stopped(daemon) if standstill else contextlib.nullcontext():
        load.go()
        load.done()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=perfd.PATIENCE)
    return out, err, process.returncode


def begin(client, load):
    add(client, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})


def check_ring(*options, status):
    """Each call is printed, or said to be lost in the ring, in JSON and in words; side records that were lost are told apart."""
    with Daemon(config=SMALL) as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load:
        begin(control, load)
        out, err, code = watch(daemon, load, "--json", *options, standstill=True)
        items, end, _ = watch_rows(out)
        calls = sum(load.counts)
        lost = end["lost"]["kernel_ring"]
        check(0 < lost < calls, f"{lost} of {calls} calls are lost")
        equal(len(items) + lost, calls, f"calls, with {end}")
        check(set(end["lost"]) <= {"kernel_ring", "side_records"}, end)
        equal(code, status, f"the status with {end['lost']}, {err!r}")
        check(re.search(rf"\b{lost}\b", err) and "kernel_ring" in err, f"what is said of {lost} lost samples: {err!r}")
        load.exit()


def test_ring_too_small():
    check_ring(status=4)


def test_ring_too_small_and_allowed():
    check_ring("--allow-loss", status=0)


def test_nothing_lost():
    with Daemon() as daemon, daemon.client() as control, Workload("syscalls", 1000, cpus=CPUS) as load:
        begin(control, load)
        out, err, code = watch(daemon, load)
        calls = sum(load.counts)
        equal(code, 0, f"the status, with {err!r}")
        check(f"{calls}" in err and "nothing lost" in err, f"its last line: {err!r}")
        equal(len(err.split("\n")), 3, f"lines on stderr, behind that of Ctrl-C: {err!r}")
        check(out.count("calls") >= calls, "the lines of the samples")
        load.exit()


def test_output_that_nobody_reads():
    """What did not fit into the queue while the pipe was full is said, and is what is missing."""
    with Daemon() as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load:
        begin(control, load)
        process = start(daemon, "watch", "calls", "--json", "--queue", "64KiB")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        load.go()
        load.done()
        perfd.wait_until(lambda: sum(count.count for count in daemon.ledger().subscribers[0].dropped) > 0, "a gap")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=perfd.PATIENCE)
        items, end, _ = watch_rows(out)
        calls = sum(load.counts)
        check(end["lost"]["outbox"] > 0, end)
        equal(len(items) + sum(end["lost"].values()), calls, f"calls, with {end}")
        equal(process.returncode, 4, f"the status, with {err!r}")
        check("outbox" in err, f"what is said on stderr: {err!r}")
        load.exit()


if __name__ == "__main__":
    perfd.main(globals())
