"""What a host above this machine does to it."""
import os

import perfd

TRIES = 5
AWAY = 10_000_000  # ns: what is lost in a flood may be lost to a CPU that was away for so long; /proc/stat counts no less


def stolen():
    """ns that it has kept CPUs of this machine from running since it was started, by ticks of the kernel's clock."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def while_cpus_run(load, losses):
    """What load() gives, of which losses() says how much was lost, or is wrong: of the first run in which nothing was, or in
    which the host let the CPUs run. If it never does, the test is skipped, and says so.

    Nothing can be promised for CPUs that are not there. While the one that dispatches is away and a flood goes on beside it,
    what there is no room for is lost, and counted."""
    for _ in range(TRIES):
        before = stolen()
        found = load()
        away = stolen() - before
        if not losses(found) or away < AWAY:
            return found
        print(f"  {losses(found)} too many, and the host kept the CPUs from running for {away // 1_000_000} ms", flush=True)
    raise perfd.Skip(f"in none of {TRIES} runs did the host let the CPUs run")
