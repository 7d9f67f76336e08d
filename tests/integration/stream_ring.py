"""Shared memory that a stream comes by, as proto/PROTOCOL.md has it."""
import mmap
import os

from promise import require


class Ring:
    """The bytes of a stream in memory that the daemon shares with us."""

    def __init__(self, fds, size, offset, pool_bytes=0):
        self.size = size
        try:
            self.pool = mmap.mmap(fds[2], pool_bytes, mmap.MAP_SHARED, mmap.PROT_READ) if pool_bytes else b""
            self.theirs = mmap.mmap(fds[0], offset + size, mmap.MAP_SHARED, mmap.PROT_READ)
            self.ours = mmap.mmap(fds[1], offset, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            for fd in fds:
                os.close(fd)
        self.bytes = memoryview(self.theirs)[offset:]
        # words are read and written whole: head, and tail; in 32 bits, 64 bytes behind these, who waits
        self.head, self.daemon_waits = memoryview(self.theirs)[:8].cast("Q"), memoryview(self.theirs)[64:68].cast("I")
        self.tail, self.waits = memoryview(self.ours)[:8].cast("Q"), memoryview(self.ours)[64:68].cast("I")
        self.sleeps, self.told = 1, 0  # we were asleep until the response came

    def look(self):
        """All that is there, as bytes, which are not given back yet, nor what they tell of in the pool."""
        head, tail = self.head[0], self.tail[0]
        require(head - tail <= self.size, f"a head of {head} with a tail of {tail}")
        at, n = tail % self.size, head - tail
        return bytes(self.bytes[at:at + n]) + bytes(self.bytes[:max(0, at + n - self.size)])

    def give_back(self, n):
        """n bytes were read. True: the daemon has to be told of the room."""
        self.tail[0] += n
        waits = self.daemon_waits[0]
        must_tell = waits not in (0, self.told) and self.head[0] - self.tail[0] <= self.size // 2
        if must_tell:
            self.told = waits
        return must_tell

    def packet(self, pooled):
        """The bytes of a PooledPacket, of a message that was not given back yet."""
        require(0 < pooled.length <= len(self.pool) - pooled.offset, f"a packet beyond the pool: {pooled}")
        return self.pool[pooled.offset:pooled.offset + pooled.length]

    def sleep(self):
        """The daemon rings for what comes from now on: to be looked at once more before the wait.

        Another language needs a full fence behind this store; Python does more in between than a CPU can hold back.
        """
        self.sleeps = self.sleeps % 0xffffffff + 1
        self.waits[0] = self.sleeps

    def wake(self):
        self.waits[0] = 0
