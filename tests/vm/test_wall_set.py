#!/usr/bin/python3
"""Wall time is set under streams, forward and back, by much and by little: the machine's clock is ours to set. What streams say of the
wall time of calls is what the caller saw; their order is untouched; and quiet streams hear of it at once."""
import os
import random
import select
import time

import perfd
from perfd import Daemon, add, check, equal, pb
from test_perfctl import GETPPID

SECOND = 1_000_000_000
STEPS = [3600 * SECOND, -3600 * SECOND, 30 * SECOND, -SECOND, SECOND // 100, -SECOND // 100, 86400 * SECOND, -86400 * SECOND]
SEED = 1729


def set_by(step):
    """(before, after): the stream's clock around it."""
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + step)
    return before, time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def call():
    before = time.time_ns()
    os.getppid()
    return before, time.time_ns()


def check_walls(stream, items, calls):
    """By how much an error was ever."""
    most = 0
    for before, after in calls:
        item = next(items)
        wall, error = stream.wall(item["time"])
        check(before - error <= wall <= after + error, f"a call between {before} and {after} was at {wall}, within {error}")
        most = max(most, error)
    return most


def test_set_under_calls():
    """Calls without a pause, and steps among them, at any place between two readings of a stream; by time and by CPU."""
    chance = random.Random(SEED)
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])})
        for order in pb.ORDER_TIME, pb.ORDER_CPU:
            with daemon.client(stream=True) as client:
                items = client.subscribe(events=["calls"], latency=20_000_000, order=order)
                calls = []
                for step in STEPS:
                    calls += [call() for _ in range(chance.randrange(40))]
                    set_by(step)
                    calls += [call() for _ in range(chance.randrange(40))]
                    check_walls(client.stream, items, calls)
                    calls = []
                client.stop()
                equal(list(items), [], "items behind the last call")
                equal(client.end["reason"], "stopped", "how it ended")


def test_quiet_streams():
    """The kernel tells perfd, and perfd each stream: between which times of its clock, and what it is now."""
    with Daemon() as daemon, daemon.client() as control, daemon.client(stream=True) as client:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])})
        items = client.subscribe(events=["calls"])
        check_walls(client.stream, items, [call()])
        for step in STEPS:
            n = client.stream.walls.kept[-1].reading.time
            before, after = set_by(step)
            check(select.select([client], [], [], perfd.PATIENCE)[0], f"nothing is said of {step} ns")
            equal(list(client.stream.take(client.receive().packet)), [], "items of a quiet stream")
            kept = client.stream.walls.kept[-1]
            check(n <= kept.since < after and before < kept.set, f"set at {before} to {after}, said: {kept}")
            wall, error = client.stream.wall(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
            check(abs(time.time_ns() - wall) < SECOND + error, f"now {time.time_ns()}, said: {wall}")
            check(check_walls(client.stream, items, [call()]) < SECOND // 100, "an error as if it had just been set")
        client.stop()
        equal(list(items), [], "items behind the last call")


if __name__ == "__main__":
    perfd.main(globals())
