#!/usr/bin/python3
"""What `perfctl watch` shows of a field is what the kernel's own line of the same occurrence shows, for every tracepoint that can
be fired here: each is on in a private instance of tracefs too, and what its print format gives for a field is compared.

Compared are numbers, in whatever base, texts, and names of values: __print_flags(), __print_symbolic(), FIELD ? "a" : "b". Not
compared is what a format computes from a field (major and minor number of a device, pages as bytes), what only the kernel can
tell (symbols of addresses, pointers that it hashes), names whose values the format does not tell, and IP addresses. Which events
were not fired here is printed. System calls have lines that the kernel does not make by their formats. Needs root."""
import collections
import fcntl
import mmap
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time

import perfd
from perfd import TRACING, Daemon, add, check, equal, pb

PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
INSTANCE = os.path.join(TRACING, "instances", f"perfd-test-print-{os.getpid()}")
NOT_BY_FORMAT = ("ftrace", "syscalls", "kprobes", "uprobes", "synthetic")
NEAR = 1e-3  # seconds at most between the two handlers of an occurrence, which an interrupt, or the host of this host, may part
MOST = 500  # samples of an event that are compared

CONVERSION = re.compile(r"%(?:%|[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|L|j|t)?(?:p[A-Za-z0-9]*|[diouxXcs]))")
LINE = re.compile(r"\s*.*-\d+\s+\[(\d+)\]\s+\S+\s+([\d.]+): (\w+): (.*)")
FIELD = re.compile(r"field:([^;]*?)(\w+)(?:\[[^\]]*\])?;")
PLAIN = re.compile(r"(?:\([\w \*]+\)\s*)*\(*(?:\([\w \*]+\)\s*)*REC->(\w+)\)*")
TEXT = re.compile(r"__get_(?:rel_)?str\((\w+)\)")
NAMES = re.compile(r"__print_(flags|symbolic)(?:_u64)?\((?:\([\w ]+\)\s*)*\(*REC->(\w+)\)*\s*,.*\)")
CHOICE = re.compile(r'REC->(\w+) \? "(\w+)" : "(\w+)"')
STATE = re.compile(r'\(REC->(\w+) & .*\? __print_flags\(.*: "R"')


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


# ---- loads -----------------------------------------------------------------------------------------------------------


def act_on_files(folder):
    path = os.path.join(folder, "file")
    with open(path, "wb") as f:
        f.write(b"x" * 300000)
        f.flush()
        os.fsync(f.fileno())
        f.truncate(1000)
    os.rename(path, path + "2")
    os.link(path + "2", path)
    os.symlink("nowhere", path + "l")
    os.mkdir(path + "d")
    os.rmdir(path + "d")
    fd = os.open(path, os.O_RDWR)
    os.posix_fallocate(fd, 0, 1 << 20)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.lockf(fd, fcntl.LOCK_EX)
    fcntl.lockf(fd, fcntl.LOCK_UN)
    with mmap.mmap(fd, 1000) as m:
        m[5] = m[0] + 1
        m.flush()
    os.close(fd)
    for name in (path, path + "2", path + "l"):
        os.unlink(name)
    os.sync()


def act_on_sockets():
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as server, socket.socket(family, socket.SOCK_DGRAM) as datagrams:
                server.bind((address, 0))
                server.listen()
                datagrams.bind((address, 0))
                datagrams.sendto(b"x", datagrams.getsockname())
                datagrams.recv(1)
                with socket.create_connection(server.getsockname()[:2]) as client:
                    accepted, _ = server.accept()
                    client.send(b"hello" * 1000)
                    accepted.recv(9999)
                    accepted.close()
            socket.create_connection((address, 1)).close()
        except OSError:
            pass  # nobody listens at port 1, and there may be no IPv6


def act_on_processes():
    for _ in range(2):
        subprocess.run(["/bin/true"], check=True)
    received = []
    before = [(number, signal.signal(number, lambda *_: received.append(1))) for number in (signal.SIGUSR1, signal.SIGALRM)]
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    perfd.wait_until(lambda: len(received) >= 2, "two signals")
    for number, handler in before:
        signal.signal(number, handler)
    cpus = os.sched_getaffinity(0)
    for cpu in sorted(cpus)[:2]:
        os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, cpus)
    os.sched_yield()
    with mmap.mmap(-1, 8 << 20) as m:
        m.write(b"a" * len(m))
        m.madvise(mmap.MADV_DONTNEED)
    epoll = select.epoll()
    epoll.poll(0.001)
    epoll.close()


def act():
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="perfd-print.") as folder:
        act_on_files(folder)
    act_on_sockets()
    act_on_processes()


# ---- formats ---------------------------------------------------------------------------------------------------------


def quoted_end(text):
    at = 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at


def arguments(text):
    found, depth, current, at = [], 0, "", 0
    while at < len(text):
        if text[at] == '"':
            end = at + quoted_end(text[at:]) + 1
            current, at = current + text[at:end], end
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if text[at] == "," and depth == 0:
            found, current = found + [current.strip()], ""
        else:
            current += text[at]
        at += 1
    return found + [current.strip()] if current.strip() else found


def numbered(names):
    """Whether every value of a list { VALUE, "NAME" } is told."""
    return not re.search(r"\{\s*[^,\"]*?[A-Z_]{3}[^,\"]*,", re.sub(r"\b\d+(UL|ULL|U|L)\b", "1", names).replace("1UL", "1"))


def shown(conversion, argument):
    """(field, how it is compared) of an argument; None: it is not compared."""
    if (m := STATE.match(argument)):
        return m[1], "name"
    if (m := CHOICE.fullmatch(argument)):
        return m[1], "choice"
    if (m := NAMES.fullmatch(argument)) and numbered(argument):
        return m[2], "flags" if m[1] == "flags" else "name"
    if conversion.endswith("s") and "p" not in conversion and (m := TEXT.fullmatch(argument) or PLAIN.fullmatch(argument)):
        return m[1], "text"
    if conversion[-1] in "dioxXu" and (m := PLAIN.fullmatch(argument)):
        return m[1], {"x": "16", "X": "16", "o": "8"}.get(conversion[-1], "10")
    return None


class Format:
    """.pattern matches the kernel's lines; .shown has for each of its groups what shown() gives."""

    def __init__(self, event):
        with open(os.path.join(TRACING, "events", event.replace(":", "/"), "format"), encoding="ascii") as f:
            text = f.read()
        types = {name: type_ for type_, name in FIELD.findall(text) if not name.startswith("common_")}
        self.fields = list(types)
        text = text[text.index("print fmt: ") + len("print fmt: "):].strip()
        end = quoted_end(text)
        form, rest = text[1:end], arguments(text[end + 1:].lstrip(" ,"))
        form = form.replace("\\n", " ").replace("\\t", "\t").replace('\\"', '"')
        pattern, at, self.shown = "", 0, []
        for m in CONVERSION.finditer(form):
            literal, at = form[at:m.start()], m.end()
            pattern += re.escape(literal)
            if m[0] == "%%":
                pattern += "%"
                continue
            rest = rest[m[0].count("*"):]
            argument, rest = (rest[0], rest[1:]) if rest else ("", [])
            if self.shown and not literal and pattern.endswith("(.*?)"):
                if not (self.shown[-1] and STATE.match(previous)):  # the "+" behind a state belongs to it
                    self.shown[-1] = None
            else:
                shows = shown(m[0], argument)
                is_elsewhere = shows and shows[1] == "text" and "*" in types.get(shows[0], "")  # only the kernel can read it
                self.shown.append(None if is_elsewhere else shows)
                pattern += "(.*?)"
            previous = argument
        self.pattern = re.compile((pattern + re.escape(form[at:])).rstrip("\\ ") + r"\s*", re.S)

    def values(self, text):
        """{field: text} of the last column of perfctl's line: "a=1 b=two words c=3"."""
        names = [name for name in self.fields if not name.startswith("__")]
        m = re.match(r"\s*" + " ".join(rf"{name}=(.*?)" for name in names) + r"(?: period=\d+)?$", text, re.S)
        return dict(zip(names, m.groups())) if m else {}


def number(text, base):
    try:
        return int(text, base) % (1 << 64)
    except ValueError:
        return None


def is_same(how, mine, kernel):
    if how in ("text", "name"):
        return mine == kernel or mine == f'"{kernel}"' or (how == "name" and number(mine, 0) == number(kernel, 0) is not None)
    if how == "flags":  # zero is nothing there
        return mine == kernel or (not kernel and number(mine, 0) == 0)
    if how == "choice":  # of 0 and 1; the kernel calls all others like 1
        return mine == kernel or (number(mine, 0) or 0) > 1
    ours = number(mine, 0)
    return ours is None or (ours - (number(kernel, int(how)) or 0)) % (1 << 32) == 0  # a name, of what is shown twice


# ---- the comparison --------------------------------------------------------------------------------------------------


def enable(events, text):
    for event in events:
        write(os.path.join(INSTANCE, "events", event.replace(":", "/"), "enable"), text)


def kernel_lines():
    """{name: [(time, cpu, text)]} of what is in the instance, which is then empty."""
    found = collections.defaultdict(list)
    with open(os.path.join(INSTANCE, "trace"), encoding="utf-8", errors="replace") as f:
        for m in filter(None, map(LINE.match, f)):
            found[m[3]].append((float(m[2]), int(m[1]), m[4]))
    write(os.path.join(INSTANCE, "trace"), "")
    return found


def watch(daemon, events):
    """{event: [(time, cpu, fields)]} while the loads run and the events are on in the instance too."""
    with tempfile.TemporaryFile() as out:
        command = [PERFCTL, "--socket", daemon.stream, "watch", "--time", "clock", "--queue", "64MiB", *events]
        with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as process:
            perfd.wait_until(lambda: daemon.status().n_subscribers > 0, "the stream")
            enable(events, "1")
            begin = time.monotonic()
            act()
            end = time.monotonic()
            enable(events, "0")
            process.send_signal(signal.SIGINT)
            process.wait(perfd.PATIENCE)
        out.seek(0)
        lines = [line.decode("utf-8", "replace").rstrip("\n").split("\t", 4) for line in out]
    found = collections.defaultdict(list)
    for line in lines[1:]:
        if len(line) == 5 and begin < float(line[0]) < end:
            found[line[3]].append((float(line[0]), int(line[1]), line[4]))
    return found


def differences(form, values, line):
    m = form.pattern.fullmatch(line)
    if not m:
        return None
    pairs = [(shows, text) for shows, text in zip(form.shown, m.groups()) if shows and shows[0] in values]
    return [(shows, values[shows[0]], text) for shows, text in pairs if not is_same(shows[1], values[shows[0]], text)]


def compare(event, mine, lines, since, count):
    """What differs, of samples of which no line near them on their CPU says the same. since: {cpu: time of the oldest line}"""
    form, wrong = Format(event), []
    for time_, cpu, text in [sample for sample in mine if sample[0] > since.get(sample[1], 0)][:MOST]:
        near = [line for line in lines if line[1] == cpu and abs(line[0] - time_) < NEAR]
        values = form.values(text)
        found = [d for d in (differences(form, values, line[2]) for line in near) if d is not None]
        if not found or not values:
            continue
        count[event] += sum(1 for shows in form.shown if shows and shows[0] in values)
        if all(found):
            wrong.append((event, min(found, key=len)))
    return wrong


def is_added(client, event):
    """Some can not be sampled, because they happen in what perf itself does."""
    try:
        return bool(add(client, event))
    except perfd.Refused as no:
        equal(no.response.reason, "not-sampled", f"why {event} was refused")
        return False


def compare_system(system, count, unfired):
    folder = os.path.join(TRACING, "events", system)
    names = [name for name in sorted(os.listdir(folder)) if os.path.exists(os.path.join(folder, name, "id"))]
    write(os.path.join(INSTANCE, "events", system, "enable"), "1")
    act()
    write(os.path.join(INSTANCE, "events", system, "enable"), "0")
    fired = kernel_lines()
    unfired += [f"{system}:{name}" for name in names if name not in fired]
    events = [f"{system}:{name}" for name in names if name in fired]
    if not events:
        return []
    with Daemon("version: 1\nrings: { size: 8MiB }\n") as daemon, daemon.client() as client:
        events = [event for event in events if is_added(client, event)]
        mine = watch(daemon, events) if events else {}
    lines, since = kernel_lines(), {}
    for time_, cpu, _ in (line for some in lines.values() for line in some):
        since[cpu] = min(time_, since.get(cpu, time_))
    return [w for event in events for w in compare(event, mine[event], lines[event.split(":")[1]], since, count)]


def test_every_tracepoint():
    count, unfired, wrong = collections.Counter(), [], []
    systems = [name for name in sorted(os.listdir(os.path.join(TRACING, "events")))
               if os.path.exists(os.path.join(TRACING, "events", name, "enable")) and not name.startswith((*NOT_BY_FORMAT, "perfd"))]
    os.mkdir(INSTANCE)
    try:
        write(os.path.join(INSTANCE, "trace_clock"), "mono")
        write(os.path.join(INSTANCE, "buffer_size_kb"), "16384")
        for system in systems:
            wrong += compare_system(system, count, unfired)
    finally:
        write(os.path.join(INSTANCE, "tracing_on"), "0")
        os.rmdir(INSTANCE)
    print(f"  {sum(count.values())} values of {sum(1 for n in count.values() if n)} tracepoints; {len(unfired)} were not fired:")
    print("  " + " ".join(unfired))
    kinds = {(event, shows[0]): (shows[1], mine, kernel) for event, found in wrong for shows, mine, kernel in found}
    equal(kinds, {}, "what differs")
    for event in ("sched:sched_switch", "sched:sched_process_exit", "irq:softirq_entry"):
        check(count[event] > 0, f"nothing of {event} was compared")


if __name__ == "__main__":
    perfd.main(globals())
