#!/usr/bin/python3
"""What `latency` buys and costs: the first sample after quiet comes soon, for so many wakeups, and only as long as somebody
asks for it and something is enabled. How short it gets under load is measured by the benchmarks, not here."""
import os
import select
import statistics
import time

import perfd
from perfd import Daemon, Workload, add, check, pb, refused
from test_promises import CPUS, SLOW

GETPPID = "syscalls:sys_enter_getppid"
MSEC = 1_000_000


def wakeups(daemon):
    """Of all readers since their start."""
    n = 0
    for tid in os.listdir(f"/proc/{daemon.pid}/task"):
        with open(f"/proc/{daemon.pid}/task/{tid}/status", encoding="utf-8") as f:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        if lines["Name"].startswith("reader"):
            n += int(lines["voluntary_ctxt_switches"])
    return n


def wakeups_of_a_second(daemon):
    before, began = wakeups(daemon), time.monotonic()
    select.select([], [], [], 1)
    return (wakeups(daemon) - before) / (time.monotonic() - began)


def test_refused():
    with Daemon() as daemon, daemon.client(stream=True) as client:
        refused(client, "bad-latency", "STATUS_INVALID", subscribe=pb.SubscribeRequest(latency=99_999))
    with Daemon(config="version: 1\nsubscribers: {latency: 2ms}\n") as daemon, daemon.client(stream=True) as client:
        no = refused(client, "bad-latency", "STATUS_INVALID", subscribe=pb.SubscribeRequest(latency=2 * MSEC - 1))
        check("2000000 ns" in no.message, f"it does not say what is allowed: {no.message}")
        client.subscribe(latency=2 * MSEC)


def test_price():
    """Readers wake as often as was asked for, on every CPU where the event is enabled, and then no more."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 1, cpus=CPUS) as load:
        event, = add(client, {"event": GETPPID, "target": pb.Target(pids=load.pids)})
        with daemon.client(stream=True) as stream:
            items = stream.subscribe(latency=2 * MSEC)
            # those of a second; where nobody asks for them, and nothing happens, they take 64 s
            before, began = wakeups(daemon), time.monotonic()
            perfd.wait_until(lambda: wakeups(daemon) - before > 500 * len(CPUS), "the readers to wake every 2 ms", 30)
            n = (wakeups(daemon) - before) / (time.monotonic() - began)
            check(n < 650 * len(CPUS) or SLOW, f"{n:.0f} wakeups of {len(CPUS)} readers a second for a latency of 2 ms")
            client.request(disable=pb.SelectRequest(names=[event.name]))
            n = wakeups_of_a_second(daemon)
            check(n < 20 * len(CPUS), f"{n:.0f} wakeups a second with a latency and nothing enabled")
            client.request(enable=pb.SelectRequest(names=[event.name]))
            stream.stop()
            list(items)
        perfd.wait_until(lambda: wakeups_of_a_second(daemon) < 250 * len(CPUS), "the readers to be as before")


def test_first_sample_after_quiet():
    """Samples 100 ms apart, each the first one after quiet; without `latency` they wait for 50 ms and more."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 10, cpus=CPUS[:1]) as load:
        add(client, {"event": GETPPID, "target": pb.Target(pids=load.pids)})
        with daemon.client(stream=True) as stream:
            waits = []
            items = stream.subscribe(events=[GETPPID], latency=MSEC)
            load.go()
            for item in items:
                waits.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - item["time"]) / MSEC)
                if len(waits) == 15:
                    break
            stream.stop()
            list(items)
        load.done(stop=True)
        load.exit()
    most = statistics.median(waits)
    check(most < (100 if SLOW else 25), f"half of the samples came later than {most:.1f} ms")


if __name__ == "__main__":
    perfd.main(globals())
