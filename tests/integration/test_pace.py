#!/usr/bin/python3
"""Subscribers in shared memory that look by themselves while something comes at every tick: nothing is missed, nothing is
late, and what comes otherwise still wakes them."""
import os
import time

import perfd
from checker import Checker
from perfd import Daemon, Workload, add, check, equal, pb
from test_promises import SYS_ENTER, rows_of

CPUS = perfd.online_cpus()[:2]
CONFIG = "version: 1\nsubscribers: { default-latency: 3ms }\n"  # of longer ticks subscribers are told nothing
QUEUE = 1 << 27  # bytes: one that is slow, as with a sanitizer, is late and loses nothing
PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")


def delivered(daemon):
    return sum(row.delivered for row in daemon.ledger().events)


def paced(rate, wanted, *options):
    """What two subscribers saw of a load at this rate, one in each order; the samples that were delivered."""
    with Daemon(CONFIG) as daemon, daemon.client() as client, Workload("flood", 0, rate, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=QUEUE, options=options) as by_time, \
             Checker(daemon, "cpu", "calls", queue=QUEUE, options=options) as by_cpu:
            load.go()
            perfd.wait_until(lambda: delivered(daemon) > wanted, f"{wanted} samples", 60)
            load.done(stop=True)
            seen = [by_time.finish(), by_cpu.finish()]
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
    n = sum(row.delivered for row in rows.values())
    for each in seen:
        equal(each["items"] - each["records"], n, f"samples received and delivered: {each}")
        equal(each["outbox"], 0, "dropped")
        print(f"  {n} samples at {rate} a second on each CPU, {each['looks']} looks by itself")
    return seen


def test_at_every_tick():
    for each in paced(20_000, 60_000):
        check(each["looks"] > 50, f"it looked by itself too seldom: {each}")


def test_by_socket():
    for each in paced(20_000, 20_000, "--ring", "0"):
        equal(each["looks"], 0, "looks without shared memory")


def test_a_flood_that_fills_the_ring():
    """More than fits between two ticks: it is rung for."""
    paced(0, 200_000, "--ring", str(64 << 10))


def test_one_now_and_then():
    """Who looked by itself during a load is rung for what comes seldom behind it."""
    seldom = {"event": "external:seldom", "fields": [pb.ExternalField(name="n", type="u64")]}
    with Daemon(CONFIG) as daemon, daemon.client() as client, Workload("flood", 0, 1_000, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)}, seldom)
        with perfd.Line([PERFCTL, "--socket", daemon.control, "--json", "watch", "calls", "external:seldom"]) as watch:
            load.go()
            perfd.wait_until(lambda: delivered(daemon) > 5_000, "a load", 60)
            load.done(stop=True)
            for n in range(10):
                sample = pb.ExternalSample(event="external:seldom", time=time.monotonic_ns(), values=[pb.ExternalValue(number=n)])
                equal(client.request(emit=pb.EmitRequest(samples=[sample])).emitted.taken, 1, "samples taken")
                while f'"n":{n}}}' not in "".join(watch.hear()):
                    pass
        load.exit()


if __name__ == "__main__":
    perfd.main(globals())
