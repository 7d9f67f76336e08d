#!/usr/bin/python3
"""Persistent events while their state file cannot be written: what fills a disk can be stopped there. Needs root."""
import contextlib
import os
import subprocess
import tempfile

import perfd
from perfd import Daemon, add, check, equal, pb, refused
from test_control import documents, events, keep, perfctl

SMALL = {"event": "page-faults", "name": "faults"}
KEEP = [{"event": "context-switches", "name": "switches"}, {"event": "cpu-clock", "name": "clock", "period": 1000000}, SMALL]


@contextlib.contextmanager
def small_disk():
    """A directory with a file system of its own, and what fills it."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", directory], check=True)
        try:
            yield directory, os.path.join(directory, "full")
        finally:
            subprocess.run(["umount", directory], check=True)


def fill(path):
    with open(path, "wb", buffering=0) as f, contextlib.suppress(OSError):
        while f.write(bytes(4096)):
            pass


def unstored(daemon):
    return documents(daemon, "status")[0]["state_unstored"]


def test_events_can_be_stopped_on_a_full_disk():
    """Removed and disabled at once, which is said to be not stored; not added or changed; stored when there is space again."""
    with small_disk() as (directory, full):
        with Daemon(directory=directory) as daemon, daemon.client() as client:
            keep(client, *KEEP)
            equal(unstored(daemon), "", "the status before")
            fill(full)
            for verb, name, again in ("remove", "clock", "adds them again"), ("disable", "switches", "enables them again"):
                said = perfctl(daemon, verb, name).stderr
                for words in "not stored", again, "No space left on device", "free space on its file system", "once a minute":
                    check(words in said, f"{words!r} in what {verb} said: {said!r}")
            equal({name: event.enabled for name, event in events(client).items()}, {"switches": False, "faults": True}, "events")
            for body in ({"add": pb.AddRequest(keep=True, events=[pb.EventSpec(event="dummy")])},
                         {"enable": pb.SelectRequest(names=["switches"])}, {"set_period": pb.SetPeriodRequest(name="faults", period=2)}):
                no = refused(client, "state-file", "STATUS_EXHAUSTED", **body)
                check("free space" in no.message and "directory of its own" not in no.message, no.message)
            check("No space left on device" in unstored(daemon), "the status says why")
            check("state-unstored" in perfctl(daemon, "status").stdout, "the status as a table")
            equal(daemon.stderr().count("not stored as they are now"), 1, "lines of the log")
            daemon.process.kill()
            daemon.process.wait()
            daemon.judged = True
        with Daemon(directory=directory) as daemon, daemon.client() as client:
            equal({name: event.enabled for name, event in events(client).items()},
                  {"switches": True, "clock": True, "faults": True}, "what comes back, as was said")
            perfctl(daemon, "remove", "clock")
            perfctl(daemon, "disable", "switches")
            os.remove(full)
            add(client, "dummy")  # is not persistent: any change tries
            equal(unstored(daemon), "", "the status behind a change")
            check("stored again" in daemon.stderr(), daemon.stderr())
        with Daemon(directory=directory) as daemon, daemon.client() as client:
            equal({name: event.enabled for name, event in events(client).items()}, {"switches": False, "faults": True},
                  "what was stored")


if __name__ == "__main__":
    perfd.main(globals())
