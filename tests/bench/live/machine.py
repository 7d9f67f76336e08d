"""What Linux knows of this machine and of a process: CPU time, wakeups, memory."""
import contextlib
import os
import platform
import select
import shutil
import time

PATIENCE = 30  # seconds
LOOK = 0.03  # seconds between two looks at whether a process is quiet
QUIET = 500_000  # ns of CPU between two looks: what the rest of the machine can make perfd do


def threads(pid):
    """{name: {cpu_ns, wakeups}} of all threads that live; threads of the same name are one."""
    found = {}
    for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as schedstat, \
                open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
            thread = found.setdefault(lines["Name"], {"cpu_ns": 0, "wakeups": 0})
            thread["cpu_ns"] += int(schedstat.read().split()[0])
            thread["wakeups"] += int(lines["voluntary_ctxt_switches"])
    return found


def together(found):
    """All threads of threads() as one."""
    return {key: sum(thread[key] for thread in found.values()) for key in ("cpu_ns", "wakeups")}


def cpu_time(pid):
    """ns of CPU of all its threads that live."""
    return sum(thread["cpu_ns"] for thread in threads(pid).values())


def process_time(pid):
    """ns of CPU of all its threads, also those that have ended."""
    return time.clock_gettime_ns((~pid << 3) | 2)  # as clock_getcpuclockid(3) makes it


def difference(before, after):
    """Of two looks at threads(); a thread that came in between counts whole."""
    none = {"cpu_ns": 0, "wakeups": 0}
    return {name: {key: now[key] - before.get(name, none)[key] for key in now} for name, now in after.items()}


def rss(pid):
    """Bytes, without rings."""
    total, is_ring = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            word = line.split()[0]
            if not word.endswith(":"):
                is_ring = "[perf_event]" in line
            elif word == "Rss:" and not is_ring:
                total += int(line.split()[1]) << 10
    return total


def children(pid):
    """Of this process, and theirs."""
    found = []
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            found += [int(child), *children(int(child))]
    return found


def name(pid):
    """Of the program that it runs; None: it has ended."""
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/comm", encoding="utf-8") as f:
        return f.read().rstrip("\n")
    return None


def count_perf_events(pid):
    """The perf event fds that it has."""
    n = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            n += os.readlink(f"/proc/{pid}/fd/{fd}") == "anon_inode:[perf_event]"
    return n


def states(pid):
    """Of its threads, as proc(5) has them: {"S", "T"}."""
    found = set()
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as f:
            found.add(f.read().rpartition(")")[2].split()[0])
    return found


def is_running(pid):
    """Whether a thread of it runs, or would if it had a CPU."""
    return "R" in states(pid)


def wait_quiet(pids, looks=2):
    """Until these processes have done what they have to do: hardly any CPU is spent between so many looks in turn."""
    end, before, quiet = time.monotonic() + PATIENCE, 0, 0
    while quiet <= looks:
        now = sum(cpu_time(pid) for pid in pids)
        quiet = quiet + 1 if now - before < QUIET and not any(is_running(pid) for pid in pids) else 0
        before = now
        if time.monotonic() > end:
            raise AssertionError(f"not quiet within {PATIENCE} s: {pids}")
        select.select([], [], [], LOOK)


def missing(program, n_cpus):
    """Why a case that needs it, or None, and so many CPUs cannot be measured here; None if it can."""
    if len(os.sched_getaffinity(0)) < n_cpus:
        return f"there are no {n_cpus} CPUs"
    return None if program is None or shutil.which(program) else f"{program} is not installed"


def describe():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    return {"cpu": model, "n_cpus": os.cpu_count(), "kernel": platform.release(), "date": time.strftime("%Y-%m-%d")}
