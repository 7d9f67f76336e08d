#!/usr/bin/python3
"""Whom an event observes, on the real kernel: exactly those that were named, as they come and go, and everything that
was opened for them is gone with the event."""
import contextlib
import os
import subprocess

import perfd
from checker import Checker
from host import breakpoints_fire
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb, refused, wait_until
from test_errors import state, unchanged
from test_promises import lost, rows_of
from test_sources import CPUS, FIRE, GETPPID, SLOW, Fire, definitions, samples, total
from test_tasks import cgroup_root, remove

N = 1000
CALLS = {"event": "raw_syscalls:sys_enter", "filter": f"id == {GETPPID}"}
DOCKER, CONTAINERD, CRIO, PODMAN = ("0123456789ab" + c * 52 for c in "4567")
POD = "kubepods-burstable-pod6b34a5cb_25a9_4f40_a8b4_3f2e1d0c9b8a.slice"


class Tree:
    """Own cgroups below one parent, gone afterwards. Names are paths below it."""

    def __init__(self):
        self.own = f"perfd-test-targets-{os.getpid()}"
        self.folder = os.path.join(cgroup_root(), self.own)

    def __enter__(self):
        os.mkdir(self.folder)
        return self

    def __exit__(self, *_):
        for folder, _, _ in os.walk(self.folder, topdown=False):
            wait_until(lambda path=folder: remove(path), f"{folder} is empty")

    def make(self, name):
        """Gives its folder; `name` is "" for the parent itself."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return folder

    def remove(self, name):
        wait_until(lambda: remove(os.path.join(self.folder, name)), f"{name} is empty")

    def path(self, name):
        return f"{self.own}/{name}"


def events_of(client):
    return {e.spec.name: e for e in client.request(list=pb.ListRequest()).list.events}


def occurred(daemon, *names):
    """How often each has, after its rows were added up."""
    ledger = daemon.ledger()
    return {name: total(rows_of(ledger, name), "occurred") for name in names}


@contextlib.contextmanager
def daemon_and_tree(**more):
    """Whose state is as before in the end, without events."""
    with Tree() as tree, Daemon(**more) as daemon, daemon.client() as client:
        before = state(daemon)
        yield daemon, client, tree
        if events_of(client):
            client.request(remove=pb.SelectRequest(names=["*"]))
        unchanged(daemon, before, "what is left of removed events")


def add_again(client, spec):
    """Whoever observes what change faster than it can be opened is told to try again, as on an emulated machine."""
    for _ in range(20):
        try:
            return add(client, spec)
        except perfd.Refused as no:
            check("change faster than it can be opened" in no.response.message, f"{no.response.reason}: {no.response.message}")
    raise AssertionError(f"{spec['name']} cannot be added in 20 tries")


def test_groups_on_a_process_that_makes_children():
    """A group's leader may be a child's when its member is opened, and end with it: that is no reason to refuse the group."""
    with Daemon() as daemon, daemon.client() as client, \
         perfd.Line([os.path.join(perfd.BUILD, "tests", "integration", "serial-load"), str(CPUS[0])]) as load:
        word, pid = load.hear()
        equal(word, "ready", "the word of the load")
        load.say("go 1000000 0 0 2000000")  # a million children: more than there is time for
        for i in range(20 if SLOW else 60):
            add_again(client, {"event": "{" + ",".join(["page-faults"] * 8) + "}", "name": f"g{i}", "interval": 1_000_000_000,
                               "target": pb.Target(pids=[int(pid)])})
            client.request(remove=pb.SelectRequest(names=[f"g{i}"]))


def test_cgroups_by_path():
    """However the path is written; a cgroup counts once, also if it is named twice or lies in another one."""
    with daemon_and_tree() as (daemon, client, tree):
        tree.make("web")
        with Fire(tree.make("web/a")) as a, Fire(tree.make("web/b")) as b, Fire(tree.make("db")) as db, Fire() as outside:
            targets = {
                "a": [tree.path("web/a")],
                "a-again": [f"/{tree.own}//web/./a/", tree.path("web/a")],
                "web": [tree.path("web")],
                "web-and-a": [tree.path("web/a"), tree.path("web")],
                "both": [tree.path("web/b"), tree.path("db")],
                "glob": [tree.path("*/[ab]")],
                "deep": [f"{tree.own}/**"],
                "everything": ["/"],
                "everything-twice": ["/", tree.path("db")],
            }
            add(client, *({**CALLS, "name": name, "target": pb.Target(cgroups=paths),
                           "filter": f"id == {GETPPID} && common_pid >= {min(f.pid for f in (a, b, db, outside))}"}
                          for name, paths in targets.items()),
                {**CALLS, "name": "one-cpu", "target": pb.Target(cgroups=[tree.path("web")], cpus=str(CPUS[0]))})
            with Checker(daemon, "time", queue=1 << 26) as checker:
                for fire, n in ((a, N), (b, 2 * N), (db, 4 * N), (outside, 8 * N)):
                    fire.fire("syscalls", n)
                checker.finish()
            found = occurred(daemon, *targets)
            n_targets = {name: event.n_targets for name, event in events_of(client).items()}
            n_fds = events_of(client)["one-cpu"].n_fds
        equal({name: n for name, n in found.items() if not name.startswith("everything")},
              {"a": N, "a-again": N, "web": 3 * N, "web-and-a": 3 * N, "both": 6 * N, "glob": 3 * N, "deep": 7 * N},
              "calls of the cgroups")
        for name in ("everything", "everything-twice"):
            check(15 * N <= found[name] < 16 * N, f"calls of the host: {found[name]}")
        equal(n_targets, {"a": 1, "a-again": 1, "web": 1, "web-and-a": 1, "both": 2, "glob": 2, "deep": 1, "one-cpu": 1,
                          "everything": 0, "everything-twice": 0}, "cgroups that are observed")
        equal(n_fds, 1, "fds on one CPU")


def test_globs_follow_cgroups():
    """Cgroups that appear are seen, those that go take nothing out of the ledger; others are not disturbed."""
    with daemon_and_tree() as (daemon, client, tree):
        tree.make("jobs")
        name = {**CALLS, "name": "jobs", "target": pb.Target(cgroups=[tree.path("jobs/job-*")])}
        add(client, name, {**CALLS, "name": "whole", "target": pb.Target(cgroups=[tree.path("jobs")])})

        def targets():
            return events_of(client)["jobs"].n_targets

        equal((targets(), events_of(client)["jobs"].n_fds), (0, 0), "cgroups before there is one")
        with Checker(daemon, "time", queue=1 << 26) as checker:
            for i in range(1, 6):
                folder = tree.make(f"jobs/job-{i}")
                tree.make(f"jobs/other-{i}")
                wait_until(lambda n=i: targets() == n // 2 + 1, "the new cgroup to be seen")
                with Fire(folder) as fire, Fire(tree.make(f"jobs/other-{i}")) as other:
                    fire.fire("syscalls", N)
                    other.fire("syscalls", N)
                if i % 2 == 0:
                    tree.remove(f"jobs/job-{i}")
                    wait_until(lambda n=i: targets() == n // 2, "the cgroup that is gone to be forgotten")
                equal(occurred(daemon, "jobs", "whole"), {"jobs": i * N, "whole": 2 * i * N}, "calls so far")
            seen = checker.finish()
        equal(seen["items"] - seen["records"], 15 * N, "samples of both")
        rows = rows_of(daemon.ledger(), "jobs")
        equal(total(rows, "delivered") + sum(lost(row) for row in rows.values()), 5 * N, "the ledger of cgroups that are gone")


def test_cgroup_above_those_that_are_observed():
    """One appears that counts what is below it too: not a call of it is missed or seen twice.

    Only mounts make that happen at one moment on v2. The daemon has its own: at first it finds p/kid as q, and no p.
    """
    with Tree() as tree, Daemon(prefix=["unshare", "--mount", "--propagation", "private"]) as daemon, \
         daemon.client() as client:
        def mount(*command):
            subprocess.run(["nsenter", "-t", str(daemon.pid), "-m", *command], check=True)

        parent, kid, other = (tree.make(name) for name in ("p", "p/kid", "q"))
        mount("mount", "--bind", kid, other)
        mount("mount", "-t", "tmpfs", "none", parent)
        with Workload("flood", 0, 100_000, cpus=CPUS) as load:
            for pid in load.pids:
                with open(f"{kid}/cgroup.procs", "w", encoding="ascii") as f:
                    f.write(str(pid))
            add(client, {**CALLS, "name": "calls", "target": pb.Target(cgroups=[tree.path("q"), tree.path("p*")])})
            equal(events_of(client)["calls"].n_targets, 1, "cgroups at first")
            with Checker(daemon, "time", queue=1 << 28) as checker:
                load.go()
                wait_until(lambda: occurred(daemon, "calls")["calls"] > 1000, "the load")
                mount("umount", parent)
                mount("umount", other)
                tree.make("p-else")  # the word to look again
                wait_until(lambda: events_of(client)["calls"].n_targets == 3, "the one above to be seen")
                n = occurred(daemon, "calls")["calls"]
                wait_until(lambda: occurred(daemon, "calls")["calls"] > n + 1000, "the load")
                counts = load.done(stop=True)
                seen = checker.finish(60)
            rows = rows_of(daemon.ledger(), "calls")
            load.exit()
    equal(seen["items"] - seen["records"], sum(counts), "samples and calls made")
    equal((total(rows, "occurred"), total(rows, "delivered")), (sum(counts), sum(counts)), "the ledger")


def test_many_events_follow_at_once():
    """A cgroup that appears, or goes, costs readers a few turns, however many events follow it."""
    def turns():
        return max(cpu.n_wakeups for cpu in daemon.status().cpus)

    with daemon_and_tree() as (daemon, client, tree):
        tree.make("jobs")
        names = [f"jobs-{i}" for i in range(100)]
        add(client, *({**CALLS, "name": name, "target": pb.Target(cgroups=[tree.path("jobs/*")])} for name in names))
        for n, change in ((1, tree.make), (2, tree.make), (1, tree.remove)):
            before = turns()
            change(f"jobs/job-{max(n, 2) if change == tree.remove else n}")
            wait_until(lambda n=n: {e.n_targets for e in events_of(client).values()} == {n}, "all events to follow")
            check(turns() - before < 100, f"{turns() - before} wakeups of a reader for a change of one cgroup")
        with Fire(tree.make("jobs/job-1")) as fire:
            fire.fire("syscalls", N)
        equal(set(occurred(daemon, *names).values()), {N}, "calls that each has seen")


def test_probed_processes_have_children():
    """A probe without arguments, which Linux would open anew in each child, does not keep a process from having them."""
    with Daemon() as daemon, daemon.client() as client, Workload("forks", 20, cpus=CPUS[:1]) as load:
        with open(f"/proc/{load.pids[0]}/maps", encoding="ascii") as f:
            libc = next(line.split()[-1] for line in f if "/libc.so.6" in line)
        add(client, {"event": f"uprobe:{libc}:syscall", "name": "all", "target": pb.Target(pids=load.pids)},
            {"event": f"uprobe:{libc}:syscall", "name": "alone", "target": pb.Target(pids=load.pids, no_inherit=True)})
        load.go()
        equal(load.done(), [20], "children")
        found = {name: [row for row in daemon.ledger(name).events if row.occurred] for name in ("all", "alone")}
        load.exit()
    check(not any(row.exact for row in found["all"]) and all(row.exact for row in found["alone"]), f"which are exact: {found}")
    equal({name: sum(row.occurred for row in rows) for name, rows in found.items()}, {"all": 61, "alone": 41}, "calls of syscall(): clone and wait4, exit_group of the children, and a kill")


def test_containers_and_units():
    """By their names in the usual schemes, where they are and where they come back."""
    with daemon_and_tree() as (daemon, client, tree):
        folders = {"docker": f"system.slice/docker-{DOCKER}.scope", "containerd": f"{POD}/cri-containerd-{CONTAINERD}.scope",
                   "crio": f"kubepods/crio-{CRIO}.scope", "podman": f"machine.slice/libpod-{PODMAN}.scope",
                   "unit": "system.slice/perfd-test-web.service", "instance": "system.slice/perfd-test-worker@1.service"}
        for name in folders.values():
            tree.make(name)
        named = {"docker": pb.Target(containers=[DOCKER]), "docker-url": pb.Target(containers=[f"docker://{DOCKER}"]),
                 "containerd": pb.Target(containers=[CONTAINERD]), "crio": pb.Target(containers=[CRIO[:13]]),
                 "podman": pb.Target(containers=[PODMAN[:20]]), "two": pb.Target(containers=[PODMAN, DOCKER]),
                 "unit": pb.Target(units=["perfd-test-web.service"]), "short": pb.Target(units=["perfd-test-web"]),
                 "instances": pb.Target(units=["perfd-test-worker@*.service"]),
                 "mixed": pb.Target(units=["perfd-test-web"], containers=[CRIO])}
        add(client, *({**CALLS, "name": name, "target": target} for name, target in named.items()))
        with contextlib.ExitStack() as stack, Checker(daemon, "time", queue=1 << 26) as checker:
            for i, name in enumerate(folders.values()):
                stack.enter_context(Fire(tree.make(name))).fire("syscalls", N << i)
            checker.finish()
        expected = {"docker": 1, "docker-url": 1, "containerd": 2, "crio": 4, "podman": 8, "two": 9, "unit": 16, "short": 16,
                    "instances": 32, "mixed": 20}
        equal(occurred(daemon, *named), {name: times * N for name, times in expected.items()}, "calls of each")

        # an instance more, and a unit that is started again
        tree.remove(folders["unit"])
        tree.make("system.slice/perfd-test-worker@2.service")
        wait_until(lambda: [events_of(client)[n].n_targets for n in ("unit", "mixed", "instances")] == [0, 1, 2], "both changes")
        with Fire(tree.make(folders["unit"])) as unit, Fire(tree.make("system.slice/perfd-test-worker@2.service")) as second:
            wait_until(lambda: [events_of(client)[n].n_targets for n in ("unit", "mixed")] == [1, 2], "the unit that is back")
            unit.fire("syscalls", N)
            second.fire("syscalls", N)
        equal(occurred(daemon, "unit", "short", "instances", "mixed"),
              {"unit": 17 * N, "short": 17 * N, "instances": 33 * N, "mixed": 21 * N}, "calls with the new ones")


def test_tasks():
    """Processes with their threads and children, single threads, and one that is gone beside one that is there."""
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    program = ("import os, sys, threading\n"
               "go = [threading.Event(), threading.Event()]\n"
               "def work(event):\n    event.wait()\n    [os.getppid() for _ in range(1000)]\n"
               "threads = [threading.Thread(target=work, args=[e]) for e in go]\n"
               "[t.start() for t in threads]\n"
               "print(os.getpid(), *[t.native_id for t in threads], flush=True)\n"
               "sys.stdin.readline()\n"
               "[e.set() for e in go]\n[t.join() for t in threads]\n"
               "if os.fork() == 0:\n    [os.getppid() for _ in range(1000)]\n    os._exit(0)\n"
               "os.wait()\n[os.getppid() for _ in range(1000)]\n"
               "print('done', flush=True)\nsys.stdin.readline()\n")
    with daemon_and_tree() as (daemon, client, _), perfd.Line([os.sys.executable, "-c", program]) as process:
        pid, first, second = map(int, process.hear())
        targets = {"process": pb.Target(pids=[pid]), "alone": pb.Target(pids=[pid], no_inherit=True),
                   "thread": pb.Target(tids=[first]), "threads": pb.Target(tids=[first, second, first]),
                   "main": pb.Target(tids=[pid], no_inherit=True), "with-gone": pb.Target(pids=[gone.pid, pid, pid])}
        add(client, *({**CALLS, "name": name, "target": target} for name, target in targets.items()))
        with Checker(daemon, "time", queue=1 << 26) as checker:
            process.say("go")
            equal(process.hear(), ["done"], "the word of the program")
            checker.finish()
        equal(occurred(daemon, *targets), {"process": 4000, "alone": 3000, "thread": 1000, "threads": 2000, "main": 1000,
                                           "with-gone": 4000}, "calls of each")
        check(f"with-gone: there is no process {gone.pid}" in daemon.stderr(), f"no word of the process that is gone: {daemon.stderr()}")
        n_cpus = len(perfd.online_cpus())
        equal({name: (e.n_targets, e.n_fds) for name, e in events_of(client).items()},
              {"process": (3, 3 * n_cpus), "alone": (3, 3 * n_cpus), "thread": (1, n_cpus), "threads": (2, 2 * n_cpus),
               "main": (1, n_cpus), "with-gone": (3, 3 * n_cpus)}, "tasks and fds")


def test_refused_targets():
    with daemon_and_tree() as (daemon, client, tree), Fire() as fire:
        tree.make("web")
        tree.make(f"docker-{DOCKER}.scope")
        tree.make(f"docker-{DOCKER[:-1]}0.scope")
        before = state(daemon)
        other = "f" * 64
        for reason, status, words, target in (
                ("unknown-cgroup", "NOT_FOUND", "wbe.*web", pb.Target(cgroups=[tree.path("wbe")])),
                ("bad-cgroup", "INVALID", r"\.\.", pb.Target(cgroups=["../etc"])),
                ("bad-cgroup", "INVALID", r"\.\.", pb.Target(cgroups=[tree.path("web/../../x")])),
                ("bad-cgroup", "INVALID", "", pb.Target(cgroups=[""])),
                ("unknown-cgroup", "NOT_FOUND", "nope", pb.Target(cgroups=[tree.path("web"), tree.path("nope")])),
                ("unknown-container", "NOT_FOUND", other[:12], pb.Target(containers=[other])),
                ("ambiguous-container", "INVALID", f"{DOCKER}.*{DOCKER[:-1]}0|{DOCKER[:-1]}0.*{DOCKER}",
                 pb.Target(containers=[DOCKER[:20]])),
                ("bad-container", "INVALID", "", pb.Target(containers=["a/b"])),
                ("unknown-unit", "NOT_FOUND", "perfd-test-none.service", pb.Target(units=["perfd-test-none"])),
                ("bad-unit", "INVALID", "", pb.Target(units=["a/b"])),
                ("bad-target", "INVALID", "", pb.Target(cgroups=[tree.path("web")], pids=[fire.pid])),
                ("gone", "NOT_FOUND", "4194303", pb.Target(pids=[4194303])),
                ("gone", "NOT_FOUND", "calls", pb.Target(tids=[4194303]))):
            response = refused(client, reason, f"STATUS_{status}",
                               add=pb.AddRequest(events=[pb.EventSpec(name="calls", target=target, **CALLS)]))
            check(perfd.re.search(words, response.message), f"no {words!r} in {response.message!r}")
            unchanged(daemon, before, f"what {target} left")


def test_places_of_targets():
    """What a target names and the host lacks is placed where it stands, also when the list goes over several lines."""
    yaml = f"""version: 1
targets:
  gone:
    pids:
      - {os.getpid()}
      - {os.getpid()}
  nobody:
    pids: [ 4194303, 4194303,
            4194304 ]
  lost:
    tids:
      - 4194303
  absent:
    units: [ init.scope*,
             perfd-test-absent.service ]
  nowhere: {{ cgroups: [ / ], cgroup: perfd-test/absent }}
  unknown: {{ containers: [
      0123456789abcdef ] }}
groups:
  a: {{ target: gone, events: [ {{ event: cpu-clock, name: a }} ] }}
  b: {{ target: nobody, events: [ cpu-clock ] }}
  c: {{ target: lost, events: [ page-faults ] }}
  d: {{ target: absent, events: [ context-switches ] }}
  e: {{ target: nowhere, events: [ cpu-migrations ] }}
  f: {{ target: unknown, events: [ task-clock ] }}
  g:
    events:
      - event: sched:sched_wakeup
        filter: 'no_such_field == 1'
"""
    with Daemon() as daemon, daemon.client() as client:
        said = client.request(validate=pb.ValidateRequest(yaml=yaml)).validated
        strict = client.request(validate=pb.ValidateRequest(yaml=f"strict: true\n{yaml}")).validated
        first = refused(client, "gone", apply=pb.ApplyRequest(yaml=yaml, path="new.yaml")).message
    print("\n".join(f"  {m.line}:{m.column}: {m.text}" for m in [*said.warnings, *said.errors]))
    absent, wrong = [(8, 13), (12, 9), (15, 14), (16, 38), (18, 7)], [(29, 17)]
    equal([(m.line, m.column) for m in said.warnings if m.reason], absent, "the places of what is not there")
    equal([(m.line, m.column) for m in said.warnings if not m.reason], [(6, 9), (8, 22)], "the places of what stands there twice")
    equal([(m.line, m.column) for m in said.errors], wrong, "the places of mistakes")
    equal([(m.line - 1, m.column) for m in strict.errors], absent + wrong, "the same of a strict configuration")
    equal([m.text for m in strict.warnings if m.reason], [], "what a strict configuration lets be pending")
    equal(first, "new.yaml:8:13: there is no process 4194303, and 1 more of its pids do not exist either", "what apply says")


# ---- the configuration -----------------------------------------------------------------------------------------------


def configuration(tree, fire, directory, jobs="job-*", file="file"):
    return f"""version: 1
rings: {{ size: 1MiB }}
targets:
  process: {{ pids: [{fire.pid}] }}
  thread: {{ tids: [{fire.pid}], inherit: false }}
  here: {{ cpus: "{CPUS[0]}" }}
  web: {{ cgroup: {tree.path("web")} }}
  jobs: {{ cgroups: ["{tree.path(jobs)}"] }}
  box: {{ containers: [{DOCKER}] }}
  unit: {{ units: [perfd-test-conf.service] }}
groups:
  probes:
    target: process
    events:
      - {{ event: "uprobe:{FIRE}:fire_call", name: call }}
      - {{ event: "uprobe:{FIRE}:fire_call", name: args, args: "number=$arg1:s64 text=+0($arg2):string", filter: number < 5 }}
      - {{ event: "uretprobe:{FIRE}:fire_call", name: return, args: "value=$retval:s64" }}
      - {{ event: "usdt:{FIRE}:fire:hit", name: hit }}
      - {{ event: "mem:{fire.watched:#x}/8:w", name: watched }}
  threads:
    target: thread
    events:
      - {{ event: "raw_syscalls:sys_enter", name: calls, filter: id == {GETPPID} }}
      - {{ event: page-faults, name: faults, period: 1 }}
  clocks:
    target: here
    events:
      - {{ event: cycles, name: profile, frequency: 99, fallback: cpu-clock, callchain: [kernel, user] }}
      - {{ event: "sched:sched_process_*", enabled: false }}
  web:
    target: web
    counters: [task-clock, page-faults, context-switches]
    interval: 100ms
  jobs:
    target: jobs
    events: [{{ event: "syscalls:sys_enter_getppid", name: of-jobs }}]
  box:
    target: box
    events: [{{ event: "syscalls:sys_enter_getppid", name: of-box, attr: {{ sample-type: cpu|period }} }}]
  unit:
    target: unit
    events: [{{ event: "syscalls:sys_enter_getppid", name: of-unit }}]
  told:
    events: [{{ event: "external:deploy", fields: {{ user: text, code: u32 }} }}]
"""


def test_configuration():
    """Each kind of event and of target: started, listed, and reloaded with a change of some."""
    with Tree() as tree, Fire(tree.make("job-1")) as fire:
        tree.make("web")
        tree.make(f"docker-{DOCKER}.scope")
        tree.make("perfd-test-conf.service")
        with Daemon(config=configuration(tree, fire, None)) as daemon, daemon.client() as client:
            before = events_of(client)
            check(all(event.configured for event in before.values()), "an event that is not configured")
            equal({name for name, event in before.items() if not event.enabled} -
                  {name for name in before if name.startswith("sched:sched_process_")}, set(), "events that are not enabled")
            check({"sched:sched_process_exec", "sched:sched_process_fork"} < set(before), f"what the glob means: {sorted(before)}")
            equal({name: event.n_targets for name, event in before.items() if not name.startswith("sched:")},
                  {"call": 1, "args": 1, "return": 1, "hit": 1, "watched": 1, "calls": 1, "faults": 1, "profile": 0, "web": 1,
                   "of-jobs": 1, "of-box": 1, "of-unit": 1, "external:deploy": 0}, "the list")
            equal(before["web"].spec.event, "{task-clock,page-faults,context-switches}", "the group")
            check("fire_call" in before["args"].place and FIRE in before["args"].place, f"the place {before['args'].place}")
            with Subscriber(daemon, "--where", f"pid == {fire.pid}") as subscriber:
                for word in ("calls", "hits", "touches", "syscalls", "faults"):
                    fire.fire(word, 10)
                lines = subscriber.finish()
            names = ("call", "args", "return", "hit", "watched", "calls", "of-jobs", "of-box", "of-unit")
            equal({name: len(samples(lines, name)) for name in names},
                  {**dict.fromkeys(names, 10), "args": 5, "of-box": 0, "of-unit": 0, "watched": 10 if breakpoints_fire() else 0},
                  "samples of each")

            path = os.path.join(daemon.directory, "perfd.yaml")
            changed = configuration(tree, fire, None, jobs="web").replace("number < 5", "number < 7").replace(
                "name: return, args", "name: return, enabled: false, args").replace(
                    "      - { event: page-faults, name: faults, period: 1 }\n", "")
            with open(path, "w", encoding="utf-8") as f:
                f.write(changed)
            reply = client.request(reload=pb.Empty()).reloaded
            after = events_of(client)
            equal((reply.added + reply.changed + reply.kept, reply.removed), (len(after), 1), f"what the reload did: {reply}")
            equal(set(before) - set(after), {"faults"}, "events that are gone")
            kept = [name for name in after if name not in ("args", "return", "of-jobs")]
            equal({name: after[name].id for name in kept}, {name: before[name].id for name in kept}, "ids of what stayed")
            equal((after["args"].spec.filter, after["return"].enabled, after["of-jobs"].spec.target.cgroups),
                  ("number < 7", False, [tree.path("web")]), "what was changed")
            with Subscriber(daemon, "--where", f"pid == {fire.pid}") as subscriber:
                for word in ("calls", "syscalls"):
                    fire.fire(word, 10)
                lines = subscriber.finish()
            equal({name: len(samples(lines, name)) for name in ("call", "args", "return", "calls", "of-jobs")},
                  {"call": 10, "args": 7, "return": 0, "calls": 10, "of-jobs": 0}, "samples after the reload")
            with_it = state(daemon)
            with open(path, "w", encoding="utf-8") as f:
                f.write("strict: true\n" + changed.replace(tree.path("web"), tree.path("wbe")))
            no = refused(client, "unknown-cgroup", reload=pb.Empty())
            check("perfd.yaml:" in no.message and "web" in no.message, f"no place in {no.message!r}")
            unchanged(daemon, with_it, "what a refused reload left")
    equal(definitions(), [], "definitions in the end")


if __name__ == "__main__":
    perfd.main(globals())
