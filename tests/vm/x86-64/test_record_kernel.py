#!/usr/bin/python3
"""Recordings of a kernel that has kprobes and modules: arguments as fields, and frames of a module named, also when it is gone."""
import contextlib
import glob
import json
import os
import subprocess
import tempfile

import perfd
from perfd import Daemon, equal
from test_perfctl import PERFCTL
from test_record import record, sent
from test_recording import info

N = 50
SEND = f"""
import socket
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
    s.bind(("dummy0", 0))
    for i in range({N}):
        s.send(b"\\xff" * 12 + b"\\x88\\xb5" + bytes(100 + i))
"""


def call(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=perfd.PATIENCE, check=True).stdout


@contextlib.contextmanager
def module():
    """dummy.ko: an interface that forgets what is sent. Its build id."""
    path, = glob.glob(f"/lib/modules/{os.uname().release}/kernel/drivers/net/dummy.ko")
    call("insmod", path)
    try:
        call("ip", "link", "set", "dummy0", "up")
        with open("/sys/module/dummy/notes/.note.gnu.build-id", "rb") as f:
            yield f.read()[16:].hex()
    finally:
        call("rmmod", "dummy")


def samples_of(path):
    return [json.loads(line) for line in call(PERFCTL, "--json", "script", "-i", path).splitlines()]


def frames(samples):
    return [[(f["symbol"], f["dso"], f["build_id"]) for f in s["kernel_callchain"]] for s in samples]


def test_probes_in_a_module():
    """Each packet by the function that takes it and by its return."""
    names = ["kprobe:dummy_xmit", "kretprobe:dummy_xmit"]
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, plain = os.path.join(folder, "perf.data"), os.path.join(folder, "plain")
        with module() as build_id:
            done = record(daemon, "-o", path, names[0], "--args", "skb=$arg1:x64", "--callchain", "kernel", "--", "python3", "-c", SEND)
            equal((sent(done), info(path)["damage"], info(path)["samples_of"]), (N, [], [N]), "packets that were taken")
            loaded = samples_of(path)
            record(daemon, "-o", plain, *names, "--", "python3", "-c", SEND)
        equal(all(s["fields"]["skb"] > 0 for s in loaded), True, f"its argument, {loaded[0]}")
        equal({chain[0] for chain in frames(loaded)}, {("dummy_xmit", "[dummy]", build_id)}, "the function of the module")
        callers = {(symbol, dso) for chain in frames(loaded) for symbol, dso, _ in chain[1:]}
        equal({("dev_hard_start_xmit", "[kernel.kallsyms]"), ("__x64_sys_sendto", "[kernel.kallsyms]")} - callers, set(), f"callers, of {callers}")
        equal(frames(samples_of(path)), frames(loaded), "when the module is gone")
        equal((info(plain)["events"], info(plain)["samples_of"]), (names, [N, N]), "without arguments")
        equal([s["event"] for s in samples_of(plain)], names * N, "a return after each call")


if __name__ == "__main__":
    perfd.main(globals())
