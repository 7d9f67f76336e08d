#!/usr/bin/python3
"""Subscribers that read at half the speed of a flood: the others lose nothing, what the slow ones lose is known to the last
item, under each policy, and perfd takes no more memory than their queues may have.

The flood lasts 10 s, or $PERFD_FLOOD_SECONDS.
"""
import itertools
import os
import subprocess
import threading
import time

import perfd
from checker import Checker
from host import while_cpus_run
from perfd import Daemon, Workload, add, check, equal, pb
from test_promises import CPUS, GETPPID, SLOW, SYS_ENTER, all_lost, lost, rows_of

SECONDS = int(os.environ.get("PERFD_FLOOD_SECONDS", "10"))
RATE = 10_000 if SLOW else 100_000  # calls a second on each CPU
QUEUE = 1 << 20                     # bytes, of each slow subscriber
QUICK_QUEUE = 1 << 24               # of the others, which a busy machine keeps from their sockets for moments
POOL = 2 << 20                      # of batches, for each CPU
BY_SOCKET = ("--ring", "0")
POLICIES = ("oldest", "newest", "disconnect")


class Slow(Checker):
    """A checker that reads half of what comes, in shared memory or by the socket."""

    def __init__(self, daemon, order, policy, *options):
        self.policy = policy
        super().__init__(daemon, order, "calls", queue=QUEUE,
                         options=("--overflow", policy, "--rate", str(len(CPUS) * RATE // 2), *options))

    def finish(self, seconds=perfd.PATIENCE):
        seen = super().finish(seconds)
        equal(seen["matched"], seen["sent"] + seen["outbox"] + seen["late"] + seen["queued"], f"the sum of {self.policy}")
        equal(seen["queued"], 0, f"items that wait behind the end of {self.policy}")
        equal(seen["reason"], "overflow" if self.policy == "disconnect" else "stopped", f"why {self.policy} ended")
        check(seen["outbox"] > 0, f"{self.policy} lost nothing: the test shows nothing")
        return seen


class MostMemory(threading.Thread):
    """The most that the daemon had of its own, sampled while this runs."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon_process, self.most, self.over = daemon, 0, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def run(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, self.daemon_process.rss())

    def __exit__(self, *_):
        self.over.set()
        self.join()


def check_sums(daemon):
    """In the middle of the flood: every sum, added up here."""
    ledger = daemon.ledger()
    rows_of(ledger, "calls")
    for row in ledger.subscribers:
        dropped = sum(count.count for count in row.dropped)
        equal(row.matched, row.sent + row.queued + dropped, f"the sum of {row}")
        check(row.balanced, f"not balanced: {row}")


def flood(daemon, load, seconds):
    """What the load did, and the most memory that perfd had."""
    with MostMemory(daemon) as memory:
        load.go()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            check_sums(daemon)
            time.sleep(0.2)  # the pace of looking, nothing waits for it
        counts = load.done(stop=True)
    return counts, memory.most


def let_rings_say_their_losses(daemon):
    """A LOST record is written before whatever comes next into its ring: that is now, and not behind the end of a stream."""
    daemon.ledger()  # all is read: there is room
    for cpu in perfd.online_cpus():
        subprocess.run(["taskset", "--cpu-list", str(cpu), "true"], check=True)  # its end is a record there


def load_at_half_the_speed():
    """The rows of the flood, and what the quick ones saw."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, RATE, cpus=CPUS) as first, \
            Workload("flood", 0, RATE, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=first.pids + load.pids),
                     "filter": f"id == {GETPPID}"})
        before = daemon.rss()
        with Checker(daemon, "time", "calls", queue=QUICK_QUEUE) as by_time, \
                Checker(daemon, "cpu", "calls", queue=QUICK_QUEUE, options=BY_SOCKET) as by_cpu:
            counts, alone = flood(daemon, first, 2)
            with Slow(daemon, "time", "oldest") as oldest, Slow(daemon, "time", "newest", *BY_SOCKET) as newest, \
                    Slow(daemon, "cpu", "disconnect") as disconnected:
                more, beside = flood(daemon, load, SECONDS)
                let_rings_say_their_losses(daemon)
                slow = {each.policy: each.finish(60) for each in (oldest, newest, disconnected)}
            quick = [each.finish(60) for each in (by_time, by_cpu)]
            rows = rows_of(daemon.ledger(), "calls")
        for each in (first, load):
            each.exit()
    occurred = sum(row.occurred for row in rows.values())
    print(f"  {occurred} occurred; RSS {before >> 10} KiB, {alone >> 10} with quick ones, {beside >> 10} with slow ones too")
    for policy, seen in slow.items():
        print(f"  {policy}: {seen['matched']} matched, {seen['sent']} sent, {seen['outbox']} dropped in {seen['gaps']} gaps")
    equal(occurred, sum(counts) + sum(more), "occurrences and calls made")
    for seen in quick:
        equal(seen["items"] - seen["records"] + seen["outbox"], sum(row.delivered for row in rows.values()),
              "samples of a quick one")
    # packets have an eighth more than their bytes for what is in them, and malloc(3) its share
    budget = len(perfd.online_cpus()) * POOL + (len(slow) * QUEUE + len(quick) * QUICK_QUEUE) * 5 // 4
    if perfd.SANITIZER == "none":  # which keeps what is freed
        check(beside - before <= budget + (1 << 20), f"{beside - before} bytes more, and the configuration gives {budget}")
    return rows, quick


def test_half_the_speed():
    rows, quick = while_cpus_run(load_at_half_the_speed, lambda found: sum(seen["outbox"] for seen in found[1]) +
                                 (0 if SLOW else all_lost(found[0])))
    for seen in quick:
        equal((seen["outbox"], seen["late"], seen["gaps"]), (0, 0, 0), "lost by a quick one")
    if not SLOW:
        equal([lost(row) for row in rows.values()], [0] * len(rows), "lost in the kernel's rings")


def test_each_policy_drops_what_it_says():
    """The queue is filled and nobody reads: of the same items the oldest are kept, or the youngest, or the stream ends."""
    calls = 100_000
    for policy, options in itertools.product(POLICIES, ((), BY_SOCKET)):
        with Daemon() as daemon, daemon.client() as client, Workload("syscalls", calls, cpus=CPUS[:1]) as load:
            add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
            with Checker(daemon, "cpu", "calls", queue=QUEUE, options=("--overflow", policy, *options)) as stopped:
                stopped.process.send_signal(perfd.signal.SIGSTOP)
                load.go()
                load.done()
                perfd.wait_until(lambda d=daemon: sum(r.delivered for r in d.ledger().events) == calls + 1, "all of them")
                row = daemon.ledger().subscribers[0]
                check(0 < row.queued, f"nothing waits: {row}")
                stopped.process.send_signal(perfd.signal.SIGCONT)
                seen = stopped.finish()
            load.exit()
        check(seen["matched"] <= calls if policy == "disconnect" else seen["matched"] == calls + 1, f"matched: {seen}")
        equal(seen["matched"], seen["sent"] + seen["outbox"], f"the sum, {policy}")
        check(seen["outbox"] > 0, f"nothing was dropped: the test shows nothing, {policy}")
        equal(seen["reason"], "overflow" if policy == "disconnect" else "stopped", f"why the stream ended, {policy}")
        check(seen["gaps"] > 0, f"no gap, {policy}")
        if policy != "newest":  # there a small packet may still fit behind one that did not
            equal(seen["gap_last"], policy == "disconnect", f"whether a gap is last, {policy}")


if __name__ == "__main__":
    perfd.main(globals(), 200 + 6 * SECONDS)
