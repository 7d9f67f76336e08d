#!/usr/bin/python3
"""Go's own reader of pprof files has the sums of `perfctl report` of the same recording, by function and by source line. Needs root, for perf
record."""
import collections
import os
import re
import shutil
import sys

import test_inline
import test_views
from perfd import check, Daemon, equal, main, Skip
from test_record import record

ROW = re.compile(r"(\d+)(?:ns)? +[\d.]+% +[\d.]+% +(\d+)(?:ns)? +[\d.]+%  (.*?)(?: \(inline\))?")
UNNAMED = re.compile("0x[0-9a-f]+")


def top(path, *options, program=None):
    """{name: (flat, cumulative)} of cpu-clock, in ns, of all nodes; and it is called a profile of that program."""
    if not shutil.which("go"):
        raise Skip("go is not installed (golang-go)")
    environment = {"PATH": os.environ["PATH"], "HOME": test_views.FOLDER.name}
    text = test_views.run("go", "tool", "pprof", "-top", "-symbolize=none", "-unit=ns", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0",
                          *options, path, env=environment).stdout.decode()
    head, _, rows = text.partition(" flat%")
    check("\nShowing nodes accounting for " in head and rows, text)
    check(program is None or f"File: {program}\n" in head, head)
    rows = [ROW.fullmatch(row.strip()) for row in rows.splitlines()[1:]]
    check(all(rows), text)
    return {row[3]: (int(row[1]), int(row[2])) for row in rows}


def export(source, name, *options):
    path = os.path.join(test_views.FOLDER.name, name)
    test_views.perfctl("export", "--to", "pprof", "-i", source, "-o", path, *options)
    return path


def name_of(key):
    """As nodes are called: what has no symbol by its file."""
    if not UNNAMED.fullmatch(key["symbol"] or "0x0"):
        return key["symbol"]
    file = os.path.basename(key["dso"] or "[unknown]")
    return file if file.startswith("[") else f"[{file}]"


def test_functions():
    """Flat sums of all functions; cumulative ones of those that are one row: of the others a sample may have several."""
    nodes = top(export(test_views.recording(), "functions.pb.gz"), "-sample_index=cpu-clock")
    said = test_views.perfctl("report", "--json", "-i", test_views.PATH, "--children", "--sort", "symbol,dso", "cpu-clock").stdout
    (table,) = test_views.json.loads(said)["events"]
    flat, rows = collections.Counter(), collections.defaultdict(list)
    for row in table["rows"]:
        flat[name_of(row["key"])] += row["period"]
        rows[name_of(row["key"])].append(row["total_period"])
    equal({name: node[0] for name, node in nodes.items()}, dict(flat), "flat")
    one = {name: totals[0] for name, totals in rows.items() if len(totals) == 1}
    check(len(one) > 10, one)
    equal({name: nodes[name][1] for name in one}, one, "cumulative")
    equal(sum(flat.values()), table["period"], "all of it")


def test_lines():
    """With inlined functions: of each line of each function what was spent there."""
    nodes = top(export(test_inline.recording(), "lines.pb.gz", "--inline"), "-sample_index=1", "-lines", program="program")
    rows = test_inline.rows("--inline", "--sort", "symbol,line", "--dso", "program")
    ours = {f"{function} {line}": row["period"] for (function, line), row in rows.items() if line}
    check(any(name.startswith("innermost ") for name in ours), ours)
    equal({name: node[0] for name, node in nodes.items() if name in ours or "source.c" in name and node[0] > 0}, ours, "flat, by line")


def test_without_frames():
    """Samples of a tracepoint without a callchain are called as their threads are: pprof shows none that has no function."""
    with Daemon() as daemon:
        path = os.path.join(test_views.FOLDER.name, "calls.data")
        record(daemon, "-o", path, "syscalls:sys_enter_getppid", "--", sys.executable, "-S", "-c", "import os; [os.getppid() for i in range(70)]")
    nodes = top(export(path, "calls.pb.gz"), "-sample_index=samples")
    equal(nodes, {os.path.basename(sys.executable)[:15]: (70, 70)}, "calls")


if __name__ == "__main__":
    main(globals())
