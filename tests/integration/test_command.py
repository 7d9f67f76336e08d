#!/usr/bin/python3
"""A command behind "--" of `perfctl watch` and `perfctl count`: all that it and its children do is there from its exec on, and its
status, its output and its end are kept apart from those of perfctl. Needs root."""
import collections
import json
import os
import signal
import subprocess
import sys

import perfd
from perfd import Daemon, add, check, equal, wait_until
from test_control import PERFCTL, documents
from test_perfctl import start
from test_roles import ANN, perfctl as perfctl_as, rules
from test_sources import GETPPID, Fire

CALLS = "raw_syscalls:sys_enter"
FILTER = f"id == {GETPPID}"
# It, its child and its grandchild call getppid(2) so often.
FAMILY = """
import os
for n in 1000, 200, 30:
    for i in range(n):
        os.getppid()
    if n == 30 or (pid := os.fork()):
        break
if n != 30:
    os.waitpid(pid, 0)
"""
# A command that says when it runs, and how it is asked to end.
PATIENT = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("runs", flush=True)
signal.sigwait([signal.SIGTERM])
os.getppid()
sys.exit(7)
"""


def words(daemon, *arguments, socket=None):
    return [PERFCTL, "--socket", socket or daemon.control, *arguments]


def perfctl(daemon, *arguments, status=0, socket=None):
    done = subprocess.run(words(daemon, *arguments, socket=socket), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=perfd.PATIENCE, check=False)
    equal(done.returncode, status, f"the status of {arguments}, which said {done.stderr[-300:]!r}")
    return done


def python(code):
    return ["--", sys.executable, "-S", "-c", code]


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def none_runs(daemon):
    return not documents(daemon, "list")


def test_all_of_the_family():
    """Exactly what three generations call, beside one that runs by that name and observes others."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": CALLS, "filter": FILTER})
        seen = rows(perfctl(daemon, "--json", "watch", CALLS, "--filter", FILTER, *python(FAMILY)).stdout)
        calls = collections.Counter(row["pid"] for row in seen if row["kind"] == "sample")
        equal(sorted(calls.values()), [30, 200, 1000], "samples of each process")
        counted = rows(perfctl(daemon, "--json", "count", CALLS, "--by", "comm", "--filter", FILTER, *python(FAMILY)).stdout)
        equal([row["counted"] for row in counted if row["kind"] == "end"], [1230], "what was counted")
        wait_until(lambda: [row["name"] for row in documents(daemon, "list")] == [CALLS], "what was added to go")


def test_from_its_exec_on():
    """Its first record is of its own exec, and its last one of its exit: nothing of perfctl that waits before."""
    with Daemon() as daemon:
        seen = rows(perfctl(daemon, "--json", "watch", "sched:sched_process_exec", "sched:sched_process_exit", "--", "true").stdout)
        equal([(row["event"].split("_")[-1], row["comm"]) for row in seen if row["kind"] == "sample"], [("exec", "true"), ("exit", "true")],
              "samples")
        seen = perfctl(daemon, "count", CALLS, "--filter", FILTER, "--", "true").stderr
        check("\n0 samples, nothing lost" in seen, seen)


def test_its_output_and_its_status():
    """Lines are on stderr, beside a stdout that is the command's alone; it ends as the command did."""
    with Daemon() as daemon:
        for verb in "watch", "count":
            done = perfctl(daemon, verb, CALLS, "--filter", FILTER, "--", "sh", "-c", "echo mine; exit 5", status=5)
            equal(done.stdout, "mine\n", f"stdout of {verb}")
            check("nothing lost; stopped" in done.stderr, done.stderr)
            perfctl(daemon, verb, CALLS, "--filter", FILTER, "--", "sh", "-c", "kill -KILL $$", status=137)


def test_what_can_not_be_executed():
    with Daemon() as daemon:
        for verb in "watch", "count", "stat":
            done = perfctl(daemon, verb, "page-faults", "--", "no-such-program", status=127)
            check(done.stderr.endswith("starting no-such-program: No such file or directory\n"), done.stderr)
            done = perfctl(daemon, verb, "page-faults", "--", "/etc/passwd", status=126)
            check(done.stderr.endswith("starting /etc/passwd: Permission denied\n"), done.stderr)
            check("no command after --" in perfctl(daemon, verb, "page-faults", "--", status=2).stderr, verb)
        check("--live: stderr is not a terminal" in perfctl(daemon, "count", CALLS, "--live", "--", "true", status=2).stderr, "--live")
        check("which event of the command?" in perfctl(daemon, "watch", "--", "true", status=2).stderr, "watch of no event")
        wait_until(lambda: none_runs(daemon), "what was added to go")


def test_beside_a_target():
    """With a target the command says only for how long, as with perf record -p and -a; it is not observed itself."""
    with Daemon() as daemon, Fire() as fire, Fire() as other:
        for verb in "watch", "count":
            for options, least in (["-p", str(fire.pid)], 0), (["-t", str(fire.pid)], 0), (["-a"], 1):
                with start(daemon, verb, "--json", CALLS, *options, "--filter", FILTER, "--", "sh", "-c", "echo runs; read line; exit 3",
                           stdin=subprocess.PIPE) as process:
                    for line in process.stdout:
                        if line == "runs\n":
                            break
                    fire.fire("syscalls", 20)
                    other.fire("syscalls", 30)
                    out, err = process.communicate("end\n", timeout=perfd.PATIENCE)
                equal(process.returncode, 3, f"the status of {verb} {options}, which said {err}")
                end, = [row for row in map(json.loads, out.splitlines()) if row["kind"] == "end"]
                n = end["printed" if verb == "watch" else "counted"]
                check(n >= 50 if least else n == 20, f"{n} calls with {options}")
        wait_until(lambda: none_runs(daemon), "what was added to go")


def test_who_may_not_add():
    """Nothing is executed."""
    with Daemon() as daemon:
        done = perfctl(daemon, "watch", CALLS, "--", "sh", "-c", "echo runs", status=1, socket=daemon.stream)
        equal(done.stdout, "", "its stdout")
        check("control socket" in done.stderr, done.stderr)


def test_of_somebody_whom_a_rule_lets():
    """A process of one's own is one also while it waits for its exec; which events, the kernel decides as for their root."""
    with Daemon(rules(f"{{ users: [{ANN}], own-processes: true }}")) as daemon:
        os.chmod(daemon.directory, 0o755)
        for verb in "watch", "count":
            done = perfctl_as(daemon, ANN, verb, "syscalls:sys_enter_getppid", *python(FAMILY))
            equal(done.returncode, 0, f"the status of {verb}, which said {done.stderr[-300:]!r}")
            check("\n1230 " in done.stderr, f"{verb}: {done.stderr[-300:]!r}")


def patient(daemon, *arguments):
    process = subprocess.Popen(words(daemon, "--json", "watch", CALLS, "--filter", FILTER, *arguments, *python(PATIENT)),  # pylint: disable=consider-using-with
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    while not lines or lines[-1] != "runs\n":
        lines.append(process.stdout.readline())
        check(lines[-1], f"it ended, behind {lines}")
    return process


def test_ctrl_c_ends_both():
    """The command is asked to end; what it does then is printed, and its status is the last word."""
    with Daemon() as daemon:
        for number in signal.SIGINT, signal.SIGTERM:
            with patient(daemon) as process:
                process.send_signal(number)
                out, err = process.communicate(timeout=perfd.PATIENCE)
            equal(process.returncode, 7, f"its status, behind {err}")
            equal(len([row for row in rows(out) if row["kind"] == "sample"]), 1, "samples of its last words")


def test_enough_ends_the_command():
    """--for and --count do, and a reader of the output that goes away; that is what was asked for."""
    with Daemon() as daemon:
        with patient(daemon, "--for", "300ms") as process:
            _, err = process.communicate(timeout=perfd.PATIENCE)
        equal(process.returncode, 0, f"its status, behind {err}")
        endless = python("import os\nwhile True: os.getppid()")
        seen = rows(perfctl(daemon, "--json", "watch", CALLS, "--filter", FILTER, "--allow-loss", "--count", "3", *endless).stdout)
        equal(len([row for row in seen if row["kind"] == "sample"]), 3, "samples")
        with subprocess.Popen(words(daemon, "--json", "watch", CALLS, "--allow-loss", *endless), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            process.stdout.readline()
            process.stdout.close()
            equal(process.wait(perfd.PATIENCE), 0, "its status, without a reader")


def test_one_that_dies():
    """kill -9 of perfctl leaves no event; the command goes on without."""
    with Daemon() as daemon:
        with patient(daemon) as process:
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
                child = int(f.read())
            process.kill()
            process.wait(perfd.PATIENCE)
            wait_until(lambda: none_runs(daemon), "what was added to go")
            os.kill(child, signal.SIGTERM)


if __name__ == "__main__":
    perfd.main(globals())
