#!/usr/bin/python3
"""Events of cgroups are counted exactly in v2 under systemd, in v1 while that has perf_event, and then in v2 again."""
import os
import subprocess
import tempfile
import time

PATIENCE = 6  # seconds that the kernel may take to give a controller back


def count(version):
    program = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "cgroup-counts")
    said = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(said, end="", flush=True)
    assert f"v{version} hierarchy" in said, said


def hierarchy():
    """Of perf_event, in /proc/cgroups; 0 is v2."""
    with open("/proc/cgroups", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("perf_event\t"))


def comes_back():
    """Within a while."""
    end = time.monotonic() + PATIENCE
    while hierarchy() != 0 and time.monotonic() < end:
        time.sleep(0.1)
    return hierarchy() == 0


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
        # a hierarchy ends with its last mount, a moment later, if its removed cgroups are freed by then: else with a later one
        for _ in range(10):
            if comes_back():
                break
            in_v1(place, lambda: None)
        assert hierarchy() == 0, "perf_event does not come back to v2"
    count(2)


main()
