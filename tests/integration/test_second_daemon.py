#!/usr/bin/python3
"""A daemon that starts where another one listens: beside one that lives it does not, behind one that was killed it does; and what
listens there and is none. Needs root."""
import os
import socket
import subprocess
import tempfile

import perfd
from perfd import Daemon, check, equal
from test_control import PERFCTL
from test_errors import SWITCH, state, unchanged


def test_second_daemon():
    """Where one listens, another one does not; where one has died, it does."""
    with Daemon() as first, first.client() as client:
        perfd.add(client, SWITCH)
        before = state(first)
        try:
            with Daemon(directory=first.directory):
                raise AssertionError("a second daemon runs beside the first")
        except perfd.NotStarted as no:
            equal(no.status, 1, "the status of the second")
            check("another daemon already listens on" in no.stderr and first.control in no.stderr, no.stderr)
        unchanged(first, before, "the first")
        with first.client(stream=True):
            pass  # its sockets are still its own
        os.kill(first.pid, perfd.signal.SIGKILL)
        first.process.wait()
        with Daemon(directory=first.directory) as second:
            equal(second.status().n_events, 0, "events")
        first.judged = True


def test_start_behind_a_killed_one():
    """It still listens while the kernel closes what it had open: who starts then waits for it, and says so."""
    with Daemon() as first, first.client() as client:
        perfd.add(client, "syscalls:sys_enter_[a-f]*")
        os.kill(first.pid, perfd.signal.SIGKILL)
        with Daemon(directory=first.directory) as second:
            equal(second.status().n_events, 0, "events")
            print(f"  waited: {'waiting for its end' in second.stderr()}")
        first.process.wait()
        first.judged = True


def test_silent_daemon():
    """perfctl does not wait for ever for the greeting of whatever listens on the socket."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{directory}/control.sock")
        silent.listen(5)
        done = subprocess.run([PERFCTL, "--socket", f"{directory}/control.sock", "status"], capture_output=True, text=True,
                              timeout=perfd.PATIENCE, check=False)
        equal(done.returncode, 3, done.stderr)
        said = done.stderr.splitlines()
        check(len(said) == 2 and said[0].startswith(f"perfctl: status: waiting for perfd on {directory}/control.sock") and
              "has answered for 30 s" in said[1], done.stderr)


if __name__ == "__main__":
    perfd.main(globals())
