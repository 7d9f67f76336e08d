#!/usr/bin/python3
"""`perfctl --compress`, by TLS and ssh: what comes is what comes without, in fewer bytes; who does not know it goes on without it; and no
bytes that claim to be compressed cost more than they are. Needs root."""
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile

import perfd
import zstd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import Relay, frame, read_exactly
from test_control import PERFCTL
from test_perfctl import GETPPID
from test_promises import CPUS
from test_relay import RATE, Reader, ended_with, event_rows, flooded, sent_to
from tls_server import Server

CALLS = 10_000
FLOOD = 300_000
WITHOUT = "does not compress, and this goes on without"


def run(*words, status=0, compress=True, **environment):
    done = subprocess.run([PERFCTL, *["--compress"][:compress], *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=perfd.PATIENCE, check=False, env={**os.environ, **environment})
    equal(done.returncode, status, f"the status of {words}, which said {done.stderr!r}")
    check(not perfd.COMPLAINT.search(done.stderr), done.stderr)
    return done.stdout, done.stderr


def of_relay(relay):
    """The environment in which perfctl finds it, with the certificate of the test's client."""
    folder = relay.at("tls")
    if not os.path.exists(folder):
        os.mkdir(folder)
        for name in "ca.crt", "client.crt", "client.key":
            os.symlink(relay.at(name), os.path.join(folder, name))
    return {"PERFD_TLS": folder, "PERFD_HOST": f"tls://localhost:{relay.port}"}


class Shell:
    """In the place of ssh: `script` is sh's, in which $4 is the command for the other host."""

    def __init__(self, script):
        self.folder = tempfile.TemporaryDirectory(prefix="perfd-test.")
        path = self.at("ssh")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\nPATH={os.path.dirname(PERFCTL)}:$PATH\n{script}\n")
        os.chmod(path, 0o755)
        self.environment = {"PERFD_SSH": path}

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


def test_every_call():
    """Programs of a known number of calls, read by TLS compressed and not, and by the socket: each gets all, with the same ledger."""
    with Daemon() as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load, Relay(daemon) as relay:
        event, = add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        watch = subprocess.Popen([PERFCTL, "--compress", "watch", "calls", "--json", "--count", str(CALLS * len(CPUS))], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **of_relay(relay)})
        with zstd.client(relay) as packed, relay.client() as plain, daemon.client(stream=True) as local:
            readers = [Reader(c, CALLS * len(CPUS), events=[event.name], queue_bytes=64 << 20) for c in (packed, plain, local)]
            wait_until(lambda: daemon.status().n_subscribers == 4, "all to subscribe")
            load.go()
            out, err = watch.communicate(timeout=perfd.PATIENCE)
            load.done()
            ends = [reader.end() for reader in readers]
            equal([reader.n for reader in readers], [sum(load.counts)] * 3, "the samples")
            equal(event_rows(ends[0]), event_rows(ends[2]), "the closing ledgers, of events")
            equal([sent_to(end) for end in ends], [sent_to(ends[2])] * 3, "the closing ledgers, of the subscribers")
            equal((packed.first, packed.unpacker.ended), (zstd.MAGIC, True), "how it began and ended")
            check(packed.n_packed < packed.n_bytes / 3, f"{packed.n_packed} bytes instead of {packed.n_bytes}")
            n_bytes = packed.n_bytes
        equal((watch.returncode, sum('"sample"' in line for line in out.splitlines())), (0, sum(load.counts)), f"what watch read, {err!r}")
        equal(err, "", "what watch said")
        relay.wait_for(rf"has ended after \d+ bytes, compressed from {n_bytes}: ")


def test_verbs():
    """Each is answered as it is without."""
    with Daemon() as daemon, daemon.client() as control, Relay(daemon) as relay:
        add(control, {"event": GETPPID, "name": "calls"})
        for verb in ["version"], ["list"], ["show", "calls"], ["available", "sched:*exec"]:
            answers = [run(*verb, "--json", compress=compress, **of_relay(relay)) for compress in (True, False)]
            equal(answers[0], answers[1], f"{verb}")


def test_ssh():
    """By `perfctl stdio`, which tees what it sends here; and by one that does not know of it, which the variable does not reach."""
    with Daemon() as daemon, Shell('sh -c "$4" | tee "$0.sent"') as there:
        host = {"PERFD_HOST": "ssh://web1" + daemon.control, **there.environment}
        out, err = run("status", "--json", **host)
        equal((json.loads(out)["pid"], err), (daemon.pid, ""), "the answer")
        with open(there.at("ssh.sent"), "rb") as f:
            sent = f.read()
        check(sent.startswith(zstd.MAGIC) and zstd.Unpacker().take(sent), f"{len(sent)} bytes, {sent[:20]}")
        out, err = run("status", "--json", compress=False, **host)
        equal((json.loads(out)["pid"], err), (daemon.pid, ""), "the answer without")
        with open(there.at("ssh.sent"), "rb") as f:
            check(not f.read().startswith(zstd.MAGIC), "it was not asked for")
    with Daemon() as daemon, Shell('exec sh -c "${4#env PERFD_STDIO_COMPRESS=zstd }"') as there:
        out, err = run("status", "--json", PERFD_HOST="ssh://web1" + daemon.control, **there.environment)
        equal(json.loads(out)["pid"], daemon.pid, "whose answer")
        check(WITHOUT in err and "its perfctl is older" in err, err)


def first_bytes(relay, alpn):
    with relay.connect(alpn=alpn) as s:
        s.sendall(frame(hello=pb.Hello(protocol=1, program="test")))
        return s.selected_alpn_protocol(), read_exactly(s, 4) == zstd.MAGIC


def test_old_peers():
    """Who does not know of it, or does not permit it, is read without it, and perfctl says so."""
    with Daemon() as daemon, Relay(daemon) as relay:
        equal(first_bytes(relay, ["perfd/1"]), ("perfd/1", False), "an older client")
        equal(first_bytes(relay, ["perfd/1", "perfd/1+zstd"]), ("perfd/1+zstd", True), "one that prefers another order")
        equal(first_bytes(relay, ["perfd/1+zstd"]), ("perfd/1+zstd", True), "one that has nothing else")
        with Server(relay.folder.name, daemon.stream, name="server", host="localhost") as server:
            out, err = run("status", "--json", **{**of_relay(relay), "PERFD_HOST": server.url})
            equal(json.loads(out)["pid"], daemon.pid, "whose answer, by an older relay")
            check(WITHOUT in err and "its perfd-relay is older" in err, err)
            out, err = run("status", "--json", "--host", server.url, "--host", f"tls://localhost:{relay.port}", **of_relay(relay))
            equal((len(out.splitlines()), err.count(WITHOUT)), (2, 1), f"of two hosts, one of which is older: {err}")
    with Daemon() as daemon, Relay(daemon, "[{ name: client, events: ['*'], compress: 0 }]") as relay:
        equal(first_bytes(relay, zstd.ALPN), ("perfd/1+zstd", False), "a relay that does not permit it")
        check(WITHOUT in run("status", **of_relay(relay))[1], "it was not said")


def test_refused():
    """Where there is no other host, and of NATS."""
    for words in ["status"], ["--host", "unix:/x", "status"], ["--host", "web1", "--host", "unix:/x", "status"], ["--socket", "/x", "status"]:
        err = run(*words, status=2, PERFD_HOST="")[1]
        check("--compress is for another host" in err, err)
    err = run("fleet", "hosts", "--nats", "nats://127.0.0.1:1", status=2)[1]
    check("messages of NATS are as they were published" in err, err)


def greeting_of(daemon):
    """The frame with which it answers hello."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(daemon.control)
        s.sendall(frame(hello=pb.Hello(protocol=1, program="test")))
        length = read_exactly(s, 4)
        return length + read_exactly(s, int.from_bytes(length, "little"))


def test_hostile_sender():
    """What claims to be compressed and is not, needs more memory, or says more than it may: an error, in bounded memory."""
    with Daemon() as daemon:
        greeting = greeting_of(daemon)
    good = zstd.pack([greeting], is_ended=False)
    for name, sent, status, said in [
            ("no stream of zstd", zstd.MAGIC + b"\xff" * 100, 3, "no answer of perfd's"),
            ("a window of 1 MiB", zstd.pack([bytes(1 << 21), greeting], window_log=20), 3, "no answer of perfd's"),
            ("a bomb before the greeting", zstd.pack([bytes(1 << 27)]), 3, "no answer of perfd's"),
            ("a length above the limit", zstd.pack([b"\xff" * 4096]), 3, "no answer of perfd's"),
            ("damage behind the greeting", (good, b"\xff" * 1000), 1, "compressed bytes that are damaged"),
            ("more behind the end", zstd.pack([greeting]) + b"more", 1, "compressed bytes that are damaged"),
            ("a frame of 16 MiB", zstd.pack([greeting, (16 << 20).to_bytes(4, "little") + bytes(1 << 26)]), 1, "ServerMessage"),
            ("the end of the stream alone", zstd.pack([greeting]), None, ""),
            ("half of the magic number", zstd.MAGIC[:2], None, "")]:
        with Shell('head -c 1 >/dev/null; cat "$0.first"; head -c 1 >/dev/null; cat "$0.second"; exec cat >/dev/null') as there:
            for file, part in zip(("ssh.first", "ssh.second"), sent if isinstance(sent, tuple) else (sent, b"")):
                with open(there.at(file), "wb") as f:
                    f.write(part)
            done = subprocess.Popen([PERFCTL, "--compress", "--host", "web1", "status"], stdin=subprocess.DEVNULL, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **there.environment},
                                    preexec_fn=limit_memory if perfd.SANITIZER == "none" else None)
            if not said:  # it waits for more, as long as the other side is there
                with contextlib.suppress(subprocess.TimeoutExpired):
                    done.communicate(timeout=0.5)
                    check(False, f"{name}: it has ended")
                done.kill()
                done.communicate()
                continue
            err = done.communicate(timeout=perfd.PATIENCE)[1]
            equal(done.returncode, status, f"the status of {name}, which said {err!r}")
            check(said in err, f"{name}: {err}")


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (96 << 20, 96 << 20))


def test_hostile_client():
    """What a client sends is never compressed: perfd takes it for a frame that is too long, and says so, compressed."""
    with Daemon() as daemon, Relay(daemon) as relay, zstd.client(relay) as client:
        client.socket.sendall(zstd.pack([frame(status=pb.Empty())]))
        message = client.receive()
        equal((message.response.id, message.response.status), (0, pb.STATUS_INVALID), f"{message}")
        equal((client.receive(), client.unpacker.ended), (None, True), "the end")
        with relay.client() as other:
            equal(other.request(status=pb.Empty()).daemon.pid, daemon.pid, "the relay goes on")


def test_stopped_reader():
    """One that takes nothing while a flood comes has a gap, and the sums close; it is bounded by perfd's queue as without."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, FLOOD, cpus=CPUS[:1]) as load, Relay(daemon) as relay:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with zstd.client(relay, receive_buffer=4096) as remote:
            items = remote.subscribe(events=["calls"], queue_bytes=1 << 16)
            load.go()
            wait_until(lambda: any(s.dropped and s.dropped[0].count for s in daemon.ledger().subscribers), "its queue to overflow")
            load.done(stop=True)
            remote.stop()
            n = sum(1 for _ in items)
            row, = [row for row in remote.end["ledger"] if row["kind"] == "subscriber"]
            equal((row["sent"], row["queued"]), (n, 0), "what it got")
            equal(n + sum(row["dropped"].values()), row["matched"], f"what matched: {row}")
            check(n > 0 and row["dropped"]["relay_queue"] > 0, f"{n} samples, dropped: {row['dropped']}")


def test_end_with_a_reason():
    """In the middle of a flood, between two frames, as the last one of the stream of zstd."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, \
            Relay(daemon, "[{ name: gone, events: [calls] }]") as relay:
        relay.ca.issue("gone")
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with zstd.client(relay, "gone") as gone:
            gone.subscribe(["calls"])
            wait_until(lambda: daemon.status().n_subscribers == 1, "it to subscribe")
            load.go()
            for _ in range(3):
                gone.receive()
            relay.ca.revoke("gone")
            relay.process.send_signal(signal.SIGHUP)
            equal((ended_with(gone), gone.unpacker.ended), ("revoked", True), "the reason, and the end")
        load.done(stop=True)


def test_rate():
    """bytes-per-second counts what is sent: more samples come than fit in it without."""
    rate = 100_000
    rules = f"[{{ name: client, events: ['*'], bytes-per-second: {rate}B }}]"
    with Daemon() as daemon, Relay(daemon, rules) as relay, flooded(relay, daemon, []) as _, zstd.client(relay) as client:
        client.subscribe(["calls"])
        while client.n_packed < 3 * rate:
            client.receive_bytes()
        check(client.n_bytes > 2 * client.n_packed, f"{client.n_bytes} bytes from {client.n_packed}")


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def test_memory():
    """Of a connection in the relay: bounded at each level, and given back when it ends."""
    n, most = 20, {1: 800, 9: 900}  # KiB each, as perfd-relay(8) has it
    for level, limit in most.items():
        if perfd.SANITIZER != "none":
            continue
        rules = f"[{{ name: client, events: ['*'], compress: {level}, connections: 100 }}]"
        with Daemon() as daemon, Relay(daemon, rules) as relay, contextlib.ExitStack() as stack:
            stack.enter_context(zstd.client(relay)).request(status=pb.Empty())
            before = resident(relay.process.pid)
            for _ in range(n):
                stack.enter_context(zstd.client(relay)).request(status=pb.Empty())
            each = (resident(relay.process.pid) - before) / n
            check(each < limit, f"{each:.0f} KiB for each connection at level {level}")
            print(f"  {each:.0f} KiB for each connection at level {level}")


if __name__ == "__main__":
    perfd.main(globals())
