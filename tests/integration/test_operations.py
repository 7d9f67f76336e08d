#!/usr/bin/python3
"""What costs main much keeps nobody else waiting, ends with the client that wanted it, and leaves nothing. Needs root."""
import contextlib
import multiprocessing
import os
import random
import select
import selectors
import signal
import socket
import struct
import time

import perfd
from perfd import Daemon, add, check, equal, refused, wait_until
from subscriber import Client, Refused, pb
from test_errors import state, unchanged
from test_quotas import NOBODY, SOMEBODY

# s. The promise is 50 ms, which the figures show, but other programs may keep all of perfd waiting; what kept main did for minutes.
BOUND = 15.0
CPU_BOUND = 0.25  # s of main's own time, which other programs do not lengthen; sanitizers do, so there it is only told
EVERYTHING = "version: 1\ngroups: {all: {events: ['*:*']}}\n"


def main_cpu(pid):
    """Seconds for which the main thread has run: /proc/PID/task/TID/schedstat."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def probe(daemon, stop, conn):
    """In a process of its own: new connections that ask for the status, one after the other."""
    worst, worst_cpu, n, path = 0.0, 0.0, 0, daemon.stream
    while not stop.is_set():
        begin, cpu = time.monotonic(), main_cpu(daemon.pid)
        with Client(path, program="probe") as client:
            client.socket.settimeout(600)
            client.request(status=pb.Empty())
        worst, n = max(worst, time.monotonic() - begin), n + 1
        worst_cpu = max(worst_cpu, main_cpu(daemon.pid) - cpu)
        stop.wait(0.001)
    conn.send((worst, worst_cpu, n))


@contextlib.contextmanager
def others_are_served(daemon, what, cpu_bound=None):
    """While the body runs, somebody else always gets an answer soon; says how soon."""
    context = multiprocessing.get_context("fork")
    stop, (ours, theirs) = context.Event(), context.Pipe()
    prober = context.Process(target=probe, args=(daemon, stop, theirs))
    prober.start()
    begin = time.monotonic()
    try:
        yield
    finally:
        took = time.monotonic() - begin
        stop.set()
        try:
            check(ours.poll(perfd.PATIENCE), "the other client never got its answer")
            worst, worst_cpu, n = ours.recv()
        finally:
            prober.kill()
            prober.join()
    print(f"  {what}: {took:.2f} s, {n} others were answered meanwhile, after {1000 * worst:.0f} ms at most, "
          f"{1000 * worst_cpu:.0f} ms of main's own time")
    check(worst < BOUND, f"{what}: somebody else waited {worst:.2f} s")
    if cpu_bound and perfd.SANITIZER == "none":
        check(worst_cpu < cpu_bound, f"{what}: main ran for {worst_cpu:.2f} s before it answered somebody else")


def status(client):
    return client.request(status=pb.Empty()).daemon


def asked(client, **body):
    """Answered, or refused."""
    try:
        return client.request(**body)
    except Refused as no:
        return no.response


def count_fds(daemon):
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def closed_all(client):
    wait_until(lambda: status(client).n_closing == 0, "the closer has nothing left")


def test_client_that_vanishes():
    """Its add is undone in the middle, as if it had never been asked for."""
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before = state(daemon)
        for _ in range(3):
            with daemon.client() as root:
                root.send(add=pb.AddRequest(events=[pb.EventSpec(event="syscalls:*")]))
                fds = count_fds(daemon)
                wait_until(lambda: count_fds(daemon) > fds + 20, "the add opens its fds")
            wait_until(lambda n=fds: count_fds(daemon) <= n, "what it has opened is closed")
        equal(status(nobody).n_events, 0, "events of a client that is gone")
        unchanged(daemon, before, "what clients left that vanished")


def test_stop_in_the_middle():
    with Daemon("version: 1\n") as daemon, daemon.client() as root:
        root.send(add=pb.AddRequest(events=[pb.EventSpec(event="syscalls:*")]))
        fds = count_fds(daemon)
        wait_until(lambda: count_fds(daemon) > fds + 20, "the add opens its fds")
        begin = time.monotonic()
        os.kill(daemon.pid, signal.SIGTERM)
        no = root.receive().response
        print(f"  answered {1000 * (time.monotonic() - begin):.0f} ms behind SIGTERM")
        equal((pb.Status.Name(no.status), no.reason), ("STATUS_EXHAUSTED", "shutting-down"), no.message)


def test_many_pids():
    """Doubles go first, /proc is read once for all, and what cannot be opened is refused before anybody is looked at."""
    with Daemon("version: 1\n") as daemon, daemon.client() as root:
        with others_are_served(daemon, "an add with one pid 20,000 times"):
            add(root, {"event": "context-switches", "target": pb.Target(pids=[os.getpid()] * 20000)})
        equal([list(e.spec.target.pids) for e in root.request(list=pb.ListRequest()).list.events], [[os.getpid()]], "pids")
        check(f"19999 pids or tids are named twice, the first is {os.getpid()}" in daemon.stderr(), daemon.stderr())
        before = state(daemon)
        for what, reason, status_name, target in \
                ("65,536 pids", "too-many-fds", "STATUS_EXHAUSTED", pb.Target(pids=range(1, 65537))), \
                ("200,000 pids", "bad-target", "STATUS_INVALID", pb.Target(pids=range(1, 200001))), \
                ("1,025 units", "bad-target", "STATUS_INVALID", pb.Target(units=[f"u{i}*" for i in range(1025)])):
            with others_are_served(daemon, f"an add with {what}"):
                refused(root, reason, status_name, add=pb.AddRequest(events=[pb.EventSpec(event="page-faults", target=target)]))
        unchanged(daemon, before, "what a refused add left")
        sleepers = [perfd.subprocess.Popen(["sleep", "1000"]) for _ in range(300)]
        try:
            with others_are_served(daemon, "an add with 300 processes"):
                add(root, {"event": "page-faults", "target": pb.Target(pids=[p.pid for p in sleepers])})
            equal({e.spec.name: e.n_targets for e in root.request(list=pb.ListRequest()).list.events}["page-faults"], 300, "targets")
        finally:
            for p in sleepers:
                p.kill()
            for p in sleepers:
                p.wait()


def test_quota_of_pids():
    config = "version: 1\naccess: {control-mode: 0666}\nfds: {per-uid: 100}\n"
    target = pb.Target(pids=range(1, 1001))
    with Daemon(config) as daemon, daemon.client_of(NOBODY, stream=False) as nobody:
        no = refused(nobody, "too-many-fds", add=pb.AddRequest(events=[pb.EventSpec(event="page-faults", target=target)]))
        check("fds.per-uid allows 100" in no.message, no.message)
        text = f"version: 1\ntargets: {{many: {{pids: [{', '.join(map(str, range(1, 1001)))}]}}}}\n" \
               "groups: {g: {target: many, events: [page-faults]}}\n"
        no = refused(nobody, "too-many-fds", plan=pb.PlanRequest(yaml=text))
        check("fds.per-uid allows 100" in no.message, no.message)


def test_log():
    """However much of a request is left out: one line, and a hundred of a uid in ten seconds."""
    gone = perfd.subprocess.Popen(["/bin/true"])
    gone.wait()
    pids = ", ".join([str(os.getpid()), str(gone.pid)] + [str(gone.pid)] * 2)
    yaml = f"version: 1\ntargets: {{t: {{pids: [{pids}]}}}}\ngroups: {{g: {{target: t, events: [" + \
        ", ".join(f"{{event: page-faults, name: e{i}}}" for i in range(200)) + "]}}\n"
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before = len(daemon.stderr())
        equal(len(nobody.request(plan=pb.PlanRequest(yaml=yaml)).plan.added), 200, "the plan")
        lines = daemon.stderr()[before:].splitlines()
        equal(len(lines), 1, f"lines of one plan: {lines}")
        for words in f"plan by test, pid {os.getpid()}, uid {NOBODY}: e0: there is no process {gone.pid} (any more)", \
                "and other events also name processes that do not exist":
            check(words in lines[0], lines[0])
        short = yaml.replace("range(200)", "range(1)")[:yaml.index("events: [")] + "events: [page-faults]}}\n"
        for _ in range(300):
            nobody.request(plan=pb.PlanRequest(yaml=short))
        check(len(daemon.stderr().splitlines()) < 110, f"{len(daemon.stderr().splitlines())} lines of the log")
        check("a client causes too many lines" in daemon.stderr(), daemon.stderr())


def test_names_of_subscriptions():
    """The same name again costs next to nothing, and how many different ones there may be is bounded; nobody waits."""
    events = [pb.EventSpec(event=f"external:e{i}", fields=[pb.ExternalField(name=f"f{j}", type="u32") for j in range(4)])
              for i in range(2000)]
    names = [f"external:e{i}" for i in range(2000)]
    with Daemon("version: 1\n") as daemon, daemon.client() as root:
        root.request(add=pb.AddRequest(events=events))
        before = state(daemon)
        for what, body in ("one field 65,000 times", {"fields": ["f0"] * 65000}), ("'*' 65,000 times", {"events": ["*"] * 65000}), \
                ("all names 20 times", {"events": names * 20, "fields": ["f3", "f1"] * 1000}):
            with daemon.client_of(NOBODY) as nobody, others_are_served(daemon, f"subscribe to {what}"):
                nobody.request(subscribe=pb.SubscribeRequest(**body))
            wait_until(lambda: state(daemon) == before, f"what {what} left")
        with daemon.client_of(NOBODY) as nobody:
            for what, body in ("10000 different events", {"events": [f"x{i}" for i in range(60000)]}), \
                    ("at most 256 different globs, and this one has 257", {"events": [f"*{i}*" for i in range(257)]}), \
                    ("1024 different fields", {"fields": [f"f{i}" for i in range(60000)]}):
                with others_are_served(daemon, f"a refusal of more than {what}"):
                    no = refused(nobody, "too-many-names", "STATUS_EXHAUSTED", subscribe=pb.SubscribeRequest(**body))
                check(what in no.message, no.message)
            no = refused(nobody, "unknown-field", "STATUS_NOT_FOUND", subscribe=pb.SubscribeRequest(fields=["f0", "f4"] * 1000))
            check("field f4" in no.message, no.message)
        unchanged(daemon, before, "what refused subscriptions left")


def test_globs():
    """Globs that take longest to match, for names that are as long as they may be: others are served, and who goes is not waited for."""
    names = [f"external:{'a' * 1000}b{i:04}" for i in range(200)]
    slow = [f"*{'[ab]' * 15}b*{i:04}" for i in range(200)]
    with Daemon("version: 1\naccess: { stream-mode: 0666 }\n") as daemon, daemon.client() as root:
        add(root, *({"event": name, "fields": [pb.ExternalField(name="v", type="u64")]} for name in names))
        for body in {"ledger": pb.LedgerRequest(events=slow)}, {"subscribe": pb.SubscribeRequest(events=slow)}:
            with daemon.client_of(65534) as nobody, others_are_served(daemon, f"{len(slow)} globs", CPU_BOUND):
                nobody.request(**body)
        with daemon.client_of(65534) as nobody:
            no = refused(nobody, "bad-name", "STATUS_INVALID", list=pb.ListRequest(glob=f"*[{'a' * 4000}]"))
            check("1023 bytes" in no.message, no.message)
            for body in ({"ledger": pb.LedgerRequest(events=["external:*"] * 257)},
                         {"subscribe": pb.SubscribeRequest(events=[f"external:*{i}*" for i in range(257)])}):
                refused(nobody, "too-many-names", "STATUS_EXHAUSTED", **body)
            equal(len(nobody.request(ledger=pb.LedgerRequest(events=["external:*"])).ledger.events), 200, "rows")
        with daemon.client() as goes:
            goes.send(disable=pb.SelectRequest(names=slow))
        with others_are_served(daemon, "the rest of a request whose client is gone"):
            root.request(ledger=pb.LedgerRequest(events=names[:1]))


def list_forever(path, uid, n, glob, stop):
    """In a process of its own: n connections, each with a list on its way at all times."""
    os.setresuid(uid, uid, uid)
    request = pb.Request(id=1, list=pb.ListRequest(glob=glob)).SerializeToString()
    frame = struct.pack("<I", len(request)) + request
    with contextlib.ExitStack() as all_of_them, selectors.DefaultSelector() as ready:
        for _ in range(n):
            peer = all_of_them.enter_context(socket.socket(socket.AF_UNIX))
            peer.connect(path)
            peer.sendall(frame)
            ready.register(peer, selectors.EVENT_READ, [0])
        while not stop.is_set():
            for key, _ in ready.select(0.1):
                head = key.fileobj.recv(4, socket.MSG_WAITALL)
                key.fileobj.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL)
                key.fileobj.sendall(frame)


def worst_of_root(daemon, root, enough):
    """Seconds of main's own time for which root waited longest for the status."""
    worst, n = 0.0, 0
    while not enough(n):
        cpu = main_cpu(daemon.pid)
        status(root)
        worst, n = max(worst, main_cpu(daemon.pid) - cpu), n + 1
    return worst


def test_many_lists():
    """A hundred who list all events by the dearest glob: root waits for a few of them, also in the middle of a change."""
    n = 1000 if perfd.SANITIZER == "none" else 100  # of which a sanitizer takes as long
    names = [f"external:{'a' * 1000}b{i:04}" for i in range(n)]
    with Daemon("version: 1\naccess: { stream-mode: 0666 }\n") as daemon, daemon.client() as root, daemon.client() as adds:
        for i in range(0, n, 200):
            add(root, *({"event": name, "fields": [pb.ExternalField(name="v", type="u64")]} for name in names[i:i + 200]))
        os.chmod(daemon.directory, 0o755)
        context = multiprocessing.get_context("fork")
        stop = context.Event()
        clients = [context.Process(target=list_forever, args=(daemon.stream, 60000 + i, 25, f"*{'[ab]' * 15}b*none", stop))
                   for i in range(4)]
        for client in clients:
            client.start()
        try:
            wait_until(lambda: status(root).n_connections >= 102, "a hundred clients are there")
            idle = worst_of_root(daemon, root, lambda n: n >= 20)
            adds.send(add=pb.AddRequest(events=[pb.EventSpec(event="sched:*")]))
            busy = worst_of_root(daemon, root, lambda _: select.select([adds.socket], [], [], 0)[0])
        finally:
            stop.set()
            for client in clients:
                client.join(perfd.PATIENCE)
        equal(([client.exitcode for client in clients], adds.receive().response.status), ([0] * 4, pb.STATUS_OK),
              "who lists, and who adds")
        print(f"  root waited for {1000 * idle:.0f} ms of main's own time, and for {1000 * busy:.0f} ms beside an add")
        check(perfd.SANITIZER != "none" or max(idle, busy) < CPU_BOUND, f"root waited {max(idle, busy):.2f} s of main's own time")


def test_values_of_requests():
    """A request is counted before it is unpacked; its connection goes on."""
    spec, many = pb.EventSpec, 250000
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before = state(daemon)
        for what, body in (f"{many} names", {"subscribe": pb.SubscribeRequest(events=["x"] * many)}), \
                (f"{many} empty events", {"add": pb.AddRequest(events=[spec()] * many)}), \
                (f"an event with {many} empty attrs", {"add": pb.AddRequest(events=[spec(attr=[pb.AttrSetting()] * many)])}):
            with others_are_served(daemon, f"a refusal of {what}", CPU_BOUND):
                for _ in range(3):
                    no = refused(nobody, "too-many-values", "STATUS_EXHAUSTED", **body)
            check("more than 65536 texts and messages" in no.message, no.message)
        nobody.request(status=pb.Empty())
        unchanged(daemon, before, "what refused requests left")


def items(name, item, n, head="targets: {t: {", tail="}}"):
    return f"version: 1\n{head}{name}: [{','.join(item.format(i) for i in range(1, n + 1))}]{tail}\n"


LARGEST = {
    "140,000 different pids": items("pids", "{}", 140000),
    "9,999 pids, and the last 130,000 times more": items("pids", "{}", 9999).replace("]", "," + ",".join(["9999"] * 130000) + "]"),
    "199,000 equal pids": items("pids", "1", 199000),
    "10,000 globs of units": items("units", "u{}*", 10000),
    "9,999 long names of containers": items("containers", "c{:0>90}", 9999),
    "140,000 counters": items("counters", "cycles", 140000, head="groups: {g: {"),
    "9,999 external events": items("events", "'external:e{}'", 9999, head="groups: {g: {"),
    "9,999 kprobes and a mistake": items("events", "'kprobe:e{}'", 9999, head="wrong: 1\ngroups: {g: {"),
    "90,000 unknown keys": "version: 1\n" + "".join(f"k{i}: 1\n" for i in range(90000)),
    "98,000 equal keys": "version: 1\n" + "a: 1\n" * 98000,
    "a text of 1,000,000 bytes": "version: 1\nstate: /" + "x" * 1000000,
}


def test_largest_configurations():
    """Reading them lets others have their turn, as opening what they say does."""
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before = state(daemon)
        for what, yaml in LARGEST.items():
            with others_are_served(daemon, what, CPU_BOUND):
                asked(nobody, validate=pb.ValidateRequest(yaml=yaml))
        yaml = items("pids", "{}", 65537)
        errors = nobody.request(validate=pb.ValidateRequest(yaml=yaml)).validated.errors
        equal([(m.line, m.column, m.text) for m in errors], [(2, yaml.splitlines()[1].index(",65537") + 2, "pids: more than "
              "65536 in one list; split it into several targets, or name a cgroup")], "errors")
        unchanged(daemon, before, "what validations left")


def answers_of(clients):
    """One of each, taken as they come: what lies unread for 10 s ends its connection."""
    waiting = {client.socket: client for client in clients}
    while waiting:
        for ready in select.select(list(waiting), [], [], perfd.PATIENCE)[0] or [None]:
            check(ready, f"{len(waiting)} answers do not come")
            yield waiting.pop(ready).receive().response.status


def test_largest_configurations_at_once():
    """By two uids in parallel, some of which go; SIGHUP and a change of root's in the middle, and SIGTERM in the end."""
    config = LARGEST["9,999 external events"]
    with Daemon("version: 1\ngroups: {own: {events: [sched:sched_process_exec]}}\n") as daemon, daemon.client() as root:
        before = state(daemon)
        with contextlib.ExitStack() as stack, others_are_served(daemon, "the largest configurations at once"):
            asking = [stack.enter_context(daemon.client_of(uid)) for uid in (NOBODY, SOMEBODY) for _ in range(12)]
            for i, (client, yaml) in enumerate(zip(asking, list(LARGEST.values()) * 3)):
                client.send(**({"plan": pb.PlanRequest(yaml=yaml)} if i % 2 else {"validate": pb.ValidateRequest(yaml=yaml)}))
            for i in range(12):
                with daemon.client_of(NOBODY) as gone:
                    gone.send(plan=pb.PlanRequest(yaml=config))
                if i % 4 == 0:
                    os.kill(daemon.pid, signal.SIGHUP)
                    root.request(apply=pb.ApplyRequest(yaml="version: 1\ngroups: {own: {events: [sched:sched_process_exec]}}\n"))
            for status in answers_of(asking):
                check(status in (pb.STATUS_OK, pb.STATUS_INVALID, pb.STATUS_UNSUPPORTED, pb.STATUS_EXHAUSTED), pb.Status.Name(status))
        unchanged(daemon, before, "what all of that left")
        with contextlib.ExitStack() as stack:
            for uid in (NOBODY, SOMEBODY) * 4:
                stack.enter_context(daemon.client_of(uid)).send(plan=pb.PlanRequest(yaml=config))
            begin = time.monotonic()
            os.kill(daemon.pid, signal.SIGTERM)
            root.socket.settimeout(perfd.PATIENCE)
            equal(root.socket.recv(1), b"", "the end of root's connection")
            print(f"  gone {1000 * (time.monotonic() - begin):.0f} ms behind SIGTERM")


def test_everything_at_once():
    """Each request at its largest, by several uids, in the middle of each other, clients that go, and SIGHUP."""
    with Daemon("version: 1\ngroups: {own: {events: [sched:sched_process_exec]}}\n") as daemon, daemon.client() as root:
        before = state(daemon)
        with contextlib.ExitStack() as stack, others_are_served(daemon, "everything at once"):
            asking = [stack.enter_context(daemon.client_of(uid)) for uid in (NOBODY, SOMEBODY) for _ in range(12)]
            bodies = [{"plan": pb.PlanRequest(yaml=EVERYTHING)}, {"validate": pb.ValidateRequest(yaml=EVERYTHING)},
                      {"available": pb.AvailableRequest(fields=True)}, {"doctor": pb.Empty()},
                      {"plan": pb.PlanRequest(yaml="version: 1\n#" + "x" * 1000000)}, {"ledger": pb.LedgerRequest()}]
            for i, client in enumerate(asking):
                client.send(**bodies[i % len(bodies)])
            for i in range(6):
                with daemon.client() as gone:
                    gone.send(add=pb.AddRequest(events=[pb.EventSpec(event="irq:*")], while_connected=i % 2 == 1))
                    if i % 3 == 0:
                        os.kill(daemon.pid, signal.SIGHUP)
                asked(root, add=pb.AddRequest(events=[pb.EventSpec(event="external:mine")]))
                asked(root, remove=pb.SelectRequest(names=["external:mine"]))
            for status in answers_of(asking):
                check(status in (pb.STATUS_OK, pb.STATUS_EXHAUSTED), pb.Status.Name(status))
        asked(root, remove=pb.SelectRequest(names=["irq:*"]))
        unchanged(daemon, before, "what all of that left")


def answered_until(daemon, fact):
    """How many others had an answer, one after the other, until fact() is true."""
    n, end = 0, time.monotonic() + perfd.PATIENCE
    while not fact():
        check(time.monotonic() < end, f"{n} others were answered, and it is not over")
        with daemon.client(stream=True):  # its hello
            n += 1
    return n


def program_with_names(path, n, length):
    """An ELF file with n functions, whose names are the same, and so long; it is no longer than that."""
    header, names = "<16sHHIQQQIHHHHHH", b"\0" + b"x" * length + b"\0"
    symbols = struct.pack("<IBBHQQ", 1, 2, 0, 1, 0, 1) * n
    at_names = 64 + 56
    at_symbols = (at_names + len(names) + 7) // 8 * 8
    at_sections = at_symbols + len(symbols)
    section = "<IIQQQQIIQQ"
    with open(path, "wb") as f:
        f.write(struct.pack(header, b"\x7fELF\2\1\1", 3, 62 if os.uname().machine == "x86_64" else 183, 1, 0, 64,
                            at_sections, 0, 64, 56, 1, 64, 3, 0))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 64, 64, 4096))
        f.write(names.ljust(at_symbols - at_names, b"\0") + symbols)
        f.write(struct.pack(section, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        f.write(struct.pack(section, 0, 2, 0, 0, at_symbols, len(symbols), 2, 0, 8, 24))
        f.write(struct.pack(section, 0, 3, 0, 0, at_names, len(names), 0, 0, 1, 0))


def test_large_program():
    """The symbols of a file of somebody's own, who has no privileges: main reads and compares them in turns."""
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before, path = state(daemon), f"{daemon.directory}/program"
        for length in 60_000, 10_000_000:  # the longer ones are nobody's
            program_with_names(path, 200_000, length)
            nobody.send(plan=pb.PlanRequest(yaml=f"version: 1\ngroups: {{g: {{events: ['uprobe:{path}:none']}}}}\n"))
            n = answered_until(daemon, lambda: select.select([nobody.socket], [], [], 0)[0])
            no = nobody.receive().response
            equal(no.reason, "unknown-symbol", no.message)
            print(f"  {n} others were answered before a function is not found, with names of {length} bytes")
            check(n >= 5, f"{n} others were answered while main looked for a function among names of {length} bytes")
        unchanged(daemon, before, "what plans left")


def test_many_leave_at_once():
    """A thousand subscriptions, each different, whose clients all go in one moment."""
    with Daemon("version: 1\naccess: { stream-mode: 0666 }\n") as daemon, daemon.client() as root, contextlib.ExitStack() as stack:
        add(root, {"event": "sched:sched_process_exec", "name": "exec"})
        before, clients = state(daemon), []
        for i in range(1000):
            clients.append(stack.enter_context(daemon.client(stream=True)))
            clients[-1].request(subscribe=pb.SubscribeRequest(events=["exec"], where=f"pid != {i + 2}"))
        equal(status(root).n_subscribers, 1000, "subscribers")
        for client in clients:
            client.socket.shutdown(socket.SHUT_RDWR)
        n = answered_until(daemon, lambda: status(root).n_subscribers == 0)
        print(f"  {n} others were answered until all had left")
        check(n >= 2, f"{n} others were answered until all had left")
        stack.close()
        unchanged(daemon, before, "what they left")


def ask_in_pieces(path, seconds, seed):
    """Dear requests behind one another whose answers are not read, cut in two at any place; and away in the middle."""
    dice = random.Random(seed)
    request = pb.Request(id=1, available=pb.AvailableRequest(glob="sched:*")).SerializeToString()
    frame = struct.pack("<I", len(request)) + request
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect(path)
            for _ in range(dice.randrange(1, 10)):
                cut = dice.randrange(len(frame))
                peer.sendall(frame * dice.randrange(1, 4) + frame[:cut])
                select.select([], [], [], dice.random() / 100)  # what perfd does meanwhile is the test
                peer.sendall(frame[cut:])
                if dice.randrange(8) == 0:
                    peer.shutdown(socket.SHUT_WR)
                    break


def test_requests_behind_a_dear_one():
    """What a client asks behind a request that has a turn waits for a turn of its own, however it comes."""
    with Daemon() as daemon, daemon.client() as control:
        context = multiprocessing.get_context("fork")
        attackers = [context.Process(target=ask_in_pieces, args=(daemon.stream, 4, seed)) for seed in range(4)]
        for attacker in attackers:
            attacker.start()
        rounds = 0
        while any(attacker.is_alive() for attacker in attackers):
            add(control, {"event": "sched:sched_switch", "name": "switches"})
            control.request(remove=pb.SelectRequest(names=["switches"]))
            rounds += 1
        for attacker in attackers:
            attacker.join()
        check(rounds > 0, "nothing was changed meanwhile")
        equal(control.request(status=pb.Empty()).daemon.n_events, 0, "events at the end")


if __name__ == "__main__":
    perfd.main(globals())
