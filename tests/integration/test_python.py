#!/usr/bin/python3
"""The package of client/python, as a program uses it, against perfd: its requests, streams, and the examples of its page."""
import os
import select
import signal
import subprocess
import sys
import time

import package
import perfd
from package import pb
from perfd import PATIENCE, Daemon, Workload, check, equal, online_cpus
from running import HERE

CALLS = 20000
EXAMPLES = os.path.join(HERE, "..", "..", "client", "python", "examples")


def example(daemon, name, **popen):
    """A program of nothing but the package: no compiler of messages can be found."""
    environment = {"PERFD_SOCKET": daemon.control, "PATH": "/nonexistent",
                   "PYTHONPATH": os.path.realpath(os.path.join(perfd.BUILD, "client", "python"))}
    return subprocess.Popen([sys.executable, "-B", os.path.join(EXAMPLES, f"{name}.py")], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)


def finish(program):
    out, err = program.communicate(timeout=PATIENCE)
    equal((program.returncode, err), (0, ""), "status and complaints of an example")
    return out.splitlines()


def test_example_execs():
    config = "version: 1\ngroups: { g: { events: ['sched:sched_process_exec'] } }\n"
    with Daemon(config) as daemon, example(daemon, "execs") as program:
        perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "its subscription")
        subprocess.run(["/bin/true"], check=True)
        perfd.wait_until(lambda: daemon.monitor.request(list=pb.ListRequest()).list.events[0].delivered, "its sample")
        program.send_signal(signal.SIGINT)
        *lines, last = finish(program)
    check(any(line.endswith(" /bin/true") for line in lines), lines)
    equal(last, "lost: nothing", "its last words")


def test_example_top():
    with Daemon() as daemon, example(daemon, "top") as program:
        lines = [(line.split(None, 1) + [""])[:2] for line in finish(program)]  # of who had no name yet when it came, it is empty
        check(1 <= len(lines) <= 10 and sum(int(n) for n, _ in lines) >= 100, lines)
        equal([n for n, _ in lines], sorted((n for n, _ in lines), key=int, reverse=True), "the largest first")
        perfd.wait_until(lambda: daemon.status().n_events == 0, "its event to be gone")


def test_example_deploy():
    with Daemon() as daemon, example(daemon, "deploy") as program:
        equal(finish(program), ["1 taken, 0 late, 0 lost"], "its words")
        equal(daemon.status().n_events, 0, "events")


def client(daemon, stream=False, **options):
    return package.Client(daemon.stream if stream else daemon.control, program="test", timeout=PATIENCE, **options)


def test_requests():
    """Each once, on a daemon."""
    text = "version: 1\ngroups: { g: { events: [{ event: page-faults, name: faults }] } }\n"
    with Daemon("version: 1\n") as daemon, client(daemon) as one:
        equal((one.hello.protocol, one.hello.may_change, one.status().pid), (1, True, daemon.pid), "hello and status")
        check(one.available("sched:sched_switch", fields=True).events[0].fields, "no fields of sched_switch")
        added = one.add("page-faults", {"event": "sched:sched_switch", "name": "switches", "filter": "prev_pid != 0"})
        equal([event.name for event in added.events], ["page-faults", "switches"], "what was added")
        one.set_filter("switches", "next_pid != 0")
        one.set_period("page-faults", period=10)
        equal([event.name for event in one.disable("switches").events], ["switches"], "what was disabled")
        states = {event.spec.name: event for event in one.list().events}
        equal((states["switches"].spec.filter, states["switches"].enabled, states["page-faults"].spec.period),
              ("next_pid != 0", False, 10), "what became of them")
        equal([event.name for event in one.enable("sw*").events], ["switches"], "what was enabled")
        ledger = one.ledger("switches")
        equal(({row.name for row in ledger.events}, package.ledger.balanced(ledger)), ({"switches"}, True), "its ledger")
        equal(len(one.remove(f"#{added.events[0].id}", "switches").events), 2, "what was removed")
        equal([error.line for error in one.validate("version: 1\nnonsense: 1\n").errors], [2], "lines of errors")
        equal([event.name for event in one.plan(text).added], ["faults"], "a plan")
        equal((one.apply(text).added, one.reload().removed), (1, 1), "applied, and taken back")
        check({row.topic for row in one.doctor().rows} >= {"events", "limits"}, "topics of doctor")
        one.add({"event": "external:x", "fields": [{"name": "n", "type": "s8"}]})
        equal(one.emit({"event": "external:x", "values": [-5]}, {"event": "external:x", "values": [127]}).taken, 2, "taken")
        try:
            one.emit({"event": "external:x", "values": [128]})
            check(False, "not refused")
        except package.Refused as no:
            equal((no.reason, no.status), ("bad-value", pb.STATUS_INVALID), "a refusal")
        with client(daemon, stream=True) as reader:
            equal(reader.hello.may_change, False, "may_change")
            try:
                reader.remove("external:x")
                check(False, "not refused")
            except package.Refused as no:
                equal((no.reason, no.status, no.position), ("read-only", pb.STATUS_DENIED, None), "a refusal")
            try:
                reader.subscribe("external:x", where="n == 1 && m == 2")
                check(False, "not refused")
            except package.Refused as no:
                equal((no.reason, no.position), ("unknown-field", 10), "a refusal")


def add_calls(one, load):
    one.add({"event": "syscalls:sys_enter_getppid", "name": "calls", "target": pb.Target(pids=load.pids)})


def test_stream():
    """Every call comes, by the socket and in shared memory, and the ledger says so."""
    for more in {}, {"ring_bytes": 1 << 18}, {"ring_bytes": 1 << 18, "pool": True}:
        with Daemon() as daemon, client(daemon) as one, Workload("syscalls", CALLS, cpus=online_cpus()[:1]) as load:
            add_calls(one, load)
            with client(daemon, stream=True).subscribe("calls", **more) as stream:
                load.go()
                calls, = load.done()
                stream.stop()
                samples = list(stream.samples())
                equal((len(samples), stream.missing, stream.end.lost, stream.end.reason, stream.end.balanced),
                      (calls, 0, {}, "stopped", True), f"what came with {more}")
                who = {(sample.event.name, sample.comm, sample.pid) for sample in samples}
                equal(who, {("calls", b"workload", load.pids[0])}, "whose they are")


def test_gaps():
    """Who does not read is told of each item that is missing."""
    with Daemon() as daemon, client(daemon) as one, Workload("syscalls", 10 * CALLS, cpus=online_cpus()[:1]) as load:
        add_calls(one, load)
        with client(daemon, stream=True).subscribe("calls", queue_bytes=1 << 16, payload="both") as stream:
            load.go()
            calls, = load.done()
            stream.stop()
            items = list(stream)
            missing = sum(item.n_items for item in items if isinstance(item, package.Gap))
            check(missing > 0, "nothing is missing: the test shows nothing")
            equal((stream.items + missing, stream.missing), (calls, missing), "all that belongs there")
            equal(stream.end.lost, {"outbox": missing}, "what the ledger says")


def test_poll():
    """A program that waits for the socket with others hears of everything, and nothing else wakes it for ever."""
    for more in {}, {"ring_bytes": 1 << 16}:
        with Daemon() as daemon, client(daemon) as one:
            one.add({"event": "external:x", "fields": [{"name": "n", "type": "u32"}]})
            with client(daemon, stream=True).subscribe("external:x", **more) as stream:
                found, poll = [], select.poll()
                poll.register(stream, select.POLLIN)
                for n in range(50):
                    while stream.read(0):
                        pass
                    one.emit({"event": "external:x", "values": [n]})
                    begin = time.monotonic()
                    while len(found) <= n:
                        check(time.monotonic() < begin + PATIENCE and poll.poll(PATIENCE * 1000),
                              f"sample {n} never comes, with {more}")
                        while items := stream.read(0):
                            found += items
                equal([sample.fields["n"] for sample in found], list(range(50)), "what came")


def test_daemon_goes():
    """A daemon that is killed breaks off the stream, and what waits for an answer."""
    with Daemon() as daemon, client(daemon) as one, client(daemon, stream=True).subscribe() as stream:
        stream.read(0)
        daemon.judged = True  # it does not end well
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.process.wait(PATIENCE)
        for call in (lambda: list(stream), one.status):
            try:
                call()
                check(False, "nothing broke")
            except package.Disconnected:
                pass
        equal((stream.end, stream.fileno(), one.fileno()), (None, -1, -1), "what is left")


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
