#!/usr/bin/python3
"""What perfctl report adds up: of the innermost functions as perf report has it, and all else as the samples say that perfctl script prints.
Needs root, for perf record."""
import collections
import json
import os
import re
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL
from test_recording import PERF, run

# Functions that call each other, and themselves, for as many rounds as it is told.
PROGRAM = r"""
#include <stdlib.h>
#include <unistd.h>
volatile unsigned sink;
__attribute__((noinline)) void leaf(void) { for (int i = 0; i < 3000; i++) sink += i; }
__attribute__((noinline)) void odd(int n);
__attribute__((noinline)) void even(int n) { if (n > 0) odd(n - 1); leaf(); sink++; }
__attribute__((noinline)) void odd(int n) { if (n > 0) even(n - 1); leaf(); sink++; }
int main(int argc, char **argv) { for (int i = 0; i < atoi(argv[1]); i++) { even(i % 4); getppid(); sink++; } return 0; }
"""
EXEC = "sched:sched_process_exec"


def output(*command):
    ran = run(command)
    equal((ran.returncode, command), (0, command), ran.stderr)
    return ran.stdout.decode(errors="surrogateescape")


def report(path, *options):
    return json.loads(output(PERFCTL, "--json", "report", "-i", path, *options))


def script(path):
    return [json.loads(line) for line in output(PERFCTL, "--json", "script", "-i", path).splitlines()]


def record(folder, name, *options, rounds):
    path = os.path.join(folder, name)
    output(*PERF, "record", *options, "-o", path, "--", os.path.join(folder, "program"), str(rounds))
    return path


class Recordings:
    """Two of a program that is built for them."""
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="perfd-test.")
        source = os.path.join(self.folder.name, "program.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        output("gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", source[:-2], source)
        self.path = record(self.folder.name, "perf.data", "-F", "4000", "-g", "-e", f"cpu-clock,page-faults,{EXEC}", rounds=8000)
        self.old = record(self.folder.name, "perf.data.old", "-c", "3", "-e", "page-faults", rounds=1)
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


def rows_of(said, event):
    return [row for table in said["events"] if table["event"] == event for row in table["rows"]]


def frames(item):
    """(dso, symbol) from the innermost on; what has no symbol has its address, as text."""
    chain = item.get("kernel_callchain", []) + item.get("user_callchain", [])
    return [(f["dso"], f["symbol"] or hex(f["offset"] if f["dso"] else int(f["ip"], 16))) for f in chain]


def alike(counts):
    """Places without a name are told by other addresses, and perf knows no names of linkage tables for functions that are chosen at start,
    nor where .plt.sec begins: to it that belongs to _init."""
    all_ = collections.Counter()
    for (comm, dso, symbol), n in counts.items():
        all_[comm, dso, "" if "0x" in symbol else re.sub(".*@plt|_init$", "@plt", symbol)] += n
    return dict(all_)


def rows_of_perf(text):
    counts = collections.Counter()
    for line in text.splitlines():
        if "|" in line and line[0] != "#":
            n, period, comm, dso, symbol = (word.strip() for word in line.split("|"))
            counts[comm, dso, symbol if "0x" in symbol else symbol[4:]] += 1j * int(period) + int(n)
    return counts


def compare_with_perf(path, events):
    """Samples and periods of each thread's name, file and function. perf has one row for each of several functions of one name."""
    text = output(*PERF, "report", "-i", path, "--stdio", "--no-children", "-g", "none", "-F", "sample,period,comm,dso,sym", "-t", "|")
    said = report(path)
    equal({table["event"] for table in said["events"]}, events, "events")
    for event in events:
        part = next(p for p in text.split("# Samples:")[1:] if f"'{event}'" in p.splitlines()[0])
        ours = collections.Counter()
        for row in rows_of(said, event):
            key = row["key"]
            ours[key["comm"], os.path.basename(key["dso"] or "[unknown]"), key["symbol"]] += 1j * row["period"] + row["samples"]
        equal(alike(ours), alike(rows_of_perf(part)), f"functions of {event}")


def test_perf():
    """With callchains, of which perf takes the first function too, and with a period that samples do not say."""
    with Recordings() as r:
        compare_with_perf(r.path, {"cpu-clock", "page-faults", EXEC})
        equal(output(PERFCTL, "report", "-i", r.path, "--no-children", "-n"), output(PERFCTL, "report", "-i", r.path), "in the words of perf")
        compare_with_perf(r.old, {"page-faults"})
        compare_stacks(r.path)
        compare_calls(r.path)
        compare_keys(r.path)
        compare_difference(r)
        text = output(PERFCTL, "report", "-i", r.path, "--sort", "comm", "page-faults")
        n = sum(i["event"] == "page-faults" for i in script(r.path))
        first, headings, *rows = text.splitlines()
        equal((first.split(" samples")[0], headings), (f"# page-faults: {n}", "# EVENT\tOVERHEAD\tSAMPLES\tPERIOD\tCOMM"), "lines before the rows")
        equal({row.split("\t")[0] for row in rows}, {"page-faults"}, "the event")
        equal(sum(int(row.split("\t")[2]) for row in rows), n, text)
        check_wrong(r.path)


def compare_stacks(path):
    """Functions that call each other in turns: each sample counts once for each of them."""
    items = [i for i in script(path) if i["event"] == "cpu-clock" and frames(i)]
    total, own = collections.Counter(), collections.Counter()
    for item in items:
        stack = frames(item)
        total.update(set(stack))
        own[stack[0]] += 1
    total = {f: n for f, n in total.items() if f[0] and os.path.basename(f[0]) == "program"}
    check(max(collections.Counter(frames(i))[f] for i in items for f in frames(i) if f[1] == "even") > 1, "no recursion")
    rows = rows_of(report(path, "--children", "--sort", "dso,symbol", "--dso", "program", "cpu-clock"), "cpu-clock")
    equal({(r["key"]["dso"], r["key"]["symbol"]): (r["total_samples"], r["samples"]) for r in rows},
          {f: (n, own[f]) for f, n in total.items()}, "totals")
    rows = rows_of(report(path, "--children", "--sort", "comm,symbol", "--dso", "program", "--symbol", "e*,main"), "cpu-clock")
    equal({r["key"]["symbol"]: r["total_samples"] for r in rows}, {f[1]: n for f, n in total.items() if f[1] in ("even", "main")}, "filtered")


def calls_of(nodes, way=()):
    for node in nodes:
        here = *way, (node["dso"], node["symbol"])
        yield here, node["samples"]
        yield from calls_of(node["calls"], here)


def compare_calls(path):
    """All ways to a function, and from one, without a limit; with one, those that are above."""
    items = [i for i in script(path) if i["event"] == "cpu-clock"]  # those without a callchain, too: shares are of all
    callers, callees = collections.Counter(), collections.Counter()
    for stack in filter(None, map(frames, items)):
        if stack[0][1] == "leaf":
            callers.update(tuple(stack[1:end]) for end in range(2, len(stack) + 1))
        firsts = [i for i, f in enumerate(stack) if f[1] == "main"]
        if firsts:
            down = stack[:firsts[-1]][::-1]
            callees.update(tuple(down[:end]) for end in range(1, len(down) + 1))
    named = lambda rows, name: next(r for r in rows if r["key"]["symbol"] == name)  # noqa: E731
    row = named(rows_of(report(path, "--graph", "--call-limit", "0", "--dso", "program"), "cpu-clock"), "leaf")
    equal(dict(calls_of(row["calls"])), dict(callers), "callers of leaf")
    row = named(rows_of(report(path, "--graph", "--children", "--call-limit", "0"), "cpu-clock"), "main")
    equal(dict(calls_of(row["calls"])), dict(callees), "what main called")
    row = named(rows_of(report(path, "--graph", "--children", "--call-limit", "20%"), "cpu-clock"), "main")
    equal(dict(calls_of(row["calls"])), {way: n for way, n in callees.items() if n / len(items) >= 0.2}, "more than a fifth")
    for as_perf, ours in (["-g"], ["--graph"]), (["-g", "5"], ["--graph", "--call-limit", "5"]), (["-g", "graph,5,caller"], ["--graph", "--children", "--call-limit", "5"]), \
            (["-g", "0.1,callee", "page-faults"], ["page-faults", "--graph", "--call-limit", "0.1"]), (["-g", "none"], []):
        equal(report(path, *as_perf), report(path, *ours), as_perf)


def compare_keys(path):
    """Fields of a tracepoint, and what each sample has; one value of them alone."""
    items = script(path)
    execs = [i for i in items if i["event"] == EXEC]
    check(execs, "no sample of a tracepoint")
    row = rows_of(report(path, "--sort", "filename,field.pid,pid,tid,cpu,comm", EXEC), EXEC)
    equal([r["key"] for r in row],
          [{"filename": i["fields"]["filename"], "field.pid": i["fields"]["pid"], "pid": i["pid"], "tid": i["tid"], "cpu": i["cpu"], "comm": i["comm"]} for i in execs],
          "keys")
    clocks = collections.Counter(i["time"] // 10**7 for i in items if i["event"] == "cpu-clock")
    for row in rows_of(report(path, "--sort", "time", "--time-quantum", "10ms"), "cpu-clock"):
        equal(row["samples"], clocks.pop(round(row["key"]["time"] * 100)), f"within 10 ms of {row['key']}")
    equal(dict(clocks), {}, "times without a row")
    (table,) = report(path, "--sort", "event")["events"]
    equal({r["key"]["event"]: r["samples"] for r in table["rows"]}, dict(collections.Counter(i["event"] for i in items)), "events")
    check(abs(sum(r["overhead"] for r in table["rows"]) - 100) < 1e-9, table)
    for options, has in (["--cpu", "0"], lambda i: i["cpu"] == 0), \
            (["--only", "cpu=0-1023", "--comm", "prog*"], lambda i: i["cpu"] is not None and i["comm"].startswith("prog")), \
            (["--pid", str(items[-1]["pid"])], lambda i: i["pid"] == items[-1]["pid"]), (["--only", "filename=*program"], lambda i: i["event"] == EXEC), \
            (["--comm", "nobody"], lambda i: False):
        (table,) = report(path, "--sort", "event", *options)["events"]
        equal(({r["key"]["event"]: r["samples"] for r in table["rows"]}, table["samples"]),
              (dict(collections.Counter(i["event"] for i in items if has(i))), len(items)), options)


def compare_difference(r):
    """Rows of both, and of one alone, by how much their shares differ."""
    said = report(r.path, "--diff", r.old, "--sort", "comm,symbol", "page-faults")
    sums = [rows_of(report(path, "--sort", "comm,symbol", "page-faults"), "page-faults") for path in (r.path, r.old)]
    new, old = ({tuple(row["key"].items()): row for row in rows} for rows in sums)
    rows = rows_of(said, "page-faults")
    equal({tuple(row["key"].items()) for row in rows}, {*new, *old}, "rows")
    nothing = {"overhead": 0, "samples": 0, "period": 0}
    for row in rows:
        key = tuple(row["key"].items())
        for is_, of in (row, new), (row["baseline"], old):
            equal({k: is_[k] for k in nothing}, {k: of.get(key, nothing)[k] for k in nothing}, key)
        check(abs(row["delta"] - (row["overhead"] - row["baseline"]["overhead"])) < 1e-9, row)
    equal([abs(row["delta"]) for row in rows], sorted((abs(row["delta"]) for row in rows), reverse=True), "the order")


def check_wrong(path):
    for options, status, says in ([["--sort", "comm,comm"], 2, "already given"], [["--sort", "a b"], 2, "nor any of comm, pid"], [["--sort", ""], 2, "''"],
                                  [["--sort", "nosuch"], 1, "no sample has a field 'nosuch'"], [["--cpu", "a"], 2, "'a' is neither one nor a range"],
                                  [["--only", "x"], 2, "KEY=VALUE"], [["--call-limit", "200"], 2, "from 0 to 100"], [["--top", "0"], 2, "--top: "],
                                  [["--time-quantum", "1s"], 2, "needs --sort time"], [["--sort", "time", "--time-quantum", "0s"], 2, "'0s' is not a time"],
                                  [["--graph", "--diff", path], 2, "exclude each other"], [["--diff", "/nonexistent"], 1, "/nonexistent: "],
                                  [["--for", "1s"], 2, "--for is for the live host"], [["--unit", "a"], 2, "--unit is for the live host"],
                                  [["-c", "5"], 2, "-c is for the live host: not with -i; --comm chooses threads"],
                                  [["-F", "comm"], 2, "-F is for the live host: not with -i; --sort chooses columns"],
                                  [["-p", "4294967296"], 2, "-p: '4294967296' is too large: the largest pid is 4294967295"],
                                  [["-C", "0-99999999999999999999"], 2, "is too large: the largest cpu is 4294967295"],
                                  [["-g", "graph,0.5,fractal"], 2, "-g fractal is not here"], [[path], 2, f"one recording is read, and -i says {path}"], [["--", "true"], 2, "a command is traced live"]):
        ran = run([PERFCTL, "report", "-i", path, *options])
        equal((ran.returncode, options), (status, options), ran.stderr)
        check(says in ran.stderr.decode() and not ran.stdout, (options, ran.stderr, ran.stdout))
    for verb in ["script"], ["report"], ["flame"], ["top"], ["export", "--to", "csv"]:
        ran = run([PERFCTL, *verb, path])
        equal((ran.returncode, ran.stderr.decode()), (2, f"perfctl: {verb[0]}: '{path}' is a recording, and arguments are events: -i {path} reads it\n"), verb)
    ran = run([PERFCTL, "--socket", "/nonexistent", "report"], cwd=os.path.dirname(path))
    check(ran.stderr.startswith(b"perfctl: report: samples of the live host, for 10.0 s: -i perf.data reads the recording that is here\n"), ran)
    ran = run([PERFCTL, "top", "-i", path, "--batch", "--by", "pid,nosuch"])
    equal((ran.returncode, ran.stdout), (1, b""), ran.stderr)
    check(b"no sample has a field 'nosuch', and it is none of symbol, dso, comm" in ran.stderr, ran.stderr)
    with tempfile.NamedTemporaryFile() as cut:
        with open(path, "rb") as f:
            cut.write(f.read()[:os.path.getsize(path) // 2])
        cut.flush()
        ran = run([PERFCTL, "report", "-i", cut.name])
        check(ran.returncode == 1 and ran.stdout and b": at byte " in ran.stderr, "half a recording: what is whole is shown")


def test_live():
    """Of a command: its exec, and its functions, which are called by main()."""
    with Recordings() as r, perfd.Daemon() as daemon:
        program = os.path.join(r.folder.name, "program")

        def live(*options, rounds):
            return json.loads(output(PERFCTL, "--socket", daemon.control, "--json", "report", *options, "--", program, rounds))
        (table,) = live(EXEC, "--sort", "comm,filename", rounds="1")["events"]
        equal([(row["samples"], row["key"]) for row in table["rows"]], [(1, {"comm": "program", "filename": program})], "an exec")
        (table,) = live("cpu-clock:u", "-c", "100us", "--children", "--graph", "--call-limit", "0", "--sort", "symbol", "--dso", "program", rounds="1000")["events"]
        rows = {row["key"]["symbol"]: row for row in table["rows"]}
        check(0 < rows["odd"]["total_samples"] <= rows["even"]["total_samples"] <= rows["main"]["total_samples"] <= table["samples"], rows.keys())
        equal(next(n for way, n in calls_of(rows["main"]["calls"]) if [f[1] for f in way] == ["even"]), rows["even"]["total_samples"], "calls of even")
        equal(table["period"], 100000 * table["samples"], "periods")


if __name__ == "__main__":
    perfd.main(globals())
