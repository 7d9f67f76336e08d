#!/usr/bin/python3
"""What a client can do with TLS itself: stop anywhere in the handshake, come back with a ticket, send early data, ask for new keys without
end, show certificates that are too long. The relay stays as it is, and so do others. Needs root."""
import contextlib
import ctypes
import os
import socket
import ssl
import subprocess

import perfd
from perfd import Daemon, check, equal, pb, wait_until
from relay import Relay, frame, free_port, read_message
from test_relay_hostile import rss

TIMEOUT = (ctypes.c_long * 2)(perfd.PATIENCE, 0)  # struct timeval
KEY_UPDATES = 150_000 if perfd.SANITIZER == "none" else 50_000
UPDATE_REQUESTED = 1
EARLY_DATA_REJECTED = 1
TOO_LONG = "is refused: a message of its handshake is too long: its certificates may have 65536 bytes together; use one with fewer names\n"

libssl = ctypes.CDLL("libssl.so.3")
for name, result, *arguments in (
        ("TLS_client_method", ctypes.c_void_p), ("SSL_CTX_new", ctypes.c_void_p, ctypes.c_void_p), ("SSL_CTX_free", None, ctypes.c_void_p),
        ("SSL_CTX_use_certificate_chain_file", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p),
        ("SSL_CTX_use_PrivateKey_file", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int),
        ("SSL_new", ctypes.c_void_p, ctypes.c_void_p), ("SSL_free", None, ctypes.c_void_p),
        ("SSL_set_fd", ctypes.c_int, ctypes.c_void_p, ctypes.c_int),
        ("SSL_set_alpn_protos", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint),
        ("SSL_set_session", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p), ("SSL_get1_session", ctypes.c_void_p, ctypes.c_void_p),
        ("SSL_SESSION_is_resumable", ctypes.c_int, ctypes.c_void_p), ("SSL_SESSION_free", None, ctypes.c_void_p),
        ("SSL_session_reused", ctypes.c_int, ctypes.c_void_p), ("SSL_get_early_data_status", ctypes.c_int, ctypes.c_void_p),
        ("SSL_shutdown", ctypes.c_int, ctypes.c_void_p), ("SSL_connect", ctypes.c_int, ctypes.c_void_p), ("SSL_do_handshake", ctypes.c_int, ctypes.c_void_p),
        ("SSL_key_update", ctypes.c_int, ctypes.c_void_p, ctypes.c_int),
        ("SSL_write_early_data", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)),
        ("SSL_write", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int),
        ("SSL_read", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)):
    function = getattr(libssl, name)
    function.restype, function.argtypes = result, arguments


class Peer:
    """A client by OpenSSL itself, for what Python's ssl does not offer; as a socket it has sendall() and recv()."""

    def __init__(self, relay, port=None, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port or relay.port))
        for option in socket.SO_RCVTIMEO, socket.SO_SNDTIMEO:
            self.socket.setsockopt(socket.SOL_SOCKET, option, bytes(TIMEOUT))
        self.context = libssl.SSL_CTX_new(libssl.TLS_client_method())
        equal(libssl.SSL_CTX_use_certificate_chain_file(self.context, relay.at("client.crt").encode()), 1, "its certificate")
        equal(libssl.SSL_CTX_use_PrivateKey_file(self.context, relay.at("client.key").encode(), 1), 1, "its key")
        self.ssl = libssl.SSL_new(self.context)
        equal(libssl.SSL_set_alpn_protos(self.ssl, b"\x07perfd/1", 8), 0, "its protocol")
        equal(libssl.SSL_set_fd(self.ssl, self.socket.fileno()), 1, "its socket")

    def connect(self):
        equal(libssl.SSL_connect(self.ssl), 1, "the handshake")
        return self

    def sendall(self, text):
        equal(libssl.SSL_write(self.ssl, text, len(text)), len(text), "what is sent")

    def recv(self, n):
        buffer = ctypes.create_string_buffer(n)
        return buffer.raw[:max(0, libssl.SSL_read(self.ssl, buffer, n))]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        libssl.SSL_free(self.ssl)
        libssl.SSL_CTX_free(self.context)
        self.socket.close()


class Handshake:
    """One that is made in memory, so that its bytes can be sent in any piece."""

    def __init__(self, relay):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = relay.context().wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.raw = socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE)

    def next(self):
        """The bytes of this side's next flight."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    def finish(self):
        """Reads until the flight of the other side is whole; the last flight of this one."""
        while True:
            flight = self.next()
            if flight:
                return flight
            more = self.raw.recv(1 << 16)
            check(more, "the end in the middle of a handshake")
            self.incoming.write(more)


def test_half_way():
    """Handshakes that stop behind each of their parts, or in the middle of one; with a part a byte a record it is a handshake all the same."""
    with Daemon() as daemon, contextlib.ExitStack() as stack, \
            Relay(daemon, listen=", handshake-timeout: 3s, handshakes-per-address: 100") as relay, relay.client() as quiet:
        stopped = []
        for part in 0.0, 0.01, 0.5, 1.0:
            one = Handshake(relay)
            stopped.append(stack.enter_context(one.raw))
            hello = one.next()
            one.raw.sendall(hello[:int(part * len(hello))])
        for part in 0.0, 0.01, 0.5, 0.99:
            one = Handshake(relay)
            stopped.append(stack.enter_context(one.raw))
            one.raw.sendall(one.next())
            last = one.finish()
            one.raw.sendall(last[:int(part * len(last))])
        one = Handshake(relay)
        stack.enter_context(one.raw)
        hello = one.next()
        one.raw.sendall(b"".join(hello[:3] + b"\x00\x01" + hello[i:i + 1] for i in range(5, len(hello))))
        one.raw.sendall(one.finish())
        wait_until(lambda: relay.said().count("is connected") == 2, "the one in single bytes to be admitted")
        equal(quiet.request(status=pb.Empty()).daemon.pid, daemon.pid, "who was there before is served")
        wait_until(lambda: relay.said().count("it has not authenticated in time") == len(stopped), "the others to be too late")
        relay.client().close()


LENGTHS = {
    "a ClientHello of 16 MiB": b"\x16\x03\x01\x40\x00\x01\xff\xff\xff\x03\x03" + b"\x00" * 16378,
    "a certificate of 16 MiB": b"\x16\x03\x01\x40\x00\x0b\xff\xff\xff" + b"\x00" * 16380,
    "a record of 64 KiB": b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000,
    "records of no bytes": b"\x16\x03\x01\x00\x00" * 10_000,
    "changes of the cipher": b"\x14\x03\x03\x00\x01\x01" * 10_000,
    "alerts": b"\x15\x03\x03\x00\x02\x01\x5a" * 10_000,
    "data before any key": b"\x17\x03\x03\x40\x00" + b"\x00" * 16_384,
    "extensions without an end": b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03" + b"\x00" * 32 + b"\x00\x00\x02\x13\x01\x01\x00\xff\xff",
}


def test_lengths():
    """Lengths that nothing has, and records without end: each is refused with its line, and holds no memory."""
    with Daemon() as daemon, Relay(daemon) as relay, relay.client() as quiet:
        before = rss(relay)
        for what, text in LENGTHS.items():
            with socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE) as raw:
                port = raw.getsockname()[1]
                with contextlib.suppress(ConnectionError):
                    raw.sendall(text)
                    raw.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    check(len(raw.recv(1 << 16)) < 10, f"{what}: more than an alert of TLS")
            said = relay.wait_for(rf"127\.0\.0\.1:{port} is refused: ([^\n]*)")
            print(f"  {what}: {said.group(1)}")
        equal(quiet.request(status=pb.Empty()).daemon.pid, daemon.pid, "who was there before is served")
        check(rss(relay) - before < 4 << 20 or perfd.SANITIZER != "none", f"{rss(relay) - before} bytes of memory")


@contextlib.contextmanager
def other_server(relay):
    """The port of a server that has the relay's certificate, and gives tickets for early data."""
    port = free_port()
    process = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", relay.at("server.crt"), "-key", relay.at("server.key"),
                                "-alpn", "perfd/1", "-tls1_3", "-early_data", "-quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)

    def is_there():
        check(process.poll() is None, "openssl s_server has ended")
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), perfd.PATIENCE):
            return True
        return False

    try:
        wait_until(is_there, "s_server to listen")
        yield port
    finally:
        process.kill()
        process.communicate()


def session_of(relay, port):
    """What the client could use again; the caller's."""
    with Peer(relay, port) as peer:
        peer.connect()
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes((ctypes.c_long * 2)(1, 0)))
        peer.recv(1)  # nothing; but tickets, which come behind the handshake
        if port != relay.port:
            wait_until(lambda: peer.recv(1) == b"" and is_resumable(peer), "a ticket")
        libssl.SSL_shutdown(peer.ssl)  # without it the session is not used again
        return libssl.SSL_get1_session(peer.ssl)


def is_resumable(peer):
    session = libssl.SSL_get1_session(peer.ssl)
    try:
        return libssl.SSL_SESSION_is_resumable(session) == 1
    finally:
        libssl.SSL_SESSION_free(session)


def test_resumption():
    """The relay gives no ticket, takes none of another server, and what comes as early data goes nowhere."""
    with Daemon() as daemon, Relay(daemon) as relay:
        session = session_of(relay, relay.port)
        equal(libssl.SSL_SESSION_is_resumable(session), 0, "a ticket of the relay")
        libssl.SSL_SESSION_free(session)
        with other_server(relay) as port:
            session = session_of(relay, port)
        equal(libssl.SSL_SESSION_is_resumable(session), 1, "the ticket of another server")
        for is_early in False, True:
            with Peer(relay) as peer:
                equal(libssl.SSL_set_session(peer.ssl, session), 1, "a session")
                if is_early:
                    n, early = ctypes.c_size_t(), frame(hello=pb.Hello(protocol=1))
                    equal(libssl.SSL_write_early_data(peer.ssl, early, len(early), ctypes.byref(n)), 1, "early data")
                peer.connect()
                equal(libssl.SSL_session_reused(peer.ssl), 0, "a session that is used again")
                check(not is_early or libssl.SSL_get_early_data_status(peer.ssl) == EARLY_DATA_REJECTED, "early data is accepted")
                peer.sendall(frame(hello=pb.Hello(protocol=1)))
                equal(read_message(peer).response.status, pb.STATUS_OK, "the answer to the first request, which is the only one")
        libssl.SSL_SESSION_free(session)


def test_key_updates():
    """A client that asks for new keys and does not read the answers: the relay waits for it, without a CPU, and others are served."""
    with Daemon() as daemon, Relay(daemon) as relay, relay.client() as quiet, Peer(relay, receive_buffer=4096) as peer:
        peer.connect()
        relay.wait_for(r"is connected, by the item 'client'[^$]*is connected, by the item 'client'")
        before, n = rss(relay), 0
        peer.socket.setblocking(False)
        while n < KEY_UPDATES and libssl.SSL_key_update(peer.ssl, UPDATE_REQUESTED) == 1 and libssl.SSL_do_handshake(peer.ssl) == 1:
            n += 1
            if n % 1000 == 0:
                equal(quiet.request(status=pb.Empty()).daemon.pid, daemon.pid, "who was there before is served")
        print(f"  {n} changes of keys")
        wait_until(lambda: rests(relay), "the relay to rest")
        equal(quiet.request(status=pb.Empty()).daemon.pid, daemon.pid, "who was there before is served")
        check(rss(relay) - before < 2 << 20 or perfd.SANITIZER != "none", f"{rss(relay) - before} bytes of memory")


def rests(relay):
    """None of its threads runs, at a hundred looks."""
    def state(tid):
        with open(f"/proc/{relay.process.pid}/task/{tid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0]
    return all(state(tid) == "S" for _ in range(100) for tid in os.listdir(f"/proc/{relay.process.pid}/task"))


def test_certificates():
    """One with a few hundred names, and one behind which others stand that have nothing to do with it, are certificates; what is above
    64 KiB is refused, and a chain without a CA too."""
    with Daemon() as daemon, Relay(daemon, "[{ name: '*', events: ['*'] }]") as relay:
        relay.ca.issue("many", alternatives=[f"host-{i}.example.org" for i in range(500)])
        relay.ca.issue("long", alternatives=[f"host-{i}.example.org" for i in range(5000)])
        for name, n in ("behind", 40), ("far-behind", 200):
            relay.ca.issue(name)
            with open(relay.at("ca.crt"), encoding="ascii") as f:
                ca = f.read()
            with open(relay.at(f"{name}.crt"), "a", encoding="ascii") as f:
                f.write(ca * n)
        before = rss(relay)
        for name in "many", "behind":
            for _ in range(10):
                relay.client(name).close()
        for n, name in enumerate(("long", "far-behind"), 1):
            check(relay.refused_by_tls(name), f"{name} is accepted")
            wait_until(lambda: relay.said().count(TOO_LONG) == n, f"the relay to say {n} times {TOO_LONG!r}")
        equal(daemon.status().n_connections, 1, "connections of perfd, of which one is the test's own")
        check(rss(relay) - before < 8 << 20 or perfd.SANITIZER != "none", f"{rss(relay) - before} bytes of memory")
        relay.client().close()


if __name__ == "__main__":
    perfd.main(globals())
