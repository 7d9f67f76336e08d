#!/usr/bin/python3
"""Clients that send files with an end that takes an hour (SO_LINGER), to a kernel on which a socket cannot refuse files, one
before Linux 6.16. Others are answered all the same, and no file is left open."""
import contextlib
import fcntl
import os
import signal
import socket
import struct

import perfd
from perfd import Daemon, add, equal, pb
from test_promises import SYS_ENTER

LINGER = 3600
FILES = 40  # in one message
CONFIG = "version: 1\naccess: { stream-mode: 0666 }\n"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def set_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        name, flags = struct.unpack("16sH", fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))[:18])
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", name, flags | IFF_UP))


def lingering(stack, listener):
    """A socket whose last close waits for its peer, and the peer, which does not read."""
    s = stack.enter_context(socket.create_connection(listener.getsockname()))
    peer = listener.accept()[0]
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(bytes(1 << 16))
    return s, peer


def send_and_die(listener, messages):
    """From a process that is killed with the sockets, so that it does not wait for their end itself. Their peers."""
    peers, pipe = [], os.pipe()
    with contextlib.ExitStack() as stack:
        pairs = [[lingering(stack, listener) for _ in range(FILES)] for _ in messages]
        peers = [peer for pair in pairs for _, peer in pair]
        child = os.fork()
        if child == 0:
            try:
                for (target, data), pair in zip(messages, pairs):
                    for s, _ in pair:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
                    socket.send_fds(target, [data], [s.fileno() for s, _ in pair])
                os.write(pipe[1], b"x")
            finally:
                os.close(pipe[1])
                signal.pause()
        os.close(pipe[1])
        sent = os.read(pipe[0], 1)  # ends with the child at the latest
        os.close(pipe[0])
    # here only the messages, and the child, have the sockets
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    equal(sent, b"x", "what the sender says")
    return peers


def frame(**body):
    data = pb.Request(id=1000, **body).SerializeToString()
    return struct.pack("<I", len(data)) + data


def read_to_the_end(peers):
    for peer in peers:
        peer.settimeout(perfd.PATIENCE)
        with contextlib.suppress(ConnectionResetError):  # what a kernel says of so much that nobody has read
            while peer.recv(1 << 20):
                pass
        peer.close()


def test_others_are_answered():
    set_loopback_up()
    with Daemon(CONFIG) as daemon, socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(FILES)
        asks, half, behind, gone, streams = (stack.enter_context(daemon.client(stream=True)) for _ in range(5))
        other = stack.enter_context(daemon.client())
        add(other, {"event": SYS_ENTER, "name": "calls", "filter": "id == 100000"})
        streams.subscribe(events=["calls"])
        for client in asks, half, behind, gone, other:
            client.request(status=pb.Empty())
        fds = len(daemon.fds())
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            behind.socket.sendall(frame(status=pb.Empty()))
            peers = send_and_die(listener, [(asks.socket, frame(status=pb.Empty())), (half.socket, b"\x10"),
                                            (behind.socket, frame(status=pb.Empty())), (gone.socket, frame(doctor=pb.Empty())),
                                            (streams.socket, frame(stop=pb.Empty()))])
            gone.socket.close()
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        for _ in range(3):
            other.request(status=pb.Empty())
            with daemon.client(stream=True) as newcomer:
                newcomer.request(status=pb.Empty())
        for client in asks, half:
            said = client.receive().response
            equal((said.id, said.reason), (0, "files"), "what one hears who sends files")
        read_to_the_end(peers)
        perfd.wait_until(lambda: len(daemon.fds()) == fds - 5, "none of the five sockets open, and no file of them")


if __name__ == "__main__":
    perfd.main(globals())
