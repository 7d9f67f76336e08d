#!/usr/bin/python3
"""How a view of the live host ends that reads more slowly than samples come. Needs root."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from test_perfctl import PERFCTL, finish, start
from terminal import Terminal
from test_roles import NOTED, sample

FOR = 2  # seconds
SYS_WRITE = "1 0x1 "  # to stdout, in /proc/PID/syscall


def emit(client, n):
    client.request(emit=pb.EmitRequest(samples=[sample() for _ in range(n)]))


@contextlib.contextmanager
def stopped(process):
    """As one that needs long for what it has read."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def top_for(daemon, client):
    """The closing lines of one that was not there when samples came in its time, and behind it; None: the machine was too slow for that."""
    began = time.monotonic()
    process = start(daemon, "top", "noted", "--by", "pid", "-b", "--interval", "50ms", "--for", f"{FOR}s", "--json")
    try:
        line = process.stdout.readline()
        while json.loads(line)["kind"] != "interval":
            line = process.stdout.readline()
        latest = time.monotonic() + FOR
        with stopped(process):
            emit(client, 10)
            if time.monotonic() > began + FOR:
                return None
            wait_until(lambda: time.monotonic() > latest, "time goes on")
            emit(client, 5)
            client.request(ledger=pb.LedgerRequest())
        out, err = finish(process)
        equal((process.returncode, err), (0, ""), "how it ends")
        return [json.loads(text) for text in out.splitlines()]
    finally:
        process.kill()
        process.communicate()


def test_time():
    """--for N is N seconds of the samples' own time, whenever they are read."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, NOTED)
        rows = next(filter(None, (top_for(daemon, client) for _ in range(5))), None)
        check(rows, "emitting ten samples has taken two seconds five times")
        end, = [row for row in rows if row["kind"] == "end"]
        equal((end["counted"], end["received"], end["lost"]), (10, 15, {}), "samples of its time, and all that came")
        equal(sum(row["counted"] for row in rows if row["kind"] == "interval"), 10, "those of its tables")


def test_one_table():
    """It has all that came in its interval, also of one that has not read it by then."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, NOTED)
        began = time.monotonic()
        process = start(daemon, "top", "noted", "--by", "pid", "-b", "--interval", f"{FOR}s", "--json")
        try:
            equal(json.loads(process.stdout.readline())["kind"], "start", "its first line")
            with stopped(process):
                emit(client, 10)
                was_in_time = time.monotonic() < began + FOR
                wait_until(lambda: time.monotonic() > began + FOR + 1, "its interval is over")
            out, err = finish(process)
            equal((process.returncode, err), (0, ""), "how it ends")
            table, = [row for row in map(json.loads, out.splitlines()) if row["kind"] == "interval"]
            check(table["counted"] == 10 or not was_in_time, table)
        finally:
            process.kill()
            process.communicate()


def test_second_signal():
    """The first one waits for what is written; another ends it at once, though nobody reads that."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, NOTED)
        with subprocess.Popen([PERFCTL, "--socket", daemon.control, "watch", "noted", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            try:
                process.stdout.read(1)
                for _ in range(80):
                    emit(client, 50)

                def is_writing():
                    with open(f"/proc/{process.pid}/syscall", encoding="ascii") as f:
                        return f.read().startswith(SYS_WRITE)

                def is_taken():
                    with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
                        pending = [line.split()[1] for line in f if line.startswith(("SigPnd", "ShdPnd"))]
                    return not any(int(mask, 16) for mask in pending)

                wait_until(is_writing, "it fills the pipe")
                process.send_signal(signal.SIGINT)
                wait_until(lambda: is_taken() and is_writing(), "it goes on writing")
                equal(process.poll(), None, "whether the first has ended it")
                process.send_signal(signal.SIGINT)
                equal(process.wait(perfd.PATIENCE), 1, "the status after the second")
            finally:
                process.kill()


@contextlib.contextmanager
def window(daemon, *arguments):
    """A terminal whose window is closed at the end: whoever runs on it gets SIGHUP, and EIO of all that it writes. Its process."""
    terminal = Terminal([PERFCTL, "--socket", daemon.control, *arguments])
    try:
        yield terminal
    finally:
        os.close(terminal.theirs)
        os.close(terminal.master)
        try:
            terminal.process.wait(perfd.PATIENCE)
        finally:
            terminal.process.kill()


def test_closed_window():
    """What was shown is over, and what was recorded is whole."""
    with Daemon() as daemon, daemon.client() as client, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        add(client, NOTED, {"event": "cpu-clock", "frequency": 99, "target": pb.Target(pids=[os.getpid()])})
        with window(daemon, "watch", "noted") as terminal:
            wait_until(lambda: daemon.status().n_subscribers == 1, "it watches")
            emit(client, 1)
            terminal.until(lambda lines: any("noted" in line for line in lines), "the sample is shown")
        equal(terminal.process.returncode, 0, "the status of watch")
        with window(daemon, "top", "noted", "--by", "pid", "--interval", "50ms") as terminal:
            terminal.until(lambda lines: any("noted" in line for line in lines), "a table is shown")
        equal(terminal.process.returncode, 0, "the status of top")
        path = os.path.join(folder, "perf.data")
        with window(daemon, "record", "-o", path, "cpu-clock") as terminal:
            terminal.until(lambda lines: any("samples" in line for line in lines), "its progress is shown")
        equal(terminal.process.returncode, 0, "the status of record")
        said = json.loads(subprocess.run([PERFCTL, "info", path, "--json"], stdout=subprocess.PIPE, check=True).stdout)
        equal((said["damage"], os.listdir(folder)), ([], ["perf.data"]), "damage, and files")
        wait_until(lambda: daemon.status().n_subscribers == 0, "nobody is left")


if __name__ == "__main__":
    perfd.main(globals())
