#!/usr/bin/python3
"""A stream in shared memory of a played daemon, good and bad."""
import gc
import os
import socket
import struct
import sys
import time
import unittest

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from played import PATIENCE, Played, frame, good_stream, item, packet, pb, perfd, response, task

SIZE, OFFSET, POOL = 64 << 10, 4096, 64 << 10


class Shared:
    """The daemon's side of a ring: an answer to subscribe, which writes `stream` into it and ends the connection."""

    def __init__(self, stream, *, head=None, pool=b"", fds=2, sizes=(SIZE, OFFSET, 0), lengths=(0, 0), bells=b""):
        self.stream, self.head, self.pool, self.n_fds, self.sizes = stream, head, pool, fds, sizes
        self.lengths, self.bells = lengths, bells
        self.files = [os.memfd_create("ring"), os.memfd_create("own"), os.memfd_create("pool")]

    def __call__(self, request):
        size, offset, pool = self.sizes
        ring = pb.StreamRing(bytes=size, offset=offset, pool_bytes=pool)
        for fd, length, wrong in zip(self.files, (OFFSET + SIZE, OFFSET, POOL), (*self.lengths, 0)):
            os.ftruncate(fd, length + wrong)
        os.pwrite(self.files[1], struct.pack("I", 1), 64)
        if self.pool:
            os.pwrite(self.files[2], self.pool, 0)
        message = frame(response(request, ring=ring))

        def give(peer):
            socket.send_fds(peer, [message + self.bells], self.files[:self.n_fds])
        return [give, self.write]

    def word(self, file, at, form="Q"):
        return struct.unpack(form, os.pread(self.files[file], struct.calcsize(form), at))[0]

    def write(self, peer):
        """As perfd does it: what does not fit waits until half of the ring is free."""
        head, waits = 0, 0
        for data in map(frame, self.stream):
            while data:
                tail = self.word(1, 0)
                n = min(len(data), SIZE - (head - tail))
                for i in range(2):  # in two pieces if it wraps
                    at = head % SIZE
                    piece = data[:n] if i else data[:min(n, SIZE - at)]
                    os.pwrite(self.files[0], piece, OFFSET + at)
                    data, head, n = data[len(piece):], head + len(piece), n - len(piece)
                os.pwrite(self.files[0], struct.pack("Q", head), 0)
                if self.word(1, 64, "I"):
                    peer.sendall(b"\0\0\0\0")
                if data:
                    waits += 1
                    os.pwrite(self.files[0], struct.pack("I", waits), 64)
                    if head - self.word(1, 0) > SIZE // 2:
                        peer.recv(1 << 10)  # the request `room`
        if self.head is not None:
            until = time.monotonic() + PATIENCE
            while self.word(1, 0) != head:  # it has read all of that
                assert time.monotonic() < until, f"it has read {self.word(1, 0)} of {head} bytes"
                time.sleep(0.001)
            os.pwrite(self.files[0], struct.pack("Q", self.head), 0)
            peer.sendall(b"\0\0\0\0")

    def close(self):
        for fd in self.files:
            os.close(fd)


class Ring(unittest.TestCase):
    def run_with(self, stream, check, with_pool=False, **options):
        shared = Shared(stream, **options)
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        with Played(shared) as played, played.client() as client:
            check(lambda: client.subscribe("a", ring_bytes=SIZE, pool=with_pool), client)
        self.assertEqual(played.requests[0].subscribe, pb.SubscribeRequest(events=["a"], ring_bytes=SIZE, pool=with_pool))
        del client
        gc.collect()  # mappings hold fds of their own
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        shared.close()

    def test_good(self):
        def check(subscribe, _):
            stream = subscribe()
            self.assertEqual([type(i).__name__ for i in stream], ["Sample", "Sample", "Gap", "Record"])
            self.assertEqual(stream.end.reason, "stopped")
        self.run_with(good_stream(), check)

    def test_more_than_it_holds(self):
        """Frames wrap, and come in pieces; one is longer than the ring."""
        start, events, first, *_, end = good_stream()
        many = [packet(4 + i, items=[item(200 + i, raw=b"r" * (5000 + i))]) for i in range(100)]
        many += [packet(104, items=[item(300, raw=b"r" * 3 * SIZE)])]
        end.packet.sequence = 105
        own = end.packet.end.ledger.subscribers[0]
        own.matched = own.sent = 103
        del own.dropped[:]

        def check(subscribe, client):
            stream = subscribe()
            lengths = [len(sample.message.raw) for sample in stream]
            self.assertEqual(lengths, [0, 0, *range(5000, 5100), 3 * SIZE])
            self.assertEqual((stream.end.lost, client.pooled), ({"kernel_ring": 1}, 0))
        self.run_with([start, events, first, *many, end], check)

    def test_pool(self):
        content = pb.Packet(tasks=[task(10, 11, b"x", uid=0)], items=[item(100), item(100)]).SerializeToString()
        stream = good_stream()
        stream[2] = pb.ServerMessage(pooled=pb.PooledPacket(sequence=3, offset=100, length=len(content)))

        def check(subscribe, client):
            self.assertEqual([i.time for i in subscribe().samples()], [100, 100])
            self.assertEqual(client.pooled, 1)
        self.run_with(stream, check, with_pool=True, pool=b"\0" * 100 + content, fds=3, sizes=(SIZE, OFFSET, POOL))

    def refuse(self, text, stream=(), **options):
        def check(subscribe, client):
            with self.assertRaisesRegex(perfd.ProtocolError, text):
                _ = list(subscribe())
            self.assertEqual(client.fileno(), -1)
        self.run_with(stream, check, **options)

    def test_no_fds(self):
        self.refuse("this socket is forwarded", fds=1)
        self.refuse("this socket is forwarded", fds=3)

    def test_sizes(self):
        self.refuse("a ring of 65535 bytes", sizes=(SIZE - 1, OFFSET, 0))
        self.refuse("a ring of 33554432 bytes", sizes=(32 << 20, OFFSET, 0))
        self.refuse("behind 64", sizes=(SIZE, 64, 0))
        self.refuse("behind 1125899906842624", sizes=(SIZE, 1 << 50, 0))
        self.refuse("a file of 69633 bytes", lengths=(1, 0))
        self.refuse("a file of 68 bytes", lengths=(0, -OFFSET))

    def test_head(self):
        self.refuse("a head of", good_stream()[:2], head=1 << 40)
        self.refuse("a head of 0 with a tail", good_stream()[:2], head=0)

    def test_pool_bounds(self):
        for offset, length in ((POOL, 1), (0, POOL + 1), (1 << 60, 1), (0, 0), ((1 << 64) - 1, 5)):
            stream = good_stream()[:2] + [pb.ServerMessage(pooled=pb.PooledPacket(sequence=3, offset=offset, length=length))]

            def check(subscribe, _):
                with self.assertRaisesRegex(perfd.ProtocolError, "beyond the pool"):
                    _ = list(subscribe())
            self.run_with(stream, check, with_pool=True, fds=3, sizes=(SIZE, OFFSET, POOL))

    def test_words_beside_it(self):
        self.refuse("else than bells", bells=b"\1\0\0\0x")


if __name__ == "__main__":
    unittest.main()
