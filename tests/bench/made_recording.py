"""Recordings of any size, in seconds: samples of one process on two CPUs, each with a callchain into the code of a program that is here. They are
as perf writes them: what each CPU's ring had, in turns, so that the file is not in the order of time; with rounds or without."""
import array
import os
import random
import struct
import sys

PID, STEP, FIRST_TIME = 4242, 50, 1_000_000_000  # ns between two samples of a CPU
DEPTH, STACKS = 12, 2000
IN_TURN = 2048  # samples of a CPU
CPUS = 2
IP, TID, TIME, CALLCHAIN, CPU, PERIOD = 1, 2, 4, 0x20, 0x80, 0x100
CONTEXT_USER = 2 ** 64 - 512
MMAP, COMM, MMAP_DATA2, COMM_EXEC, SAMPLE_ID_ALL = 1 << 8, 1 << 9, 1 << 23, 1 << 24, 1 << 18
WORDS = 8 + DEPTH  # of a sample: header, ip, pid and tid, time, CPU, period, length of the chain, its context, its addresses
TIME_AT = 3
SAMPLE_SIZE = WORDS * 8
ROUND = struct.pack("<IHH", 68, 0, 8)


def code_of(path):
    """Of an executable of 64 bits: where its code is mapped, how long it is, and where it begins in the file."""
    with open(path, "rb") as f:
        head = f.read(64)
        kind, first, size, n = (*struct.unpack_from("<H", head, 16), *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54))
        base = 0x555555554000 if kind == 3 else 0  # ET_DYN
        for i in range(n):
            f.seek(first + i * size)
            kind, flags, offset, address, _, length = struct.unpack("<IIQQQQ", f.read(40))
            if kind == 1 and flags & 1:  # PT_LOAD, PF_X
                return base + address, length, offset
    raise ValueError(f"{path} has no code")


def record(kind, misc, body):
    body += b"\0" * (-len(body) % 8) + struct.pack("<IIQII", PID, PID, FIRST_TIME - 1, 0, 0)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def process(path, code):
    address, length, offset = code
    page = address % 4096
    status = os.stat(path)
    where = struct.pack("<IIQQQIIQQII", PID, PID, address - page, length + page, offset - page, os.major(status.st_dev), os.minor(status.st_dev),
                        status.st_ino, 0, 5, 2)
    return record(3, 1 << 13, struct.pack("<II16s", PID, PID, b"made")) + record(10, 2, where + os.fsencode(path) + b"\0")


def turn_of_a_cpu(cpu, code, stacks, rng):
    """Samples without their times."""
    words = array.array("Q")
    for _ in range(IN_TURN):
        stack = rng.choice(stacks)
        words.extend((9 | 2 << 32 | SAMPLE_SIZE << 48, code[0] + stack[0], PID | PID << 32, 0, cpu, 250_000, DEPTH + 1, CONTEXT_USER))
        words.extend(code[0] + at for at in stack)
    return words


def head(size):
    flags = MMAP | COMM | MMAP_DATA2 | COMM_EXEC | SAMPLE_ID_ALL
    attr = struct.pack("<IIQQQQQ", 1, 128, 0, 250_000, IP | TID | TIME | CALLCHAIN | CPU | PERIOD, 0, flags)
    attr = attr.ljust(128, b"\0") + struct.pack("<QQ", 0, 0)
    return struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, len(attr), 104, len(attr), 104 + len(attr), size, 0, 0).ljust(104, b"\0") + attr


def write(path, n_samples, has_rounds, program=sys.executable):
    """How many samples it has: n_samples, or some more, as the last turns are whole."""
    rng, program = random.Random(1), os.path.realpath(program)
    code = code_of(program)
    stacks = [[rng.randrange(code[1]) for _ in range(DEPTH)] for _ in range(STACKS)]
    kinds = [[turn_of_a_cpu(cpu, code, stacks, rng) for cpu in range(CPUS)] for _ in range(8)]
    turns = -(-n_samples // (IN_TURN * CPUS))
    begin = process(program, code)
    with open(path, "wb") as f:
        f.write(head(len(begin) + turns * (CPUS * IN_TURN * SAMPLE_SIZE + (len(ROUND) if has_rounds else 0))) + begin)
        for turn in range(turns):
            first = FIRST_TIME + turn * IN_TURN * STEP
            for cpu, words in enumerate(kinds[turn % len(kinds)]):
                words[TIME_AT::WORDS] = array.array("Q", range(first + cpu, first + cpu + IN_TURN * STEP, STEP))
                f.write(words)
            f.write(ROUND if has_rounds else b"")
    return turns * IN_TURN * CPUS
