#!/usr/bin/python3
"""What wall time was when something happened: each stream's readings of it, against what programs that make calls see themselves. That
it is set under a stream is tests/vm/test_wall_set.py's: this host's clock is not ours. Needs root."""
import ctypes
import json
import os
import select
import subprocess
import time

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from test_control import PERFCTL
from test_perfctl import GETPPID

LIBC = ctypes.CDLL(None, use_errno=True)
AGE = 10_000_000_000  # ns after which an item comes behind a new reading
CLOCKS = "monotonic", "monotonic-raw"  # the kernel stamps tracepoints with no other: perf_event_open(2)


def call():
    """(before, after): wall time around one call."""
    before = time.time_ns()
    os.getppid()
    return before, time.time_ns()


def watched(client, **options):
    """A stream of this process's calls, and its own readings: a list that grows."""
    add(client, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()]), **options})


def follow(daemon, latency=1_000_000, order=pb.ORDER_TIME):
    stream = daemon.client(stream=True)
    items = stream.subscribe(events=["calls"], latency=latency, order=order)
    return stream, items


def check_calls(stream, items, calls):
    for before, after in calls:
        wall, error = stream.stream.wall(next(items)["time"])
        check(before - error <= wall <= after + error, f"a call between {before} and {after} was at {wall}, within {error}")
        check(error < 1_000_000, f"an error of {error} ns: nobody has set the clock")


def test_calls():
    """On each clock, in each order: the wall time of a call is within what the caller saw, by the error that is said."""
    for clock in CLOCKS:
        with Daemon(config=f"version: 1\nclock: {clock}\n") as daemon, daemon.client() as client:
            watched(client)
            for order in pb.ORDER_TIME, pb.ORDER_CPU:
                stream, items = follow(daemon, order=order)
                with stream:
                    check_calls(stream, items, [call() for _ in range(50)])
                    stream.stop()
                    equal(list(items), [], "items behind the last call")


def test_before_anything_happens():
    """A stream begins with a reading; the host's own error and whether it is synchronised are the kernel's words."""
    with Daemon() as daemon, daemon.client() as client:
        watched(client)
        before = time.time_ns()
        stream, items = follow(daemon)
        with stream:
            calls = [call()]
            check_calls(stream, items, calls)
            kept = stream.stream.walls.kept
            equal(len(kept), 1, "times that it was set")
            check(before - AGE <= kept[0].reading.wall <= calls[0][0], f"{before}, {kept[0].reading.wall}, {calls}")
            error, synchronized = adjustment()
            equal((kept[0].reading.host_error > 0, kept[0].reading.synchronized), (error > 0, synchronized), "the kernel's words")


def adjustment():
    """(maxerror in us, synchronised) of adjtimex(2)."""
    class Timex(ctypes.Structure):  # pylint: disable=too-few-public-methods
        _fields_ = [("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
                    ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("rest", ctypes.c_long * 64)]
    timex = Timex()
    state = LIBC.adjtimex(ctypes.byref(timex))
    check(state >= 0, "adjtimex")
    return timex.maxerror, state != 5 and not timex.status & 0x40


def test_age():
    """Behind 10 s the next item has a new reading before it, and nothing comes as long as there is no item."""
    with Daemon() as daemon, daemon.client() as client:
        watched(client)
        stream, items = follow(daemon)
        with stream:
            check_calls(stream, items, [call()])
            first = stream.stream.walls.kept[0].reading
            # what is tested is that this time passes without a packet
            equal(select.select([stream], [], [], AGE / 1e9 + 0.5)[0], [], "what a quiet stream brings")
            equal(stream.stream.walls.kept[0].reading.time, first.time, "readings without an item")
            check_calls(stream, items, [call()])
            equal(len(stream.stream.walls.kept), 1, "times that it was set")
            check(stream.stream.walls.kept[0].reading.time >= first.time + AGE, "no reading behind 10 s")


def test_watch():
    """perfctl says it of each line, as text and as JSON."""
    with Daemon() as daemon, daemon.client() as client:
        watched(client)
        with subprocess.Popen([PERFCTL, "--socket", daemon.stream, "watch", "calls", "--json", "--count", "1"], text=True,
                              stdout=subprocess.PIPE) as watch:
            wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
            before, after = call()
            out = watch.communicate(timeout=perfd.PATIENCE)[0]
        equal(watch.returncode, 0, "status of watch")
        rows = [json.loads(line) for line in out.splitlines()]
        equal([row["kind"] for row in rows[:3]], ["start", "wall", "sample"], "the first lines")
        reading, sample = rows[1:3]
        check(before - reading["error"] <= sample["wall"] <= after + reading["error"], f"{before}, {sample['wall']}, {after}")
        equal(sample["wall"] - sample["time"], reading["wall"] - reading["time"], "wall time and clock of the sample, and of the reading")


if __name__ == "__main__":
    perfd.main(globals())
