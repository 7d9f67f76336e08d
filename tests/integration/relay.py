"""For the integration tests: a perfd-relay of one's own in front of a daemon, and clients that come to it by TLS, with Python's ssl."""
import contextlib
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import tempfile

import certificates
import perfd
from perfd import BUILD, COMPLAINT, PATIENCE, check, equal, wait_until
from subscriber import Client, pb

RELAY = os.path.join(BUILD, "client", "relay", "perfd-relay")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Remote(Client):
    """A client whose socket is one of ssl, by which no file descriptors come. Fails the test in bounded time."""

    def receive_bytes(self, deadline=None):
        self.socket.settimeout(PATIENCE)
        return self.socket.recv(1 << 16)


class Relay:
    """One that is ready, in a folder with a CA of its own. `clients` is the YAML of that key, `tail` what stands behind it; `client` is the
    name in the certificate."""

    def __init__(self, daemon, clients="[{ name: client, events: ['*'], raw: true }]", listen="", perfd_keys="", tail="", **make):
        self.folder = tempfile.TemporaryDirectory(prefix="perfd-test.")
        self.ca = certificates.make(self.folder.name, **make)
        self.stream, self.port = daemon.stream, free_port()
        self.perfd_keys, self.listen, self.tail, self.more = perfd_keys, listen, tail, ()
        self.log = open(os.memfd_create("log-of-relay"), "w+b")
        self.process = None
        self.configure(clients)
        self.start()

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def configure(self, clients):
        with open(self.at("relay.yaml"), "w", encoding="utf-8") as f:
            addresses = [f"127.0.0.1:{self.port}", *self.more]
            f.write(f"version: 1\nperfd: {{ stream: {self.stream}{self.perfd_keys} }}\n"
                    f"listen: {{ tls: {addresses}, certificate: server.crt, key: server.key, ca: ca.crt, crl: ca.crl"
                    f"{self.listen} }}\nclients: {clients}\n{self.tail}")

    def start(self, prefix=(), **popen):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind("\0" + os.path.basename(self.folder.name) + str(os.getpid()))
            notify.settimeout(PATIENCE)
            environment = {**os.environ, "NOTIFY_SOCKET": "@" + notify.getsockname()[1:].decode()}
            self.process = subprocess.Popen([*prefix, RELAY, "--config", self.at("relay.yaml")], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=self.log, env=environment, **popen)
            while b"READY=1" not in notify.recv(4096):
                pass

    def said(self):
        return os.pread(self.log.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    def wait_for(self, pattern):
        """Until its log has that; the match."""
        return wait_until(lambda: re.search(pattern, self.said()), f"the relay to say {pattern!r}, but it said:\n{self.said()}")

    def reload(self):
        """SIGHUP, until it is done."""
        before = len(re.findall(r"reloaded", self.said()))
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(re.findall(r"reloaded", self.said())) > before, "the relay to reload")

    def context(self, name="client", ca="ca", alpn=("perfd/1",)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.at(ca + ".crt"))
        if name:
            context.load_cert_chain(self.at(name + ".crt"), self.at(name + ".key"))
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def connect(self, name="client", receive_buffer=None, address="127.0.0.1", **context):
        """A socket by TLS; the caller's to close."""
        raw = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        if receive_buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.settimeout(PATIENCE)
        try:
            raw.connect((address, self.port))
            return self.context(name, **context).wrap_socket(raw, server_hostname="localhost")
        except BaseException:
            raw.close()
            raise

    def client(self, name="client", **options):
        return Remote(self.connect(name, **options), program="test")

    def refusal(self, name="client", **options):
        """The Response with which the relay, or perfd behind it, ends a connection."""
        with self.connect(name, **options) as s:
            return read_message(s).response

    def refused_by_tls(self, name="client", **options):
        """What TLS says of a connection that is not accepted: TLS 1.3 says it with the first byte that is read."""
        try:
            with self.connect(name, **options) as s:
                check(s.recv(1) == b"", "something was sent to a client that is not accepted")
        except (ssl.SSLError, ConnectionError) as no:
            return str(no)
        return ""

    def refused_by_tls_at_once(self, **context):
        """The same of what is refused before the handshake is over."""
        try:
            self.connect(**context).close()
        except ssl.SSLError as no:
            return str(no).replace("_", " ").lower()
        return ""

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            equal(self.process.wait(PATIENCE), 0, f"the status of the relay, which said:\n{self.said()}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.stop()
                check(not COMPLAINT.search(self.said()), self.said())
            else:
                print(f"  the relay said:\n{self.said()}", end="")
        finally:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait()
            self.log.close()
            self.folder.cleanup()


def read_exactly(s, n):
    bytes_read = b""
    while len(bytes_read) < n:
        more = s.recv(n - len(bytes_read))
        check(more, f"the end after {len(bytes_read)} of {n} bytes")
        bytes_read += more
    return bytes_read


def read_message(s):
    message = pb.ServerMessage()
    message.ParseFromString(read_exactly(s, int.from_bytes(read_exactly(s, 4), "little")))
    return message


def readable(s, seconds=0):
    return bool(select.select([s], [], [], seconds)[0])


def frame(**body):
    request = pb.Request(id=1, **body).SerializeToString()
    return len(request).to_bytes(4, "little") + request


__all__ = ["Relay", "RELAY", "frame", "free_port", "perfd", "read_exactly", "read_message", "readable"]
