#!/usr/bin/python3
"""`perfctl stat`, `count` and `watch` of processes and threads end by themselves when the last of these has ended, and not before,
with all that they did; and `list` says who has ended. Needs root."""
import contextlib
import json
import os
import re
import subprocess
import sys

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from test_control import perfctl
from test_perfctl import GETPPID, finish, start
from test_sources import Fire
from test_targets import CALLS, events_of, occurred

VERBS = ["stat", "--interval", "100ms"], ["count"], ["watch"]
# Its first thread goes on, and a second one ends when it is told to.
THREADS = """
import os, sys, threading
def run():
    print(threading.get_native_id(), flush=True)
    sys.stdin.readline()
    os.getppid()
second = threading.Thread(target=run)
second.start()
second.join()
print("joined", flush=True)
sys.stdin.readline()
"""


def counted(verb, lines):
    """How many calls the lines tell of."""
    rows = [json.loads(line) for line in lines]
    if verb == "stat":
        return sum(row["value"] for row in rows)
    end, = [row for row in rows if row["kind"] == "end"]
    return end["counted" if verb == "count" else "printed"]


@contextlib.contextmanager
def observing(daemon, words, *options):
    """When it has begun."""
    n_enables = daemon.stderr().count("enable by perfctl")
    with start(daemon, words[0], "--json", *words[1:], GETPPID, *options) as process:
        if words[0] == "stat":  # status says that they are to be on, which is before the readers have done it
            perfd.wait_until(lambda: daemon.stderr().count("enable by perfctl") > n_enables, "its event to be on")
        else:
            equal(json.loads(process.stdout.readline())["kind"], "start", "the first line")
        yield process


def said(process):
    out, err = finish(process)
    equal(process.returncode, 0, f"its status, with {err!r}")
    return out.splitlines()


def end(fire):
    fire.process.stdin.close()
    equal(fire.process.wait(perfd.PATIENCE), 0, "its status")


def test_processes():
    """The end of the first of two is none; that of the second one is, with its last call in it."""
    with Daemon() as daemon:
        for words in VERBS:
            with Fire() as first, Fire() as second, observing(daemon, words, "--pid", f"{first.pid},{second.pid}") as process:
                first.fire("syscalls", 3)
                end(first)
                second.fire("syscalls", 40)
                equal(process.poll(), None, f"{words[0]} after the first end")
                end(second)
                equal(counted(words[0], said(process)), 43, f"what {words[0]} says of both")


def test_threads():
    """The end of a thread whose process goes on."""
    with Daemon() as daemon:
        for words in VERBS:
            with subprocess.Popen(["/usr/bin/python3", "-c", THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
                tid = program.stdout.readline().strip()
                with observing(daemon, words, "--tid", tid) as process:
                    program.stdin.write("\n")
                    program.stdin.flush()
                    equal(program.stdout.readline(), "joined\n", "the program")
                    equal(counted(words[0], said(process)), 1, f"what {words[0]} says of the thread")
                check(program.poll() is None, "the program goes on")
                program.stdin.close()
                equal(program.wait(perfd.PATIENCE), 0, "its status")


def test_tasks_that_ended():
    """`list` says who is no more, and their counts stay: a thread, its process and its zombie; not whom another event is on."""
    program = ("import os, sys, threading\n"
               "go = threading.Event()\n"
               "thread = threading.Thread(target=go.wait)\n"
               "thread.start()\n"
               "print(os.getpid(), flush=True)\n"
               "sys.stdin.readline()\n"
               "go.set()\nthread.join()\n"
               "[os.getppid() for _ in range(1000)]\n"
               "print('done', flush=True)\nsys.stdin.readline()\n")
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:

        def ended():
            return {name: (e.n_ended, e.n_targets) for name, e in events_of(client).items()}

        def shown():
            out = perfctl(daemon, "--json", "list").stdout
            rows = perfctl(daemon, "list").stdout.splitlines()
            return ([found[0] for row in rows if (found := re.search(r"\([^)]*\)(?=\t)", row))],
                    [(row["ended"], row["targets"]) for row in map(json.loads, out.splitlines())])

        with perfd.Line([sys.executable, "-c", program]) as process:
            pid = int(process.hear()[0])
            targets = {"both": pb.Target(pids=[pid]), "main": pb.Target(tids=[pid]), "other": fire.target,
                       "some": pb.Target(pids=[pid, fire.pid]), "host": None}
            add(client, *({**CALLS, "name": name, **({"target": target} if target else {})} for name, target in targets.items()))
            equal(ended(), {"both": (0, 2), "main": (0, 1), "other": (0, 1), "some": (0, 3), "host": (0, 0)}, "all live")
            process.say("go")
            equal(process.hear(), ["done"], "the word of the program")
            wait_until(lambda: ended() == {"both": (1, 2), "main": (0, 1), "other": (0, 1), "some": (1, 3), "host": (0, 0)},
                       "the thread to end")
            process.say("end")
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # a zombie
            all_ended = {"both": (2, 2), "main": (1, 1), "other": (0, 1), "some": (2, 3), "host": (0, 0)}
            wait_until(lambda: ended() == all_ended, "the process to end")
        equal(ended(), all_ended, "it is waited for")
        equal(shown(), (["(2, all ended)", "(1, ended)", "(1)", "(3, 2 ended)"], list(all_ended.values())), "in words")
        equal(occurred(daemon, "both", "main", "some"), {"both": 1000, "main": 1000, "some": 1000}, "what they did")


if __name__ == "__main__":
    perfd.main(globals())
