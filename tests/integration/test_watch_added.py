#!/usr/bin/python3
"""`perfctl watch` adds what does not run for the time of the watch, with the options of `add`, and leaves nothing. Needs root."""
import contextlib
import json
import os
import re
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


def first_line(process):
    """Byte by byte: what else can be read at once is left to communicate(), which knows nothing of the buffer of a file."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(process.stdout.fileno(), 1)
        check(byte, f"it ends, and says {line} and {process.communicate(timeout=perfd.PATIENCE)[1] if not byte else ''}")
        line += byte
    return line


@contextlib.contextmanager
def watching(daemon, *words, socket=None, verb="watch"):
    """It runs, and its stream has begun."""
    with subprocess.Popen([PERFCTL, "--socket", socket or daemon.control, "--json", verb, *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            check(select.select([process.stdout], [], [], perfd.PATIENCE)[0], f"watch {words} says nothing")
            first = json.loads(first_line(process))
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


def test_at_the_same_time():
    """Those who start the same event at once get one each: none is refused because another one was faster."""
    with Daemon() as daemon, Fire() as fire:
        for _ in range(10):
            words = ([PERFCTL, "--socket", daemon.control, verb, CALLS, "--pid", str(fire.pid), "--for", "1ms"]
                     for verb in ("watch", "watch", "count", "count"))
            together = [subprocess.Popen(each, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                        for each in words]
            for process in together:
                said = process.communicate(timeout=perfd.PATIENCE)[1]
                equal(process.returncode, 0, f"the status of {process.args[3]}, behind {said}")
        wait_until(lambda: names(daemon) == [], "what was added to go")


def test_refusal_is_one_line():
    """A process that is gone is noted in the log when others of the target are there; where it is refused, that is all."""
    with Daemon() as daemon:
        done = subprocess.run([PERFCTL, "--socket", daemon.control, "watch", "page-faults", "--pid", "4194303"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        lines = [line for line in daemon.stderr().splitlines() if "4194303" in line]
        equal((done.returncode, len(lines)), (1, 1), f"status and lines of the log: {daemon.stderr()}")


def test_pattern_of_functions():
    """uprobe:FILE:PATTERN is each function that it means, up to a limit; beyond that, and of none, it is said, and nothing added."""
    def ask(*words):
        return subprocess.run([PERFCTL, "--socket", daemon.control, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=perfd.PATIENCE, check=False)

    with Daemon() as daemon, Fire() as fire:
        for words, message in ((["add", "uprobe:libc:*"], r"means \d+ functions \(.*\), and one pattern means 64 at most: make it narrower; "
                                                         r"`perfctl available 'uprobe:/.*libc.so.6:\*'` lists them$"),
                               (["add", "page-faults", f"uprobe:{FIRE}:nosuch*"], r"has no function that matches 'nosuch\*'"),
                               (["watch", "uprobe:libc:*"], "one pattern means 64 at most"),
                               (["add", "--name", "x", f"uprobe:{FIRE}:fire_h*", f"uprobe:{FIRE}:fire_c*"], "cannot all be called so")):
            done = ask(*words)
            check(done.returncode in (1, 2) and done.stdout == "" and re.search(message, done.stderr), done)
        equal(names(daemon), [], "what runs behind mistakes")
        done = ask("add", "-e", f"uprobe:{FIRE}:fire_[ch]*", "page-faults")
        offered = [row["event"] for row in documents(daemon, "available", f"uprobe:{FIRE}:fire_[ch]*")]
        check(done.returncode == 0 and {f"uprobe:{FIRE}:fire_{name}" for name in ("call", "calls", "hits")} <= set(offered), (done, offered))
        equal(names(daemon), sorted(["page-faults", *offered]), "what runs")
        part = subprocess.run([PERFCTL, "--socket", daemon.control, "watch", "--for", "1ms", "uprobe:./fire:fire_*"], cwd=os.path.dirname(FIRE),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        check(re.search(f"of 'uprobe:{FIRE}:fire_\\*' these are the {len(offered)} that run, and not all \\d+ that this file has: with -a", part.stderr),
              part)
        with watching(daemon, f"uretprobe:{FIRE}:fire_cal?", "--args", "r=$retval:s64") as process:
            fire.fire("calls", 3)
            samples, _ = finish(process)
        equal([row["event"] for row in own(samples, fire)], [f"uretprobe:{FIRE}:fire_call"] * 3, "samples")


def own(samples, fire):
    return [row for row in samples if row["pid"] == fire.pid]


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


def ended(process, status):
    """Nobody ended it; what it said on stderr."""
    out, err = process.communicate(timeout=perfd.PATIENCE)
    equal(process.returncode, status, f"its status, behind {err}")
    return out, err


def test_removed():
    """What somebody removes is told; when none of the names is left it ends, with a status of its own. What replaces it is left."""
    yaml = "version: 1\ngroups: {{g: {{events: [{{event: sched:sched_process_exit, name: mine{}}}]}}}}\n"
    with Daemon(yaml.format("")) as daemon, daemon.client() as client:
        own = {"event": "page-faults", "name": "a", "target": pb.Target(pids=[os.getpid()])}  # few: nobody reads them until the end
        for verb in "watch", "count":
            add(client, own, {"event": "cs", "name": "b", "target": own["target"]})
            with watching(daemon, "a", "b", verb=verb) as process:
                client.request(remove=pb.SelectRequest(names=["a"]))
                equal(process.stderr.readline(), f"perfctl: {verb}: removed while this runs: a\n", "of the first")
                client.request(remove=pb.SelectRequest(names=["b"]))
                out, err = ended(process, 1)
            check(f"perfctl: {verb}: removed while this runs: b\n" in err and "none of its events is left" in err, err)
            check('"balanced":true' in out, out)
            with watching(daemon, "mine", verb=verb) as process:
                client.request(apply=pb.ApplyRequest(yaml=yaml.format(", attr: {exclude_kernel: true}")))
                equal(process.stderr.readline(), f"perfctl: {verb}: removed while this runs: mine\n", "of what is replaced")
                client.request(apply=pb.ApplyRequest(yaml=yaml.format("")))
                process.stderr.readline()
                client.request(remove=pb.SelectRequest(names=["mine"]))
                check("none of its events is left" in ended(process, 1)[1], "why it ends")
            client.request(apply=pb.ApplyRequest(yaml=yaml.format("")))
            add(client, own)
            with watching(daemon, "a*", verb=verb) as process:
                client.request(remove=pb.SelectRequest(names=["a"]))
                process.stderr.readline()
                finish(process)


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
        check(no.returncode == 1 and "no running event matches" in no.stderr and "a rule that grants own-processes" in no.stderr, no)
        no = subprocess.run([PERFCTL, "--socket", daemon.stream, "watch", CALLS, "--pid", "1"], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=perfd.PATIENCE, check=False)
        check(no.returncode == 1 and "use the control socket, or have perfd's administrator write a rule that grants own-processes" in no.stderr, no)
        check("no tracepoint" in perfctl(daemon, "watch", "nosuch:event", status=1).stderr, "an event that is none")
        check("Field not found" in perfctl(daemon, "watch", CALLS, "--filter", "no == 1", status=1).stderr, "a filter that is none")
        check("which event?" in perfctl(daemon, "watch", "--pid", "1", status=2).stderr, "no event at all")
        check("unknown-field" not in perfctl(daemon, "watch", CALLS, "--where", "no == 1", status=1).stderr, "a predicate that is none")
        wait_until(lambda: names(daemon) == [], "what was added for a stream that was refused to go")


def test_names_of_what_runs():
    """They are none of an event: who gives them a target, or counts them, is told what to name instead."""
    config = """version: 1
groups:
  g: { events: [{ event: 'sched:sched_process_exec', name: execs, filter: 'pid > 1' }] }
  h: { events: [{ event: '{task-clock,cs}', name: pair, interval: 1s }, { event: page-faults, name: faults }] }
"""
    execs = "'sched:sched_process_exec' --filter 'pid > 1'"
    cases = (
        (["watch", "execs", "-p", "1"], "watch: 'execs' is a running event, with the target that it was added with: for another one, a command "
         f"or options, name {execs}"),
        (["count", "execs", "--", "true"], f"count: 'execs' is a running event, with the target that it was added with: for another one, a "
         f"command or options, name {execs}"),
        (["count", "cs", "@g", "--", "true"], f"count: '@g' means what runs, with the target that it was added with: for another one, a "
         f"command or options, name {execs}"),
        (["stat", "execs", "--for", "1ms"], "stat: 'execs' is a running event, and stat counts events of its own: `perfctl count 'execs'` counts "
         f"its samples; to count the same, name {execs}"),
        (["stat", "pair"], "stat: 'pair' is a running event, and stat counts events of its own: `perfctl watch 'pair'` shows its counts; to "
         "count the same, name '{task-clock,cs}'"),
        (["stat", "@h", "--", "true"], "stat: '@h' means what runs, and stat counts events of its own: `perfctl count '@h'` counts its "
         "samples; to count the same, name '{task-clock,cs}' and 'page-faults'"))
    with Daemon(config) as daemon:
        for words, said in cases:
            lines = perfctl(daemon, *words, status=1).stderr.splitlines()
            equal(lines[-1], f"perfctl: {said}", f"the last line of {words}")
        said = perfctl(daemon, "watch", "nosuchname", "-p", "1", status=1).stderr
        check("runn" not in said, said)


def test_words_of_others():
    """What bpftrace has in another way, or not here, is said by each verb; and where a command stands that has no "--"."""
    interval = "nothing occurs at an interval here, but `perfctl stat` and `perfctl count` print at each --interval TIME"
    clock = "here it is cpu-clock -F {}, of `perfctl watch` and `perfctl count`"
    cases = (("interval:s:1", interval), ("i:ms:10", interval), ("profile:hz:99", clock.format(99)), ("p:ms:10", clock.format("HZ")),
             ("fentry:vfs_read", "here it is 'kprobe:vfs_read'"), ("kretfunc:vmlinux:vfs_read", "here it is 'kretprobe:vfs_read'"),
             ("t:sched:sched_switch", "here it is 'sched:sched_switch'"), ("rawtracepoint:sched_switch", "here it is 'sched_switch'"),
             ("watchpoint:0x1000:8:w", "here it is mem:ADDRESS/LENGTH:rwx"), ("BEGIN", "perfctl has no programs that begin and end"),
             ("software:faults:100", "here it is faults --period 100"), ("hardware:cycles:1000", "here it is cycles --period 1000"))
    with Daemon() as daemon:
        for i, (event, said) in enumerate(cases):
            verb = ("add", "watch", "count", "stat")[i % 4]
            lines = perfctl(daemon, verb, "cs", event, status=1).stderr.splitlines()
            equal(lines[-1], f"perfctl: {verb}: '{event}' is bpftrace's: {said}", f"the last line of {verb} {event}")
        for i, (event, said) in enumerate((("duration_time", "time for which perf stat"), ("user_time", "time that the command of perf stat was in user mode"),
                                           ("system_time", "time that the command of perf stat was in the kernel"))):
            for verb in "stat", ("add", "watch", "count")[i]:
                line = perfctl(daemon, verb, event, status=1).stderr.splitlines()[-1]
                check(line.startswith(f"perfctl: {verb}: '{event}' is no event, but the {said}") and "`perfctl stat" in line, line)
        for words in ["watch", "cs", "-a", "ls"], ["count", "page-faults", "/bin/true"], ["stat", "sleep", "10"]:
            lines = perfctl(daemon, *words, status=1).stderr.splitlines()
            place = min(words.index(word) for word in ("ls", "/bin/true", "sleep") if word in words)
            line = " ".join(["perfctl", *(word for word in words[:place] if word != "-a"), "--", *words[place:]])
            equal(lines[-1], f"perfctl: {words[0]}: a command follows --, as in `{line}`", f"the last line of {words}")
        check(perfctl(daemon, "show", "openat", status=1).stderr.endswith(", did you mean 'syscalls:sys_enter_openat'?\n"), "a system call alone")
        for words in ["add", "ls"], ["watch", "no-such-program"]:
            check("follows --" not in perfctl(daemon, *words, status=1).stderr, f"said by {words}")
        check("bpftrace" not in perfctl(daemon, "watch", "sched:no", status=1).stderr, "said of an event that is none")


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
    """Who sees nothing is told that an event is disabled, and what a pattern means."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": CALLS, "name": "off", "disabled": True}, {"event": "sched:sched_process_exit", "name": "on"})
        check("perfctl: watch: off is disabled: `perfctl enable 'off'`" in on_terminal(daemon, "off"), "that it is disabled")
        seen = on_terminal(daemon, "o*")
        check("of 'o*' these are the 2 that run, and not all" in seen and "disabled" not in seen, seen)
        done = perfctl(daemon, "--json", "watch", "off", "--for", "1ms")
        check("perfctl: watch: off is disabled: `perfctl" in done.stderr and "disabled" not in done.stdout, f"to a pipe: {done.stderr}")
        check("perfctl" not in perfctl(daemon, "watch", "on", "--for", "1ms").stderr, "of one that is enabled")


def test_targets_that_are_gone():
    """Of an event whose processes or cgroups are gone it is said, wherever its samples would go to."""
    with Daemon() as daemon, daemon.client() as client:
        with Fire() as fire:
            add(client, {"event": CALLS, "name": "ended", "target": fire.target})
            check("perfctl" not in perfctl(daemon, "watch", "ended", "--for", "1ms").stderr, "while it runs")
        perfctl(daemon, "add", CALLS, "--name", "absent", "--cgroup", "perfd-nosuch-*")
        said = perfctl(daemon, "watch", "ended", "--for", "1ms").stderr
        check("perfctl: watch: the tasks of ended have ended: only children of theirs that run on can deliver samples\n" in said, said)
        said = perfctl(daemon, "watch", "absent", "--for", "1ms").stderr
        check("perfctl: watch: absent delivers no samples for now: no cgroup matches its target\n" in said, said)


def test_globs_that_run_in_part():
    """They mean what runs, and that is said; with options of a target all are added, whatever runs."""
    glob = "sched:sched_process_e*"  # exec and exit
    with Daemon() as daemon, daemon.client() as client:
        add(client, "sched:sched_process_exec")
        for verb in "watch", "count":
            said = perfctl(daemon, verb, glob, "--for", "1ms").stderr
            check(f"perfctl: {verb}: of '{glob}' these are the 1 that run, and not all 2 that this kernel has: with -a all are" in said, said)
            seen = {}
            for options in ("-a",), ("-p", str(os.getpid())):
                done = perfctl(daemon, "--json", verb, *options, "--for", "1ms", "--ledger", glob)
                check("that run, and not all" not in done.stderr, done.stderr)
                rows = map(json.loads, done.stdout.splitlines())
                seen[options[0]] = {re.sub("~[0-9]+$", "~", row["event"]) for row in rows if row.get("since")}
            equal(seen["-a"], {"sched:sched_process_exec", "sched:sched_process_exit"}, "the events of -a")
            equal(seen["-p"], {"sched:sched_process_exec~", "sched:sched_process_exit"}, "those of a process")
            wait_until(lambda: names(daemon) == ["sched:sched_process_exec"], "what was added to go")
        add(client, "sched:sched_process_exit")
        check(glob not in perfctl(daemon, "count", glob, "--for", "1ms").stderr, "all of them run")


if __name__ == "__main__":
    perfd.main(globals())
