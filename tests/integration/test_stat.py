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
import time

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


def test_a_task_is_enabled_while_it_runs():
    """On whichever CPU, and not once for each; what shares nothing counted all of that time."""
    with perfd.Daemon() as daemon:
        row, = run(daemon, "stat", "--json", "task-clock", "--", "/usr/bin/python3", "-S", "-c", "sum(range(1_000_000))")
        equal((row["enabled"], row["confidence"]), (row["running"], 1), f"the time of {row}")


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
            for names in [tree.path("a"), tree.path("b")], [tree.path("*")]:
                options = [word for name in names for word in ("--cgroup", name)]
                with start(daemon, "stat", "--json", "--per-cgroup", *options, "-I", "50", GETPPID) as process:
                    for _ in range(2):  # the first interval is over: its counters are on
                        process.stdout.readline()
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


def intervals(daemon, *options, command=None, status=0):
    """Its lines, by their times: {time: [row, ...]}."""
    found = {}
    for row in run(daemon, "stat", "--json", *options, *(["--", *command] if command else []), status=status):
        found.setdefault(row["time"], []).append(row)
    return found


def check_clocks(rows, n_cpus):
    """Whole CPUs have as much time as there is, by their own counters."""
    for row in rows:
        if row["event"] == "cpu-clock":
            check(abs(row["metric"] - n_cpus) < 0.05 * n_cpus, f"not {n_cpus} CPUs: {row}")


def test_the_last_interval_of_a_command():
    """It ends when the command does, and with all that the command did."""
    script = "import os, time; time.sleep(1.2); [os.getppid() for _ in range(777)]"
    with perfd.Daemon() as daemon:
        began = time.monotonic_ns()
        found = intervals(daemon, "-I", "1000", GETPPID, "task-clock", command=["/usr/bin/python3", "-S", "-c", script])
        elapsed, times = time.monotonic_ns() - began, list(found)
        equal(times, sorted(times), "the times")
        check(len(times) >= 2 and 1_200_000_000 <= times[-1] <= elapsed, f"{times}, of {elapsed} ns in all")
        durations = [rows[0]["duration"] for rows in found.values()]
        equal(durations, [b - a for a, b in zip([0] + times, times)], "the durations")
        check(durations[-1] < 1_000_000_000, f"the last of {durations} is a whole interval")
        equal(sum(rows[0]["value"] for rows in found.values()), 777, "calls")


def test_intervals_of_the_host():
    """From the first one on each is whole, and as long as its counters say."""
    cpus = perfd.online_cpus()
    with perfd.Daemon() as daemon:
        found = intervals(daemon, "-A", "-I", "300", "--count", "2", "-e", "cpu-clock")
        equal([[row["cpu"] for row in rows] for rows in found.values()], [cpus] * 2, "lines")
        for rows in found.values():
            check_clocks(rows, 1)
            for row in rows:
                equal(row["enabled"], row["duration"], "the time of its own counter")
        check(min(found) > 200_000_000, f"the first interval is not whole: {found}")


def test_the_host_beside_a_command():
    """With -a the command says only when: what others do meanwhile is counted, on all CPUs or in the cgroups that are named."""
    with test_targets.Tree() as tree, perfd.Daemon() as daemon, Fire(tree.make("a")) as inside, Fire() as outside:
        def counted(*options):
            with start(daemon, "stat", "--json", "-a", *options, GETPPID, "--", "sh", "-c", "echo runs; read line",
                       stdin=subprocess.PIPE) as process:
                equal(process.stdout.readline(), "runs\n", "the command")
                inside.fire("syscalls", 10)
                outside.fire("syscalls", 3000)
                out, err = process.communicate("end\n", timeout=perfd.PATIENCE)
            equal(process.returncode, 0, f"its status, with {err!r}")
            return [json.loads(line) for line in out.splitlines()]

        equal([row["value"] for row in counted("--cgroup", tree.path("a"))], [10], "calls in a cgroup")
        check(counted()[0]["value"] >= 3010, "the host's calls")
        rows = counted("-A", "-I", "500")
        equal({row["cpu"] for row in rows}, set(perfd.online_cpus()), "CPUs")
        check(sum(row["value"] for row in rows) >= 3010, "the host's calls in intervals")
        _, err = stat(daemon, "-a", "cpu-clock", "--", "sleep", "0.2")
        check("for 'system wide' during 'sleep 0.2':" in err, err)
        clocks, = intervals(daemon, "-a", "cpu-clock", command=["sleep", "0.2"]).values()
        check_clocks(clocks, len(perfd.online_cpus()))
        one = perfd.online_cpus()[0]
        rows = run(daemon, "stat", "--json", "-A", "-C", str(one), "cpu-clock", "--", "sleep", "0.1")
        equal([(row["cpu"], row["value"] > 0) for row in rows], [(one, True)], "a CPU, as perf has it: sleep hardly runs there")


def test_others_beside_a_command():
    """The same with any target, which may end before the command does; the status is the command's."""
    config = "version: 1\ntargets: {{ x: {{ cgroup: {} }} }}\n"
    with test_targets.Tree() as tree, Fire(tree.make("a")) as inside, Fire() as outside:
        with perfd.Daemon(config.format(tree.path("a"))) as daemon:
            for options in ["-p", str(inside.pid)], ["-t", str(inside.pid)], ["--cgroup", tree.path("a")], ["--target", "x"]:
                with start(daemon, "stat", "--json", *options, GETPPID, "--", "sh", "-c", "echo runs; read line; exit 7",
                           stdin=subprocess.PIPE) as process:
                    equal(process.stdout.readline(), "runs\n", "the command")
                    inside.fire("syscalls", 10)
                    outside.fire("syscalls", 30)
                    if "-t" in options:
                        _, err = stat(daemon, *options, "page-faults", "--", "sleep", "0.1")
                        check(f" Performance counter stats for thread id '{inside.pid}' and its children during 'sleep 0.1':" in err, err)
                    out, err = process.communicate("end\n", timeout=perfd.PATIENCE)
                equal((process.returncode, err), (7, ""), "its status")
                equal([json.loads(line)["value"] for line in out.splitlines()], [10], f"calls with {options}")
            with start(daemon, "stat", "--json", "-p", str(inside.pid), GETPPID, "--", "sh", "-c", "echo runs; read line",
                       stdin=subprocess.PIPE) as process:
                equal(process.stdout.readline(), "runs\n", "the command")
                inside.fire("syscalls", 20)
                inside.process.stdin.close()
                equal(inside.process.wait(perfd.PATIENCE), 0, "the status of what was counted")
                equal(process.poll(), None, "while the command runs")
                out, _ = process.communicate("end\n", timeout=perfd.PATIENCE)
                equal(json.loads(out)["value"], 20, "calls of who has ended")


def test_a_filter():
    """Only what the kernel lets through; of what has no fields, and with a mistake, it is said what is wrong."""
    with perfd.Daemon() as daemon:
        script = "import os; [os.getppid() for _ in range(321)]"
        number = os.uname().machine == "x86_64" and 110 or 173
        row, = run(daemon, "stat", "--json", SYSCALLS, "--filter", f"id == {number}", "--", "/usr/bin/python3", "-S", "-c", script)
        equal(row["value"], 321, "calls that match")
        rows = run(daemon, "stat", "--json", "--for", "100ms", SYSCALLS, "--filter", "id == 100000")
        equal([row["value"] for row in rows], [0], "what matches nothing")
        for event, text, words in ((SYSCALLS, "nothing == 1", "nothing"), ("page-faults", "id == 1", "filter")):
            _, err = stat(daemon, event, "--filter", text, "--for", "100ms", status=1)
            check(words in err and "follows --" not in err, err)


def test_for():
    """One report of that time, or as many intervals as are in it; a command is asked to end."""
    n = len(perfd.online_cpus())
    with perfd.Daemon() as daemon:
        (duration, rows), = intervals(daemon, "--for", "300ms", "cpu-clock").items()
        check(duration >= 300_000_000, f"less than it was to be: {rows}")
        check_clocks(rows, n)
        equal(len(intervals(daemon, "--for", "300ms", "-I", "100", "cpu-clock")), 3, "intervals")
        found = intervals(daemon, "--for", "250ms", "-I", "100", "cpu-clock")
        check(max(found) >= 250_000_000, f"the rest of an interval is not there: {found}")
        equal(len(intervals(daemon, "--for", "2s", "--count", "2", "-I", "50", "cpu-clock")), 2, "as --count says")
        text, _ = stat(daemon, "--for", "100ms", "cpu-clock")
        check(re.search(r"^ Performance counter stats for 'system wide':\n\n.*CPUs utilized\n\n +0\.[0-9]+ seconds time elapsed\n\n$", text,
                        re.M), text)
        with child() as p:
            text, _ = stat(daemon, "--for", "100ms", "-p", str(p.pid), "page-faults")
            check(f" Performance counter stats for process id '{p.pid}' and its children:" in text, text)
        (duration, _), = intervals(daemon, "--for", "200ms", "task-clock", command=["sleep", "1000"]).items()
        check(duration >= 200_000_000, f"less than it was to be: {duration}")
        equal(stat(daemon, "--for", "0s", status=2)[1], "perfctl: stat: --for: '0s' is not a time such as 500ms, 10s, 2m\n", "no time")


def until_signal(daemon, fire, *options, lines=1, kind=signal.SIGINT):
    """Its lines of stdout, if 100 calls are made behind the first so many of them."""
    n_enables = daemon.stderr().count("enable by perfctl")
    with start(daemon, "stat", *options) as process:
        said = [process.stdout.readline() for _ in range(lines)]
        perfd.wait_until(lambda: daemon.stderr().count("enable by perfctl") > n_enables, "its events to be on")
        fire.fire("syscalls", 100)
        process.send_signal(kind)
        out, err = process.communicate(timeout=perfd.PATIENCE)
    equal((process.returncode, err), (0, ""), "how it ends")
    return said + out.splitlines()


def test_ctrl_c():
    """What was counted since the last line is printed; the whole, where no interval was asked for: as with perf of a target alone."""
    with perfd.Daemon() as daemon, Fire() as fire:
        pid = ["-p", str(fire.pid)]
        for kind in signal.SIGINT, signal.SIGTERM:
            rows = [json.loads(line) for line in until_signal(daemon, fire, "--json", *pid, "--interval", "2s", GETPPID, kind=kind)]
            equal([row["value"] for row in rows], [0, 100], "an interval, and the rest")
            equal(rows[1]["time"], rows[0]["time"] + rows[1]["duration"], f"the times of {rows}")
        rows = [line.split(",") for line in until_signal(daemon, fire, "-x,", *pid, "-I", "2000", GETPPID)]
        equal([row[1] for row in rows], ["0", "100"], "columns")
        for target in pid, ["-t", str(fire.pid)]:
            rows = until_signal(daemon, fire, "--json", *target, GETPPID, lines=0)
            equal([json.loads(row)["value"] for row in rows], [100], f"the only report with {target}")
            equal([row.split(",")[0] for row in until_signal(daemon, fire, "-x,", *target, GETPPID, lines=0)], ["100"], "in columns")
        check(f" Performance counter stats for process id '{fire.pid}' and its children:" in until_signal(daemon, fire, *pid, GETPPID, lines=0), "as text")
        for target in ["-a"], ["-C", f"{perfd.online_cpus()[0]}"], ["--cgroup", "."]:
            equal(len(until_signal(daemon, fire, "--json", *target, "page-faults", lines=0)), 1, f"reports with {target}")


def test_ctrl_c_of_the_host():
    """Without a target lines come each second, and the whole behind them, which is their sum; programs get the lines alone."""
    with perfd.Daemon() as daemon, Fire() as fire:
        text = "\n".join(until_signal(daemon, fire, GETPPID, "cpu-clock", lines=3))
        lines, title, total = text.partition(" Performance counter stats for 'system wide':")
        check(title, text)
        calls = [int(n) for n in re.findall(fr"([0-9]+) +{GETPPID}", lines)]
        check(len(calls) >= 2 and sum(calls) >= 100, text)
        equal([int(n) for n in re.findall(fr"([0-9]+) +{GETPPID}", total)], [sum(calls)], f"the sum in {text}")
        last = float(re.findall(r"^ +([0-9.]+) +[0-9]+ +sys", lines, re.M)[-1])
        equal(float(re.search(r"([0-9.]+) seconds time elapsed", total)[1]), last, "the time")
        clocks = [float(n) for n in re.findall(r"# +([0-9.]+) CPUs utilized", total)]
        check(len(clocks) == 1 and abs(clocks[0] - len(perfd.online_cpus())) < 0.05 * len(perfd.online_cpus()), text)
        for options in ["--json"], ["-x,"]:
            rows = until_signal(daemon, fire, *options, GETPPID)
            equal(len(rows), 2, f"lines of {options}")


def test_events_in_each_form():
    """As add and watch take them: without the group, as bpftrace has them, a library by its name."""
    with perfd.Daemon() as daemon:
        rows = run(daemon, "stat", "--json", "-e", "sched_process_exec,uprobe:libc:getppid", "tracepoint:sched:sched_process_exit",
                   "software:page-faults", "--", "true")
        events = [row["event"] for row in rows]
        equal(sorted(events)[:3], ["page-faults", "sched:sched_process_exec", "sched:sched_process_exit"], "what they mean")
        check(re.fullmatch(r"uprobe:/.*/libc\.so\.6:getppid", sorted(events)[3]), events)
        equal({row["event"]: row["value"] for row in rows}["sched:sched_process_exec"], 1, "execs of true")
        names = ["page-faults", "task-clock", "context-switches"]
        for words in [",".join(names)], ["-e", ",".join(names)], ["{page-faults,task-clock},context-switches"], [
                "-e", "page-faults", "task-clock,cs"], ["page-faults,task-clock", "software:cs"]:
            rows = run(daemon, "stat", "--json", *words, "--", "true")
            equal([{"cs": names[2]}.get(row["event"], row["event"]) for row in rows], names, f"events of {words}")
        rows = run(daemon, "stat", "--json", "page-faults,sched_process_exec", "--", "true")
        equal([row["event"] for row in rows], ["page-faults", "sched:sched_process_exec"], "a list with a tracepoint")
        check("there is no event between its commas" in stat(daemon, "cs,,faults", "--", "true", status=2)[1], "an empty event")
        rows = run(daemon, "stat", "--json", "-e", "page-faults,uprobe:libc:getp[pi]*d", "--", "true")
        equal([row["event"].split(":")[-1] for row in rows], ["page-faults", "getpid", "getppid"], "functions of a pattern")
        check("no function that matches 'nosuch*'" in stat(daemon, "uprobe:libc:nosuch*", "--", "true", status=1)[1], "a pattern of nothing")
        _, err = stat(daemon, "sched_process_nosuch", "--", "true", status=1)
        check("sched_process_nosuch" in err, err)


def test_globs_beside_what_runs():
    """All that a glob means is counted under names of stat's own: whatever runs, and however others count the same."""
    glob = "sched:sched_process_[ef][xo]*"  # exec, exit and fork
    events = ["sched:sched_process_exec", "sched:sched_process_exit", "sched:sched_process_fork"]
    with test_targets.Tree() as tree, perfd.Daemon(f"version: 1\ngroups: {{ g: {{ events: [{events[0]}] }} }}\n") as daemon:
        rows = run(daemon, "stat", "--json", glob, "--", "sh", "-c", "/bin/true; exec /bin/true")
        equal({row["event"]: row["value"] for row in rows}, dict(zip(events, (3, 2, 1))), "of a command")
        for name in "a", "b":
            tree.make(name)
        with start(daemon, "stat", "--json", "-I", "50", glob) as other:
            other.stdout.readline()
            for options, places in ([], 1), (["-p", str(os.getpid())], 1), (["-C", "0"], 1), (
                    ["--per-cgroup", "--cgroup", tree.path("a"), "--cgroup", tree.path("b")], 2):
                rows = run(daemon, "stat", "--json", "--for", "100ms", *options, glob)
                equal(sorted(row["event"] for row in rows), sorted(events * places), f"events with {options}")
            run(daemon, "add", events[2])  # nobody's name is taken
            other.send_signal(signal.SIGINT)
            other.communicate(timeout=perfd.PATIENCE)
        perfd.wait_until(lambda: daemon.status().n_events == 2, "its events to be gone")
        check("no tracepoint" in stat(daemon, "sched:nosuch*", "--", "true", status=1)[1], "a glob of nothing")


def test_what_can_not_be_counted():
    with perfd.Daemon() as daemon:
        if any(row["event"] == "cycles" for row in run(daemon, "available", "--json")):
            print("  this machine counts cycles: nothing to see here of one that does not")
            return
        stat(daemon, "--", "true")
        equal(daemon.stderr().count("cannot count"), 1, "lines of the log of four events that this machine cannot count")
        out, err = stat(daemon, "cycles", "--", "echo", "hello", status=1)
        equal((out, "cannot count cycles" in err), ("", True), "the only one")
        out, err = stat(daemon, "-x,", "-e", "{cycles,instructions}", "branches", "--", "sh", "-c", "echo hello; exit 3", status=3)
        equal((out, fields(err)), ("hello\n", [["<not supported>", "", name] for name in ("cycles", "instructions", "branches")]),
              "a list")
        for group, more in ("{page-faults,cycles}", []), ("{cycles,page-faults}:u", ["-I", "1000"]):
            _, err = stat(daemon, "-x,", *more, "-e", f"{group},cs", "--", "true")
            states = {row[-1]: row[-3] for row in ([x for x in line.split(",")[:len(more) // 2 + 3]] for line in err.splitlines())}
            equal((states.pop("cs").isdigit(), states), (True, {"page-faults": "<not counted>", "cycles": "<not supported>"}), "a group")
            for limit in ["--", "true"], ["--for", "100ms"], ["-a", "--", "true"]:
                rows = run(daemon, "stat", "--json", *(more if "--" in limit else []), group, *limit)
                equal({row["event"]: row["state"] for row in rows}, {"page-faults": "not-counted", "cycles": "not-supported"}, "alone")
            check("groups are counted as a whole, and this machine cannot count cycles" in stat(daemon, group, status=1)[1], "no limit")
        equal(daemon.status().n_events, 0, "events that are left")
        _, err = stat(daemon, "-x,", "--fallback", "cpu-clock", "cycles", "page-faults", "--", "true")
        equal([row[1:] for row in fields(err)], [["msec", "cpu-clock"], ["", "page-faults"]], "with a fallback")
        said = daemon.stderr().count("cannot count")
        for _ in range(2):
            stat(daemon, "--", "true")
        equal(daemon.stderr().count("cannot count"), said, "lines of the log of what it cannot count, which it has said")
        equal(stat(daemon, "-q", status=2)[1].splitlines()[0], "perfctl: stat: unknown option '-q'", "an option that is none")


def test_where_an_error_stands():
    """Below what is wrong, which is not always the event."""
    cpus = f"0-{os.sysconf('SC_NPROCESSORS_CONF') + 9000}"
    with perfd.Daemon() as daemon:
        for options, wrong, at in ((["-C", cpus], cpus, 0), (["-C", "0,x"], "0,x", 2), (["-e", "cpu-clok"], "cpu-clok", 0)):
            out, err = stat(daemon, *options, "cpu-clock", "--", "true", status=1)
            equal((out, err.splitlines()[1:3]), ("", [f"  {wrong}", f"  {' ' * at}^"]), f"where {err!r} points")


def test_command_without_dashes():
    """As perf stat takes it: what is meant is said."""
    with perfd.Daemon() as daemon:
        process = subprocess.run([PERFCTL, "--socket", daemon.control, "stat", "-a", "sleep", "1"], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        check(process.returncode == 1 and "follows --, as in `perfctl stat -- sleep 1`" in process.stderr, process)


if __name__ == "__main__":
    perfd.main(globals())
