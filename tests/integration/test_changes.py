#!/usr/bin/python3
"""Changes of events while they run, where it is not obvious whom they are about: counts that old and new fds both have,
targets of which nobody is left, and tasks whose family is gone."""
import os
import time

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_control import events
from test_perfctl import GETPPID as GETPPID_EVENT
from test_promises import CPUS, GETPPID, SLOW, SYS_ENTER, lost, reads_elsewhere, rows_of


def test_counts_go_on_while_a_period_changes():
    """What is read at an interval never goes back, and in the end is what happened, although old and new fds have counted
    side by side at each change: of the period, the filter, the ring."""
    with Daemon() as daemon, daemon.client() as client, daemon.client() as watching, \
         Workload("flood", 0, 100_000, cpus=CPUS[:1]) as load:
        flood = {"event": SYS_ENTER, "interval": 1_000_000, "target": pb.Target(pids=load.pids), "filter": f"id == {GETPPID}"}
        add(client, {**flood, "name": "calls", "period": 100}, {**flood, "name": "only-counted"},
            {**flood, "name": "group", "event": "{" + ",".join([SYS_ENTER] * 3) + "}", "filter": "", "interval": 2_000_000})
        items = watching.subscribe(events=["calls", "only-counted", "group"])
        os.sched_setaffinity(daemon.pid, {CPUS[-1]})  # main, whose way from one of its fds to the next is when both count
        load.go()
        wait_until(lambda: any(row.count for row in daemon.ledger().events), "the first call")
        for i in range(20):
            client.request(set_period=pb.SetPeriodRequest(name="calls", period=100 + i))
            client.request(set_filter=pb.SetFilterRequest(name="only-counted", filter=f"id == {GETPPID} && common_pid != {i + 1}"))
            if i % 5 == 0:
                client.request(apply=pb.ApplyRequest(yaml=f"version: 1\nrings: {{ size: {1 << i % 2}MiB }}\n"))
        made, = load.done(stop=True)
        end, values = time.monotonic_ns(), {}
        for item in items:
            if item.get("record") == "read" and item["cpu"] == CPUS[0]:
                values.setdefault(item["event"], []).append([v["value"] for v in item["fields"]["values"]["values"]])
            if item["time"] > end + 10_000_000:
                watching.stop()
        rows = {row.name: row for row in daemon.ledger().events if row.cpu == CPUS[0]}
        was_away = reads_elsewhere(daemon)  # then members may differ: PROTOCOL.md, Counters
        load.exit()
    check(all(len(reads) > 3 for reads in values.values()), f"only {values} were read")
    for reads in values.values():
        equal(reads, sorted(reads), "counts in their order")
    equal((values["calls"][-1], values["only-counted"][-1]), ([made], [made]), "what was read in the end")
    equal(was_away or [len(set(read)) for read in values["group"]] == [1] * len(values["group"]), True,
          f"members of the group: {values['group']}")
    equal(made <= values["group"][-1][0] <= made * 1.2, True, f"all calls of {made}: {values['group'][-1]}")
    check(rows["calls"].count > made, "old and new never counted side by side: the test shows nothing")


def test_last_counts():
    """Of an event that is disabled long before its next read: all that it has counted is in the stream before its end, each time."""
    with Daemon() as daemon, daemon.client() as client, daemon.client() as watching, Workload("syscalls", 1234, cpus=CPUS[:1]) as load:
        target = pb.Target(pids=load.pids)
        add(client, {"event": GETPPID_EVENT, "name": "calls", "interval": 3600 * 10**9, "target": target})
        items = watching.subscribe(events=["calls"])
        load.go()
        load.done()
        for _ in range(2):
            client.request(disable=pb.SelectRequest(names=["calls"]))
            client.request(enable=pb.SelectRequest(names=["calls"]))
        watching.stop()
        read = [(item["cpu"], item["fields"]["values"]["values"][0]["value"]) for item in items if item.get("record") == "read"]
        load.exit()
    equal(sorted(read), sorted([(cpu, 1234 if cpu == CPUS[0] else 0) for cpu in CPUS] * 2), "what was read")


def change_in_a_flood(calls, change):
    """The row of a CPU whose ring overflows all the time, because its reader has a time slice of what fills it, after `calls`
    calls, and 20 times change(client, i). If another CPU read the ring, as happens to a reader without its time, the row may
    be inexact, and says so."""
    with Daemon(config=STARVED.format("16KiB")) as daemon, daemon.client() as client, \
            Workload("syscalls", calls, cpus=CPUS[:1]) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "filter": f"id == {GETPPID}", "target": pb.Target(pids=load.pids)})
        os.sched_setaffinity(daemon.pid, {CPUS[-1]})
        load.go()
        for i in range(20):
            change(client, i)
        load.done()
        row = rows_of(daemon.ledger(), "calls", inexact=reads_elsewhere(daemon))[CPUS[0]]
        load.exit()
    return row


STARVED = "version: 1\nrings: {{ size: {} }}\nreaders: {{ priority: \"nice:10\" }}\n"


def test_losses_of_both_while_an_event_changes():
    """What the kernel loses of the fd that is not delivered, while old and new both count, is no occurrence."""
    changes = {
        "filter": lambda client, i: client.request(set_filter=pb.SetFilterRequest(
            name="calls", filter=f"id == {GETPPID} && common_pid != {i + 1}")),
        "ring size": lambda client, i: client.request(apply=pb.ApplyRequest(yaml=STARVED.format(("32KiB", "16KiB")[i % 2]))),
    }
    for what, change in changes.items():
        calls = 100_000 if SLOW else 600_000
        for _ in range(10):  # how often both are there in the middle of the flood is the scheduler's to say
            row = change_in_a_flood(calls, change)
            equal(row.exact and row.occurred, row.exact and calls, f"calls that occurred, {what}: {row}")
            if row.exact and row.duplicates > 0 and lost(row) > 0:
                break
        check(row.exact and row.duplicates > 0 and lost(row) > 0, f"old and new never counted side by side in a full ring: {row}")


def test_changes_when_everybody_is_gone():
    """An event can be changed, and rings be resized, also when all that it has observed has ended; its counts stay."""
    config = "version: 1\nrings: {{ size: {} }}\n"
    with Daemon(config=config.format("1MiB")) as daemon, daemon.client() as client, daemon.client() as watching:
        with Workload("syscalls", 1000, cpus=CPUS[:1]) as load:
            target = {"process": pb.Target(pids=load.pids), "thread": pb.Target(tids=load.pids)}
            add(client, *({"event": SYS_ENTER, "name": name, "target": target[name], "filter": f"id == {GETPPID}"}
                          for name in target))
            items = watching.subscribe(events=list(target))
            load.go()
            load.done()
            load.exit()
        for name in target:
            client.request(set_filter=pb.SetFilterRequest(name=name, filter="id == 1"))
            client.request(set_period=pb.SetPeriodRequest(name=name, period=7))
        client.request(apply=pb.ApplyRequest(yaml=config.format("2MiB")))
        equal(daemon.status().ring_size, 2 << 20, "the ring's size")
        equal({(e.spec.filter, e.spec.period, e.n_fds, e.enabled) for e in events(client).values()}, {("id == 1", 7, 0, True)},
              "what is listed")
        rows = daemon.ledger().events
        check(all(row.balanced for row in rows), f"a row is not balanced: {rows}")
        equal([sum(row.delivered for row in rows if row.name == name) for name in target], [1000, 1000], "calls in the ledger")
        watching.stop()
        equal(len([item for item in items if "record" not in item]), 2000, "samples")
        equal({event.period for event in watching.stream.events.values()}, {7}, "periods of the descriptors")
        check(daemon.stderr().count("there is no process") > 0, f"nobody says that the process is gone: {daemon.stderr()}")


ORPHANS = """
import os, sys
own, orphans = os.pipe(), [os.pipe() for _ in range(3)]
def child(reads):
    # calls when it is told so by a byte, and ends with those who could
    for _, writes in orphans:
        os.close(writes)
    os.write(own[1], b"%6d" % os.getpid())
    while os.read(reads, 1):
        for _ in range(1000):
            os.getppid()
        os.write(own[1], b"done..")
    os._exit(0)
early = os.fork()
if early == 0:
    child(orphans[0][0])
print(os.getpid(), int(os.read(own[0], 6)), flush=True)
for i in (1, 2):
    sys.stdin.readline()
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            child(orphans[i][0])
        os._exit(0)
    os.waitpid(middle, 0)
    print(int(os.read(own[0], 6)), flush=True)
sys.stdin.readline()
teller = os.fork()
if teller:
    os._exit(0)
print("gone", flush=True)
for line in sys.stdin:
    for i in range(3):
        os.write(orphans[i][1], b"x")
        os.read(own[0], 6)
    print("done", flush=True)
"""


def test_changes_of_orphans():
    """A live change finds those again who have inherited the event, whoever of their family has ended."""
    with Daemon() as daemon, daemon.client() as client, perfd.Line([os.sys.executable, "-c", ORPHANS]) as family:
        pid, early = map(int, family.hear())
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=[pid]), "filter": f"id == {GETPPID}"})
        found = []
        for i in (1, 2):
            family.say("fork")
            orphan, = map(int, family.hear())
            found.append(orphan)
            client.request(set_filter=pb.SetFilterRequest(name="calls", filter=f"id == {GETPPID} && common_pid != {i}"))
            equal(events(client)["calls"].n_targets, 2 + i, "the process, its child, and orphans")
        family.say("go")
        equal(family.hear(), ["gone"], "the word of the family")
        perfd.wait_until(lambda: not os.path.exists(f"/proc/{pid}/exe") or family.process.poll() is not None, "its end")
        for i in (3, 4):
            client.request(set_filter=pb.SetFilterRequest(name="calls", filter=f"id == {GETPPID} && common_pid != {i}"))
            equal(events(client)["calls"].n_targets, 4, "those who are left: a child, two orphans, and who tells them")
            family.say("work")
            equal(family.hear(), ["done"], "the word of who tells them")
            equal(sum(row.occurred for row in rows_of(daemon.ledger(), "calls").values()), (i - 2) * 3000, "calls")
        client.request(apply=pb.ApplyRequest(yaml="version: 1\nrings: { size: 1MiB }\n"))
        client.request(disable=pb.SelectRequest(names=["calls"]))
        client.request(enable=pb.SelectRequest(names=["calls"]))
        family.say("work")
        equal(family.hear(), ["done"], "the word of who tells them")
        equal(sum(row.occurred for row in rows_of(daemon.ledger(), "calls").values()), 9000, "calls in the end")


if __name__ == "__main__":
    perfd.main(globals())
