"""What a host above this machine does to it."""
import ctypes
import functools
import os
import platform
import struct

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


@functools.lru_cache
def breakpoints_fire():
    """Whether a breakpoint of perf_event_open(2) counts at all: some hypervisors let them be set, and report none."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    watched, count = ctypes.c_uint64(), ctypes.c_uint64()
    # type, size, config, period, sample_type, read_format, flags: exclude_kernel and exclude_hv, wakeup, bp_type: W, bp_addr, bp_len
    attr = struct.pack("IIQQQQQIIQQ", 5, 128, 0, 0, 0, 0, 1 << 5 | 1 << 6, 0, 2, ctypes.addressof(watched), 8).ljust(128, b"\0")
    fd = ctypes.CDLL(None).syscall(number, attr, 0, -1, -1, 0)
    if fd < 0:
        return False
    watched.value = 1
    count.value = int.from_bytes(os.read(fd, 8), "little")
    os.close(fd)
    return count.value > 0


def need_breakpoints():
    if not breakpoints_fire():
        raise perfd.Skip("a breakpoint opens here and never counts, also without perfd")
