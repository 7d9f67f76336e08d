#!/usr/bin/python3
"""`perfctl watch` adds what does not run for the time of the watch, with the options of `add`, and leaves nothing. Needs root."""
import contextlib
import json
import os
import select
import signal
import subprocess

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from test_control import PERFCTL, documents, perfctl
from test_pending import inside
from test_sources import FIRE, GETPPID, Fire
from test_tasks import cgroup_root, remove

CALLS = "raw_syscalls:sys_enter"


@contextlib.contextmanager
def watching(daemon, *words, socket=None):
    """It runs, and its stream has begun."""
    with subprocess.Popen([PERFCTL, "--socket", socket or daemon.control, "--json", "watch", *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            check(select.select([process.stdout], [], [], perfd.PATIENCE)[0], f"watch {words} says nothing")
            first = json.loads(process.stdout.readline())
            equal(first["kind"], "start", "the first line")
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def finish(process, status=0):
    """Ctrl-C; its samples, and the rows of the closing ledger."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=perfd.PATIENCE)
    equal(process.returncode, status, f"its status, behind {err}")
    rows = [json.loads(line) for line in out.splitlines()]
    return [row for row in rows if row["kind"] == "sample"], [row for row in rows if row["kind"] == "event"]


def names(daemon):
    return sorted(row["name"] for row in documents(daemon, "list"))


def test_what_does_not_run():
    """By its name, by one without its group, and a probe with arguments; beside one that runs. All go with the watch."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        add(client, {"event": CALLS, "name": "mine", "filter": f"id == {GETPPID}", "target": fire.target})
        with watching(daemon, "mine", "sched_process_exit", f"uprobe:{FIRE}:fire_call") as process:
            equal(names(daemon), ["mine", "sched:sched_process_exit", f"uprobe:{FIRE}:fire_call"], "what runs meanwhile")
            fire.fire("syscalls", 100)
            fire.fire("calls", 50)
            samples, rows = finish(process)
        count = {name: sum(1 for row in samples if row["event"] == name and row["pid"] == fire.pid)
                 for name in ("mine", f"uprobe:{FIRE}:fire_call")}
        equal(list(count.values()), [100, 50], "samples of the program")
        check(rows and all(row["balanced"] and row["exact"] for row in rows), rows)
        wait_until(lambda: names(daemon) == ["mine"], "what was added to go")


def test_with_options():
    """Each is an event of its own, also beside one that runs by that name; what observes others is as it was."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire, Fire() as other:
        add(client, {"event": CALLS, "target": other.target})
        with watching(daemon, CALLS, "--pid", str(fire.pid), "--filter", f"id == {GETPPID}") as process:
            equal(names(daemon), [CALLS, f"{CALLS}~{process.pid}"], "what runs meanwhile")
            other.fire("syscalls", 70)
            fire.fire("syscalls", 100)
            samples, rows = finish(process)
        equal((len(samples), {row["event"] for row in samples}), (100, {f"{CALLS}~{process.pid}"}), "samples")
        equal(sum(row["occurred"] for row in rows), 100, "occurrences")
        wait_until(lambda: names(daemon) == [CALLS], "what was added to go")


def test_references():
    """@GROUP and #ID mean what runs, as in all other verbs; one that means nothing is refused."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        mine = add(client, {"event": CALLS, "name": "mine", "group": "g", "filter": f"id == {GETPPID}", "target": fire.target},
                   {"event": "page-faults", "name": "other"})[0]
        for word in "@g", f"#{mine.id}":
            with watching(daemon, word) as process:
                fire.fire("syscalls", 10)
                samples, rows = finish(process)
            equal([row["event"] for row in samples], ["mine"] * 10, f"samples of {word}")
        check("in a group called none" in perfctl(daemon, "watch", "@none", status=1).stderr, "a group that is none")
        check("of the id 9" in perfctl(daemon, "watch", "#9", status=1).stderr, "an id that is none")


def test_killed():
    """kill -9 of perfctl leaves no event, and no probe in tracefs."""
    with Daemon() as daemon:
        with watching(daemon, f"uprobe:{FIRE}:fire_call", "--args", "number=$arg1") as process:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(perfd.PATIENCE)
        wait_until(lambda: names(daemon) == [], "what was added to go")

        def definitions():
            with open("/sys/kernel/tracing/uprobe_events", encoding="ascii") as f:
                return [line for line in f if FIRE in line and f"_{daemon.pid}_" in line]
        wait_until(lambda: not definitions(), "its definition to go")


def test_refusals():
    """Who may not change gets the daemon's word about what runs; mistakes are those of `add`."""
    with Daemon() as daemon:
        no = subprocess.run([PERFCTL, "--socket", daemon.stream, "watch", CALLS], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=perfd.PATIENCE, check=False)
        check(no.returncode == 1 and "no running event matches" in no.stderr, no)
        no = subprocess.run([PERFCTL, "--socket", daemon.stream, "watch", CALLS, "--pid", "1"], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=perfd.PATIENCE, check=False)
        check(no.returncode == 1 and "control socket" in no.stderr, no)
        check("no tracepoint" in perfctl(daemon, "watch", "nosuch:event", status=1).stderr, "an event that is none")
        check("Field not found" in perfctl(daemon, "watch", CALLS, "--filter", "no == 1", status=1).stderr, "a filter that is none")
        check("which event?" in perfctl(daemon, "watch", "--pid", "1", status=2).stderr, "no event at all")
        check("unknown-field" not in perfctl(daemon, "watch", CALLS, "--where", "no == 1", status=1).stderr, "a predicate that is none")
        wait_until(lambda: names(daemon) == [], "what was added for a stream that was refused to go")


def test_unit_that_does_not_run():
    """What is wrong, and a glob that does it: of this unit alone, from its start on. By each verb that adds an event."""
    name = f"perfd-test-{os.getpid()}.service"
    glob = f"[p]{name[1:]}"
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        for verb in ("add", CALLS), ("watch", CALLS), ("count", CALLS), ("stat", CALLS):
            lines = perfctl(daemon, *verb, "--unit", name, status=1).stderr.splitlines()
            check(f"no cgroup belongs to a unit '{name}': it is not running" in lines[0], lines)
            check(len(lines) == 2 and f"by a glob, as --unit '{glob}', or by an event of the configuration" in lines[1], lines)
        wait_until(lambda: names(daemon) == [], "what was refused to be gone")
        perfctl(daemon, "add", CALLS, "--filter", f"id == {GETPPID}", "--unit", glob)
        folder = os.path.join(cgroup_root(), name)
        for path in folder, f"{folder[:-len('.service')]}x.service":
            os.mkdir(path)
        try:
            wait_until(lambda: client.request(list=pb.ListRequest()).list.events[0].n_targets == 1, "the unit to be observed")
            with inside(folder, fire.pid):
                fire.fire("syscalls", 100)
            equal(sum(row.occurred for row in daemon.ledger().events), 100, "its calls")
        finally:
            for path in folder, f"{folder[:-len('.service')]}x.service":
                wait_until(lambda path=path: remove(path), f"{path} to be empty")


def on_terminal(daemon, *words):
    """What watch says on stderr while its stdout is a terminal."""
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as out:
        seen = subprocess.run([PERFCTL, "--socket", daemon.control, "watch", *words, "--for", "1ms"], stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.PIPE, text=True, timeout=perfd.PATIENCE, check=True).stderr
    os.close(master)
    return seen


def test_what_may_look_quiet():
    """Who sees nothing on a terminal is told that an event is disabled, and what a pattern means."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": CALLS, "name": "off", "disabled": True}, {"event": "sched:sched_process_exit", "name": "on"})
        check("perfctl: watch: off is disabled: it delivers no samples until it is enabled, as by `perfctl enable 'off'`" in
              on_terminal(daemon, "off"), "that it is disabled")
        seen = on_terminal(daemon, "o*")
        check("of 'o*' these are the 2 that run, and not all" in seen and "disabled" not in seen, seen)
        check("disabled" not in perfctl(daemon, "watch", "off", "--for", "1ms").stderr, "said to a program")


if __name__ == "__main__":
    perfd.main(globals())
