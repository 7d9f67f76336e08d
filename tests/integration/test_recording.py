#!/usr/bin/python3
"""Recordings that perf makes here, read by perfctl info: the same records, events and sections of the header as perf itself finds. Needs
root, for tracepoints."""
import json
import lzma
import os
import re
import struct
import subprocess
import sys
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL

PERF = ["perf"]
SAMPLES = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "recorded-samples")
LOAD = [sys.executable, "-c", "import os; [os.waitpid(os.fork() or os._exit(0), 0) for _ in range(5)]; x = bytearray(9 << 20)"]
# not page-faults: where others trace them too, the kernel writes their ids into the samples of perf here
EVENTS = ["-e", "minor-faults,cpu-clock,sched:sched_process_exec"]


def run(command, **more):
    return subprocess.run(command, capture_output=True, timeout=perfd.PATIENCE, check=False, **more)


def record(path, *options, events=EVENTS):
    ran = run([*PERF, "record", *events, "-o", path, *options, "--", *LOAD])
    equal(ran.returncode, 0, f"perf record {options}: {ran.stderr}")


def info(path, status=0):
    ran = run([PERFCTL, "--json", "info", path])
    equal((ran.returncode, ran.stderr.decode()), (status, ""), f"perfctl info {path}")
    return json.loads(ran.stdout)


def stats(path):
    """How many records of each type perf finds, by its own names."""
    ran = run([*PERF, "report", "--stats", "--stdio", "-i", path])
    check(ran.returncode == 0 and b"Aggregated stats:" in ran.stdout, ran.stdout + ran.stderr)
    aggregated = ran.stdout.decode().split("Aggregated stats:")[1].split(" stats:")[0]  # those of each event follow
    return {name: int(n) for name, n in re.findall(r"^ *(\w+) events: +(\d+)", aggregated, re.M)}


def header(path):
    ran = run([*PERF, "report", "--header-only", "-I", "-i", path])
    check(ran.returncode == 0, ran.stderr)
    return dict(re.findall(r"^# ([\w ]+?) *: (.*)$", ran.stdout.decode(), re.M))


def compare(path, events):
    """Counts of all types, the total, the names of events, and the sections that perf prints."""
    said, expected = info(path), stats(path)
    equal(said["damage"], [], f"damage of {path}")
    counts = {name.removeprefix("HEADER_"): n for name, n in said["records"].items()}
    total = expected.pop("TOTAL")
    expected = {name: n for name, n in expected.items() if n > 0}
    equal({name: counts.get(name) for name in expected}, expected, f"records of {path}")
    check(sum(counts.values()) >= total, f"{path}: {counts}, perf counts {total}")
    equal(said["samples"], expected.get("SAMPLE", 0), "samples")
    equal((sum(said["samples_of"]), said["bytes"]), (said["samples"], os.path.getsize(path)), "samples of the events, and bytes")
    equal(said["events"], events, "events")
    words = header(path)
    features = said["features"]
    for name, key in (("HOSTNAME", "hostname"), ("OSRELEASE", "os release"), ("VERSION", "perf version"), ("ARCH", "arch"),
                      ("CPUDESC", "cpudesc"), ("CPUID", "cpuid")):
        equal(features[name], words[key], name)
    equal(features["NRCPUS"], {"available": int(words["nrcpus avail"]), "online": int(words["nrcpus online"])}, "NRCPUS")
    equal(f"{features['TOTAL_MEM']} kB", words["total memory"], "TOTAL_MEM")
    equal(" ".join(features["CMDLINE"]).strip(), words["cmdline"].strip(), "CMDLINE")
    equal([event["name"] for event in features["EVENT_DESC"]], events, "EVENT_DESC")
    return said


def events_of(options):
    """perf adds one of its own where it watches what begins."""
    return ["minor-faults", "cpu-clock", "sched:sched_process_exec", *["dummy:HG"] * ("-a" in options)]


def test_script():
    """Each sample of perf script, in its order: the event, when, who, and the texts and numbers of a tracepoint's fields."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        record(path)
        ran = run([PERF[0], "script", "-i", path, "--ns", "-F", "tid,time,event,trace"])
        equal(ran.returncode, 0, ran.stderr)
        rows = re.findall(r"^ *(\d+) +(\d+)\.(\d+): +(\S+): *(.*?) *$", ran.stdout.decode(), re.M)
        ran = run([PERFCTL, "--json", "script", "-i", path])
        equal((ran.returncode, ran.stderr), (0, b""), "perfctl script")
        items = [json.loads(line) for line in ran.stdout.splitlines()]
        equal(sorted((i["tid"], i["time"], i["event"]) for i in items),
              sorted((int(tid), int(s) * 10**9 + int(ns), event) for tid, s, ns, event, _ in rows), "samples")
        execs = [i for i in items if i["event"] == "sched:sched_process_exec"]
        check(execs, "no sample of a tracepoint")
        equal([f"filename={i['fields']['filename']} pid={i['fields']['pid']} old_pid={i['fields']['old_pid']}" for i in execs],
              [trace for *_, event, trace in rows if event == "sched:sched_process_exec"], "fields")
        ran = run([PERFCTL, "--json", "script", "-i", path, "sched:*"])
        equal([json.loads(line) for line in ran.stdout.splitlines()], execs, "one event")


def build_ids(path):
    ran = run([*PERF, "buildid-list", "-i", path])
    check(ran.returncode == 0, ran.stderr)
    return {tuple(line.split(" ", 1)) for line in ran.stdout.decode().splitlines() if line[0] != " "}  # whose id it does not know


def test_files():
    """Of every kind that perf record writes here."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        for options in ((), ("-g",), ("--call-graph", "dwarf"), ("-a",), ("-z",), ("-a", "--compression-level=22"), ("--namespaces", "--all-cgroups"),
                        ("--buildid-mmap",), ("-d", "-W", "--phys-data"), ("-T", "-k", "CLOCK_MONOTONIC"), ("-n",), ("-s",)):
            record(path, *options)
            said = compare(path, events_of(options))
            equal(said["pipe"], False, "a pipe")
            if "--buildid-mmap" not in options:  # there they are in the records
                equal({(row["build_id"], row["path"]) for row in said["features"].get("BUILD_ID", [])}, build_ids(path),
                      f"build ids with {options}")
            equal("COMPRESSED" in said["records"], any(word.startswith(("-z", "--compression")) for word in options), f"compressed records with {options}")
            equal(said["byte_order"], sys.byteorder, "byte order")


def test_pipes():
    """The same as a pipe."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "pipe.data")
        for options in ((), ("-a",), ("-g", "-z")):
            with open(path, "wb") as out:
                ran = subprocess.run([*PERF, "record", *EVENTS, "-o", "-", *options, "--", *LOAD], stdout=out, stderr=subprocess.PIPE, check=False,
                                     timeout=perfd.PATIENCE)
            equal(ran.returncode, 0, ran.stderr)
            said = info(path)
            equal((said["pipe"], said["damage"]), (True, []), "a pipe")
            equal(said["events"], events_of(options), "events")
            with open(path, "rb") as f:
                whole = f.read()
            ran = run([*PERF, "script", "-F", "comm,event", "-i", "-"], input=whole)  # perf report of 6.1 reads no tracing data of pipes
            equal(said["samples"], sum(line[:1] not in (b"", b"\t") for line in ran.stdout.splitlines()), f"samples of a pipe with {options}: {ran.stdout[:300]}")
            ran = run([PERFCTL, "--json", "info", "-"], input=whole)
            equal((ran.returncode, json.loads(ran.stdout)), (0, {**said, "bytes": None}), "from stdin")


def samples_of_perf(path):
    ran = run([*PERF, "script", "--ns", "-F", "pid,tid,cpu,time,period,event", "-i", path])
    check(ran.returncode == 0, ran.stderr)
    found = re.findall(r"^ *(-?\d+)/(-?\d+) +\[(\d+)\] +(\d+)\.(\d{9}): +(\d+) +([\w:-]+): *$", ran.stdout.decode(), re.M)
    # -1 is the number that a task has when it is nearly gone
    return sorted((int(s + ns), event, int(pid) & 0xffffffff, int(tid) & 0xffffffff, int(cpu), int(period))
                  for pid, tid, cpu, s, ns, period, event in found)


def test_samples():
    """Each sample of several events: whose it is, when, on which CPU and for how much, as perf script says; and other records."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        for options in ((), ("-a", "-g"), ("-z", "--call-graph", "dwarf"), ("-c", "1")):
            record(path, "-T", "-P", "--sample-cpu", *options)
            ran = run([SAMPLES, path])
            equal((ran.returncode, ran.stderr), (0, b""), f"recorded-samples with {options}")
            lines = [line.split() for line in ran.stdout.decode().splitlines()]
            found = sorted((int(time), event, *map(int, numbers)) for _, time, event, *numbers in (line for line in lines if line[0] == "SAMPLE"))
            expected = samples_of_perf(path)
            check(len(expected) > 10, f"perf has {len(expected)} samples")
            equal((sorted(set(found) - set(expected))[:3], sorted(set(expected) - set(found))[:3]), ([], []), f"samples with {options}")
            equal(len(found), len(expected), f"samples with {options}")
            exits = [line for line in lines if line[0] == "EXIT"]
            check(len(exits) >= 6 and all(int(time) > 0 and int(pid) > 0 for _, time, _, pid, *_ in exits), f"records of ends: {exits[:3]}")


def test_damaged():
    """What is cut off is said with its place, what is whole is counted, and the status is 1."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, cut = os.path.join(folder, "perf.data"), os.path.join(folder, "cut.data")
        record(path)
        whole = info(path)
        with open(path, "rb") as f:
            data = f.read()
        at, size = struct.unpack_from("=QQ", data, 40)  # of the records
        with open(cut, "wb") as f:
            f.write(data[:at + size // 2 + 1])
        said = info(cut, status=1)
        check(said["damage"] and 0 < said["samples"] < whole["samples"], f"of a half: {said['damage']}, {said['samples']} samples")
        for text, content in (("no perf.data", b"something else" * 20), ("expected PERFILE2", b"")):
            with open(cut, "wb") as f:
                f.write(content)
            ran = run([PERFCTL, "info", cut])
            equal((ran.returncode, ran.stdout), (1, b""), "of what is none")
            check(text in ran.stderr.decode() and cut in ran.stderr.decode(), ran.stderr)
        ran = run([PERFCTL, "info", os.path.join(folder, "missing")])
        equal(ran.returncode, 1, "of a file that is not there")
        check("No such file" in ran.stderr.decode(), ran.stderr)


def recording_of_modules(mapped, listed, ips):
    """Of another machine: modules as perf maps them, [(start, path)], build ids of its list, {path: id}, and samples in the kernel."""
    def record_of(kind, misc, body):
        return struct.pack("=IHH", kind, misc, 8 + len(body)) + body

    def text(path, align):
        return path.encode().ljust(len(path) // align * align + align, b"\0")
    records, when = b"", struct.pack("=IIQ", 7, 7, 1000)
    for start, path in ((0xffffffff81000000, "[kernel.kallsyms]_text"), *mapped):
        records += record_of(1, 1, struct.pack("=iIQQQ", -1, 0, start, 0x4000, start if "_text" in path else 0) + text(path, 8) + when)
    records += record_of(3, 0, struct.pack("=II", 7, 7) + text("worker", 8) + when)
    for ip in ips:
        records += record_of(9, 1, struct.pack("=QIIQQqQ", ip, 7, 7, 2000, 2, -128, ip))  # a callchain of one
    ids = b"".join(record_of(0, 1 | 1 << 15, struct.pack("=i20sI", -1, bytes.fromhex(build_id), 20) + text(path, 64)) for path, build_id in listed.items())
    attr = struct.pack("=IIQQQQQ", 1, 128, 0, 1, 1 | 2 | 4 | 1 << 5, 0, 1 << 18).ljust(128, b"\0") + struct.pack("=QQ", 0, 0)
    end = 104 + len(attr) + len(records)
    return (b"PERFILE2" + struct.pack("=QQQQQQQQ", 104, len(attr), 104, len(attr), 104 + len(attr), len(records), 0, 0) + struct.pack("=QQQQ", 1 << 2, 0, 0, 0) +
            attr + records + struct.pack("=QQ", end + 16, len(ids)) + ids)


def test_modules():
    """Frames of modules of the kernel of another machine: the module, as perf calls it, its build id and the place in it."""
    fs, net = 0xffffffffc0100000, 0xffffffffc0200000
    ids = {"/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko": "11" * 20, "[nf_tables]": "22" * 20}
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        with open(path, "wb") as f:
            f.write(recording_of_modules([(fs, "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko"), (net, "[nf_tables]"),
                                          (net + 0x4000, "/lib/modules/6.1.0/kernel/net/nf-log.ko.xz")], ids, [fs + 0x104, net + 0x23, net + 0x4042]))
        equal(info(path)["damage"], [], "damage")
        equal(build_ids(path), {(build_id, name) for name, build_id in ids.items()}, "build ids that perf finds")
        ran = run([*PERF, "report", "-q", "--stdio", "--no-children", "-g", "none", "--sort", "dso", "-i", path])  # perf script may have the path
        equal(ran.returncode, 0, ran.stderr)
        by_perf = [line.split()[-1] for line in ran.stdout.decode().splitlines() if line.strip()]
        ran = run([PERFCTL, "--json", "script", "-i", path])
        equal((ran.returncode, ran.stderr), (0, b""), "perfctl script")
        found = [json.loads(line)["kernel_callchain"][0] for line in ran.stdout.splitlines()]
        equal([(item["ip"], item["symbol"], item["offset"], item["dso"], item["build_id"]) for item in found],
              [(hex(fs + 0x104), None, 0x104, "[ext4]", "11" * 20), (hex(net + 0x23), None, 0x23, "[nf_tables]", "22" * 20),
               (hex(net + 0x4042), None, 0x42, "[nf_log]", None)], "frames")
        equal(sorted(by_perf), sorted(item["dso"] for item in found), "files of perf")


# sections of a module with code, in the order of the file; each function has a size of its own
SECTIONS = [(".text", 16, [("first", 100), ("second", 50)]), (".init.text", 16, [("begin", 64)]),
            (".text.unlikely", 1, [("cold", 10)]), (".exit.text", 4, [("end", 8)]), (".data", 16, [("not_code", 32)])]


def make_module(path, build_id):
    """An object file as the kernel loads it."""
    lines = []
    for name, align, symbols in SECTIONS:
        lines.append(f'.section {name},"{"aw" if name == ".data" else "ax"}",@progbits\n.balign {align}')
        lines += [f".type {symbol},@function\n{symbol}: .skip {size}\n.size {symbol},{size}" for symbol, size in symbols]
    source = "\n".join(lines) + "\n"
    equal(run(["as", "-o", path + ".o", "-"], input=source.encode()).returncode, 0, "the status of as")
    equal(run(["ld", "-r", f"--build-id=0x{build_id}", "-o", path, path + ".o"]).returncode, 0, "the status of ld")


def test_files_of_modules():
    """Of another boot: functions where the kernel put their sections, by the file of the module, if it is the very one; also compressed."""
    at, build_id, other = 0xffffffffc0100000, "ab" * 20, "cd" * 20
    places = {4: ("first", 4), 120: ("second", 20), 150: ("cold", 0), 161: ("end", 1), 300: (None, 300)}  # 150 to 160: up to the alignment
    nothing = {place: (None, place) for place in places}
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, file = os.path.join(folder, "perf.data"), os.path.join(folder, "nf-log.ko")
        make_module(file, build_id)
        with open(file, "rb") as f:
            plain = f.read()
        zstd = run(["zstd", "-q", "-c", file]).stdout
        for end, content, said, named in (("", plain, build_id, places), (".xz", lzma.compress(plain, check=lzma.CHECK_CRC32), build_id, places),
                                          (".zst", zstd, build_id, places), ("", plain, other, nothing), (".zst", zstd[:200], build_id, nothing)):
            with open(file + end, "wb") as f:
                f.write(content)
            with open(path, "wb") as f:
                f.write(recording_of_modules([(at, file + end)], {file + end: said}, [at + place for place in places]))
            found = [json.loads(line)["kernel_callchain"][0] for line in run([PERFCTL, "--json", "script", "-i", path]).stdout.splitlines()]
            equal([(f["symbol"], f["offset"], f["dso"], f["build_id"]) for f in found], [(*named[place], "[nf_log]", said) for place in places],
                  f"frames of {end} with {len(content)} bytes")


if __name__ == "__main__":
    perfd.main(globals())
