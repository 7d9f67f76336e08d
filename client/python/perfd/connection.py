"""Frames on a socket, and of a stream in shared memory in its ring. Nothing here knows what a request means."""
import collections
import math
import os
import select
import socket
import ssl
import struct
import time

from google.protobuf.message import DecodeError

from . import perfd_pb2 as pb
from .errors import Disconnected, ProtocolError, require

MAX_FRAME = 16 << 20
MAX_FDS = 3  # that can come with one response


def deadline_in(timeout):
    """Of time.monotonic(), or None for ever."""
    return None if timeout is None else time.monotonic() + timeout


def _parse(kind, data):
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ProtocolError(f"{len(data)} bytes that are no {kind.DESCRIPTOR.name}: {error}") from error


def connect(path, timeout=None):
    """A socket that is connected with what listens at this path; an OSError names the path."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(path)
        sock.settimeout(None)
    except OSError as error:
        sock.close()
        error.filename = error.filename or path
        raise
    return sock


class Connection:
    """One socket. Of a frame that is announced no more is held than came of it."""

    def __init__(self, sock, timeout=None):
        self.socket, self.timeout = sock, timeout
        self.received, self.last_id = bytearray(), 0
        self.messages = collections.deque()  # that were received in a ring
        self.pooled = 0  # of these, packets that came in a pool
        self.ring, self.fds = None, []
        self.wakes = None  # what a handler of signals makes readable, so that none is overlooked
        self.max_request = 1 << 20

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection, and with it its stream. To close it twice is no fault."""
        self.socket.close()
        while self.fds:
            os.close(self.fds.pop())

    def fileno(self):
        """Of the socket, for select() and its like; -1 behind close()."""
        return self.socket.fileno()

    def _require_open(self):
        if self.fileno() < 0:
            raise Disconnected("this connection is closed")

    # ---- out ----

    def send(self, **body):
        """One Request, e.g. send(list=pb.ListRequest()), without waiting for its Response."""
        self._require_open()
        self.last_id += 1
        message = pb.Request(id=self.last_id, **body).SerializeToString()
        if len(message) > self.max_request:
            raise ValueError(f"a request of {len(message)} bytes, and perfd reads {self.max_request} at most")
        if self.timeout is not None:
            self.socket.settimeout(self.timeout)
        try:
            self.socket.sendall(struct.pack("<I", len(message)) + message)
        finally:
            if self.timeout is not None:
                self.socket.settimeout(None)

    # ---- in ----

    def take_frame(self):
        """One whole message out of what was received, or None."""
        if len(self.received) < 4:
            return None
        length, = struct.unpack_from("<I", self.received)
        require(length <= MAX_FRAME, f"a frame of {length} bytes")
        if len(self.received) < 4 + length:
            return None
        message = _parse(pb.ServerMessage, bytes(self.received[4:4 + length]))
        del self.received[:4 + length]
        if message.HasField("pooled"):
            require(self.ring, "a packet in a pool, and no pool")
            packet = _parse(pb.Packet, self.ring.packet(message.pooled))
            require(not packet.sequence, "a packet in a pool has a number of its own")
            packet.sequence = message.pooled.sequence
            message = pb.ServerMessage(packet=packet)
            self.pooled += 1
        return message

    def take_frames(self, got):
        """Adds these bytes to what was received, and what is whole of it to .messages."""
        self.received += got
        while message := self.take_frame():
            self.messages.append(message)

    def receive(self, deadline=None):
        """The next message; None at the end of the connection. TimeoutError at the deadline, of time.monotonic()."""
        while not (message := self.messages.popleft() if self.messages else self.take_frame()):
            self._require_open()
            got = self.receive_shared(deadline) if self.ring else self.receive_bytes(deadline)
            if not got:
                require(not self.received, "the connection ends in the middle of a frame")
                return None
            if not self.ring:
                self.received += got
        return message

    def wait(self, deadline=None):
        """Until the socket has something. A signal that comes between two calls would not end the second one by itself."""
        if deadline is None and not self.wakes:
            return  # to read is to wait
        poll, ready = select.poll(), {}
        for one in (self.socket, self.wakes):
            if one:
                poll.register(one, select.POLLIN)
        while self.socket.fileno() not in ready:
            left = None if deadline is None else max(0, math.ceil((deadline - time.monotonic()) * 1000))
            ready = dict(poll.poll(left))
            if not ready:
                raise TimeoutError("perfd has not answered in time")
            if self.wakes and self.wakes.fileno() in ready:
                self.wakes.recv(1 << 12)

    def receive_bytes(self, deadline=None):
        """Some bytes from the socket, b"" at its end; fds that come with them are in .fds."""
        self.wait(deadline)
        if isinstance(self.socket, ssl.SSLSocket):
            return self._receive_record(deadline)
        try:
            got, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, MAX_FDS, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError as error:
            raise Disconnected(f"the connection to perfd broke: {error.strerror}") from error
        self.fds += fds
        require(len(self.fds) <= MAX_FDS, f"{len(self.fds)} fds came")
        return got

    def _receive_record(self, deadline=None):
        """All of a record of TLS, so that nothing is left that poll() does not know of."""
        self.socket.settimeout(None if deadline is None else max(0.001, deadline - time.monotonic()))
        try:
            return self.socket.recv(1 << 14)
        except (ConnectionError, ssl.SSLError) as error:
            raise Disconnected(f"the connection to perfd broke: {error.strerror}") from error
        finally:
            self.socket.settimeout(None)

    def receive_bells(self, deadline=None):
        """b"" at the end of the connection, also where the daemon has ended it before it read all that was said of room."""
        self.wait(deadline)
        try:
            bells = self.socket.recv(1 << 16)
        except ConnectionResetError:
            return b""
        require(not any(bells), "something else than bells beside a ring")
        return bells

    def take_shared(self):
        """What is in the ring, whose messages are taken before it is given back."""
        got = self.ring.look()
        self.take_frames(got)
        if self.ring.give_back(len(got)):
            self.tell()
        return got

    def receive_shared(self, deadline=None):
        """The same from the ring. Where there is nothing, bells by the socket say when to look again.

        At a deadline the daemon goes on to ring, so that whoever waits for the socket then hears of what comes.
        """
        while not (got := self.take_shared()):
            self.ring.sleep()
            got = self.take_shared()
            if not got:
                bells = self.receive_bells(deadline)
                self.ring.wake()
                got = self.take_shared()
                if not bells:
                    return got  # what is in the ring is the end of the stream
            if got:
                break
        self.ring.wake()
        return got

    def tell(self):
        """The ring has room again."""
        try:
            self.send(room=pb.Empty())
        except ConnectionError:
            pass  # the stream has ended: the rest of it is in the ring
