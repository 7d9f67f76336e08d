"""For the tests of hardware counters: perfctl's counts of a command, as rows of JSON."""
import json
import os
import subprocess

import perfd
from perfd import check, equal

PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
N_COUNTERS = 7  # of the emulated armv8_pmuv3


def perfctl(daemon, *arguments, status=0):
    done = subprocess.run([PERFCTL, "--socket", daemon.control, *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    equal(done.returncode, status, f"the status of perfctl {' '.join(arguments)}, which said: {done.stdout}")
    return done.stdout


def stat(daemon, *events, options=(), command=()):
    """One row for each event, or for each of each interval."""
    said = perfctl(daemon, "stat", "--json", *options, *events, *(["--", *command] if command else []))
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def loop(n):
    """A command that does n times the same, with the same addresses each time."""
    return ["setarch", "-R", "dash", "-c", f"i=0; while [ $i -lt {n} ]; do i=$((i+1)); done"]


def whole(rows):
    """That each counted all the time, without sharing its counter."""
    for row in rows:
        equal((row["state"], row["confidence"]), ("counted", 1), f"{row}")
        check(row["value"] > 0, f"{row}")


def shared(rows):
    """That 12 of the same event on 7 counters took turns, and that scaling makes up for it."""
    equal(len(rows), 12, "rows")
    values = sorted(row["value"] for row in rows)
    for row in rows:
        equal(row["state"], "counted", f"{row}")
        check(0.3 < row["confidence"] < 0.9, f"the part of the time that it counted: {row}")
        check(abs(row["confidence"] - row["running"] / row["enabled"]) < 1e-6, f"running and enabled: {row}")
    mean = sum(row["confidence"] for row in rows) / len(rows)
    check(abs(mean - N_COUNTERS / 12) < 0.1, f"12 events on {N_COUNTERS} counters count {mean} of the time")
    check(values[-1] < 1.5 * values[0], f"the same event, scaled: {values}")
