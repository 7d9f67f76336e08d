#!/usr/bin/python3
"""How long events live: what is removed is gone everywhere, whoever removes it, and takes nothing of others with it."""
import os
import signal
import subprocess
import tempfile
import time

import perfd
from checker import Checker
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb, refused, wait_until
from test_errors import state, unchanged
from test_promises import lost, rows_of
from test_sources import CPUS, FIRE, SLOW, Fire, call_args, define, definitions, probe, samples, symbols, total


def test_while_connected():
    """What a connection has added goes with it, also out of tracefs, however it ends."""
    with Daemon() as daemon, daemon.client() as stays, Fire() as fire:
        add(stays, probe("fire_call", name="stays", args=call_args(), target=fire.target))
        before = state(daemon)
        equal(len(definitions()), 1, "definitions in tracefs")
        client = daemon.client()
        client.request(add=pb.AddRequest(while_connected=True, events=[
            pb.EventSpec(**probe("fire_call", name="goes", args=call_args())),
            pb.EventSpec(**probe("fire:hit", "usdt", name="hit", target=fire.target)),
            pb.EventSpec(event="context-switches", name="switches"),
            pb.EventSpec(event="external:note", name="note", fields=[pb.ExternalField(name="a", type="u8")])]))
        with Subscriber(daemon, "stays", "goes") as subscriber:
            fire.fire("calls", 10)
            equal((len(definitions()), len(client.request(list=pb.ListRequest()).list.events)), (3, 5), "definitions, events")
            client.socket.close()
            wait_until(lambda: len(definitions()) == 1, "its definitions to be removed")
            fire.fire("calls", 10)
            lines = subscriber.finish()
        unchanged(daemon, before, "what a connection that is gone left")
    equal([len(samples(lines, name)) for name in ("stays", "goes")], [20, 10], "samples before and after")
    equal(definitions(), [], "definitions after the daemon")


def test_leftovers():
    """Of a daemon that was killed nothing stays; what is another's stays."""
    foreign = f"p:perfdtest{os.getpid()}/theirs {FIRE}:{symbols()['fire_call']:#x}"
    define(foreign)
    try:
        with Daemon() as other, other.client() as living, Fire() as fire:
            add(living, probe("fire_call", args=call_args()))
            kept = sorted(definitions())
            equal(len(kept), 2, "definitions of others")
            with Daemon() as dead:
                with dead.client() as client:
                    add(client, probe("fire_call", args=call_args(), target=fire.target),
                        probe("fire_call", "uretprobe", args="v=$retval"), probe("fire:hit", "usdt"))
                    equal(len(definitions()), 5, "definitions")
                os.kill(dead.pid, signal.SIGKILL)
                dead.process.wait()
                dead.judged = True
                equal(len(definitions()), 5, "definitions after the kill")
                with Daemon(directory=dead.directory) as successor:
                    equal(sorted(definitions()), kept, "what a new perfd leaves")
                    check("3 " in successor.stderr(), f"it does not say what it removed: {successor.stderr()}")
            fire.fire("calls", 5)
            equal(total(rows_of(other.ledger(), f"uprobe:{FIRE}:fire_call"), "occurred"), 5, "calls seen by the living one")
    finally:
        define(f"-:perfdtest{os.getpid()}/theirs")
    equal(definitions(), [], "definitions in the end")


def test_hundreds_of_tracepoints():
    """Added by one glob and removed, beside a stream that misses nothing; and one event beside it."""
    # closing each takes the kernel 20 ms and more; and not the probes of another perfd, which may be gone before they are opened
    glob = "k*:*" if SLOW else "[k-oq-r]*:*"
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 20_000, cpus=CPUS) as load:
        add(client, {"event": "raw_syscalls:sys_enter", "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            times = []
            for spec in ({"event": "sched:sched_switch", "name": "one"},
                         {"event": glob, "target": pb.Target(pids=[os.getpid()], no_inherit=True)}):
                begin = time.monotonic()
                refs = add(client, spec)
                added = time.monotonic()
                client.request(remove=pb.SelectRequest(names=[f"#{ref.id}" for ref in refs]))
                times.append((len(refs), added - begin, time.monotonic() - added))
            load.done(stop=True)
            seen = checker.finish(60)
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
        begin = time.monotonic()
        wait_until(lambda: daemon.status().n_closing == 0, "everything to be closed", 120)
    for n, adding, removing in times:
        print(f"  {n} events: added in {adding * 1000:.0f} ms, removed in {removing * 1000:.0f} ms")
    print(f"  closed {time.monotonic() - begin:.1f} s later")
    equal(seen["gaps"], 0, "gaps")
    equal(seen["items"], total(rows, "occurred"), "items and occurrences beside the change")


def drown_words():
    """More words of devices that come online, which there are none of, than a socket that nobody reads has room for."""
    for _ in range(2000):
        with open("/sys/devices/virtual/mem/null/uevent", "w", encoding="ascii") as f:
            f.write("online")


def test_lost_words_of_cpus():
    """What the kernel says of CPUs is lost, and none of them was away: that is found out, and nothing is disturbed."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 2_000, cpus=CPUS) as load:
        add(client, {"event": "raw_syscalls:sys_enter", "name": "calls", "target": pb.Target(pids=load.pids)})
        threads = set(os.listdir(f"/proc/{daemon.pid}/task"))
        with Checker(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            os.kill(daemon.pid, signal.SIGSTOP)
            drown_words()
            os.kill(daemon.pid, signal.SIGCONT)
            wait_until(lambda: "were lost: perfd checks each" in daemon.stderr(), "the lost words to be noticed")
            load.done(stop=True)
            seen = checker.finish(60)
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
        equal(set(os.listdir(f"/proc/{daemon.pid}/task")), threads, "the threads, readers among them")
        check("offline" not in daemon.stderr(), f"a CPU that was there all the time is taken for gone: {daemon.stderr()}")
    equal(seen["items"], total(rows, "delivered"), "items beside it")
    equal(sum(lost(row) for row in rows.values()), 0, "lost")


def test_a_state_file_of_another_program():
    """It stays as it is; nothing is kept, and that is said, at the start and by --check."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        path = os.path.join(directory, "state")
        text = "words = of another program\n"
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        configuration = f"version: 1\nstate: {path}\nlisten: {{ control: {directory}/control.sock, stream: {directory}/stream.sock }}\n"
        with open(os.path.join(directory, "perfd.yaml"), "w", encoding="ascii") as f:
            f.write(configuration)
        words = f"{path} does not begin like a state file of perfd, and may belong"
        checked = subprocess.run([perfd.PERFD, "--check", "--config", os.path.join(directory, "perfd.yaml")], stderr=subprocess.PIPE, text=True,
                                 timeout=perfd.PATIENCE, check=False)
        equal(checked.returncode, 1, "status of --check")
        check(words in checked.stderr, checked.stderr)
        os.rename(path, os.path.join(directory, "events"))  # where --runtime-directory has it
        with Daemon(directory=directory) as daemon, daemon.client() as client:
            check("cannot be made persistent" in daemon.stderr() and "may belong to another program" in daemon.stderr(), daemon.stderr())
            refused(client, "state-file", "STATUS_DENIED", add=pb.AddRequest(events=[pb.EventSpec(event="page-faults", name="kept")], keep=True))
            with open(os.path.join(directory, "events"), encoding="ascii") as f:
                equal(f.read(), text, "the file of another program")
            equal([name for name in os.listdir(directory) if "broken" in name or "new" in name], [], "what is beside it")


if __name__ == "__main__":
    perfd.main(globals())
