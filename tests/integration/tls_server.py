"""For the integration tests: a TLS server that leads to a perfd's socket, as perfd-relay does, and that can be made wrong in each
way in which a server can be wrong. Its files are those of certificates.py."""
import contextlib
import os
import select
import socket
import ssl
import struct
import threading

PROTOCOL = "perfd/1"


class Pump:
    """Bytes one way, of which no more are taken than fit: who does not read is a slow reader at the other end too.

    cut: bytes of each write, and so of each record of TLS; a record is 16 KiB at most.
    """

    def __init__(self, read, write, cut=1 << 14):
        self.read, self.write, self.cut = read, write, cut
        self.bytes, self.ended = memoryview(b""), False

    def run(self):
        """False: the other side has ended, and it was told all."""
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            while True:
                if not self.bytes:
                    got = self.read(1 << 16)
                    if not got:
                        return False
                    self.bytes = memoryview(got)
                while self.bytes:
                    self.bytes = self.bytes[self.write(self.bytes[:self.cut]):]
        return True


class Server:
    """Listens on `address`; use it in a `with`. .url is for perfctl, .errors what handshakes have failed with.

    path: of the socket that it leads to. name: of its certificate in the folder; ca: of those that it accepts. protocols: of ALPN.
    """

    def __init__(self, folder, path, *, name="server", ca="ca", protocols=(PROTOCOL,), newest=None, oldest=None, cut=1 << 14,
                 address="127.0.0.1", host=None, send_buffer=None, greeting=None, crl=None):
        self.path, self.cut, self.send_buffer, self.greeting = path, cut, send_buffer, greeting
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key"))
        self.context.load_verify_locations(os.path.join(folder, ca + ".crt"))
        self.context.verify_mode = ssl.CERT_REQUIRED
        if crl:
            self.context.load_verify_locations(os.path.join(folder, crl))
            self.context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if protocols:
            self.context.set_alpn_protocols(protocols)
        if newest:
            self.context.maximum_version = newest
        if oldest:
            self.context.minimum_version = oldest
        self.listener = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.port = self.listener.getsockname()[1]
        host = host or address
        self.url = f"tls://[{host}]:{self.port}" if ":" in host else f"tls://{host}:{self.port}"
        self.errors, self.names, self.open, self.threads, self.lock = [], [], set(), [], threading.Lock()
        self.wakeup, self.waker = socket.socketpair()
        self.accepting = self.begin(self.accept)

    def begin(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()
        return thread

    def accept(self):
        while True:
            ready, _, _ = select.select([self.listener, self.wakeup], [], [])
            if self.wakeup in ready:
                return
            sock, _ = self.listener.accept()
            with self.lock:
                self.open.add(sock)
            self.begin(self.serve, sock)

    def serve(self, sock):
        if self.send_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self.greeting is not None:
                sock.recv(1 << 12)
                sock.sendall(self.greeting)
                return
            tls = self.context.wrap_socket(sock, server_side=True)
            with self.lock:
                self.open.discard(sock)
                self.open.add(tls)
            sock = tls
            self.names.append(dict(item for part in tls.getpeercert()["subject"] for item in part)["commonName"])
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
                there.connect(self.path)
                self.carry(tls, there)
        except OSError as error:
            self.errors.append(str(error))
        finally:
            with self.lock:
                self.open.discard(sock)
            sock.close()

    def carry(self, tls, there):
        tls.setblocking(False)
        there.setblocking(False)
        inward, outward = Pump(tls.recv, there.send), Pump(there.recv, tls.send, self.cut)
        while outward.run():
            if not inward.ended and not inward.run():
                inward.ended = True
                there.shutdown(socket.SHUT_WR)
            poll = select.poll()
            poll.register(tls, (0 if inward.ended else select.POLLIN) | (select.POLLOUT if outward.bytes else 0))
            poll.register(there, (0 if outward.bytes else select.POLLIN) | (select.POLLOUT if inward.bytes else 0))
            poll.poll()
        with contextlib.suppress(ssl.SSLError, OSError):
            tls.setblocking(True)
            tls.settimeout(1)
            tls.unwrap()

    def reset(self):
        """Ends all connections as a host does that was started anew: without a word of TLS."""
        with self.lock:
            for sock in self.open:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.waker.send(b"x")
        self.accepting.join()
        with self.lock:
            for sock in self.open:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        for sock in self.listener, self.wakeup, self.waker:
            sock.close()
