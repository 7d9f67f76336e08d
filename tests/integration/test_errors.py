#!/usr/bin/python3
"""Every no of perfd: for which reason, what it says, and that nothing has changed because of what was refused."""
import contextlib
import os
import re
import subprocess

import perfd
from perfd import PERFD, Client, Daemon, Refused, Skip, TRACING, check, equal, fail_to_start, pb, refused, wait_until

SWITCH, WAKEUP = "sched:sched_switch", "sched:sched_wakeup"
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
PERFMON = (*NOBODY, "--inh-caps", "+perfmon", "--ambient-caps", "+perfmon")


def add(**spec):
    return {"add": pb.AddRequest(events=[pb.EventSpec(**{"event": WAKEUP, **spec})])}


def on(**target):
    return add(target=pb.Target(**target))


def select(*names):
    return pb.SelectRequest(names=names)


def subscribe(**subscription):
    return {"subscribe": pb.SubscribeRequest(**subscription)}


def read(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as f:
        return f.read()
    return None


def probes(pid):
    """Definitions in tracefs that the perfd of this pid made: the last 22 bits of their group."""
    lines = [line for kind in ("kprobe", "uprobe") for line in (read(f"{TRACING}/{kind}_events") or "").splitlines()]
    groups = [re.search(r":perfd_([0-9a-f]{16})/", line) for line in lines]
    return [line for line, group in zip(lines, groups) if group and int(group[1], 16) & (1 << 22) - 1 == pid]


def state(daemon):
    """All that a refused change could have left: events, fds, what the kernel holds for us in tracefs."""
    perfd.wait_until(lambda: daemon.status().n_closing == 0, "what traces nothing any more to be closed")
    events = [(e.id, e.spec.SerializeToString(deterministic=True), e.enabled, e.n_fds)
              for e in daemon.monitor.request(list=pb.ListRequest()).list.events]
    return {"events": events, "fds": daemon.fds(), "perf fds": daemon.status().n_fds,
            "subscribers": daemon.status().n_subscribers, "probes": probes(daemon.pid),
            "instances": [i for i in os.listdir(f"{TRACING}/instances") if i == f"perfd-{daemon.pid}"]}


def unchanged(daemon, before, text):
    """That the state is still `before`. What was open is closed by a thread of its own: a moment later."""
    def differences():
        after = state(daemon)
        return {key: (before[key], after[key]) for key in before if before[key] != after[key]}

    try:
        wait_until(lambda: not differences(), "")
    except AssertionError:
        raise AssertionError(f"{text}: {differences()}") from None


@contextlib.contextmanager
def running(config=None):
    """A daemon with one event that nothing may touch, and a client of it."""
    with Daemon(config=config) as daemon, daemon.client() as client:
        perfd.add(client, {"event": SWITCH, "filter": "prev_pid == 1"})
        before = state(daemon)
        yield daemon, client
        unchanged(daemon, before, "what a refused request left")


def refuse_all(cases, stream=False):
    """Rows of reason, status, words (re) of the message, position or None, request."""
    with running() as (daemon, client), contextlib.ExitStack() as stack:
        if stream:
            client = stack.enter_context(daemon.client(stream=True))
        before = state(daemon)
        for reason, status, words, position, body in cases:
            response = refused(client, reason, f"STATUS_{status}", **body)
            check(re.search(words, response.message), f"no {words!r} in {response.message!r}")
            if position is not None:
                equal(response.position, position, f"the position of {response.message!r}")
            unchanged(daemon, before, f"what {body} left")
        stack.close()


def kernel_complaint(event, text):
    """What the kernel itself says of a filter, and the column of its caret; of a field or value, where that begins."""
    own = f"{TRACING}/instances/perfd-test-{os.getpid()}"
    os.mkdir(own)
    try:
        path = f"{own}/events/{event.replace(':', '/')}/filter"
        try:
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
        except OSError:
            lines = read(path).split("\n")
            said = next(line for line in lines if line.startswith("parse_error: "))
            caret = next(line for line in lines if line.strip() == "^")
            at = caret.index("^") + 1
            mistaken = "bogus" if "Field not found" in said else "3" if "Expecting" in said else None
            return said.removeprefix("parse_error: "), text.rindex(mistaken, 0, at) + 1 if mistaken else at
        raise AssertionError(f"the kernel takes {text!r}")
    finally:
        os.rmdir(own)


# ---- requests --------------------------------------------------------------------------------------------------------


def test_unknown_events():
    refuse_all([
        ("unknown-event", "NOT_FOUND", f"sched:sched_swich.*{SWITCH}", None, add(event="sched:sched_swich")),
        ("unknown-event", "NOT_FOUND", f"shced:sched_switch.*{SWITCH}", None, add(event="shced:sched_switch")),
        ("unknown-event", "NOT_FOUND", r"nonsense:\*", None, add(event="nonsense:*")),
        ("unknown-event", "NOT_FOUND", "cpu-clok.*'cpu-clock'", None, add(event="cpu-clok")),
        ("unknown-event", "NOT_FOUND", "sched:sched_switch", None, add(event="sched_switch")),
        ("unsupported-event", "UNSUPPORTED", "bpf-output", None, add(event="bpf-output")),
        ("bad-event", "INVALID", "no event is named", None, add(event="")),
        ("bad-event", "INVALID", "begin with a dot", 7, add(event="sched:../../enable")),
        ("unknown-event", "NOT_FOUND", SWITCH, None, {"remove": select("sched:sched_swich")}),
        ("unknown-event", "NOT_FOUND", r"nope\*", None, {"disable": select("nope*")}),
        ("unknown-event", "NOT_FOUND", "#99", None, {"enable": select("#99")}),
        ("unknown-event", "NOT_FOUND", "nope", None, {"remove": select(SWITCH, "nope")}),
        ("bad-request", "INVALID", "no event is named", None, {"remove": select()}),
        ("unknown-event", "NOT_FOUND", "nope", None, {"set_filter": pb.SetFilterRequest(name="nope", filter="a == 1")}),
        ("unknown-event", "NOT_FOUND", "sched:sched_swich", None, subscribe(events=["sched:sched_swich"])),
        ("unknown-event", "NOT_FOUND", r"nope\*", None, subscribe(events=["nope*"])),
    ])


FORGED = "pid == 1\nperfd: ready: 0 CPUs, 0 events\x1b[2J\u202e"  # a second line for the log, and orders to a terminal


def test_one_mistake_is_one_line():
    """perfctl asks again for a name that is unknown, in each of its groups; the log has it once for each client."""
    with running() as (daemon, client):
        perfctl = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")

        def lines(word):
            return [line for line in daemon.stderr().splitlines() if word in line]

        for n in 1, 2:
            for event in "nosuch:event", "nosuch_word":
                done = subprocess.run([perfctl, "--socket", daemon.control, "add", event], stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=perfd.PATIENCE, check=False)
                equal((done.returncode, len(lines(event))), (1, n), f"status and lines of {event}: {daemon.stderr()}")
        for event in "nosuch:one", "nosuch:one", "nosuch:two", "nosuch:one":
            refused(client, "unknown-event", **add(event=event))
        equal([len(lines(event)) for event in ("nosuch:one", "nosuch:two")], [2, 1], f"of one client: {daemon.stderr()}")


def test_texts():
    """No text of a client is taken that does not print, and none of it reaches the log or a message as it was sent."""
    def is_plain(text):
        return text.isprintable() and "\x1b" not in text and "\u202e" not in text

    unseen = ["\x1b[2J", "\x7f", "\x9b", "\u200f", "\u2028", "\u202e", "\u2069", "\ufeff",
              "\u00ad", "\u200b", "\u2060", "\u3164", "\ufe0f", "\U000e0041"]
    filters = [f"pid == 1{c}" for c in unseen] + [FORGED]
    refuse_all([("bad-text", "INVALID", "^filter: found 'pid == 1", None, add(filter=text)) for text in filters] +
               [("bad-text", "INVALID", "^name: ", 2, add(name=f"a{c}b")) for c in [*unseen, "\n"]] +
               [("bad-text", "INVALID", "^names: ", 2, {"remove": select(SWITCH, "a\nb")}),
                ("bad-text", "INVALID", "^units: ", 2, on(units=["a\nb.service"])),
                ("bad-text", "INVALID", "^args: ", 5, add(event="kprobe:vfs_read", args="a=%d\x1b")),
                ("bad-text", "INVALID", "^value: ", 1, add(attr=[pb.AttrSetting(name="a", value="\n")])),
                ("bad-text", "INVALID", "^path: ", 2, {"plan": pb.PlanRequest(yaml="version: 1", path="a\nb")}),
                ("bad-text", "INVALID", "^event: ", 2, {"emit": pb.EmitRequest(samples=[pb.ExternalSample(event="a\nb", time=1)])}),
                ("bad-text", "INVALID", "^glob: found 'aaa.*longer", 4096, {"list": pb.ListRequest(glob="a" * 5000)}),
                ("bad-text", "INVALID", "^where: ", 8, subscribe(events=[SWITCH], where="cpu == \u202e1"))])
    with running() as (daemon, client):
        message = refused(client, "bad-config", plan=pb.PlanRequest(yaml="a: 1\nb: 2", path="it/is")).message
        check(all(line.startswith("it/is:") and is_plain(line) for line in message.split("\n")), repr(message))
        for text in filters:
            refused(client, "bad-text", set_filter=pb.SetFilterRequest(name=SWITCH, filter=text))
        refused(client, "bad-text", hello=pb.Hello(protocol=1, program="x\nperfd: no\u202e"))
        check(all(is_plain(line) and line.startswith("perfd: ") for line in daemon.stderr().splitlines()), daemon.stderr())
        check("perfd: ready: 0" not in daemon.stderr().splitlines(), daemon.stderr())


def test_folded():
    """A filter over several lines is one line, as in a configuration."""
    with running() as (_, client):
        perfd.add(client, {"event": WAKEUP, "filter": "\npid == 1 ||\r\npid == 2\n"})
        equal(client.request(list=pb.ListRequest(glob=WAKEUP)).list.events[0].spec.filter, "pid == 1 || pid == 2", "the filter")
        client.request(set_filter=pb.SetFilterRequest(name=WAKEUP, filter="pid ==\n3"))
        equal(client.request(list=pb.ListRequest(glob=WAKEUP)).list.events[0].spec.filter, "pid == 3", "the filter")
        client.request(remove=select(WAKEUP))


def test_bad_filters():
    """In the words of the kernel, and with its position."""
    texts = ["bogus == 1", "pid == 1 && bogus == 1", "pid ==", "(pid == 1", "pid == 1)", "comm > 3", "pid",
             'comm == "x', "pid == 1 prio == 2", "pid == 1) || (pid == 2"]
    said = {text: kernel_complaint(WAKEUP, text) for text in texts}
    refuse_all([("bad-filter", "INVALID", re.escape(said[text][0]), said[text][1], add(filter=text, **more))
                for text in texts for more in ({}, {"include_self": True}, {"target": pb.Target(pids=[os.getpid()])})])
    said = {text: kernel_complaint(SWITCH, text) for text in ("bogus == 1", "prev_pid ==")}
    refuse_all([("bad-filter", "INVALID", re.escape(complaint), position,
                 {"set_filter": pb.SetFilterRequest(name=SWITCH, filter=text)})
                for text, (complaint, position) in said.items()] +
               [("bad-filter", "INVALID", "Field not", text.index("bogus") + 1, add(filter=text)) for text in ("bogus==1", "pid==1&&bogus>=1")])
    refuse_all([
        ("bad-filter", "INVALID", "filter", None, add(filter="pid == 1" + " || pid == 1" * 1000)),
        ("bad-filter", "INVALID", "filter", 12, add(filter="pid == 1 &&")),
        ("bad-filter", "INVALID", "filter", 12, add(filter="pid == 1 || ")),
        ("bad-filter", "INVALID", "': Expecting string field$", 9, add(filter="comm == 5")),
        ("bad-filter", "INVALID", "': Expecting string field$", 9, add(filter="comm == 57 && pid == 1")),
        ("bad-filter", "INVALID", "filter", None, add(filter=" ")),
        ("bad-event", "INVALID", "only events with fields.*--where", None, add(event="cpu-clock", filter="cpu == 1")),
    ])


def test_bad_expressions():
    """Whose language is ours, and so the position is that of the first byte that cannot be right."""
    refuse_all([
        ("bad-expression", "INVALID", "expression ends", 12, subscribe(where="prev_pid ==")),
        ("bad-expression", "INVALID", "==", 5, subscribe(where="pid = 1")),
        ("bad-expression", "INVALID", "quotes", 14, subscribe(where="prev_comm == 3")),
        ("bad-expression", "INVALID", "unterminated", 14, subscribe(where='prev_comm == "x')),
        ("bad-expression", "INVALID", "chain", 9, subscribe(where="1 < cpu < 3")),
        ("unknown-field", "NOT_FOUND", "'nosuch'.*prev_comm.*next_prio", 18,
         subscribe(where="prev_pid == 1 && nosuch == 2")),
        ("unknown-field", "NOT_FOUND", "a field nosuch", None, subscribe(fields=["prev_pid", "ip", "nosuch"])),
        ("bad-request", "INVALID", "order 7", None, subscribe(order=7)),
        ("bad-request", "INVALID", "payload 9", None, subscribe(payload=9)),
        ("bad-request", "INVALID", "overflow 9", None, subscribe(overflow=9)),
        ("bad-request", "INVALID", "records", None, subscribe(records=1 << 20)),
    ], stream=True)


def test_bad_specs():
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    absent = int(re.split("[-,]", read("/sys/devices/system/cpu/possible"))[-1]) + 1
    rate = int(read("/proc/sys/kernel/perf_event_max_sample_rate"))
    clock = {"event": "cpu-clock"}
    refuse_all([
        ("bad-event", "INVALID", r"period.*frequency", None, add(**clock, period=1000, frequency=99)),
        ("bad-event", "INVALID", "period", None, add(**clock, period=1 << 63)),
        ("bad-event", "INVALID", f"perf_event_max_sample_rate.*{rate}", None, add(**clock, frequency=rate + 1)),
        ("bad-request", "INVALID", "callchain 9", None, add(callchain=9)),
        ("gone", "NOT_FOUND", f"{gone}", None, on(pids=[gone])),
        ("gone", "NOT_FOUND", WAKEUP, None, on(tids=[gone])),
        ("bad-target", "INVALID", "0 is not a pid", None, on(pids=[0])),
        ("bad-target", "INVALID", "not a pid", None, on(tids=[1 << 31])),
        ("bad-target", "INVALID", f"cannot have CPU {absent}", 1, on(cpus=f"{absent}")),
        ("bad-target", "INVALID", f"cannot have CPU {absent}", 3, on(cpus=f"0,{absent}")),
        ("bad-target", "INVALID", f"cannot have CPU {absent}", 1, on(cpus="0-4096")),
        ("bad-target", "INVALID", "4194304", None, on(pids=[4194305])),
        ("bad-event", "INVALID", "frequency.*1000000", None, add(event="cpu-clock", frequency=1000001)),
        ("bad-event", "INVALID", "interval.*1h", None, add(event="cpu-clock", interval=3600 * 10**9 + 1)),
        ("bad-event", "INVALID", "maxactive.*4096", None, add(event="kretprobe:vfs_read", maxactive=4097)),
        ("bad-target", "INVALID", "0-3,8", 3, on(cpus="0,x")),
        ("bad-target", "INVALID", "0-3,8", 1, on(cpus="99999999999")),
        ("bad-target", "NOT_FOUND", "nosuch", None, on(name="nosuch")),
        ("bad-target", "INVALID", "name", None, on(name="host", cpus="0")),
        ("exists", "EXISTS", SWITCH, None, add(event=SWITCH)),
        ("exists", "EXISTS", SWITCH, None, add(name=SWITCH)),
        ("exists", "EXISTS", SWITCH, None, add(event="sched:sched_*")),
        ("exists", "EXISTS", "twice", None, {"add": pb.AddRequest(events=[pb.EventSpec(event=WAKEUP)] * 2)}),
        ("unknown-event", "NOT_FOUND", "sched:nope", None,
         {"add": pb.AddRequest(events=[pb.EventSpec(event=WAKEUP), pb.EventSpec(event="sched:nope")])}),
        ("bad-event", "INVALID", "several", None, add(event="sched:*", name="x")),
        ("bad-name", "INVALID", "a b", 2, add(name="a b")),
        ("bad-name", "INVALID", "#1", 1, add(name="#1")),
        ("bad-request", "INVALID", "no event is named", None, {"add": pb.AddRequest()}),
        ("bad-request", "INVALID", "only valid on a stream", None, {"stop": pb.Empty()}),
        ("version", "VERSION", "protocol 1.*2", None, {"hello": pb.Hello(protocol=2)}),
        ("bad-config", "INVALID", "without a configuration.*--config", None, {"reload": pb.Empty()}),
    ])


def test_read_only():
    """The stream socket changes nothing."""
    refuse_all([("read-only", "DENIED", "control socket", None, body) for body in (
        add(), {"remove": select(SWITCH)}, {"enable": select(SWITCH)}, {"disable": select(SWITCH)},
        {"set_filter": pb.SetFilterRequest(name=SWITCH)}, {"reload": pb.Empty()})], stream=True)
    with Daemon() as daemon:
        equal([daemon.client(stream).hello.may_change for stream in (False, True)], [True, False], "may_change")


def test_too_few_fds_for_an_event():
    """What is needed, what is left, what to do; and what does fit still fits."""
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Daemon(prefix=("prlimit", "--nofile=100:100")))
        client = stack.enter_context(daemon.client())
        with perfd.Workload("syscalls", 1, cpus=[0]) as load:
            n_cpus = len(perfd.online_cpus())
            before = state(daemon)
            children = [subprocess.Popen(["sleep", "1000"]) for _ in range(100 // n_cpus)]
            try:
                response = refused(client, "too-many-fds", "STATUS_EXHAUSTED", **on(pids=[c.pid for c in children]))
            finally:
                for child in children:
                    child.kill()
                    child.wait()
            need, left = re.search(r"needs (\d+) fds.*, and (\d+) of", response.message).groups()
            equal(int(need), len(children) * n_cpus, "the fds needed")
            check(0 < int(left) < 100, f"{left} fds are left")
            check("of perfd's 100 are left" in response.message and "LimitNOFILE" in response.message, response.message)
            unchanged(daemon, before, "what a refused request left")
            client.request(**on(pids=load.pids))


# ---- configuration ---------------------------------------------------------------------------------------------------

MISTAKES = """version: 1
connections: { max: x }
nonsense: 1
rings: { size: 3MiB }
groups:
  a:
    target: nosuch
    events:
      - event: cpu-clock
        period: 1
        frequency: 2
"""
PLACES = [(2, 21, "connections.max"), (3, 1, "nonsense"), (4, 16, "power of two"), (7, 13, "nosuch"),
          (11, 20, "period")]


def test_mistakes_in_the_configuration():
    """All of them at once, each with its place; whether it is started or only checked."""
    for command in ([], ["--check"]):
        with perfd.tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(MISTAKES)
            f.flush()
            done = subprocess.run([perfd.PERFD, "--config", f.name, *command], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=perfd.PATIENCE, check=False)
            equal((done.returncode, done.stdout), (1, ""), f"the status of {command}, and its stdout")
            lines = done.stderr.splitlines()
            places = [re.match(rf"{re.escape(f.name)}:(\d+):(\d+): ", line) for line in lines]
            check(all(places), f"a line without a place: {lines}")
            equal([(int(p[1]), int(p[2])) for p in places], [p[:2] for p in PLACES], f"the places of {lines}")
            for line, (_, _, word) in zip(lines, PLACES):
                check(word in line, f"no {word!r} in {line!r}")


def test_check():
    """--check says it by its status, and touches nothing."""
    with perfd.tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "perfd.yaml")

        def run(*arguments):
            done = subprocess.run([perfd.PERFD, *arguments], capture_output=True, text=True, timeout=perfd.PATIENCE,
                                  check=False)
            return done.returncode, done.stdout + done.stderr

        with open(path, "w", encoding="ascii") as f:
            f.write(f"version: 1\nlisten: {{ control: {directory}/c, stream: {directory}/s }}\n"
                    "groups: { a: { events: [ 'sched:sched_switch' ] } }\n")
        equal(run("--check", "--config", path), (0, ""), "a valid one")
        equal(os.listdir(directory), ["perfd.yaml"], "left behind")
        status, said = run("--check", "--config", path + "x")
        equal(status, 1, "one that is not there")
        check(path + "x: " in said and "No such file" in said, said)
        with open(path, "w", encoding="ascii") as f:
            f.write("version: 1\nreaders: { cpus: '0-8191' }\ntargets:\n  a: { cpus: '8191' }\n")
        status, said = run("--check", "--config", path)
        equal(status, 1, "CPUs that this host cannot have")
        check(re.search(f"{path}:2:19: readers.cpus: .*{path}:4:15: cpus: found '8191', and this host cannot have CPU 8191", said,
                        re.S), said)
        equal(run("--check", "--any-host", "--config", path), (0, ""), "that another one can have")
        with open(path, "w", encoding="ascii") as f:
            f.write("version: 1\nstate: /dev/null\n")
        equal(run("--check", "--config", path), (1, f"{path}: state: /dev/null is a device, and perfd stores events only in a regular file: set the key `state` of its configuration\n"), "a device")
        for wrong in (("--check",), ("--nonsense",), ("--any-host", "--config", path), ("argument",), ("--ready-fd", "x"), ("--ready-fd", "-1"), ("--ready-fd", ""),
                      ("--ready-fd", "9"), ("--ready-fd", "4294967297")):
            status, said = run(*wrong)
            equal(status, 2, f"wrong arguments {wrong}")
            check("--config FILE" in said or "is not an open fd" in said or "needs --check" in said, said)


def test_configured_events():
    """What only the kernel can refuse is said with its place, too, and before anybody can connect."""
    config = "version: 1\nstrict: true\ngroups:\n  a:\n    events:\n      - cpu-clock\n"
    fail_to_start(r"perfd\.yaml:7:9: .*sched:sched_swich.*sched:sched_switch",
                  config=config + "      - sched:sched_swich\n")
    fail_to_start(r"perfd\.yaml:8:17: .*Field not found; `perfctl show sched:sched_wakeup` lists them",
                  config=config + f"      - event: {WAKEUP}\n        filter: bogus == 1\n")


def test_reload():
    """A file with a mistake, and one with an event that the kernel refuses, change nothing."""
    config = f"version: 1\nstrict: true\ngroups: {{ a: {{ events: [ {WAKEUP} ] }} }}\n"
    with running(config) as (daemon, client):
        path = os.path.join(daemon.directory, "perfd.yaml")
        for text, reason, word in ((MISTAKES, "bad-config", "connections.max"),
                                   (config + "  b: [\n", "bad-config", r"perfd\.yaml:\d+:\d+: "),
                                   (config.replace("wakeup", "wakeupp").replace("[", "[ cpu-clock,"),
                                    "unknown-event", WAKEUP),
                                   (config.replace("a:", "a: { events: [ cpu-clock ] }, b:").replace(WAKEUP, "sched:*"),
                                    "exists", SWITCH)):
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            before = state(daemon)
            response = refused(client, reason, reload=pb.Empty())
            check(re.search(word, response.message), f"no {word!r} in {response.message!r}")
            unchanged(daemon, before, f"what the reload of {text!r} left")
        os.unlink(path)
        no = refused(client, "bad-config", reload=pb.Empty())
        equal(no.message, f"{path}: the file cannot be opened: No such file or directory", "what is said of a file that is gone")
        errors = client.request(validate=pb.ValidateRequest(yaml=MISTAKES)).validated.errors
        equal([(m.line, m.column) for m in errors], [p[:2] for p in PLACES], "the places of the mistakes")


# ---- where perfd cannot run -----------------------------------------------------------------------------------------


def need_paranoid(least):
    paranoid = int(read("/proc/sys/kernel/perf_event_paranoid"))
    if paranoid < least:
        raise Skip(f"kernel.perf_event_paranoid is {paranoid}: everybody may do what has to be refused (needs {least})")
    return paranoid


def test_without_privileges():
    paranoid = need_paranoid(1)
    fail_to_start("CAP_PERFMON", f"perf_event_paranoid is {paranoid}", prefix=NOBODY)


def test_with_one_privilege():
    """CAP_PERFMON is enough for software events; what tracepoints need besides is said when they are asked for."""
    need_paranoid(1)
    with perfd.tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o1777)
        with Daemon("version: 1\nrings: { size: 64KiB }\n", prefix=PERFMON, directory=directory) as daemon:
            with daemon.client() as client:
                perfd.add(client, "context-switches")
                before = state(daemon)
                response = refused(client, "no-permission", "STATUS_DENIED", **add())
                check("CAP_DAC_READ_SEARCH" in response.message, response.message)
                unchanged(daemon, before, "what a refused request left")


def test_locked_memory():
    need_paranoid(0)
    fail_to_start("16384 KiB", "perf_event_mlock_kb", "RLIMIT_MEMLOCK .0 KiB", "LimitMEMLOCK", r"rings\.size",
                  config="version: 1\nrings: { size: 16MiB }\n", prefix=(*PERFMON, "prlimit", "--memlock=0:0"))


def test_without_tracefs():
    """Not mounted, and perfd may not mount it: what needs none works, the rest says so, until somebody has mounted it."""
    hide = "while umount /sys/kernel/tracing 2>/dev/null; do :; done; umount -l /sys/kernel/debug 2>/dev/null; " \
           'exec setpriv --bounding-set -sys_admin "$@"'
    prefix = ("unshare", "-m", "sh", "-c", hide, "sh")
    words = "tracefs is not mounted on /sys/kernel/tracing", "mount -t tracefs"
    fail_to_start("perfd.yaml:4:", *words, config="version: 1\nstrict: true\ngroups: {g: {events: [\nsched:sched_switch]}}\n", prefix=prefix)
    with Daemon(prefix=prefix) as daemon, daemon.client() as client, daemon.client(stream=True) as stream:
        for word in words:
            check(word in daemon.stderr(), daemon.stderr())
        perfd.add(client, {"event": "cpu-clock", "period": 1000000}, "external:mine", "page-faults")
        for wanted in {"event": "sched:sched_switch"}, {"event": "sched:*"}, {"event": f"uprobe:{PERFD}:main", "args": "n=%di:s32"}:
            no = refused(client, "no-tracefs", "STATUS_UNSUPPORTED", add=pb.AddRequest(events=[pb.EventSpec(**wanted)]))
            for word in words:
                check(word in no.message, no.message)
        offered = {e.event for e in client.request(available=pb.AvailableRequest()).available.events}
        check("cpu-clock" in offered and "external:NAME" in offered, offered)
        equal({event for event in offered if event.startswith("sched:")}, set(), "tracepoints that are offered")
        rows = {row.what: row for row in client.request(doctor=pb.Empty()).doctor.rows}
        equal((rows["tracefs"].works, rows["cpu-clock"].works), (False, True), "what the doctor says")
        items = stream.subscribe(events=["cpu-clock"])
        equal(next(items)["event"], "cpu-clock", "what comes")
        stream.stop()
        list(items)
        subprocess.run(["nsenter", "-t", str(daemon.pid), "-m", "mount", "-t", "tracefs", "tracefs", perfd.TRACING], check=True)
        perfd.add(client, "sched:sched_switch", {"event": f"uprobe:{PERFD}:main", "args": "n=%di:s32"})


def test_too_few_fds_to_start():
    """However few they are."""
    for limit in range(5, 64, 3):
        said = fail_to_start(rf"\b{limit}\b", "RLIMIT_NOFILE", "LimitNOFILE",
                             prefix=("prlimit", f"--nofile={limit}:{limit}"))
        need = int(re.search(r"needs (\d+)", said)[1])
        check(limit < need <= 64 + 4 * len(perfd.online_cpus()), f"{need} fds are needed, of {limit}")
    with Daemon(prefix=("prlimit", f"--nofile={need}:{need}")) as daemon:  # what it asks for is enough
        check(len(daemon.fds()) < need, f"fds: {daemon.fds()}")


def test_places_of_sockets():
    with perfd.tempfile.TemporaryDirectory() as directory:
        for place, word in ((f"{directory}/none", "directory"), (f"{directory}/{'x' * 110}", "107 bytes")):
            done = subprocess.run([perfd.PERFD, "--runtime-directory", place], capture_output=True, text=True,
                                  timeout=perfd.PATIENCE, check=False)
            equal(done.returncode, 1, f"the status: {done.stderr}")
            check(word in done.stderr and place in done.stderr, done.stderr)


if __name__ == "__main__":
    perfd.main(globals())
