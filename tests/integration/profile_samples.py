"""Samples of a program that is not there, for what draws and writes profiles: the same each time."""
import os
import random
import subprocess

USER, KERNEL, INLINED, OFF_CPU = range(4)
MAKER = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "profile-pictures")


def frame(symbol, dso="/usr/bin/server", kind=USER, file="", line=0, address=0, build_id="0123abcd"):
    if kind == KERNEL:
        dso, build_id = "[kernel.kallsyms]", "feed"
    return symbol, dso, build_id, file, line, address, kind


def sample(comm, frames, n=1, cycles=1000, pid=100, tid=None, container="", wall=1_700_000_000_000_000_000):
    return comm, container, pid, tid or pid, wall, n, cycles, [f if isinstance(f, tuple) else frame(f) for f in frames]


def encode(samples):
    """As profile-pictures.c reads it."""
    out = bytearray()
    for *fields, frames in samples:
        for field in fields:
            out += encoded(field) + b"\x1f"
        for parts in frames:
            out += b"".join(encoded(part) + b"\x1d" for part in parts) + b"\x1f"
        out += b"\x1e"
    return bytes(out)


def encoded(field):
    return field if isinstance(field, bytes) else str(field).encode()


def write_pictures(folder, samples, older=None):
    for name, content in (("samples", samples), ("older", older)):
        if content is not None:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(encode(content))
    subprocess.run([MAKER, folder], check=True, timeout=60)


def grow(n_stacks, seed=1, width=6, depth=30, fresh=0.0):
    """Stacks of a random tree, as servers have them: few functions are at the root, many further inside."""
    rng = random.Random(seed)
    made = []
    for i in range(n_stacks):
        path, stack = 0, []
        for level in range(3 + int(rng.random() * depth)):
            path = (path * 31 + int(rng.random() ** 3 * width)) % 1_000_003
            kind = KERNEL if level > 12 and path % 3 == 0 else INLINED if path % 11 == 5 else USER
            stack.append(frame(f"{('do', 'handle', 'read', 'parse', 'find', 'write')[path % 6]}_{('request', 'page', 'key', 'node', 'row')[path % 5]}_{path}",
                               dso=f"/usr/lib/lib{path % 7}.so", kind=kind, file=f"src/{path % 9}.c", line=path % 400, address=4096 + path))
        comm, tid = ("server", 100 + i % 4) if i % 3 else ("worker", 200 + i % 2)
        made.append(sample(comm, stack, 1 + int(rng.random() * 20 * (1 + fresh * (i % 2))), 1000 + i, tid // 100 * 100, tid, "web" if i % 2 else ""))
    return made
