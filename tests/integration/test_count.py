#!/usr/bin/python3
"""`perfctl count` adds up what happens a known number of times: by fields, threads and processes, in histograms, in intervals, and with
more keys than it keeps. Needs root."""
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_control import PERFCTL, perfctl
from test_promises import CPUS
from test_sources import FIRE, GETPPID, Fire
from test_watch_added import names
from test_watch_loss import SMALL, stopped

CALLS = "raw_syscalls:sys_enter"
KEYS_MAX = 65_536  # client/perfctl/count/map.h
LARGE = "version: 1\nrings: { size: 16MiB }\n"  # for all of them, however slow perfd is


class Counted:
    """What it printed: .rows and .others of its tables, .intervals; .end and .ledger behind them."""

    def __init__(self, lines, err, status):
        rows = [json.loads(line) for line in lines]
        self.rows = [row for row in rows if row["kind"] == "count"]
        self.others = [row for row in rows if row["kind"] == "others"]
        self.intervals = [row for row in rows if row["kind"] == "interval"]
        self.end, = [row for row in rows if row["kind"] == "end"]
        self.ledger = rows[rows.index(self.end) + 1:]
        self.err, self.status = err, status
        self.total = sum(row["count"] for row in self.rows + self.others)

    def by(self, *columns):
        """{value, or tuple of values: count}; no key has two rows, unless there are several tables."""
        found = {}
        for row in self.rows:
            key = tuple(row["key"][column] for column in columns)
            check(key not in found or len(self.intervals) > 1, f"two rows of {key}")
            found[key] = found.get(key, 0) + row["count"]
        return {key[0] if len(columns) == 1 else key: n for key, n in found.items()}

    def check_sums(self, process):
        """Whatever the daemon sent or dropped for it, it has counted or said. Records of the ring that tell of losses are no samples."""
        records = self.end["received"] - self.end["counted"]
        check(records == 0 or self.end["lost"], f"{records} items that are no samples, with {self.end}")
        own, = [row for row in self.ledger if row["kind"] == "subscriber" and f"pid {process.pid}," in row["peer"]]
        equal(self.total, self.end["counted"], f"the sum of all counts, with {self.end}")
        equal(self.total + records + sum(own["dropped"].values()), own["matched"], f"counts and losses, with {own}")
        check(all(row.get("balanced", True) for row in self.ledger), self.ledger)


@contextlib.contextmanager
def counting(daemon, *words):
    """It runs, and its stream has begun; finish() tells what it counted."""
    with subprocess.Popen([PERFCTL, "--socket", daemon.control, "--json", "count", *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            check(select.select([process.stdout], [], [], perfd.PATIENCE)[0], f"count {words} says nothing")
            equal(json.loads(process.stdout.readline())["kind"], "start", "the first line")
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def finish(process, status=0, kind=signal.SIGINT):
    process.send_signal(kind)
    out, err = process.communicate(timeout=perfd.PATIENCE)
    equal(process.returncode, status, f"its status, behind {err}")
    counted = Counted(out.decode().splitlines(), err.decode(), process.returncode)
    counted.check_sums(process)
    return counted


def fires(*loads):
    """Options for an event that only their calls of getppid(2) are."""
    return "--pid", ",".join(str(load.pid) for load in loads), "--filter", f"id == {GETPPID}"


def test_keys():
    """By what a sample has and by fields, alone and together; the event is added for it, and gone afterwards."""
    with Daemon() as daemon, Fire() as one, Fire() as two:
        expected = {one.pid: 300, two.pid: 70}
        for columns, rows in ((("pid",), expected),
                              (("comm",), {"fire": 370}),
                              (("id",), {GETPPID: 370}),
                              (("tid", "id", "comm"), {(pid, GETPPID, "fire"): n for pid, n in expected.items()}),
                              (("exe", "uid"), {(os.path.realpath(FIRE), os.getuid()): 370})):
            with counting(daemon, CALLS, *fires(one, two), "--by", ",".join(columns)) as process:
                equal(names(daemon), [CALLS], "what runs meanwhile")
                one.fire("syscalls", 300)
                two.fire("syscalls", 70)
                counted = finish(process, kind=signal.SIGTERM if columns == ("pid",) else signal.SIGINT)
            equal(counted.by(*columns), rows, f"by {columns}")
            equal([row["count"] for row in counted.rows], sorted(rows.values(), reverse=True), "the largest first")
            wait_until(lambda: names(daemon) == [], "what was added to go")


def test_events():
    """Without --by a row for each event, of those that run and that are added; what --where leaves out is not counted."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        add(client, {"event": CALLS, "name": "mine", "filter": f"id == {GETPPID}", "target": fire.target})
        with counting(daemon, "mine", f"uprobe:{FIRE}:fire_call", "--where", f"sample.pid == {fire.pid}") as process:
            fire.fire("syscalls", 100)
            fire.fire("calls", 50)
            counted = finish(process)
        equal(counted.by("event"), {"mine": 100, f"uprobe:{FIRE}:fire_call": 50}, "by event")
        with counting(daemon, "mine", "--where", f"id != {GETPPID}", "--by", "id") as process:
            fire.fire("syscalls", 100)
            counted = finish(process)
        equal((counted.rows, counted.end["counted"]), ([], 0), "what is left of none")
        wait_until(lambda: names(daemon) == ["mine"], "what was added to go")


def test_names_of_short_lives():
    """Whose samples they are of processes that fork on one CPU and execute on another, by its name, program and condition."""
    shell, true = (perfd.private_copy(path) for path in ("/bin/sh", "/bin/true"))
    name = "a-shell-of-tests"[:15]
    shell = shutil.move(shell, os.path.join(os.path.dirname(shell), name))
    loop = [shell, "-c", f"i=0; while [ $i -lt 200 ]; do {true}; i=$((i+1)); done"]
    with Daemon() as daemon:
        for words, expected in ((("--by", "comm"), {name: 200}), (("--by", "exe"), {shell: 200}),
                                (("--by", "uid", "--where", f'comm == "{name}"'), {os.getuid(): 200}),
                                (("--where", f'exe ~ "*/{name}" && comm ~ "a-shell*"'), {"syscalls:sys_enter_execve": 200})):
            process = perfctl(daemon, "--json", "count", "syscalls:sys_enter_execve", *words, "--", *loop)
            equal(process.returncode, 0, f"its status, behind {process.stderr}")
            counted = Counted(process.stdout.splitlines(), "", 0)
            equal(counted.by(words[1] if words[0] == "--by" else "event"), expected, f"counted {words}")


def buckets(numbers):
    """[(from, to, count)] of a histogram of these."""
    found = {}
    for number in numbers:
        power = 1 << max(number.bit_length() - 1, 0)
        ends = (None, 0) if number < 0 else (number, number + 1) if number < 2 else (power, 2 * power)
        found[ends] = found.get(ends, 0) + 1
    return sorted(((*ends, n) for ends, n in found.items()), key=lambda row: -1 if row[0] is None else row[0])


def histogram(row):
    return [(part["from"], part["to"], part["count"]) for part in row["hist"]]


@contextlib.contextmanager
def in_memory():
    """The fd of a file; open() would look for its place."""
    fd = os.memfd_create("test")
    try:
        yield fd
    finally:
        os.close(fd)


def test_histograms():
    """Of an argument of a probe, and of results below 0, of 0 and above, by key."""
    with Daemon() as daemon, Fire() as fire:
        with counting(daemon, f"uprobe:{FIRE}:fire_call", "--args", "number=$arg1:s64", "--by", "comm", "--hist", "number") as process:
            fire.fire("calls", 1000)
            counted = finish(process)
        row, = counted.rows
        equal((row["key"], row["count"], histogram(row)), ({"comm": "fire"}, 1000, buckets(range(1000))), "of an argument")

        results = [0, 1, 2, 3, 4, 1000, 1 << 40]
        with counting(daemon, "syscalls:sys_exit_lseek", "--pid", str(os.getpid()), "--by", "pid", "--hist", "ret") as process, \
                in_memory() as f:
            for result in results:
                equal(os.lseek(f, result, os.SEEK_SET), result, "a place in a file")
            for _ in range(5):
                with contextlib.suppress(OSError):
                    os.lseek(-1, 0, os.SEEK_SET)
            counted = finish(process)
        row, = counted.rows
        equal((row["count"], histogram(row)), (12, buckets(results + [-9] * 5)), "of results")


def test_functions():
    """Sums, averages and both ends: of an argument, of results below 0, and of numbers whose sum has more than 64 bits."""
    every = [word for name in ("sum", "avg", "min", "max") for word in (f"--{name}", "number")]
    with Daemon() as daemon, Fire() as fire:
        with counting(daemon, f"uprobe:{FIRE}:fire_call", "--args", "number=$arg1:s64", "--by", "comm", *every) as process:
            fire.fire("calls", 1000)
            row, = finish(process).rows
        equal([row[key] for key in ("count", "sum", "avg", "min", "max")], [1000, 499_500, 499.5, 0, 999], "of an argument")

        with counting(daemon, "syscalls:sys_exit_lseek", "--pid", str(os.getpid()), "--by", "pid", "--sum", "ret", "--min", "ret",
                      "--hist", "ret") as process, in_memory() as f:
            os.lseek(f, 4, os.SEEK_SET)
            for _ in range(5):
                with contextlib.suppress(OSError):
                    os.lseek(-1, 0, os.SEEK_SET)
            row, = finish(process).rows
        equal((row["sum"], row["min"], histogram(row)), (4 - 5 * 9, -9, buckets([4] + [-9] * 5)), "of results")

        with counting(daemon, f"uprobe:{FIRE}:fire_call", "syscalls:sys_enter_getppid", "--pid", str(fire.pid), "--by", "event", "--sum",
                      "__syscall_nr") as process:
            fire.fire("calls", 5)
            fire.fire("syscalls", 7)
            counted = finish(process)
        equal([(row["key"]["event"], row["sum"]) for row in counted.rows],
              [("syscalls:sys_enter_getppid", 7 * GETPPID), (f"uprobe:{FIRE}:fire_call", None)], "of an event without the field, at the end")

        perfctl(daemon, "add", "external:big", "--field", "who:text", "--field", "n:u64", "--field", "s:s64")
        with counting(daemon, "external:big", "--by", "who", "--sum", "n", "--min", "s", "--max", "s") as process:
            for who, n, signed in (("a", 1, -(1 << 63)), ("b", (1 << 64) - 1, -1), ("b", (1 << 64) - 1, 5), ("b", (1 << 64) - 1, 4)):
                perfctl(daemon, "emit", "external:big", f"who={who}", f"n={n}", f"s={signed}")
            counted = finish(process)
        equal([(row["key"]["who"], row["sum"], row["min"], row["max"]) for row in counted.rows],
              [("b", 3 * ((1 << 64) - 1), -1, 5), ("a", 1, -(1 << 63), -(1 << 63))], "of large numbers, the largest sum first")


def test_intervals():
    """Each has what came in it, and nothing else: together it is all."""
    with Daemon() as daemon, Fire() as fire:
        with counting(daemon, CALLS, *fires(fire), "--by", "pid,cpu", "--interval", "50ms") as process:
            for _ in range(20):
                fire.fire("syscalls", 5000)
            counted = finish(process)
        check(counted.intervals, "no interval at all")
        equal(counted.total, 100_000, "the sum of all intervals")
        equal(sum(row["counted"] for row in counted.intervals), 100_000, "what the intervals say of themselves")
        equal({pid for pid, _ in counted.by("pid", "cpu")}, {fire.pid}, "whose they are")


def test_many_keys():
    """70,000 texts: as many as there is room for are counted apart, each once, the others together, which is said once."""
    n = 70_000
    with Daemon(config=LARGE) as daemon, Fire() as fire:
        with counting(daemon, f"uprobe:{FIRE}:fire_call", "--args", "text=+0($arg2):string", "--by", "text", "--queue", "64MiB") as process:
            fire.fire("calls", n)
            counted = finish(process)
        texts = counted.by("text")
        equal((len(texts), set(texts.values())), (KEYS_MAX, {1}), "keys")
        check(set(texts) <= {f"text {i}" for i in range(n)}, "texts that nobody passed")
        equal([row["count"] for row in counted.others], [n - KEYS_MAX], "of others")
        equal((counted.err.count("(others)"), counted.total), (1, n), "what is said, and the sum")


def test_losses():
    """What the ring had no room for is said, and is what is missing; the status says so, unless that is allowed."""
    for options, status in (((), 4), (("--allow-loss",), 0)):
        with Daemon(config=SMALL) as daemon, daemon.client() as client, Workload("syscalls", 50_000, cpus=CPUS) as load:
            add(client, {"event": "syscalls:sys_enter_getppid", "name": "calls", "target": pb.Target(pids=load.pids)})
            with counting(daemon, "calls", "--by", "pid", *options) as process:
                with stopped(daemon):
                    load.go()
                    load.done()
                counted = finish(process, status)
            lost = counted.end["lost"]["kernel_ring"]
            check(0 < lost, counted.end)
            equal(counted.total + lost, sum(load.counts), f"calls, with {counted.end}")
            check(f"kernel_ring {lost}" in counted.err, counted.err)
            equal(set(counted.by("pid")), set(load.pids), "whose they are")
            load.exit()


def test_places():
    """What samples of software events have, by the names of --where; of the kernel's addresses text says the function too."""
    spec = {"event": "page-faults", "period": 1}
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        add(client, {**spec, "name": "faults", "target": fire.target}, {"event": CALLS, "name": "calls", "target": fire.target})
        with counting(daemon, "faults", "--by", "address,period", "--where", "address == addr && sample.addr > 0") as process:
            fire.fire("syscalls", 10)
            fire.fire("faults", 20)
            counted = finish(process)
        check(len(counted.rows) >= 20, counted.rows)
        for row in counted.rows:
            check(re.fullmatch("0x[0-9a-f]+", row["key"]["address"]) and row["key"]["period"] == 1, row)
        with counting(daemon, "calls", "--by", "ip,addr", "--where", f"id == {GETPPID}") as process:
            fire.fire("syscalls", 10)
            counted = finish(process)
        equal(counted.by("ip", "addr"), {(None, None): 10}, "of a tracepoint")
        done = perfctl(daemon, "count", "cpu-clock", "--by", "ip", "--attr", "exclude-user=true", "--frequency", "500", "--for", "300ms")
        rows = [line.split("\t")[0] for line in done.stdout.splitlines()]
        check(rows and all(re.fullmatch(r"0x[0-9a-f]{16} [\w.]+\+0x[0-9a-f]+( \[\w+\])?", row) for row in rows), rows)


def test_tables():
    """For people and cut(1): the rows, what --top leaves out, and one line on stderr."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        add(client, {"event": CALLS, "name": "calls", "filter": f"id == {GETPPID}", "target": fire.target})
        with subprocess.Popen([PERFCTL, "--socket", daemon.control, "count", "calls", "--by", "comm,id", "--hist", "id"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wait_until(lambda: daemon.status().n_subscribers == 1, "the stream")
            fire.fire("syscalls", 123)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=perfd.PATIENCE)
        power = 1 << GETPPID.bit_length() - 1
        equal(out, f"fire\t{GETPPID}\t123\n\t[{power}, {2 * power})\t123\n", "the table")
        equal((err, process.returncode), ("\n123 samples, nothing lost; stopped\n", 0), "what is said")


def test_what_is_only_counted():
    """Its counts are no samples: that is said, and where they are, beside what is sampled; on no terminal, and with --json."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": "{task-clock,page-faults}", "name": "grp", "interval": 500_000_000}, {"event": CALLS, "name": "sampled"})
        said = "perfctl: count: grp has no samples: it is only counted, every 500.0 ms, and `perfctl watch 'grp'` shows its counts\n"
        for words in ["grp"], ["--json", "grp", "sampled"]:
            done = perfctl(daemon, "count", *words, "--for", "10ms")
            equal(done.stderr.count("has no samples"), 1, f"how often it is said with {words}")
            check(done.stderr.startswith(said), done.stderr)
        check("no samples" not in perfctl(daemon, "count", "sampled", "--for", "10ms").stderr, "of what is sampled")


def test_a_file():
    """The table, or the documents, with and without a command; what was in it is gone. Messages stay on stderr."""
    with Daemon() as daemon:
        path = os.path.join(daemon.directory, "table")
        for options, command in ([], []), ([], ["sh", "-c", "echo mine"]), (["--json"], ["sh", "-c", "echo mine"]):
            with open(path, "w", encoding="ascii") as f:
                f.write("old\n" * 100)
            words = ["page-faults", "-c", "1", "--for", "5s"] if command else ["sched:sched_process_exec", "--for", "1ms"]
            done = perfctl(daemon, "count", "-o", path, *options, *words, *(["--", *command] if command else []))
            equal(done.stdout, "mine\n" if command else "", f"stdout of {options} {command}")
            check(options or done.stderr.endswith("lost; stopped\n") and "page-faults\t" not in done.stderr, done.stderr)
            with open(path, encoding="ascii") as f:
                text = f.read()
            check("old" not in text, text)
            if options:
                equal(json.loads(text.splitlines()[0])["kind"], "start", "the first document")
            elif command:
                check(text.startswith("page-faults\t"), text)
        os.unlink(path)
        no = perfctl(daemon, "count", "-o", f"{path}/x", "cs", "--for", "1ms", status=1)
        equal(no.stderr, f"perfctl: count: -o: {path}/x: No such file or directory\n", "a file that cannot be")
        no = perfctl(daemon, "count", "-o", path, "cs", "--live", status=2)
        check("--live and -o exclude each other" in no.stderr and not os.path.exists(path), no)


def test_results_and_ties():
    """Results of a system call are decimal, as are their extremes and in `watch`; of equal counts the smaller number comes first."""
    seeker = ("import os, sys\nf = os.memfd_create('places')\nprint(os.getpid(), flush=True)\nsys.stdin.readline()\n"
              "for fd, place in (f, 4096), (f, 2), (-1, 0):\n    try: os.lseek(fd, place, os.SEEK_SET)\n    except OSError: pass\n"
              "print('done', flush=True)\nsys.stdin.readline()\n")
    with Daemon() as daemon, Fire() as fire, perfd.Line([sys.executable, "-c", seeker]) as line:
        me = "--pid", line.hear()[0]
        with subprocess.Popen([PERFCTL, "--socket", daemon.control, "count", "syscalls:sys_exit_lseek", *me, "--by", "ret", "--min", "ret"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process, \
                subprocess.Popen([PERFCTL, "--socket", daemon.control, "watch", "syscalls:sys_exit_lseek", *me, "--count", "3"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            wait_until(lambda: daemon.status().n_subscribers == 2, "the streams")
            line.say("seek")
            line.hear()
            process.send_signal(signal.SIGINT)
            equal(process.communicate(timeout=perfd.PATIENCE)[0], "4096\t1\t4096\n2\t1\t2\n-9\t1\t-9\n", "the table")
            out = watch.communicate(timeout=perfd.PATIENCE)[0]
            equal(re.findall(r"\bret=(\S+)", out), ["4096", "2", "-9"], f"what watch shows, {out!r}")
        places = 0x7f4a97c4d510, 0x15e0550, 0x3e029560
        with counting(daemon, f"uprobe:{FIRE}:fire_call", "--args", "at=$arg1:x64", "--by", "at") as process:
            fire.fire("calls", 32)
            rows = finish(process).rows
        equal([row["key"]["at"] for row in rows], list(range(32)), "hexadecimal keys of equal counts")
        perfctl(daemon, "add", "external:at", "--field", "at:u64", "--field", "who:text")
        with counting(daemon, "external:at", "--by", "at") as process:
            for place in places:
                perfctl(daemon, "emit", "external:at", f"at={place}", "who=x")
            equal([row["key"]["at"] for row in finish(process).rows], sorted(places), "large keys of equal counts")


def test_names_of_fields():
    """Where a part of each sample is also a field of an event, that is said: of all events, of some, and not with sample.NAME."""
    def said(*words):
        return [line for line in perfctl(daemon, "count", *words, "--for", "1ms", "--allow-loss").stderr.splitlines() if "--by" in line]
    with Daemon() as daemon:
        wakeup, exec_ = "sched:sched_wakeup", "sched:sched_process_exec"
        equal(said(wakeup, "--by", "pid"),
              [f"perfctl: count: --by pid counts by the field pid of {wakeup}; --by sample.pid counts by the thread that the sample is of"], "of one")
        equal(said(wakeup, exec_, "page-faults", "--by", "pid"),
              [f"perfctl: count: --by pid counts by the field pid of {wakeup} and others that have one, and of events without such "
               "a field by the thread; --by sample.pid counts by the thread that the sample is of"], "of some")
        equal(said(wakeup, "--by", "sample.pid,cpu,prio"), [], "where it cannot be mistaken")


def test_refusals():
    with Daemon() as daemon:
        for words, said in ((("--by", "nosuch"), "has the fields id, args, and each sample has comm,"),
                            (("--by", "pit"), "did you mean 'pid'"),
                            (("--hist", "comm"), "none of the events has a field 'comm'"),
                            (("--top", "0"), "--top"), (("--json", "--top", "3"), "--top applies to tables")):
            no = perfctl(daemon, "count", CALLS, *words, status=2)
            check(said in no.stderr and not no.stdout, f"{words}: {no}")
        for option, noun in ("hist", "a histogram"), ("sum", "a sum"), ("avg", "an average"), ("max", "a maximum"):
            no = perfctl(daemon, "count", "sched:sched_switch", f"--{option}", "prev_comm", status=2)
            check(f"--{option}: 'prev_comm' of sched:sched_switch is a text, and {noun} is of numbers" in no.stderr, no)
        check("which events?" in perfctl(daemon, "count", "--by", "pid", status=2).stderr, "no event at all")
        check("no running event matches '*', and" in perfctl(daemon, "count", "*", status=1).stderr, "all of nothing")
        check("no tracepoint" in perfctl(daemon, "count", "nosuch:event", status=1).stderr, "an event that is none")
        check("nosuch" in perfctl(daemon, "count", CALLS, "--where", "nosuch == 1", status=1).stderr, "a predicate that is none")
        wait_until(lambda: names(daemon) == [], "what was added for nothing to go")


if __name__ == "__main__":
    perfd.main(globals())
