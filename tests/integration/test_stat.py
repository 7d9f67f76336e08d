#!/usr/bin/python3
"""`perfctl stat` beside perf-stat(1), on the real kernel: what is counted of a command, from which moment on, and where it is
said. Needs root and perf (tests/packages)."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import perfd
import test_targets
from perfd import check, equal
from test_perfctl import GETPPID, PERFCTL, run, start
from test_sources import Fire

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
    commands = [["true"], ["sh", "-c", "true; /bin/true"], ["/usr/bin/python3", "-I", "-S", "-c", "import os; os.getppid()"]]
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
        equal((out, err), ("", f"perfctl: stat: {path}/x: No such file or directory\n"), "a file that cannot be")


def fields(text):
    """Rows of -x,; the running time, the percentage and what follows are of the moment."""
    return [line.split(",")[:3] for line in text.splitlines() if "," in line]


def test_columns_are_those_of_perf():
    """-x, in perf's order, with deviations, an event that cannot be counted, and a list that is written as perf takes it."""
    command = ["-x,", "-r", "3", "-e", f"{GETPPID},{SYSCALLS},cycles", "-e", "task-clock", "--", "true"]
    perf = subprocess.run(["perf", "stat", *command], capture_output=True, text=True, check=True).stderr
    with perfd.Daemon() as daemon:
        out, err = stat(daemon, *command)
        rows, theirs = ([line.split(",") for line in text.splitlines()] for text in (err, perf))
        equal(out, "", "stdout")
        equal([len(row) for row in rows], [len(row) for row in theirs], "the number of columns")
        for i in 0, 1:
            equal(rows[i][:4], theirs[i][:4], f"value, unit, event and deviation of {rows[i]}")
        equal([row[1:3] for row in rows], [row[1:3] for row in theirs], "units and events")
        if theirs[2][0] == "<not supported>":
            equal(rows[2], theirs[2], "what cannot be counted")
        perfd.wait_until(lambda: daemon.status().n_events == 0, "its events to be gone")


def test_deviations():
    """Of runs that differ by what they are told to: each calls one time more than the one before."""
    with perfd.Daemon() as daemon:
        path = os.path.join(daemon.directory, "n")
        script = f"""if True:
            import os
            n = os.path.getsize({path!r}) if os.path.exists({path!r}) else 0
            open({path!r}, "ab").write(b"x")
            for _ in range(2 * n):
                os.getppid()"""
        rows = run(daemon, "stat", "--json", "-r", "3", GETPPID, "--", "/usr/bin/python3", "-c", script)
        os.unlink(path)
        equal([(row["value"], row["runs"]) for row in rows], [(2, 3)], "the mean of 0, 2 and 4")
        check(abs(rows[0]["deviation"] - (8 / 2 / 3) ** 0.5) < 1e-6, rows)
        _, err = stat(daemon, "-r", "2", "page-faults", "--", "true")
        check(re.search(r"^ Performance counter stats for 'true' \(2 runs\):$", err, re.M), err)
        check(re.search(r"^ +[0-9.]+ \+- [0-9.]+ seconds time elapsed  \( \+- +[0-9.]+% \)$", err, re.M), err)


def test_each_cpu():
    """A program that stays on one CPU is counted there, and all CPUs together are what is counted without -A."""
    cpus = perfd.online_cpus()
    script = "import os; os.sched_setaffinity(0, {{{}}}); [os.getppid() for _ in range(1234)]"
    with perfd.Daemon() as daemon:
        for cpu in cpus[0], cpus[-1]:
            rows = run(daemon, "stat", "--json", "-A", GETPPID, "--", "/usr/bin/python3", "-c", script.format(cpu))
            equal({row["cpu"]: row["value"] for row in rows}, {n: 1234 if n == cpu else 0 for n in cpus}, "calls on each CPU")
        out, _ = stat(daemon, "-A", "-I", "100", "--count", "1", "-x,", "cpu-clock")
        equal([line.split(",")[1] for line in out.splitlines()], [f"CPU{n}" for n in cpus], "lines of an interval")


def test_each_cgroup():
    """Named, and as what a glob matches."""
    with test_targets.Tree() as tree, perfd.Daemon() as daemon:
        with Fire(tree.make("a")) as a, Fire(tree.make("b")) as b, Fire() as outside:
            for n_enables, names in enumerate(([tree.path("a"), tree.path("b")], [tree.path("*")]), 1):
                options = [word for name in names for word in ("--cgroup", name)]
                with start(daemon, "stat", "--json", "--per-cgroup", *options, "-I", "50", GETPPID) as process:
                    # status says that they are to be on, which is before the readers have done it
                    perfd.wait_until(lambda n=n_enables: daemon.stderr().count("enable by perfctl") == n, "its events to be on")
                    for fire, n in (a, 10), (b, 200), (outside, 3000):
                        fire.fire("syscalls", n)
                    counts = {tree.path("a"): 0, tree.path("b"): 0}
                    while sum(counts.values()) < 210:
                        row = json.loads(process.stdout.readline())
                        counts[row["cgroup"]] += row["value"]
                    process.send_signal(signal.SIGINT)
                    process.communicate(timeout=perfd.PATIENCE)
                equal(counts, {tree.path("a"): 10, tree.path("b"): 200}, f"calls in each of {names}")
                perfd.wait_until(lambda: daemon.status().n_events == 0, "its events to be gone")


def test_what_can_not_be_counted():
    with perfd.Daemon() as daemon:
        if run(daemon, "available", "--json", "cycles"):
            print("  this machine counts cycles: nothing to see here of one that does not")
            return
        stat(daemon, "--", "true")
        equal(daemon.stderr().count("cannot count"), 1, "lines of the log of four events that this machine cannot count")
        out, err = stat(daemon, "cycles", "--", "echo", "hello", status=1)
        equal((out, "cannot count cycles" in err), ("", True), "the only one")
        out, err = stat(daemon, "-x,", "-e", "{cycles,instructions}", "branches", "--", "sh", "-c", "echo hello; exit 3", status=3)
        equal((out, fields(err)), ("hello\n", [["<not supported>", "", name] for name in ("cycles", "instructions", "branches")]),
              "a list")
        _, err = stat(daemon, "-x,", "--fallback", "cpu-clock", "cycles", "page-faults", "--", "true")
        equal([row[1:] for row in fields(err)], [["msec", "cpu-clock"], ["", "page-faults"]], "with a fallback")
        said = daemon.stderr().count("cannot count")
        for _ in range(2):
            stat(daemon, "--", "true")
        equal(daemon.stderr().count("cannot count"), said, "lines of the log of what it cannot count, which it has said")
        equal(stat(daemon, "-d", status=2)[1].splitlines()[0], "perfctl: stat: unknown option '-d'", "an option that is none")


def test_command_without_dashes():
    """As perf stat takes it: what is meant is said."""
    with perfd.Daemon() as daemon:
        process = subprocess.run([PERFCTL, "--socket", daemon.control, "stat", "-a", "sleep", "1"], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        check(process.returncode == 1 and "follows --, as in `perfctl stat -- sleep 1`" in process.stderr, process)


if __name__ == "__main__":
    perfd.main(globals())
