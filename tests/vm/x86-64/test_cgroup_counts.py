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


def main():
    count(2)
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["mount", "-t", "cgroup", "-o", "perf_event", "none", place], check=True)
        try:
            assert hierarchy() != 0
            count(1)
        finally:
            subprocess.run(["umount", place], check=True)
    end = time.monotonic() + PATIENCE
    while hierarchy() != 0:  # removed cgroups hold it until they are freed
        assert time.monotonic() < end, "perf_event does not come back to v2"
        time.sleep(0.1)
    count(2)


main()
