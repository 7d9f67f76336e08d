#!/usr/bin/python3
"""`perfctl stat` beside perf-stat(1), on the real kernel: what is counted of a command, from which moment on, and where it is
said. Needs root and perf (tests/packages)."""
import contextlib
import os
import re
import subprocess
import sys

import perfd
from perfd import check, equal
from test_perfctl import GETPPID, PERFCTL, run

SYSCALLS = "raw_syscalls:sys_enter"
EVENTS = [SYSCALLS, "raw_syscalls:sys_exit", "sched:sched_process_exec", "sched:sched_process_fork", GETPPID]

CHILD = """if True:
    import os, sys
    told = open(0, "rb", buffering=0)
    for line in iter(told.readline, b""):
        word, *rest = line.decode().split()
        if word == "exec":
            os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], sys.argv[1]])
        for _ in range(int(rest[0])):
            os.getppid()
        print("done", flush=True)"""


def stat(daemon, *arguments, status=0):
    """What goes to its stdout, and to its stderr."""
    ran = subprocess.run([PERFCTL, "--socket", daemon.control, "stat", *arguments], capture_output=True, text=True, check=False,
                         timeout=perfd.PATIENCE)
    equal(ran.returncode, status, f"the status of stat {arguments}, which says {ran.stderr!r}")
    return ran.stdout, ran.stderr


def perf_counts(events, command):
    ran = subprocess.run(["perf", "stat", "-x,", "-e", ",".join(events), "--", *command], capture_output=True, text=True, check=True)
    rows = [line.split(",") for line in ran.stderr.splitlines() if line and not line.startswith("#")]
    return {row[2]: int(row[0]) for row in rows}


def perfctl_counts(daemon, events, command):
    return {row["event"]: row["value"] for row in run(daemon, "stat", "--json", *events, "--", *command)}


@contextlib.contextmanager
def child():
    """A process that calls getppid(2) when it is told to, and executes itself."""
    with subprocess.Popen([sys.executable, "-c", CHILD, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        def tell(words):
            p.stdin.write(words + "\n")
            p.stdin.flush()
            if words != "exec":
                equal(p.stdout.readline(), "done\n", "the child")
        p.tell = tell
        tell("call 0")
        try:
            yield p
        finally:
            p.stdin.close()


def test_a_command_is_counted_from_its_exec_on():
    """The system calls between fork and exec are of whom counts: perf does not count them, and neither does perfctl."""
    commands = [["true"], ["sh", "-c", "true; /bin/true"], ["/usr/bin/python3", "-c", "import os; os.getppid()"]]
    with perfd.Daemon() as daemon:
        for command in commands:
            perf = perf_counts(EVENTS, command)
            equal(perfctl_counts(daemon, EVENTS, command), perf, f"counts of {command}")
            check(perf[SYSCALLS] > 10, perf)


def test_an_event_is_enabled_by_exec():
    """By `add` too: nothing before the exec, all of it behind; changes before and behind it make no difference."""
    def counted(daemon):
        return sum(row.occurred for row in daemon.ledger().events if row.name == "x")

    def change(daemon, words):
        if words[0] == "apply":
            with open(f"{daemon.directory}/applied", "w", encoding="ascii") as f:
                f.write(f"version: 1\nrings: {{ size: {words[1]} }}\n")
            words = ("apply", f.name)
        run(daemon, *words)
        if words[0] == "apply":
            os.unlink(f.name)

    changes = [("filter", "x", "__syscall_nr > 0"), ("filter", "x", ""), ("apply", "1MiB"), ("apply", "512KiB"),
               ("disable", "x"), ("enable", "x")]
    with perfd.Daemon("version: 1\n") as daemon, child() as p:
        run(daemon, "add", GETPPID, "--name", "x", "--pid", str(p.pid), "--attr", "enable-on-exec=true")
        p.tell("call 3")
        for words in changes:
            change(daemon, words)
            p.tell("call 3")
            equal(counted(daemon), 0, f"before the exec, after {words}")
        p.tell("exec")
        p.tell("call 5")
        equal(counted(daemon), 5, "behind the exec")
        for words in changes:
            change(daemon, words)
            p.tell("call 5" if words[0] != "disable" else "call 0")
        equal(counted(daemon), 5 + 5 * (len(changes) - 1), "behind the changes")


def test_a_command_has_its_times_and_stdout():
    """The report of a command is on stderr, with the time of the command alone."""
    with perfd.Daemon() as daemon:
        out, err = stat(daemon, "page-faults", "--", "sh", "-c", "echo hello; exec sleep 0.2", status=0)
        equal(out, "hello\n", "stdout")
        times = {unit: float(seconds) for seconds, unit in re.findall(r"^ +([0-9.]+) seconds (time elapsed|user|sys)$", err, re.M)}
        equal(sorted(times), ["sys", "time elapsed", "user"], f"times in {err!r}")
        check(0.2 <= times["time elapsed"], times)
        check(times["user"] + times["sys"] < times["time elapsed"], times)
        path = os.path.join(daemon.directory, "report")
        for more in [], ["--append"]:
            equal(stat(daemon, "-o", path, *more, "page-faults", "--", "echo", "hello"), ("hello\n", ""), "with a file")
        with open(path, encoding="ascii") as f:
            equal(re.findall(r"^# started on|Performance counter stats for 'echo hello':", f.read(), re.M),
                  ["# started on", "Performance counter stats for 'echo hello':"] * 2, "the file")
        os.unlink(path)
        out, err = stat(daemon, "-o", f"{path}/x", "page-faults", "--", "true", status=1)
        equal((out, err), ("", f"perfctl: stat: {path}/x: No such file or directory\n"), "a file that can not be")


if __name__ == "__main__":
    perfd.main(globals())
