#!/usr/bin/python3
"""libperfd's batches against the real daemon: the example of libperfd(3) counts each system call of a load, by shared memory."""
import os
import re
import subprocess

import perfd
from perfd import BUILD, Daemon, Workload, add, check, equal, pb
from test_promises import CPUS, SYS_ENTER

CALLS = 50_000  # of each CPU: many rings full


def test_example():
    total = (CALLS + 1) * len(CPUS)
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", CALLS, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "target": pb.Target(pids=load.pids)})
        program = os.path.join(BUILD, "client", "example-batch")
        with subprocess.Popen([program, str(total)], env={**os.environ, "PERFD_SOCKET": daemon.stream}, text=True,
                              stdout=subprocess.PIPE) as example:
            perfd.wait_until(lambda: daemon.ledger().subscribers, "its subscription")
            load.go()
            equal(load.done(), [CALLS] * len(CPUS), "calls made")
            last, *calls = example.communicate(timeout=perfd.PATIENCE)[0].splitlines()
        equal(example.returncode, 0, "its status")
    equal(last, f"{total} items received, 0 missed, the ledger balances", "its end")
    counts = {int(number): int(count) for number, count in (re.fullmatch(r" *(\d+) (\d+)", line).groups() for line in calls)}
    equal(sum(counts.values()), total, "calls counted")
    check(max(counts.values()) == CALLS * len(CPUS), f"the load's own call: {counts}")


if __name__ == "__main__":
    perfd.main(globals())
