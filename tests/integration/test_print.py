#!/usr/bin/python3
"""What `perfctl watch` shows of a field is what the kernel's own line of the same occurrence shows, for every tracepoint that can
be fired here: each is on in a private instance of tracefs too, and what its print format gives for a field is compared.

Where a field is shown at several places, one of them has to be what perfctl shows, and one with names if there is any. Only the
spaces of a width, and a base that the format leaves out, may differ. What has a reason to differ is printed with it: names whose
values the format does not tell, what is calculated under another name, and what only the kernel can read or calculate. Which events were not fired
here is printed. System calls have lines that the kernel does not make by their formats. Needs root."""
import bisect
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
NEAR = 1e-3, 4e-3  # seconds between the two handlers of an occurrence; an interrupt, or the host of this host, may part them
MOST = 60   # samples of an event that are compared
AROUND = 8  # lines of its CPU that may be that of a sample, on each side

CONVERSION = re.compile(r"%(?:%|[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|L|j|t)?(?:p[A-Za-z0-9]*|[diouxXcs]))")
LINE = re.compile(r"\s*.*-\d+\s+\[(\d+)\]\s+\S+\s+([\d.]+): (\w+): (.*)")
FIELD = re.compile(r"field:([^;]*?)(\w+)(?:\[[^\]]*\])?;")
MENTION = re.compile(r"REC->(\w+)|__get_\w+\((\w+)\)")
NAMES = re.compile(r"__print_(?:flags|symbolic)(?:_u64)?\(")
TEXTS = re.compile(r'"(?:[^"\\]|\\.)*"')
CASTS = re.compile(r"\((?:unsigned |signed |const |struct )*\w+(?: \*+| (?:long|int|short|char)(?: int)?)?\)(?=[\s(]*(?:\(|REC|__get))")
CALCULATED = re.compile(r"<<|>>|[-+/^~!<>=]|\*|(?<!&)&(?!&)")


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


def mentioned(argument):
    return {a or b for a, b in MENTION.findall(TEXTS.sub("", argument))}


class Shown:
    """What one place of a line shows: conversions without anything between them."""

    def __init__(self, literal, conversion, argument):
        self.literal, self.conversions, self.arguments = literal, [conversion], [argument]

    def fields(self):
        return set.intersection(*map(mentioned, self.arguments))

    def has_names(self):
        return any(map(NAMES.search, self.arguments))

    def reason(self, field, type_):
        """Why the field's own value may be shown where the line has this; None: there is no reason."""
        if self.has_names() and not all(map(numbered, self.arguments)):
            return "its names have no values in the format"
        if self.conversions[0].endswith("s") and "*" in type_ and any(a.strip() == f"REC->{field}" for a in self.arguments):
            return "the text is in the kernel's memory"
        if any("({" in a or "jiffies" in a or "vmemmap_base" in a for a in self.arguments):
            return "calculated with what only the kernel has"
        if any(len(mentioned(a)) > 1 for a in self.arguments):
            return "calculated from several fields"
        plain = NAMES.sub("", CASTS.sub("", TEXTS.sub("", self.arguments[0]).replace("->", ".")))
        if len(self.arguments) == 1 and not self.has_names() and CALCULATED.search(plain):
            return "calculated, under another name"
        return None


class Format:
    """.pattern matches the kernel's lines; .shown has a Shown for each of its groups."""

    def __init__(self, event):
        with open(os.path.join(TRACING, "events", event.replace(":", "/"), "format"), encoding="ascii") as f:
            text = f.read()
        self.types = {name: type_ for type_, name in FIELD.findall(text) if not name.startswith("common_")}
        self.fields = list(self.types)
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
                self.shown[-1].conversions.append(m[0])
                self.shown[-1].arguments.append(argument)
            else:
                self.shown.append(Shown(literal, m[0], argument))
                pattern += "(.*?)"
        self.pattern = re.compile((pattern + re.escape(form[at:])).rstrip("\\ ") + r"\s*", re.S)

    def places(self, field):
        """[(first, last)] of the groups that show the field, several of them as one if nothing else is between."""
        found, groups = [], [i for i, shown in enumerate(self.shown) if field in shown.fields()]
        for i in groups:
            if found and found[-1][1] == i - 1 and re.fullmatch("[,:.+/;-]*(?:0x)?", self.shown[i].literal):
                found[-1] = (found[-1][0], i)
            else:
                found.append((i, i))
        named = [(first, last) for first, last in found if any(shown.has_names() for shown in self.shown[first:last + 1])]
        return named or found

    def values(self, text):
        """{field: text} of the last column of perfctl's line: "a=1 b=two words c=3"."""
        names = [name for name in self.fields if not name.startswith("__")]
        m = re.match(r"\s*" + " ".join(rf"{name}=(.*?)" for name in names) + r"(?: period=\d+)?$", text, re.S)
        return dict(zip(names, m.groups())) if m else {}


def is_same(mine, kernel, conversion):
    """A base is always said, and a width is none; an empty text is said by the number."""
    mine, kernel = mine.strip(), kernel.strip()
    if mine in (kernel, f'"{kernel}"') or (not kernel and re.fullmatch(r"\d+|0x[0-9a-f]+", mine)):
        return True
    if conversion[-1] in "xX":
        return mine.removeprefix("0x") == kernel.removeprefix("0x").lower()
    if conversion[-1] == "o":
        return mine.lstrip("0") == kernel.lstrip("0")
    if conversion.endswith("p"):
        return re.fullmatch("0x[0-9a-f]+", mine) and (kernel == "(nil)" and mine == "0x0" or int(mine, 16) == int(kernel, 16))
    return False


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
    """[(field, mine, [the kernel's])] of a line; None: it is not one of this format."""
    m = form.pattern.fullmatch(line)
    if not m:
        return None
    found = []
    for field, mine in values.items():
        places = form.places(field)
        texts = [line[m.start(first + 1):m.end(last + 1)] for first, last in places]
        if mine.startswith("{") and len(texts) == mine.count(",") + 1 > 1:  # its elements, one by one
            conversion = form.shown[places[0][0]].conversions[0]
            if all(is_same(a, b, conversion) for a, b in zip(mine[1:-1].split(","), texts)):
                continue
            texts = texts[:1]
        if texts and not any(is_same(mine, text, form.shown[first].conversions[0]) for text, (first, _) in zip(texts, places)):
            found.append((field, mine, texts))
    return found


def reason(event, form, field):
    shown = [form.shown[i] for first, last in form.places(field) for i in range(first, last + 1)]
    return UNSET.get((event, field)) or next(filter(None, (one.reason(field, form.types[field]) for one in shown)), None)


def lines_around(lines, time_, most):
    """Those of one CPU, in their order, that lie nearest to this time, and not further from it."""
    at = bisect.bisect(lines, (time_,))
    return [line for line in lines[max(at - AROUND, 0):at + AROUND] if abs(line[0] - time_) < most]


def compare(event, mine, lines, since, result):
    """Of each sample the line near it on its CPU that differs least. since: {cpu: time of the oldest line}"""
    form, by_cpu = Format(event), collections.defaultdict(list)
    for line in sorted(lines):
        by_cpu[line[1]].append(line)
    for time_, cpu, text in [sample for sample in mine if sample[0] > since.get(sample[1], 0)][:MOST]:
        values, best = form.values(text), None
        for most in NEAR:
            if best is None or any(why is None for why, _, _ in best.values()):
                near = lines_around(by_cpu[cpu], time_, most)
                found = [d for d in (differences(form, values, line[2]) for line in near) if d is not None]
                found = [{f: (reason(event, form, f), m, k) for f, m, k in d} for d in found]
                best = min(found, key=lambda d: (sum(why is None for why, _, _ in d.values()), len(d)), default=best)
        if not values or best is None:
            continue
        for field in values:
            if field in best:
                (result.known if best[field][0] else result.wrong)[event, field] = best[field]
                result.n_wrong[event, field] += not best[field][0]
            elif form.places(field):
                result.equal[event, field] += 1


# {(event, field): why} of what the kernel itself does not fill in: each of its two records has other bytes there
UNSET = {("fib:fib_table_lookup", field): "not filled in by the kernel" for field in ("gw4", "gw6")}


class Result:
    def __init__(self):
        self.equal, self.n_wrong, self.known, self.wrong, self.unfired = collections.Counter(), collections.Counter(), {}, {}, []

    def settle(self):
        """Beside other load the line of somebody else's occurrence is sometimes taken for a sample's: one in ten may be."""
        self.wrong = {key: why for key, why in self.wrong.items() if self.n_wrong[key] > max(2, self.equal[key] // 10)}

    def events(self):
        return {event for event, _ in [*self.equal, *self.known, *self.wrong]}


def is_added(client, event):
    """Some cannot be sampled, because they happen in what perf itself does."""
    try:
        return bool(add(client, event))
    except perfd.Refused as no:
        equal(no.response.reason, "not-sampled", f"why {event} was refused")
        return False


def compare_system(system, result):
    folder = os.path.join(TRACING, "events", system)
    names = [name for name in sorted(os.listdir(folder)) if os.path.exists(os.path.join(folder, name, "id"))]
    write(os.path.join(INSTANCE, "events", system, "enable"), "1")
    act()
    write(os.path.join(INSTANCE, "events", system, "enable"), "0")
    fired = kernel_lines()
    result.unfired += [f"{system}:{name}" for name in names if name not in fired]
    events = [f"{system}:{name}" for name in names if name in fired]
    if not events:
        return
    with Daemon("version: 1\nrings: { size: 8MiB }\n") as daemon, daemon.client() as client:
        events = [event for event in events if is_added(client, event)]
        mine = watch(daemon, events) if events else {}
    lines, since = kernel_lines(), {}
    for time_, cpu, _ in (line for some in lines.values() for line in some):
        since[cpu] = min(time_, since.get(cpu, time_))
    for event in events:
        compare(event, mine[event], lines[event.split(":")[1]], since, result)


def test_every_tracepoint():
    result = Result()
    systems = [name for name in sorted(set(os.listdir(os.path.join(TRACING, "events"))))
               if not name.startswith((*NOT_BY_FORMAT, "perfd")) and os.path.exists(os.path.join(TRACING, "events", name, "enable"))]
    os.mkdir(INSTANCE)
    try:
        write(os.path.join(INSTANCE, "trace_clock"), "mono")
        write(os.path.join(INSTANCE, "buffer_size_kb"), "16384")
        write(os.path.join(INSTANCE, "options", "hash-ptr"), "0")
        for system in systems:
            compare_system(system, result)
    finally:
        write(os.path.join(INSTANCE, "tracing_on"), "0")
        os.rmdir(INSTANCE)
    result.settle()
    events = result.events()
    print(f"  {sum(result.equal.values())} values of {len(result.equal)} fields of {len(events)} tracepoints are equal; "
          f"{len(events) - len({event for event, _ in result.known})} tracepoints are so in all; what differs:")
    for (event, field), (reason, mine, kernel) in sorted(result.known.items()):
        print(f"  {event} {field}: {reason}: {mine[:60]} for {kernel[0][:60]}")
    unfired = collections.Counter(event.split(":")[0] for event in result.unfired)
    print(f"  {len(result.unfired)} were not fired: {', '.join(f'{n} of {system}' for system, n in unfired.items())}")
    equal(result.wrong, {}, "what differs")
    for event, field in (("sched:sched_switch", "prev_state"), ("sched:sched_process_exit", "group_dead"), ("irq:softirq_entry", "vec")):
        check(result.equal[event, field] > 0, f"{field} of {event} was not compared")


if __name__ == "__main__":
    perfd.main(globals())
