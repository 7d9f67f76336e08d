#!/usr/bin/python3
"""What is configured or kept and not there now keeps perfd from nothing, is said, and is opened when it comes. Needs root."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile

import perfd
from perfd import Daemon, add, check, equal, fail_to_start, refused, wait_until
from subscriber import pb
from test_control import documents, perfctl
from test_errors import NOBODY
from test_sources import FIRE, GETPPID, Fire, definitions

NOWHERE = 4194304  # PID_MAX_LIMIT: no task ever has it


def hierarchy():
    """The folder of the cgroup v2 hierarchy."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return next(line.split()[4] for line in f if " - cgroup2 " in line)


@contextlib.contextmanager
def folder_name():
    """The path and the name of a cgroup that is not there; it goes with all that was put into it."""
    name = f"perfd-pending-{os.getpid()}"
    path = os.path.join(hierarchy(), name)
    try:
        yield path, name
    finally:
        if os.path.isdir(path):
            wait_until(lambda: not open(f"{path}/cgroup.procs", encoding="ascii").read(), "the cgroup to be empty")
            os.rmdir(path)


def move(pid, path):
    with open(f"{path}/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(pid))


@contextlib.contextmanager
def inside(path, pid):
    """The process is in the cgroup meanwhile, and in the root of the hierarchy afterwards."""
    move(pid, path)
    try:
        yield
    finally:
        move(pid, hierarchy())


def states(daemon):
    """{name: (does it run, why not, what of its target is not there, is it configured)}"""
    return {row["name"]: (row["enabled"], row["waiting"], row["absent"], row["configured"]) for row in documents(daemon, "list")}


def reasons(daemon):
    return {name: why for name, (_, why, _, _) in states(daemon).items() if why}


def test_start():
    """With one of each kind missing perfd starts, the others run, and each says what it is pending for."""
    config = f"""version: 1
targets:
  gone: {{ pids: [{NOWHERE}] }}
  unit: {{ units: [perfd-no-such-unit.service] }}
  cgroup: {{ cgroup: perfd-no-such/cgroup }}
  container: {{ containers: [0123456789ab] }}
groups:
  host: {{ events: ['sched:sched_process_exec', 'nosuch:event', {{ event: 'uprobe:/nonexistent:main', name: probe }}] }}
  a: {{ target: gone, events: [{{ event: page-faults, name: of-pid }}] }}
  b: {{ target: unit, events: [{{ event: page-faults, name: of-unit }}] }}
  c: {{ target: cgroup, events: [{{ event: page-faults, name: of-cgroup }}] }}
  d: {{ target: container, events: [{{ event: page-faults, name: of-container }}] }}
"""
    with Daemon(config=config) as daemon:
        found = states(daemon)
        equal({name: state[0] for name, state in found.items()},
              {"sched:sched_process_exec": True, "nosuch:event": False, "probe": False, "of-pid": False, "of-unit": True,
               "of-cgroup": True, "of-container": True}, "what runs")
        check(all(state[3] for state in found.values()), "all of it is configured")
        for name, word in {"nosuch:event": "no tracepoint", "probe": "no file", "of-pid": f"no process {NOWHERE}"}.items():
            check(word in found[name][1], f"{name}: {word!r} is not in {found[name][1]!r}")
        for name, word in {"of-unit": "no unit perfd-no-such-unit.service", "of-cgroup": "no cgroup perfd-no-such/cgroup",
                           "of-container": "no container 0123456789ab"}.items():
            check(word in found[name][2], f"{name}: {word!r} is not in {found[name][2]!r}")
        status, = documents(daemon, "status")
        equal((status["events"], status["pending"]), (4, 3), "events, and those that are pending")
        said = daemon.stderr()
        for word in ("perfd.yaml:8:48: nosuch:event is pending", "perfd.yaml:8:73: probe is pending", "perfd.yaml:3:18: of-pid is pending",
                     "there is no unit perfd-no-such-unit.service now", "ready: 2 CPUs, 4 events, 3 pending"):
            check(word in said or "ready" in word and os.cpu_count() != 2, f"{word!r} is not in {said}")
        with daemon.client() as client:
            no = refused(client, "pending", subscribe=pb.SubscribeRequest(events=["probe"]))
            check("pending" in no.message, f"a subscriber hears {no.message!r}")


def test_comes():
    """What comes is opened, and delivers: a cgroup at once, a file by the timer; what goes is pending no more or again."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory, folder_name() as (path, name), Fire() as fire:
        program = os.path.join(directory, "program")
        config = f"""version: 1
targets: {{ cgroup: {{ cgroup: {name} }} }}
groups:
  a: {{ target: cgroup, events: [{{ event: 'raw_syscalls:sys_enter', filter: id == {GETPPID}, name: calls }}] }}
  b: {{ events: [{{ event: 'uprobe:{program}:fire_call', name: hits }}] }}
"""
        with Daemon(config=config) as daemon, daemon.client(stream=True) as stream:
            equal(list(reasons(daemon)), ["hits"], "what is pending")
            items = stream.subscribe(events=["calls"], queue_bytes=1 << 26)
            os.mkdir(path)
            wait_until(lambda: not states(daemon)["calls"][2], "the cgroup to be observed")
            with inside(path, fire.pid):
                fire.fire("syscalls", 1000)
            shutil.copy(FIRE, program)
            wait_until(lambda: not reasons(daemon), "the probe to be there")
            check("hits is no longer pending" in daemon.stderr(), daemon.stderr())
            os.rmdir(path)
            wait_until(lambda: states(daemon)["calls"][2], "the cgroup to be missed")
            stream.stop()
            equal(len(list(items)), 1000, "items of the cgroup")
            check(all(row["balanced"] and row["exact"] for row in stream.end["ledger"] if row["kind"] == "event"),
                  stream.end["ledger"])


def test_anew_under_its_name():
    """A service that is started anew has a new cgroup: an event of a client that names the path goes on with it."""
    with folder_name() as (path, name), Fire() as fire, Daemon() as daemon, daemon.client() as client:
        refused(client, "unknown-cgroup", add=pb.AddRequest(events=[pb.EventSpec(event="page-faults",
                                                                                 target=pb.Target(cgroups=[name]))]))
        os.mkdir(path)
        add(client, {"event": "raw_syscalls:sys_enter", "filter": f"id == {GETPPID}", "name": "calls",
                     "target": pb.Target(cgroups=[name])})
        os.rmdir(path)
        wait_until(lambda: states(daemon)["calls"][2] == f"there is no cgroup {name} now", "the cgroup to be missed")
        os.mkdir(path)
        wait_until(lambda: not states(daemon)["calls"][2], "the new cgroup to be observed")
        with inside(path, fire.pid):
            fire.fire("syscalls", 500)
        rows = daemon.ledger("calls").events
        equal(sum(row.occurred for row in rows), 500, "occurrences in the new cgroup")


def test_kept():
    """A kept event whose file is gone at a start is pending, and opened when the file is there again; nobody has to reload."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        program = os.path.join(directory, "program")
        shutil.copy(FIRE, program)
        with Daemon(directory=directory) as daemon:
            perfctl(daemon, "add", "--keep", f"uprobe:{program}:fire_call", "--name", "hits")
        os.unlink(program)
        with Daemon(directory=directory) as daemon:
            found = states(daemon)["hits"]
            check(not found[0] and "no file" in found[1] and not found[3], found)
            shutil.copy(FIRE, program)
            wait_until(lambda: states(daemon)["hits"][0], "the probe to be there")
        with Daemon(directory=directory) as daemon:
            check(states(daemon)["hits"][0], "it is still kept")


def test_kept_and_then_configured():
    """At a restart the configured one of the name runs, or is pending; the kept one is gone, which the log says, for good."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        with Daemon(directory=directory) as daemon:
            for name in "taken", "absent", "stays":
                perfctl(daemon, "add", "--keep", "page-faults", "--name", name)
        config = "version: 1\ngroups: {a: {events: [{event: cpu-clock, period: 1000000, name: taken}, {event: 'nosuch:event', name: absent}]}}\n"
        with Daemon(directory=directory, config=config) as daemon, daemon.client() as client:
            listed = {e.spec.name: (e.spec.event, e.configured, e.persistent, bool(e.pending)) for e in client.request(list=pb.ListRequest()).list.events}
            equal(listed, {"taken": ("cpu-clock", True, False, False), "absent": ("nosuch:event", True, False, True),
                           "stays": ("page-faults", False, True, False)}, "the events")
            equal([daemon.stderr().count(f"the persistent event {name} is dropped") for name in ("taken", "absent", "stays")], [1, 1, 0], "the log")
        with Daemon(directory=directory, config="version: 1\n") as daemon:
            equal(set(states(daemon)), {"stays"}, "what is still kept")


def test_strict():
    """`strict` lets what is not there refuse the start and a reload, with its place; a mistake does so always."""
    fail_to_start(r"perfd.yaml:3:23: .*no tracepoint nosuch:event",
                  config="version: 1\nstrict: true\ngroups: {a: {events: ['nosuch:event']}}\n")
    fail_to_start(r"perfd.yaml:2:\d+: .*", config="version: 1\ngroups: {a: {events: [{event: 'sched:sched_switch', filter: 'no == 1'}]}}\n")
    with Daemon(config="version: 1\nstrict: true\n") as daemon, daemon.client() as client:
        with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="utf-8") as f:
            f.write("version: 1\nstrict: true\ngroups: {a: {events: ['sched:sched_switch', 'nosuch:event']}}\n")
        refused(client, "unknown-event", reload=pb.Empty())
        equal(states(daemon), {}, "what it left")
        with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="utf-8") as f:
            f.write("version: 1\ngroups: {a: {events: ['sched:sched_switch', 'nosuch:event']}}\n")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: len(states(daemon)) == 2, "the reload")
        equal(list(reasons(daemon)), ["nosuch:event"], "what is pending")
        done = perfctl(daemon, "reload")
        check("pending 1" in done.stdout and "1 event cannot be opened now" in done.stderr, (done.stdout, done.stderr))


def test_list_of_mistakes():
    """What a refusal has no room for is counted; no line is cut."""
    with Daemon(config="version: 1\n") as daemon, daemon.client() as client:
        path = os.path.join(daemon.directory, "perfd.yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write("version: 1\n" + "".join(f"no-such-key-{i}: 1\n" for i in range(100)))
        lines = refused(client, "bad-config", reload=pb.Empty()).message.splitlines()
        for i, line in enumerate(lines[:-1]):
            equal(line, f"{path}:{i + 2}:1: unknown key 'no-such-key-{i}'", "a whole line")
        equal(lines[-1], f"and {101 - len(lines)} more errors: `perfctl validate` lists all", "the last line")


def test_validate():
    """What a start would see: drop-ins, in their order, with their places; what would be pending is no mistake."""
    with Daemon(config="version: 1\n") as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, drop_ins = f"{folder}/perfd.yaml", f"{folder}/perfd.d"

        def put(name, text):
            with open(f"{drop_ins}/{name}" if name else path, "w", encoding="utf-8") as f:
                f.write(text)

        def said(*options, status=0):
            return perfctl(daemon, "validate", *options, path, status=status).stdout.splitlines()

        put("", "version: 1\ngroups: {a: {events: ['sched:sched_switch']}}\n")
        equal(said(), [], "a configuration without drop-ins")
        os.mkdir(drop_ins)
        put("20-b.yaml", "groups:\n  b: {events: ['nosuch:event']}\n")
        put("10-a.yaml", "groups: {c: {target: job, events: [page-faults]}}\n")
        put("90.yaml", "targets: {job: {cgroups: [perfd-test/absent]}}\n")
        put("no.yml", "nonsense: true\n")
        lines = said()
        for line, words in zip(lines, (f"{drop_ins}/no.yml: warning: ", f"{drop_ins}/20-b.yaml:2:16: note: this kernel has no tracepoint nosuch:event",
                                       f"{drop_ins}/90.yaml:1:27: note: there is no cgroup 'perfd-test/absent'")):
            check(line.startswith(words), f"no {words!r} in {line!r}")
        equal(len(lines), 3, f"lines: {lines}")
        rows = documents(daemon, "validate", path)
        equal([(row["kind"], row["reason"]) for row in rows], [("warning", ""), ("note", "unknown-event"), ("note", "unknown-cgroup")], "rows")
        equal([line.replace("note: ", "") for line in lines], said("--strict", status=1), "what is strict")
        equal(said("--no-drop-ins"), [], "the main file alone")
        status, started = config_said(path)
        equal((status, len(started)), (0, 1), f"perfd --check: {started}")
        put("20-b.yaml", "groups:\n  b: {events: ['sched:sched_wakeup'], intervall: 1s, events: []}\n")
        status, started = config_said(path)
        equal(status, 1, f"perfd --check: {started}")
        equal([line for line in said(status=1) if "no.yml" not in line], [line for line in started if "no.yml" not in line], "mistakes")
        put("20-b.yaml", "strict: true\ngroups: {b: {events: ['nosuch:event']}}\n")
        check(any(line.startswith(f"{drop_ins}/20-b.yaml:2:") and "note" not in line for line in said(status=1)), "strict")
        put("20-b.yaml", "#" * 600_000 + "\n")
        put("30.yaml", "#" * 600_000 + "\n")
        check("perfd --check" in perfctl(daemon, "validate", path, status=1).stderr, "more than a request can have")
        os.rename(drop_ins, f"{folder}/elsewhere")
        put("", "version: 1\n")
        with open(drop_ins, "w", encoding="utf-8"):
            check(drop_ins in perfctl(daemon, "validate", path, status=1).stderr, "what is no folder")


def config_said(path):
    """The status of perfd --check, and its lines."""
    ran = subprocess.run([perfd.PERFD, "--check", "--config", path], capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
    return ran.returncode, ran.stderr.splitlines()


def test_names():
    """--check --names says what this kernel does not have, of all kinds, and that it is no mistake; nobody has to be root for it."""
    def said(config, *arguments, user=(), status=0):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            path = os.path.join(directory, "perfd.yaml")
            os.mkdir(os.path.join(directory, "perfd.d"))
            with open(os.path.join(directory, "perfd.d", "a.yaml"), "w", encoding="utf-8") as f:
                f.write(config)
            with open(path, "w", encoding="ascii") as f:
                f.write("version: 1\n")
            done = subprocess.run([*user, perfd.PERFD, "--check", *arguments, "--config", path], capture_output=True, text=True,
                                  timeout=perfd.PATIENCE, check=False)
            equal((done.returncode, done.stdout), (status, ""), f"the status of {arguments}: {done.stderr}")
            return [line.replace(os.path.join(directory, "perfd.d", "a.yaml"), "a.yaml") for line in done.stderr.splitlines()]

    program = perfd.private_copy(perfd.WORKLOAD)
    events = {"sched:sched_switch": "", "sched:sched_*": "", "page-faults": "", "external:mine": "",
              "nosuch:event": "no tracepoint nosuch:event", "nosuch:*": "nosuch", "nosuch/event=1/": "no PMU", "uprobe:/nosuch:main": "no file",
              f"uprobe:{program}:nosuch": "no function", f"usdt:{program}:some:probe": "static probe",
              "kprobe:no_such_function": "no_such_function"}
    config = "groups:\n  a:\n    events:\n" + "".join(f"    - '{event}'\n" for event in events)
    equal(said(config), [], "without --names")
    lines = said(config, "--names")
    equal(definitions(program), [], "what it left")
    absent = [(4 + i, words) for i, words in enumerate(events.values()) if words]
    equal(len(lines), len(absent), f"lines: {lines}")
    for line, (number, words) in zip(lines, absent):
        check(line.startswith(f"a.yaml:{number}:7: note: ") and words in line, f"no {words!r} of line {number} in {line!r}")
    strict = said("strict: true\n" + config, "--names", status=1)
    equal([line.split(": ", 1)[1] for line in strict], [line.split(": note: ", 1)[1] for line in lines], "of a strict configuration")
    hidden = said(f"groups: {{ a: {{ events: ['uprobe:{program}:main'] }} }}\n", "--names")
    check(hidden[0].startswith("a.yaml:1:25: note: ") and "is found by root, and not by the installed service, which does not see /tmp" in hidden[0],
          f"what root alone sees: {hidden}")
    for line in said(config, "--names", user=NOBODY):
        check(re.match(r"a\.yaml:\d+:7: note: ", line), f"as somebody else: {line!r}")
    check("not an address of code" in said("groups: { a: { events: ['uprobe:/bin/true:0x7fffffff0000'] } }\n", "--names", status=1)[0], "a mistake")
    done = subprocess.run([perfd.PERFD, "--names"], capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
    equal((done.returncode, done.stderr), (2, "perfd: --names needs --check, and excludes --any-host\n"), "--names alone")


def test_filters_are_checked():
    """Without a start: what is wrong for every event by --check alone, and what the kernel refuses by --names; as validate does."""
    always = {"prev_pid = 1": "found '=', expected '=='", "prev_pid == ": "something is missing at its end",
              "(prev_pid == 1": "found the end, expected ')'", "prev_pid == 1)": "found ')' without '('",
              'prev_comm == "x': "has no end"}
    of_kernel = {'prev_pid == "x"': "the kernel refuses the filter", "nofield == 1": "Field not found",
                 "prev_pid == 99999999999": "which has 32 bits", 'prev_comm == "abcdefghijklmnopqrst"': "names of threads"}
    right = ['prev_comm == "a = (b"', "prev_pid == 1 && (next_pid >= 2 || next_pid != 7)", 'prev_comm ~ "a*"']
    with tempfile.TemporaryDirectory() as directory, Daemon("version: 1\n") as daemon:
        path = os.path.join(directory, "perfd.yaml")

        def check_one(event, text, words, *arguments):
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"version: 1\nstate: {directory}/events\ngroups:\n  a:\n    events:\n      - event: '{event}'\n        filter: '{text}'\n")
            done = subprocess.run([perfd.PERFD, "--check", *arguments, "--config", path], capture_output=True, text=True,
                                  timeout=perfd.PATIENCE, check=False)
            said = done.stderr.splitlines()
            equal((done.returncode, len(said)), (1, 1) if words else (0, 0), f"{text} {arguments}: {done.stderr}")
            check(not words or (words in said[0] and re.match(re.escape(path) + r":7:1\d: (?!note)", said[0])), f"{text}: {said}")

        instances = sorted(os.listdir(f"{perfd.TRACING}/instances"))
        for text, words in always.items():
            check_one("sched:sched_switch", text, words)
            check_one("sched:sched_switch", text, words, "--any-host")
            check_one("kprobe:vfs_read", text, words)
        for text, words in {**always, **of_kernel}.items():
            check_one("sched:sched_switch", text, words, "--names")
            check_one("sched:sched_swi*", text, words, "--names")
            perfctl(daemon, "validate", path, status=1)
        for text in right:
            for arguments in [], ["--names"]:
                check_one("sched:sched_switch", text, None, *arguments)
            perfctl(daemon, "validate", path)
        equal(sorted(os.listdir(f"{perfd.TRACING}/instances")), instances, "what it left")
        refused = perfctl(daemon, "add", "sched:sched_switch", "--filter", "prev_pid = 1", status=1).stderr
        check("found '=', expected '=='" in refused, refused)


def test_apply():
    """It is all or nothing, unless its client allows that events are pending; another one ends what was pending."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f, Daemon() as daemon:
        f.write("version: 1\ngroups: {a: {events: ['sched:sched_switch', 'nosuch:event']}}\n")
        f.flush()
        check("no tracepoint" in perfctl(daemon, "apply", f.name, status=1).stderr, "an apply")
        equal(states(daemon), {}, "what it left")
        check("pending 1" in perfctl(daemon, "apply", "--allow-pending", f.name).stdout, "an apply that allows it")
        equal({name: state[0] for name, state in states(daemon).items()}, {"sched:sched_switch": True, "nosuch:event": False},
              "what runs")
        perfctl(daemon, "remove", "nosuch:event")
        equal(list(states(daemon)), ["sched:sched_switch"], "what is left of it")
        perfctl(daemon, "apply", "--allow-pending", f.name)
        f.seek(0)
        f.truncate()
        f.write("version: 1\n")
        f.flush()
        perfctl(daemon, "apply", f.name)
        equal(states(daemon), {}, "what is left of all")


def test_plan():
    """With --allow-pending it says what an apply with it does, events that run and cannot be found any more too; nothing is left."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        program, path = f"{directory}/program", f"{directory}/new.yaml"
        shutil.copy(FIRE, program)
        kept = f"{{event: 'uprobe:{program}:fire_call', name: hits}}"
        with Daemon(config=f"version: 1\ngroups: {{a: {{events: [{kept}, {{event: cpu-clock, period: 1000000, name: cc}}]}}}}\n") as daemon:
            os.unlink(program)
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"version: 1\ntargets: {{gone: {{cgroup: perfd-test/absent}}, none: {{pids: [{NOWHERE}]}}}}\ngroups:\n"
                        f"  a: {{events: [{kept}, 'sched:sched_switch', 'nosuch:*']}}\n"
                        "  b: {target: none, events: [{event: cpu-clock, period: 1000000, name: cc}]}\n"
                        "  c: {target: gone, events: [page-faults]}\n  d: {events: ['kprobe:no_such_function']}\n")
            before = states(daemon)
            check("nothing" not in perfctl(daemon, "plan", path, status=1).stdout, "a plan that is refused")
            rows = documents(daemon, "plan", "--allow-pending", path)
            equal(states(daemon), before, "what a plan left")
            planned = {row["name"]: row["change"] for row in rows if row["change"] != "removed"}
            equal(planned, {"hits": "kept", "sched:sched_switch": "added", "nosuch:*": "pending", "cc": "pending",
                            "page-faults": "added", "kprobe:no_such_function": "pending"}, "the plan")
            equal([row["name"] for row in rows if row["change"] == "removed"], ["cc"], "what would be removed")
            for row in rows:
                equal(bool(row["why"] and row["reason"]), row["change"] == "pending", f"why {row}")
                check(row["change"] != "pending" or row["why"].startswith(f"{path}:"), f"the place of {row}")
            text = perfctl(daemon, "plan", "--allow-pending", path).stdout
            check("pending\tnosuch:*\t\tnosuch:*\ta\t" in text, text)
            perfctl(daemon, "apply", "--allow-pending", path)
            after = states(daemon)
            equal({name: after[name][0] for name in after}, {name: change != "pending" for name, change in planned.items()}, "the apply")
            equal({name for name in after if not after[name][0]}, {row["name"] for row in rows if row["change"] == "pending"}, "pending")
        with Daemon(config="version: 1\n") as daemon, daemon.client_of(65534) as nobody:
            many = ", ".join(f"'nosuch:event{i}'" for i in range(200))
            plan = nobody.request(plan=pb.PlanRequest(yaml=f"version: 1\ngroups: {{a: {{events: [{many}]}}}}\n", may_wait=True)).plan
            equal((len(plan.pending), len(plan.added)), (200, 0), "of many")
            refused(nobody, "bad-filter", plan=pb.PlanRequest(
                yaml="version: 1\ngroups: {a: {events: [{event: 'sched:sched_switch', filter: 'no == 1'}]}}\n", may_wait=True))


def test_unchanged_stays():
    """A reload leaves a probe alone that runs and whose file is gone, and says so; a changed one becomes pending."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        program = os.path.join(directory, "program")
        shutil.copy(FIRE, program)
        config = f"version: 1\ngroups: {{a: {{events: [{{event: 'uprobe:{program}:fire_call', name: hits}}]}}}}\n"
        with Daemon(config=config) as daemon:
            os.unlink(program)
            perfctl(daemon, "reload")
            check(states(daemon)["hits"][0], "it runs on")
            check("hits remains as it is" in daemon.stderr(), daemon.stderr())
            with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="utf-8") as f:
                f.write(config.replace("name: hits", "name: hits, include-self: true"))
            perfctl(daemon, "reload")
            check(not states(daemon)["hits"][0], "what was changed is pending")


if __name__ == "__main__":
    perfd.main(globals())
