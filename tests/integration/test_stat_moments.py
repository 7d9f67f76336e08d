#!/usr/bin/python3
"""`perfctl stat`: from which moment on and until when it counts whole CPUs and what others remove. Needs root."""
import json
import os
import re

import perfd
from perfd import check, equal
from test_perfctl import run, start


def removed_beside(daemon, which, *options, lines=0):
    """Its status, what it says on stdout, and on stderr, if events of it are removed behind so many lines of -x."""
    n_enables = daemon.stderr().count("enable by perfctl")
    with start(daemon, "stat", *options) as process:
        said = [process.stdout.readline() for _ in range(lines)]
        perfd.wait_until(lambda: daemon.stderr().count("enable by perfctl") > n_enables, "its events to be on")
        run(daemon, "remove", f"stat.{process.pid}.{which}")
        out, err = process.communicate(timeout=perfd.PATIENCE)
    return process.returncode, said + out.splitlines(), err


def test_removed_by_another_client():
    """It ends at once with what it has, when none is left; each line says until when it was counted, and the status is 1."""
    alone = "perfctl: stat: cpu-clock was removed by another client\nperfctl: stat: none of its events is left\n"
    n = len(perfd.online_cpus())
    with perfd.Daemon() as daemon:
        for options in ["-I", "200", "--for", "1000s"], ["--for", "1001s"], ["--interval", "2s", "-C", f"{perfd.online_cpus()[0]}"], []:
            status, out, err = removed_beside(daemon, "*", "--json", *options, "cpu-clock")
            rows = [json.loads(line) for line in out]
            equal((status, err), (1, alone), f"how it ends with {options}")
            check(rows and "removed" in rows[-1] and rows[-1]["removed"] <= rows[-1]["time"], f"when, in {rows}")
            counted = sum(row["value"] or 0 for row in rows) / (1 if "-C" in options else n)
            check(abs(counted - rows[-1]["removed"]) < 150_000_000, f"what was counted until then, in {rows}")
        status, out, err = removed_beside(daemon, 0, "-x,", "-I", "100", "--count", "8", "cpu-clock", "page-faults", lines=2)
        rows = [line.strip().split(",") for line in out]
        equal((status, err, len(rows)), (1, alone.splitlines(True)[0], 16), "how it ends with one that is left")
        equal([rows[-2][1], rows[-2][-1], rows[-1][3]], ["<not counted>", "seconds until it was removed", "page-faults"], "the last lines")
        for command in [], ["--", "sleep", "0.5"]:
            options = ["-o", f"{daemon.directory}/report", "-p", str(os.getpid())] + ([] if command else ["--for", "1000s"])
            equal(removed_beside(daemon, "*", *options, "cpu-clock", *command)[::2], (1, alone), f"its end with {command}")
            with open(f"{daemon.directory}/report", encoding="ascii") as f:
                check(re.search(r"cpu-clock +# +[0-9.]+ seconds until it was removed$", f.read(), re.M), f"no line of {command} says when")
        os.unlink(f"{daemon.directory}/report")


def intervals(daemon, options):
    """Rows of a command of a little more than one interval, and their times; once more where a busy machine has made one line of two."""
    for _ in range(10):
        out = run(daemon, "stat", "--json", *options, "-I", "100", "cpu-clock", "--", "sleep", "0.12")
        if "-o" in options:
            with open(options[-1], encoding="ascii") as f:
                out = [json.loads(line) for line in f]
        times = sorted({row["time"] for row in out})
        if len(times) >= 2:
            return out, times
    raise AssertionError(f"ten times one line: {out}")


def test_intervals_begin_with_the_command():
    """Whole CPUs are counted from the moment on at which the command is let go, in each form, and not from anywhere in the tenth of a
    second before: in one of three times at least, because whoever reads the counters may have to wait for a CPU."""
    cpus = perfd.online_cpus()
    with perfd.Daemon() as daemon:
        for options, n in (["-a"], len(cpus)), (["-A", "-C", ",".join(map(str, cpus))], 1), (["--cgroup", "/"], len(cpus)), (
                ["-C", str(cpus[0])], 1), (["-a", "-o", f"{daemon.directory}/report"], len(cpus)):
            early = []
            for _ in range(3):
                out, times = intervals(daemon, options)
                # less: of a CPU whose count comes with the next line
                early.append([row for row in out if row["time"] == times[0] and row["enabled"] / n > 1.1 * row["time"]])
                if not early[-1]:
                    break
            check(not early[-1], f"counted before its time 0, with {options}: {early}")


def test_what_is_said():
    """The heading has children only where they are counted; a time of perf, and a word that is nothing, are explained once."""
    me, parent = os.getpid(), os.getppid()
    with perfd.Daemon() as daemon:
        for ids, options, words in ((f"{me}", [], f"'{me}' and its children"), (f"{me}", ["--no-inherit"], f"'{me}'"),
                                    (f"{me},{parent}", [], f"'{me},{parent}' and their children")):
            text = run(daemon, "stat", "--for", "50ms", "-p", ids, *options, "page-faults")
            check(f" Performance counter stats for process id {words}:\n" in text, text)
        for words, ends in (["-e", "cs,duration_time"], "task-clock counts the time that tasks run"), (
                ["nosuchcmd"], "no program in $PATH is called 'nosuchcmd' either: a command would follow --"):
            with start(daemon, "stat", *words) as process:
                out, err = process.communicate(timeout=perfd.PATIENCE)
            equal((process.returncode, out, err.splitlines()[-1].endswith(ends)), (1, "", True), f"what {words} says: {err!r}")
            equal(err.count("perfctl: stat: "), 1 if "-e" in words else 2, f"messages in {err!r}")


if __name__ == "__main__":
    perfd.main(globals())
