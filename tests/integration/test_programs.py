#!/usr/bin/python3
"""Programs that clients name, made so that looking into them takes as much as can be: memory is bounded, others are served. Needs root."""
import contextlib
import os
import struct
import tempfile

import perfd
from perfd import Daemon, check, equal, refused, wait_until
from subscriber import pb
from test_errors import state, unchanged
from test_operations import CPU_BOUND, others_are_served
from test_quotas import NOBODY, SOMEBODY

MIB = 1 << 20
MACHINE = 62 if os.uname().machine == "x86_64" else 183
LOAD, NOTE = 1, 4                                   # of segments
SYMTAB, STRTAB, NOTES, DYNSYM = 2, 3, 7, 11         # of sections
SYMBOL = struct.Struct("<IBBHQQ")
MAY_GROW = 32 * MIB


def put_program(path, sections, segments=(), pieces=()):
    """A sparse file with these headers, and pieces of bytes where they say; whatever else its tables have is zeros.

    sections: (name, type, offset, size, link, size of an entry); segments: (type, offset, size); pieces: (offset, bytes).
    The first 4 KiB are code. Headers are behind all.
    """
    segments = [(LOAD, 0, 4096), *segments]
    names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in sections) + b".names\0"
    end = max([4096, *(offset + size for _, _, offset, size, _, _ in sections)]) + MIB
    sections = [*sections, (".names", STRTAB, end, len(names), 0, 0)]
    at_segments = end + 4096
    at_sections = at_segments + 56 * len(segments)
    with open(path, "wb") as f:
        f.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, MACHINE, 1, 0, at_segments, at_sections, 0, 64, 56,
                            len(segments), 64, len(sections) + 1, len(sections)))
        for offset, piece in [*pieces, (end, names)]:
            f.seek(offset)
            f.write(piece)
        f.seek(at_segments)
        for kind, offset, size in segments:
            f.write(struct.pack("<IIQQQQQQ", kind, 5, offset, offset, 0, size, size, 4))
        f.write(struct.pack("<IIQQQQIIQQ", *[0] * 10))
        for name, kind, offset, size, link, entry in sections:
            f.write(struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name.encode() + b"\0") + 1, kind, 0, 0, offset, size, link, 0, 4,
                                entry))


def symbols(*names_at):
    """Functions at the first byte, whose names are there."""
    return b"".join(SYMBOL.pack(at, 0x12, 0, 1, 0, 1) for at in names_at)


def plan_of(*events):
    return {"plan": pb.PlanRequest(yaml=f"version: 1\ngroups: {{g: {{events: [{', '.join(repr(e) for e in events)}]}}}}\n")}


@contextlib.contextmanager
def memory_is_bounded(daemon):
    """What perfd has of memory, its peak too, grows by little."""
    def peak():
        with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM:"))

    with open(f"/proc/{daemon.pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")  # proc(5): the peak is what there is now
    before = peak()
    yield
    grown = peak() - before
    print(f"  the peak of perfd's memory is {grown / MIB:.1f} MiB above the {before / MIB:.1f} MiB that it had before")
    if perfd.SANITIZER == "none":  # what is freed stays with a sanitizer for a while
        check(grown < MAY_GROW, f"perfd had {grown / MIB:.1f} MiB more than the {before / MIB:.1f} MiB of before")


def test_huge_tables():
    """Tables of all kinds, of 64 MiB each, most of which a file system does not even have to hold; by two uids, in parallel.
    A sanitizer looks at each byte: with less of them, a request still takes less than the 10 s after which others go first."""
    each = MIB if perfd.SANITIZER == "none" else MIB // 16
    size = 64 * each // SYMBOL.size * SYMBOL.size
    rows = [(".symtab", SYMTAB, MIB * 128, size, 2, 24), (".strtab", STRTAB, MIB * 256, size, 0, 0),
            (".dynsym", DYNSYM, MIB * 384, size, 4, 24), (".dynstr", STRTAB, MIB * 512, size, 0, 0),
            (".note.stapsdt", NOTES, MIB * 640, size, 0, 0)]
    with Daemon("version: 1\n") as daemon, contextlib.ExitStack() as stack:
        before, path = state(daemon), f"{daemon.directory}/program"
        put_program(path, rows, [(NOTE, MIB * (900 + i), each) for i in range(64)], [(MIB * 1000, b"\0")])
        os.chmod(path, 0o644)
        clients = [stack.enter_context(daemon.client_of(uid)) for uid in (NOBODY, SOMEBODY) * 2]
        with memory_is_bounded(daemon), others_are_served(daemon, "programs with huge tables"):
            for i, client in enumerate(clients):
                client.send(**plan_of(f"usdt:{path}:some:probe" if i < 2 else f"uprobe:{path}:function{i}"))
            for i, client in enumerate(clients):
                no = client.receive().response
                equal((pb.Status.Name(no.status), no.reason), ("STATUS_NOT_FOUND", "unknown-probe" if i < 2 else "unknown-symbol"),
                      no.message)
                check(path in no.message, no.message)
        stack.close()
        unchanged(daemon, before, "what plans left")


def test_function_of_a_huge_program():
    """A GiB of names is no mistake: what is asked for is found, by its last bytes too."""
    name, size, at = b"\0the_last_one\0", 1024 * MIB, MIB
    rows = [(".symtab", SYMTAB, 65536, 1001 * SYMBOL.size, 2, 24), (".strtab", STRTAB, at, size, 0, 0)]
    names = [1000 * i for i in range(1000)] + [size - len(name) + 1]
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        path = f"{daemon.directory}/program"
        put_program(path, rows, pieces=[(65536, symbols(*names)), (at + size - len(name), name)])
        with memory_is_bounded(daemon):
            plan = nobody.request(**plan_of(f"uprobe:{path}:the_last_one")).plan
            equal([e.name for e in plan.added], [f"uprobe:{path}:the_last_one"], "added")
            no = refused(nobody, "unknown-symbol", "STATUS_NOT_FOUND", **plan_of(f"uprobe:{path}:the_last_two"))
            check("did you mean 'the_last_one'" in no.message, no.message)


def test_look_without_end():
    """A look for hundreds of names that a huge program does not have is ended, once somebody else waits to try something."""
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon, daemon.client() as root, daemon.client_of(NOBODY) as nobody:
        os.chmod(folder, 0o755)
        path, n = os.path.join(folder, "program"), 20 << 20
        put_program(path, [(".symtab", SYMTAB, 1 << 20, n * SYMBOL.size, 2, SYMBOL.size), (".strtab", STRTAB, 4096, 4096, 0, 0)])
        nobody.send(validate=pb.ValidateRequest(yaml=plan_of(*(f"uprobe:{path}:no_such_{i}" for i in range(1000)))["plan"].yaml))
        wait_until(lambda: is_busy(daemon), "the look is on its way")
        root.request(**plan_of("sched:sched_switch"))
        no = nobody.receive().response
        equal((no.reason, pb.Status.Name(no.status)), ("too-long", "STATUS_EXHAUSTED"), no.message)


def is_busy(daemon):
    """Main has used CPU time for a while."""
    with open(f"/proc/{daemon.pid}/task/{daemon.pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) > 10 ** 9


def test_tables_that_can_not_be():
    """More than any program has, or than the file has: which table, how large, before it is read."""
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before, path = state(daemon), f"{daemon.directory}/program"
        large, small = 2048 * MIB // SYMBOL.size * SYMBOL.size, SYMBOL.size
        for rows, end, words in (
                ([(".symtab", SYMTAB, MIB, large, 2, 24), (".strtab", STRTAB, 4096, 4096, 0, 0)], None,
                 f"section 1 of {large} bytes is larger than in any real program"),
                ([(".symtab", SYMTAB, MIB, small, 2, 24), (".strtab", STRTAB, MIB, large, 0, 0)], None,
                 f"section 2 of {large} bytes is larger than in any real program"),
                ([(".symtab", SYMTAB, MIB, large, 2, 24), (".strtab", STRTAB, 4096, 4096, 0, 0)], MIB,
                 f"section 1 of {large} bytes at {MIB} would end after the file's")):
            put_program(path, rows)
            if end:  # the same headers, at the beginning of a file that ends before the table does
                shorten(path, end)
            with memory_is_bounded(daemon):
                no = refused(nobody, "bad-elf", "STATUS_INVALID", **plan_of(f"uprobe:{path}:function"))
            check(words in no.message and path in no.message, no.message)
        unchanged(daemon, before, "what plans left")


def shorten(path, size):
    """Moves the headers, which are behind all, to the second 4 KiB, and leaves `size` bytes of the file."""
    with open(path, "r+b") as f:
        header = list(struct.unpack("<16sHHIQQQIHHHHHH", f.read(64)))
        f.seek(header[5])
        headers = f.read()
        header[6] += 4096 - header[5]
        header[5] = 4096
        f.seek(0)
        f.write(struct.pack("<16sHHIQQQIHHHHHH", *header))
        f.seek(4096)
        f.write(headers)
        f.truncate(size)


def note_of_site(provider, name, arguments):
    """As <sys/sdt.h> leaves it: an owner, three addresses, three texts."""
    words = struct.pack("<QQQ", 0, 0, 0) + b"".join(text + b"\0" for text in (provider, name, arguments))
    return struct.pack("<III8s", 8, len(words), 3, b"stapsdt\0") + words.ljust((len(words) + 3) // 4 * 4, b"\0")


def test_sites_without_end():
    """As many sites of one static probe as there is room for, and one with a text of a GiB."""
    with Daemon("version: 1\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before, path = state(daemon), f"{daemon.directory}/program"
        many = note_of_site(b"some", b"probe", b"") * 1_000_000
        long = struct.pack("<III8s", 8, 1000 * MIB, 3, b"stapsdt\0")
        for notes, size, words in (many, len(many), "more sites of static probes, or longer ones, match than any program has"), \
                                  (long, len(long) + 1000 * MIB, "of section 1 is not a static probe"):
            put_program(path, [(".note.stapsdt", NOTES, MIB, size, 0, 0)], pieces=[(MIB, notes)])
            with memory_is_bounded(daemon):
                no = refused(nobody, "bad-elf", "STATUS_INVALID", **plan_of(f"usdt:{path}:some:probe"))
            check(words in no.message and path in no.message, no.message)
        unchanged(daemon, before, "what plans left")


def test_many_sites():
    """So many that uid 65534 may have an fd for each: a plan tries a few. One more is refused before anything is defined."""
    with Daemon("version: 1\nfds: {per-uid: 5000}\n") as daemon, daemon.client_of(NOBODY) as nobody:
        before, path, name = state(daemon), f"{daemon.directory}/program", "usdt:{}:some:probe"
        for n in 5000, 5001:
            notes = b"".join(note_of_site(b"some", b"probe", b"8@$%d" % (i % 100)) for i in range(n))
            put_program(path, [(".note.stapsdt", NOTES, MIB, len(notes), 0, 0)], pieces=[(MIB, notes)])
            with memory_is_bounded(daemon), others_are_served(daemon, f"a probe with {n} sites", CPU_BOUND):
                if n == 5000:
                    equal([e.name for e in nobody.request(**plan_of(name.format(path))).plan.added], [name.format(path)], "added")
                else:
                    no = refused(nobody, "too-many-fds", "STATUS_EXHAUSTED", **plan_of(name.format(path)))
                    for words in "needs 5001 fds", f"uid {NOBODY}", "fds.per-uid allows 5000":
                        check(words in no.message, no.message)
        unchanged(daemon, before, "what plans left")


if __name__ == "__main__":
    perfd.main(globals())
