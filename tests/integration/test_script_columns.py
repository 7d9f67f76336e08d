#!/usr/bin/python3
"""What perfctl script prints of a recording of perf if it is told which columns: the same as it has of each sample as JSON. Needs root, for
perf record."""
import json
import os
import re
import sys
import tempfile

import test_views
from perfd import check, equal, main
from test_views import perfctl, recording, samples, switches

PLACES = os.path.join(test_views.FOLDER.name, "places.data")
PERF_ROW = ["perf", "script", "--ns", "-F"]


def lines(*words, path=None):
    return perfctl("script", "-i", path or recording(), *words).stdout.decode().splitlines()


def chain(sample):
    return sample.get("kernel_callchain", []) + sample.get("user_callchain", [])


def seconds(time):
    return f"{time // 10**9}.{time % 10**9:09}"


def place(frame):
    """As the columns ip, symoff and dso have it."""
    name = f"{frame['symbol']}+{frame['offset']:#x}" if frame["symbol"] else hex(frame["offset"]) if frame["dso"] else "[unknown]"
    return [frame["ip"].removeprefix("0x"), name, frame["dso"] or "[unknown]"]


def test_columns():
    """All of each sample, in the order that was asked for, and its callers below it; without them; and those of an event alone."""
    heading, *rows = lines("-F", "dso,ip,symoff,comm,pid,tid,cpu,time,event,period")
    equal(heading, "DSO\tIP\tSYMOFF\tCOMM\tPID\tTID\tCPU\tTIME\tEVENT\tPERIOD", "heading")
    expected, firsts = [], []
    for s in samples():
        ip, name, dso = place(chain(s)[0])
        firsts.append("\t".join([s["comm"], s["event"], ip]))
        expected.append("\t".join([dso, ip, name, *("-" if s[key] is None else str(s[key]) for key in ("comm", "pid", "tid", "cpu")), seconds(s["time"]), s["event"], str(s["period"])]))
        expected += ["\t".join([d, i, n] + [""] * 7) for i, n, d in map(place, chain(s)[1:])]
    equal(rows, expected, "rows")
    equal(lines("--fields=comm,event,ip", "-G")[1:], firsts, "without callers")
    equal(lines("-F", "event,addr", "page-faults")[1:], ["page-faults\t" + s.get("address", "0x0")[2:] for s in samples("page-faults")], "of an event")


def test_changed_columns():
    """Added to and taken from those that are there by default, in perf's words."""
    usual = "comm,tid,cpu,time,event,period,trace,ip,sym,dso"
    equal(lines("-F", "+symoff,-trace,-ip,+comm"), lines("-F", usual.replace("trace,ip,", "") + ",symoff"), "columns")
    for words, text in (("+symoff,ip", "'ip' names a column"), ("ip,+symoff", "'+symoff' changes comm,tid"), ("-addr", "'addr' is not one of comm,tid"),
                        ("-" + usual.replace(",", ",-"), "no column is left"), ("+comm,+,", "'' is not a field")):
        said = test_views.run(test_views.PERFCTL, "script", "-i", recording(), "-F", words, status=2).stderr.decode()
        check(text in said, said)


def json_of(*words):
    return [json.loads(line) for line in test_views.perfctl("script", "--json", "-i", recording(), *words).stdout.splitlines()]


def outer(sample):
    """Its functions without what was inlined into them."""
    return [(part, frame) for part in ("kernel_callchain", "user_callchain") for frame in sample.get(part, []) if not frame.get("inlined")]


def test_depth():
    """The innermost functions alone, of the kernel and of the program; in columns and on lines of their own."""
    def lengths(depth):
        return [min(len(chain(s)), depth) for s in samples()]
    check(max(lengths(9)) > 2, f"no callchain is deep: {lengths(9)}")
    for depth in 1, 2:
        rows = lines("-F", "ip,comm", "--max-stack", str(depth))[1:]
        equal(rows, [ip + "\t" + (s["comm"] if i == 0 else "") for s in samples() for i, (ip, *_) in enumerate(map(place, chain(s)[:depth]))], "columns")
        text = [line.split("\t")[2] for line in lines("--max-stack", str(depth)) if line.startswith("\t")]
        equal(text, [place(frame)[0] for s in samples() for frame in chain(s)[:depth]], "lines")


def test_json():
    """Its callchains are as deep as they are asked for, or left out; all else stays."""
    def without(sample):
        return {key: value for key, value in sample.items() if not key.endswith("_callchain")}
    for depth, words in (2, []), (1, ["--inline"]):
        whole = json_of("cpu-clock", *words)
        check(any(len(s.get("kernel_callchain", [])) > 2 and "user_callchain" in s for s in whole), "a callchain of both")
        cut = json_of("cpu-clock", "--max-stack", str(depth), *words)
        equal([without(s) for s in cut], [without(s) for s in whole], "samples")
        for one, all_of_it in zip(cut, whole):
            check(all(one[key] for key in one if key.endswith("_callchain")), one)
            equal(outer(one), outer(all_of_it)[:depth], f"the {depth} innermost functions of {all_of_it}")
    equal(json_of("cpu-clock", "-G"), [without(s) for s in whole], "without callchains")


def test_no_such_comm():
    """What may be meant is said: the kernel calls the threads of idle CPUs swapper/0 and so on."""
    for comm, text in (("swapper", "threads of idle CPUs are called 'swapper/*'"),
                       ("nosuch", f"`perfctl report -i {recording()} --sort comm` shows the names of its threads")):
        for verb in ("script", "report"):
            said = test_views.run(test_views.PERFCTL, verb, "-i", recording(), "--comm", comm).stderr.decode()
            check(f"is one that the options choose: {text}" in said, said)


def test_as_perf():
    """The same in perf's words: each callchain, its first frame on the line of the sample."""
    text = test_views.run(*PERF_ROW, "comm,tid,time,event,ip,sym", "-i", recording()).stdout.decode()
    theirs = [[line.split() for line in block.splitlines()] for block in text.split("\n\n") if block.strip()]
    theirs = [(head[0], head[1], head[2].rstrip(":"), head[3].rstrip(":"), [frame[0] for frame in frames]) for head, *frames in theirs]
    ours = []
    for line in lines("-F", "comm,tid,time,event,ip")[1:]:
        *head, ip = line.split("\t")
        if head[0]:
            ours.append((*head, []))
        ours[-1][-1].append(ip)
    equal([(*head, len(ips)) for *head, ips in ours], [(*head, len(ips)) for *head, ips in theirs], "samples, and how deep their callchains are")
    places = [(re.search(r" ip=0x(\w+)", line)[1], (re.search(r" symbol=(\S+)\+0x", line) or ["", "[unknown]"])[1]) for line in lines("-G", "--max-stack", "1")[1:]]
    theirs = [tuple(line.split()) for line in test_views.run(*PERF_ROW, "ip,sym", "-G", "-i", recording()).stdout.decode().splitlines()]
    linkage = {place for place in places if place[1].endswith("@plt") and (place[0], "[unknown]") in theirs}  # of some files perf names none
    equal([(place[0], "[unknown]") if place in linkage else place for place in places], theirs, "places without callchains")


def test_fields():
    """Fields of tracepoints, an empty cell of events that have not got them, and a name that none has."""
    path = switches()
    every = samples(path=path)
    rows = [line.split("\t") for line in lines("-F", "event,next_comm,next_pid,prev_prio", "-G", path=path)[1:]]
    equal(rows, [[s["event"], *(str(s["fields"].get(name, "-")) for name in ("next_comm", "next_pid")), str(s["fields"].get("prev_prio", "-"))] for s in every], "fields")
    trace = lines("-F", "trace", "sched:sched_process_exit", path=path)[1:]
    exits = [s for s in every if s["event"] == "sched:sched_process_exit"]
    check(exits and len(trace) == len(exits) and all(f"pid={s['fields']['pid']} " in line for s, line in zip(exits, trace)), trace)
    said = test_views.run(test_views.PERFCTL, "script", "-F", "comm,nosuch", "-i", path, status=1).stderr.decode()
    check("no sample has a field 'nosuch', and it is none of comm, tid" in said, said)


def test_trace():
    """Fields are as on the lines of their samples: the print format's form of numbers, and without those of the kernel."""
    path = os.path.join(test_views.FOLDER.name, "calls.data")
    test_views.run("perf", "record", "-q", "-e", "syscalls:sys_enter_openat,syscalls:sys_enter_mmap", "-o", path, "--", "true")
    shown = [line.split("\t")[4].partition(" period=")[0] for line in lines(path=path)[1:]]
    equal(lines("-F", "trace", path=path)[1:], shown, "all fields")
    check(shown and all(re.fullmatch(r"(dfd|addr)=0x[0-9a-f]+( \w+=0x[0-9a-f]+)+", line) for line in shown), shown)
    equal(lines("-F", "flags", "syscalls:sys_enter_openat", path=path)[1:], re.findall(r"dfd=.* flags=(\S+)", "\n".join(shown)), "one of them")


def test_places():
    """Without a callchain: where the sample was, also where nobody asked for columns."""
    test_views.run("perf", "record", "-q", "-F", "5000", "-e", "cpu-clock", "-o", PLACES, "--", sys.executable, "-c", "for i in range(400000): str(i)")
    every = samples(path=PLACES)
    named = [line.split("\t") for line in lines("-F", "ip,symoff,dso", path=PLACES)[1:]]
    equal([ip for ip, _, _ in named], [s["ip"][2:] for s in every], "addresses")
    check(any("+0x" in name for _, name, _ in named) and all(dso.startswith(("/", "[")) for _, _, dso in named), named)
    expected = [f" ip=0x{ip} " + (f"symbol={name} dso={dso}" if "+" in name else f"dso={dso}+{name}") for ip, name, dso in named if dso != "[unknown]"]
    text = [line for line in lines(path=PLACES)[1:] if " dso=" in line]
    equal([line[line.index(" ip="):] for line in text], expected, "places on lines without columns")


def test_part():
    """A part of the time from the first sample to the last, as perf has it of the same words; all of it; and what is none."""
    def theirs(part):
        return test_views.run(*PERF_ROW, "time", "-G", "-i", recording(), "--time", part).stdout.decode().replace(":", "").split()
    for part in "10%-20%", "50%-100%", "0%-33.3%":
        equal(lines("-F", "time", "--time", part)[1:], theirs(part), part)
    equal(len(lines("-F", "time", "--time", "0%-100%")) - 1, len(samples()), "all")
    for words in ["--time", "20%-10%"], ["--time", "10%"], ["--time", "10%-200%"], ["--max-stack", "0"], ["--max-stack", "1", "--no-symbols"], \
            ["-F", "comm,,ip"], ["-F", "comm", "--json"], \
            ["-F", "sym", "--no-symbols"]:
        test_views.run(test_views.PERFCTL, "script", "-i", recording(), *words, status=2)


def test_kernel_cache():
    """Functions of the kernel are the same from its list and from what is kept of it, which is not read where others may write it."""
    def named(folder):
        return perfctl("script", "-i", recording(), env={**os.environ, "XDG_CACHE_HOME": folder}).stdout

    with tempfile.TemporaryDirectory() as folder:
        expected, kept = named("/nonexistent/cache"), os.path.join(folder, "perfd", "kernel-symbols")
        name = re.search(rb"\t(\w{8,})\+0x[0-9a-f]+ \(\[kernel.kallsyms\]\)\n", expected)[1]
        equal(named(folder), expected, "when it is made")
        equal(named(folder), expected, "when it is read")
        with open(kept, "rb") as f:
            symbols = f.read()
        with open(kept, "wb") as f:
            f.write(symbols.replace(b"\0" + name + b"\0", b"\0" + name[::-1] + b"\0"))
        equal(named(folder), re.sub(rb"\t" + name + rb"(\+0x[0-9a-f]+ \(\[kernel.kallsyms)", rb"\t" + name[::-1] + rb"\1", expected), "when it is changed")
        os.chmod(kept, 0o660)
        equal(named(folder), expected, "when others may write it")
        os.chmod(kept, 0o600)
        os.chmod(folder, 0o770)
        equal(named(folder), expected, "when others may write its folder")


if __name__ == "__main__":
    main(globals())
