#!/usr/bin/python3
"""A reader whose thread is stopped, as by a debugger, in the middle of everything: perfd goes on without it.

The thread is stopped by PTRACE_SEIZE and PTRACE_INTERRUPT, which stop one thread and no other; PTRACE_DETACH lets it go on.
"""
import collections
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time

import doings
import perfd
from perfd import check, equal, pb, refused, wait_until
from test_quotas import CONFIG, N_CPUS, NOBODY

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000
PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace({request:#x}, {tid}): {os.strerror(ctypes.get_errno())}")


def tid_of(daemon, name):
    for found, tid in doings.threads_of(daemon.pid):
        if found == name:
            return tid
    raise AssertionError(f"perfd has no thread {name}")


def state_of(tid):
    with open(f"/proc/{tid}/stat", encoding="ascii", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


@contextlib.contextmanager
def stopped(daemon, cpu):
    """The reader, and before that the stall monitor, which would let a backup do its work; one that does it already has ended."""
    with stopped_thread(daemon, "stall-monitor"):
        wait_until(lambda: not any(name == f"backup-{cpu}" for name, _ in doings.threads_of(daemon.pid)), "the end of a backup")
        with stopped_thread(daemon, f"reader-{cpu}") as tid:
            yield tid


@contextlib.contextmanager
def stopped_thread(daemon, name):
    tid = tid_of(daemon, name)
    ptrace(PTRACE_SEIZE, tid)
    try:
        ptrace(PTRACE_INTERRUPT, tid)
        os.waitpid(tid, WALL)
        wait_until(lambda: state_of(tid) == "t", "a stopped thread")
        yield tid
    finally:
        with contextlib.suppress(OSError):  # perfd may have ended
            ptrace(PTRACE_DETACH, tid)


def reap(*tids):
    """Who has stopped a thread has to take its end, or the process stays as it is."""
    for tid in tids:
        wait_until(lambda t=tid: os.waitpid(t, WALL | os.WNOHANG)[0] == t, "the end of a stopped thread")


def rows(daemon, name):
    return {row.cpu: row for row in daemon.ledger().events if row.name == name}


def stalled(daemon):
    return {cpu.cpu for cpu in daemon.status().cpus if cpu.stalled}


def only_stalled(daemon, cpu):
    """Where others are slow to answer too, as under a sanitizer on a busy machine, they do in the end."""
    wait_until(lambda: stalled(daemon) == {cpu}, f"the reader of CPU {cpu}, and no other, does not answer")


def answers_again(daemon):
    wait_until(lambda: not stalled(daemon), "all readers answer")


def call(cpu, n):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [cpu])
    try:
        for _ in range(n):
            os.getppid()
    finally:
        os.sched_setaffinity(0, before)


GETPPID = "syscalls:sys_enter_getppid"


def test_changes_go_on():
    """Events are added, changed and removed while a reader is stopped; afterwards all is as it should be."""
    first, last = perfd.online_cpus()[0], perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        me = pb.Target(pids=[os.getpid()], no_inherit=True)  # LeakSanitizer calls getppid(2) at the end of a child
        for name in ("stays", "goes", "changes"):
            perfd.add(control, {"event": GETPPID, "name": name, "target": me})
        daemon.status()
        fds = daemon.fds()
        with stopped(daemon, last) as tid:
            begin = time.monotonic()
            perfd.add(control, {"event": GETPPID, "name": "comes", "target": me})
            print(f"  the first change took {time.monotonic() - begin:.1f} s")
            only_stalled(daemon, last)
            begin = time.monotonic()
            control.request(remove=pb.SelectRequest(names=["goes"]))
            control.request(set_filter=pb.SetFilterRequest(name="changes", filter="common_pid != 1"))
            control.request(disable=pb.SelectRequest(names=["stays"]))
            control.request(enable=pb.SelectRequest(names=["stays"]))
            listed = sorted(e.spec.name for e in control.request(list=pb.ListRequest()).list.events)
            equal(listed, ["changes", "comes", "stays"], "what is listed")
            took = time.monotonic() - begin
            check(took < 20, f"five changes took {took} s while one reader is known not to answer")
            check(len(daemon.fds()) > len(fds), "what the stopped reader knows was closed")
            call(first, 1000)
            call(last, 1000)
            row = rows(daemon, "comes")
            equal(row[first].occurred, 1000, "on the CPU whose reader goes on")
            equal((row[first].balanced, row[first].exact), (True, True), "that row")
            equal((row[last].balanced, row[last].exact), (False, False), "the row of the other one")
            rings = {ring.cpu: ring for ring in daemon.ledger().rings}
            equal((rings[first].stalled, rings[first].balanced), (False, True), "the ring of the CPU whose reader goes on")
            equal((rings[last].stalled, rings[last].balanced), (True, False), "the ring of the other one")
            result = subprocess.run([PERFCTL, "--socket", daemon.control, "ledger"], capture_output=True, text=True,
                                    timeout=perfd.PATIENCE, check=False)
            equal(result.returncode, 1, result.stderr)
            check("does not answer" in result.stderr and "a bug in perfd" not in result.stderr, result.stderr)
            check(f"(reader-{last}, tid {tid})" in daemon.stderr() and "stopped by a debugger" in daemon.stderr(),
                  "perfd does not say who does not answer")
        answers_again(daemon)
        wait_until(lambda: daemon.fds() == fds, "nothing is kept for it any more")
        call(first, 1000)
        call(last, 1000)
        row = rows(daemon, "comes")
        equal((row[first].occurred, row[first].exact), (2000, True), "of the CPU whose reader went on")
        equal((row[last].occurred, row[last].balanced, row[last].exact), (1000, True, False), "of the other one, from then on")
        row = rows(daemon, "changes")
        equal(row[first].occurred, 2000, "the changed event, where the reader went on")
        equal((row[first].balanced, row[last].balanced), (True, True), "the rows of the changed event")


def change_while_stopped(daemon, control, cpu, is_known):
    """Filters and periods change, behind calls that the stopped reader has not read; then all of them are in the ledger."""
    me = pb.Target(pids=[os.getpid()])
    names = ("filter", "twice", "period", "gone")
    for name in names:
        perfd.add(control, {"event": GETPPID, "name": name, "target": me})
    perfd.add(control, {"event": GETPPID, "name": "samples", "target": me})
    call(cpu, 100)
    daemon.ledger()
    with stopped(daemon, cpu):
        if is_known:
            daemon.ledger()
        call(cpu, 50)
        control.request(set_filter=pb.SetFilterRequest(name="filter", filter="common_pid != 1"))
        control.request(set_filter=pb.SetFilterRequest(name="twice", filter="common_pid != 1"))
        control.request(set_filter=pb.SetFilterRequest(name="twice", filter="common_pid != 2"))
        control.request(set_period=pb.SetPeriodRequest(name="period", period=1))
        control.request(set_period=pb.SetPeriodRequest(name="samples", period=5))
        control.request(set_filter=pb.SetFilterRequest(name="gone", filter="common_pid != 1"))
        control.request(remove=pb.SelectRequest(names=["gone"]))
        call(cpu, 30)  # nothing is enabled there
    answers_again(daemon)
    call(cpu, 100)
    row = rows(daemon, "samples")[cpu]
    equal((row.balanced, row.exact), (True, False), "the row of samples")
    for name in names[:-1]:
        row = rows(daemon, name)[cpu]
        lost = sum(count.count for count in row.lost)
        equal((row.balanced, row.exact, row.occurred), (True, False, 250),
              f"{name}, known before: {is_known}: {row}")
        equal((row.delivered + row.filtered + lost, lost), (row.occurred, 0), f"{name}: {row}")
    control.request(remove=pb.SelectRequest(names=["filter", "twice", "period", "samples"]))


def test_replaced_meanwhile():
    """What was replaced while its reader did not answer keeps what it counted; twice, known to be stalled or found so by it."""
    last = perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        change_while_stopped(daemon, control, last, is_known=True)
        change_while_stopped(daemon, control, last, is_known=False)


def test_streams_go_on():
    """A subscriber gets what other CPUs say, in the order of time, and the rest when the reader is back; then it ends as ever."""
    first, last = perfd.online_cpus()[0], perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        perfd.add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])})
        with perfd.Subscriber(daemon, "--quiet", "calls") as subscriber:
            with stopped(daemon, last):
                call(first, 500)
                call(last, 300)
                rows(daemon, "calls")  # waits for it, in vain
                only_stalled(daemon, last)
                with perfd.Subscriber(daemon, "--quiet", "calls") as other:  # comes and goes meanwhile
                    call(first, 500)
                    other.finish()
                wait_until(lambda: rows(daemon, "calls")[first].delivered == 1000, "what the other CPU says")
            answers_again(daemon)
            call(last, 200)
            found = [row for row in subscriber.finish() if row["kind"] == "event"]
        equal(sum(row["occurred"] for row in found), 1500, "calls")
        equal(sum(row["delivered"] + row["filtered"] + sum(row["lost"].values()) for row in found), 1500, "calls")
        equal([row["balanced"] for row in found], [True] * len(found), "rows")


def unjoined():
    """That perfd cannot wait for a thread's end is what is tested."""
    return {**os.environ, "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0"}


def test_noticed_by_streams():
    """Nobody asks main anything: a stream in the order of time goes on all the same."""
    first, last = perfd.online_cpus()[0], perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        perfd.add(control, {"event": GETPPID, "name": "calls", "filter": f"common_pid == {os.getpid()}",
                            "target": pb.Target(pids=[os.getpid()])})  # a sanitizer in perfctl asks for it too
        watch = subprocess.Popen([PERFCTL, "--socket", daemon.control, "watch", "--count", "500", "calls"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: daemon.status().n_subscribers == 1, "the subscription")
            with stopped(daemon, last) as tid:
                call(last, 200)  # so that nobody takes it for idle
                call(first, 500)
                out, said = watch.communicate(timeout=perfd.PATIENCE)
                equal((watch.returncode, out.count("calls"), said.count("500 items, nothing lost")), (1, 500, 1), f"{said}")
                check(f"(reader-{last}, tid {tid}) has not responded" in daemon.stderr() and
                      "since it was asked how far it is" in daemon.stderr(), daemon.stderr())
                only_stalled(daemon, last)
        finally:
            watch.kill()
            watch.communicate()
        answers_again(daemon)
        equal([(row.occurred, row.balanced, row.exact) for row in rows(daemon, "calls").values()],
              [(500, True, True), (200, True, False)], "rows")


def test_removed_behind_it():
    """Streams hear that an event is removed behind its last sample, which a stopped reader still has in its ring."""
    first, last = perfd.online_cpus()[0], perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        me = pb.Target(pids=[os.getpid()], no_inherit=True)
        for name in ("goes", "stays"):
            perfd.add(control, {"event": GETPPID, "name": name, "target": me})
        with contextlib.ExitStack() as stack:
            by_cpu = stack.enter_context(perfd.Subscriber(daemon, "--order", "cpu"))
            by_time = stack.enter_context(perfd.Subscriber(daemon))
            watching = stack.enter_context(subprocess.Popen(
                [PERFCTL, "--socket", daemon.stream, "--json", "watch", "--order", "cpu", "goes"], stdout=subprocess.PIPE, text=True))
            equal(json.loads(watching.stdout.readline())["kind"], "start", "the first line of perfctl watch")
            with stopped(daemon, last):
                call(first, 100)
                call(last, 300)
                rows(daemon, "goes")  # waits for it, in vain
                only_stalled(daemon, last)
                control.request(remove=pb.SelectRequest(names=["goes"]))
            answers_again(daemon)
            wait_until(lambda: rows(daemon, "stays")[last].occurred >= 300, "what the reader had in its ring")
            items = [item for item in by_cpu.finish() if "tid" in item and item["event"] == "goes"]
            equal(len(items), 400, "samples of the removed event, none behind its removal")
            by_time.finish()
            watching.send_signal(signal.SIGINT)
            said, _ = watching.communicate(timeout=perfd.PATIENCE)
            kinds = [line["kind"] for line in map(json.loads, said.splitlines()) if line.get("kind") in ("sample", "removed")]
            equal(kinds, ["sample"] * 400 + ["removed"], "what perfctl says of it")


def items_of(subscriber):
    """How many samples it got, by CPU, until now."""
    return dict(collections.Counter(item["cpu"] for item in subscriber.finish() if "tid" in item))


def test_begins_meanwhile():
    """Who comes while a reader is stopped has nothing that this reader still had to read, whoever else is served by it: of its CPU
    a stream begins where the reader answers again."""
    first, last = perfd.online_cpus()[0], perfd.online_cpus()[-1]
    ways = ("--order", "cpu"), ("--order", "time"), ("--order", "cpu", "--where", "cpu >= 0")  # the last one shares with nobody
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        perfd.add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()], no_inherit=True)})
        with contextlib.ExitStack() as stack:
            early = [stack.enter_context(perfd.Subscriber(daemon, *way)) for way in ways[:2]]
            with stopped(daemon, last):
                call(first, 100)
                call(last, 300)
                rows(daemon, "calls")  # waits for it, in vain
                only_stalled(daemon, last)
                late = [stack.enter_context(perfd.Subscriber(daemon, *way)) for way in ways]
                call(first, 40)
                call(last, 20)
            answers_again(daemon)
            rows(daemon, "calls")  # behind all that follows from that
            call(first, 10)
            call(last, 50)
            equal(items_of(early[0]), {first: 150, last: 370}, "of who was there before")
            early[1].finish()  # what comes from the stopped reader may be late
            for way, subscriber in zip(ways, late):
                equal(items_of(subscriber), {first: 50, last: 50}, f"of who came meanwhile, {way}")


def test_end_without_it():
    """SIGTERM while a reader is stopped, whose backup does all but end it: perfd says so, and ends with all that is its own removed."""
    last = perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n", env=unjoined()) as daemon, daemon.client() as control:
        perfd.add(control, {"event": GETPPID, "name": "calls"})
        with perfd.Subscriber(daemon, "--quiet", "calls") as subscriber:
            with stopped_thread(daemon, f"reader-{last}") as tid:
                rows(daemon, "calls")
                os.kill(daemon.pid, signal.SIGTERM)
                reap(tid)
                daemon.stop()
                subscriber.finish(signal_number=None)
                check("exits while a reader does not respond" in daemon.stderr(), daemon.stderr())


def later(client, **body):
    """Asks, and does not wait; is_answered() says whether there is something to receive()."""
    client.send(**body)


def is_answered(client):
    return bool(select.select([client.socket], [], [], 0)[0])


def test_others_meanwhile():
    """While main waits for a reader that has just stopped, whoever only looks is answered, and told to end perfd ends."""
    last = perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n", env=unjoined()) as daemon, daemon.client() as control, daemon.client() as other, \
            daemon.client() as third:
        perfd.add(control, {"event": GETPPID, "name": "stays"})
        with stopped(daemon, last):
            later(control, add=pb.AddRequest(events=[pb.EventSpec(event=GETPPID, name="comes")]))
            later(other, status=pb.Empty())  # whichever comes first waits for the reader
            n = 0
            while not is_answered(control):
                with daemon.client() as somebody:
                    equal(somebody.hello.may_change, True, "an answer")
                n += 1
            check(n >= 10, f"{n} connections were answered before the change")
            equal(other.receive().response.daemon.pid, daemon.pid, "the status")
            equal(control.receive().response.status, pb.STATUS_OK, "the change")
            only_stalled(daemon, last)
        answers_again(daemon)
        monitor = tid_of(daemon, "stall-monitor")
        with stopped(daemon, last) as tid:
            later(control, ledger=pb.LedgerRequest())
            later(third, ledger=pb.LedgerRequest())  # waits for its turn
            other.request(status=pb.Empty())
            os.kill(daemon.pid, signal.SIGTERM)
            reap(tid, monitor)
            daemon.stop()
            check(f"the stall monitor (tid {monitor})" in daemon.stderr(), daemon.stderr())


def test_debugger_comes_again():
    """Stopped, let go and stopped again, with changes each time."""
    last = perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        daemon.status()
        n_fds = len(daemon.fds())  # those of the start's trials may still be among them
        for i in range(3):
            with stopped(daemon, last):
                perfd.add(control, {"event": GETPPID, "name": f"event-{i}"})
                control.request(remove=pb.SelectRequest(names=[f"event-{i}"]))
            answers_again(daemon)
        perfd.add(control, {"event": GETPPID, "name": "calls"})
        control.request(remove=pb.SelectRequest(names=["calls"]))
        wait_until(lambda: len(daemon.fds()) <= n_fds, "no more fds than before")


def test_more_than_its_batches():
    """A reader that goes on has far more in its ring than all of its batches have room for, and a cut to take behind that: it gets
    batches back, and answers."""
    last, calls = perfd.online_cpus()[-1], 260_000
    with perfd.Daemon(config="version: 1\nrings: {size: 64MiB}\nbatches: {pool: 256KiB}\n") as daemon, \
            daemon.client() as control, perfd.Workload("syscalls", calls, cpus=[last]) as load:
        perfd.add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with perfd.Subscriber(daemon, "--quiet", "--order", "cpu", "calls") as subscriber:
            with stopped(daemon, last):
                load.go()
                load.done()
                rows(daemon, "calls")  # waits for it, in vain
                only_stalled(daemon, last)
            answers_again(daemon)
            row = rows(daemon, "calls")[last]
            equal((row.occurred, row.delivered, row.balanced), (calls, calls, True), f"the row of its CPU: {row}")
            subscriber.finish()
        load.exit()


def plan_of(n):
    events = ", ".join(f"{{ event: page-faults, name: faults-{i} }}" for i in range(n))
    return pb.PlanRequest(yaml=f"version: 1\ngroups: {{ own: {{ events: [ {events} ] }} }}\n")


def test_trials_keep_nothing():
    """What was opened to see whether it can be, and what a refused request had opened, waits for no reader: none was told of it."""
    last = perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        daemon.status()
        with stopped(daemon, last):
            daemon.ledger()  # waits for it, in vain
            only_stalled(daemon, last)
            wait_until(lambda: daemon.status().n_closing == 0, "the trials of the start are closed")
            fds = daemon.fds()
            for _ in range(3):
                equal(len(control.request(plan=plan_of(40)).plan.added), 40, "events that would be added")
            refused(control, "bad-filter", add=pb.AddRequest(events=[
                pb.EventSpec(event="page-faults"), pb.EventSpec(event=GETPPID, filter="nothing == 1")]))
            wait_until(lambda: daemon.fds() == fds, "nothing of them is open any more")
            equal(daemon.status().n_closing, 0, "fds that wait to be closed")


def test_kept_for_it_is_charged():
    """What a stopped reader may still look at is charged to who has added it, and counted, until it is closed."""
    last = perfd.online_cpus()[-1]
    with perfd.Daemon(CONFIG.format(events=100, fds=2 * N_CPUS)) as daemon, daemon.client_of(NOBODY, stream=False) as nobody:
        perfd.add(nobody, "context-switches", "page-faults")
        with stopped(daemon, last):
            nobody.request(remove=pb.SelectRequest(names=["page-faults"]))
            only_stalled(daemon, last)
            wait_until(lambda: daemon.status().n_closing == N_CPUS, "all but what is kept is closed")
            more = pb.AddRequest(events=[pb.EventSpec(event="cpu-migrations")])
            no = refused(nobody, "too-many-fds", "STATUS_EXHAUSTED", add=more)
            check(f"uid {NOBODY} have {2 * N_CPUS}" in no.message, no.message)
        answers_again(daemon)
        wait_until(lambda: daemon.status().n_closing == 0, "nothing is kept any more")
        nobody.request(add=more)


if __name__ == "__main__":
    perfd.main(globals())
