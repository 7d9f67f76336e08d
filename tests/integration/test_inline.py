#!/usr/bin/python3
"""Inlined functions and source lines in the views of a recording of perf, frame by frame as addr2line(1) has them. Needs root, for perf
record."""
import collections
import functools
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL

sys.path.insert(0, os.path.join(os.environ["PERFD_BUILD"], "client", "profile"))
import profile_pb2  # pylint: disable=wrong-import-position,wrong-import-order

FOLDER = tempfile.TemporaryDirectory(prefix="perfd-test.")
PROGRAM, PATH = (os.path.join(FOLDER.name, name) for name in ("program", "perf.data"))
SOURCE = r"""
static volatile unsigned sink;
static inline __attribute__((always_inline)) unsigned innermost(unsigned n, unsigned turns) {
        for (unsigned i = 0; i < turns; i++)
                n = n * 1664525u + 1013904223u;
        return n;
}
static inline __attribute__((always_inline)) unsigned middle(unsigned n) {
        unsigned sum = innermost(n, 50);
        sum ^= innermost(n + 1, 70);
        return sum;
}
static __attribute__((noinline)) unsigned outer(unsigned n) {
        sink += middle(n);
        return innermost(sink, 30) + 1;
}
int main(void) {
        for (unsigned i = 0; i < 700000; i++)
                sink += outer(i);
}
"""


def run(*command, status=0, **more):
    done = subprocess.run(command, capture_output=True, timeout=perfd.PATIENCE, check=False, text=True, **{"input": "", **more})
    equal(done.returncode, status, f"the status of {command}, which said {done.stderr}")
    return done


def perfctl(*words, **more):
    return run(PERFCTL, *words, **more).stdout


@functools.cache
def recording():
    """At a fixed place, so that an address is that of the file; times that have wall times."""
    source = os.path.join(FOLDER.name, "source.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(SOURCE)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-no-pie", "-fno-pie", "-Wl,--build-id", "-o", PROGRAM, source)
    run("perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-g", "-F", "2000", "-e", "cpu-clock:u", "-o", PATH, "--", PROGRAM)
    return PATH


@functools.cache
def samples(*options):
    return [json.loads(line) for line in perfctl("script", "--json", "-i", recording(), *options).splitlines()]


@functools.cache
def theirs():
    """{address: [(function, file, line)]} of each address of a frame in the program: that of the call, where it returns to one."""
    ips = {int(f["ip"], 16) - (i > 0) for s in samples() for i, f in enumerate(s["user_callchain"]) if f["dso"] == PROGRAM}
    out = run("addr2line", "-a", "-i", "-f", "-e", PROGRAM, input="\n".join(f"{ip:x}" for ip in ips)).stdout
    frames, of = {}, None
    lines = iter(out.splitlines())
    for line in lines:
        if line.startswith("0x"):
            of = frames.setdefault(int(line, 16), [])
            continue
        file, _, number = re.sub(r" \(discriminator \d+\)$", "", next(lines)).rpartition(":")
        of.append((line, os.path.normpath(file), int(number) if number.isdigit() else None))
    check(max(map(len, frames.values())) == 3, f"addr2line finds no two levels of inlined functions: {frames}")
    return frames


def expected(sample):
    """The stack of a sample, the innermost first: (function, file, line, inlined) in the program, (function,) elsewhere."""
    stack = []
    for i, f in enumerate(sample["user_callchain"]):
        if f["dso"] != PROGRAM or not theirs()[int(f["ip"], 16) - (i > 0)][0][2]:
            stack.append((f["symbol"],))
            continue
        *inlined, function = theirs()[int(f["ip"], 16) - (i > 0)]
        stack += [(*frame, True) for frame in inlined] + [(*function, False)]
    return stack


def in_program(stack):
    return [frame for frame in stack if len(frame) > 1]


def test_script():
    """Each frame of each sample; without --inline the same frames but for those that were inlined, and no members for lines."""
    plain, inlined = samples(), samples("--inline")
    check(len(plain) > 50 and len(plain) == len(inlined), (len(plain), len(inlined)))
    for before, after in zip(plain, inlined):
        frames = after["user_callchain"]
        ours = [(f["symbol"], f["file"], f["line"], f["inlined"]) for f in frames if f["dso"] == PROGRAM and f["line"]]
        equal(ours, in_program(expected(before)), "frames of the program")
        equal([f["offset"] for f in frames if f["inlined"]], [None] * sum(f["inlined"] for f in frames), "offsets")
        kept = [{k: v for k, v in f.items() if k not in ("file", "line", "inlined")} for f in frames if not f["inlined"]]
        equal(kept, before["user_callchain"], "frames that were not inlined")
    check(sum(f["inlined"] for s in inlined for f in s["user_callchain"]) > 50, "few inlined frames")


def test_script_text():
    """A line for each frame: its name with "(inlined)", or its place and file, and the line in the source."""
    lines = [line.split("\t")[2:] for line in perfctl("script", "--inline", "-i", recording()).splitlines() if line.startswith("\t")]
    ours = [(re.sub(r"\+0x[0-9a-f]+ \(.*\)$", "", name), place) for _, name, place in (line for line in lines if len(line) == 3) if
            place.startswith(FOLDER.name)]
    equal(ours, [(name + " (inlined)" * inlined, f"{file}:{line}") for s in samples() for name, file, line, inlined in
                 in_program(expected(s))], "lines of frames")
    said = run(PERFCTL, "script", "--inline", "--no-symbols", "-i", PATH, status=2).stderr
    check("--inline and --no-symbols exclude each other" in said, said)


def test_script_columns():
    """With the column srcline each function is one row, at the line of its address; with --inline those that were inlined are rows of their own."""
    def ours(*words):
        rows = [line.split("\t") for line in perfctl("script", "-F", "comm,sym,srcline", "-i", recording(), *words).splitlines()[1:]]
        return [(sym, line) for _, sym, line in rows if line.startswith(FOLDER.name)]
    each, plain = [], []
    for s in samples():
        line = None
        for name, file, number, inlined in in_program(expected(s)):
            each.append((name + " (inlined)" * inlined, f"{file}:{number}"))
            line = line or each[-1][1]
            if not inlined:
                plain.append((name, line))
                line = None
    equal(ours(), plain, "rows of functions")
    equal(ours("--inline"), each, "rows of functions that were inlined, too")


def folded(*options):
    rows = (line.rpartition(" ") for line in perfctl("export", "--to", "folded", "-i", recording(), *options).splitlines())
    sums = collections.Counter()
    for stack, _, n in rows:
        sums[stack] += int(n)
    return sums


def name_of(frame, sample):
    dsos = {f["symbol"]: os.path.basename(f["dso"] or "") for f in sample["user_callchain"]}
    return (frame[0] or f"[{dsos[None]}]") + ("_[i]" if len(frame) > 1 and frame[3] else "")


def test_folded():
    """Sums of the stacks that addr2line makes of the samples; and the same sum as without inlined functions."""
    def of_program(found):
        """Other files may have debug information here, too."""
        return collections.Counter({stack: n for stack, n in found.items() if {"main", "outer"} & set(stack.split(";"))})

    sums = collections.Counter()
    for s in samples():
        sums[";".join([s["comm"], *(name_of(frame, s) for frame in reversed(expected(s)))])] += s["period"]
    sums = of_program(sums)
    equal(of_program(folded("--inline")), sums, "stacks")
    equal(folded("--inline").total(), folded().total(), "the sum of all")
    without = collections.Counter()
    for stack, n in sums.items():
        without[";".join(name for name in stack.split(";") if not name.endswith("_[i]"))] += n
    equal(of_program(folded()), without, "stacks without inlined functions")


def rows(*options):
    said = json.loads(perfctl("report", "--json", "-i", recording(), *options))
    return {tuple(row["key"].values()): row for row in said["events"][0]["rows"]}


def sum_of(keys):
    sums = collections.Counter()
    for key in keys:
        sums[key] += 1
    return dict(sums)


def test_report():
    """A row for each line; the function stays that which has the address, unless inlined ones are asked for."""
    stacks = [expected(s) for s in samples()]
    own = [stack for stack in stacks if len(stack[0]) > 1]
    name = ("--dso", "program")
    by_line = {key: row["samples"] for key, row in rows("--sort", "symbol,line", *name).items() if key[1]}
    functions = [next(frame[0] for frame in stack if not frame[3]) for stack in own]
    equal(by_line, sum_of((function, f"{stack[0][1]}:{stack[0][2]}") for function, stack in zip(functions, own)), "lines of functions")
    by_line = {key[0]: row["samples"] for key, row in rows("--sort", "srcline", "--only", "line=source.c:5", *name).items()}
    equal(by_line, {f"{FOLDER.name}/source.c:5": sum(stack[0][2] == 5 for stack in own)}, "of one line")
    by_file = {key[0]: row["samples"] for key, row in rows("--sort", "srcfile", *name).items() if key[0]}
    equal(by_file, sum_of(stack[0][1] for stack in own), "of source files")
    inlined = {key[0]: row["samples"] for key, row in rows("--inline", "--sort", "symbol", *name).items()}
    equal(inlined, sum_of(stack[0][0] for stack in stacks if stack[0][0] in ("innermost", "middle", "outer", "main", "_start")), "functions")
    equal(sum(row["samples"] for row in rows("--inline").values()), len(stacks), "samples")


def calls(row):
    return {(call["symbol"], call["inlined"]): call["samples"] for call in row["calls"]}


def test_report_graph():
    """Callers of an inlined function: of those in which it was inlined, too, with all samples of theirs whatever their line is."""
    row = rows("--inline", "--graph", "--call-limit", "0", "--sort", "symbol,dso", "--only", "line=source.c:*")["innermost", PROGRAM]
    stacks = [expected(s) for s in samples()]
    callers = sum_of((stack[1][0], stack[1][3]) for stack in stacks if stack[0][0] == "innermost")
    equal((calls(row), len(row["calls"])), (callers, 2), "callers")
    equal(sorted(callers), [("middle", True), ("outer", False)], "who they are")
    text = perfctl("report", "--inline", "--graph", "--sort", "symbol", "--symbol", "innermost", "-i", PATH)
    check(re.search(r"\tmiddle \(inlined\)\n\t+ *outer\n", text), text)


def pprof():
    path = os.path.join(FOLDER.name, "inline.pb.gz")
    if not os.path.exists(path):
        perfctl("export", "--to", "pprof", "--inline", "-i", recording(), "-o", path)
    return path


def test_pprof():
    """A location has a line for each function that is there, with file and line; times and period are those of the samples."""
    with gzip.open(pprof()) as f:
        p = profile_pb2.Profile.FromString(f.read())
    functions = {f.id: (p.string_table[f.name], p.string_table[f.filename]) for f in p.function}
    locations = {location.id: [(*functions[line.function_id], line.line) for line in location.line] for location in p.location}
    sums = collections.Counter()
    for sample in p.sample:
        sums[tuple(line for where in sample.location_id for line in locations[where] if line[1].startswith(FOLDER.name))] += sample.value[0]
    equal(sums, collections.Counter(tuple(frame[:3] for frame in in_program(expected(s))) for s in samples()), "stacks")
    equal(sorted({len(lines) for lines in locations.values() if lines[-1][0] == "outer"})[-2:], [2, 3], "lines of a location")
    equal(len({(location.mapping_id, location.address) for location in p.location}), len(p.location), "one location for each address")
    program = next(m for m in p.mapping if p.string_table[m.filename] == PROGRAM)
    check(program.has_functions and program.has_filenames and program.has_line_numbers and program.has_inline_frames, program)
    every = samples()
    equal((p.string_table[p.period_type.type], p.string_table[p.period_type.unit], p.period), ("cpu-clock:u", "nanoseconds", 500000), "period")
    equal({s["period"] for s in every}, {p.period}, "periods of samples")
    equal((p.time_nanos, p.duration_nanos), (every[0]["wall"], every[-1]["time"] - every[0]["time"]), "times")


if __name__ == "__main__":
    perfd.main(globals())
