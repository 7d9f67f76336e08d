#!/usr/bin/python3
"""Closing ledgers have the events that were removed while their stream was there, with their last numbers. Needs root."""
import time

import perfd
from host import need_breakpoints
from perfd import Daemon, add, check, equal, refused
from subscriber import pb
from test_sources import GETPPID, Fire, probe
from test_stalled import stopped_thread

N = 1000


def remove(client, *names):
    client.request(remove=pb.SelectRequest(names=names))


def finish(client, items):
    """The items, and the rows of the events that were removed: {(name, is it of a CPU): [occurred, delivered, filtered]}."""
    client.stop()
    items = list(items)
    sums = {}
    for row in client.end["ledger"]:
        if row["kind"] == "event" and row["removed"]:
            check(row["balanced"] and row["exact"], row)
            found = sums.setdefault(row["event"], [0, 0, 0])
            for i, name in enumerate(("occurred", "delivered", "filtered")):
                found[i] += row[name]
    return items, sums


def sample(event):
    return pb.ExternalSample(event=event, time=time.monotonic_ns(), cpu=0)


def test_last_numbers():
    """Of a tracepoint, of a probe and of clients; each stream has those that were removed while it was there, no other."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        first, second = daemon.client(stream=True), daemon.client(stream=True)
        add(client, {"event": "raw_syscalls:sys_enter", "name": "calls", "filter": f"id == {GETPPID}", "target": fire.target},
            {**probe("fire_call", target=fire.target), "name": "hits"}, "external:mine", "external:other")
        fire.fire("syscalls", N)  # before any stream: filtered
        of_first = first.subscribe(events=["calls", "hits", "external:mine"], queue_bytes=1 << 26)
        fire.fire("syscalls", 2 * N)
        fire.fire("calls", 3 * N)
        client.request(emit=pb.EmitRequest(samples=[sample("external:mine")] * 5 + [sample("external:other")] * 7))
        remove(client, "calls", "external:*")
        of_second = second.subscribe(queue_bytes=1 << 26)
        fire.fire("calls", 4 * N)
        remove(client, "hits")
        equal([row.name for row in daemon.ledger().events], [], "what the ledger of what runs has")
        items, rows = finish(second, of_second)
        equal((len(items), rows), (4 * N, {"hits": [7 * N, 7 * N, 0]}), "the second stream")
        items, rows = finish(first, of_first)
        equal(len(items), 9 * N + 5, "items of the first stream")
        equal(rows, {"calls": [3 * N, 2 * N, N], "hits": [7 * N, 7 * N, 0], "external:mine": [5, 5, 0]}, "the first stream")
        third = daemon.client(stream=True)
        equal(finish(third, third.subscribe()), ([], {}), "a stream that was there with none of them")


def test_end_of_all():
    """When perfd ends, a stream has them too."""
    with Daemon() as daemon, daemon.client() as client, daemon.client(stream=True) as stream:
        add(client, "external:mine")
        items = stream.subscribe()
        client.request(emit=pb.EmitRequest(samples=[sample("external:mine")] * 3))
        remove(client, "external:mine")
        daemon.stop()
        items = list(items)
        rows = [row for row in stream.end["ledger"] if row["kind"] == "event"]
    equal(len(items), 3, "items")
    equal([(row["event"], row["occurred"], row["removed"]) for row in rows], [("external:mine", 3, True)], "its rows")


def test_breakpoints_again():
    """The registers of breakpoints that were removed, planned or refused are free for the next one, also while the thread that closes
    what is not wanted has other things to close: here it does not run at all."""
    need_breakpoints()
    with Daemon() as daemon, daemon.client() as client, Fire() as fire, stopped_thread(daemon, "closer"):
        place, target = f"mem:{fire.watched:#x}/8:w", fire.target
        yaml = f"version: 1\ntargets: {{t: {{pids: [{fire.pid}]}}}}\ngroups: {{g: {{target: t, events: ['{place}']}}}}\n"
        for i in range(1, 7):
            equal(len(client.request(plan=pb.PlanRequest(yaml=yaml)).plan.added), 1, "planned")
            gone = {"event": "page-faults", "name": "no", "target": pb.Target(pids=[1 << 22])}
            refused(client, "gone", add=pb.AddRequest(events=[pb.EventSpec(event=place, target=target), pb.EventSpec(**gone)]))
            add(client, {"event": place, "name": "writes", "target": target})
            fire.fire("touches", i)
            equal(sum(row.occurred for row in daemon.ledger("writes").events), i, "writes")
            remove(client, "writes")


def test_more_than_is_kept():
    """Of thousands the last ones are there, and that some are missing is said; nothing stays when the stream has ended."""
    with Daemon() as daemon, daemon.client() as client, daemon.client(stream=True) as stream:
        items = stream.subscribe()
        before = daemon.rss()
        for i in range(0, 8000, 500):
            add(client, *(f"external:e-{k:04}" for k in range(i, i + 500)))
            remove(client, "external:*")
        kept = daemon.rss() - before
        stream.stop()
        equal(list(items), [], "items")
        names = [row["event"] for row in stream.end["ledger"] if row["kind"] == "event"]
        equal(names, [f"external:e-{k:04}" for k in range(8000 - len(names), 8000)], "those that were removed last")
        check(500 < len(names) < 8000, f"{len(names)} rows")
        check(stream.stream.truncated, "it is said")
        check(perfd.SANITIZER != "none" or kept < 24 << 20, f"{kept} bytes")
        later = daemon.client(stream=True)
        equal(finish(later, later.subscribe()), ([], {}), "a stream that came later")
        check(not later.stream.truncated, "all are there")


if __name__ == "__main__":
    perfd.main(globals())
