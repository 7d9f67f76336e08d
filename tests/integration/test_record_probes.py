#!/usr/bin/python3
"""Probes in recordings of perfctl: with their arguments, by the names that were given, as perf and perfctl print them. Needs root."""
import json
import os
import re
import signal
import subprocess
import tempfile

import perfd
from perfd import Daemon, add, check, equal, wait_until
from test_command import words
from test_perfctl import PERFCTL
from test_record import lines_of_perf, perf, record, sent
from test_recording import info, run
from test_sources import FIRE, TRACING, symbols

CALLS, HITS = [0, *range(7)], [0, *range(5)]  # each is done once before fire is ready
COMMAND = ("--", "sh", "-c", f"printf 'calls 7\\nhits 5\\n' | {FIRE} > /dev/null")


def printed(path):
    """The samples, as perfctl script prints them."""
    return [json.loads(line) for line in run([PERFCTL, "--json", "script", "-i", path]).stdout.splitlines()]


def lines_of_pipe(path):
    with open(path, "rb") as f:
        return [line for line in perf("script", "-F", "trace:event,trace", "-i", "-", stdin=f).splitlines() if line]


def test_arguments():
    """Several probes beside a tracepoint, without and with arguments and a name: each of its own fields."""
    function, static = f"uprobe:{FIRE}:fire_call", f"usdt:{FIRE}:fire:hit"
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        done = record(daemon, "-o", path, function, static, f"uretprobe:{FIRE}:fire_call", "sched:sched_process_exec", *COMMAND)
        found = info(path)
        equal((found["damage"], found["events"]), ([], [function, static, f"uretprobe:{FIRE}:fire_call", "sched:sched_process_exec"]), "events")
        equal((found["samples_of"][:3], found["samples"]), ([len(CALLS), len(HITS), len(CALLS)], sent(done)), "samples")
        lines, samples = lines_of_perf(path, "trace:event,trace"), printed(path)
        equal([re.findall(r"arg([13])=(-?\d+)", line) for line in lines if static in line],
              [[("1", str(i)), ("3", str(-i))] for i in HITS], "static arguments, by perf")
        equal([(s["fields"]["arg1"], s["fields"]["arg3"]) for s in samples if s["event"] == static], [(i, -i) for i in HITS], "by perfctl")
        equal(len([line for line in lines if "uretprobe:" in line and " <- " in line]), len(CALLS), "returns")
        inside = symbols()["fire_call"] % 4096
        equal({int(s["ip"], 16) % 4096 for s in samples if s["event"] == function}, {inside}, "where they were")

        with daemon.client() as client:
            add(client, {"event": function, "name": "mine", "args": "n=$arg1:s64 t=+0($arg2):string"})
        with open(path, "wb") as out:
            recorder = subprocess.Popen(words(daemon, "record", "-o", "-", "-z", "1", "mine"), stdout=out, stderr=subprocess.DEVNULL)
            wait_until(lambda: os.path.getsize(path) > 0, "the recording begins")
            run(COMMAND[1:])
            recorder.send_signal(signal.SIGINT)
            equal(recorder.wait(perfd.PATIENCE), 0, "its status")
        equal((info(path)["events"], info(path)["samples"]), (["mine"], len(CALLS)), "one that runs, with a name")
        equal([re.sub(r".*\) ", "", line) for line in lines_of_pipe(path)], [f'n={i} t="text {i}"' for i in CALLS], "by perf")
        equal([(s["event"], s["fields"]["n"], s["fields"]["t"]) for s in printed(path)], [("mine", i, f"text {i}") for i in CALLS], "by perfctl")


def test_rotated():
    """Each file has the format of its own."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        command = ("--", "sh", "-c", f"printf 'calls 3000\\n' | {FIRE} > /dev/null")
        record(daemon, "-o", os.path.join(folder, "ring"), "--rotate", "64KiB", f"uprobe:{FIRE}:fire_call", "--args", "n=$arg1:s64", *command)
        files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        check(len(files) > 2, files)
        numbers = [int(line.rpartition("n=")[2]) for path in files for line in lines_of_perf(path, "trace:event,trace")]
        equal(numbers, [0, *range(3000)], "calls of all files")


def test_pmu():
    """Where tracefs cannot be written the daemon asks the PMU. Of a probe that cannot be it is said why, and nothing written."""
    read_only = ("unshare", "--mount", "sh", "-c", f'mount -o remount,bind,ro {TRACING} && exec "$@"', "sh")
    with Daemon(prefix=read_only) as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        done = record(daemon, "-o", path, f"uprobe:{FIRE}:fire_call", "-a", "--for", "1ms")
        with open("/sys/bus/event_source/devices/uprobe/type", encoding="ascii") as f:
            pmu = int(f.read())
        found = info(path)
        equal((found["damage"], found["samples"], found["features"]["EVENT_DESC"][0]["type"]), ([], sent(done), pmu), "an event of the PMU")
        equal(lines_of_perf(path, "event"), [], "what perf finds")
        os.unlink(path)
        done = record(daemon, "-o", path, f"uprobe:{FIRE}:nosuch", *COMMAND, status=1)
        check(b"nosuch" in done.stderr, done.stderr)
        done = record(daemon, "-o", path, "kprobe:vfs_read", "--args", "n=$arg1", *COMMAND, status=1)
        check(b"kprobe" in done.stderr, done.stderr)
        equal(os.listdir(folder), [], "files")


if __name__ == "__main__":
    perfd.main(globals())
