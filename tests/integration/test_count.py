#!/usr/bin/python3
"""`perfctl count` adds up what happens a known number of times: by fields, threads and processes, in histograms, in intervals, and with
more keys than it keeps. Needs root."""
import contextlib
import json
import os
import select
import signal
import subprocess

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_control import PERFCTL, perfctl
from test_promises import CPUS
from test_sources import FIRE, GETPPID, Fire
from test_watch_added import names
from test_watch_loss import SMALL, stopped

CALLS = "raw_syscalls:sys_enter"
KEYS_MAX = 65_536  # client/perfctl/count-map.h
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


def test_refusals():
    with Daemon() as daemon:
        for words, said in ((("--by", "nosuch"), "has the fields id, args, and each sample has comm,"),
                            (("--by", "pit"), "did you mean 'pid'"),
                            (("--hist", "comm"), "none of the events has a field 'comm'"),
                            (("--top", "0"), "--top"), (("--json", "--top", "3"), "--top applies to tables")):
            no = perfctl(daemon, "count", CALLS, *words, status=2)
            check(said in no.stderr and not no.stdout, f"{words}: {no}")
        check("is a text" in perfctl(daemon, "count", "sched:sched_switch", "--hist", "prev_comm", status=2).stderr, "a text")
        check("which events?" in perfctl(daemon, "count", "--by", "pid", status=2).stderr, "no event at all")
        check("no tracepoint" in perfctl(daemon, "count", "nosuch:event", status=1).stderr, "an event that is none")
        check("nosuch" in perfctl(daemon, "count", CALLS, "--where", "nosuch == 1", status=1).stderr, "a predicate that is none")
        wait_until(lambda: names(daemon) == [], "what was added for nothing to go")


if __name__ == "__main__":
    perfd.main(globals())
