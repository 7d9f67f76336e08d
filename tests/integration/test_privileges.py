#!/usr/bin/python3
"""What a perfd that runs as root keeps of root's power: in every thread, with and without --keep-capabilities."""
import os
import signal

import perfd
from perfd import Daemon, add, check, equal, pb, refused, wait_until

KEPT = {"perfmon": 38, "bpf": 39, "dac_read_search": 2, "dac_override": 1, "chown": 0, "sys_ptrace": 19, "syslog": 34,
        "sys_nice": 23, "ipc_lock": 14, "sys_resource": 24, "kill": 5}
SYS_ADMIN = 21
KEEP = ("sh", "-c", 'exec "$@" --keep-capabilities', "sh")


def statuses(pid):
    """The lines of /proc/PID/status of each thread."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
            found.append(dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line))
    return found


def capabilities(pid, key="CapEff"):
    """Of all threads, the same in each."""
    sets = {int(status[key], 16) for status in statuses(pid)}
    equal(len(sets), 1, f"different {key} of its threads")
    return sets.pop()


def own_capabilities():
    return capabilities(os.getpid())


def filtered(pid):
    for status in statuses(pid):
        equal((status["Seccomp"], status["NoNewPrivs"]), ("2", "1"), f"Seccomp and NoNewPrivs of {status['Name']}")


def works(daemon):
    """Events of kinds that root's power was needed for once, on this process and on the host."""
    with daemon.client() as client:
        add(client, "sched:sched_switch", {"event": "cpu-clock", "target": pb.Target(pids=[os.getpid(), 1])},
            {"event": "page-faults", "callchain": pb.CALLCHAIN_BOTH})
        with open("/proc/kallsyms", encoding="ascii") as f:
            has_address = int(f.readline().split()[0], 16) != 0
        if has_address and os.path.exists("/sys/bus/event_source/devices/kprobe"):
            add(client, {"event": "kprobe:vfs_fsync_range", "name": "probe"})
        equal(client.request(list=pb.ListRequest(glob="cpu-clock")).list.events[0].n_targets >= 2, True, "both processes")
        refused(client, "unknown-event", remove=pb.SelectRequest(names=["none"]))


def test_root_gives_up():
    """What is not needed, for good; CAP_SYS_ADMIN too, unless this kernel asks for it."""
    with Daemon() as daemon:
        said = next(line for line in daemon.stderr().splitlines() if "root's capabilities" in line)
        expected = sum(1 << c for c in KEPT.values()) & own_capabilities()
        if "CAP_SYS_ADMIN is one" in said:
            expected |= 1 << SYS_ADMIN
        for key in ("CapEff", "CapPrm"):
            equal(capabilities(daemon.pid, key), expected, f"{key}, of which it said {said!r}")
        for key in ("CapInh", "CapAmb"):
            equal(capabilities(daemon.pid, key), 0, key)
        filtered(daemon.pid)
        works(daemon)


def test_root_keeps():
    """As asked for; the filter of system calls is there all the same."""
    with Daemon(prefix=KEEP) as daemon:
        check("root's capabilities are kept, as requested" in daemon.stderr(), daemon.stderr())
        equal(capabilities(daemon.pid), own_capabilities(), "what it has")
        filtered(daemon.pid)
        works(daemon)


def test_it_ends_as_before():
    """A reader that is started later, a reload and the end need nothing that was given up."""
    with Daemon(config="version: 1\ngroups: { a: { events: [ cpu-clock ] } }\n") as daemon:
        with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
            f.write("version: 1\nrings: { size: 1MiB }\ngroups: { a: { events: [ page-faults ] } }\n")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: "reloaded: 1 added, 1 removed" in daemon.stderr(), "a reload")
        filtered(daemon.pid)
        daemon.stop()


if __name__ == "__main__":
    perfd.main(globals())
