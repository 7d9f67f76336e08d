#!/usr/bin/python3
"""Every source of events on the real kernel: what happens an exactly known number of times is counted exactly so often,
by thread, by process, by cgroup and on the whole host, and says what it has to say."""
import contextlib
import os
import re
import subprocess
import time

import perfd
from checker import Checker
from host import need_breakpoints
from perfd import Daemon, Subscriber, TRACING, Workload, add, check, equal, pb, refused, wait_until
from test_errors import state, unchanged
from test_promises import lost, rows_of
from test_tasks import cgroups

FIRE = perfd.private_copy(os.path.join(perfd.BUILD, "tests", "integration", "fire"))
GETPPID = 110 if os.uname().machine == "x86_64" else 173
SLOW = perfd.SANITIZER != "none" or "PERFD_MACHINE" in os.environ  # set by tests/vm/guest
N = 2000 if SLOW else 10_000
CPUS = perfd.online_cpus()[:2]
ARGUMENT = {"x86_64": ("%di", "%si"), "aarch64": ("%x0", "%x1")}[os.uname().machine]


class Fire(perfd.Line):
    """fire.c: .pid, .watched and .call of the running process; fire("calls", 10)."""

    def __init__(self, cgroup=None):
        super().__init__([FIRE])
        word, pid, watched, call = self.hear()
        equal(word, "ready", "the first word of fire")
        self.pid, self.watched, self.call = int(pid), int(watched, 16), int(call, 16)
        self.target = pb.Target(pids=[self.pid])
        if cgroup:
            with open(os.path.join(cgroup, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(self.pid))

    def __enter__(self):
        return self

    def fire(self, word, n):
        """Gives what fire.c says of it."""
        self.say(f"{word} {n}")
        done, times, said = self.hear(4 * perfd.PATIENCE)  # an emulated machine on a busy host takes its time
        equal((done, int(times)), ("done", n), "what fire says")
        return int(said, 16)


def symbols():
    """{name: address in the file}"""
    lines = subprocess.run(["nm", FIRE], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {line.split()[2]: int(line.split()[0], 16) for line in lines if not line.startswith(" ")}


def probe(place, kind="uprobe", **spec):
    return {"event": f"{kind}:{FIRE}:{place}", **spec}


def call_args():
    return f"number={ARGUMENT[0]}:s64 text=+0({ARGUMENT[1]}):string"


def sources(fire):
    """{name: (word of fire.c, fields of its EventSpec)}"""
    at = symbols()
    return {
        "tracepoint": ("syscalls", {"event": "raw_syscalls:sys_enter",
                                    "filter": f"id == {GETPPID} && common_pid == {fire.pid}"}),
        "uprobe": ("calls", probe("fire_call")),
        "inside": ("calls", probe(f"fire_call+{at['fire_inside'] - at['fire_call']}")),
        "address": ("calls", probe(f"{at['fire_call']:#x}")),
        "root": ("calls", {"event": f"uprobe:/proc/{fire.pid}/root{FIRE}:fire_call"}),
        "alternates": ("calls", probe("fire_call.isra.0|fire_gone|fire_call")),
        "args": ("calls", probe("fire_call", args=call_args())),
        "return": ("calls", probe("fire_call", "uretprobe")),
        "retval": ("calls", probe("fire_call", "uretprobe", args="value=$retval:s64")),
        "static": ("hits", probe("fire:hit", "usdt")),
        "faults": ("faults", {"event": "page-faults"}),
    }


def each_target(fire, cgroup):
    return {"tid": pb.Target(tids=[fire.pid], no_inherit=True), "pid": fire.target, "cgroup": pb.Target(cgroups=[cgroup]),
            "host": pb.Target()}


def samples(lines, name):
    return [line for line in lines if line.get("event") == name and "kind" not in line and "record" not in line]


def total(rows, field):
    return sum(getattr(row, field) for row in rows.values())


@contextlib.contextmanager
def everything(**daemon):
    """A daemon with every source on every target: daemon, fire, {kind: (word, names of the events)}."""
    with Daemon(**daemon) as daemon, daemon.client() as client, cgroups("fire") as folders:
        (path, folder), = folders.items()
        with Fire(folder) as fire:
            kinds = sources(fire)
            add(client, probe("fire_call", "uretprobe", name="first"))
            fire.fire("calls", 1)  # the first probe costs the process a page, in which returns are caught
            client.request(remove=pb.SelectRequest(names=["first"]))
            add(client, *({"name": f"{kind}-{whom}", "target": target, **spec} for kind, (_, spec) in kinds.items()
                          for whom, target in each_target(fire, path).items()))
            yield daemon, fire, {kind: (word, [f"{kind}-{whom}" for whom in each_target(fire, path)])
                                 for kind, (word, _) in kinds.items()}


def faults_of_init():
    with open("/proc/1/stat", encoding="ascii") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return int(words[7]) + int(words[9])


def test_each_source_by_each_target():
    """
    occurred = N = delivered + lost; of the host there are others' page faults, too, and nothing else. There are kernels that
    count what process 1 does and write no samples of it: of the host as many can be missing as it had, by /proc.
    """
    kept_back = -faults_of_init()
    with everything() as (daemon, fire, kinds):
        names = [name for _, names in kinds.values() for name in names]
        with Checker(daemon, "time", *(name for name in names if name != "faults-host"), queue=1 << 28) as checker:
            for word in sorted({word for word, _ in kinds.values()}):
                fire.fire(word, N)
            seen = checker.finish()
        ledger = daemon.ledger()
    kept_back += faults_of_init()
    everyone = 0
    for name in names:
        rows = rows_of(ledger, name, unwritten=kept_back if name == "faults-host" else 0)
        if name == "faults-host":
            check(total(rows, "occurred") >= N, f"{name} occurred {total(rows, 'occurred')} times")
        else:
            equal(total(rows, "occurred"), N, f"how often {name} occurred")
        missing = sum(lost(row) + lost(row, "kernel_unwritten") for row in rows.values())
        equal(total(rows, "delivered") + missing, total(rows, "occurred") - total(rows, "filtered"),
              f"what was delivered and lost of {name}")
        everyone += total(rows, "delivered")
    equal(seen["items"] - seen["records"], everyone, "samples received and delivered")


def test_what_samples_say():
    n = 20
    with everything() as (daemon, fire, kinds):
        with Subscriber(daemon, "--where", f"pid == {fire.pid}") as subscriber:
            said = {word: fire.fire(word, n) for word in sorted({word for word, _ in kinds.values()})}
            lines = subscriber.finish()
        page = os.sysconf("SC_PAGESIZE")
        found = {name: samples(lines, name) for _, names in kinds.values() for name in names}
        events = {e.spec.name: e for e in daemon.monitor.request(list=pb.ListRequest()).list.events}
    texts = [f"text {i}" for i in range(n)]
    for name, items in found.items():
        kind = name.split("-")[0]
        equal(len(items), n, f"samples of {name}")
        equal({(item["pid"], item["tid"]) for item in items}, {(fire.pid, fire.pid)}, f"who {name} saw")
        fields = [item["fields"] for item in items]
        if kind in ("uprobe", "address", "root", "alternates"):
            equal({item["ip"] for item in items}, {fire.call}, f"where {name} was")
        elif kind == "inside":
            equal({item["ip"] - fire.call for item in items}, {symbols()["fire_inside"] - symbols()["fire_call"]}, name)
        elif kind == "args":
            equal([(f["number"], f["text"]) for f in fields], list(enumerate(texts)), f"fetched by {name}")
            equal({f["__probe_ip"] for f in fields}, {fire.call}, f"where {name} was")
        elif kind == "retval":
            equal([f["value"] for f in fields], [2 * i + 1 for i in range(n)], f"returned to {name}")
        elif kind == "static":
            equal([[f[a] for a in ("arg1", "arg2", "arg3")][::2] for f in fields], [[i, -i] for i in range(n)], f"of {name}")
        elif kind == "faults":
            equal([item["address"] for item in items], [said["faults"] + i * page for i in range(n)], f"pages of {name}")
        elif kind == "tracepoint":
            equal({f["id"] for f in fields}, {GETPPID}, f"calls of {name}")
    check(said["hits"] > 0, "nobody counted up the semaphore of the static probe")
    check("fire_call" in events["alternates-pid"].place and FIRE in events["alternates-pid"].place,
          f"the place of the alternates: {events['alternates-pid'].place}")
    equal({kind: events[f"{kind}-tid"].n_targets for kind in ("uprobe", "args")}, {"uprobe": 1, "args": 1}, "targets")


def test_probes_where_nothing_can_be_defined():
    """By the PMU then, and said not to be exact; what has to be defined is refused."""
    read_only = ("unshare", "--mount", "sh", "-c", f'mount -o remount,bind,ro {TRACING} && exec "$@"', "sh")
    with Daemon(prefix=read_only) as daemon, daemon.client() as client, Fire() as fire:
        tid = pb.Target(tids=[fire.pid], no_inherit=True)
        add(client, probe("fire_call", name="plain", target=tid))
        response = refused(client, "no-permission", "STATUS_DENIED",
                           add=pb.AddRequest(events=[pb.EventSpec(**probe("fire_call", args=call_args(), target=tid))]))
        check("uprobe_events cannot be written: Read-only" in response.message, response.message)
        fire.fire("calls", 20)
        event, = client.request(list=pb.ListRequest()).list.events
        ledger = daemon.ledger()
    check("a hit may count twice or not at all" in event.place, event.place)
    rows = [row for row in ledger.events if row.name == "plain"]
    check(rows and all(row.balanced and not row.exact for row in rows), f"exact or not balanced: {rows}")
    check(abs(sum(row.occurred for row in rows) - 20) <= 1, f"calls: {rows}")
    equal([row.known for row in ledger.probes], [False], "misses that are known")


def test_breakpoints():
    """The machine has four registers, so not all at once."""
    need_breakpoints()
    def spec(fire, kind, **more):
        return {"event": {"write": f"mem:{fire.watched:#x}/8:w", "call": f"mem:{fire.call:#x}:x"}[kind], "name": kind, **more}
    with Daemon() as daemon, daemon.client() as client, cgroups("fire") as folders:
        (path, folder), = folders.items()
        with Fire(folder) as fire:
            for whom, target in each_target(fire, path).items():
                add(client, spec(fire, "write", target=target), spec(fire, "call", target=target))
                with Checker(daemon, "time", queue=1 << 28) as checker:
                    fire.fire("touches", N)
                    fire.fire("calls", N)
                    checker.finish()
                ledger = daemon.ledger()
                with Subscriber(daemon) as subscriber:
                    fire.fire("touches", 5)
                    fire.fire("calls", 5)
                    lines = subscriber.finish()
                client.request(remove=pb.SelectRequest(names=["*"]))
                for name, address in (("write", fire.watched), ("call", fire.call)):
                    equal(total(rows_of(ledger, name), "occurred"), N, f"how often {name} occurred by {whom}")
                    equal([(item["pid"], item["address"]) for item in samples(lines, name)], [(fire.pid, address)] * 5,
                          f"samples of {name} by {whom}")
                wait_until(lambda: daemon.status().n_closing == 0, "free registers")
            for i in range(5):
                before, one = state(daemon), spec(fire, "write", target=fire.target) | {"name": f"write-{i}"}
                try:
                    add(client, one)
                except perfd.Refused as no:
                    equal(no.response.reason, "no-breakpoint", no.response.message)
                    break
            check(1 < i < 5, f"the machine has registers for {i}")
            unchanged(daemon, before, "what one too many left")


def test_software_events():
    """Page faults exactly, by a process that has no others; switches as many as the kernel itself counts."""
    def switches(pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return sum(int(line.split()[1]) for line in f if "_ctxt_switches" in line)

    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        add(client, {"event": "page-faults", "name": "each", "target": fire.target},
            {"event": "faults", "name": "tenth", "period": 10, "target": fire.target},
            {"event": "minor-faults", "name": "minor", "target": fire.target},
            {"event": "major-faults", "name": "major", "target": fire.target},
            {"event": "context-switches", "name": "switches", "target": fire.target})
        before = switches(fire.pid)
        with Checker(daemon, "time", queue=1 << 26) as checker:
            fire.fire("faults", N)
            fire.fire("spins", 50)
            wait_until(lambda: switches(fire.pid) > before, "a switch")
            checker.finish()
        ledger, after = daemon.ledger(), switches(fire.pid)
    equal({name: total(rows_of(ledger, name), "occurred") for name in ("each", "minor", "major")},
          {"each": N, "minor": N, "major": 0}, "page faults")
    tenth = [row for row in ledger.events if row.name == "tenth"]
    equal((sum(row.count for row in tenth), all(row.balanced for row in tenth)), (N, True), "the count of each tenth")
    check(N // 10 - len(tenth) < sum(row.occurred for row in tenth) <= N // 10, f"samples of each tenth: {tenth}")
    n = total(rows_of(ledger, "switches"), "occurred")
    check(0 < n <= after - before + 2, f"{n} switches, and the kernel says {before} before and {after} after")


# ---- counters --------------------------------------------------------------------------------------------------------


def reads_until(client, names, done):
    """{(event, cpu): [(time, values)]} of a stream that ends when done() is true of it."""
    found = {}
    for item in client.subscribe(events=names):
        if item.get("record") == "read":
            found.setdefault((item["event"], item["cpu"]), []).append((item["time"], item["fields"]["values"]["values"]))
        if done(found):
            client.stop()
    return found


def test_groups_at_an_interval():
    """Each 100 ms, on each CPU, and what they have counted is what happened."""
    interval = 100_000_000
    with Daemon() as daemon, daemon.client() as client, daemon.client() as stream, Fire() as fire:
        add(client, {"event": "{task-clock,page-faults,context-switches}", "name": "group", "interval": interval,
                     "target": fire.target},
            {"event": "page-faults", "name": "alone", "interval": interval, "target": fire.target},
            {"event": "{page-faults,cpu-clock}", "name": "host", "interval": interval})
        fire.fire("faults", N)
        fire.fire("spins", 300)
        end = time.monotonic_ns()
        keys = {(name, cpu) for name in ("group", "alone", "host") for cpu in perfd.online_cpus()}
        found = reads_until(stream, [], lambda found: keys == set(found) and
                            all(len(reads) > 2 and reads[-1][0] > end for reads in found.values()))
        descriptor = {event.name: event for event in stream.stream.events.values()}
        balanced = all(row.balanced for row in daemon.ledger().events)
    check(balanced, "the ledger does not balance")
    equal(sorted(descriptor), ["alone", "group", "host"], "events of the stream")
    sums = {}
    for (name, _), reads in found.items():
        for (t0, before), (t1, after) in zip(reads, reads[1:]):
            check(abs((t1 - t0) - interval) < interval, f"{name}: from one read to the next {t1 - t0} ns")
            for old, new in zip(before, after):
                check(new["value"] >= old["value"] and new["enabled"] >= old["enabled"], f"{name} went backwards: {old} {new}")
        last = reads[-1][1]
        equal(len(last), {"group": 3, "alone": 1, "host": 2}[name], f"counters of {name}")
        for value in last:
            check(0 <= value["running"] <= value["enabled"], f"{name} ran longer than it was enabled: {value}")
        check(max(v["enabled"] for v in last) - min(v["enabled"] for v in last) < 10**8, f"{name} is not scheduled as one: {last}")
        sums[name] = [sum(column) for column in zip(sums.get(name, [0] * len(last)), [v["value"] for v in last])]
    equal((sums["group"][1], sums["alone"][0]), (N, N), "page faults counted")
    check(sums["host"][0] >= N, f"page faults of the host: {sums['host']}")
    check(300_000_000 <= sums["group"][0] < 20_000_000_000, f"task-clock of 300 ms: {sums['group']}")


def test_groups_are_read_at_one_moment():
    """What counts the same has counted the same, also when reading it counts: read(2) is a system call like all others."""
    interval = 20_000_000
    with Daemon() as daemon, daemon.client() as client, daemon.client() as stream, \
         Workload("flood", 0, 500, cpus=CPUS) as load:
        group = "{" + ",".join(["raw_syscalls:sys_enter"] * 4) + "}"
        targets = {"host": pb.Target(), "family": pb.Target(pids=[load.process.pid]),
                   "alone": pb.Target(pids=load.pids, no_inherit=True)}
        add(client, *({"event": group, "name": name, "interval": interval, "include_self": True, "target": target}
                      for name, target in targets.items()))
        load.go()
        found = reads_until(stream, [], lambda found: len(found) == 3 * len(CPUS) and min(map(len, found.values())) > 20)
        load.done(stop=True)
        load.exit()
    for (name, cpu), reads in found.items():
        check(reads[-1][1][0]["value"] > reads[0][1][0]["value"] + 50, f"{name} counts nothing on CPU {cpu}")
        equal([len({v["value"] for v in values}) for _, values in reads], [1] * len(reads), f"values of {name} on CPU {cpu}")


def test_samples_that_read_their_group():
    n = 50
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        os.sched_setaffinity(fire.pid, CPUS[:1])  # moved in the middle of a fault, it has its halves on two CPUs
        add(client, {"event": "{page-faults,task-clock,dummy}", "name": "group", "period": 1, "target": fire.target},
            {"event": "{page-faults,minor-faults}:S", "name": "marked", "period": 5, "target": fire.target})
        with Subscriber(daemon) as subscriber:
            fire.fire("faults", n)
            lines = subscriber.finish()
        rows = rows_of(daemon.ledger(), "group")
    equal(total(rows, "occurred"), n, "samples that occurred")
    items = samples(lines, "group")
    equal(len(items), n, "samples of the group")
    values = [[value["value"] for value in item["read_values"]["values"]] for item in items]
    by_cpu = {}
    for item, (faults, clock, dummy) in zip(items, values):
        by_cpu.setdefault(item["cpu"], []).append(faults)
        check(clock > 0 and dummy == 0, f"the counts of a sample: {values}")
    for faults in by_cpu.values():
        equal(faults, list(range(1, len(faults) + 1)), "page faults counted at each")
    for item in samples(lines, "marked"):
        faults, minor = [value["value"] for value in item["read_values"]["values"]]
        equal((faults % 5, faults - minor), (0, 1), "page faults at each fifth, which counts as minor afterwards")


def test_fallback():
    """Of cycles, where the machine has no counter for them; without it that is refused."""
    cycles = {"event": "cycles", "frequency": 1000}
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        before = state(daemon)
        try:
            add(client, {**cycles, "name": "real"})
            real = True
        except perfd.Refused as no:
            equal((no.response.reason, "fallback" in no.response.message), ("no-counter", True), no.response.message)
            unchanged(daemon, before, "what was refused")
            real = False
        add(client, {**cycles, "name": "fallen", "fallback": "cpu-clock", "target": fire.target},
            {**cycles, "event": "cycles:u", "name": "user", "fallback": "cpu-clock", "target": fire.target})
        events = {e.spec.name: e for e in client.request(list=pb.ListRequest()).list.events}
        equal({name: e.fallen_back for name, e in events.items() if name != "real"},
              {"fallen": not real, "user": not real}, "what has fallen back")
        equal((events["fallen"].spec.event, events["fallen"].spec.fallback), ("cycles", "cpu-clock"), "the list")
        with Subscriber(daemon) as subscriber:
            fire.fire("spins", 200)
            lines = subscriber.finish()
    for name in ("fallen", "user"):
        items = samples(lines, name)
        check(len(items) > 20, f"{len(items)} samples of {name} in 200 ms at 1000 Hz")
        equal({item["pid"] for item in items}, {fire.pid}, f"whose samples {name} has")
    check(all(item["ip"] < 1 << 63 for item in samples(lines, "user")), "samples of the kernel in cycles:u")


def test_external_events():
    with Daemon() as daemon, daemon.client() as client, daemon.client(stream=True) as stream, \
         daemon.client(stream=True) as reader, Fire() as fire:
        fields = [pb.ExternalField(name=name, type=kind) for name, kind in
                  (("user", "text"), ("code", "u32"), ("delta", "s64"), ("done", "bool"), ("blob", "bytes"))]
        add(client, {"event": "external:deploy", "fields": fields},
            {"event": "raw_syscalls:sys_enter", "name": "calls", "filter": f"id == {GETPPID}", "target": fire.target})

        def sample(i, **more):
            value = pb.ExternalValue
            return pb.ExternalSample(**{"event": "external:deploy", "time": time.monotonic_ns(), "pid": 7, "tid": 8,
                                        "values": [value(text=b"joe"), value(number=i), value(signed_number=-i),
                                                   value(number=i % 2), value(text=b"\0\xff")], **more})

        def emit(*all_of_them):
            return client.request(emit=pb.EmitRequest(samples=all_of_them)).emitted

        items = reader.subscribe(queue_bytes=1 << 26)
        for i in range(10):
            fire.fire("syscalls", 1)
            reply = emit(*(sample(k) for k in range(i * 10, i * 10 + 10)))
            equal(reply.taken, 10, "samples taken")
        before = daemon.ledger()
        now = time.monotonic_ns()
        for reason, status, wrong in (("unknown-event", "NOT_FOUND", sample(1, event="external:nope")),
                                      ("not-external", "INVALID", sample(1, event="calls")),
                                      ("bad-time", "INVALID", sample(1, time=0)),
                                      ("bad-time", "INVALID", sample(1, time=now + 10**12)),
                                      ("bad-value", "INVALID", sample(1, values=[])),
                                      ("bad-value", "INVALID", sample(1, values=[pb.ExternalValue(number=1)] * 5))):
            refused(client, reason, f"STATUS_{status}", emit=pb.EmitRequest(samples=[sample(2), wrong]))
        refused(stream, "read-only", emit=pb.EmitRequest(samples=[sample(1)]))
        seen = []
        for item in items:
            seen.append(item)
            if len(seen) == 110:
                reader.stop()
        row, = [row for row in daemon.ledger().events if row.name == "external:deploy"]
        end = reader.end["reason"]
    equal(end, "stopped", "the end of the stream")
    equal((row.external, row.occurred, row.balanced), (True, 100, True), f"the ledger {before}")
    emitted = [item for item in seen if item["event"] == "external:deploy"]
    equal([item["fields"] for item in emitted], [{"user": b"joe", "code": i, "delta": -i, "done": i % 2, "blob": b"\0\xff"}
                                                 for i in range(100)], "what was emitted")
    equal({(item["pid"], item["tid"]) for item in emitted}, {(7, 8)}, "who it was of")
    equal([item["event"] for item in seen if item["event"] == "calls"], ["calls"] * 10, "calls")
    equal([item["time"] for item in seen], sorted(item["time"] for item in seen), "the order of time")


# ---- what is refused -------------------------------------------------------------------------------------------------


def definitions(path=FIRE):
    with open(f"{TRACING}/uprobe_events", encoding="utf-8") as f:
        return [line for line in f.read().splitlines() if path in line]


def define(line):
    """By one write(2), as the kernel wants it."""
    fd = os.open(f"{TRACING}/uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def kernel_complaint(args):
    """What the kernel itself says of fetch args, and the column of its caret in them."""
    command = f"p:perfdtest{os.getpid()}/bad {FIRE}:{symbols()['fire_call']:#018x} {args}"
    try:
        define(command)
    except OSError:
        with open(f"{TRACING}/error_log", encoding="utf-8") as f:
            lines = f.read().splitlines()
        at = max(i for i, line in enumerate(lines) if command in line)
        return lines[at - 1].split("error: ")[1], lines[at + 1].index("^") - lines[at].index(args) + 1
    raise AssertionError(f"the kernel takes {args!r}")


def test_refusals():
    bad_args = [f"a={ARGUMENT[0]}:bogus", "a=%nosuch:x64", f"ok={ARGUMENT[0]} a=+0({ARGUMENT[1]}:string", "a=$nothing"]
    said = {args: kernel_complaint(args) for args in bad_args}
    cases = [("bad-args", "INVALID", re.escape(said[args][0]), said[args][1], probe("fire_call", args=args)) for args in bad_args]
    cases += [
        ("unknown-symbol", "NOT_FOUND", "fire_cal.*fire_call", None, probe("fire_cal")),
        ("unknown-symbol", "NOT_FOUND", "nope", None, probe("nope|neither")),
        ("unknown-symbol", "NOT_FOUND", "a pattern stands alone", None, probe("fire_c*+4")),
        ("unknown-probe", "NOT_FOUND", "fire:hit'", None, probe("fire:hitt", "usdt")),
        ("no-file", "NOT_FOUND", "/nosuch/file", None, {"event": "uprobe:/nosuch/file:main"}),
        ("bad-event", "INVALID", "probe", None, {"event": "page-faults", "args": "a=%di"}),
        ("bad-event", "INVALID", "kretprobe", None, probe("fire_call", maxactive=7)),
        ("bad-event", "INVALID", "cycles", None, {"event": "instructions", "fallback": "cpu-clock"}),
        ("bad-event", "INVALID", "external", None, {"event": "cpu-clock", "fields": [pb.ExternalField(name="a", type="u8")]}),
        ("bad-event", "INVALID", r"sched:\*.*a group", None, {"event": "{cpu-clock,sched:*}"}),
        ("bad-event", "INVALID", "2", None, {"event": "mem:0x1000/3:w"}),
    ]
    if os.path.isdir("/sys/bus/event_source/devices/msr"):
        cases += [("unknown-term", "NOT_FOUND", "evnt.*event", None, {"event": "msr/evnt=1/", "interval": 10**9}),
                  ("bad-term", "INVALID", "is 0 to 0x1, and 0x2", None, {"event": "uprobe/retprobe=2/"})]
    with Daemon() as daemon, daemon.client() as client:
        before = state(daemon)
        wrong = []
        for reason, status, words, position, spec in cases:
            try:
                response = refused(client, reason, f"STATUS_{status}", add=pb.AddRequest(events=[pb.EventSpec(**spec)]))
                check(re.search(words, response.message), f"no {words!r} in {response.message!r}")
                check(position in (None, response.position), f"position {response.position}, not {position}: {response.message}")
                unchanged(daemon, before, f"what {spec} left")
            except AssertionError as e:
                wrong.append(str(e))
    check(not wrong, "\n".join(wrong))


if __name__ == "__main__":
    perfd.main(globals())
