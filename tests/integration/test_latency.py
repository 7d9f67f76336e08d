#!/usr/bin/python3
"""What `latency` buys and costs: the first sample after quiet comes soon, for so many wakeups, and only as long as somebody
asks for it and something is enabled. How short it gets under load is measured by the benchmarks, not here."""
import contextlib
import json
import os
import select
import statistics
import time

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, refused
from test_control import perfctl
from test_promises import CPUS, SLOW

GETPPID = "syscalls:sys_enter_getppid"
MSEC = 1_000_000


def wakeups(daemon, names=("reader",)):
    """Of all threads that are called so, readers if nothing else is said, since their start."""
    n = 0
    for tid in os.listdir(f"/proc/{daemon.pid}/task"):
        # a backup of a reader may have ended
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                open(f"/proc/{daemon.pid}/task/{tid}/status", encoding="utf-8") as f:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            if lines["Name"].startswith(names):
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
        equal(no.message, "latency: found 1999999ns, expected from 2ms, subscribers.latency of perfd's configuration, to 1h", "what is allowed")
        no = refused(client, "bad-latency", "STATUS_INVALID", subscribe=pb.SubscribeRequest(latency=7200 * 1000 * MSEC))
        check("latency: found 2h, expected from 2ms," in no.message, f"what it says of too much: {no.message}")
        client.subscribe(latency=2 * MSEC)


def test_shown():
    """Who asks for which latency: in the ledger, of the default too, and in the log if it was asked for."""
    with Daemon(config="version: 1\nsubscribers: {default-latency: 40ms}\n") as daemon:
        with daemon.client(stream=True) as asks, daemon.client(stream=True) as none:
            asks.subscribe(latency=1_500_000)
            none.subscribe()
            process = perfctl(daemon, "--json", "ledger")
            rows = [json.loads(line) for line in process.stdout.splitlines()]
            equal([row["latency"] for row in sorted((row for row in rows if row["kind"] == "subscriber"), key=lambda row: row["id"])],
                  [1_500_000, 40_000_000], f"what the ledger says, behind {process.stderr}")
            text = [line.split("\t") for line in perfctl(daemon, "ledger").stdout.splitlines() if line.startswith("subscriber")]
            equal(sorted(words[8] for words in text), ["1.5 ms", "40.0 ms"], "its column, as text")
            said = [line for line in daemon.stderr().splitlines() if "subscriber " in line and "all events" in line]
    equal([line.rpartition("all events")[2] for line in said], [", latency 1500us", ""], f"the log: {said}")


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


def test_quiet():
    """By default rings are looked at 96 ms apart, by one thread for all that had nothing. That it is one is for unit tests: other
    programs on this host begin and end, and their records are read."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 1, cpus=CPUS) as load:
        add(client, {"event": GETPPID, "target": pb.Target(pids=load.pids)})
        with daemon.client(stream=True) as stream:
            items = stream.subscribe(events=[GETPPID])

            def is_calm():
                before, began = wakeups(daemon, ("reader", "dispatcher")), time.monotonic()
                select.select([], [], [], 1)
                n, seconds = wakeups(daemon, ("reader", "dispatcher")) - before, time.monotonic() - began
                return n <= (len(CPUS) + 1) * 2 * seconds / 0.096
            perfd.wait_until(is_calm, "a second in which readers do not wake more often than that", 20)
            stream.stop()
            list(items)


def first_samples(config, **subscription):
    """How long, in ms, samples took that are 100 ms apart, each the first one after quiet: the median of some."""
    with Daemon(config=config) as daemon, daemon.client() as client, Workload("flood", 0, 10, cpus=CPUS[:1]) as load:
        add(client, {"event": GETPPID, "target": pb.Target(pids=load.pids)})
        with daemon.client(stream=True) as stream:
            waits = []
            items = stream.subscribe(events=[GETPPID], **subscription)
            load.go()
            for item in items:
                waits.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - item["time"]) / MSEC)
                if len(waits) == 15:
                    break
            stream.stop()
            list(items)
        load.done(stop=True)
        load.exit()
    return statistics.median(waits)


def test_first_sample_after_quiet():
    """Within the latency that is asked for, or that is the default."""
    for latency, config, subscription in ((1, "", {"latency": MSEC}), (40, "", {"latency": 40 * MSEC}),
                                          (20, "subscribers: {default-latency: 20ms}\n", {})):
        half = first_samples("version: 1\n" + config, **subscription)
        check(half < latency + (100 if SLOW else 25), f"half of the samples with a latency of {latency} ms took {half:.1f} ms")


if __name__ == "__main__":
    perfd.main(globals())
