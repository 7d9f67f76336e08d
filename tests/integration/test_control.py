#!/usr/bin/python3
"""Changing what is traced while it is traced: groups as one, plans that change nothing, configurations that are applied
whole or not at all, events that outlive their daemon, and periods that change under a flood."""
import contextlib
import json
import os
import signal
import stat
import subprocess
import tempfile

import perfd
from checker import Checker
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb, refused
from test_promises import CPUS, GETPPID, SLOW, SYS_ENTER, lost, rows_of

PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")


def perfctl(daemon, *arguments, status=0, data=""):
    """What it prints; its messages are in .stderr of the result."""
    done = subprocess.run([PERFCTL, "--socket", daemon.control, *arguments], input=data, capture_output=True, text=True,
                          timeout=perfd.PATIENCE, check=False)
    equal(done.returncode, status, f"the status of perfctl {arguments}, which said: {done.stderr.strip()}")
    return done


def documents(daemon, *arguments, **more):
    """Its lines of JSON."""
    return [json.loads(line) for line in perfctl(daemon, "--json", *arguments, **more).stdout.splitlines()]


def events(client):
    """{name: EventState}"""
    return {event.spec.name: event for event in client.request(list=pb.ListRequest()).list.events}


def enabled(client):
    return {name for name, event in events(client).items() if event.enabled}


def select(client, kind, *names):
    return [ref.name for ref in client.request(**{kind: pb.SelectRequest(names=names)}).selected.events]


# ---- groups ----------------------------------------------------------------------------------------------------------

GROUPS = """version: 1
groups:
  io:
    events: [sched:sched_process_exec, {event: page-faults, enabled: false}]
  web-1:
    events: [sched:sched_process_fork]
"""


def test_groups_are_changed_as_one():
    with Daemon(config=GROUPS) as daemon, daemon.client() as client:
        add(client, {"event": "sched:sched_process_exit", "group": "web-2"}, "sched:sched_process_wait",
            {"event": "context-switches", "group": "io"})
        equal({name: event.spec.group for name, event in events(client).items()},
              {"sched:sched_process_exec": "io", "page-faults": "io", "sched:sched_process_fork": "web-1",
               "sched:sched_process_exit": "web-2", "sched:sched_process_wait": "default", "context-switches": "io"},
              "the groups")
        io = ["sched:sched_process_exec", "page-faults", "context-switches"]
        equal(select(client, "enable", "@io"), io, "what is enabled as one")
        check(set(io) <= enabled(client), "the group is enabled")
        equal(select(client, "disable", "@io"), io, "what is disabled as one")
        equal(enabled(client), {"sched:sched_process_fork", "sched:sched_process_exit", "sched:sched_process_wait"},
              "what is still enabled")
        no = refused(client, "unknown-group", "STATUS_NOT_FOUND", remove=pb.SelectRequest(names=["@io", "@web-3"]))
        check("did you mean 'web-" in no.message, f"no hint in {no.message!r}")
        equal(len(events(client)), 6, "events after a refused remove")
        equal([event["name"] for event in documents(daemon, "list", "@web-*")],
              ["sched:sched_process_fork", "sched:sched_process_exit"], "a list of groups")
        equal(perfctl(daemon, "complete", "remove", "@w").stdout, "@web-1\n@web-2\n", "completion of groups")
        equal(select(client, "remove", "@web-*", "@default"),
              ["sched:sched_process_fork", "sched:sched_process_exit", "sched:sched_process_wait"], "what is removed as one")
        equal(set(events(client)), set(io), "what is left")
        perfctl(daemon, "add", "--group", "mine", "sched:sched_process_fork")
        equal(documents(daemon, "list", "@mine")[0]["group"], "mine", "the group of what perfctl added")
        for wrong in ("@x", "a b", "a*"):
            refused(client, "bad-name", add=pb.AddRequest(events=[pb.EventSpec(event="cpu-clock", group=wrong)]))


# ---- plan and apply --------------------------------------------------------------------------------------------------

BEFORE = f"""version: 1
targets: {{two: {{cpus: "0"}}}}
groups:
  io:
    events:
      - {{event: {SYS_ENTER}, name: calls, filter: id == {GETPPID}}}
      - {{event: cpu-clock, frequency: 50}}
      - sched:sched_process_exec
      - page-faults
  rest:
    events: [context-switches]
"""
AFTER = f"""version: 1
rings: {{size: 1MiB}}
batches: {{pool: 1MiB}}
subscribers: {{max: 1000}}
access: {{stream-mode: 0600}}
targets: {{two: {{cpus: "0"}}}}
groups:
  io:
    events:
      - {{event: {SYS_ENTER}, name: calls, filter: id == 1, period: 10}}
      - {{event: cpu-clock, period: 1000000}}
      - sched:sched_process_exec
      - cpu-migrations
  new:
    target: two
    events: [page-faults]
  moved:
    events:
      - context-switches
"""


def state(daemon, client):
    """All that a plan must not change, but for counts."""
    def still(event):
        return event.id, event.enabled, event.n_fds, event.spec.SerializeToString()

    return ({name: still(event) for name, event in events(client).items()}, daemon.status().ring_size,
            perfd.wait_until(lambda: daemon.status().n_closing == 0 and daemon.fds(), "everything to be closed"))


def test_add_of_a_glob_that_runs_in_part():
    """What runs as it would be added stays as it is, and is said; what is another one is a refusal, as it was."""
    config = "version: 1\ngroups: {processes: {target: host, events: [sched:sched_process_exec, sched:sched_process_exit]}}\n"
    with Daemon(config=config) as daemon, daemon.client() as client:
        before = {name: event.id for name, event in events(client).items()}
        done = perfctl(daemon, "add", "sched:sched_process_*")
        check("perfctl: add: sched:sched_process_exec and 1 more were already there, and stay as they are" in done.stderr, done.stderr)
        after = {name: event.id for name, event in events(client).items()}
        equal({name: after[name] for name in before}, before, "what ran")
        check(len(after) > len(before), f"nothing was added: {after}")
        equal(sorted(select(client, "remove", "sched:sched_process_*")), sorted(after), "what is removed")
        add(client, {"event": "sched:sched_process_exec", "period": 7})
        for wanted in {"event": "sched:sched_process_*"}, {"event": "sched:sched_process_e*", "period": 7, "group": "mine"}:
            no = refused(client, "exists", "STATUS_EXISTS", add=pb.AddRequest(events=[pb.EventSpec(**wanted)]))
            check("it is another one than the pattern would add" in no.message, no.message)
        add(client, {"event": "sched:sched_process_e*", "period": 7})
        equal(sorted(events(client)), ["sched:sched_process_exec", "sched:sched_process_exit"], "what is there")


def test_plan_says_the_truth_and_changes_nothing():
    with Daemon(config=BEFORE) as daemon, daemon.client() as client:
        before, ids = state(daemon, client), {name: event.id for name, event in events(client).items()}
        plan = client.request(plan=pb.PlanRequest(yaml=AFTER)).plan

        def said(planned):
            return {e.name: (e.id, e.replaced, {d.field: (d.before, d.after) for d in e.differences}) for e in planned}

        equal(said(plan.added), {"cpu-migrations": (0, False, {})}, "what is to be added")
        equal(said(plan.removed), {}, "what is to be removed")
        equal(said(plan.changed), {
            "page-faults": (ids["page-faults"], True, {"group": ("io", "new"), "target": ("host", "two cpus 0")}),
            "calls": (ids["calls"], False, {"filter": (f"id == {GETPPID}", "id == 1"), "period": ("", "10")}),
            "cpu-clock": (ids["cpu-clock"], False, {"period": ("", "1000000"), "frequency": ("50", "")}),
            "context-switches": (ids["context-switches"], False, {"group": ("rest", "moved")}),
        }, "what is to be changed")
        equal(said(plan.kept), {"sched:sched_process_exec": (ids["sched:sched_process_exec"], False, {})}, "what is to be kept")
        equal({d.field: (d.before, d.after, d.restart) for d in plan.settings},
              {"rings.size": ("4194304", "1048576", False), "batches.pool": ("2097152", "1048576", True),
               "subscribers.max": ("4096", "1000", True), "access.stream-mode": ("0660", "0600", True)}, "settings")
        equal(state(daemon, client), before, "the state after a plan")

        rows = documents(daemon, "plan", "-", data=AFTER)
        equal([(row["change"], row.get("name")) for row in rows],
              [("added", "cpu-migrations"), ("replaced", "page-faults"), ("changed", "calls"), ("changed", "cpu-clock"),
               ("changed", "context-switches"), ("kept", "sched:sched_process_exec"), *[("setting", None)] * 4],
              "what perfctl says of the plan")
        equal(perfctl(daemon, "plan", "-", data=AFTER).stdout.splitlines()[2].split("\t"),
              ["changed", "calls", str(ids["calls"]), SYS_ENTER, "io", f"filter: id == {GETPPID} -> id == 1; period: none -> 10"],
              "a row of the plan")

        with daemon.client(stream=True) as other:
            equal(len(other.request(plan=pb.PlanRequest(yaml=AFTER)).plan.changed), 4, "a plan for one who may not change")
            refused(other, "read-only", apply=pb.ApplyRequest(yaml=AFTER))

        equal(documents(daemon, "apply", "-", data=AFTER),
              [{"added": 1, "removed": 0, "changed": 4, "kept": 1, "pending": 0, "ring_size": 1 << 20, "needs_restart": [
                  {"field": "access.stream-mode", "before": "0660", "after": "0600"},
                  {"field": "batches.pool", "before": str(2 << 20), "after": str(1 << 20)},
                  {"field": "subscribers.max", "before": "4096", "after": "1000"}]}], "what the apply did")
        after = events(client)
        equal({name: after[name].id for name in ids if name != "page-faults"},
              {name: ids[name] for name in ids if name != "page-faults"}, "ids of events that go on")
        check(after["page-faults"].id > ids["page-faults"], "the replaced event has an old id")
        equal([(d.field, d.before, d.restart) for d in client.request(plan=pb.PlanRequest(yaml=AFTER)).plan.settings],
              [("access.stream-mode", "0660", True), ("batches.pool", str(2 << 20), True), ("subscribers.max", "4096", True)],
              "settings that differ after the apply, from what perfd was started with")
        equal(daemon.status().ring_size, 1 << 20, "the size of the rings")
        check(all(event.configured for event in after.values()), "something applied does not count as configured")
        reply = client.request(reload=pb.Empty()).reloaded
        equal((reply.added, reply.removed, reply.changed, reply.kept), (0, 1, 4, 1), "the reload of the daemon's own")
        equal(sorted(events(client)), sorted(ids), "the events after the reload")


def test_apply_is_all_or_nothing():
    bad = AFTER + "      - sched:no_such_event\n"
    with Daemon(config=BEFORE) as daemon, daemon.client() as client, Workload("flood", 0, 20_000, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "flood", "filter": f"id == {GETPPID}", "target": pb.Target(pids=load.pids)})
        before = state(daemon, client)
        with Checker(daemon, "time", "flood", queue=1 << 28) as checker:
            load.go()
            for kind, request in ("plan", pb.PlanRequest), ("apply", pb.ApplyRequest):
                no = refused(client, "unknown-event", "STATUS_NOT_FOUND", **{kind: request(yaml=bad, path="tried.yaml")})
                check(no.message.startswith("tried.yaml:20:9: "), f"no place in {no.message!r}")
                no = refused(client, "bad-config", "STATUS_INVALID", **{kind: request(yaml="version: 2\n")})
                check(no.message.startswith("<yaml>:1:10: "), f"no place in {no.message!r}")
            refused(client, "exists", apply=pb.ApplyRequest(yaml=AFTER.replace("cpu-migrations", "{event: cpu-migrations, name: flood}")))
            counts = load.done(stop=True)
            seen = checker.finish()
            rows = rows_of(daemon.ledger(), "flood")
        load.exit()
        equal(state(daemon, client), before, "the state after refused changes")
    equal(seen["items"], sum(counts), "items of another event, and calls made")
    equal([rows[cpu].occurred for cpu in CPUS], counts, "its occurrences")


# ---- periods ---------------------------------------------------------------------------------------------------------


def test_period_of_a_flood():
    """Between 1 and 7 again and again: every call is in a sample, but for what an fd has not yet come to a sample for."""
    rounds, period = (4, 7) if SLOW else (30, 7)
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 20_000, cpus=CPUS) as load:
        ref, = add(client, {"event": SYS_ENTER, "name": "calls", "filter": f"id == {GETPPID}",
                            "target": pb.Target(pids=load.pids)})
        with Subscriber(daemon, "calls") as by_time, Subscriber(daemon, "--order", "cpu", "calls") as by_cpu:
            load.go()
            for i in range(rounds):
                client.request(set_period=pb.SetPeriodRequest(name="calls", period=1 if i % 2 else period))
            equal(events(client)["calls"].id, ref.id, "the id")
            counts = load.done(stop=True)
            ledger = daemon.ledger()
            streams = [[line for line in s.finish() if "kind" not in line] for s in (by_time, by_cpu)]
        load.exit()
    rows = {row.cpu: row for row in ledger.events}
    for cpu, made in zip(CPUS, counts):
        check(rows[cpu].balanced, f"not balanced: {rows[cpu]}")
        check(not rows[cpu].exact, f"exact, although not every occurrence was a sample: {rows[cpu]}")
        equal(sum(lost(rows[cpu], reason.reason) for reason in rows[cpu].lost), 0, "losses")
        for items in streams:
            here = [item["period"] for item in items if item["cpu"] == cpu]
            check(set(here) <= {1, period}, f"periods that samples say: {set(here)}")
            check(SLOW or len(set(here)) == 2, "the period was the same all the time: the test shows nothing")
            equal(len(here), rows[cpu].delivered, "samples and what the ledger says")
            # before each of the changes an fd had up to 6 calls that are in no sample of it
            check(made - rounds * (period - 1) <= sum(here) <= made + rounds * (period - 1),
                  f"samples stand for {sum(here)} of {made} calls")
        equal(rows[cpu].occurred, rows[cpu].delivered, "occurred and delivered")


def test_descriptors_come_before_samples_of_a_new_period():
    with Daemon() as daemon, daemon.client() as client, daemon.client() as watching, \
         Workload("flood", 0, 1000, cpus=CPUS[:1]) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        items = watching.subscribe(events=["calls"])
        load.go()
        equal(next(items)["period"], 1, "the period of the first sample")
        event = next(iter(watching.stream.events))
        client.request(set_period=pb.SetPeriodRequest(name="calls", period=5))
        item = next(item for item in items if item["period"] != 1)
        equal((item["period"], watching.stream.events[event].period), (5, 5), "a sample and its descriptor")
        client.request(set_period=pb.SetPeriodRequest(name="calls", frequency=100))
        # the kernel begins with 1; what it makes of that may take as long as it likes, if its clock says that two calls are a ns apart
        next(item for item in items if item["period"] != 5)
        equal(watching.stream.events[event].period, 0, "the period of a descriptor by frequency")
        load.done(stop=True)
        watching.stop()
        for item in items:
            pass
        load.exit()


def test_periods_that_can_not_be():
    with Daemon() as daemon, daemon.client() as client:
        add(client, SYS_ENTER, {"event": "external:x", "fields": [pb.ExternalField(name="a", type="u8")]},
            {"event": "page-faults", "name": "faults", "frequency": 10}, "dummy")
        before = state(daemon, client)
        for name, reason, rate in (SYS_ENTER, "bad-request", {}), (SYS_ENTER, "bad-event", {"period": 1, "frequency": 1}), \
                                  (SYS_ENTER, "bad-event", {"period": 1 << 63}), ("*", "bad-request", {"period": 1}), \
                                  ("external:x", "bad-event", {"period": 2}), ("dummy", "bad-event", {"period": 2}), \
                                  ("no", "unknown-event", {"period": 2}):
            refused(client, reason, set_period=pb.SetPeriodRequest(name=name, **rate))
        equal(state(daemon, client), before, "the state after refused changes")
        perfctl(daemon, "period", "faults", "3")
        equal((events(client)["faults"].spec.period, events(client)["faults"].spec.frequency), (3, 0), "a period")
        perfctl(daemon, "period", "--frequency", "40", "faults")
        equal((events(client)["faults"].spec.period, events(client)["faults"].spec.frequency), (0, 40), "a frequency")
        for wrong in ["faults"], ["faults", "3", "--frequency", "3"], ["faults", "0"], ["faults", "x"]:
            perfctl(daemon, "period", *wrong, status=2)
        equal(perfctl(daemon, "complete", "p").stdout, "period\nplan\n", "verbs that are offered")
        equal(perfctl(daemon, "complete", "period", "f").stdout, "faults\n", "events that are offered")
        equal([perfctl(daemon, "complete", verb, "").stdout for verb in ("plan", "apply")], ["<file>\n"] * 2, "files")


def test_log_of_changes():
    """Who changed what, by name; of many the first ones, and how many more."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, "sched:sched_switch", *(f"external:e{i}" for i in range(6)))
        client.request(set_filter=pb.SetFilterRequest(name="sched:sched_switch", filter="prev_pid > 5"))
        client.request(set_period=pb.SetPeriodRequest(name="sched:sched_switch", period=10))
        select(client, "disable", "external:e5")
        select(client, "remove", "external:e*")
        client.request(apply=pb.ApplyRequest(yaml="version: 1"))
        said = [line.split(f"by test, pid {os.getpid()}, uid 0: ") for line in daemon.stderr().splitlines() if " by test, " in line]
        equal([tuple(words) for words in said],
              [("perfd: add ", "sched:sched_switch (id 1), external:e0 (id 2), external:e1 (id 3), external:e2 (id 4) and 3 more"),
               ("perfd: set-filter ", "sched:sched_switch, filter 'prev_pid > 5'"),
               ("perfd: set-period ", "sched:sched_switch, period 10"),
               ("perfd: disable ", "external:e5 (id 7)"),
               ("perfd: remove ", "external:e0 (id 2), external:e1 (id 3), external:e2 (id 4), external:e3 (id 5) and 2 more"),
               ("perfd: apply ", "added 0, removed 0, changed 0, kept 0, pending 0")], "the log")


# ---- persistent events ------------------------------------------------------------------------------------------------

KEEP = {"event": "sched:sched_switch", "name": "switches", "filter": "prev_pid != 1", "group": "mine"}


def keep(client, *specs):
    events = [pb.EventSpec(**spec) for spec in specs]
    return [ref.name for ref in client.request(add=pb.AddRequest(events=events, keep=True)).added.events]


def asked(client):
    """{name: what is to be the same after a restart} of persistent events."""
    kept = {name: event for name, event in events(client).items() if event.persistent}
    for event in kept.values():
        event.spec.ClearField("disabled")  # how it was added; what counts is how it is
    return {name: (event.enabled, event.spec.SerializeToString(), event.pending) for name, event in kept.items()}


def test_kept_events_outlive_their_daemon():
    """Over a stop and over kill -9, as they were changed last; and no others."""
    config = "version: 1\ntargets: {first: {cpus: '0'}}\n"
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        with Daemon(config=config, directory=directory) as daemon, daemon.client() as client:
            add(client, "sched:sched_process_exit")
            equal(keep(client, KEEP, {"event": "raw_syscalls:*", "disabled": True}, {"event": "cpu-clock", "frequency": 100},
                       {"event": "page-faults", "target": pb.Target(name="first"), "callchain": "CALLCHAIN_BOTH"},
                       {"event": "external:kept", "fields": [pb.ExternalField(name="a", type="u8")]}),
                  ["switches", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "cpu-clock", "page-faults", "external:kept"],
                  "what is kept")
            perfctl(daemon, "add", "--keep", "--name", "gone", "context-switches")
            client.request(set_filter=pb.SetFilterRequest(name="switches", filter="prev_pid > 5"))
            client.request(set_period=pb.SetPeriodRequest(name="cpu-clock", period=2_000_000))
            select(client, "enable", "raw_syscalls:sys_exit")
            select(client, "disable", "@mine")
            select(client, "remove", "gone")
            before = asked(client)
            equal({row["name"]: row["kept"] for row in documents(daemon, "list")},
                  {**{name: True for name in before}, "sched:sched_process_exit": False}, "what is kept, as perfctl says it")
        equal(sorted(before), ["cpu-clock", "external:kept", "page-faults", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit",
                               "switches"], "what was kept")
        with Daemon(config=config, directory=directory) as daemon, daemon.client() as client:
            equal(asked(client), before, "what is kept after a restart")
            equal(sorted(events(client)), sorted(before), "all events after a restart")
            select(client, "remove", "raw_syscalls:*")
            select(client, "enable", "switches")
            before = asked(client)
            os.kill(daemon.pid, signal.SIGKILL)
            daemon.process.wait(perfd.PATIENCE)
            daemon.judged = True
        equal(sorted(before), ["cpu-clock", "external:kept", "page-faults", "switches"], "what is kept still")
        with Daemon(config=config, directory=directory) as daemon, daemon.client() as client:
            equal(asked(client), before, "what is kept after kill -9")
            equal(sorted(os.listdir(directory)), ["control.sock", "events", "perfd.yaml", "stream.sock"], "files")


def test_kept_events_wait_for_what_is_not_there():
    config = "version: 1\ntargets: {%s: {cpus: '0'}}\n"
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        with Daemon(config=config % "here", directory=directory) as daemon, daemon.client() as client:
            keep(client, KEEP, *({"event": "page-faults", "name": f"waits-{i}", "target": pb.Target(name="here")} for i in (1, 2)))
            before = asked(client)
        with Daemon(config=config % "there", directory=directory) as daemon, daemon.client() as client:
            now = asked(client)
            equal(now.pop("switches"), before["switches"], "the event that can be added")
            for name in "waits-1", "waits-2":
                equal((now[name][0], "no target called here" in now[name][2]), (False, True), f"{name}, which waits")
                check(f"{name} is pending" in daemon.stderr(), daemon.stderr())
            equal([row["id"] for row in documents(daemon, "list", "waits-*")], [0, 0], "ids of those that wait")
            keep(client, {"event": "context-switches", "name": "later"})  # writes the file with what waits
            equal([(ref.id, ref.name) for ref in client.request(remove=pb.SelectRequest(names=["waits-1"])).selected.events],
                  [(0, "waits-1")], "removing what waits")
            refused(client, "unknown-event", remove=pb.SelectRequest(names=["waits-1"]))
            refused(client, "pending", enable=pb.SelectRequest(names=["waits-2"]))
            with open(os.path.join(directory, "perfd.yaml"), "w", encoding="utf-8") as f:
                f.write(config % "here")
            client.request(reload=pb.Empty())
            now = asked(client)
            equal(now.pop("later")[0], True, "the event that came later")
            equal(now, {name: before[name] for name in ("switches", "waits-2")}, "what runs after the reload")


def test_a_state_file_that_is_none():
    """A device is neither read nor renamed; a folder to which others may write is not perfd's. The rest works."""
    def tried(words, directory=None, config=None, prefix=()):
        with Daemon(directory=directory, config=config, prefix=prefix) as daemon, daemon.client() as client:
            check(words in daemon.stderr(), daemon.stderr())
            response = refused(client, "state-file", "STATUS_DENIED",
                               add=pb.AddRequest(events=[pb.EventSpec(event="page-faults")], keep=True))
            check(words in response.message, response.message)
            add(client, "page-faults")

    for kind, words in (stat.S_IFCHR, "a device"), (stat.S_IFIFO, "a pipe"), (stat.S_IFLNK, "a symbolic link"):
        with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
            path = os.path.join(directory, "events")
            if kind == stat.S_IFLNK:
                os.symlink("/dev/null", path)
            else:
                os.mknod(path, kind | 0o600, os.makedev(1, 3))
            before = os.lstat(path)
            tried(f"{path} is {words}, and perfd stores events only in a regular file", directory)
            after = os.lstat(path)
            equal((after.st_mode, after.st_rdev, after.st_ino), (before.st_mode, before.st_rdev, before.st_ino), "what it is")
            equal(sorted(os.listdir(directory)), ["events"], "what is there")
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        os.chmod(directory, 0o1777)
        tried("others may write to it", directory)
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        with Daemon(directory=directory) as daemon, daemon.client() as client:
            keep(client, KEEP)
        for mode, owner in (0o666, 0), (0o600, 65534):
            os.chmod(os.path.join(directory, "events"), mode)
            os.chown(os.path.join(directory, "events"), owner, owner)
            tried("may have been written by others than perfd", directory)


def test_a_broken_state_file():
    """It is set aside and said; the daemon starts, and keeps what comes from then on."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        path = os.path.join(directory, "events")
        with Daemon(directory=directory) as daemon, daemon.client() as client:
            keep(client, KEEP)
        with open(path, "rb") as f:
            whole = f.read()
        for n, (bad, words) in enumerate(((whole[:-1], "bytes after its first line"), (b"", "is empty, as perfd never writes it"),
                                          (whole.replace(b"events 1 ", b"events 9 "), "version 9"),
                                          (b"perfd events 1 3\n\xff\xff\xff", "contains no list of events"),
                                          # no protobuf library that checks texts could read a list with it
                                          (whole.replace(b"sched_switch", b"sched_\xffwitch"), "is damaged: event: found")), 1):
            with open(path, "wb") as f:
                f.write(bad)
            with Daemon(directory=directory) as daemon, daemon.client() as client:
                check(words in daemon.stderr() and f"{path}.broken-{n}" in daemon.stderr(), daemon.stderr())
                equal(events(client), {}, "events of a broken file")
                with open(f"{path}.broken-{n}", "rb") as f:
                    equal(f.read(), bad, "what was set aside")
                keep(client, KEEP)
            with open(path, "rb") as f:
                equal(f.read(), whole, "what is kept anew")
        os.remove(path)
        os.mkdir(path)  # cannot be read
        with Daemon(directory=directory) as daemon, daemon.client() as client:
            check(f"{path} is a directory, and perfd stores events only in a regular file" in daemon.stderr(), daemon.stderr())
            add(client, "page-faults")
            no = refused(client, "state-file", "STATUS_DENIED", add=pb.AddRequest(events=[pb.EventSpec(**KEEP)], keep=True))
            check("is a directory, and perfd stores events only in a regular file" in no.message, no.message)
            equal(sorted(events(client)), ["page-faults"], "events after a refused add")


def test_what_can_not_be_kept():
    with Daemon() as daemon, daemon.client() as client:
        keep(client, KEEP)
        add(client, "page-faults")
        path, before = os.path.join(daemon.directory, "events"), state(daemon, client)
        with open(path, "rb") as f:
            whole = f.read()
        refused(client, "bad-target", add=pb.AddRequest(keep=True, events=[
            pb.EventSpec(event="cpu-clock", target=pb.Target(pids=[os.getpid()]))]))
        refused(client, "bad-request", add=pb.AddRequest(keep=True, while_connected=True, events=[pb.EventSpec(event="cpu-clock")]))
        refused(client, "unknown-event", add=pb.AddRequest(keep=True, events=[pb.EventSpec(event="no:such")]))
        os.mkdir(path + ".new")  # where it is to be written
        switches = pb.SelectRequest(names=["switches"])
        for body in ({"add": pb.AddRequest(keep=True, events=[pb.EventSpec(event="cpu-clock"), pb.EventSpec(event="dummy")])},
                     {"enable": switches},
                     {"set_filter": pb.SetFilterRequest(name="switches", filter="prev_pid == 2")},
                     {"set_period": pb.SetPeriodRequest(name="switches", period=2)}):
            no = refused(client, "state-file", "STATUS_DENIED", **body)
            check(f"{path}.new is a directory" in no.message, no.message)
            equal(state(daemon, client), before, f"the state after {body}")
        select(client, "disable", "page-faults")  # is not kept, so nothing is written
        os.rmdir(path + ".new")
        with open(path, "rb") as f:
            equal(f.read(), whole, "the file")
        select(client, "disable", "switches")
        equal(events(client)["switches"].enabled, False, "after the disable")


if __name__ == "__main__":
    perfd.main(globals())
