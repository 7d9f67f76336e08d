#!/usr/bin/python3
"""How far rules of access reach: what is said of a rule's predicate and of other rules, and events that rules let clients add, into
cgroups of one's own, and no further. By perfctl, as a person has it, and by requests that a person would not make. Needs root."""
import collections
import contextlib
import json
import os
import signal
import subprocess
import sys

import perfd
from perfd import Daemon, add, check, equal, pb, refused
from test_own import GETPPID, SECOND, do, make_privileged, no_add, occurred, program, spec, temporary
from test_roles import ANN, BOB, EVE, NOTED, OPEN, PERFCTL, names, no, perfctl, reload, rules
from test_targets import Tree

OWN = f"{{ users: [{ANN}], own-processes: true }}"
KERNEL = 1 << 63  # addresses of user space are below, on every machine that perfd is for


def give(folder, uid):
    os.chown(folder, uid, uid)
    return folder


def put(folder, *lines):
    for line in lines:
        with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(line.process.pid))


def answer(client, *specs):
    """The refusal of an add, for whatever reason."""
    try:
        temporary(client, *specs)
    except perfd.Refused as refusal:
        return refusal.response
    raise AssertionError(f"not refused: {specs}")


@contextlib.contextmanager
def running(*uids):
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(program(uid)) for uid in uids]
        for line in lines:
            line.hear()
        yield lines


# ---- cgroups -----------------------------------------------------------------------------------------------------------


def test_foreign_before_too_much():
    """Who asks too much of a process that is not his is told that it is not."""
    with Daemon(rules(f"{{ users: [{ANN}], stat: true, own-processes: true }}")) as daemon, daemon.client_of(ANN, groups=()) as ann:
        specs = [pb.EventSpec(event="page-faults", name=f"e{i}", interval=10_000_000, target=pb.Target(pids=[1])) for i in range(200)]
        answer = refused(ann, "not-granted", add=pb.AddRequest(events=specs, while_connected=True))
        check("of process 1 is not granted" in answer.message, answer.message)


def test_a_predicate_that_does_not_fit():
    """Who has written nothing wrong is told that it is the rule's; of what he has, the place in his own expression."""
    with Daemon(rules(f"{{ users: [{ANN}], subscribe: ['*'], where: 'missing < 10' }}")) as daemon, daemon.client() as root:
        add(root, NOTED)
        for where, words, position in ("", "the predicate of the access rule", 0), ("n == 1", "the predicate of the access rule", 0), \
                ("n == 1 && absent == 2", "'absent'", 11):
            with daemon.client_of(ANN, groups=()) as ann:
                answer = refused(ann, "unknown-field", subscribe=pb.SubscribeRequest(events=["external:noted"], where=where))
                check(words in answer.message, f"{where!r}: {answer.message!r}")
                equal(("access rule" in answer.message, answer.position), (position == 0, position), where)


def test_a_reload_tells_of_rules():
    """plan, and who asks for the reload, are told that the rules change, and of warnings."""
    two = ["{ users: [1], status: true }", "{ users: [2], status: true }"]
    with Daemon(rules(*two)) as daemon, daemon.client() as root:
        with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
            f.write(rules("{ users: [usrbop, '1'], status: true }"))
        row = root.request(plan=pb.PlanRequest(reload=True)).plan.settings[0]
        equal((row.field, row.before, row.after, row.restart), ("access.rules", "2 rules", "1 rule", False), "the plan")
        notes = list(root.request(reload=pb.Empty()).reloaded.notes)
        check("access.rules: 2 rules -> 1 rule" in notes, notes)
        check(len(notes) == 2 and any("'usrbop' is not in /etc/passwd" in note for note in notes), notes)
        equal(len(root.request(plan=pb.PlanRequest(reload=True)).plan.settings), 0, "the plan behind it")
        equal(len(root.request(reload=pb.Empty()).reloaded.notes), 1, "the warning, again")


def test_own_cgroups():
    """As the cgroups of a user's systemd: its processes and their children are seen, with those of cgroups below it that are his;
    neither those of others in it, nor setuid programs, nor what is in cgroups of others."""
    with Tree() as tree, Daemon(rules(OWN)) as daemon, running(ANN, ANN, ANN, ANN, BOB) as lines, daemon.client_of(ANN, groups=()) as ann:
        manager, app, hidden, outside, bobs = lines
        privileged = make_privileged(daemon.directory)
        put(give(tree.make("user@4001.service"), ANN), bobs)
        put(give(tree.make("user@4001.service/init.scope"), ANN), manager)
        put(give(tree.make("user@4001.service/app.slice"), ANN))
        put(give(tree.make("user@4001.service/app.slice/a.service"), ANN), app)
        put(tree.make("user@4001.service/of-root"), hidden)
        name, = temporary(ann, spec(GETPPID, target=pb.Target(cgroups=[tree.path("user@4001.service")])))
        state, = ann.request(list=pb.ListRequest()).list.events
        equal((sorted(state.spec.target.pids), list(state.spec.target.cgroups)),
              (sorted([manager.process.pid, app.process.pid]), []), "whom it is on")
        for line in manager, app, hidden, outside, bobs:
            do(line, "calls child")
        equal(occurred(daemon, name), 400, "calls of the two, each with a child")
        do(app, privileged["setuid"])
        equal(occurred(daemon, name), 400, "calls behind the exec of a setuid program")
        do(manager, os.path.realpath(sys.executable))
        equal(occurred(daemon, name), 500, "calls behind the exec of another one")
        unit, = temporary(ann, spec(GETPPID, name="unit", target=pb.Target(units=["a.service"])))
        do(app, "calls")
        equal((occurred(daemon, unit), occurred(daemon, name)), (100, 600), "calls of a unit")


def test_foreign_cgroups():
    """The cgroup's folder says whose it is, also behind a glob, and the refusal names the rule."""
    with Tree() as tree, Daemon(rules(OWN)) as daemon, running(ANN, ANN) as (one, two), daemon.client_of(ANN, groups=()) as ann:
        put(give(tree.make("mine"), ANN), one)
        put(tree.make("mine/of-root"), two)
        give(tree.make("bobs"), BOB)
        give(tree.make("empty"), ANN)
        for name in "/", tree.own, tree.path("bobs"), tree.path("mine/of-root"), tree.path("*"), tree.path("mine/*"):
            for more in {}, {"interval": SECOND}:
                no_add(ann, ["which is not your own, is not granted to uid 4001: rule 1 of access.rules decides"],
                       spec(GETPPID, target=pb.Target(cgroups=[name]), **more))
        for name in tree.path("empty"), tree.path("none-*"):
            refused(ann, "gone", add=pb.AddRequest(events=[spec(GETPPID, target=pb.Target(cgroups=[name]))], while_connected=True))
        refused(ann, "unknown-cgroup", add=pb.AddRequest(events=[spec(GETPPID, target=pb.Target(cgroups=[tree.path("no")]))],
                                                         while_connected=True))
        refused(ann, "bad-cgroup", add=pb.AddRequest(events=[spec(GETPPID, target=pb.Target(cgroups=[tree.path("mine/..")]))],
                                                     while_connected=True))
        equal(names(ann), [], "events")
        deep = tree.path("mine") + "/d" * 18
        for depth in range(1, 19):
            give(tree.make("mine" + "/d" * depth), ANN)
        refused(ann, "too-many-cgroups", add=pb.AddRequest(events=[spec(GETPPID, target=pb.Target(cgroups=[tree.path("mine")]))],
                                                           while_connected=True))
        refused(ann, "gone", add=pb.AddRequest(events=[spec(GETPPID, target=pb.Target(cgroups=[deep]))], while_connected=True))


def test_many_names_of_cgroups():
    """So few that nobody waits for long: each may be a walk over all cgroups of the host."""
    rule = f"{{ users: [{ANN}], own-processes: true, stat: true }}"
    with Tree() as tree, Daemon(rules(rule)) as daemon, running(ANN) as (own,), daemon.client_of(ANN, groups=()) as ann:
        for i in range(100):
            give(tree.make(f"mine/{i}"), ANN)
        put(give(tree.make("mine"), ANN), own)
        path = tree.path("mine")
        for targets in [pb.Target(cgroups=[path] * 9)], [pb.Target(cgroups=[path] * 3)] * 3, \
                       [pb.Target(cgroups=["**"] * 5), pb.Target(units=["a"] * 4)]:
            for more in {}, {"interval": SECOND}:
                refused(ann, "too-many-names", add=pb.AddRequest(while_connected=True, events=[
                    spec(GETPPID, name=f"e{i}", target=target, **more) for i, target in enumerate(targets)]))
        equal(len(temporary(ann, *[spec(GETPPID, name=f"e{i}", target=pb.Target(cgroups=[path] * 4)) for i in range(2)])), 2, "eight")
        equal({tuple(e.spec.target.pids) for e in ann.request(list=pb.ListRequest()).list.events}, {(own.process.pid,)}, "once each")


def test_cgroups_and_rules():
    """`stat` counts cgroups themselves, and a reload that takes it away ends that; `own-processes` is on processes, and stays."""
    both = f"{{ users: [{ANN}], own-processes: true, stat: true }}"
    with Tree() as tree, Daemon(rules(both)) as daemon, running(ANN) as (own,), daemon.client_of(ANN, groups=()) as ann:
        put(give(tree.make("mine"), ANN), own)
        target = pb.Target(cgroups=[tree.path("mine")])
        temporary(ann, spec(name="counted", interval=SECOND, target=target), spec(GETPPID, name="sampled", target=target))
        states = {e.spec.name: e.spec.target for e in ann.request(list=pb.ListRequest()).list.events}
        equal({name: (list(t.cgroups), list(t.pids)) for name, t in states.items()},
              {f"~{ANN}/counted": ([tree.path("mine")], []), f"~{ANN}/sampled": ([], [own.process.pid])}, "targets")
        reload(daemon, rules(OWN), True)
        perfd.wait_until(lambda: names(ann) == [f"~{ANN}/sampled"], "what own-processes leaves")
        do(own, "calls")
        equal(occurred(daemon, f"~{ANN}/sampled"), 100, "calls")


# ---- processes ---------------------------------------------------------------------------------------------------------


def test_capability_of_sessions():
    """What systemd gives to each session, CAP_WAKE_ALARM, makes nobody else of it; another capability beside it does."""
    wait = "import sys; print(1, flush=True); sys.stdin.readline()"
    with Daemon(rules(OWN)) as daemon, daemon.client_of(ANN, groups=()) as ann:
        for capabilities, is_own in ("+wake_alarm", True), ("+wake_alarm,+net_raw", False):
            with perfd.Line(["setpriv", f"--reuid={ANN}", f"--regid={ANN}", "--clear-groups", f"--inh-caps={capabilities}",
                             f"--ambient-caps={capabilities}", sys.executable, "-c", wait]) as line:
                line.hear()
                added = spec(GETPPID, target=pb.Target(pids=[line.process.pid]))
                if is_own:
                    ann.request(remove=pb.SelectRequest(names=temporary(ann, added)))
                else:
                    no_add(ann, ["is not granted: the process must have uid 4001"], added)


def test_child_that_changes_its_uid():
    """A child that becomes somebody else, which needs a setuid program: its event has ended, also when it comes back."""
    script = ("import os\n[os.getppid() for _ in range(100)]\nos.setresgid(4002, 4002, 4002)\nos.setresuid(4002, 4002, 4002)\n"
              "[os.getppid() for _ in range(100)]\n")
    back = script.replace("4002", str(ANN))
    parent = """
import os, sys
print(os.getpid(), flush=True)
for line in sys.stdin:
    path, script = line.strip().split(" ", 1)
    pid = os.fork()
    if not pid:
        os.getppid()
        os.execv(path, [path, "-c", script.encode().decode("unicode_escape")])
    os.waitpid(pid, 0)
    print("done", flush=True)
"""
    with Daemon(rules(OWN)) as daemon, daemon.client_of(ANN, groups=()) as ann:
        path = make_privileged(daemon.directory)["setuid"]
        with perfd.Line([sys.executable, "-c", parent], user=ANN, group=ANN, extra_groups=[]) as own:
            pid = int(own.hear()[0])
            name, = temporary(ann, spec(GETPPID, target=pb.Target(pids=[pid])))
            for n, code in enumerate((script, back), 1):
                do(own, f"{path} " + code.replace("\n", "\\n"))
                equal(occurred(daemon, name), n, "calls before the exec")


def test_fork_storm():
    """Processes that fork and end without end, while events come and go on them: none is ever on anybody else's."""
    script = "import os\nprint(os.getpid(), flush=True)\nwhile True:\n    if not os.fork():\n        os._exit(0)\n    os.wait()\n"
    with Daemon(rules(OWN)) as daemon, daemon.client_of(ANN, groups=()) as ann, contextlib.ExitStack() as stack:
        lines = {uid: stack.enter_context(perfd.Line([sys.executable, "-c", script], user=uid, group=uid, extra_groups=[]))
                 for uid in (ANN, BOB)}
        pids = {uid: int(line.hear()[0]) for uid, line in lines.items()}
        with daemon.client_of(ANN, groups=()) as stream:
            items, n_added = stream.subscribe(), 0
            for i in range(40):
                try:
                    added = temporary(ann, spec("syscalls:sys_enter_wait4", name=f"w{i}", target=pb.Target(pids=[pids[ANN]])))
                except perfd.Refused as error:
                    equal(error.response.reason, "bad-target", f"{error.response.message}")
                    continue
                n_added += 1
                no_add(ann, ["is not granted"], spec(GETPPID, name="x", target=pb.Target(pids=[pids[BOB]])))
                ann.request(remove=pb.SelectRequest(names=added))
            stream.stop()
            seen = {item["pid"] for item in items if item.get("fields") is not None}
        check(n_added > 0 and pids[BOB] not in seen, f"{n_added} added, {seen}")


def test_predicate_of_user_and_setuid():
    """A rule by `sample.uid` is by the real uid, which a setuid program leaves as it is; what is by `own-processes` ends there."""
    text = rules(f"{{ users: [{ANN}], subscribe: ['syscalls:*'], where: 'sample.uid == {ANN}', own-processes: true }}")
    with Daemon(text) as daemon, daemon.client() as root, running(ANN) as (own,), daemon.client_of(ANN, groups=()) as ann, \
         daemon.client_of(ANN, groups=()) as stream:
        add(root, GETPPID)
        privileged = make_privileged(daemon.directory)
        name, = temporary(ann, spec(GETPPID, target=pb.Target(pids=[own.process.pid])))
        items = stream.subscribe()
        do(own, "calls child")
        for what in "setuid", "of-bob":
            do(own, privileged[what])
        stream.stop()
        got = collections.Counter(item["event"] for item in items if item.get("fields") is not None)
        equal(got, {GETPPID: 400, name: 200}, "samples")


# ---- what samples tell -------------------------------------------------------------------------------------------------


def test_no_kernel_addresses():
    """Nothing in samples of one's own is an address of the kernel, whatever is asked for; and nothing more than perfd puts there."""
    with Daemon(rules(OWN)) as daemon, running(ANN) as (own,), daemon.client_of(ANN, groups=()) as ann:
        target = pb.Target(pids=[own.process.pid])
        for setting in ("sample-regs-user", "sample-regs-intr", "sample-stack-user", "sample-phys-addr", "sample-addr", "sample-type",
                        "exclude-kernel", "exclude-user", "exclude-callchain-user", "exclude-callchain-kernel", "branch-sample-type",
                        "sample-max-stack", "inherit", "precise-ip", "wakeup-events", "aux-sample-size", "config1"):
            for value in "1", "true", "ax":
                said = answer(ann, spec(period=1, attr=[pb.AttrSetting(name=setting, value=value)], target=target))
                check(said.reason in ("not-granted", "bad-attr"), f"{setting}={value}: {said.reason}: {said.message}")
        for callchain in pb.CALLCHAIN_KERNEL, pb.CALLCHAIN_BOTH:
            no_add(ann, ["callchain of the kernel"], spec(GETPPID, callchain=callchain, target=target))
        for callchain in pb.CALLCHAIN_DWARF, pb.CALLCHAIN_USER_DWARF:
            no_add(ann, ["copies of stacks"], spec(GETPPID, callchain=callchain, target=target))
        for event in "page-faults:k", "cs:k":
            said = answer(ann, spec(event, period=1, target=target))
            check(said.reason in ("not-granted", "bad-attr", "bad-event"), f"{event}: {said.reason}: {said.message}")
        added = temporary(ann, spec(GETPPID, name="calls", callchain=pb.CALLCHAIN_USER, target=target),
                          spec("page-faults", name="faults", period=1, callchain=pb.CALLCHAIN_USER, target=target),
                          spec("cpu-clock:ku", name="clock", period=100_000, callchain=pb.CALLCHAIN_USER, target=target),
                          spec("cs", name="switches", period=1, target=target))
        with daemon.client_of(ANN, groups=()) as stream:
            items = stream.subscribe()
            do(own, "calls child")
            do(own, os.path.realpath(sys.executable))
            stream.stop()
            seen = collections.Counter()
            for item in items:
                for key, value in item.items():
                    for number in value if isinstance(value, (list, tuple)) else [value]:
                        if isinstance(number, int) and key != "user_callchain":  # which has what lies in memory of its own
                            check(number < KERNEL, f"{key} of {item}")
                seen[item.get("event")] += 1
        check(seen[added[0]] == 300 and seen[added[1]] > 0, f"{seen}")


def test_others_are_not_there():
    """Requests as an oracle: of what others have, and what is not there, the same is said."""
    text = rules(f"{{ users: [{ANN}], own-processes: true, subscribe: ['external:mine'] }}")
    with Daemon(text) as daemon, daemon.client() as root, running(ANN) as (own,), daemon.client_of(ANN, groups=()) as ann:
        add(root, NOTED, {"event": "page-faults", "name": "secret", "group": "hidden", "interval": SECOND})

        def said(name, **body):
            return no(ann, [], **body).message.replace(name, "NAME")

        for there, absent in ("secret", "absent"), ("external:noted", "external:never"):
            for body in (lambda n: {"subscribe": pb.SubscribeRequest(events=[n])}, lambda n: {"remove": pb.SelectRequest(names=[n])},
                         lambda n: {"enable": pb.SelectRequest(names=[n])}, lambda n: {"ledger": pb.LedgerRequest(events=[n])},
                         lambda n: {"set_filter": pb.SetFilterRequest(name=n)}, lambda n: {"set_period": pb.SetPeriodRequest(name=n)},
                         lambda n: {"emit": pb.EmitRequest(samples=[pb.ExternalSample(event=n)])},
                         lambda n: {"plan": pb.PlanRequest(yaml=n)}, lambda n: {"validate": pb.ValidateRequest(yaml=n)}):
                equal(said(there, **body(there)), said(absent, **body(absent)), "what is said")
        no(ann, ["doctor"], doctor=pb.Empty())
        for glob in "secr*", "abse*":
            equal(refused(ann, "unknown-event", subscribe=pb.SubscribeRequest(events=[glob])).message.replace(glob, "G"),
                  "no running event matches G: `perfctl list` shows the running events, `perfctl add G` adds it", "of a glob")
        equal(refused(ann, "unknown-event", subscribe=pb.SubscribeRequest(events=["external:mine"])).reason, "unknown-event", "granted")
        pid = own.process.pid
        temporary(ann, spec(GETPPID, target=pb.Target(pids=[pid])))
        refused(ann, "unknown-field", subscribe=pb.SubscribeRequest(fields=["n"]))  # one that only others' events have
        equal([e.spec.name for e in ann.request(list=pb.ListRequest()).list.events], [f"~{ANN}/{GETPPID}"], "list")
        equal(len(ann.request(list=pb.ListRequest(glob="@hidden")).list.events), 0, "list of a group of others")
        own_group = pb.EventSpec(event=GETPPID, name="g", group="hidden", target=pb.Target(pids=[pid]))
        equal(temporary(ann, own_group), [f"~{ANN}/g"], "a name of its own")
        equal({e.spec.group for e in ann.request(list=pb.ListRequest()).list.events}, {f"~{ANN}"}, "groups: never that of others")


def test_what_a_stream_tells():
    """Its packets, whatever they are about, tell of nobody else: descriptors, tasks, items, and the closing ledger."""
    with Daemon(rules(OWN)) as daemon, daemon.client() as root, running(ANN, BOB) as (own, bobs), \
         daemon.client_of(ANN, groups=()) as ann, daemon.client() as all_of_it, daemon.client_of(ANN, groups=()) as stream:
        add(root, NOTED, {"event": "sched:sched_switch", "name": "secret"}, GETPPID)
        all_of_it.subscribe()  # so that all of these are read and decoded
        name, = temporary(ann, spec(GETPPID, target=pb.Target(pids=[own.process.pid])))
        stream.send(subscribe=pb.SubscribeRequest())
        equal(stream.receive().response.reason, "", "the stream")
        do(own, "calls child")
        do(bobs, "calls child")
        root.request(remove=pb.SelectRequest(names=["secret"]))
        stream.send(stop=pb.Empty())
        packets = [stream.receive().packet]
        while not packets[-1].HasField("end"):
            message = stream.receive()
            packets += [message.packet] if message.HasField("packet") else []
        ledger = packets[-1].end.ledger
        equal(({row.name for row in ledger.events}, [row.peer.split(", ")[-1] for row in ledger.subscribers]),
              ({name}, [f"uid {ANN}"]), "the closing ledger")
        equal({event.name for packet in packets for event in packet.events}, {name}, "descriptors")
        equal([event.name for packet in packets for event in packet.removed], [], "events that were removed")
        pids = collections.Counter(task.pid for packet in packets for task in packet.tasks)
        equal((pids[own.process.pid], pids[bobs.process.pid], len(pids)), (1, 0, 2), "tasks")


# ---- by perfctl --------------------------------------------------------------------------------------------------------


def test_a_person_with_perfctl():
    """uid 65534 under a rule: stat, watch, emit, list and status work, and what is refused names the rule that decides."""
    rule = f"{{ users: [{EVE}], own-processes: true, stat: true, subscribe: ['external:noted'], emit: ['external:noted'] }}"
    decides = "is not granted to uid 65534: rule 1 of access.rules decides"
    grants = ", which grants to subscribe to external:noted, to emit external:noted, stat, events on your own processes; see perfd.yaml(5)"
    with Tree() as tree, Daemon(rules(rule)) as daemon, daemon.client() as root, running(EVE, BOB) as (own, bobs):
        os.chmod(daemon.directory, 0o755)
        add(root, NOTED, {"event": "page-faults", "name": "secret", "interval": SECOND})
        put(give(tree.make("mine"), EVE), own)
        pid = str(own.process.pid)
        said = dict(line.split("\t") for line in perfctl(daemon, EVE, "status").stdout.splitlines())
        equal({key: said[key] for key in ("access", "may-status", "may-subscribe", "may-emit", "may-stat", "own-processes")},
              {"access": "rule 1", "may-status": "no", "may-subscribe": "external:noted", "may-emit": "external:noted",
               "may-stat": "yes", "own-processes": "yes"}, "status")
        equal(perfctl(daemon, EVE, "emit", "external:noted", "n=3").returncode, 0, "emit")
        done = perfctl(daemon, EVE, "list")
        check(done.returncode == 0 and "external:noted" in done.stdout and "secret" not in done.stdout, f"{done}")
        for target in ("--pid", pid), ("--cgroup", tree.path("mine")):
            with perfd.Line([PERFCTL, "--socket", daemon.stream, "--json", "watch", GETPPID, *target, "--count", "50"], user=EVE,
                            group=EVE, extra_groups=[]) as watch:
                perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the stream of perfctl watch")
                do(own, "calls")
                rows = [json.loads(line) for line in watch.process.stdout]
            equal(collections.Counter(row["pid"] for row in rows if row.get("kind") == "sample"), {int(pid): 50}, "samples")
            perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "the end of its stream")
        done = perfctl(daemon, EVE, "stat", "task-clock", "cs", "--pid", pid, "--count", "1", "--interval", "100ms")
        check(done.returncode == 0 and "task-clock" in done.stdout, f"{done}")
        no_rule = {("add", GETPPID, "--pid", pid): "perfctl watch", ("add", "--keep", GETPPID, "--pid", pid): decides,
                   ("remove", "secret"): decides, ("disable", "secret"): decides, ("enable", "secret"): decides,
                   ("filter", "secret", "n == 1"): decides, ("emit", "external:other", "n=3"): decides,
                   ("watch", "secret"): decides, ("doctor",): decides, ("ledger",): decides, ("reload",): decides,
                   ("watch", "sched:sched_switch", "--pid", pid): decides, ("watch", GETPPID, "--cgroup", "/"): decides,
                   ("watch", f"uprobe:{PERFCTL}:main", "--pid", pid): decides,
                   ("watch", GETPPID, "--pid", str(bobs.process.pid)): "the process must have uid 65534"}
        for words, expected in no_rule.items():
            done = perfctl(daemon, EVE, *words)
            check(done.returncode == 1 and expected in done.stderr and (expected != decides or grants in done.stderr.replace("\n", " ")),
                  f"{words}: {done.returncode}, {done.stderr}, {done.stdout}")
        equal(names(root), ["external:noted", "secret"], "what is left")


def test_reload_under_way():
    """A rule that goes while a client adds and removes: what was added goes, and no request is served from then on."""
    with Daemon(rules(OWN)) as daemon, running(ANN) as (own,), daemon.client_of(ANN, groups=()) as ann:
        target = pb.Target(pids=[own.process.pid])
        for i in range(50):
            ann.send(add=pb.AddRequest(events=[spec(GETPPID, name=f"e{i}", target=target)], while_connected=True))
            if i == 25:
                with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="utf-8") as f:
                    f.write(OPEN + "  rules: [{ status: true }]\n")
                os.kill(daemon.pid, signal.SIGHUP)
        reasons = collections.Counter(ann.receive().response.reason for _ in range(50))
        check(set(reasons) <= {"", "not-granted"}, f"{reasons}")
        perfd.wait_until(lambda: daemon.status().n_events == 0, "no event that is not granted")
        no(ann, ["add is not granted"], add=pb.AddRequest(events=[spec(GETPPID, target=target)], while_connected=True))


if __name__ == "__main__":
    perfd.main(globals())
