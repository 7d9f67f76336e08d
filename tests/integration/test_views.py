#!/usr/bin/python3
"""A recording of perf in the forms of other tools, and as a flame graph: the same sums as the samples have one by one. Needs root, for
perf record."""
import collections
import csv
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
PATH = os.path.join(FOLDER.name, "perf.data")
LOAD = "import os, hashlib; [os.waitpid(os.fork() or os._exit(hashlib.md5(bytes(9 << 20)).digest()[0] & 0), 0) for _ in range(5)]"


def run(*command, status=0, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=perfd.PATIENCE, check=False, **more)
    equal(done.returncode, status, f"the status of {command}, which said {done.stderr}")
    return done


def perfctl(*words, **more):
    return run(PERFCTL, *words, **more)


def recording():
    """Made once: of two events, with callchains."""
    if not os.path.exists(PATH):
        run("perf", "record", "-q", "-g", "-F", "5000", "-e", "cpu-clock,page-faults", "-o", PATH, "--", sys.executable, "-c", LOAD)
    return PATH


def samples(*events, path=PATH):
    return [json.loads(line) for line in perfctl("script", "--json", "-i", path, *events).stdout.splitlines()]


def stack(sample):
    """As folded stacks have it."""
    frames = [(f, True) for f in sample.get("kernel_callchain", [])] + [(f, False) for f in sample.get("user_callchain", [])]
    if not frames:
        return None  # the ip alone, of which script does not say the name
    return ";".join([sample["comm"] or "[unknown]", *(name_of(frame) + ("_[k]" if kernel else "") for frame, kernel in reversed(frames))])


def name_of(frame):
    if frame["symbol"]:
        return frame["symbol"].replace(";", ":")
    file = os.path.basename(frame["dso"] or "")
    return "[unknown]" if not file else file if file.startswith("[") else f"[{file}]"


def sums_of(lines):
    """Of folded stacks; functions of the same name in several files have lines of their own."""
    sums = collections.Counter()
    for where, _, n in (line.rpartition(" ") for line in lines.decode().splitlines()):
        sums[where] += int(n)
    return dict(sums)


def folded(*words):
    return sums_of(perfctl("export", "--to", "folded", "-i", recording(), *words).stdout)


def test_folded():
    """Of one event the sums of what it counts, of several the number of samples."""
    recording()
    for events, weight in ((("cpu-clock",), lambda s: s["period"]), ((), lambda s: 1)):
        expected = collections.Counter()
        for sample in samples(*events):
            check(stack(sample), sample)
            expected[stack(sample)] += weight(sample)
        equal(folded(*events), dict(expected), f"stacks of {events}")


def test_pprof():
    """Decoded by pprof's own definitions: a value for the samples, and one for each event."""
    recording()
    path = os.path.join(FOLDER.name, "p.pb.gz")
    perfctl("export", "--to", "pprof", "-i", PATH, "-o", path)
    with gzip.open(path) as f:
        p = profile_pb2.Profile.FromString(f.read())
    kinds = [(p.string_table[v.type], p.string_table[v.unit]) for v in p.sample_type]
    equal(kinds, [("samples", "count"), ("cpu-clock", "nanoseconds"), ("page-faults", "count")], "values")
    every = samples()
    expected = [len(every), *(sum(s["period"] for s in every if s["event"] == name) for name in ("cpu-clock", "page-faults"))]
    equal([sum(s.value[i] for s in p.sample) for i in range(3)], expected, "sums")
    equal(oct(os.stat(path).st_mode & 0o777), oct(os.stat(PATH).st_mode & 0o777), "the mode of the file")


def test_speedscope():
    recording()
    said = json.loads(perfctl("export", "--to", "speedscope", "-i", PATH, "page-faults").stdout)
    equal(sum(sum(p["weights"]) for p in said["profiles"]), sum(s["period"] for s in samples("page-faults")), "weights")


SWITCHES = os.path.join(FOLDER.name, "switches.data")
SLEEPS = "import threading, time; t = [threading.Thread(target=time.sleep, args=(0.02,)) for _ in range(3)]; [x.start() for x in t]; [x.join() for x in t]"


def test_chosen():
    """Of all samples those that options choose, in each form; a name of several threads, numbers, times on either side, and nothing."""
    recording()
    everything = samples()
    pid, comm = everything[0]["pid"], everything[-1]["comm"]
    times = sorted(sample["time"] for sample in everything)
    first, last = times[len(times) // 3], times[2 * len(times) // 3]

    def seconds(time):
        return f"{time // 10**9}.{time % 10**9:09}"

    for words, takes in (
            (["--pid", str(pid)], lambda s: s["pid"] == pid),
            (["--tid", f"{pid + 1}-4194304"], lambda s: s["tid"] > pid),
            (["--cpu", "0"], lambda s: s["cpu"] == 0),
            (["--comm", "nobody," + comm[:-1] + "?"], lambda s: s["comm"] == comm),
            (["--only", "event=page-faults", "--only", f"pid={pid}"], lambda s: s["event"] == "page-faults" and s["pid"] == pid),
            (["--time", f"{seconds(first)},{seconds(last)}"], lambda s: first <= s["time"] <= last),
            (["--time", "," + seconds(first)], lambda s: s["time"] <= first),
            (["--time", seconds(last) + ",", "--cpu", "0"], lambda s: s["time"] >= last and s["cpu"] == 0),
            (["--comm", "nobody"], lambda s: False)):
        chosen = [sample for sample in everything if takes(sample)]
        equal([json.loads(line) for line in perfctl("script", "--json", "-i", PATH, *words).stdout.splitlines()], chosen, f"samples by {words}")
        equal(len(perfctl("export", "--to", "jsonl", "-i", PATH, *words).stdout.splitlines()), len(chosen), f"lines by {words}")
        found = json.loads(perfctl("--json", "report", "-i", PATH, "--sort", "event", *words).stdout)
        equal(sum(row["samples"] for event in found["events"] for row in event["rows"]), len(chosen), f"samples in rows by {words}")


def switches():
    """Made once: of all CPUs, with another tracepoint that has other fields, and some of the same names as a sample has."""
    if not os.path.exists(SWITCHES):
        run("perf", "record", "-q", "-g", "-a", "-e", "sched:sched_switch,sched:sched_process_exit", "-o", SWITCHES, "--", sys.executable,
            "-c", SLEEPS)
    return SWITCHES


def off_cpu(every):
    """Sums of ns by folded stack; threads and ns that are out at the end; switches that are missing. By the definition, and no more."""
    out, sums, missing = {}, collections.Counter(), 0
    for s in every:
        f = s["fields"]
        if f["next_pid"] in out:
            where, since = out.pop(f["next_pid"])
            sums[where] += s["time"] - since
        if f["prev_pid"] and f["prev_state"] & 0x30:
            missing += out.pop(f["prev_pid"], None) is not None
        elif f["prev_pid"]:
            why = next((name for bits, name in ((1, "sleeping"), (2, "uninterruptible"), (12, "stopped"), (64, "parked"), (128, "idle"))
                        if f["prev_state"] & bits), "runnable")
            missing += f["prev_pid"] in out
            out[f["prev_pid"]] = f"{stack(s)};off-CPU ({why})", s["time"]
    for where, since in out.values():
        sums[where] += every[-1]["time"] - since
    return +sums, len(out), sum(every[-1]["time"] - since for _, since in out.values()), missing


def test_off_cpu():
    """The sums of all switches, to the nanosecond: as folded stacks; the page has them too."""
    every = [json.loads(line) for line in
             perfctl("script", "--json", "--order", "time", "-i", switches(), "sched:sched_switch").stdout.splitlines()]
    expected, n_open, open_nsec, missing = off_cpu(every)
    check(any(where.startswith("python3") and where.endswith("off-CPU (sleeping)") and ns >= 20_000_000 for where, ns in expected.items()),
          "no thread of the load has slept")
    done = perfctl("export", "--to", "folded", "--off-cpu", "-i", SWITCHES)
    equal(sums_of(done.stdout), dict(expected), "ns by stack")
    said = done.stderr.decode()
    check(f"off CPU at the end: {n_open} threads, which are counted up to the last switch, "
          f"{open_nsec // 10**9}.{open_nsec % 10**9:09} s together" in said, said)
    equal(int((re.search(r"came back are missing: (\d+);", said) or [0, "0"])[1]), missing, f"missing switches of {said}")
    path = os.path.join(FOLDER.name, "off.html")
    perfctl("flame", "--off-cpu", "-i", SWITCHES, "-o", path)
    check('"values":[{"name":"off-cpu","unit":"nanoseconds"}]' in page(path), "values of the page")
    sums = json.loads(re.search(r'"sums":(\[[^]]*\])', page(path))[1])
    equal(sum(sums), sum(expected.values()), "ns of the page")
    for words, status, text in ((["export", "--to", "folded", "--off-cpu", "-i", recording()], 1, "it has no samples of sched:sched_switch"),
                                (["flame", "--off-cpu", "-i", PATH, "-o", path], 1, "it has no samples of sched:sched_switch"),
                                (["export", "--to", "csv", "--off-cpu", "-i", SWITCHES], 2, "--off-cpu is a sum: csv has samples one by one")):
        said = perfctl(*words, status=status).stderr.decode()
        check(text in said, f"{words}: {said}")


def cell(value):
    """As CSV has what JSON has."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def test_lines():
    """JSON lines as script has them; a row of CSV for each, with all fields of both events, and nothing where an event has none."""
    path = os.path.join(FOLDER.name, "lines")
    perfctl("export", "--to", "jsonl", "-i", switches(), "-o", path)
    equal(page(path), perfctl("script", "--json", "-i", SWITCHES).stdout.decode(), "JSON lines")
    every = samples(path=SWITCHES)
    fields = list(dict.fromkeys(name for s in every for name in s["fields"]))
    check("pid" in fields and "prev_pid" in fields, f"not of both events: {fields}")
    head = ["time", "event", "cpu", "pid", "tid", "comm"]
    rest = ["container", "period", "ip", "address", "stack"]
    names = [f"fields.{name}" if name in head + rest else name for name in fields]
    perfctl("export", "--to", "csv", "-i", SWITCHES, "-o", path)
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.reader(f))
    equal(rows[0], head + rest + names, "columns")
    equal(len(rows), 1 + len(every), "rows")
    for row, s in zip(rows[1:], every):
        expected = [cell(s[name]) for name in head] + [s.get("container", ""), cell(s["period"]), s["ip"], s.get("address", ""),
                                                       stack(s).partition(";")[2]]
        equal(row, expected + [cell(s["fields"][name]) if name in s["fields"] else "" for name in fields], "a row")
    reader = subprocess.Popen([PERFCTL, "export", "--to", "csv", "-i", SWITCHES], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reader.stdout.close()  # nobody reads it, which is no failure
    equal((reader.stderr.read(), reader.wait(perfd.PATIENCE)), (b"", 0), "without a reader")
    reader.stderr.close()


def test_progress():
    """On a terminal stderr says how much was read, and takes it away; elsewhere only what was written."""
    recording()
    path = os.path.join(FOLDER.name, "folded")
    words = [PERFCTL, "export", "--to", "folded", "-i", PATH, "-o", path]
    equal(re.sub(r"[\d.]+ KiB", "N KiB", run(*words).stderr.decode()), f"perfctl: export: {path}: N KiB\n", "said to a pipe")
    equal(run(*words[:-2]).stderr, b"", "said of stdout")
    ours, theirs = os.openpty()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, timeout=perfd.PATIENCE, check=False)
    os.close(theirs)
    said = os.read(ours, 4096).decode()
    os.close(ours)
    equal(done.returncode, 0, "status")
    check(re.fullmatch(r"(\rreading: +\d+ %\r)+\r\x1b\[Kperfctl: export: \S+: [\d.]+ KiB\r\n", said), repr(said))


def page(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_flame():
    """One page; what had its name is kept; with an older recording their difference."""
    recording()
    path = os.path.join(FOLDER.name, "flame.html")
    for title in "first", "</script><b>second":
        perfctl("flame", "-i", PATH, "-o", path, "--title", title, "cpu-clock")
    check('"title":"first"' in page(path + ".old") and "</script><b>" not in page(path), "titles")
    check(not re.search(r"(?:src|href)=.?https?:|url\(|fetch\(|import ", page(path)), "it asks somebody")
    equal(sorted(name for name in os.listdir(FOLDER.name) if name.startswith("flame")), ["flame.html", "flame.html.old"], "files")
    perfctl("flame", "-i", PATH, "-o", path, "--diff", PATH, "cpu-clock")
    check('"isDifference":true' in page(path), "no difference")


def test_permissions():
    """What is made of a recording is for nobody who may not read the recording, whatever the umask allows."""
    old, new, cut = (os.path.join(FOLDER.name, name + ".data") for name in ("old", "new", "cut0600"))
    with open(recording(), "rb") as f:
        data = f.read()
    for path, content, mode in (old, data, 0o640), (new, data, 0o604), (cut, data[:len(data) // 2], 0o600):
        with open(path, "wb") as f:
            f.write(content)
        os.chmod(path, mode)
    out = os.path.join(FOLDER.name, "out")
    before = os.umask(0)
    try:
        for words, mode in ((["export", "--to", "folded", "-i", old], 0o640), (["export", "--to", "folded", "-i", new], 0o604),
                            (["flame", "-i", old], 0o640), (["flame", "-i", old, "--diff", new], 0o600)):
            perfctl(*words, "-o", out)
            equal(oct(os.stat(out).st_mode & 0o777), oct(mode), f"of {words}")
        with open(new, "rb") as f:  # no run(): its stdin
            subprocess.run([PERFCTL, "export", "--to", "folded", "-i", "-", "-o", out], stdin=f, timeout=perfd.PATIENCE, check=True)
        equal(oct(os.stat(out).st_mode & 0o777), oct(0o604), "of stdin")
        os.chown(old, -1, 12345)  # whose group is not that of the file that is made
        perfctl("export", "--to", "folded", "-i", old, "-o", out)
        equal(oct(os.stat(out).st_mode & 0o777), oct(0o600), "of another group")
        perfctl("info", "--repair", cut)
        equal(oct(os.stat(cut).st_mode & 0o777), oct(0o600), "of a recording that was mended")
    finally:
        os.umask(before)


def test_live():
    """Of a command on the live host: the page has each sample that came."""
    path = os.path.join(FOLDER.name, "live.html")
    with perfd.Daemon() as daemon:
        done = perfctl("--socket", daemon.control, "flame", "-o", path, "--", sys.executable, "-c", "print(sum(range(3000000)))")
        said = perfctl("--socket", daemon.control, "flame", "--off-cpu", "-o", path, status=2).stderr.decode()
        folded_live = perfctl("--socket", daemon.control, "export", "--to", "folded", "-o", path + ".folded", "-e", "page-faults", "-c", "1", "--",
                              sys.executable, "-c", "x = bytearray(9 << 20)")
    equal(done.stdout, b"4499998500000\n", "what the command says")
    n = int(re.search(r"(\d+) samples, nothing lost", done.stderr.decode())[1])
    sums = json.loads(re.search(r'"sums":(\[[^]]*\])', page(path))[1])
    check(n > 0, "no samples")
    equal((sum(sums[0::2]), len(sums) % 2), (n, 0), "samples of the page")
    check('"values":[{"name":"samples","unit":"count"},{"name":"cpu-clock","unit":"nanoseconds"}]' in page(path), "values")
    n = int(re.search(r"(\d+) samples, nothing lost", folded_live.stderr.decode())[1])
    with open(path + ".folded", "rb") as f:
        equal(sum(sums_of(f.read()).values()), n, "page faults of folded stacks")
    check(n > 2000, f"{n} page faults of 2,304 pages")
    check("--off-cpu of the live host needs its event: name sched:sched_switch" in said, said)


def test_no_cpu():
    """perf asks for none where it records a command: none is invented."""
    equal({s["cpu"] for s in samples(path=recording())}, {None}, "by JSON")
    rows = [row for event in json.loads(perfctl("report", "--json", "--sort", "cpu", "-i", PATH).stdout)["events"] for row in event["rows"]]
    equal({row["key"]["cpu"] for row in rows}, {None}, "of rows")
    lines = perfctl("script", "-i", PATH, "-F", "cpu").stdout.decode().splitlines()
    equal(set(lines), {"CPU", "-"}, "by text")
    lines = [line.split("\t") for line in perfctl("script", "-i", PATH, "-G").stdout.decode().splitlines()[1:]]
    equal({line[1] for line in lines}, {"-"}, "in the lines of samples")


def test_fixed_period():
    """It is in no sample: each stands for as many as its event says; and each sample has the name that its thread had at its time."""
    path = os.path.join(FOLDER.name, "fixed.data")
    load = "import os; [open('/proc/self/comm', 'w').write(f'n{i}') and os.getppid() for i in range(200)]"
    run("perf", "record", "-q", "-g", "-c", "3", "-e", "minor-faults", "-e", "raw_syscalls:sys_enter", "-o", path, "--", sys.executable, "-c", load)
    every = samples("minor-faults", path=path)
    sums = sums_of(perfctl("export", "--to", "folded", "-i", path, "minor-faults").stdout)
    equal(sum(sums.values()), 3 * len(every), "page faults")
    theirs = run("perf", "script", "--ns", "-F", "comm,tid,time", "-i", path).stdout.decode()
    theirs = [m.groups() for m in re.finditer(r"^ *(\S.*?) +(-?\d+) +(\d+\.\d{9}): *$", theirs, re.M)]
    ours = {(f"{s['time'] // 10**9}.{s['time'] % 10**9:09d}", str(s["tid"])): s["comm"] for s in samples(path=path)}
    wrong = [(ours.get((when, tid)), comm) for comm, tid, when in theirs if tid not in ("0", "-1") and ours.get((when, tid)) != comm]
    equal(wrong, [], f"names of {len(theirs)} samples")


def test_wrong():
    """What cannot be: said, and nothing that was there is touched."""
    recording()
    for words, status, text in (
            (["export", "-i", PATH], 2, "--to says which form: one of: folded"),
            (["export", "--to", "xml", "-i", PATH], 2, "--to: 'xml' is none of: folded"),
            (["export", "--to", "csv"], 2, "csv is made of a recording: name it with --input"),
            (["export", "--to", "csv", "-i", PATH, "-o", PATH], 2, "is the recording itself"),
            (["flame", "-i", PATH, "-o", PATH], 2, "is the recording itself"),
            (["export", "--to", "csv", "-i", "/nonexistent/x", "-o", "x.csv"], 1, "/nonexistent/x: "),
            (["export", "--to", "jsonl", "-i", PATH, "-o", "x.jsonl", "nosuch"], 1, "no event of it is called 'nosuch'"),
            (["export", "--to", "folded", "-i", PATH, "--unit", "x"], 2, "--unit is for the live host: not with -i"),
            (["flame", "--comm", "bash"], 2, "--comm chooses among samples of a recording: it needs --input"),
            (["export", "--to", "folded", "--time", "1,"], 2, "--time chooses among samples of a recording: it needs --input"),
            (["export", "--to", "folded", "-i", PATH, "--off-cpu", "--comm", "bash"], 2, "--off-cpu needs the switches of all threads"),
            (["script", "-i", PATH, "--time", ",0.000000001"], 0, "samples is one that the options choose"),
            (["flame", "-i", PATH, "--comm", "nobody", "-o", "x"], 1, "samples is one that the options choose"),
            (["script", "-i", PATH, "--only", "symbol=main"], 2, "`report` chooses rows by them"),
            (["script", "-i", PATH, "--pid", "1-x"], 2, "'1-x' is neither one nor a range"),
            (["script", "-i", PATH, "--time", "2,1"], 2, "ends before it begins"),
            *((["script", "-i", PATH, "--time", word], 2, "is not FROM,TO in seconds") for word in (
                "", ",", "1", "1,x", "-1,", "1.0000000001,", "99999999999999999999,", "18446744074,", "1,,2", "1.5.5,")),
            (["script", "-i", PATH, "nosuch"], 1, "no event of it is called 'nosuch'"),
            (["flame", "-i", PATH, "--for", "1s"], 2, "--for is for the live host"),
            (["export", "--to", "folded", "--off-cpu"], 2, "name sched:sched_switch"),
            (["export", "--to", "folded", "-i", PATH, "nosuch*"], 1, "no event of it is called 'nosuch*'"),
            (["export", "--to", "folded", "-i", PATH, "-o", FOLDER.name], 1, "it is no regular file"),
            (["export", "--to", "folded", "-i", PATH, "-o", "/nonexistent/x"], 1, "a file beside it cannot be created: No such file"),
            (["flame", "-i", "/nonexistent/perf.data"], 1, "/nonexistent/perf.data: "),
            (["flame", "-i", PATH, "--diff", "/nonexistent/perf.data"], 1, "/nonexistent/perf.data: "),
            (["flame", "-i", PATH, "-o", "/nonexistent/x"], 1, "a file beside it cannot be created")):
        said = perfctl(*words, status=status, cwd=FOLDER.name).stderr.decode()
        check(text in said, f"{words}: {said}")
    equal([name for name in os.listdir(FOLDER.name) if name.startswith(("x", "flame.html.", "perf.data."))
           and not name.endswith(".old")], [], "left behind")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PERFCTL, "flame", "-i", PATH, "-o", "-"], stdout=full, stderr=subprocess.PIPE, check=False)
    equal((done.returncode, b"stdout: No space left on device" in done.stderr), (1, True), f"on a full disk: {done.stderr}")


def test_damaged():
    """Of a recording that was cut what is whole is written, and the status says that it is not all."""
    cut = os.path.join(FOLDER.name, "cut.data")
    with open(recording(), "rb") as f, open(cut, "wb") as out:
        whole = f.read()
        out.write(whole[:len(whole) // 2])
    path = os.path.join(FOLDER.name, "cut.folded")
    done = perfctl("export", "--to", "folded", "-i", cut, "-o", path, status=1)
    check(b"at byte" in done.stderr, done.stderr)
    with open(path, encoding="utf-8") as f:
        n = sum(int(line.rpartition(" ")[2]) for line in f)
    check(0 < n < len(samples()), n)


def test_closed():
    """Where stdout or stderr is closed, no file takes its place: writing fails, or what is said is not in the output. Too large is said."""
    def shell(command, *arguments):
        return subprocess.run(["sh", "-c", command, "sh", PERFCTL, *arguments], capture_output=True, timeout=perfd.PATIENCE, check=False,
                              cwd=FOLDER.name, env={**os.environ, "TMPDIR": FOLDER.name})

    cut = os.path.join(FOLDER.name, "half.data")
    with open(recording(), "rb") as f, open(cut, "wb") as out:
        out.write(f.read()[:os.path.getsize(PATH) // 2])
    before = sorted(os.listdir(FOLDER.name))
    done = shell('exec "$@" >&-', "export", "--to", "csv", "-i", PATH)
    equal((done.returncode, b"Bad file descriptor" in done.stderr), (1, True), done.stderr)
    outputs = [shell(f'exec "$@" {closed}', "export", "--to", "csv", "-i", cut) for closed in ("", "2>&-")]
    equal([(done.returncode, done.stdout) for done in outputs], [(1, outputs[0].stdout)] * 2, "with and without stderr")
    done = shell('ulimit -f 8; exec "$@"', "flame", "-i", PATH, "-o", "large.html")
    equal((done.returncode, b"File too large" in done.stderr), (1, True), done.stderr)
    equal(sorted(os.listdir(FOLDER.name)), before, "files that are left")


if __name__ == "__main__":
    perfd.main(globals())
