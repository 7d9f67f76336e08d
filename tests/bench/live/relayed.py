"""perfd with a relay for other hosts, which is perfd-relay, or a loop that only copies; what is sent goes by loopback."""
import os
import socket
import subprocess
import tempfile

import certificates
import machine
import measure
import nats
import perfd
import served
import subscriber
from relay import Relay
from subscriber import pb

COPY = os.path.join(measure.HERE, "tls-copy")
QUEUE = 64 << 20  # bytes: who reads has the other CPU only
RULES = "[{ name: client, events: ['*'], connections: 2000 }]"
PUBLISHED = "{ flood: { events: ['%s'], queue: 256MiB } }" % measure.EVENT


def fields(**more):
    """A subscription as a program on another host has it."""
    return {**served.by_socket(served.fields(queue_bytes=QUEUE)), "pool": False, **more}


def listen():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(1)
    return s


class Copier:
    """tls-copy, of which `source` is one end, and is closed here; as a Reader it says what it spends."""

    def __init__(self, side, at, folder, source, **popen):
        self.process = subprocess.Popen([COPY, side, str(at), folder], stdin=source, stdout=subprocess.DEVNULL, **popen)
        source.close()

    def spent(self):
        return machine.cpu_time(self.process.pid)

    def close(self):
        self.process.kill()
        self.process.wait()


class Relayed(served.Served):
    """perfd and perfd-relay. What the relay spends is a part of it, "relay"; what TLS costs the other side is its reader's."""

    def __init__(self, floods, **more):
        latency = {"latency": more.pop("latency")} if "latency" in more else {}
        super().__init__(floods, [fields(**latency)], **more)

    def prepare(self):
        relay = self.stack.enter_context(Relay(self.daemon, RULES))
        self.relay_pid, self.folder, self.port = relay.process.pid, relay.folder.name, relay.port

    def open_stream(self):
        ours, theirs = socket.socketpair()
        self.end = Copier("connect", self.port, self.folder, theirs)
        self.stack.callback(self.end.close)
        return ours

    def start(self):
        super().start()
        self.readers.append(self.end)
        self.watched += [("relay", self.relay_pid), ("its reader", self.end.process.pid)]
        self.pids += (self.relay_pid,)
        self.relay_before = machine.together(machine.threads(self.relay_pid))

    def finish(self, n_calls, n_stops):
        relay = machine.together(machine.threads(self.relay_pid))
        spent = {key: relay[key] - self.relay_before[key] for key in relay}
        found = super().finish(n_calls, n_stops)
        found["parts"]["relay"] = spent["cpu_ns"]
        found["wakeups"]["relay"] = spent["wakeups"]
        return {**found, "cpu_ns": found["cpu_ns"] + spent["cpu_ns"]}


class Copied(Relayed):
    """The same with a loop in the place of the relay: recv(2) and SSL_write(), and at the other end SSL_read()."""

    def prepare(self):
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="perfd-live."))
        certificates.make(self.folder)

    def open_stream(self):
        with listen() as listener:
            loop = Copier("accept", listener.fileno(), self.folder, super(Relayed, self).open_stream(), pass_fds=[listener.fileno()])
            self.stack.callback(loop.close)
            self.relay_pid, self.port = loop.process.pid, listener.getsockname()[1]
            return super().open_stream()


class Published(measure.Consumer):
    """perfd and perfd-relay, which publishes what happens to a nats-server; the server is the reader."""

    def __init__(self, floods):
        self.pid = floods[0].pid

    def start(self):
        self.daemon = self.stack.enter_context(perfd.Daemon(config="version: 1\n"))
        client = self.stack.enter_context(self.daemon.client())
        perfd.add(client, {"event": measure.EVENT, "target": pb.Target(pids=[self.pid])})
        self.server = self.stack.enter_context(nats.Server())
        self.relay = self.stack.enter_context(nats.Publisher(self.daemon, self.server, PUBLISHED))
        self.relay.wait_for(r"route flood has begun")
        self.relay.wait_for(r"publishing to")
        self.readers = (self,)
        self.pids = (self.daemon.pid, self.relay.process.pid, self.server.process.pid)
        self.watched = [(None, self.daemon.pid), ("relay", self.relay.process.pid), ("its reader", self.server.process.pid)]
        machine.wait_quiet(self.pids)
        self.before, self.relay_before = machine.threads(self.daemon.pid), machine.together(machine.threads(self.relay.process.pid))

    def spent(self):
        """Of the server."""
        return machine.cpu_time(self.server.process.pid)

    def finish(self, n_calls, n_stops):
        spent = machine.difference(self.before, machine.threads(self.daemon.pid))
        relay = machine.together(machine.threads(self.relay.process.pid))
        spent["relay"] = {key: relay[key] - self.relay_before[key] for key in relay}
        self.relay.stop()
        messages = self.server.messages()
        ledger = subscriber.check_ledger(pb.Packet.FromString(messages[-1].bytes).end.ledger)
        parts = {name: thread["cpu_ns"] for name, thread in spent.items()}
        return {**served.account([ledger]), "cpu_ns": sum(parts.values()), "parts": parts,
                "wakeups": {name: thread["wakeups"] for name, thread in spent.items()}, "bytes": sum(len(m.bytes) for m in messages)}
