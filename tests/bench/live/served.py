"""perfd as the consumer: its own daemon for each measurement, with as many subscribers as the case has."""
import json
import os
import socket
import struct

import machine
import measure
import perfd
import subscriber
from subscriber import pb


RING = 512 << 10  # bytes: what libperfd asks for
DEFAULT_LATENCY = 100_000_000  # ns: a sample may lie so long where nobody asked for less


def fields(**more):
    """A subscription to decoded fields as a program on this host has it: in the order of time if nothing else is said."""
    return {"order": pb.ORDER_TIME, "payload": pb.PAYLOAD_FIELDS, "ring_bytes": RING, "pool": True, **more}


def by_cpu(payload=pb.PAYLOAD_FIELDS, **more):
    return fields(order=pb.ORDER_CPU, payload=payload, **more)


def by_socket(subscription):
    """The same without memory that is shared, as through a socket that is forwarded."""
    return {**subscription, "ring_bytes": 0}


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(perfd.PATIENCE)
    s.connect(path)
    return s


class Stream:
    """A subscription on a connection whose bytes go to `discard`, while the end is still asked for by us."""

    def __init__(self, connection, subscription, kind):
        self.socket = connection
        self.socket.settimeout(perfd.PATIENCE)
        self.fds = []
        self.request(id=1, hello=pb.Hello(protocol=1, program="live"))
        ring = self.request(id=2, subscribe=pb.SubscribeRequest(events=[measure.EVENT], **subscription)).ring
        self.socket.settimeout(None)
        self.reader = measure.Reader(kind, self.socket.dup(), (ring, self.fds) if self.fds else None)

    def receive(self, n):
        """Exactly n bytes: what follows is for the reader."""
        got = b""
        while len(got) < n:
            more, fds, _, _ = socket.recv_fds(self.socket, n - len(got), 3)
            perfd.check(more, "perfd closed the connection")
            got += more
            self.fds += fds
        return got

    def send(self, **request):
        message = pb.Request(**request).SerializeToString()
        self.socket.sendall(struct.pack("<I", len(message)) + message)

    def request(self, **request):
        self.send(**request)
        length, = struct.unpack("<I", self.receive(4))
        response = pb.ServerMessage.FromString(self.receive(length)).response
        perfd.check(response.status == pb.STATUS_OK, response.message)
        return response

    def finish(self):
        """The rows of the closing ledger, and what the reader said."""
        self.send(id=3, stop=pb.Empty())
        said = self.reader.finish()
        packet = pb.ServerMessage.FromString(bytes.fromhex(said.pop("last"))).packet
        perfd.check(packet.HasField("end"), "the stream has no end")
        return subscriber.check_ledger(packet.end.ledger), said

    def close(self):
        self.reader.close()
        self.socket.close()


class Decoder(perfd.Line):
    """decode.c: a subscriber by libperfd that reads every field; as a Reader. columns: fields that it reads in batches."""

    def __init__(self, path, latency, columns=()):
        super().__init__([os.path.join(measure.HERE, "decode"), path, measure.EVENT, str(latency), *columns])
        perfd.equal(self.hear(), ["ready"], "the first word of the subscriber")

    def spent(self):
        return machine.cpu_time(self.process.pid)


class Decoded(measure.Consumer):
    """perfd with one such subscriber. Its wakeups are those of both; latency: ns, 0 is the default."""

    def __init__(self, floods, latency=0, columns=()):
        self.traced, self.latency, self.columns = [flood.pid for flood in floods], latency, columns
        self.linger = 1.2 * max(latency, DEFAULT_LATENCY) / 1e9

    def start(self):
        self.daemon = self.stack.enter_context(perfd.Daemon(config="version: 1\n"))
        client = self.stack.enter_context(self.daemon.client())
        perfd.add(client, {"event": measure.EVENT, "target": pb.Target(pids=self.traced)})
        self.decoder = self.stack.enter_context(Decoder(self.daemon.stream, self.latency, self.columns))
        self.readers = (self.decoder,)
        self.watched = [(None, self.daemon.pid), ("subscriber", self.decoder.process.pid)]
        machine.wait_quiet((self.decoder.process.pid, *([] if self.latency else [self.daemon.pid])))  # which looks at its pace
        self.before, self.slept = machine.threads(self.daemon.pid), machine.threads(self.decoder.process.pid)

    def finish(self, n_calls, n_stops):
        spent = machine.difference(self.before, machine.threads(self.daemon.pid))
        slept = machine.difference(self.slept, machine.threads(self.decoder.process.pid))
        self.decoder.say("stop")
        said = json.loads(" ".join(self.decoder.hear()))
        parts = {name: thread["cpu_ns"] for name, thread in spent.items()}
        wakeups = {name: thread["wakeups"] for name, thread in spent.items()}
        return {"occurred": said["items"] + said["missed"], "taken": said["items"], "lost": said["missed"], "cpu_ns": sum(parts.values()),
                "parts": parts, "wakeups": {**wakeups, "subscriber": sum(t["wakeups"] for t in slept.values())}}


class Served(measure.Consumer):
    """subscriptions: dicts of SubscribeRequest; events: more EventSpecs, as dicts, that are enabled beside; elsewhere: the
    CPU of the flood has no reader, and its ring is read from the others."""

    def __init__(self, floods, subscriptions, events=(), kind="frames", elsewhere=False):
        self.pid, self.subscriptions, self.events, self.kind = floods[0].pid, subscriptions, events, kind
        others = ",".join(str(other) for other in perfd.online_cpus() if other != floods[0].cpu)
        self.config = "version: 1\n" + (f"readers: {{ cpus: '{others}' }}\n" if elsewhere else "")

    def start(self):
        self.daemon = self.stack.enter_context(perfd.Daemon(config=self.config))
        client = self.stack.enter_context(self.daemon.client())
        perfd.add(client, *self.events, {"event": measure.EVENT, "target": pb.Target(pids=[self.pid])})
        self.prepare()
        self.streams = []
        for subscription in self.subscriptions:
            self.streams.append(Stream(self.open_stream(), subscription, self.kind))
            self.stack.callback(self.streams[-1].close)
        self.readers = [stream.reader for stream in self.streams]
        self.watched = [(None, self.daemon.pid),
                        *((f"subscriber-{i}", reader.process.pid) for i, reader in enumerate(self.readers))]
        if not any("latency" in subscription for subscription in self.subscriptions):  # its readers never rest
            self.pids = (self.daemon.pid,)
        machine.wait_quiet(self.pids)
        self.before, self.before_all = machine.threads(self.daemon.pid), machine.process_time(self.daemon.pid)

    def prepare(self):
        """What else there is, with the daemon and before its subscribers."""

    def open_stream(self):
        return connect(self.daemon.stream)

    def finish(self, n_calls, n_stops):
        spent = machine.difference(self.before, machine.threads(self.daemon.pid))
        spent_all = machine.process_time(self.daemon.pid) - self.before_all
        memory = machine.rss(self.daemon.pid)
        endings = [stream.finish() for stream in self.streams]
        parts = {name: thread["cpu_ns"] for name, thread in spent.items()}
        parts["backups"] = max(0, spent_all - sum(parts.values()))  # they have ended by now
        return {**account([ledger for ledger, _ in endings]), "cpu_ns": sum(parts.values()), "parts": parts, "rss": memory,
                "wakeups": {name: thread["wakeups"] for name, thread in spent.items()}, **endings[0][1]}


def account(ledgers):
    """What became of the events, by the closing ledgers of all subscribers."""
    rows = [row for row in ledgers[-1] if row["kind"] == "event" and row["event"] == measure.EVENT]
    own = [row for ledger in ledgers for row in ledger if row["kind"] == "subscriber"]
    lost, occurred = sum(sum(row["lost"].values()) for row in rows), sum(row["occurred"] for row in rows)
    return {"occurred": occurred, "taken": occurred - lost, "lost": lost + sum(sum(row["dropped"].values()) for row in own),
            "wanted": sum(row["matched"] for row in own) + lost, "reasons": reasons(rows, own), "sent": sum(row["sent"] for row in own)}


def reasons(events, subscribers):
    """{reason: events} of all that was lost or dropped."""
    found = {}
    for row in [row["lost"] for row in events] + [row["dropped"] for row in subscribers]:
        for reason, n in row.items():
            found[reason] = found.get(reason, 0) + n
    return {reason: n for reason, n in found.items() if n}
