#!/usr/bin/python3
"""Plans and validations: what they try is bounded and charged, others run in the middle of them, and they come to their end. Needs root."""
import contextlib
import json
import multiprocessing
import os
import re
import select
import shutil
import signal
import struct
import tempfile

import perfd
from perfd import Daemon, Refused, add, check, equal, refused, wait_until
from subscriber import pb
from test_control import documents, perfctl
from test_errors import state, unchanged
from test_operations import CPU_BOUND, EVERYTHING, closed_all, count_fds, main_cpu, others_are_served, status
from test_quotas import NOBODY, SOMEBODY
from test_stalled import stopped_thread


def test_plan_of_everything():
    """From the stream socket, by somebody without privileges: it opens next to nothing, and nobody waits."""
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before, fds, most = state(daemon), count_fds(daemon), 0
        for body in {"plan": pb.PlanRequest(yaml=EVERYTHING)}, {"validate": pb.ValidateRequest(yaml=EVERYTHING)}, \
                {"available": pb.AvailableRequest(fields=True)}, {"doctor": pb.Empty()}:
            with others_are_served(daemon, f"3 times {next(iter(body))}"):
                for _ in range(3):
                    nobody.request(**body)
                    most = max(most, count_fds(daemon) - fds)
        check(most < 200, f"{most} fds are open behind a plan of all tracepoints")
        unchanged(daemon, before, "what looking at everything left")


def define(line):
    fd = os.open(f"{perfd.TRACING}/uprobe_events", os.O_WRONLY | os.O_APPEND)  # without that everybody's would go
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def come_and_go(group, program, stop):
    """In a process of its own: a user probe that is defined, and taken away, again and again."""
    while not stop.is_set():
        define(f"p:{group}/comes {program}\n")
        take_away(f"{group}/comes")


def take_away(probe):
    """As soon as nobody has it open any more."""
    def is_gone():
        with contextlib.suppress(OSError):
            define(f"-:{probe}\n")
        return not os.path.exists(f"{perfd.TRACING}/events/{probe}")
    wait_until(is_gone, f"{probe} to go")


def test_what_goes_meanwhile():
    """A pattern means what is there: what goes between the list and the look at it is left out, and refuses nothing."""
    group = f"perfd_test_goes_{os.getpid()}"
    context = multiprocessing.get_context("fork")
    with contextlib.ExitStack() as stack:
        program = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "program")
        shutil.copy("/bin/true", program)  # which nobody runs: a breakpoint is written into it
        with open(program, "rb") as f:
            entry, = struct.unpack_from("<Q", f.read(64), 24)  # there is an instruction
        program += f":{entry:#x}"
        for i in range(50):
            define(f"p:{group}/stays{i} {program}\n")
            stack.callback(take_away, f"{group}/stays{i}")
        daemon = stack.enter_context(Daemon("version: 1\n"))
        nobody = stack.enter_context(daemon.client_of(NOBODY))
        stop = context.Event()
        others = context.Process(target=come_and_go, args=(group, program, stop))
        others.start()
        try:
            for _ in range(40):
                planned = nobody.request(plan=pb.PlanRequest(yaml=f"version: 1\ngroups: {{g: {{events: ['{group}:*']}}}}\n")).plan
                check(len(planned.added) in (50, 51), f"{len(planned.added)} events")
        finally:
            stop.set()
            others.join()


def named_tracepoints(n, text=""):
    """A configuration of n events, each of which a plan opens."""
    events = perfd.subprocess.check_output(["ls", f"{perfd.TRACING}/events/syscalls"], text=True).split()
    events = [e for e in events if e.startswith("sys_e")][:n]
    equal(len(events), n, "tracepoints of system calls")
    return "version: 1\ngroups: {some: {events: [" + ", ".join(f"{{event: 'syscalls:{e}'{text}}}" for e in events) + "]}}\n"


@contextlib.contextmanager
def suspended_plan(daemon, client, yaml, n_fds):
    """A plan that waits for the closer, which is stopped meanwhile; behind it the plan goes on."""
    with stopped_thread(daemon, "closer"):
        client.send(plan=pb.PlanRequest(yaml=yaml))
        wait_until(lambda: daemon.status().n_closing >= n_fds, "the plan waits for the closer")
        yield


def test_others_in_the_middle_of_a_plan():
    """It keeps nobody waiting but other plans, and goes on with what it has tried; what it says is of the moment in which it ends."""
    own = "version: 1\ngroups: {own: {events: [page-faults, context-switches, {event: cpu-migrations, period: 7}, alignment-faults]}}\n"
    yaml = named_tracepoints(140).replace("}}\n", "}, own: {events: [page-faults, context-switches, {event: cpu-migrations, "
                                          "period: 9}, external:mine]}}\n")
    with Daemon(own) as daemon, daemon.client() as root, daemon.client_of(NOBODY) as nobody, \
         daemon.client_of(NOBODY) as other:
        fds = daemon.fds()
        with suspended_plan(daemon, nobody, yaml, 128):
            for uid in (SOMEBODY, NOBODY) * 3:
                with daemon.client_of(uid) as client:
                    equal({row.name for row in client.request(ledger=pb.LedgerRequest()).ledger.events} >= {"page-faults"}, True, "rows")
                    client.request(subscribe=pb.SubscribeRequest(events=["page-faults"]))
            root.request(remove=pb.SelectRequest(names=["page-faults", "alignment-faults"]))
            add(root, {"event": "emulation-faults", "name": "comes"})
            other.send(plan=pb.PlanRequest(yaml=own))  # behind the first one
            root.request(set_period=pb.SetPeriodRequest(name="context-switches", period=3))
            check(not select.select([nobody.socket, other.socket], [], [], 0)[0], "a plan is answered before its fds are closed")
        plan = nobody.receive().response.plan
        equal(sorted(e.name for e in plan.added if not e.name.startswith("syscalls:")), ["external:mine", "page-faults"], "added")
        equal(len(plan.added), 142, "added")
        equal(sorted(e.name for e in plan.changed), ["context-switches", "cpu-migrations"], "changed")
        equal(([e.name for e in plan.kept], [e.name for e in plan.removed]), ([], []), "kept and removed")
        plan = other.receive().response.plan
        equal((sorted(e.name for e in plan.added), sorted(e.name for e in plan.kept)),
              (["alignment-faults", "page-faults"], ["cpu-migrations"]), "the other plan")
        root.request(remove=pb.SelectRequest(names=["comes"]))
        wait_until(lambda: len(daemon.fds()) < len(fds), "what plans and removals left is closed")


def test_plan_behind_closes():
    """What others have closed takes the kernel seconds, and plans and validations do not wait for it: here the closer is stopped."""
    yaml = "version: 1\ngroups: {some: {events: [sched:sched_switch, sched:sched_wakeup]}}\n"
    with Daemon() as daemon, daemon.client() as client:
        add(client, "syscalls:sys_enter_*")
        with stopped_thread(daemon, "closer"):
            client.request(remove=pb.SelectRequest(names=["*"]))
            check(daemon.status().n_closing > 256, "too few fds to close for this test")
            planned = client.request(plan=pb.PlanRequest(yaml=yaml)).plan
            equal(sorted(event.name for event in planned.added), ["sched:sched_switch", "sched:sched_wakeup"], "what is planned")
            equal(len(client.request(validate=pb.ValidateRequest(yaml=yaml)).validated.errors), 0, "errors")
            check(daemon.status().n_closing > 256, "somebody has closed them")
        wait_until(lambda: daemon.status().n_closing == 0, "all to be closed")


def test_plan_that_is_left():
    """A client that goes, and SIGTERM, while its plan is suspended: all that it had is closed and charged to nobody."""
    yaml = named_tracepoints(135)
    with Daemon("version: 1\nfds: {per-uid: 140}\n") as daemon, daemon.client() as root:
        before = state(daemon)
        with daemon.client_of(NOBODY) as nobody, suspended_plan(daemon, nobody, yaml, 128):
            nobody.socket.close()
            add(root, {"event": "page-faults"})  # behind whatever main still does for the plan
            wait_until(lambda: daemon.status().n_connections == 2, "the connection of the plan is gone")
        root.request(remove=pb.SelectRequest(names=["page-faults"]))
        closed_all(root)
        with daemon.client_of(NOBODY) as nobody:
            equal(len(nobody.request(plan=pb.PlanRequest(yaml=yaml)).plan.added), 135, "the plan of the next one")
        closed_all(root)
        unchanged(daemon, before, "what a plan left")
        with daemon.client_of(NOBODY) as nobody, suspended_plan(daemon, nobody, yaml, 128):
            os.kill(daemon.pid, signal.SIGTERM)
            equal(nobody.receive().response.reason, "shutting-down", "the answer")


def flood(daemon, uid, stop):
    """In a process of its own: subscriptions and ledgers, one behind the other."""
    while not stop.is_set():
        with daemon.client_of(uid) as client:
            client.request(ledger=pb.LedgerRequest())
            client.request(subscribe=pb.SubscribeRequest(events=["page-faults"]))


def test_plan_in_a_flood():
    """However many ask for something meanwhile, and however often, a plan comes to its end."""
    with Daemon("version: 1\ngroups: {own: {events: [page-faults]}}\n") as daemon, daemon.client_of(NOBODY) as nobody:
        context = multiprocessing.get_context("fork")
        stop = context.Event()
        flooders = [context.Process(target=flood, args=(daemon, uid, stop)) for uid in (NOBODY, SOMEBODY) * 8]
        for flooder in flooders:
            flooder.start()
        try:
            wait_until(lambda: status(nobody).n_subscribers > 0, "the first subscription")
            equal(len(nobody.request(plan=pb.PlanRequest(yaml=named_tracepoints(150))).plan.added), 150, "the plan")
        finally:
            stop.set()
            for flooder in flooders:
                flooder.join(perfd.PATIENCE)
                flooder.kill()
        equal([flooder.exitcode for flooder in flooders], [0] * len(flooders), "what became of the others")


def test_quota_of_plans():
    """What a plan opens is charged to its uid until it is closed, and what the closer may have of plans is bounded."""
    with Daemon("version: 1\nfds: {per-uid: 8}\n") as daemon, daemon.client_of(NOBODY) as nobody, \
         daemon.client_of(NOBODY) as other:
        before, most = state(daemon), 0
        nobody.send(plan=pb.PlanRequest(yaml=named_tracepoints(40)))
        while not perfd.select.select([nobody.socket], [], [], 0)[0]:
            most = max(most, status(other).n_closing)
        equal(len(nobody.receive().response.plan.added), 40, "the plan")
        check(most <= 8, f"{most} fds of a uid that may have 8 were being closed at once")
        group = "{" + ",".join(["context-switches"] * 9) + "}"
        no = refused(nobody, "too-many-fds", "STATUS_EXHAUSTED", plan=pb.PlanRequest(
            yaml=f"version: 1\ngroups: {{g: {{events: ['{group}']}}}}\n"))
        for words in "needs 9 fds", f"uid {NOBODY}", "fds.per-uid allows 8":
            check(words in no.message, no.message)
        unchanged(daemon, before, "what plans left")


def unknown_events(event, n):
    return "version: 1\ngroups: {g: {events: [" + ",".join(f"'{event % i}'" for i in range(n)) + "]}}\n"


def test_unknown_events():
    """Each of thousands that the kernel does not have is a step of its own, also where nothing is opened in the end."""
    forms = {"kprobe:no_such_function_%d": 3000, "kretprobe:vfs_reae%d": 3000, "sched:no_such_event_%d": 100,
             "no_such_pmu_%d/x/": 3000, "uprobe:/no/such/file%d:main": 3000}
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before = state(daemon)
        for form, n in forms.items():
            with others_are_served(daemon, f"{n} of {form}", CPU_BOUND):
                found = nobody.request(validate=pb.ValidateRequest(yaml=unknown_events(form, n))).validated
                check(found.errors or found.warnings, f"{form}: nothing is said about it")
        unchanged(daemon, before, "what validations left")


def test_stop_among_unknown_events():
    """Who has left is not looked up for any more, and SIGTERM does not wait for the names that are left."""
    yaml = unknown_events("kprobe:vfs_reae%d", 9000)
    with Daemon("version: 1\n") as daemon, daemon.client() as root:
        with daemon.client_of(NOBODY) as nobody:
            nobody.send(validate=pb.ValidateRequest(yaml=yaml))
        cpu = main_cpu(daemon.pid)
        status(root)
        took = main_cpu(daemon.pid) - cpu
        check(took < 1.0 or perfd.SANITIZER != "none", f"main ran for {took:.2f} s for a client that had left")
        cpu = main_cpu(daemon.pid)
        root.send(validate=pb.ValidateRequest(yaml=yaml))
        wait_until(lambda: main_cpu(daemon.pid) > cpu + 0.05, "main is busy with it")
        os.kill(daemon.pid, signal.SIGTERM)
        no = root.receive().response
        check((pb.Status.Name(no.status), no.reason) in (("STATUS_EXHAUSTED", "shutting-down"), ("STATUS_OK", "")), no.message)


def test_overlapping_globs():
    """A plan in which two globs mean the same running event; each was written behind the end of a list."""
    config = "version: 1\ngroups: {{all: {{events: [{}]}}}}\n"
    with Daemon(config.format("'sched:*'")) as daemon, daemon.client_of(NOBODY) as nobody:
        before = state(daemon)
        globs = ", ".join(f"'sched:*{'?' * i}'" for i in range(20))
        refused(nobody, "exists", plan=pb.PlanRequest(yaml=config.format(globs)))
        refused(nobody, "exists", plan=pb.PlanRequest(yaml=config.format("'sched:*', 'irq:*', 'irq:irq_*'")))
        unchanged(daemon, before, "what refused plans left")


def test_plan_and_apply_read_drop_ins():
    """As a reload does; without a file the plan is that of a reload, for who may make one."""
    with Daemon(config="version: 1\n") as daemon:
        path, folder = os.path.join(daemon.directory, "perfd.yaml"), os.path.join(daemon.directory, "perfd.d")
        os.mkdir(folder)
        for name, event in (("10.yaml", "page-faults"), ("20.yaml", "cpu-migrations"), ("30.yml", "cs")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(f"groups: {{g{name[:2]}: {{events: [{event}]}}}}\n")

        def plan(*words):
            done = perfctl(daemon, "--json", "plan", *words)
            return [(row["change"], row["name"]) for row in map(json.loads, done.stdout.splitlines())], done.stderr
        both = [("added", "page-faults"), ("added", "cpu-migrations")]
        equal(plan(path)[0], both, "the plan of the file")
        check("30.yml is ignored" in plan(path)[1], "what is not read")
        equal(plan()[0], both, "the plan of a reload")
        equal(plan(path, "--no-drop-ins")[0], [], "the file alone")
        equal(documents(daemon, "apply", path)[0]["added"], 2, "what apply did")
        equal(plan()[0], [("kept", name) for _, name in both], "the plan of a reload after that")
        equal(documents(daemon, "reload")[0]["kept"], 2, "what the reload did")
        perfctl(daemon, "plan", "--allow-pending", status=2)
        with daemon.client(stream=True) as other:
            refused(other, "read-only", plan=pb.PlanRequest(reload=True))


def test_refused_beside_other_rings():
    """What is refused of the events is found before the rings change: they would have to change back, and all events with them."""
    def config(size, *events):
        return f"version: 1\nrings: {{ size: {size} }}\ngroups:\n  g:\n    target: host\n    events:\n" + "".join(
            f"      - {event}\n" for event in events)

    good = "event: sched:sched_switch\n        filter: prev_pid == 1"
    probe = f"uprobe:{perfd.WORKLOAD}:main"
    with Daemon(config("64KiB", good)) as daemon, daemon.client() as client:
        for events in [good, "no:tracepoint"], ["{ event: sched:sched_switch, filter: prev_pid = 1 }"], [good, f"{probe}+1"], \
                [good, "{ event: sched:sched_wakeup, filter: nosuch == 1 }"], [good, probe, "page-faults:k", "page-faults:k"]:
            before = state(daemon)
            with contextlib.suppress(Refused):
                client.request(apply=pb.ApplyRequest(yaml=config("128KiB", *events)))
                raise AssertionError(f"{events} were not refused")
            unchanged(daemon, before, f"what {events} left")
        equal(daemon.stderr().count("the ring buffers now have"), 0, "changes of the rings")
        equal(client.request(apply=pb.ApplyRequest(yaml=config("128KiB", good, probe))).reloaded.ring_size, 131072, "the size afterwards")
        equal(daemon.stderr().count("the ring buffers now have"), 1, "changes of the rings")


def test_all_that_is_wrong():
    """plan and apply say everything that would refuse them, as validate does, and not only what was found first."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f, Daemon("version: 1\n") as daemon:
        events = ["sched:nosuch1", "sched:nosuch2", "{ event: sched:sched_switch, filter: 'nofield == 1' }", "uprobe:/bin/nosuch:f"]
        f.write("version: 1\ngroups:\n  g:\n    events:\n" + "".join(f"      - {event}\n" for event in events))
        f.flush()
        for verb in "plan", "apply":
            for options, places in ([], ["5:9", "7:46", "6:9", "8:9"]), (["--allow-pending"], ["7:46"]):
                said = perfctl(daemon, verb, f.name, *options, status=1).stderr.splitlines()
                said = [line for line in said if f"{f.name}:" in line]
                equal([line.split(f"{f.name}:")[1].split(": ")[0] for line in said], places, f"what {verb} {options} says: {said}")
                check(all(": also " in line for line in said[1:]), said)
        f.seek(0)
        f.truncate()
        f.write("version: 1\ngroups:\n  g:\n    events:\n" + "".join(f"      - nosuch{i}\n" for i in range(40)))
        f.flush()
        said = perfctl(daemon, "apply", f.name, status=1).stderr
        more = int(re.search("and ([0-9]+) more: `perfctl validate` lists all", said)[1])
        equal((said.count("also "), said.count(" is unknown") + more), (20, 40), f"of 40 errors: {said}")


if __name__ == "__main__":
    perfd.main(globals())
