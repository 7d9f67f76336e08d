#!/usr/bin/python3
"""What the completion offers beside names: paths of programs, fields in expressions, cgroups, units and containers; and what
bash makes of it. Needs root."""
import os
import pty
import select
import signal
import subprocess
import tempfile

import perfd
import test_targets
from perfd import Daemon, add, check, equal, pb
from test_perfctl import PERFCTL

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client", "perfctl", "completion.bash")
ID = "0123456789abcdef" * 4


def offered(daemon, *words):
    ran = subprocess.run([PERFCTL, "complete", "--socket", daemon.control, *words], capture_output=True, text=True, check=True,
                         timeout=perfd.PATIENCE)
    equal(ran.stderr, "", f"what is said behind {words}")
    return sorted(ran.stdout.splitlines())


def in_bash(daemon, line):
    """What bash has to choose from behind this line, by the function that perfctl comes with."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        os.symlink(PERFCTL, os.path.join(folder, "perfctl"))
        line = line.replace("perfctl ", f"perfctl --socket {daemon.control} ", 1)
        script = 'compopt() { :; }; . "$1"; COMP_LINE=$2 COMP_POINT=${#2}; _perfctl; printf "%s\\n" "${COMPREPLY[@]}"'
        ran = subprocess.run(["bash", "-c", script, "bash", SCRIPT, line], capture_output=True, text=True, check=True,
                             env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}, timeout=perfd.PATIENCE)
        return sorted(ran.stdout.splitlines())


def test_paths():
    """Programs and libraries, and folders; nothing that no probe can be in, nor behind the path."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        for name, mode in (("program", 0o755), ("libsome.so.1", 0o644), ("notes.txt", 0o644), (".hidden", 0o755)):
            with open(os.path.join(folder, name), "w", encoding="ascii"):
                os.chmod(os.path.join(folder, name), mode)
        os.mkdir(os.path.join(folder, "more"))
        for kind in ("uprobe", "uretprobe", "usdt"):
            equal(offered(daemon, "add", f"{kind}:{folder}/"),
                  [f"{kind}:{folder}/{name}" for name in ("libsome.so.1:", "more/", "program:")], f"behind {kind}:")
        equal(offered(daemon, "add", f"uprobe:{folder}/."), [f"uprobe:{folder}/.hidden:"], "what is hidden, if it is asked for")
        equal(offered(daemon, "watch", f"uprobe:{folder}/pro"), [f"uprobe:{folder}/program:"], "with its beginning")
        equal((offered(daemon, "add", "uprobe:"), offered(daemon, "add", f"uprobe:{folder}/program:x"),
               offered(daemon, "add", "uprobe:relative")), (["uprobe:/"], [], []), "around the path")
        equal(in_bash(daemon, f"perfctl add uprobe:{folder}/p"), [f"{folder}/program:"], "in bash, behind its colon")


def test_fields():
    """Of the events that the line names, as they run or as the kernel has them, at the end of an expression."""
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": "sched:sched_switch", "name": "switches"})
        prev = ["prev_comm", "prev_pid", "prev_prio", "prev_state"]
        equal(offered(daemon, "watch", "switches", "--where", "prev_"), prev, "of one that runs, by its own name")
        equal(offered(daemon, "count", "-e", "switches", "--where", "(next_pid==1||prev_p"),
              ["(next_pid==1||prev_pid", "(next_pid==1||prev_prio"], "in the middle of an expression")
        equal(offered(daemon, "add", "sched:sched_switch", "--filter", "prev_"), prev, "of one that is to be added")
        equal(offered(daemon, "filter", "switches", "prev_pid > 1 && prev_s"), ["prev_pid > 1 && prev_state"], "of a new filter")
        equal(offered(daemon, "filter", "switches", "prev_pid > 1 && cp"), [], "what filters of the kernel do not know")
        equal(offered(daemon, "watch", "switches", "--where", 'prev_comm == "prev_'), [], "in a text")
        check({"comm", "cpu", "pid", "tid", "time"} <= set(offered(daemon, "watch", "switches", "--where", "")), "what all samples have")
        equal(offered(daemon, "watch", "--where", "c"), ["comm", "cpu"], "of no event")
        equal(in_bash(daemon, "perfctl watch switches --where 'prev_pid > 0 && prev_p"),
              ["prev_pid > 0 && prev_pid", "prev_pid > 0 && prev_prio"], "in bash, in open quotes")
        for event in ("sched_switch", "tracepoint:sched:sched_switch", "sched:sched_waking,sched_switch"):
            equal(offered(daemon, "watch", event, "--where", "prev_"), prev, f"of {event}")
        equal(offered(daemon, "add", "sched_process_exec", "--filter", "old_"), ["old_pid"], "of one that does not run, by its short name")
        equal(offered(daemon, "watch", "switches", "--fields", "next_pid,prev_"), [f"next_pid,{name}" for name in prev], "a list")
        equal(offered(daemon, "count", "switches", "--hist", "prev_p"), ["prev_pid", "prev_prio"], "for a histogram")
        equal(offered(daemon, "count", "switches", "--by", "comm,prev_c"), ["comm,prev_comm"], "a row for each, of the event")
        equal(offered(daemon, "count", "switches", "--by", "comm,c"), ["comm,cgroup", "comm,container", "comm,cpu"], "of the sample")
        check("prev_comm ==" in offered(daemon, "watch", "switches", "--where", "prev_comm "), "what compares")
        equal(in_bash(daemon, "perfctl watch 'switches' --where \"next_pid > 0\" --o"), ["--order", "--output", "--overflow"], "behind closed ones")


def test_events():
    """In each form that names one, also at the end of a list."""
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": "external:deploy", "fields": [pb.ExternalField(name="user", type="text")]}, {"event": "sched:sched_waking", "name": "wakings"})
        equal(offered(daemon, "watch", "sched_swi"), ["sched_switch"], "without its group")
        equal(offered(daemon, "watch", "tracepoint:sched:sched_swi"), ["tracepoint:sched:sched_switch"], "as bpftrace has it")
        equal(offered(daemon, "add", "tracepoint:sche"), ["tracepoint:sched:"], "its group")
        equal(offered(daemon, "watch", "wakings,sched:sched_swi"), ["wakings,sched:sched_switch"], "behind a comma")
        equal(offered(daemon, "watch", "-e", "sched:sched_switch,wak"), ["sched:sched_switch,wakings"], "of an option")
        equal(offered(daemon, "emit", ""), ["external:deploy"], "what can be emitted")
        equal(offered(daemon, "remove", "wa"), ["wakings"], "what runs")
        check("uprobe:libc:malloc" in offered(daemon, "add", "uprobe:libc:mall"), "functions of a library")
        check("uprobe:bash:readline" in offered(daemon, "add", "uprobe:bash:readl"), "functions of a program")
        equal(in_bash(daemon, "perfctl add uprobe:libc:malloc_u"), ["malloc_usable_size"], "in bash")
        fire = os.path.join(perfd.BUILD, "tests", "integration", "fire")
        equal(offered(daemon, "add", f"usdt:{fire}:"), [f"usdt:{fire}:fire:hit"], "static probes of a program")
        equal(offered(daemon, "watch", f"cycles,usdt:{fire}:fire:h"), [f"cycles,usdt:{fire}:fire:hit"], "behind the provider")
        equal(offered(daemon, "add", f"usdt:{fire}:fire:x"), [], "none that begins so")


def test_lists():
    """The last word of a list, which is none of those before; and tasks that run."""
    with Daemon() as daemon:
        equal(offered(daemon, "watch", "--columns", "uid,"), ["uid,cgroup", "uid,container", "uid,exe", "uid,unit"], "columns")
        equal(offered(daemon, "watch", "--records", "comm,fo"), ["comm,fork"], "records")
        equal(offered(daemon, "add", "cycles", "--callchain", "kernel,"), ["kernel,dwarf", "kernel,user"], "callchains")
        equal(offered(daemon, "add", "cycles", "--fallback", "cpu"), ["cpu-clock"], "what is no list")
        own = str(os.getpid())
        check(own in offered(daemon, "watch", "-p", own) and f"1,{own}" in offered(daemon, "stat", "--pid", f"1,{own}"), "processes")
        check(own in offered(daemon, "watch", "--tid", own), "threads")


def test_command():
    """Behind "--" stands a command of the shell."""
    with Daemon() as daemon:
        equal(offered(daemon, "watch", "cycles", "--", "pri"), ["<command>"], "the command")
        equal(offered(daemon, "stat", "--", "cat", "-"), ["<file>"], "its arguments")
        check("printf" in in_bash(daemon, "perfctl watch cycles -- print"), "by its name")
        check("/bin/bash" in in_bash(daemon, "perfctl stat -- /bin/ba"), "by its path")


def typed(daemon, line):
    """What a bash at a terminal has on its line behind it."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        os.symlink(PERFCTL, os.path.join(folder, "perfctl"))
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(PATH=f"{folder}:{os.environ['PATH']}", PERFD_SOCKET=daemon.control, PS1="", TERM="dumb", HISTFILE="")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        show = """bind -x '"\\C-g": echo "line=<$READLINE_LINE>"'"""
        os.write(terminal, f". '{SCRIPT}'; {show}; echo rea''dy\n".encode())
        try:
            wait_for(terminal, "ready")
            os.write(terminal, line.encode() + b"\a")
            return wait_for(terminal, ">\r\n").split("line=<")[-1].split(">\r\n")[0]
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)


def wait_for(terminal, text):
    said = ""
    while text not in said:
        ready, _, _ = select.select([terminal], [], [], perfd.PATIENCE)
        check(ready, f"'{text}' from bash, which said {said!r}")
        said += os.read(terminal, 4096).decode()
    return said


def test_typed():
    """An expression in quotes goes on behind a field, and a list ends."""
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": "sched:sched_switch", "name": "switches"})
        equal(typed(daemon, "perfctl watch switches --where 'prev_co\t"), "perfctl watch switches --where 'prev_comm ", "in a condition")
        equal(typed(daemon, "perfctl watch switches --fields 'prev_co\t").rstrip(), "perfctl watch switches --fields 'prev_comm'", "a list")


def test_places():
    """What is there now: cgroups a level at a time, units and containers by their names, each once."""
    with Daemon() as daemon, test_targets.Tree() as tree:
        for name in ("perfd-test-a.service", f"docker-{ID}.scope", "other/perfd-test-a.service", f"other/{ID}", "perfd-test-b.slice"):
            tree.make(name)
        equal(offered(daemon, "add", "cycles", "--cgroup", tree.own[:-1]), [f"{tree.own}/"], "cgroups")
        equal(offered(daemon, "add", "cycles", "-G", f"{tree.own}/"),
              [tree.path(name) for name in (f"docker-{ID}.scope", "other/", "perfd-test-a.service", "perfd-test-b.slice")],
              "a level below")
        equal(offered(daemon, "watch", "--unit", "perfd-test-"), ["perfd-test-a.service", "perfd-test-b.slice"], "units")
        equal(offered(daemon, "stat", "--container", ID[:20]), [ID], "containers")


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
