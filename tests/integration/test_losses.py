#!/usr/bin/python3
"""What the log says of losses: each is said once, with its count and its reason, for an event at most once a second, and
nothing is said, and nobody woken, where nothing is lost. Needs root."""
import os
import re
import signal
import tempfile
import time

import perfd
from asleep import wait_until_asleep
from perfd import Daemon, Family, Workload, add, check, equal, pb
from test_perfctl import GETPPID, run
from test_promises import CPUS

CALLS = 20_000
SMALL = "version: 1\nrings: { size: 64KiB }\n"
LINE = re.compile(r"^perfd: (.+): (\d+) samples? lost: (.+)$", re.M)


def losses(daemon, event):
    """What the lines of an event say: [{reason: count}], of which the sum of each is checked."""
    found = []
    for name, total, reasons in LINE.findall(daemon.stderr()):
        if name == event:
            row = {reason: int(count) for reason, count in (part.split(" ") for part in reasons.split(", "))}
            equal(sum(row.values()), int(total), f"the sum of {row}")
            found.append(row)
    return found


def sum_of(daemon, event, reason="kernel_ring"):
    return sum(row.get(reason, 0) for row in losses(daemon, event))


def in_ledger(client, event, reason="kernel_ring"):
    rows = client.request(ledger=pb.LedgerRequest(events=[event])).ledger.events
    return sum(count.count for row in rows for count in row.lost if count.reason == reason)


def lose(daemon, load):
    """All that the load does happens while perfd stands still, and its rings are small."""
    os.kill(daemon.pid, signal.SIGSTOP)
    load.go()
    load.done()
    os.kill(daemon.pid, signal.SIGCONT)


def test_each_is_said_once():
    """With its exact count; behind it all threads sleep, and what comes later is said later."""
    with Daemon(config=SMALL) as daemon, daemon.client() as control, Family() as family:
        add(control, {"event": "emulation-faults", "name": "quiet", "target": pb.Target(pids=[family.pid])})  # it has none
        said = 0
        for i in range(2):
            with Workload("syscalls", CALLS, cpus=CPUS) as load:
                add(control, {"event": GETPPID, "name": f"calls{i}", "target": pb.Target(pids=load.pids)})
                lose(daemon, load)
                perfd.wait_until(lambda i=i: losses(daemon, f"calls{i}"), "the loss in the log")
                load.exit()
            lost = in_ledger(control, f"calls{i}")
            check(0 < lost < len(CPUS) * CALLS, f"{lost} calls are lost: the test shows nothing")
            perfd.wait_until(lambda i=i, n=lost: sum_of(daemon, f"calls{i}") == n, f"the log to say all {lost}")
            said += len(losses(daemon, f"calls{i}"))
        wait_until_asleep(daemon.pid)
        equal((losses(daemon, "quiet"), sum(len(losses(daemon, f"calls{i}")) for i in range(2))), ([], said), "the lines")


def test_without_losses_nothing_is_said():
    """Nor is main woken for what was not lost."""
    with Daemon(config="version: 1\nrings: { size: 8MiB }\n") as daemon, daemon.client() as control, \
            Workload("syscalls", 1000, cpus=CPUS) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        main = open(f"/proc/{daemon.pid}/task/{daemon.pid}/comm", encoding="ascii").read().strip()
        before = wait_until_asleep(daemon.pid)[main]
        load.go()
        load.done()
        equal(wait_until_asleep(daemon.pid)[main], before, "how often main has slept")
        equal((LINE.findall(daemon.stderr()), in_ledger(control, "calls")), ([], 0), "losses, and what is said of them")
        load.exit()


def test_once_a_second():
    """While an event loses all the time, with as little said as promised, and all of it in the end, when it is removed."""
    with Daemon(config=SMALL) as daemon, daemon.client() as control, Workload("flood", 0, 200_000, cpus=CPUS) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        begin = time.monotonic()
        load.go()
        while len(losses(daemon, "calls")) < 3 and time.monotonic() - begin < perfd.PATIENCE:
            for step in (signal.SIGSTOP, signal.SIGCONT):
                os.kill(daemon.pid, step)
                time.sleep(0.05)  # of the flood, which loses in the first half
        n, took = len(losses(daemon, "calls")), time.monotonic() - begin
        check(3 <= n <= took + 2, f"{n} lines in {took:.1f} s")
        load.done(stop=True)
        lost = in_ledger(control, "calls")
        control.request(remove=pb.SelectRequest(names=["calls"]))
        equal(daemon.status().n_lost, lost, "what the status says is lost since the start")
        equal(sum_of(daemon, "calls"), lost, f"what {len(losses(daemon, 'calls'))} lines say of the loss, of the ledger's")
        load.exit()


def test_list_and_status_say_why():
    """By reason, of the event and of all; a line of the table has it too."""
    with Daemon(config=SMALL) as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        equal([row["losses"] for row in run(daemon, "list", "--json")], [{}], "losses before")
        lose(daemon, load)
        lost = in_ledger(control, "calls")
        check(lost > 0, "nothing is lost: the test shows nothing")
        row, = run(daemon, "list", "--json")
        status, = run(daemon, "status", "--json")
        equal((row["lost"], row["losses"]), (lost, {"kernel_ring": lost}), "of the event")
        equal((status["lost"], status["losses"]), (lost, {"kernel_ring": lost}), "of all")
        check(f"kernel_ring {lost}" in run(daemon, "list") and f"kernel_ring {lost}" in run(daemon, "status"), "in tables")
        load.exit()


def test_apply_says_the_size_of_rings():
    """If it has changed; so does the log."""
    with Daemon(config=SMALL) as daemon, tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("version: 1\nrings: { size: 128KiB }\n")
        file.flush()
        equal(run(daemon, "apply", file.name), "added 0, removed 0, changed 0, kept 0, rings of 128.0 KiB now\n", "a new size")
        equal(run(daemon, "apply", file.name), "added 0, removed 0, changed 0, kept 0\n", "the same")
        answer, = run(daemon, "reload", "--json")
        equal(answer["ring_size"], 65536, "the one of before")
        check("pending 0, rings of 128 KiB" in daemon.stderr(), daemon.stderr())


def test_many_events_have_few_lines():
    """Those that lost most, and the others together."""
    events = 40
    with Daemon(config=SMALL) as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load:
        add(control, *({"event": GETPPID, "name": f"calls{i}", "target": pb.Target(pids=load.pids)} for i in range(events)))
        lose(daemon, load)
        others = perfd.wait_until(lambda: [row for row in LINE.findall(daemon.stderr()) if "more events" in row[0]],
                                  "the sum of the others")
        lines = LINE.findall(daemon.stderr())
        check(len(lines) <= 17 * len(others), f"{len(lines)} lines of {events} events")
        lost = in_ledger(control, "*")
        perfd.wait_until(lambda: sum(int(total) for _, total, _ in LINE.findall(daemon.stderr())) == lost,
                         f"all {lost} losses in the log")
        load.exit()


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
