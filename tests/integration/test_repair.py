#!/usr/bin/python3
"""What perfctl info --repair makes of a recording that perf record had no time to end. Needs root, for perf record."""
import json
import os
import struct
import sys
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL
from test_recording import PERF, info, run, stats

LOAD = [sys.executable, "-S", "-c", "import select\nfor i in range(500000): str(i)\nselect.select([], [], [], 0.001)"]  # is switched once at least
DATA, BITS = 40, 72  # in the header: where records are and how many bytes, and which sections stand behind them


def record(path, *options):
    ran = run([*PERF, "record", *options, "-o", path, "--", *LOAD])
    equal(ran.returncode, 0, ran.stderr)


def cut_off(path, to):
    """As kill -9 leaves it: the header as it was at first, and nothing behind the records."""
    with open(path, "rb") as f:
        whole = bytearray(f.read())
    at, size = struct.unpack_from("=QQ", whole, DATA)
    del whole[at + size:]
    struct.pack_into("=Q", whole, DATA + 8, 0)
    whole[BITS:BITS + 32] = bytes(32)
    with open(to, "wb") as f:
        f.write(whole)


def repair(path):
    ran = run([PERFCTL, "info", "--repair", path])
    equal(ran.returncode, 0, ran.stderr)
    return ran.stderr.decode().splitlines()


def script(path, *options):
    ran = run([*PERF, "script", "--ns", "-i", path, *options])
    equal((ran.returncode, ran.stderr), (0, b""), f"perf script {options}")
    return ran.stdout


def tracefs():
    return next(path for path in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing") if os.path.isdir(f"{path}/events"))


def test_compressed():
    """Compressed or not, perf has the same of it as of the one that was ended: all samples with their callchains."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, cut = (os.path.join(folder, name) for name in ("perf.data", "cut.data"))
        for options in ["-z"], []:
            record(path, "-q", *options, "-g", "-F", "2000", "-e", "cpu-clock")
            cut_off(path, cut)
            if options:
                check(run([*PERF, "script", "-i", cut]).stdout != script(path), "perf reads it as it is")
            equal(repair(cut), [f"perfctl: info: {cut}: what is whole of it is a recording now; as it was it is {cut}.old"], "what was said")
            lines = script(path)
            check(lines.count(b"cpu-clock") > 100, lines)
            equal(script(cut), lines, f"perf script of what was recorded with {options}")


def test_tracepoints():
    """Their formats are not there: perf opens it, too, and has all but names and fields; this is said."""
    columns = ("-F", "comm,tid,time,ip,sym,dso")
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, cut = (os.path.join(folder, name) for name in ("perf.data", "cut.data"))
        record(path, "-q", "-z", "-g", "-e", "sched:sched_switch,sched:sched_process_exec,page-faults,sched:sched_switch")
        cut_off(path, cut)
        equal(repair(cut)[1:], [f"perfctl: info: {cut}: it was cut off before the formats of its tracepoints were written: they have the names of their "
                                "numbers, and no fields"], "what was said")
        ids = [open(f"{tracefs()}/events/sched/{name}/id", encoding="ascii").read().strip() for name in ("sched_switch", "sched_process_exec")]
        names = [f"tracepoint:id_{ids[0]}", f"tracepoint:id_{ids[1]}", "page-faults", f"tracepoint:id_{ids[0]}"]
        equal([name for name in info(cut)["events"] if not name.startswith("dummy")], names, "events")
        lines = script(path, *columns)
        check(lines.count(b"[kernel.kallsyms]") > 10, lines)
        equal(script(cut, *columns), lines, "perf script")
        said = {word.rstrip(":") for word in script(cut, "-F", "event", "-G").decode().split()}
        check(f"tracepoint:id_{ids[0]}" in said and said <= {*names}, said)
        before, after = (run([PERFCTL, "script", "-F", "time,comm,cpu,symoff", "-i", p]).stdout for p in (path, cut))
        equal(after, before, "perfctl script")


def each_record(recording):
    """Of its bytes: offset, type and size of each."""
    at, size = struct.unpack_from("=QQ", recording, DATA)
    end = at + size
    while at < end:
        kind, _, size = struct.unpack_from("=IHH", recording, at)
        yield at, kind, size
        at += size


def test_samples():
    """Samples whose callchains are longer than they are, and a record that perf does not know: info says where, and perf opens what is left."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        record(path, "-q", "-g", "-F", "2000", "-e", "cpu-clock")
        with open(path, "rb") as f:
            recording = bytearray(f.read())
        records = list(each_record(recording))
        samples = [at for at, kind, _ in records if kind == 9]
        damaged = samples[3], samples[4], samples[-2]
        for at in damaged:  # behind ip, pid and tid, time, and period
            struct.pack_into("=Q", recording, at + 40, 1 << 40)
        unknown = next(at for at, kind, _ in reversed(records) if kind == 68)  # FINISHED_ROUND
        struct.pack_into("=I", recording, unknown, 30)
        with open(path, "wb") as f:
            f.write(recording)
        check(run([*PERF, "script", "-i", path]).returncode != 0, "perf reads it as it is")
        ran = run([PERFCTL, "--json", "info", path])
        equal(ran.returncode, 1, ran.stderr)
        check(b"1 records of type 30, " in ran.stderr, ran.stderr)
        said = json.loads(ran.stdout)
        equal([(d["offset"], d["text"]) for d in said["damage"]],
              [(at, "a record SAMPLE: has fewer numbers than it says") for at in damaged], "damage")
        equal((said["samples"], said["records"]["SAMPLE"]), (len(samples) - 3, len(samples)), "samples that are whole, and all")
        ran = run([PERFCTL, "script", "-i", path])
        equal((ran.returncode, ran.stderr.count(b": has fewer numbers than it says\n")), (1, 3), f"perfctl script: {ran.stderr}")
        equal(repair(path)[1:], [f"perfctl: info: {path}: 3 samples that are damaged are left out: a record LOST_SAMPLES says so",
                                 f"perfctl: info: {path}: 1 records of types that perf does not know are left out"], "what was said")
        after = info(path)
        equal((after["samples"], after["lost_samples"], after["damage"]), (len(samples) - 3, 3, []), "what is left")
        equal(stats(path)["SAMPLE"], len(samples) - 3, "samples that perf finds")


def test_sections():
    """A section of the header that says more than it has is left out, which is said, and all else is there."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        record(path, "-q", "-F", "2000", "-e", "cpu-clock")
        whole = info(path)["features"]
        with open(path, "r+b") as f:
            at, size = struct.unpack("=QQ", f.read(DATA + 16)[DATA:])
            f.seek(BITS)
            bits, = struct.unpack("=Q", f.read(8))
            f.seek(at + size + 16 * (bits & 0b111).bit_count())  # HOSTNAME is bit 3: those before it have places, too
            place, = struct.unpack("=Q", f.read(8))
            f.seek(place)
            f.write(b"\xff" * 4)
        equal(repair(path), [f"perfctl: info: {path}: section HOSTNAME is damaged, or was cut off, and is left out",
                             f"perfctl: info: {path}: what is whole of it is a recording now; as it was it is {path}.old"], "what was said")
        after = info(path)
        equal((after["damage"], after["features"]), ([], {name: value for name, value in whole.items() if name != "HOSTNAME"}), "what is left")
        check(b"cpu-clock" in script(path), "what perf reads")


def test_cannot_be_mended():
    """Where the ids of an event were changed, no end of the records mends it: it stays as it was, and perfctl does not say that it has."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        record(path, "-q", "-F", "2000", "-e", "cpu-clock,page-faults")
        with open(path, "r+b") as f:
            header = f.read(40)
            attr_size, attrs = struct.unpack_from("=QQ", header, 16)
            f.seek(attrs + attr_size - 16)
            ids, size = struct.unpack("=QQ", f.read(16))
            for at in range(ids, ids + size, 8):  # of each CPU
                f.seek(at + 6)
                f.write(b"\x55")
            f.seek(0)
            before = f.read()
        ran = run([PERFCTL, "info", "--repair", path])
        equal(ran.returncode, 1, ran.stderr)
        check(ran.stderr.startswith(f"perfctl: info: {path}: it cannot be mended, and stays as it was: ".encode()), ran.stderr)
        with open(path, "rb") as f:
            equal(f.read() == before, True, "whether it is as it was")
        equal(os.listdir(folder), ["perf.data"], "files")
        equal(run([PERFCTL, "info", "-i", os.path.join(folder, "none")]).returncode, 1, "info of no file, by its option")


if __name__ == "__main__":
    perfd.main(globals())
