#!/usr/bin/python3
"""What perfctl info --repair makes of a recording that perf record had no time to end. Needs root, for perf record."""
import os
import struct
import sys
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL
from test_recording import PERF, run

LOAD = [sys.executable, "-S", "-c", "for i in range(500000): str(i)"]
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


def script(path):
    ran = run([*PERF, "script", "--ns", "-i", path])
    equal(ran.returncode, 0, ran.stderr)
    return ran.stdout


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
    """Their formats are not there: this is said, and samples are there nevertheless."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, cut = (os.path.join(folder, name) for name in ("perf.data", "cut.data"))
        record(path, "-q", "-e", "sched:sched_switch,sched:sched_process_exec")
        cut_off(path, cut)
        equal(repair(cut)[1:], [f"perfctl: info: {cut}: it was cut off before the formats of its tracepoints were written: they have no fields, and perf does not "
                                "open it; perfctl reads it"], "what was said")
        before, after = ([line.split("\t")[:3] for line in run([PERFCTL, "script", "-F", "time,comm,cpu", "-i", p]).stdout.decode().splitlines()] for p in (path, cut))
        check(len(before) > 1, before)
        equal(after, before, "samples")


if __name__ == "__main__":
    perfd.main(globals())
