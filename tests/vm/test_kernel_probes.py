#!/usr/bin/python3
"""Kprobes and kretprobes of the whole daemon: exactly N hits by process, by thread, by cgroup and on the host, and what
was fetched is what was there. The hosts that run the other tests may have a kernel without kprobes."""
import json
import os
import subprocess

import perfd
from perfd import Daemon, Subscriber, TRACING, Workload, add, check, equal, pb, refused
from test_promises import rows_of
from test_tasks import cgroups

N = 300
CPUS = perfd.online_cpus()[:2]
SYMBOL = f"__{ {'x86_64': 'x64', 'aarch64': 'arm64'}[os.uname().machine] }_sys_getppid"
PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")


def definitions():
    with open(f"{TRACING}/kprobe_events", encoding="ascii") as f:
        return [line for line in f if SYMBOL in line]


def ledger(daemon, *names):
    """{name: sum of the rows} as perfctl prints it; each row has to balance."""
    said = subprocess.run([PERFCTL, "--socket", daemon.control, "--json", "ledger"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    sums = {name: {"occurred": 0, "delivered": 0, "lost": 0} for name in names}
    for row in map(json.loads, said.splitlines()):
        if row.get("kind") == "event" and row["event"] in sums:
            check(row["balanced"] and row["exact"], f"not balanced and exact: {row}")
            sums[row["event"]]["occurred"] += row["occurred"]
            sums[row["event"]]["delivered"] += row["delivered"]
            sums[row["event"]]["lost"] += sum(row["lost"].values())
    return sums


def test_exactly_n_hits():
    with Daemon() as daemon, daemon.client() as client, cgroups("probed") as folders, \
         Workload("syscalls", N, cpus=CPUS) as load:
        (path, folder), = folders.items()
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(load.pids[0]))
        ours = " || ".join(f"common_pid == {pid}" for pid in load.pids)
        one, both = N, N * len(load.pids)
        expected = {"process": one, "thread": one, "cgroup": one, "host": both, "fetched": both, "return": both,
                    "value": both}
        add(client, {"event": f"kprobe:{SYMBOL}", "name": "process", "target": pb.Target(pids=load.pids[:1])},
            {"event": f"kprobe:{SYMBOL}", "name": "thread", "target": pb.Target(tids=load.pids[:1])},
            {"event": f"kprobe:{SYMBOL}", "name": "cgroup", "target": pb.Target(cgroups=[path])},
            {"event": f"kprobe:{SYMBOL}", "name": "host", "filter": ours, "args": "stack=$stack:x64"},
            {"event": f"kprobe:{SYMBOL}", "name": "fetched", "args": "c=$comm n=\\7:u8", "filter": ours},
            {"event": f"kretprobe:{SYMBOL}", "name": "return", "target": pb.Target(pids=load.pids)},
            {"event": f"kretprobe:{SYMBOL}", "name": "value", "args": "parent=$retval:s32", "filter": ours})
        with Subscriber(daemon, *expected) as subscriber:
            load.go()
            equal(load.done(), [N] * len(CPUS), "calls made")
            lines = subscriber.finish(60)
        sums = ledger(daemon, *expected)
        for name in expected:
            rows_of(daemon.ledger(), name)
        load.exit()
        client.request(remove=pb.SelectRequest(names=["*"]))
        perfd.wait_until(lambda: daemon.status().n_closing == 0, "probes to be closed")
        perfd.wait_until(lambda: not definitions(), "definitions to be removed")
        equal(daemon.status().n_fds, len(perfd.online_cpus()), "perf fds without events")
    equal(sums, {name: {"occurred": n, "delivered": n, "lost": 0} for name, n in expected.items()}, "the ledger")
    items = {name: [line for line in lines if "kind" not in line and line["event"] == name] for name in expected}
    equal({name: len(found) for name, found in items.items()}, expected, "samples")
    for item in items["fetched"]:
        equal((item["fields"]["c"], item["fields"]["n"]), ("workload", 7), "what was fetched")
    equal({item["fields"]["parent"] for item in items["value"]}, {load.process.pid}, "returned values")


def test_middle_of_an_instruction():
    if os.uname().machine != "x86_64":
        print("  skipped: instructions of this machine have one length")
        return
    with Daemon() as daemon, daemon.client() as client:
        for more, reason in (({}, "bad-address"), ({"args": "a=%di"}, "bad-probe")):
            event = pb.EventSpec(event=f"kprobe:{SYMBOL}+1", **more)
            response = refused(client, reason, "STATUS_INVALID", add=pb.AddRequest(events=[event]))
            check("instruction" in response.message, response.message)
        equal((daemon.status().n_fds, definitions()), (len(perfd.online_cpus()), []), "what is left of it")


def test_children():
    """Followed without standing in their way: see test_probed_processes_have_children in test_targets.py."""
    with Daemon() as daemon, daemon.client() as client, Workload("forks", 20, cpus=CPUS) as load:
        add(client, {"event": f"kprobe:{SYMBOL.replace('getppid', 'exit_group')}", "name": "ends",
                     "target": pb.Target(pids=load.pids)})
        load.go()
        equal(load.done(), [20] * len(CPUS), "children")
        found = sum(row.occurred for row in rows_of(daemon.ledger(), "ends").values())
        load.exit()
    equal(found, 20 * len(CPUS), "ends of children")


def test_missed_returns_are_said():
    """A return probe with one instance misses what overlaps; hits and misses are those of kprobe_profile."""
    symbol = SYMBOL.replace("getppid", "clock_nanosleep")
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 1000, cpus=CPUS * 2) as load:
        add(client, {"event": f"kretprobe:{symbol}", "name": "sleeps", "args": "value=$retval:s32", "maxactive": 1})
        load.go()

        def row():
            return next(row for row in daemon.ledger().probes if row.name == "sleeps")

        perfd.wait_until(lambda: row().hits > 100 and row().missed > 100, "hits and misses")
        load.done(stop=True)
        load.exit()
        check(row().known, "the kernel's count of misses is said not to be known")

        def between():
            """A ledger, and the hits of before and after it: others on this machine sleep too."""
            before, ledger, after = row().hits, daemon.ledger(), row().hits
            return before == after and (ledger, after)

        ledger, hits = perfd.wait_until(between, "that nobody sleeps during a ledger")
        equal(sum(row.occurred for row in rows_of(ledger, "sleeps").values()), hits, "occurred and hits")


if __name__ == "__main__":
    perfd.main(globals(), seconds=120)
