"""For the integration tests: a nats-server of one's own with JetStream, on 127.0.0.1, and what is in its streams."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile

import perfd
from perfd import BUILD, PATIENCE, check, equal, wait_until
from relay import Relay, free_port
from subscriber import pb

SERVER = shutil.which("nats-server") or "/usr/sbin/nats-server"
READER = os.path.join(BUILD, "tests", "integration", "nats-reader")


class Message:
    """As nats-reader writes it."""

    def __init__(self, f, subject):
        self.subject, self.headers = subject, {}
        for line in iter(lambda: f.readline().decode().rstrip("\n"), ""):
            name, _, value = line.partition(": ")
            self.headers[name] = value
        self.bytes = f.read(int(f.readline()))

    def number(self, name):
        return int(self.headers[name])

    @property
    def id(self):
        return self.headers["Nats-Msg-Id"]


class Server:
    """One that takes connections; what it has stored is there again when it has been killed and started again. A scheme, a name and
    "USER:PASSWORD@" are those of its clients."""
    scheme, user, name, reader = "nats", "", "127.0.0.1", ()

    def __init__(self, configuration="", jetstream=True):
        self.folder = tempfile.TemporaryDirectory(prefix="perfd-test.")
        self.port, self.process = free_port(), None
        self.configure(configuration, jetstream)
        self.log = open(self.at("log"), "w+b")
        self.start()

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def configure(self, configuration="", jetstream=True):
        """For the next start."""
        with open(self.at("nats.conf"), "w", encoding="utf-8") as f:
            f.write(f'listen: "127.0.0.1:{self.port}"\n' + f'jetstream {{ store_dir: "{self.at("store")}" }}\n' * jetstream +
                    f"{configuration}\n")

    @property
    def url(self):
        return f"{self.scheme}://{self.user}{self.name}:{self.port}"

    def said(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def start(self):
        self.process = subprocess.Popen([SERVER, "-c", self.at("nats.conf")], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_until(self.is_there, f"nats-server to listen on {self.port}")

    def is_there(self):
        check(self.process.poll() is None, f"nats-server has ended:\n{self.said()}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as s:
                return s.recv(5) == b"INFO "
        except OSError:
            return False

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def messages(self, stream="perfd", subject="perfd.>"):
        """All that is stored, from the first one to the last."""
        return list(self.each_message(stream, subject))

    def each_message(self, stream="perfd", subject="perfd.>"):
        """The same, of which only one is in memory."""
        with tempfile.TemporaryFile() as f:
            done = subprocess.run([READER, self.url, stream, subject, *self.reader], stdout=f, stderr=subprocess.PIPE, timeout=4 * PATIENCE, check=False)
            check(done.returncode == 0, done.stderr.decode())
            f.seek(0)
            for line in iter(f.readline, b""):
                yield Message(f, line.decode().rstrip("\n").partition(": ")[2])

    def request(self, subject, **body):
        """What JetStream answers, as a client of its protocol that needs no library; of a server without TLS and users."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as s, s.makefile("rb") as answers:
            payload = json.dumps(body).encode()
            s.sendall(b'CONNECT {"verbose":false}\r\nSUB answer 1\r\nPUB %s answer %d\r\n%s\r\n' % (subject.encode(), len(payload), payload))
            for line in answers:
                if line.startswith(b"MSG answer"):
                    return json.loads(answers.read(int(line.split()[-1])))
        raise AssertionError(f"no answer to {subject}")

    def descriptors(self, digest):
        """The events by id that a message names by their digest."""
        parts = {m.headers["Perfd-Part"]: m.bytes for m in self.messages("perfd-descriptors", f"perfd-descriptors.{digest}.*")}
        n = len(parts)
        packet = pb.Packet.FromString(b"".join(parts[f"{i + 1}/{n}"] for i in range(n)))
        return {event.id: event for event in packet.events}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.log.close()
        self.folder.cleanup()


class Plain:
    """A client of the text protocol of NATS: what no relay sends, and the API of JetStream."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        self.file = self.socket.makefile("rb")
        self.line("INFO")
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB answer 1\r\n')

    def line(self, kind):
        """The next one, which is of this kind; PING is answered."""
        while True:
            words = self.file.readline().decode().split()
            if words[:1] == ["PING"]:
                self.socket.sendall(b"PONG\r\n")
                continue
            check(words[:1] == [kind], f"{words} instead of {kind}")
            return words

    def request(self, subject, payload=b"", headers=()):
        """The JSON of what answers it, without an error."""
        head = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
        self.socket.sendall(f"HPUB {subject} answer {len(head)} {len(head) + len(payload)}\r\n".encode() + head.encode() + payload + b"\r\n")
        answer = json.loads(self.file.read(int(self.line("MSG")[-1])))
        self.file.readline()
        check("error" not in answer, f"{subject}: {answer}")
        return answer

    def api(self, what, **arguments):
        return self.request(f"$JS.API.STREAM.{what}", json.dumps(arguments).encode())

    def put(self, message, **headers):
        """Stores a message as it was read, with other headers; None: without it."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        rest = {**{name: value for name, value in message.headers.items() if name != "Nats-Msg-Id"}, **names}
        return self.request(message.subject, message.bytes, [(n, v) for n, v in rest.items() if v is not None])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()


class Publisher(Relay):
    """A relay that publishes to a server as web1; `routes` and `keys` are YAML."""

    def __init__(self, daemon, server, routes, keys=""):
        self.publish = f"publish: {{ servers: ['{server.url}'], host: web1{keys}, routes: {routes} }}\n"
        self.said_last = ""
        super().__init__(daemon)

    def configure(self, clients):
        super().configure(clients)
        with open(self.at("relay.yaml"), "a", encoding="utf-8") as f:
            f.write(self.publish)

    def stop(self):
        super().stop()
        self.said_last = self.said()

    def kill_and_start(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.start()


class Epoch:
    """The messages of one subscription of a route, in the order in which they are stored; each packet is there, or in a gap."""

    def __init__(self, messages):
        self.packets, self.n_items, self.gaps, self.end, last, parts = [], 0, {}, None, 0, []
        for m in messages:
            parts.append(m)
            part, n = map(int, m.headers["Perfd-Part"].split("/"))
            equal(part, len(parts), f"the part of {m.headers}")
            if part < n:
                continue
            packet = pb.Packet.FromString(b"".join(p.bytes for p in parts))
            parts = []
            for gap in packet.gap:
                equal(gap.first_sequence, last + 1, "the first sequence number of a gap")
                last = gap.last_sequence
                self.gaps[gap.reason] = self.gaps.get(gap.reason, 0) + gap.items
            equal(packet.sequence, last + 1, "the sequence number of a packet")
            equal((packet.sequence, len(packet.items)), (m.number("Perfd-Sequence"), m.number("Perfd-Items")), "what the headers say")
            last = packet.sequence
            self.n_items += len(packet.items)
            self.packets.append((m, packet))
            if packet.HasField("end"):
                self.end = packet.end
        equal(parts, [], "parts without the last one")

    @property
    def items(self):
        return [item for _, packet in self.packets for item in packet.items]

    def own(self):
        """The row of the subscriber in its closing ledger."""
        check(self.end, "the stream has no end")
        row, = self.end.ledger.subscribers
        return row


def epochs(messages):
    """By their number, which rises."""
    ids = [m.id for m in messages]
    equal(len(set(ids)), len(ids), "messages that are stored once")
    numbers = sorted({m.number("Perfd-Epoch") for m in messages})
    return [Epoch([m for m in messages if m.number("Perfd-Epoch") == number]) for number in numbers]


__all__ = ["Epoch", "Message", "Plain", "Publisher", "Server", "epochs", "perfd"]
