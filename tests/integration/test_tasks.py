#!/usr/bin/python3
"""Who did it: every sample has the name, the program and the cgroup that its thread had at that moment, although the
process is gone before anybody could look at it."""
import contextlib
import os
import shutil
import subprocess
import tempfile

import perfd
from perfd import Daemon, Skip, Subscriber, add, check, equal, pb

SHORT_LIFE = os.environ.get("PERFD_SHORT_LIFE", os.path.join(perfd.BUILD, "tests", "integration", "short-life"))
GETPPID = 110 if os.uname().machine == "x86_64" else 173
CALLS = 3  # of each life
N = 100 if perfd.SANITIZER != "none" else 500


def cgroup_root():
    """Where the cgroups are mounted that perf events use, if that is v2."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        if any("perf_event" in line.split(":")[1].split(",") for line in f):
            raise Skip("perf events use a v1 hierarchy here")
    for mount in mounts:
        if mount[mount.index("-") + 1] == "cgroup2":
            return mount[4]
    raise Skip("no cgroup2 is mounted")


def own_cgroup():
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        return next(line.strip()[3:] for line in f if line.startswith("0::"))


@contextlib.contextmanager
def cgroups(*names):
    """Own cgroups, gone afterwards: {path as the kernel has it: folder}."""
    root, own = cgroup_root(), f"perfd-test-tasks-{os.getpid()}"
    folders = {f"/{own}/{name}": os.path.join(root, own, name) for name in names}
    try:
        for folder in folders.values():
            os.makedirs(folder)
        yield folders
    finally:
        for folder in [*folders.values(), os.path.join(root, own)]:
            perfd.wait_until(lambda path=folder: remove(path), f"{folder} is empty")


def remove(folder):
    with contextlib.suppress(FileNotFoundError):
        try:
            os.rmdir(folder)
        except OSError:
            return False
    return True


class Lives(perfd.Line):
    """short-life.c: .of is {pid: index} after done()."""

    def __init__(self, n, folders, programs):
        super().__init__([SHORT_LIFE, str(n), *folders, "--", *programs])
        self.n = n
        word, pid = self.hear()
        equal(word, "ready", "the first word of the lives")
        self.pid = int(pid)

    def go(self):
        """All of them; in the order of their ends."""
        self.say("go")
        lives = [self.hear() for _ in range(self.n)]
        equal(self.hear(), ["done"], "the last word of the lives")
        equal(self.process.wait(perfd.PATIENCE), 0, "the status of the lives")
        return [(int(pid), int(us)) for pid, us in lives]


@contextlib.contextmanager
def programs(*names):
    """The same program by several names."""
    with tempfile.TemporaryDirectory(prefix="perfd-tasks.") as folder:
        os.chmod(folder, 0o755)
        yield [shutil.copy(SHORT_LIFE, os.path.join(folder, name)) for name in names]


def calls_of(lines, pids):
    """{pid: [who]} of the samples of these processes, in their order."""
    found = {pid: [] for pid in pids}
    for line in lines:
        if line.get("pid") in found and line["event"]:
            found[line["pid"]].append((line["comm"], line["process"].get("executable"), line["process"].get("cgroup"),
                                       line["process"].get("parent"), line["process"].get("uid")))
    return found


def lost(lines):
    """The rows of a closing ledger that have lost something."""
    return [line for line in lines if any({**line.get("lost", {}), **line.get("dropped", {})}.values())]


def test_short_lives():
    """As the fork makes them, pids follow each other, so that a child's index is known only by what it did: that name,
    program and cgroup belong together, and that each has been there as often as it has to."""
    names = ("life-a", "life-b", "a-life-with-a-long-name", "life-d", "life-e")
    with Daemon() as daemon, daemon.client() as client, cgroups("x", "y", "z.service") as folders, \
         programs(*names) as paths, Lives(N, list(folders.values()), paths) as lives:
        mine = 'comm ~ "*life-*"'  # whatever others on this host do would have to be printed too
        add(client, {"event": "syscalls:sys_enter_getppid", "filter": mine},
            {"event": "raw_syscalls:sys_enter", "filter": f"id == {GETPPID} && {mine}"})
        with Subscriber(daemon, "syscalls:sys_enter_getppid") as one, \
             Subscriber(daemon, "--where", f"id == {GETPPID}", "raw_syscalls:sys_enter") as other:
            ends = lives.go()
            seen = [one.finish(), other.finish()]
        forgotten = daemon.status().n_tasks_forgotten
    expected = sorted((names[i % len(names)][:15], paths[i % len(paths)], list(folders)[i % len(folders)], lives.pid, 0)
                      for i in range(N))
    equal(forgotten, 0, "forgotten tasks")
    for lines in seen:
        equal(lost(lines), [], "lost")
        found = calls_of(lines, [pid for pid, _ in ends])
        for pid, who in found.items():
            equal(len(who), CALLS, f"calls of {pid}")
            equal(who, [who[0]] * CALLS, f"who {pid} was")
        equal(sorted(who[0] for who in found.values()), expected, "who the processes were")
    times = sorted(us for _, us in ends)
    print(f"  lives of {times[0]} to {times[-1]} us of CPU, half of them below {times[N // 2]} us")


def test_tasks_that_were_there_before():
    """Known when the stream begins, also to a second subscriber of the same stream, and after everything was off."""
    with Daemon() as daemon, daemon.client() as client, cgroups("before") as folders, programs("waiting") as paths:
        (path, folder), = folders.items()
        with Lives(1, [folder], paths) as life, open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(life.pid))
            f.flush()
            add(client, "sched:sched_process_fork")
            with Subscriber(daemon, "sched:sched_process_fork") as first, \
                 Subscriber(daemon, "sched:sched_process_fork") as second:
                client.request(disable=pb.SelectRequest(names=["*"]))
                client.request(enable=pb.SelectRequest(names=["*"]))
                life.go()
                seen = [first.finish(), second.finish()]
    for lines in seen:
        who, = [line for line in lines if line.get("pid") == life.pid]
        equal((who["comm"], who["process"]["executable"], who["process"]["cgroup"], who["process"]["uid"]),
              ("short-life", SHORT_LIFE, path, 0), "who forked")
        equal(who["process"]["parent"], os.getpid(), "its parent")


def test_names_of_threads_and_moves():
    """A thread that renames itself between two calls, and is moved by somebody else between two others. sh(1) makes one
    call before, when it starts."""
    script = ("import os, sys\n"
              "def act(name):\n"
              "    open('/proc/self/comm', 'w').write(name)\n"
              "    os.getppid()\n"
              "act('first'); act('second')\n"
              "print('ready', flush=True); sys.stdin.readline()\n"
              "os.getppid()\n")
    with Daemon() as daemon, daemon.client() as client, cgroups("a", "b") as folders:
        mine = " || ".join(f'comm == "{name}"' for name in ("sh", "first", "second"))
        add(client, {"event": "syscalls:sys_enter_getppid", "filter": mine})
        (path_a, a), (path_b, b) = folders.items()
        with Subscriber(daemon, "syscalls:sys_enter_getppid") as subscriber:
            command = ["sh", "-c", f"echo 0 > {a}/cgroup.procs; exec {os.sys.executable} -c \"$0\"", script]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                equal(process.stdout.readline(), b"ready\n", "the first word")
                with open(os.path.join(b, "cgroup.procs"), "w", encoding="ascii") as f:
                    f.write(str(process.pid))
                process.communicate(b"\n", perfd.PATIENCE)
            lines = subscriber.finish()
    equal([(line["comm"], line["process"]["cgroup"]) for line in lines if line.get("pid") == process.pid],
          [("sh", own_cgroup()), ("first", path_a), ("second", path_a), ("second", path_b)], "names and cgroups, call by call")


if __name__ == "__main__":
    perfd.main(globals())
