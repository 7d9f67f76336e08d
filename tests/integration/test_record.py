#!/usr/bin/python3
"""Recordings that perfctl makes, read by perf and by perfctl info: without one warning, the same events, times, fields and chains, and as many
samples as the ledger has. Needs root, for tracepoints."""
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile

import perfd
from perfd import Daemon, add, check, equal, wait_until
from test_command import python, words
from test_perfctl import PERFCTL
from test_recording import info, run, stats
from test_roles import NOTED, sample

N = 300
CALLS = f"import os\nfor i in range({N}): os.getppid()\n"
EVENTS = ["raw_syscalls:sys_enter", "--filter", f"id == {110 if os.uname().machine == 'x86_64' else 173}"]
SAMPLES = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "recorded-samples")


def record(daemon, *arguments, status=0, **more):
    done = subprocess.run(words(daemon, "record", *arguments), stdin=subprocess.DEVNULL, capture_output=True, timeout=perfd.PATIENCE, check=False,
                          **more)
    equal(done.returncode, status, f"the status of record {arguments}, which said {done.stderr[-500:]!r}")
    return done


def perf(*arguments, **more):
    """What it prints; a warning is a failure."""
    ran = run(["perf", *arguments], **more)
    equal((ran.returncode, ran.stderr), (0, b""), f"perf {arguments}")
    return ran.stdout.decode()


def lines_of_perf(path, fields):
    return [line for line in perf("script", "--ns", "-F", fields, "-i", path).splitlines() if line]


def sent(done):
    """Samples of the closing line."""
    return int(re.search(rb"^(\d+) samples", done.stderr, re.M).group(1))


def test_command():
    """A command with its status: as many samples as it has made calls, each with what the tracepoint says, with and without zstd."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        for options in ((), ("-z", "3")):
            done = record(daemon, "-o", path, *options, *EVENTS, *python(CALLS + "os._exit(7)"), status=7)
            said, counts = info(path), stats(path)
            equal((said["damage"], said["events"], said["samples"]), ([], [EVENTS[0]], N), "what is in it")
            equal((sent(done), counts["SAMPLE"]), (N, N), f"samples, {done.stderr}")
            equal("COMPRESSED" in said["records"], bool(options), "compressed records")
            equal(said["features"].get("COMPRESSED", {}).get("level"), 3 if options else None, "the level")
            for kind in ("COMM", "MMAP2", "EXIT"):
                check(counts[kind] == said["records"][kind] > 0, f"{kind}: {counts[kind]}, {said['records'][kind]}")
            lines = lines_of_perf(path, "trace:comm,pid,tid,cpu,time,event,trace")
            equal(len(lines), N, "lines of perf script")
            for line in lines:
                check(re.match(r" *python3?[\d.]* +(\d+)/\1 +\[\d+\] +\d+\.\d{9}: raw_syscalls:sys_enter: NR \d+ \(", line), line)
            equal(sorted(os.listdir(folder)), ["perf.data", *["perf.data.old"] * bool(options)], "files")
            clock = said["features"]["CLOCK_DATA"]
            samples = [json.loads(line) for line in run([PERFCTL, "--json", "script", "-i", path]).stdout.splitlines()]
            equal({s["wall"] - s["time"] for s in samples}, {clock["wall_clock_ns"] - clock["clockid_time_ns"]}, "wall times")
            equal((said["first"], said["last"]), (min(s["time"] for s in samples), max(s["time"] for s in samples)), "times")


def parts(path):
    """What perf says that samples of its event have."""
    return set(re.search(r" sample_type: ([A-Z|_]+)", perf("evlist", "-v", "-i", path)).group(1).split("|"))


def test_header():
    """What perf prints of the sections is what perfctl info says; of a tracepoint no address is promised that no sample has."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        record(daemon, "-o", path, *EVENTS, *python(CALLS))
        found, features = dict(re.findall(r"^# ([\w ]+?) *: (.*)$", perf("report", "--header-only", "-I", "-i", path), re.M)), info(path)["features"]
        for name, key in (("HOSTNAME", "hostname"), ("OSRELEASE", "os release"), ("VERSION", "perf version"), ("ARCH", "arch")):
            equal(features[name], found[key], name)
        equal((features["HOSTNAME"], features["OSRELEASE"]), (os.uname().nodename, os.uname().release), "names of the host")
        equal(features["NRCPUS"], {"available": int(found["nrcpus avail"]), "online": int(found["nrcpus online"])}, "NRCPUS")
        equal(f"{features['TOTAL_MEM']} kB", found["total memory"], "TOTAL_MEM")
        for name in ("CPU_TOPOLOGY", "PMU_MAPPINGS", "CLOCK_DATA", "SAMPLE_TIME", "TRACING_DATA", "EVENT_DESC"):
            check(name in features, f"{name} is missing: {sorted(features)}")
        equal(parts(path), {"IDENTIFIER", "TID", "TIME", "CPU", "PERIOD", "RAW"}, "parts of a tracepoint's samples")
        record(daemon, "-o", path, *EVENTS, "-g", *python("import os; os.getppid()"))
        equal(parts(path), {"IDENTIFIER", "IP", "TID", "TIME", "CPU", "PERIOD", "RAW", "CALLCHAIN"}, "with callchains")


def test_chains():
    """A sampled event beside a tracepoint: whose each sample is, when, where and for how much, as perf script says; and names."""
    load = "import time\nt = time.process_time() + .3\nwhile time.process_time() < t: pass"
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        record(daemon, "-o", path, "cpu-clock", "-F", "500", "-g", *python(load))
        lines = lines_of_perf(path, "pid,tid,cpu,time,period,event")
        expected = sorted(re.match(r" *(\d+)/(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): +(\d+) +([\w:-]+):", line).groups() for line in lines)
        ran = run([SAMPLES, path])
        equal((ran.returncode, ran.stderr), (0, b""), "recorded-samples")
        found = [line.split() for line in ran.stdout.decode().splitlines()]
        found = sorted((int(time), event, *map(int, numbers)) for kind, time, event, *numbers in found if kind == "SAMPLE")
        equal(found, sorted((int(s + ns), event, int(pid), int(tid), int(cpu), int(period)) for pid, tid, cpu, s, ns, period, event in expected),
              "samples")
        check(len(found) > 20, f"{len(found)} samples")
        chains = perf("script", "-F", "ip,sym,dso", "-i", path)
        check(re.search(r"^\s+[0-9a-f]+ \S+ \(.*python3", chains, re.M), f"no frame of python: {chains[:500]}")


def test_default():
    """A command, or options, without an event: cycles, or cpu-clock where there are none, as stderr and the recording say."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        for options, rate in (("-g",), 999), (("-F", "2000"), 2000):
            done = record(daemon, "-o", path, *options, *python("print(sum(range(1000000)))"))
            event = re.search(r"no event was named: this records (cycles|cpu-clock)(, as this machine does not count cycles)?\n", done.stderr.decode())
            check(event and bool(event[2]) == (event[1] == "cpu-clock"), done.stderr)
            said = info(path)
            equal((said["damage"], said["events"], said["samples"]), ([], [event[1]], sent(done)), "what is in it")
            check(said["samples"] > 0, "no samples")
            attr = perf("evlist", "-v", "-i", path)
            check(attr.startswith("cpu-clock: type: 1, " if event[2] else "cycles: ") and f"sample_freq }}: {rate}," in attr, attr)
        equal(done.stdout, b"499999500000\n", "what the command says")
        counted = event[1]
        for event in ("cycles", "cpu-cycles", "cpu-clock", "task-clock:u"):  # of which nothing else is said
            done = record(daemon, "-o", path, "-e", event, *python("print(sum(range(1000000)))"))
            fallen = f"{event}: this machine does not count cycles: this records cpu-clock instead\n" in done.stderr.decode()
            equal(fallen, "cycles" in event and counted == "cpu-clock", f"what is said of {event}, {done.stderr}")
            equal(info(path)["events"], ["cpu-clock" if fallen else event], "the event")
            attr = perf("evlist", "-v", "-i", path)
            check("sample_freq }: 999," in attr, f"{event}: {attr}")
        if counted == "cpu-clock":
            done = record(daemon, "-o", path, "cycles:u", *python("pass"), status=1)
            check(b"cycles:u" in done.stderr, f"modifiers: {done.stderr}")
        record(daemon, "-o", path, "--for", "10ms", status=1)  # all that run, and none does
        done = record(daemon, "-o", path, "-a", "--for", "10ms")
        check(b"no event was named: this records" in done.stderr, done.stderr)


def mapped(path):
    """Pids of the tasks that were there before: what perf and we make of /proc has the time 0."""
    lines = perf("script", "--ns", "--show-mmap-events", "--show-task-events", "-i", path).splitlines()
    return {int(m[1]) for m in (re.search(r" 0\.0+: PERF_RECORD_(?:MMAP2|COMM)[^:]*?[: ](\d+)[/:]\d+", line) for line in lines) if m and int(m[1]) > 0}


def test_tasks():
    """Of one process and of a command those tasks alone that it has; of the host all."""
    parent = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    try:
        with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
            path = os.path.join(folder, "perf.data")
            record(daemon, "-o", path, "page-faults", "--pid", str(parent.pid), "--for", "10ms")
            equal(mapped(path), {parent.pid, child}, "of a process and its child")
            record(daemon, "-o", path, "cpu-clock", "-F", "99", "-a", "--for", "10ms")
            check(mapped(path) > {parent.pid, child, os.getpid()}, "of the host")
            record(daemon, "-o", path, "page-faults", *python("import os; print(os.getpid())"))
            check(not mapped(path) & {parent.pid, child, os.getpid()}, "of a command")
    finally:
        os.kill(child, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


MEANWHILE = """import os, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    for i in range(300): os.getppid()
    os._exit(0)
os.waitpid(child, 0)
print(child, flush=True)
"""


def test_others():
    """Who begins on the host while a command is recorded is not in its file; the command's own child is, in each of the files."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        for options in (), ("--rotate", "64KiB"):
            recorder = subprocess.Popen(words(daemon, "record", "-o", os.path.join(folder, "perf.data"), *options, *EVENTS, *python(MEANWHILE)),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            command = int(recorder.stdout.readline())
            other = subprocess.Popen([sys.executable, "-S", "-c", "import os, sys; os.fork() or os._exit(0); os.wait()"])
            equal(other.wait(timeout=perfd.PATIENCE), 0, "the other")
            said, stderr = recorder.communicate(b"\n", timeout=perfd.PATIENCE)
            equal(recorder.returncode, 0, stderr)
            child = int(said)
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                lines = perf("script", "--ns", "--show-mmap-events", "--show-task-events", "-i", path)
                found = {int(pid) for pid in re.findall(r"PERF_RECORD_(?:MMAP2 |COMM[^:]*: .*?:|(?:FORK|EXIT)\()(\d+)[/:]", lines)}
                equal(found - {command}, {child}, f"of whom side records of {name} are, beside the command")
                samples = lines_of_perf(path, "pid,event")
                check(len(samples) >= 300 or options, samples)
                equal({int(line.split()[0]) for line in samples} - {command}, {child} if samples else set(), "of whom samples are")
                os.unlink(path)


def test_pipe():
    """-o -"""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "pipe.data")
        for options in ((), ("-z",)):  # as perf has it: the event behind it is no level
            with open(path, "wb") as out:
                recorder = subprocess.Popen(words(daemon, "record", "-o", "-", *options, *EVENTS), stdout=out, stderr=subprocess.PIPE)
                wait_until(lambda: os.path.getsize(path) > 0, "the recording begins")
                run([sys.executable, "-S", "-c", CALLS])
                recorder.send_signal(signal.SIGINT)
                said = recorder.communicate(timeout=perfd.PATIENCE)[1]
            equal(recorder.returncode, 0, said)
            found = info(path)
            equal((found["pipe"], found["damage"]), (True, []), "a pipe")
            check(found["samples"] >= N, f"{found['samples']} samples")
            equal(found["features"].get("COMPRESSED", {}).get("level"), 1 if options else None, "the level")
            with open(path, "rb") as f:
                lines = perf("script", "-F", "trace:comm,event,trace", "-i", "-", stdin=f).splitlines()
            equal(len([line for line in lines if "raw_syscalls:sys_enter: NR" in line]), found["samples"], "lines of perf script")


def test_killed():
    """What a killed recorder leaves is read to its last whole record, with its fields; and by perf, once it is mended."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        recorder = subprocess.Popen(words(daemon, "record", "-o", path, *EVENTS), stderr=subprocess.DEVNULL)
        load = subprocess.Popen([sys.executable, "-S", "-c", "import os\nwhile True: os.getppid()"])
        try:
            wait_until(lambda: any(os.path.getsize(os.path.join(folder, name)) > 1 << 20 for name in os.listdir(folder)), "a megabyte is written")
        finally:
            load.kill()
            load.wait()
            recorder.kill()
            recorder.wait()
        (part,) = os.listdir(folder)
        check(part.startswith("perf.data.part-"), part)
        said = info(os.path.join(folder, part), status=1)
        check(said["samples"] > 1000 and said["damage"][0]["text"].startswith("the size of the data is 0"), f"{said['damage']}, {said['samples']}")
        path = os.path.join(folder, part)
        ran = run([PERFCTL, "info", "--repair", path])
        equal((ran.returncode, ran.stderr.decode()),
              (0, f"perfctl: info: {path}: what is whole of it is a recording now; as it was it is {path}.old\n"), "info --repair")
        mended = info(path)
        equal((mended["samples"], mended["samples_of"], mended["events"], mended["damage"]),
              (said["samples"], [said["samples"]], [EVENTS[0]], []), "what was mended")
        equal({name for name in said["features"]}, {name for name in mended["features"]}, "sections")
        lines = lines_of_perf(path, "trace:time,event,trace")
        equal(len(lines), said["samples"], "samples of perf script")
        check(all(re.match(r" *(\d+\.\d{9}): raw_syscalls:sys_enter: NR \d+ \(", line) for line in lines), lines[:3])
        times = [int(re.match(r" *(\d+)\.(\d{9}):", line).expand(r"\1\2")) for line in (min(lines), max(lines))]
        equal([mended["first"], mended["last"]], times, "the first and the last time")
        ran = run([PERFCTL, "info", "--repair", path])
        check(ran.returncode == 0 and b"nothing is damaged, and it is as it was" in ran.stderr, ran.stderr)


def test_full():
    """A file that gets too large, as on a full disk: what is whole is a recording, and all other samples are said to be missing, in it too."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        calls = "import os\nfor i in range(1000000): os.getppid()\n"
        done = record(daemon, "-o", path, *EVENTS, *python(calls), status=1, preexec_fn=limit)
        check(b"File too large, behind " in done.stderr, done.stderr)
        missing, came = map(int, re.search(rb"^perfctl: record: (\d+) of (\d+) samples that came are missing, because", done.stderr, re.M).groups())
        said = info(path)
        equal((said["damage"], said["samples"], said["lost_samples"]), ([], came - missing, missing), "what is in the file")
        equal((sent(done), os.listdir(folder)), (came, ["perf.data"]), "samples that came, and files")
        equal(stats(path)["SAMPLE"], came - missing, "samples that perf finds")


RENAMED = """import os, sys, threading
open("/proc/self/comm", "w").write("renamed")
def wait():
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
        f.write("thread")
    begun.set()
    done.wait()
begun, done = threading.Event(), threading.Event()
thread = threading.Thread(target=wait)
thread.start()
begun.wait()
for i in range(4000): os.getppid()
done.set()
thread.join()
os.getppid()
"""


def test_rotation():
    """Files one behind the other: each whole in itself, with the names and mappings of tasks that began before it; no sample is between them,
    and the oldest give way."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "ring.data")
        done = record(daemon, "-o", path, "--rotate", "64KiB", "--keep", "3", *EVENTS, *python(RENAMED))
        said = re.findall(rb"^perfctl: record: (\S+): (\d+) samples, ", done.stderr, re.M)
        names, counts = [os.path.basename(name.decode()) for name, _ in said], [int(n) for _, n in said]
        equal(sum(counts), sent(done), "samples of all files")
        check(len(names) > 4 and all(re.fullmatch(r"ring\.data\.\d{16}", name) for name in names) and names == sorted(set(names)), names)
        equal(sorted(os.listdir(folder)), names[-3:], "files that are kept")
        lacks = subprocess.run([PERFCTL, "report", "-i", path], capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        equal((lacks.returncode, lacks.stderr.splitlines()[1:]), (1, ["perfctl: report: there are 3 of a recorder that rotates its files, each a whole "
              f"recording, from {path}{names[-3][9:]} to {path}{names[-1][9:]}"]), "of the file that was never there")
        last = 0
        for name, count in list(zip(names, counts))[-3:]:
            file = os.path.join(folder, name)
            found = info(file)
            equal((found["damage"], found["samples"], found["events"]), ([], count, [EVENTS[0]]), name)
            check(found["first"] is None or found["first"] >= last, f"{name} begins before the one before it ends")
            last = found["last"] or last
            check({"TRACING_DATA", "CLOCK_DATA", "HOSTNAME", "EVENT_DESC"} <= set(found["features"]), f"sections of {name}: {found['features'].keys()}")
            lines = lines_of_perf(file, "comm,tid,pid,event")
            equal({line.split()[0] for line in lines}, {"renamed"} if count else set(), f"names of {name}, of {count} samples")
            maps = perf("script", "--show-mmap-events", "--show-task-events", "-i", file)
            pid = lines[0].split()[1].split("/")[0] if lines else ""
            check(not lines or re.search(rf"PERF_RECORD_MMAP2 {pid}/{pid}: .* r-xp .*libc\.so", maps), f"mappings of {pid} in {name}: {maps[:2000]}")
            check(not lines or re.search(rf"PERF_RECORD_COMM: thread:{pid}/", maps) or name == names[-1], f"the other thread of {pid} in {name}")
        for words, text in ((("--keep", "3"), b"--keep is for files that --rotate makes"), (("--rotate", "10"), b"is less than 64 KiB or 1 s"),
                            (("--rotate", "soon"), b"is neither a size such as 100M nor a time such as 10m"), (("--rotate", "1M", "--keep", "0"), b"--keep: '0' ")):
            check(text in record(daemon, "-o", path, *words, *EVENTS, status=2).stderr, words)


def test_glob():
    """Events of a glob, none of which runs, are added; each is in the recording."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        record(daemon, "-o", path, "sched:sched_process_e*", *python("import os\nif os.fork() == 0: os._exit(0)\nos.wait()"))
        found = info(path)
        equal((found["events"], found["damage"]), (["sched:sched_process_exec", "sched:sched_process_exit"], []), "events")
        check(found["samples_of"][1] >= 2, found["samples_of"])
        equal(len(lines_of_perf(path, "event")), found["samples"], "lines of perf script")
        with daemon.client() as client:
            add(client, {"event": "page-faults", "period": 1})
            record(daemon, "-o", path, "page-faults", "sched:sched_wakeup*", "--for", "200ms", "--allow-loss")  # in a record the kernel writes none
        equal(info(path)["events"], ["page-faults", "sched:sched_wakeup", "sched:sched_wakeup_new"], "one that runs, and a glob")


def test_interrupted():
    """Ctrl-C ends it whole; on a terminal it says meanwhile how much there is."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        ours, theirs = os.openpty()
        recorder = subprocess.Popen(words(daemon, "record", "-o", path, *EVENTS, "-p", str(os.getpid())), stderr=theirs)
        os.close(theirs)
        said = b""
        try:
            while not re.search(rb"\rrecording: [1-9]\d* samples, [\d.]+ \w+, 0 lost\x1b\[K\r", said):
                os.getppid()
                if select.select([ours], [], [], 0.01)[0]:
                    said += os.read(ours, 4096)
                check(len(said) < 100000, said[-500:])
        finally:
            recorder.send_signal(signal.SIGINT)
            equal(recorder.wait(perfd.PATIENCE), 0, "its status")
        said += os.read(ours, 4096)
        os.close(ours)
        found = info(path)
        equal((found["damage"], found["samples"] > 0), ([], True), "what is in it")
        check(f"{path}: {found['samples']} samples, ".encode() in said, said)


def test_hangup():
    """A closed terminal ends a recording whole, though a shell says it twice; and who is ended while a file is written leaves no part of it."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        recorder = subprocess.Popen(words(daemon, "record", "-o", path, *EVENTS), stderr=subprocess.PIPE)
        wait_until(lambda: [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)] > [0], "the recording begins")
        recorder.send_signal(signal.SIGHUP)
        recorder.send_signal(signal.SIGHUP)
        said = recorder.communicate(timeout=perfd.PATIENCE)[1]
        equal((recorder.returncode, info(path)["damage"], os.listdir(folder)), (0, [], ["perf.data"]), said)
        for end in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
            export = subprocess.Popen([PERFCTL, "export", "--to", "csv", "-i", "-", "-o", os.path.join(folder, "x.csv")], stdin=subprocess.PIPE)
            wait_until(lambda: len(os.listdir(folder)) > 1, "the file is begun")
            export.send_signal(end)
            equal((export.wait(perfd.PATIENCE), os.listdir(folder)), (-end, ["perf.data"]), f"what {end} leaves")
            export.stdin.close()


def test_build_ids():
    """Of programs that began before and of those that begin: in files, in each of several, and in a pipe."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, program = os.path.join(folder, "perf.data"), os.path.join(folder, "program")
        shutil.copy(SAMPLES, program)
        notes = run(["readelf", "-n", program]).stdout.decode()
        expected = f"{re.search('Build ID: ([0-9a-f]{40})', notes)[1]} {program}"
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as waits:
            interpreter = os.path.realpath(f"/proc/{waits.pid}/exe")
            runs = f"import os, subprocess\nsubprocess.run(['{program}', '/'], stderr=subprocess.DEVNULL)\n"
            record(daemon, "-o", path, *EVENTS, *python(runs + CALLS))
            check(expected in perf("buildid-list", "-i", path).splitlines(), f"{expected} is not in the list")
            rows = {row["path"]: row["build_id"] for row in info(path)["features"]["BUILD_ID"]}
            equal(f"{rows[program]} {program}", expected, "what perfctl info says")
            check({interpreter, "[kernel.kallsyms]"} <= rows.keys(), f"{interpreter} is missing: {rows.keys()}")
            for arguments in (("-o", "-"), ("-o", path, "--rotate", "1s", "--keep", "1")):
                done = record(daemon, *arguments, *EVENTS, "--pid", str(waits.pid), "--for", "1200ms")
                if arguments[1] == "-":
                    with open(path, "wb") as f:
                        f.write(done.stdout)
                last = max(os.path.join(folder, name) for name in os.listdir(folder) if re.fullmatch(r"perf\.data(\.\d+)?", name))
                found = {row["path"]: row["build_id"] for row in info(last)["features"]["BUILD_ID"]}
                equal({found.get(name) == rows[name] for name in (interpreter, "[kernel.kallsyms]")}, {True}, f"{arguments}: {found}")
            waits.communicate(b"\n", timeout=perfd.PATIENCE)


def test_refused():
    """What cannot be recorded, and where, is said before anything is written."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        for arguments, status, text in (((*EVENTS, "-o", path + "/no/file"), 1, b"Not a directory|No such file"), ((*EVENTS, "-z", "20"), 2, b"none of 1 to 19"),
                                        ((*EVENTS, "-o", "-", "--", "true"), 2, b"stdout is the command's"),
                                        ((*EVENTS, "-o", folder), 1, b"it is no regular file"),
                                        (("external:nothing", "-o", path), 1, b"external:nothing")):
            done = record(daemon, *arguments, status=status)
            check(re.search(text, done.stderr), f"of {arguments}: {done.stderr}")
            equal(os.listdir(folder), [], f"files, of {arguments}")
        for arguments, text in ((("-c", "1s", "cpu-clock", "--", "true"), "few samples: one for each 1000000000 of cpu-clock: a smaller -c takes more"),
                                (("-F", "1", "cpu-clock", "--", "true"), "few samples: cpu-clock was sampled 1 times a second"),
                                ((EVENTS[0], "--filter", "id == 99999", "--for", "50ms"), "no sample: nothing that --filter chooses has run or happened meanwhile")):
            said = record(daemon, "-o", path, *arguments).stderr.decode()
            equal(said.splitlines()[-1].startswith(f"perfctl: record: {text}"), True, f"advice: {said}")


def test_closed_pipe():
    """Whoever has read enough ends it, without a word."""
    with Daemon() as daemon:
        recorder = subprocess.Popen(words(daemon, "record", "-o", "-", *EVENTS), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(recorder.stdout.read(8), b"PERFILE2", "how it begins")
        recorder.stdout.close()
        run([sys.executable, "-S", "-c", CALLS])
        equal((recorder.wait(perfd.PATIENCE), recorder.stderr.read()), (0, b""), "its status, and what it says")
        recorder.stderr.close()


def test_passed_over():
    """Whoever adds what no recording can have does not end those of others, and is no reason to begin none; who names it is told."""
    with Daemon() as daemon, daemon.client() as client, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        add(client, {"event": EVENTS[0], "name": "calls", "target": perfd.pb.Target(pids=[os.getpid()]), "filter": EVENTS[2]})
        for _ in range(2):  # it comes while the first one records, and is there when the second begins
            recorder = subprocess.Popen(words(daemon, "record", "-o", path), stderr=subprocess.PIPE)
            wait_until(lambda: daemon.status().n_subscribers == 1, "it records")
            if daemon.status().n_events == 1:
                add(client, NOTED, {"event": "{page-faults,task-clock}", "name": "group"})
            client.request(emit=perfd.pb.EmitRequest(samples=[sample()]))
            for _ in range(N):
                os.getppid()
            recorder.send_signal(signal.SIGINT)
            _, said = recorder.communicate(timeout=perfd.PATIENCE)
            equal((recorder.returncode, said.count(b"is not recorded:")), (0, 1), f"status, and messages: {said}")
            equal((info(path)["damage"], info(path)["events"], info(path)["samples"]), ([], ["calls"], N), "what is recorded")
        done = record(daemon, "-o", path, "noted", "--for", "10ms", status=1)
        check(b"cannot be recorded" in done.stderr, done.stderr)


def test_names_of_the_stream():
    """A thread that no look at /proc has seen is called as the stream says it; here there is no /proc to look at."""
    if perfd.SANITIZER != "none":
        raise perfd.Skip("sanitizers read in /proc, even their options")
    hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
    with Daemon() as daemon, daemon.client() as client, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder, \
         perfd.Workload("syscalls", N) as load:
        path = os.path.join(folder, "perf.data")
        add(client, {"event": EVENTS[0], "name": "calls", "target": perfd.pb.Target(pids=load.pids), "filter": EVENTS[2]})
        recorder = subprocess.Popen([*hidden, *words(daemon, "record", "-a", "-o", path, "calls")], stderr=subprocess.PIPE)
        wait_until(lambda: daemon.status().n_subscribers == 1, "it records")
        load.go()
        load.done()
        load.exit()
        recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=perfd.PATIENCE)[1]
        equal(recorder.returncode, 0, f"its status, and it said {said[-500:]}")
        equal([line.split() for line in lines_of_perf(path, "comm")], [["workload"]] * N * len(load.pids), "names")


if __name__ == "__main__":
    perfd.main(globals())
