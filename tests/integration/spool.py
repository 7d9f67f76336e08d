"""For the integration tests: a relay with a spool in a directory, and what is in its files, read as spool-record.h says."""
import contextlib
import os
import struct

from nats import Publisher
from perfd import equal


class Spooler(Publisher):
    """Publishes with `memory` and `disk` of its spool, which is the directory `spool` beside its relay.yaml. `prefix` is what it is run by."""

    def __init__(self, daemon, server, routes, memory="1MiB", disk="64MiB", prefix=()):
        self.prefix = prefix
        super().__init__(daemon, server, routes, f", spool: {{ memory: {memory}, path: spool, disk: {disk} }}")

    @property
    def spool(self):
        return self.at("spool")

    def configure(self, clients):
        os.makedirs(self.spool, 0o700, exist_ok=True)
        super().configure(clients)

    def start(self, prefix=(), **popen):
        super().start(prefix or [word.replace("SPOOL", self.spool) for word in self.prefix], **popen)

    def files(self):
        return sorted(os.path.join(self.spool, name) for name in os.listdir(self.spool) if name.endswith(".spool"))

    def size(self):
        size = 0
        for path in self.files():
            with contextlib.suppress(FileNotFoundError):  # it was removed just now
                size += os.path.getsize(path)
        return size

    def spooled(self):
        """The Nats-Msg-Id of each message in the files, in their order."""
        return [message_id for path in self.files() for message_id, *_ in records(path)]

    def count_left(self):
        """How many messages are not stored, by the numbers of the newest one and of the newer of both marks."""
        with open(os.path.join(self.spool, "stored"), "rb") as f:
            marks = f.read()
        stored = max((struct.unpack_from("<QQ", marks, at) for at in (0, 512) if len(marks) >= at + 16), default=(0, 0))[1]
        return max([stored, *(number for path in self.files()[-1:] for *_, number in records(path))]) - stored

    def peak(self):
        """The most memory that it has had, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


def records(path):
    """(Nats-Msg-Id, offset, length, number) of each record of a file; one that is just being written is left out."""
    file, found, at = b"", [], 64
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as f:
        file = f.read()
    equal(file[:8], b"perfdspl"[:len(file)], "the beginning of a file")
    while at + 24 <= len(file):
        magic, length, number = struct.unpack_from("<4sIQ", file, at)
        equal(magic, b"pmsg", f"the beginning of the record at {at}")
        size = 24 + (length + 7) // 8 * 8
        if at + size > len(file):
            break
        n_subject, n_id = struct.unpack_from("<HH", file, at + 24)
        begin = at + 32 + n_subject
        found.append((file[begin:begin + n_id].decode(), at, size, number))
        at += size
    return found


__all__ = ["Spooler", "records"]
