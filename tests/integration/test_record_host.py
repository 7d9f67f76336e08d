#!/usr/bin/python3
"""`perfctl record --host`: what a recorder on another host writes is what one beside the daemon writes, and the rest of it is of the daemon's host.
The other host is a perfd of this machine behind a relay, with a name and a wall clock of its own. Needs root."""
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from relay import Relay
from test_hosts_clocks import HOUR, SHIM, Clock
from test_perfctl import PERFCTL
from test_record import EVENTS, lines_of_perf, perf
from test_recording import info, run
from test_roles import rules

NAME = "far-away"
ELSEWHERE = ("unshare", "--uts", "sh", "-c", f'echo {NAME} > /proc/sys/kernel/hostname && exec "$@"', "sh")
CALLS, PAGES = 300, 100
NOBODY = 65534
# A task that is there before the recording, and then has a name that no record says: it calls and touches memory on each line of stdin.
TASK = f"""import mmap, os, sys, threading
def act():
    with open("/proc/thread-self/comm", "w") as f:
        f.write("worker")
    os.write(1, b"ready")
    while os.read(0, 1):
        for i in range({CALLS}):
            os.getppid()
        pages = mmap.mmap(-1, {PAGES} * mmap.PAGESIZE)
        for i in range({PAGES}):
            pages[i * mmap.PAGESIZE] = 1
        os.write(1, b"!")
thread = threading.Thread(target=act)
thread.start()
thread.join()
"""


@contextlib.contextmanager
def task():
    """One that waits, and act(), which has it do all once."""
    with subprocess.Popen([sys.executable, "-S", "-c", TASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        def act():
            process.stdin.write(b".")
            equal(process.stdout.read(1), b"!", "what it says when all is done")
        equal(process.stdout.read(5), b"ready", "what it says first")
        yield process, act


def far(relay):
    return ["--tls", relay.folder.name, "--host", f"tls://localhost:{relay.port}"]


@contextlib.contextmanager
def traced(pid, **more):
    """(daemon, relay) of a host that traces that process: calls, with fields, and pages that it touches first, with callchains."""
    with Daemon(**more) as daemon, Relay(daemon) as relay, daemon.client() as client:
        add(client, {"event": EVENTS[0], "name": "calls", "filter": EVENTS[2], "callchain": pb.CALLCHAIN_KERNEL, "target": pb.Target(pids=[pid])},
            {"event": "page-faults", "name": "faults", "period": 1, "callchain": pb.CALLCHAIN_BOTH, "target": pb.Target(pids=[pid])})
        yield daemon, relay


def start(where, path, *more, **popen):
    return subprocess.Popen([PERFCTL, *where, "record", "-o", path, "calls", "faults", *more], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            **popen)


def finish(recorder, status=0):
    """Its words."""
    said = recorder.communicate(timeout=perfd.PATIENCE)[1]
    equal(recorder.returncode, status, said)
    return said


def count_occurred(daemon):
    """By names."""
    return collections.Counter({name: sum(event.occurred for event in daemon.ledger(name).events if event.name == name) for name in ("calls", "faults")})


def script(path):
    ran = run([PERFCTL, "--json", "script", "-i", path])
    equal((ran.returncode, ran.stderr), (0, b""), "perfctl script")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def check_same(there, here):
    """But for where user code is mapped, which is read in /proc, and for the offset of wall time, which each stream measures."""
    keys = ("time", "event", "kernel_event", "cpu", "pid", "tid", "comm", "fields", "period", "ip")
    equal([[s.get(key) for key in keys] for s in there], [[s.get(key) for key in keys] for s in here], "samples")
    chains = [[[frame["ip"] for frame in s.get(part) or ()] for part in ("kernel_callchain", "user_callchain")] for s in there]
    equal(chains, [[[frame["ip"] for frame in s.get(part) or ()] for part in ("kernel_callchain", "user_callchain")] for s in here], "callchains")
    check(any(user for _, user in chains), "no callchain")
    named = [[[(frame["symbol"], frame["offset"], frame["dso"]) for frame in s.get("kernel_callchain") or ()] for s in samples] for samples in (there, here)]
    equal(named[0], named[1], "functions of the kernel")
    check(named[0][0] or named[0][-1], "no function of the kernel")
    equal([frame for chain in named[0] for frame in chain if frame[0] is None or frame[2] != "[kernel.kallsyms]"], [], "what has no name")


def shim_of(clock):
    """What makes that the wall clock of a process; a sanitizer's library wants to be the first one."""
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
    return {**os.environ, "LD_PRELOAD": SHIM, "WALL_OFFSET": clock.file.name, "WALL_ERROR": "1000", "ASAN_OPTIONS": options}


def test_as_there():
    """Each sample once, with its fields, chain and name, as beside the daemon; by perf too; and the host that is described is that one."""
    with task() as (process, act), Clock(HOUR) as clock, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        shim = shim_of(clock)
        with traced(process.pid, prefix=ELSEWHERE, env=shim) as (daemon, relay):
            there, here = os.path.join(folder, "there.data"), os.path.join(folder, "here.data")
            recorders = [start(far(relay), there), start(["--socket", daemon.control], here)]
            wait_until(lambda: daemon.status().n_subscribers == 2, "both to record")
            act()
            for recorder in recorders:
                recorder.send_signal(signal.SIGINT)
                finish(recorder)
            occurred = count_occurred(daemon)
        said = info(there)
        equal((said["damage"], said["events"], said["samples_of"]), ([], ["calls", "faults"], [occurred["calls"], occurred["faults"]]), "what is in it")
        equal((occurred["calls"], occurred["faults"] >= PAGES), (CALLS, True), "what has occurred")
        samples = script(there)
        check_same(samples, script(here))
        equal({s["comm"] for s in samples}, {"worker"}, "the name of the thread")
        equal({s["fields"]["id"] for s in samples if s["event"] == "calls"}, {int(EVENTS[2].split()[-1])}, "the system call")
        walls = [{s["wall"] - s["time"] for s in script(path)} for path in (there, here)]
        equal([len(offsets) for offsets in walls], [1, 1], "offsets of wall time")
        offset = walls[0].pop()
        check(abs(offset - walls[1].pop()) < 10_000_000, "the wall time there and here are two")
        check(abs(offset - HOUR - (time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC))) < HOUR // 100, "it is no wall time of that host")
        for fields in "comm,pid,tid,cpu,time,period,event", "trace:time,trace":
            lines = [[line for line in lines_of_perf(path, fields) if "NR " in line or "trace" not in fields] for path in (there, here)]
            equal((lines[0], len(lines[0])), (lines[1], CALLS if "trace" in fields else len(samples)), f"{fields} of perf script")
        features, u = said["features"], os.uname()
        equal([features[name] for name in ("HOSTNAME", "OSRELEASE", "ARCH", "NRCPUS")],
              [NAME, u.release, u.machine, info(here)["features"]["NRCPUS"]], "the host")
        check("--host" in features["CMDLINE"], features["CMDLINE"])
        equal({"CPUDESC", "CPUID", "TOTAL_MEM", "CPU_TOPOLOGY", "NUMA_TOPOLOGY", "PMU_MAPPINGS", "BUILD_ID"} & features.keys(), set(), "of this machine")
        header = perf("report", "--header-only", "-i", there)
        check(f"hostname : {NAME}" in header and f"os release : {u.release}" in header, header)



def files(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def test_rotated():
    """Each file is whole in itself, with that host's name and wall time and with names of threads that were there before; an event that begins
    later is in it, with its name and fields."""
    with task() as (process, act), Clock(HOUR) as clock, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        shim = shim_of(clock)
        with traced(process.pid, prefix=ELSEWHERE, env=shim) as (daemon, relay), daemon.client() as client:
            recorder = subprocess.Popen([PERFCTL, *far(relay), "record", "-o", os.path.join(folder, "ring"), "--rotate", "64KiB", "--latency", "10ms"],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            wait_until(lambda: daemon.status().n_subscribers == 1, "it to record")
            wait_until(lambda: act() or len(files(folder)) > 2, "a third file")
            add(client, {"event": "raw_syscalls:sys_exit", "name": "later", "filter": EVENTS[2], "target": pb.Target(pids=[process.pid])})
            act()
            recorder.send_signal(signal.SIGINT)
            finish(recorder)
            expected = count_occurred(daemon) + collections.Counter(later=CALLS)
        found = collections.Counter()
        for path in files(folder):
            said, samples = info(path), script(path)
            equal((said["damage"], said["features"]["HOSTNAME"]), ([], NAME), path)
            equal({s["comm"] for s in samples} - {"worker"}, set(), "names of threads")
            ahead = said["features"]["CLOCK_DATA"]["wall_clock_ns"] - said["features"]["CLOCK_DATA"]["clockid_time_ns"] - HOUR
            check(abs(ahead - (time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC))) < HOUR // 100, "the wall time of that host")
            equal([s for s in samples for frame in s.get("kernel_callchain") or () if frame["symbol"] is None], [], "functions without a name")
            equal({s["fields"].get("id") for s in samples if s["event"] == "calls"} - {int(EVENTS[2].split()[-1])}, set(), "fields")
            equal(len(lines_of_perf(path, "event")), len(samples), "samples of perf script")
            found.update(s["event"] for s in samples)
        equal(found, expected, "samples of all files")


def test_gone():
    """A daemon that goes away: the recording is whole to there, and its status is that of a recorder beside it; one that is killed itself leaves
    what is read to its last whole batch."""
    with task() as (process, act), tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        with traced(process.pid) as (daemon, relay):
            at = [os.path.join(folder, name) for name in ("killed", "there", "here")]
            recorders = [start(where, path, "--latency", "1ms") for where, path in zip((far(relay), far(relay), ["--socket", daemon.control]), at)]
            wait_until(lambda: daemon.status().n_subscribers == 3, "all to record")
            wait_until(lambda: act() or all(os.path.getsize(path) > 200_000 for path in files(folder)), "several batches")
            recorders[0].kill()
            recorders[0].communicate(timeout=perfd.PATIENCE)
            expected = count_occurred(daemon)
            wait_until(lambda: sum(s.matched == s.sent >= sum(expected.values()) for s in daemon.ledger().subscribers) == 2, "all to be sent")
            os.kill(daemon.pid, signal.SIGKILL)
            daemon.process.wait(perfd.PATIENCE)
            daemon.judged = True
            said = [recorder.communicate(timeout=perfd.PATIENCE)[1] for recorder in recorders[1:]]
            equal(recorders[1].returncode, recorders[2].returncode, f"statuses, {said}")
            check(recorders[1].returncode not in (0, None) and all("perfd" in text for text in said), said)
            equal([info(path)["damage"] for path in at[1:]], [[], []], "damage")
            equal(info(at[1])["samples_of"], [expected["calls"], expected["faults"]], "samples until then")
            (part,) = [path for path in files(folder) if ".part-" in path]
            left = info(part, status=1)
            check(left["samples"] > 0 and left["damage"][0]["text"].startswith("the size of the data is 0"), left["damage"])
            equal(left["features"]["OSRELEASE"], os.uname().release, "its sections")


def test_processes():
    """Of a process that was named: nothing of others that begin and end meanwhile. What comes may be compressed."""
    with task() as (process, act), tempfile.TemporaryDirectory(prefix="perfd-test.") as folder, Daemon() as daemon, \
         Relay(daemon, clients="[{ name: client, control: true }]", perfd_keys=f", control: {daemon.control}") as relay:
        path = os.path.join(folder, "perf.data")
        recorder = subprocess.Popen([PERFCTL, *far(relay), "--compress", "record", "-o", path, *EVENTS, "--pid", str(process.pid)], stdin=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
        wait_until(lambda: daemon.status().n_subscribers == 1, "it records")
        for _ in range(5):
            subprocess.run(["true"], check=True)
        act()
        recorder.send_signal(signal.SIGINT)
        finish(recorder)
        equal(info(path)["samples"], CALLS, "samples")
        shown = perf("script", "--show-mmap-events", "--show-task-events", "-i", path)
        equal({int(pid) for pid in re.findall(r"PERF_RECORD_\w+[^:]*?[: (](\d+)[/:]\d+", shown)} - {process.pid}, set(), "whose records are there, too")


def test_nobody():
    """Who may read no tracefs records there and beside the daemon what is granted; fields that a relay does not grant are refused, and no file is left."""
    config = rules(f"{{ users: [{NOBODY}], subscribe: ['*'] }}")
    with task() as (process, act), tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        os.chmod(folder, 0o777)
        with traced(process.pid, config=config) as (daemon, relay):
            os.chmod(daemon.directory, 0o755)
            for path, _, names in os.walk(relay.folder.name):
                for name in (path, *(os.path.join(path, name) for name in names)):
                    os.chown(name, NOBODY, NOBODY)
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            there, here = os.path.join(folder, "there.data"), os.path.join(folder, "here.data")
            recorders = [start(far(relay), there, **who), start(["--socket", daemon.stream], here, **who)]
            wait_until(lambda: daemon.status().n_subscribers == 2, "both to record")
            act()
            for recorder in recorders:
                recorder.send_signal(signal.SIGINT)
                finish(recorder)
            equal(info(there)["samples_of"], [CALLS, count_occurred(daemon)["faults"]], "samples")
            check_same(script(there), script(here))
            os.unlink(there)
            os.unlink(here)
            relay.configure("[{ name: client, events: ['*'] }]")
            relay.reload()
            said = finish(start(far(relay), there), status=1)
            check("does not grant the raw bytes" in said, said)
            equal(files(folder), [], "files")


if __name__ == "__main__":
    perfd.main(globals())
