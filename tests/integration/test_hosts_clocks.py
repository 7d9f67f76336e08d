#!/usr/bin/python3
"""Hosts whose wall clocks differ by a known amount, and one whose wall clock is set under a stream. The hosts are daemons of this
machine with wall-offset.c, so that one clock, which is the streams', knows what was really first. Needs root."""
import contextlib
import os
import random
import struct
import tempfile
import time

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from test_hosts import UNKNOWN, finish, rows, start, url
from test_perfctl import GETPPID

SHIM = os.path.join(perfd.BUILD, "tests", "integration", "libwall-offset.so")
GETPGID = "syscalls:sys_enter_getpgid"
CALLS = 300
PAUSE = 0.01  # s between two of them, at most
ERROR = 2_500_000  # ns: what both hosts say of their clocks
HOUR = 3_600_000_000_000
SEED = 4711


class Clock:
    """How far a wall clock is ahead, in ns."""

    def __init__(self, ahead):
        self.file = tempfile.NamedTemporaryFile(prefix="perfd-test.")
        self.set(ahead)

    def set(self, ahead):
        os.pwrite(self.file.fileno(), struct.pack("=q", ahead), 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


@contextlib.contextmanager
def host(ahead, event):
    """(daemon, clock) of one that traces a call of this process."""
    with Clock(ahead) as clock:
        with Daemon(env={**os.environ, "LD_PRELOAD": SHIM, "WALL_OFFSET": clock.file.name, "WALL_ERROR": str(ERROR // 1000)}) as daemon:
            with daemon.client() as control:
                add(control, {"event": event, "name": "calls", "target": pb.Target(pids=[os.getpid()])})
            yield daemon, clock


def watch_calls(daemons, calls):
    """What a watch of them prints while these functions are called, with pauses between them."""
    chance = random.Random(SEED)
    with tempfile.TemporaryFile("w+") as out:
        watch = start(daemons, out, "calls", "--json", "--hold", "1m")
        for call in calls:
            call()
            time.sleep(chance.random() * PAUSE)  # which is part of what is measured
        code, err = finish(watch)
        equal(code, 0, f"the status, {err!r}")
        out.seek(0)
        return rows(out.read())


def check_offset(items, names, ahead):
    """The wall times say how far one clock is ahead, by as much as the readings can be wrong."""
    readings = [next(row for row in items if row.get("host") == name and row["kind"] == "wall") for name in names]
    equal([(row["host_error"], row["synchronized"]) for row in readings], [(ERROR, True)] * 2, "what the hosts say of themselves")
    first, second = (row["wall"] - row["time"] for row in readings)
    bound = sum(row["error"] for row in readings)
    check(abs(second - first - ahead) <= bound, f"ahead by {second - first}, which is {ahead}, within {bound}")


def check_marks(samples, bound):
    """What is said to be certain was so; what is said not to be could be otherwise. Gives how many are certain, and how many go back."""
    n_certain, n_back, given = 0, 0, []
    for row in samples:
        others = [other for other in given if other["host"] != row["host"]]
        goes_back = any(other["time"] > row["time"] for other in others)
        if row["order_certain"]:
            check(not goes_back, f"certain, and another host's was later: {row}")
            n_certain += 1
        else:
            behind = row["wall"] - max(other["wall"] for other in others)
            check(behind <= 2 * (ERROR + bound), f"not certain, and {behind} ns behind: {row}")
        n_back += goes_back
        given.append(row)
    return n_certain, n_back


def test_ahead():
    """By less than the hosts say that they can be wrong: the order is that of wall time, and where it is not the true one, it is marked."""
    ahead = 2_000_000
    with host(0, GETPPID) as (first, _), host(ahead, GETPGID) as (second, _):
        chance = random.Random(SEED)
        calls = [chance.choice((os.getppid, lambda: os.getpgid(0))) for _ in range(CALLS)]
        items = watch_calls([first, second], calls)
        names = [url(first), url(second)]
        check_offset(items, names, ahead)
        samples = [row for row in items if row["kind"] == "sample"]
        equal([sum(row["host"] == name for row in samples) for name in names],
              [calls.count(os.getppid), CALLS - calls.count(os.getppid)], "samples")
        walls = [row["wall"] for row in samples]
        equal(walls, sorted(walls), "the order of wall time")
        n_certain, n_back = check_marks(samples, max(row["error"] for row in items if row["kind"] == "wall"))
        check(n_certain > 0 and n_back > 0, f"{n_certain} of {CALLS} are certain, {n_back} go back: the test shows nothing")
        check(max(row.get("host_error", UNKNOWN) for row in items if row["kind"] == "wall") == ERROR, "another error")


def test_an_hour_behind():
    """Clocks that are more wrong than they say: the order is that of their wall times all the same, and nothing waits for ever."""
    with host(0, GETPPID) as (first, _), host(-HOUR, GETPGID) as (second, _):
        items = watch_calls([first, second], [os.getppid, lambda: os.getpgid(0)] * 20)
        check_offset(items, [url(first), url(second)], -HOUR)
        samples = [row for row in items if row["kind"] == "sample"]
        equal([row["host"] for row in samples], [url(second)] * 20 + [url(first)] * 20, "the hosts in the order of wall time")
        by_clock = sorted(samples, key=lambda row: row["time"])
        equal([row["host"] for row in by_clock], [url(first), url(second)] * 20, "the hosts in the true order")


def count_samples(out):
    return os.pread(out.fileno(), 1 << 24, 0).count(b'"kind":"sample"')


def test_set():
    """Forward and back by an hour under a stream: the order by its clock is untouched, the bound of each wall time contains the truth,
    and readings say between which times it was set."""
    with host(0, GETPPID) as (daemon, clock), host(0, GETPGID) as (other, _), tempfile.TemporaryFile("w+") as out:
        watch = start([daemon, other], out, "calls", "--json", "--hold", "100ms")
        seen, calls, sets = 0, [], []
        for step in (0, HOUR, 0, -HOUR, 0):
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            clock.set(step)
            sets.append((before, time.clock_gettime_ns(time.CLOCK_MONOTONIC)))
            for _ in range(10):
                begin = time.time_ns()
                os.getppid()
                calls.append((begin + step, time.time_ns() + step))
            seen += 10
            wait_until(lambda n=seen: count_samples(out) >= n, "the samples")
        code, err = finish(watch)
        equal(code, 0, f"the status, {err!r}")
        out.seek(0)
        items = [row for row in rows(out.read()) if row.get("host") == url(daemon)]
    samples = [row for row in items if row["kind"] == "sample"]
    times = [row["time"] for row in samples]
    equal(times, sorted(times), "the order of the stream's clock")
    error = 0
    for row, (before, after) in zip_readings(items, calls):
        error = max(error, row["error"])
        check(before - error <= row["wall"] <= after + error, f"a call between {before} and {after} was at {row['wall']}, within {error}")
    readings = [row for row in items if row["kind"] == "wall" and "since" in row]
    equal(len(readings), 4, "readings behind a wall clock that was set")
    for row, (before, after) in zip(readings, sets[1:]):
        check(row["since"] < after and before < row["time"], f"set from {before} to {after}, said: {row}")


def zip_readings(items, calls):
    """Each sample, with the error of the reading before it, beside its call."""
    error, remaining = 0, iter(calls)
    for row in items:
        error = row["error"] if row["kind"] == "wall" else error
        if row["kind"] == "sample":
            yield {**row, "error": error}, next(remaining)


if __name__ == "__main__":
    perfd.main(globals())
