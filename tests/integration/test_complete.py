#!/usr/bin/python3
"""What the completion offers beside names: paths of programs, fields in expressions, cgroups, units and containers; and what
bash makes of it. Needs root."""
import os
import subprocess
import tempfile

import perfd
import test_targets
from perfd import Daemon, add, check, equal
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
        equal(in_bash(daemon, "perfctl watch 'switches' --where \"next_pid > 0\" --o"), ["--order", "--overflow"], "behind closed ones")


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
