#!/usr/bin/python3
"""Events that rules of access let clients of the stream socket add: counts, and processes of one's own. Attacked by setuid
programs, races, numbers that are used again, and by asking for what is others'. Needs root."""
import collections
import contextlib
import json
import os
import shutil
import struct
import sys
import time

import perfd
from perfd import Daemon, add, check, equal, pb, refused
from test_roles import ANN, BOB, NOTED, NUMBER, OPEN, PERFCTL, TRACERS, names, no, perfctl, reload, rules, sample


# ---- counting ----------------------------------------------------------------------------------------------------------


def spec(event="page-faults", **more):
    return pb.EventSpec(event=event, **more)


def temporary(client, *specs):
    """Adds events that end with the connection; gives their names."""
    return [ref.name for ref in client.request(add=pb.AddRequest(events=specs, while_connected=True)).added.events]


def no_add(client, words, *specs, **more):
    return no(client, words, add=pb.AddRequest(events=specs, **{"while_connected": True, **more}))


SECOND = 1_000_000_000


def test_stat():
    """Counts of whole CPUs and cgroups, and of processes of one's own; nothing that would tell more of others."""
    text = rules(f"{{ users: [{ANN}, {BOB}], stat: true }}") + f"targets: {{ mine: {{ pids: [{os.getpid()}] }} }}\n"
    with Daemon(text) as daemon, daemon.client() as root, daemon.client_of(ANN, groups=()) as ann, perfd.Line(["cat"], user=BOB,
        group=BOB) as other:
        add(root, NOTED, {"event": "page-faults", "name": f"~{ANN}/roots", "interval": SECOND})
        counted = [spec(interval=SECOND), spec("sched:sched_switch", interval=SECOND),
            spec("{page-faults,cs}", name="both", interval=SECOND),
                   spec("cpu-clock", interval=SECOND, target=pb.Target(cpus="0")),
                       spec("cs", interval=SECOND, target=pb.Target(cgroups=["/"]))]
        names_of = temporary(ann, *counted)
        equal(names_of, [f"~{ANN}/{name}" for name in ("page-faults", "sched:sched_switch", "both", "cpu-clock", "cs")],
            "what they are called")
        equal(names(ann), sorted(names_of), "list of ann")
        equal({e.spec.group for e in ann.request(list=pb.ListRequest()).list.events}, {f"~{ANN}"}, "their group")
        mine, theirs, init = (pb.Target(pids=[pid]) for pid in (os.getpid(), other.process.pid, 1))
        for words, refused_spec in {
                "sampled": spec(), "sampled ": spec("cpu-clock", frequency=99, interval=SECOND),
                    "sampled  ": spec(period=1, interval=SECOND),
                "which is neither": spec("kprobe:vfs_read", interval=SECOND),
                    "which is neither ": spec(f"uprobe:{PERFCTL}:main", interval=SECOND),
                "which is neither  ": spec("mem:0x1000", interval=SECOND), "which is neither   ": spec("r1a8", interval=SECOND),
                "which is neither    ": spec("cpu/event=0x3c/", interval=SECOND),
                    "which is neither     ": spec("uprobe/config=0/", interval=SECOND),
                "which is neither      ": spec("external:mine"), "which is neither       ": spec("{cs,r1a8}", name="g", interval=SECOND),
                "modifiers": spec("cycles:D", interval=SECOND),
                    "modifiers ": spec("{cs,page-faults:e}", name="g", interval=SECOND),
                "a filter": spec("sched:sched_switch", filter="prev_pid == 1", interval=SECOND),
                "an attr": spec(interval=SECOND, attr=[pb.AttrSetting(name="pinned", value="true")]),
                "an attr ": spec(interval=SECOND, attr=[pb.AttrSetting(name="sample-period", value="1")]),
                "an attr  ": spec(interval=SECOND, attr=[pb.AttrSetting(name="enable-on-exec", value="false")]),
                "a target of the": spec(interval=SECOND, target=pb.Target(name="mine")),
                    "include-self": spec(interval=SECOND, include_self=True),
                f"process {os.getpid()}": spec(interval=SECOND, target=mine),
                    f"process {other.process.pid}": spec(interval=SECOND, target=theirs),
                "process 1": spec(interval=SECOND, target=init), "thread 1": spec(interval=SECOND, target=pb.Target(tids=[1])),
                "a group that is sampled": spec("{cs,page-faults}:S", name="g", interval=SECOND)}.items():
            refused_spec.name = "refused"
            no_add(ann, [words.strip()], refused_spec)
            no_add(ann, [words.strip()], spec("cs", name="fine", interval=SECOND), refused_spec)
        for more in {"while_connected": False}, {"keep": True, "while_connected": False}:
            no_add(ann, ["does not end with its connection (`while_connected`)"], counted[0], **more)
        refused(ann, "exists", add=pb.AddRequest(events=[counted[0]], while_connected=True))
        refused(ann, "exists", add=pb.AddRequest(events=[spec("cs", name="roots", interval=SECOND)], while_connected=True))
        refused(ann, "not-granted", remove=pb.SelectRequest(names=[f"~{ANN}/roots"]))  # a name alone makes it nobody's own
        refused(ann, "bad-event", add=pb.AddRequest(events=[spec("no such", interval=SECOND)], while_connected=True))
        with daemon.client_of(BOB, groups=()) as bob:
            equal((temporary(bob, counted[0]), names(bob)), ([f"~{BOB}/page-faults"],) * 2, "the same of bob")
            for request in "remove", "enable", "disable":
                for name in names_of[0], "*", "~*", f"~{ANN}/*", f"@~{ANN}", "@*", "#1", "external:noted", "", f"~{BOB}":
                    no(bob, ["not your own event"], **{request: pb.SelectRequest(names=[f"~{BOB}/page-faults", name])})
                no(ann, ["not your own event"], **{request: pb.SelectRequest(names=[f"~{ANN}/*"])})  # one of them is root's
            no(bob, ["set-filter"], set_filter=pb.SetFilterRequest(name=f"~{BOB}/page-faults"))
            no(bob, ["set-period"], set_period=pb.SetPeriodRequest(name=f"~{BOB}/page-faults", period=1))
            no(bob, ["to subscribe"], subscribe=pb.SubscribeRequest(events=[names_of[0]]))
            refused(bob, "unknown-event", subscribe=pb.SubscribeRequest(events=["*switch"]))
            refused(ann, "unknown-event", subscribe=pb.SubscribeRequest(events=["*roots"]))
            equal(names(root), sorted([*names_of, "external:noted", f"~{ANN}/roots", f"~{BOB}/page-faults"]), "what runs")
        perfd.wait_until(lambda: f"~{BOB}/page-faults" not in names(root), "what ended with its connection")
        ann.request(disable=pb.SelectRequest(names=[names_of[0]]))
        ann.request(enable=pb.SelectRequest(names=[names_of[0]]))
        ann.request(remove=pb.SelectRequest(names=names_of[1:]))
        equal(names(root), sorted([names_of[0], "external:noted", f"~{ANN}/roots"]), "what is left")


def test_stat_by_perfctl():
    """perfctl stat of the host, and of a command, by somebody who may nothing else."""
    with Daemon(rules(f"{{ users: [{ANN}], stat: true }}")) as daemon:
        os.chmod(daemon.directory, 0o755)
        done = perfctl(daemon, ANN, "stat", "page-faults", "cs", "--interval", "100ms", "--count", "2", "--json")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        check(done.returncode == 0 and {"page-faults", "cs"} <= {row.get("event") for row in rows}, f"{done}")
        done = perfctl(daemon, ANN, "stat", "-e", "page-faults", "--json", "--", sys.executable, "-c", "x = b'x' * (1 << 24)")
        check(done.returncode == 0 and any(row.get("event") == "page-faults" and row.get("value", 0) > 100
            for row in map(json.loads, done.stdout.splitlines())),
              f"{done}")
        done = perfctl(daemon, ANN, "stat", "page-faults", "--pid", "1", "--count", "1")
        check(done.returncode == 1 and "process 1 is not granted" in done.stderr, f"{done}")


# ---- processes of one's own --------------------------------------------------------------------------------------------

CALLS = """
import os, sys
def calls():
    for _ in range(100):
        os.getppid()
print(os.getpid(), flush=True)
for line in sys.stdin:
    for word in line.split():
        if word == "calls":
            calls()
        elif word == "child":
            pid = os.fork()
            if not pid:
                calls()
                os._exit(0)
            os.waitpid(pid, 0)
        elif word == "exec":
            os.execv(sys.executable, [sys.executable, "-c", "import os; [os.getppid() for _ in range(100)]"])
        else:
            pid = os.fork()
            if not pid:
                os.execv(word, [word, "-c", "import os; [os.getppid() for _ in range(100)]"])
            os.waitpid(pid, 0)
    print("done", flush=True)
"""


def program(uid, gid=None):
    return perfd.Line([sys.executable, "-c", CALLS], user=uid, group=uid if gid is None else gid, extra_groups=[])


def do(line, words):
    line.say(words)
    equal(line.hear(), ["done"], "the program's answer")


def make_privileged(directory):
    """Interpreters that Linux gives something else than their caller has; {name: path}."""
    if os.statvfs(directory).f_flag & os.ST_NOSUID:
        raise perfd.Skip(f"{directory} is on a file system without setuid programs")
    found = {}
    for name, (owner, group, mode) in {"setuid": (0, 0, 0o4755), "setgid": (0, TRACERS, 0o2755), "unreadable": (0, 0, 0o711),
                                       "capable": (0, 0, 0o755), "of-bob": (BOB, BOB, 0o4755)}.items():
        found[name] = os.path.join(directory, name)
        shutil.copyfile(os.path.realpath(sys.executable), found[name])
        os.chown(found[name], owner, group)
        os.chmod(found[name], mode)
    os.setxattr(found["capable"], "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))
    return found


GETPPID = "syscalls:sys_enter_getppid"


def occurred(daemon, name):
    return sum(row.occurred for row in daemon.ledger(name).events)


def test_own_processes():
    """Samples of one's own process and of its children, and no more from the moment at which one of them is somebody else."""
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true }}")) as daemon, daemon.client_of(ANN,
        groups=()) as ann, program(ANN) as own:
        privileged = make_privileged(daemon.directory)
        pid = int(own.hear()[0])
        name, = temporary(ann, spec(GETPPID, target=pb.Target(pids=[pid])))
        equal(name, f"~{ANN}/{GETPPID}", "its name")
        with daemon.client_of(ANN, groups=()) as stream:
            items = stream.subscribe(events=[name])
            do(own, "calls child")
            equal(occurred(daemon, name), 200, "calls of the process and of a child")
            for what, path in privileged.items():
                do(own, path)
                equal(occurred(daemon, name), 200, f"calls behind the exec of a program that is {what}")
            do(own, os.path.realpath(sys.executable))
            equal(occurred(daemon, name), 300, "calls behind the exec of another one")
            stream.stop()
            got = collections.Counter(item["pid"] == pid for item in items if item.get("fields") is not None)
            equal(got, {True: 100, False: 200}, "samples")


def test_own_process_becomes_root():
    """The process itself, by the exec of a setuid program: its own event ends there, and stays where it is."""
    script = ("import os, sys; print(os.getpid(), flush=True); sys.stdin.readline(); "
              "os.execv(sys.argv[1], [sys.argv[1], '-c', sys.argv[2]])")
    calls = "import os\n[os.getppid() for _ in range(100)]\nprint(os.geteuid(), flush=True)\n"
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true }}")) as daemon, daemon.client_of(ANN, groups=()) as ann:
        for what, path in make_privileged(daemon.directory).items():
            with perfd.Line([sys.executable, "-c", script, path, calls], user=ANN, group=ANN, extra_groups=[]) as own:
                pid = int(own.hear()[0])
                counted, sampled = temporary(ann, spec("task-clock", name="clock", interval=SECOND, target=pb.Target(pids=[pid]),
                                                       attr=[pb.AttrSetting(name="enable-on-exec", value="true")]),
                                             spec(GETPPID, name="calls", target=pb.Target(pids=[pid])))
                own.say("go")
                equal(own.hear(), [{"setuid": "0", "of-bob": str(BOB)}.get(what, str(ANN))], "its effective uid")
                equal(occurred(daemon, sampled), 0, f"calls of the process behind the exec of a program that is {what}")
                ann.request(remove=pb.SelectRequest(names=[counted, sampled]))


def test_foreign_processes():
    """Nobody else's, and none that the kernel would not let one trace."""
    hidden = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(1, flush=True); sys.stdin.readline()"
    capable = "import os, sys; print(1, flush=True); sys.stdin.readline()"
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true }}")) as daemon, daemon.client_of(ANN, groups=()) as ann, \
         program(BOB) as bobs, program(ANN, BOB) as of_group, program(ANN) as own, \
         perfd.Line([sys.executable, "-c", hidden], user=ANN, group=ANN, extra_groups=[]) as undumpable, \
         perfd.Line(["setpriv", f"--reuid={ANN}", f"--regid={ANN}", "--clear-groups", "--inh-caps=+net_raw",
             "--ambient-caps=+net_raw",
                     sys.executable, "-c", capable]) as with_capability, \
         perfd.Line(["setpriv", f"--ruid={ANN}", f"--regid={ANN}", "--clear-groups", sys.executable, "-c", capable]) as half:
        lines = {"of bob": bobs, "of another group": of_group, "not dumpable": undumpable, "with a capability": with_capability,
            "of two uids": half}
        for line in lines.values():
            line.hear()
        pid = int(own.hear()[0])
        for target in *(pb.Target(pids=[line.process.pid]) for line in lines.values()), *(pb.Target(tids=[line.process.pid])
            for line in lines.values()), \
                      pb.Target(pids=[1]), pb.Target(pids=[daemon.pid]), pb.Target(pids=[os.getpid()]), pb.Target(pids=[pid, 1]):
            no_add(ann, ["is not granted: the process must have uid 4001"], spec(GETPPID, target=target))
            no_add(ann, ["is not granted: the process must have uid 4001"], spec(interval=SECOND, target=target))
        for words, refused_spec in {
                "on others than": spec(interval=SECOND), "not your own": spec("cpu-clock", interval=SECOND,
                    target=pb.Target(cgroups=["/"])),
                "sampled on others": spec(), "can reveal what others do": spec("sched:sched_switch", target=pb.Target(pids=[pid])),
                "can reveal what others do ": spec("sched*:sched_switch", target=pb.Target(pids=[pid])),
                "can reveal what others do  ": spec("syscalls*:sys_enter_getppid", target=pb.Target(pids=[pid])),
                "which is neither": spec(f"uprobe:{PERFCTL}:main", target=pb.Target(pids=[pid])),
                "which is neither ": spec("kprobe:vfs_read", target=pb.Target(pids=[pid])),
                "which is neither  ": spec("mem:0x1000", target=pb.Target(pids=[pid])),
                "callchain of the kernel (that of user space alone is granted: --callchain user), is not granted to uid 4001": spec(period=1, callchain=pb.CALLCHAIN_BOTH, target=pb.Target(pids=[pid])),
                "an attr": spec(period=1, attr=[pb.AttrSetting(name="sigtrap", value="true")], target=pb.Target(pids=[pid])),
                "an attr ": spec(period=1, attr=[pb.AttrSetting(name="exclude-kernel", value="false")],
                    target=pb.Target(pids=[pid])),
                "a group that": spec("{page-faults,cs}", name="g", period=1, target=pb.Target(pids=[pid]))}.items():
            no_add(ann, [words.strip()], refused_spec)
        equal(names(ann), [], "events of ann")
        name, = temporary(ann, spec("page-faults", period=1, callchain=pb.CALLCHAIN_USER, target=pb.Target(pids=[pid])))
        state, = ann.request(list=pb.ListRequest()).list.events
        equal({setting.name: setting.value for setting in state.spec.attr}, {"exclude-kernel": "true", "exclude-hv": "true"},
            "what perfd sets")
        refused(ann, "gone", add=pb.AddRequest(events=[spec(GETPPID, name="x", target=pb.Target(pids=[4194303]))],
            while_connected=True))
        no(ann, ["to subscribe"], subscribe=pb.SubscribeRequest(events=["page-faults"]))
        check(name == f"~{ANN}/page-faults", name)


def test_own_by_perfctl():
    """perfctl watch and stat of one's own process, by somebody who may nothing else, whatever kernel.perf_event_paranoid is."""
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true }}")) as daemon, program(ANN) as own, program(BOB) as bobs:
        os.chmod(daemon.directory, 0o755)
        pid = own.hear()[0]
        with perfd.Line([PERFCTL, "--socket", daemon.stream, "--json", "watch", GETPPID, "--pid", pid, "--count", "50"],
            user=ANN, group=ANN,
                        extra_groups=[]) as watch:
            perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the stream of perfctl watch")
            do(own, "calls")
            rows = [json.loads(line) for line in watch.process.stdout]
        equal({row["pid"] for row in rows if row.get("kind") == "sample"}, {int(pid)}, "whose samples")
        equal(sum(row.get("kind") == "sample" for row in rows), 50, "samples")
        done = perfctl(daemon, ANN, "stat", "task-clock", "cs", "--pid", pid, "--count", "1", "--interval", "100ms")
        check(done.returncode == 0 and "task-clock" in done.stdout, f"{done}")
        done = perfctl(daemon, ANN, "watch", GETPPID, "--pid", bobs.hear()[0])
        check(done.returncode == 1 and "is not granted: the process must have uid 4001" in done.stderr, f"{done}")


def test_own_where():
    """The predicate of a rule is for what it grants; what one adds oneself is seen whole, and by nobody else."""
    text = rules(f"{{ users: [{ANN}], subscribe: ['external:noted'], where: 'n == 1', own-processes: true }}",
        f"{{ users: [{BOB}], own-processes: true }}")
    with Daemon(text) as daemon, daemon.client() as root, daemon.client_of(ANN, groups=()) as ann, program(ANN) as own:
        add(root, NOTED)
        pid = int(own.hear()[0])
        name, counted = temporary(ann, spec(GETPPID, target=pb.Target(pids=[pid])),
            spec("task-clock", interval=10_000_000, target=pb.Target(pids=[pid])))
        with daemon.client_of(ANN, groups=()) as stream, daemon.client_of(BOB, groups=()) as bob:
            no(bob, ["to subscribe"], subscribe=pb.SubscribeRequest(events=[name]))
            others = bob.subscribe()
            items = stream.subscribe()
            do(own, "calls")
            root.request(emit=pb.EmitRequest(samples=[sample(number=n) for n in range(3)]))
            daemon.ledger()
            bob.stop()
            equal(list(others), [], "what bob gets")
            stream.stop()
            got = collections.Counter(item["event"] for item in items)
            check(got["external:noted"] == 1 and got[name] == 100 and counted != name, f"{got}")


def test_predicate_of_user():
    """A rule that grants each user's own samples of an event of the host, by whose processes they are of."""
    text = rules(f"{{ users: [{ANN}], own-processes: true, subscribe: ['syscalls:*'], where: 'sample.uid == {ANN}' }}")
    with Daemon(text) as daemon, daemon.client() as root, daemon.client_of(ANN,
        groups=()) as ann, program(ANN) as own, program(BOB) as bobs:
        add(root, GETPPID)
        pid = int(own.hear()[0])
        bobs.hear()
        for where, expected in ("", 100), ("sample.uid != 0", 100), (f"sample.uid == {BOB} || sample.uid == {ANN}",
            100), (f"uid == {BOB}", 0):
            with daemon.client_of(ANN, groups=()) as stream:
                items = stream.subscribe(where=where)
                do(own, "calls")
                do(bobs, "calls")
                stream.stop()
                equal(collections.Counter(item["pid"] for item in items), {pid: expected} if expected else {},
                    f"samples where {where!r}")
        name, = temporary(ann, spec(GETPPID, target=pb.Target(pids=[pid])))
        with daemon.client_of(ANN, groups=()) as stream:
            items = stream.subscribe(events=[name])
            do(own, "calls")
            stream.stop()
            equal(collections.Counter(item["event"] for item in items), {name: 100}, "samples of an event of one's own")


def test_race_of_setuid():
    """Programs that exec setuid ones without end, while events are added to them: no call of a setuid program is ever seen."""
    script = """
import os, sys
print(os.getpid(), flush=True)
while True:
    pid = os.fork()
    if not pid:
        os.getppid()
        os.execv(sys.argv[1], [sys.argv[1], "-I", "-S", "-c", "import os; [os.getsid(0) for _ in range(200)]"])
    os.waitpid(pid, 0)
"""
    getsid = "syscalls:sys_enter_getsid"
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true }}")) as daemon, daemon.client_of(ANN, groups=()) as ann:
        path = make_privileged(daemon.directory)["setuid"]
        with contextlib.ExitStack() as stack:
            lines = [stack.enter_context(perfd.Line([sys.executable, "-c", script, path], user=ANN, group=ANN, extra_groups=[]))
                for _ in range(3)]
            pids = [int(line.hear()[0]) for line in lines]
            seen, n_added, end = collections.Counter(), 0, time.monotonic() + 6
            while time.monotonic() < end or (not seen[f"~{ANN}/execs"] and time.monotonic() < end + perfd.PATIENCE):
                try:
                    added = temporary(ann, spec(getsid, name="calls", target=pb.Target(pids=pids)),
                                      spec("syscalls:sys_enter_execve", name="execs", target=pb.Target(pids=pids)))
                except perfd.Refused as error:
                    check(error.response.reason in ("bad-target", "gone"), f"{error}")
                    continue
                n_added += 1
                for name in added:
                    seen[name] += occurred(daemon, name)
                ann.request(remove=pb.SelectRequest(names=added))
            for line in lines:
                line.process.kill()
        check(n_added > 0 and seen[f"~{ANN}/execs"] > 0, f"events were added {n_added} times, and saw {seen}")
        equal(seen[f"~{ANN}/calls"], 0, f"calls of setuid programs that were seen in {n_added} times")


def test_reuse_of_pids():
    """A number that is somebody else's by now: what is opened anew, for other rings, is not opened on that."""
    path = "/proc/sys/kernel/ns_last_pid"
    if not os.access(path, os.W_OK):
        raise perfd.Skip("the kernel does not let choose the next pid (CONFIG_CHECKPOINT_RESTORE)")
    text = rules(f"{{ users: [{ANN}], own-processes: true }}")
    with Daemon(text) as daemon, daemon.client_of(ANN, groups=()) as ann:
        with program(ANN) as own:
            pid = int(own.hear()[0])
            name, = temporary(ann, spec(GETPPID, target=pb.Target(pids=[pid])))
            do(own, "calls")
        for _ in range(1000):
            with open(path, "w", encoding="ascii") as f:
                f.write(str(pid - 1))
            with program(BOB) as bobs:
                if int(bobs.hear()[0]) != pid:
                    continue
                reload(daemon, text + "rings: { size: 1MiB }\n")
                do(bobs, "calls")
                equal(occurred(daemon, name), 100, "calls, those of bob among them")
                no_add(ann, [f"process {pid}"], spec(GETPPID, name="again", target=pb.Target(pids=[pid])))
                return
        raise AssertionError(f"nobody got the pid {pid}")


def test_resize_with_setuid_child():
    """Other rings while a setuid child runs: it is not opened on that child."""
    script = """
import os, sys
print(os.geteuid(), flush=True)
sys.stdin.readline()
[os.getppid() for _ in range(100)]
print("done", flush=True)
"""
    text = rules(f"{{ users: [{ANN}], own-processes: true }}")
    parent = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
pid = os.fork()
if not pid:
    os.execv(sys.argv[1], [sys.argv[1], "-c", sys.argv[2]])
os.waitpid(pid, 0)
"""
    with Daemon(text) as daemon, daemon.client_of(ANN, groups=()) as ann:
        privileged = make_privileged(daemon.directory)
        with perfd.Line([sys.executable, "-c", parent, privileged["setuid"], script], user=ANN, group=ANN,
            extra_groups=[]) as own:
            pid = int(own.hear()[0])
            name, = temporary(ann, spec(GETPPID, target=pb.Target(pids=[pid])))
            own.say("go")
            equal(own.hear(), ["0"], "the child's uid")
            reload(daemon, text + "rings: { size: 1MiB }\n")
            state, = ann.request(list=pb.ListRequest()).list.events
            equal((state.n_targets, state.n_fds > 0), (1, True), "tasks that it is on")
            own.say("go")
            equal(own.hear(), ["done"], "the child's last word")
            equal(occurred(daemon, name), 0, "calls of the child")


def test_quotas():
    """Of a uid: events, fds, and connections that events end with."""
    more = "events: { per-uid: 5 }\nfds: { per-uid: 100 }\n"
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true, stat: true }}")
        + more) as daemon, contextlib.ExitStack() as stack, program(ANN) as own:
        pid = int(own.hear()[0])
        with daemon.client_of(ANN, groups=()) as ann:
            temporary(ann, *[spec(name=f"e{i}", interval=SECOND) for i in range(5)])
            refused(ann, "too-many-events", add=pb.AddRequest(events=[spec(name="more", interval=SECOND)], while_connected=True))
            refused(ann, "too-many-events", add=pb.AddRequest(events=[spec("syscalls:*", interval=SECOND)], while_connected=True))
        perfd.wait_until(lambda: daemon.status().n_events == 0, "events that ended with their connection")
    with Daemon(rules(f"{{ users: [{ANN}], stat: true }}")) as daemon, daemon.client_of(ANN, groups=()) as ann:
        no = refused(ann, "too-many-reads", "STATUS_EXHAUSTED", add=pb.AddRequest(events=[spec(interval=9_999_999)],
            while_connected=True))
        check("every 10 ms" in no.message, no.message)
        calls = "syscalls:*"  # some hundreds
        no = refused(ann, "too-many-reads", "STATUS_EXHAUSTED", add=pb.AddRequest(events=[spec(calls, interval=SECOND // 100)],
            while_connected=True))
        check("longer interval" in no.message, no.message)
        equal(names(ann), [], "events of a refused add")
        temporary(ann, spec("syscalls:sys_enter_[a-c]*", interval=SECOND))
        # what is there counts, and what is asked for at once counts together
        each = [spec("cs", name=f"cs{i}", interval=SECOND // 100) for i in range(99)]
        temporary(ann, *each)
        refused(ann, "too-many-reads", "STATUS_EXHAUSTED", add=pb.AddRequest(events=[spec("cs", name=f"more{i}",
            interval=SECOND // 100) for i in range(2)], while_connected=True))
        with daemon.client() as root:
            add(root, {"event": "cs", "name": "roots", "interval": 1_000_000})
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true, stat: true }}")) as daemon, contextlib.ExitStack() as stack, \
         program(ANN) as own:
        pid = int(own.hear()[0])
        clients = [stack.enter_context(daemon.client_of(ANN, groups=())) for _ in range(17)]
        for i, client in enumerate(clients[:16]):
            temporary(client, spec(GETPPID, name=f"e{i}", target=pb.Target(pids=[pid])))
        refused(clients[16], "too-many-connections", add=pb.AddRequest(events=[spec(name="more", interval=SECOND)],
            while_connected=True))
        temporary(clients[0], spec(name="more", interval=SECOND))
        clients[1].socket.close()
        perfd.wait_until(lambda: f"~{ANN}/e1" not in names(clients[0]), "what ended")
        temporary(clients[16], spec(name="another", interval=SECOND))


def test_reload_own():
    """Events that are not granted any more go, those of others stay, and streams are told."""
    both = f"{{ users: [{ANN}], own-processes: true, stat: true }}"
    with Daemon(rules(both, f"{{ users: [{BOB}], stat: true }}")) as daemon, daemon.client_of(BOB,
        groups=()) as bob, program(ANN) as own:
        pid = int(own.hear()[0])
        kept, = temporary(bob, spec(interval=SECOND))
        for rule, left in (("own-processes: true", ["calls", "counted"]), ("stat: true", ["counted", "host"]),
            ("status: true", []),
                           ("own-processes: true, stat: true", ["calls", "counted", "host"]), (None, [])):
            reload(daemon, rules(both, f"{{ users: [{BOB}], stat: true }}"))
            if rule is None:
                bob.socket.close()
            with daemon.client_of(ANN, groups=()) as ann, daemon.client() as root:
                temporary(ann, spec(GETPPID, name="calls", target=pb.Target(pids=[pid])), spec(name="host", interval=SECOND),
                          spec("task-clock", name="counted", interval=SECOND, target=pb.Target(pids=[pid])))
                reload(daemon, rules(f"{{ users: [{ANN}], {rule} }}", f"{{ users: [{BOB}], stat: true }}") if rule else OPEN,
                    True)
                expected = sorted(f"~{ANN}/{name}" for name in left) + [kept] * (rule is not None)
                perfd.wait_until(lambda r=root, x=expected: names(r) == x, f"what {rule} leaves: {expected}")
            perfd.wait_until(lambda: daemon.status().n_events == (rule is not None), "what ended with its connection")


if __name__ == "__main__":
    perfd.main(globals())
