#!/usr/bin/python3
"""Events of cgroups are counted exactly in v2 under systemd, in v1 while that has perf_event, and then in v2 again."""
import os
import subprocess
import tempfile
import time

PATIENCE = 30  # seconds that the kernel may take to give a controller back


def count(version):
    program = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "cgroup-counts")
    said = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(said, end="", flush=True)
    assert f"v{version} hierarchy" in said, said


def hierarchy():
    """Of perf_event, in /proc/cgroups; 0 is v2."""
    with open("/proc/cgroups", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("perf_event\t"))


def in_v1(place, work):
    """While perf_event belongs to v1."""
    subprocess.run(["mount", "-t", "cgroup", "-o", "perf_event", "none", place], check=True)
    try:
        work()
    finally:
        subprocess.run(["umount", place], check=True)


def main():
    count(2)
    with tempfile.TemporaryDirectory() as place:
        in_v1(place, lambda: count(1))
        end = time.monotonic() + PATIENCE
        # a hierarchy ends with its last mount only if its removed cgroups are freed by then: else with a later one
        while hierarchy() != 0:
            assert time.monotonic() < end, "perf_event does not come back to v2"
            time.sleep(0.5)
            in_v1(place, lambda: None)
    count(2)


main()
