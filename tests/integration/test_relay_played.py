#!/usr/bin/python3
"""perfd-relay in front of a daemon that is played, without privileges: what it says first, that it passes on all bytes of both sides as
they are, what it says of each end, and what a reload changes."""
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading

import perfd
from perfd import check, equal, pb, wait_until
from relay import RELAY, Relay, frame, read_exactly, read_message

LONG = 3 << 20  # bytes: more than sockets and the relay hold


def message_of(**response):
    message = pb.ServerMessage(response=pb.Response(**response)).SerializeToString()
    return len(message).to_bytes(4, "little") + message


class Played:
    """A socket in the place of perfd's. Reads the greeting of each connection, answers it, and gives the socket to the test."""

    def __init__(self, answer=message_of(id=1, hello=pb.HelloReply(protocol=1, version="0"))):
        self.folder = tempfile.TemporaryDirectory(prefix="perfd-test.")
        self.stream = os.path.join(self.folder.name, "stream.sock")
        self.answer, self.greetings, self.sockets = answer, [], []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.stream)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                s.settimeout(perfd.PATIENCE)
                greeting = pb.Request()
                greeting.ParseFromString(read_exactly(s, int.from_bytes(read_exactly(s, 4), "little")))
                if self.answer:
                    s.sendall(self.answer)
                else:
                    s.close()
                self.greetings.append(greeting)
                self.sockets.append(s)

    def socket(self, n=0):
        wait_until(lambda: len(self.sockets) > n, f"connection {n} to be greeted")
        return self.sockets[n]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(perfd.PATIENCE)
        self.listener.close()
        for s in self.sockets:
            s.close()
        self.folder.cleanup()


def test_passes_on():
    """The greeting has the limit of relay.yaml; behind it, each side gets what the other one sent, however long, until it ends."""
    rule = "[{ name: client, events: ['sched:*', mine], where: 'pid > 1', raw: true, status: true, queue: 2MiB }]"
    with Played() as daemon, Relay(daemon, clients=rule) as relay, relay.connect() as client:
        there = daemon.socket()
        limit = daemon.greetings[0].hello.limit
        equal((limit.name, list(limit.events), limit.where, limit.status, limit.raw, limit.queue_bytes),
              ("CN:client", ["sched:*", "mine"], "pid > 1", True, True, 2 << 20), "the limit")
        sent = frame(status=pb.Empty())
        client.sendall(sent)
        equal(read_exactly(there, len(sent)), sent, "a request")
        answer = message_of(id=1, message="x" * 70_000)
        there.sendall(answer)
        equal(read_exactly(client, len(answer)), answer, "its answer")
        many = answer * (LONG // len(answer))
        sender = threading.Thread(target=there.sendall, args=(many,), daemon=True)
        sender.start()
        equal(read_exactly(client, len(many)), many, "a flood, as it was sent")
        sender.join(perfd.PATIENCE)
        there.shutdown(socket.SHUT_WR)
        equal(client.recv(1), b"", "what is behind the end of the daemon's bytes")
        relay.wait_for(r"CN:client, 127\.0\.0\.1:\d+, has ended after \d+ bytes")


def test_client_ends():
    """The daemon is told that a client has gone, in the middle of a frame too."""
    with Played() as daemon, Relay(daemon) as relay:
        for n, bytes_sent in enumerate((b"", frame(status=pb.Empty())[:3])):
            with relay.connect() as client:
                there = daemon.socket(n)
                client.sendall(bytes_sent)
                if bytes_sent:
                    read_exactly(there, len(bytes_sent))
            equal(there.recv(1), b"", "what the daemon reads behind the end of its client")


def test_no_daemon():
    """What is in the place of perfd refuses, is not perfd, says nothing, or is not there: the client hears which."""
    refusal = message_of(id=1, status=pb.STATUS_EXHAUSTED, reason="too-many", message="no place is left")
    for answer, reason, words in ((refusal, "too-many", "no place is left"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no-perfd", "is not perfd"),
                                  (message_of(id=1)[:-1] + b"\xff" * 3, "no-perfd", "is not perfd"),
                                  (b"", "no-perfd", "has closed the connection")):
        with Played(answer) as daemon, Relay(daemon) as relay:
            said = relay.refusal()
            equal(said.reason, reason, f"the reason of {said.message!r}")
            check(words in said.message, said.message)
    with Played() as daemon, Relay(daemon) as relay:
        os.unlink(daemon.stream)
        said = relay.refusal()
        equal(said.reason, "no-perfd", f"the reason of {said.message!r}")


def test_who_may_come():
    """Only certificates of the CA that are not revoked, and names of relay.yaml, come as far as the daemon."""
    with Played() as daemon, Relay(daemon) as relay:
        relay.ca.issue("stranger")
        check(relay.refused_by_tls(None), "a client without a certificate was let in")
        said = relay.refusal("stranger")
        check("no item of 'clients'" in said.message, said.message)
        with relay.connect() as client:
            there = daemon.socket()
            relay.ca.revoke("client")
            relay.reload()
            equal(there.recv(1), b"", "what the daemon reads of a client whose certificate was revoked")
            check(b"revoked" in client.recv(1 << 16), "the client hears why it ends")
        check(relay.refused_by_tls(), "a revoked certificate was let in")
        equal(len(daemon.greetings), 1, "connections that came to the daemon")


def test_reload():
    """A rule that grants less ends who has more; a file with an error changes nothing, and is said."""
    with Played() as daemon, Relay(daemon) as relay, relay.connect() as client:
        there = daemon.socket()
        relay.configure("[{ name: client, nonsense: 1 }]")
        relay.process.send_signal(signal.SIGHUP)
        relay.wait_for(r"relay\.yaml:\d+:\d+: ")
        client.sendall(frame(status=pb.Empty()))
        read_exactly(there, len(frame(status=pb.Empty())))
        relay.configure("[{ name: client, events: [other] }]")
        relay.reload()
        equal(there.recv(1), b"", "what the daemon reads of a client that may no longer have what it has")
        client.recv(1 << 16)
        with relay.connect():
            daemon.socket(1)
            equal(list(daemon.greetings[1].hello.limit.events), ["other"], "the events of the next one")


def test_command_line():
    """Certificates for a trial, and files that cannot be used: each is said at its place."""
    def run(*arguments):
        done = subprocess.run([RELAY, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        return done.returncode, done.stdout + done.stderr

    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "tls")
        equal(run("certificates", folder, "--server", "localhost", "--client", "me")[0], 0, "the status")
        equal(run("--check", "--config", f"{folder}/relay.yaml"), (0, ""), "what is said of what was made")
        equal(run("certificates", folder, "--server", "localhost", "--client", "me")[0], 1, "the status of the second time")
        with open(f"{folder}/ca.crt", "w", encoding="ascii") as f:
            f.write("no certificate\n")
        os.chmod(f"{folder}/server.key", 0o644)
        status, said = run("--check", "--config", f"{folder}/relay.yaml")
        equal(status, 1, said)
        check("ca.crt" in said and "server.key" in said, said)
        equal(run("--check", "--config", f"{parent}/none.yaml")[0], 1, "the status of a file that is not there")
        equal(run("--nonsense")[0], 2, "the status of an option that there is not")
        check("usage: perfd-relay" in run("--help")[1], "the usage")


if __name__ == "__main__":
    perfd.main(globals(), anybody=True)
