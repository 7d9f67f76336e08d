"""Shared memory that a stream comes by, as PROTOCOL.md has it in "Shared memory"."""
import mmap
import os
import stat

from .errors import ProtocolError, require

SIZE_MIN, SIZE_MAX, POOL_MAX = 64 << 10, 16 << 20, 2 << 20
WORDS = 128  # bytes of either file, at least, before the ring


def _map(fd, size, protection):
    status = os.fstat(fd)
    require(stat.S_ISREG(status.st_mode) and status.st_size == size, f"a file of {status.st_size} bytes where {size} were said")
    return mmap.mmap(fd, size, mmap.MAP_SHARED, protection)


class Ring:
    """The bytes of a stream in memory that the daemon shares with us. Owns the fds, also if it cannot be made."""

    def __init__(self, fds, size, offset, pool_bytes=0):
        self.size, self.pool = size, b""
        try:
            is_possible = SIZE_MIN <= size <= SIZE_MAX and not size & (size - 1) and WORDS <= offset <= SIZE_MIN
            require(is_possible and pool_bytes <= POOL_MAX, f"a ring of {size} bytes behind {offset}, a pool of {pool_bytes}")
            if pool_bytes:
                self.pool = _map(fds[2], pool_bytes, mmap.PROT_READ)
            theirs = _map(fds[0], offset + size, mmap.PROT_READ)
            self.ours = _map(fds[1], offset, mmap.PROT_READ | mmap.PROT_WRITE)
        except OSError as error:
            raise ProtocolError(f"a ring that cannot be mapped: {error}") from error
        finally:
            for fd in fds:
                os.close(fd)
        self.bytes = memoryview(theirs)[offset:]
        # words are read and written whole: head, and tail; in 32 bits, 64 bytes behind these, who waits
        self.head, self.daemon_waits = memoryview(theirs)[:8].cast("Q"), memoryview(theirs)[64:68].cast("I")
        self.tail, self.waits = memoryview(self.ours)[:8].cast("Q"), memoryview(self.ours)[64:68].cast("I")
        self.sleeps, self.told = 1, 0  # we were asleep until the response came

    def look(self):
        """All that is there, as bytes, which are not given back yet, nor what they tell of in the pool."""
        head, tail = self.head[0], self.tail[0]
        require(0 <= head - tail <= self.size, f"a head of {head} with a tail of {tail}")
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

        Another language needs a full fence behind this store; Python stores more in between than a CPU can hold back.
        """
        self.sleeps = self.sleeps % 0xffffffff + 1
        self.waits[0] = self.sleeps

    def wake(self):
        """It need not ring."""
        self.waits[0] = 0
