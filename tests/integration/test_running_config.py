#!/usr/bin/python3
"""`perfctl status` says which configuration holds: the file's, one that was applied, or none; since when, and whether what is on
disk is another one by now. Needs root."""
import os
import signal
import time

from perfd import Daemon, check, equal, main, wait_until
from test_control import documents, perfctl


def status(daemon):
    row, = documents(daemon, "status")
    return row


def expect(daemon, path, applied="", changed=False):
    row = status(daemon)
    equal((row["config"], row["applied"], row["config_changed"]), (path, applied, changed), "which configuration")
    return row["config_read"]


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def config_of(daemon):
    return status(daemon)["config"]


def fact(daemon, name):
    facts = dict(line.split("\t") for line in perfctl(daemon, "status").stdout.splitlines() if line.count("\t") == 1)
    return facts[name]


def test_none():
    with Daemon() as daemon:
        equal(expect(daemon, ""), 0, "when the defaults were read")
        equal([fact(daemon, name) for name in ("config", "applied", "config-read", "config-changed")], ["", "", "-", "no"], "as text")


def test_reload_and_apply():
    before = time.time_ns()
    with Daemon("version: 1\n") as daemon:
        path = config_of(daemon)
        started = expect(daemon, path)
        check(before <= started <= time.time_ns(), f"read at {started}")
        write(path, "version: 1\nrings: { size: 1MiB }\n")
        equal(expect(daemon, path, changed=True), started, "nothing was read")
        perfctl(daemon, "reload")
        reloaded = expect(daemon, path)
        check(reloaded > started, "the reload has read it")

        other = f"{daemon.directory}/other.yaml"
        write(other, "version: 1\n")
        perfctl(daemon, "apply", other)
        applied = expect(daemon, path, applied=other)
        check(applied > reloaded, "the apply has read it")
        equal(fact(daemon, "config-changed"), "replaced", "to a program, the file while something else holds")
        write(path, "version: 1\nno-such-key: 1\n")
        perfctl(daemon, "reload", status=1)
        equal(expect(daemon, path, applied=other), applied, "a reload that was refused")
        write(path, "version: 1\n")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: status(daemon)["config_read"] > applied, "SIGHUP to be served")
        expect(daemon, path)


def test_drop_ins():
    """One that comes, changes, and goes; also if its bytes have the same number."""
    with Daemon("version: 1\n") as daemon:
        path = config_of(daemon)
        folder = path.removesuffix(".yaml") + ".d"
        expect(daemon, path)
        os.mkdir(folder)
        for step in (lambda: write(f"{folder}/a.yaml", "version: 1\n"), lambda: write(f"{folder}/a.yaml", "version: 1 "),
                     lambda: os.rename(f"{folder}/a.yaml", f"{folder}/b.yaml"), lambda: os.unlink(f"{folder}/b.yaml"),
                     lambda: os.rmdir(folder)):
            step()
            wait_until(lambda: status(daemon)["config_changed"], "the change to be seen")
            perfctl(daemon, "reload")
            expect(daemon, path)


if __name__ == "__main__":
    main(globals())
