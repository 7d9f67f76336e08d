"""How the tests of a file are run, and what they have to know of the build and of the machine for it.

perfd.py has all of it too: that is what test files import.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
BUILD = os.environ.get("PERFD_BUILD", os.path.join(HERE, "..", "..", "build"))


def find_sanitizer():
    """The b_sanitize of the build: "none", "thread", "address,undefined"."""
    with contextlib.suppress(OSError):
        with open(os.path.join(BUILD, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as f:
            return next(o["value"] for o in json.load(f) if o["name"] == "b_sanitize")
    return "none"


SANITIZER = find_sanitizer()
PATIENCE = 100  # seconds for what takes a moment on an idle machine: this one may be emulated, or have other work beside


class Skip(Exception):
    """Said by a test, with the reason why it cannot be run here."""


class TooLong(BaseException):
    """A test has used up its time; nothing but main() catches it."""


def need_root():
    if os.geteuid() != 0:
        print("skipped: only root may trace the host")
        sys.exit(77)


class Apart:
    """One test of a file, in a process of its own, whose output is kept until it has ended."""

    def __init__(self, name):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, os.path.realpath(sys.argv[0]), name], stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT)

    def end(self):
        """Prints what it said; its status."""
        status = self.process.wait()
        print(os.pread(self.output.fileno(), 1 << 24, 0).decode("utf-8", "replace"), end="", flush=True)
        self.output.close()
        return status


def run_apart(names, at_once):
    """Runs each as by hand, so many at the same time; {name: status}, where a negative one is a signal, as in subprocess."""
    waiting, running, statuses = list(reversed(names)), {}, {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                name = waiting.pop()
                running[name] = Apart(name)
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            name = next(name for name, each in running.items() if each.process.pid == ended)
            statuses[name] = running.pop(name).end()
    finally:
        for each in running.values():
            each.process.terminate()
            each.process.wait()
    return statuses


def cpu_seconds():
    """Of this process, and of those that it has waited for."""
    return sum(os.times()[:4])


def run_one(name, test, limit):
    """Its status: 0, 77 if it was skipped, 1 if it failed."""
    begin, cpu = time.monotonic(), cpu_seconds()
    signal.alarm(limit)
    try:
        test()
    except Skip as why:
        print(f"skipped {name}: {why}", flush=True)
        return 77
    except (Exception, TooLong) as why:  # pylint: disable=broad-except
        print(f"FAIL {name}: {type(why).__name__}: {why}")
        traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        return 1
    finally:
        signal.alarm(0)
    print(f"ok {name} ({time.monotonic() - begin:.1f} s, {cpu_seconds() - cpu:.1f} s of CPUs)", flush=True)
    return 0


def main(scope, seconds=300, at_once=1, anybody=False):
    """Runs the tests of a file, each for at most `seconds` (more under a sanitizer): one that goes on for ever ends then.

    at_once: so many at the same time, each in a process of its own. Only for tests that wait more than they do, and that
    neither count what the whole host does nor are disturbed by events that others change. anybody: they need no privileges.
    """
    if not anybody:
        need_root()
    limit = seconds * (1 if SANITIZER == "none" else 4)
    tests = {name: f for name, f in scope.items() if name.startswith("test_") and callable(f)}
    names = sys.argv[1:] or list(tests)

    def too_long(*_):
        raise TooLong(f"it takes more than {limit} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was begun is ended, and what was made is removed
    if at_once > 1 and len(names) > 1:
        statuses = run_apart(names, at_once)
    else:
        statuses = {name: run_one(name, tests[name], limit) for name in names}
    failed = [name for name, status in statuses.items() if status not in (0, 77)]
    if at_once > 1 and failed:
        print("failed:", ", ".join(f"{name} (status {statuses[name]})" for name in failed))
    if failed:
        sys.exit(1)
    sys.exit(77 if all(status == 77 for status in statuses.values()) else 0)
