#!/usr/bin/python3
"""What reads of counters take is measured, because nobody knows it before: who has many children, and counters that they inherit, makes
neither readers nor others pay for them. Needs root."""
import collections
import contextlib
import os
import sys
import threading
import time

import perfd
from perfd import Daemon, check, equal, pb
from test_roles import EVE, rules

EVENTS, CHILDREN, CALLS = 40, 150, 7
SHARE = 0.05    # of each CPU, Limits in PROTOCOL.md
REQUESTS = 0.10 # the same of what requests ask of readers
INTERVAL = 10_000_000
RULES = rules(f"{{ users: [{EVE}], own-processes: true }}")
GETPPID = "syscalls:sys_enter_getppid"

# forks children that call getppid(2) and wait for the end of their standard input
PARENT = f"""
import os, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
(r, w), (done, told) = os.pipe(), os.pipe()
pids = []
for _ in range({CHILDREN}):
    pid = os.fork()
    if not pid:
        os.close(w)
        for _ in range({CALLS}):
            os.getppid()
        os.write(told, b'x')
        os.read(r, 1)
        os._exit(0)
    pids.append(pid)
for _ in pids:
    os.read(done, 1)
print("forked", flush=True)
sys.stdin.readline()
os.close(w)
for pid in pids:
    os.waitpid(pid, 0)
print("gone", flush=True)
"""


@contextlib.contextmanager
def parent():
    """Of EVE: what says `go` makes it fork."""
    with perfd.Line([sys.executable, "-c", PARENT], user=EVE, group=EVE, extra_groups=[]) as line:
        yield line, int(line.hear()[0])


def cpu_times(pid):
    """{thread: seconds that it has run}"""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as comm, \
             open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as stat:
            found[comm.read().strip(), int(tid)] = int(stat.read().split()[0]) / 1e9
    return found


class Measure:
    """Of each thread the part of the time in which it ran."""

    def __init__(self, daemon):
        self.pid, self.began, self.before = daemon.pid, time.monotonic(), cpu_times(daemon.pid)

    def shares(self, name=""):
        took, now = time.monotonic() - self.began, cpu_times(self.pid)
        return {key: (now[key] - self.before.get(key, 0)) / took for key in now if key[0].startswith(name)}


def temporary(client, *specs):
    return [ref.name for ref in client.request(add=pb.AddRequest(events=specs, while_connected=True)).added.events]


def states(client):
    return {e.spec.name: e for e in client.request(list=pb.ListRequest()).list.events}


def test_reads_of_children():
    """A uid's counters take 5 % of each CPU and no more, however many children there are to count; what is read later has all."""
    with Daemon(RULES) as daemon, daemon.client() as root, daemon.client_of(EVE, groups=()) as eve, parent() as (line, pid), \
         daemon.client_of(EVE, groups=()) as stream:
        perfd.add(root, {"event": "cs", "name": "roots", "interval": INTERVAL})
        own = temporary(eve, *[pb.EventSpec(event=GETPPID, name=f"e{i}", interval=INTERVAL, target=pb.Target(pids=[pid])) for i in range(EVENTS)])
        items = stream.subscribe()
        line.say("go")
        equal(line.hear(), ["forked"], "its word")
        measure, reads = Measure(daemon), collections.Counter()
        for item in items:
            reads[item["event"]] += 1
            if time.monotonic() > measure.began + 3:
                break
        shares = measure.shares("reader")
        print("  readers:", {key: round(share, 3) for key, share in measure.shares().items()}, "reads:", sum(reads.values()))
        check(shares and max(shares.values()) < 3 * SHARE, f"what readers take: {shares}")
        counts = [reads[name] for name in own]
        check(min(counts) > 0 and max(counts) <= 2 * min(counts) + 2 * os.cpu_count(), f"no event is read more often than others: {counts}")
        postponed = {name: state.n_postponed for name, state in states(root).items()}
        equal(postponed.pop("roots"), 0, "reads of root's that were postponed")
        check(min(postponed.values()) > 0, f"postponed: {postponed}")
        equal(daemon.stderr().count("and are postponed"), 1, "lines of the log")
        eve.request(disable=pb.SelectRequest(names=own))
        stream.stop()
        last = {}
        for item in items:
            if item["event"] in own:
                last[item["event"], item["cpu"]] = item["fields"]["values"]["values"][0]["value"]
        equal(collections.Counter({name: sum(n for (of, _), n in last.items() if of == name) for name in own}),
              collections.Counter(dict.fromkeys(own, CHILDREN * CALLS)), "the last counts of all CPUs")
        line.say("end")
        equal(line.hear(), ["gone"], "its last word")


def test_cuts_beside_children():
    """A ledger, and the begin and end of a stream, read the counters of their own events, and not those of somebody else."""
    with Daemon(RULES) as daemon, daemon.client() as root, daemon.client_of(EVE, groups=()) as eve, parent() as (line, pid):
        perfd.add(root, {"event": "syscalls:sys_enter_acct", "name": "roots"})
        temporary(eve, *[pb.EventSpec(event=GETPPID, name=f"e{i}", target=pb.Target(pids=[pid])) for i in range(EVENTS)])

        def look():
            before = cpu_times(daemon.pid)
            for _ in range(20):
                root.request(ledger=pb.LedgerRequest(events=["roots"]))
                root.request(list=pb.ListRequest(glob="roots"))
                with daemon.client(stream=True) as stream:
                    items = stream.subscribe(events=["roots"])
                    stream.stop()
                    equal(list(items), [], "samples")
            return sum(n - before.get(key, 0) for key, n in cpu_times(daemon.pid).items() if key[0].startswith("reader"))

        look()
        alone = look()
        line.say("go")
        equal(line.hear(), ["forked"], "its word")
        beside = look()
        print(f"  readers take {1000 * alone:.1f} ms, and {1000 * beside:.1f} ms beside {EVENTS} events with {CHILDREN} children")
        check(beside < 4 * alone, f"cuts of an event of root's took readers {alone} s, and {beside} s beside those of others")
        rows = [row for row in daemon.ledger("~65534/*").events if row.count]
        equal({row.name for row in rows if row.balanced}, {f"~{EVE}/e{i}" for i in range(EVENTS)}, "rows that add up")
        equal(sum(row.count for row in rows), EVENTS * CHILDREN * CALLS, "what was counted")
        line.say("end")
        equal(line.hear(), ["gone"], "its last word")


def switch(client, names):
    client.request(disable=pb.SelectRequest(names=names))
    client.request(enable=pb.SelectRequest(names=names))


@contextlib.contextmanager
def again_and_again(do):
    """Another thread does it until the block ends; the list that is given has one entry each time."""
    done, ended = [], threading.Event()

    def run():
        while not ended.is_set():
            do()
            done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def use_up(daemon, do):
    """What a uid may use at once. False: on this machine it does not take that much."""
    for _ in range(300):
        if "and they are postponed" in daemon.stderr():
            return True
        do()
    return False


def test_requests_of_children():
    """Who has its counters switched again and again waits, and neither readers nor others do."""
    with Daemon(RULES) as daemon, daemon.client() as root, daemon.client_of(EVE, groups=()) as eve, parent() as (line, pid):
        perfd.add(root, {"event": "syscalls:sys_enter_acct", "name": "roots"})
        own = temporary(eve, *[pb.EventSpec(event=GETPPID, name=f"e{i}", target=pb.Target(pids=[pid])) for i in range(EVENTS)])
        line.say("go")
        equal(line.hear(), ["forked"], "its word")
        check(use_up(daemon, lambda: switch(eve, own)), "no request was postponed")
        with again_and_again(lambda: switch(eve, own)) as switched:
            measure, n = Measure(daemon), 0
            while time.monotonic() < measure.began + 4:
                switch(root, ["roots"])
                n += 1
                time.sleep(0.05) # root's own take something too
            shares = measure.shares("reader")
        print("  readers:", {key: round(share, 3) for key, share in shares.items()}, "switched:", len(switched), "root's:", n)
        check(shares and max(shares.values()) < 3 * REQUESTS, f"what readers take: {shares}")
        check(n > 2 * len(switched), f"root's requests that were answered: {n}, beside {len(switched)}")
        equal(daemon.stderr().count("and they are postponed"), 1, "lines of the log")
        rows = [row for row in daemon.ledger("~65534/*").events if row.count]
        equal({row.name for row in rows if row.balanced}, {f"~{EVE}/e{i}" for i in range(EVENTS)}, "rows that add up")
        line.say("end")
        equal(line.hear(), ["gone"], "its last word")


def test_first_subscriber_again_and_again():
    """All processes are looked at for the first stream; who begins it, and ends it, again and again does not keep main for itself."""
    with Daemon(RULES) as daemon, daemon.client() as root, daemon.client_of(EVE, groups=()) as eve, parent() as (line, pid):
        own = temporary(eve, pb.EventSpec(event=GETPPID, name="own", target=pb.Target(pids=[pid])))
        line.say("go")
        equal(line.hear(), ["forked"], "its word")

        def subscribe():
            with daemon.client_of(EVE, groups=()) as stream:
                items = stream.subscribe(events=own)
                stream.stop()
                list(items)

        measure = Measure(daemon)
        if not use_up(daemon, subscribe):  # where /proc is read quickly, or the CPUs have other things to do
            share = measure.shares()["perfd", daemon.pid]
            print("  main, of which nothing was postponed:", round(share, 3))
            check(share < 0.5, f"what main takes: {share}")
            return
        with again_and_again(subscribe) as subscribed:
            measure, n = Measure(daemon), 0
            while time.monotonic() < measure.began + 4:
                root.request(status=pb.Empty())
                n += 1
            shares = measure.shares()
        print("  main:", round(shares["perfd", daemon.pid], 3), "subscribed:", len(subscribed), "root's:", n)
        check(n > 10 * len(subscribed), f"root's requests that were answered: {n}, beside {len(subscribed)}")
        equal(daemon.stderr().count("and they are postponed"), 1, "lines of the log")
        line.say("end")
        equal(line.hear(), ["gone"], "its last word")


if __name__ == "__main__":
    perfd.main(globals())
