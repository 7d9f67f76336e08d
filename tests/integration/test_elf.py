#!/usr/bin/python3
"""Where symbols and static probes of ELF files lie: every linker and kind of file, against what binutils say of them.

A symbol's place in the file is right if it is the one that nm's address has by readelf's program headers, and if the
bytes there are those that objdump shows for the function's first instructions.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

PLACE = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "elf-place")
TRACING = "/sys/kernel/tracing"

PROGRAM = """
#include <stdio.h>
__attribute__((noinline)) int probe_me(int x) { return x * 3 + 1; }
__attribute__((noinline)) static int only_here(int x) { return x * 5 + 2; }
__attribute__((noinline)) static int twice(int x) { return x * 7 + 3; }
int other(int x);
__attribute__((noinline)) int part_of(int x) __asm__("divided.part.0");
int part_of(int x) { return x - 1; }
__attribute__((noinline)) int copy_of(int x) __asm__("shrunk.constprop.0.isra.3");
int copy_of(int x) { return x - 2; }
__attribute__((noinline)) int copy_a(int x) __asm__("forked.isra.0");
int copy_a(int x) { return x - 3; }
__attribute__((noinline)) int copy_b(int x) __asm__("forked.constprop.1");
int copy_b(int x) { return x - 4; }
__attribute__((noinline)) int cold(int x) __asm__("frozen.cold");
int cold(int x) { return x - 5; }
__attribute__((noinline)) int not_a_copy(int x) __asm__("shrunk.constprop.x");
int not_a_copy(int x) { return x - 6; }
int a_variable = 5;
static int picked_slow(int x) { return x + 1; }
static int (*pick(void))(int) { return picked_slow; }
#ifdef IFUNC
int picked(int x) __attribute__((ifunc("pick")));
int picked_fast(int x) { return x + 2; }
#else
int picked(int x) { return pick()(x); }
#endif
int probe_weak(int x) __attribute__((weak, alias("probe_me")));
int run(int n) {
        return probe_me(n) + only_here(n) + twice(n) + other(n) + part_of(n) + copy_of(n) + copy_a(n) + copy_b(n) +
               cold(n) + not_a_copy(n) + picked(n) + a_variable;
}
#ifndef SHARED
int main(int argc, char **argv) { printf("%d\\n", run(argc)); return 0; }
#endif
"""
OTHER = """
__attribute__((noinline)) static int twice(int x) { return x * 11 + 4; }
int other(int x) { return twice(x) + 1; }
"""
VERSIONED = """
__asm__(".symver old_read, read_it@V1");
__asm__(".symver new_read, read_it@@V2");
__asm__(".symver gone_read, gone_it@V1");
int old_read(int x) { return x * 3; }
int new_read(int x) { return x * 5 + 1; }
int gone_read(int x) { return x * 9 + 1; }
int plain(int x) { return x * 7 + 2; }
"""
VERSIONS = "V1 { global: read_it; gone_it; local: *; };\nV2 { global: read_it; plain; } V1;\n"
STATIC_PROBES = """
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <stdlib.h>
#include <unistd.h>
__extension__ unsigned short shop_sale_semaphore __attribute__((unused, section(".probes")));
#define SHOP_SALE_ENABLED() __builtin_expect(shop_sale_semaphore, 0)
#ifdef FILLED
char filled[3 * 4096] __attribute__((section(".data"))) = { 1 };
#endif
__attribute__((noinline)) int sell(int price, unsigned char kind, long *stock) {
        DTRACE_PROBE3(shop, sale, price, kind, *stock);
        return price + kind;
}
#undef _SDT_HAS_SEMAPHORES
int main(int argc, char **argv) {
        long stock = -123456789012345;
        int fired = 0;
        char c;
        if (argc > 1 && write(1, "", 1) == 1 && read(0, &c, 1) < 0)
                abort();
        fired = SHOP_SALE_ENABLED() != 0; /* a process can have a page of code twice, and then 2 */
        for (int i = 0; i < 5; i++)
                fired += sell(-i, (unsigned char)(200 + i), &stock) == 100000;
        return fired;
}
"""
NO_SEMAPHORE = """
#include <sys/sdt.h>
int main(int argc, char **argv) {
        DTRACE_PROBE(bare, none);
        DTRACE_PROBE2(bare, two, argc, 1.5 * argc);
        DTRACE_PROBE1(bare, two, 7);
        return 0;
}
"""


def check(truth, text):
    if not truth:
        raise AssertionError(text)


def equal(found, expected, text):
    check(found == expected, f"{text}: {found!r} instead of {expected!r}")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def ask(path, *commands):
    """Answers to commands, each a list of fields."""
    said = subprocess.run([PLACE, path], input="".join(f"{c}\n" for c in commands), stdout=subprocess.PIPE, text=True,
                          check=True).stdout.split("\n")[:-1]
    equal(len(said), len(commands), f"{path}: number of answers")
    return [line.split("\t") for line in said]


def refused(path, command, reason, *words):
    said, = ask(path, command)
    equal((said[0], said[2]), ("refused", reason), f"{path}: {command}: {said}")
    for word in words:
        check(re.search(word, said[3]), f"{path}: {command}: no {word!r} in {said[3]!r}")


def segments(path):
    rows = re.findall(r"^\s+LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ (.{3})", run("readelf", "-lW", path), re.M)
    return [(int(offset, 16), int(address, 16), int(size, 16), "E" in flags) for offset, address, size, flags in rows]


def offset_of(path, address):
    found = {address - start + offset for offset, start, size, _ in segments(path) if start <= address < start + size}
    equal(len(found), 1, f"{path}: segments that hold {address:x}")
    return found.pop()


def symbols(path, *options):
    """{name: [(address, type, binding)]} of defined symbols, as readelf prints them."""
    found = {}
    for line in run("readelf", "-sW", *options, path).splitlines():
        row = line.split()
        if len(row) >= 8 and row[0].rstrip(":").isdigit() and row[6].isdigit():
            found.setdefault(row[7], []).append((int(row[1], 16), row[3], row[4]))
    return found


def first_instructions(path, address):
    """Bytes as objdump disassembles them, some 12 from the address on."""
    said = run("objdump", "-d", "-w", "-z", f"--start-address={address:#x}", f"--stop-address={address + 12:#x}", path)
    code = b""
    for at, row in re.findall(r"^\s+([0-9a-f]+):\t((?:[0-9a-f]{2} )+)", said, re.M):
        if int(at, 16) == address + len(code):  # what is not lies behind the section's end
            code += bytes.fromhex(row)
    check(code, f"{path}: objdump shows nothing at {address:x}")
    return code


def check_place(path, command, address, name=None):
    said, = ask(path, command)
    check(said[0] != "refused", f"{path}: {command}: {said}")
    equal(int(said[0], 16), address, f"{path}: address of {command}")
    equal(int(said[1], 16), offset_of(path, address), f"{path}: file offset of {command}")
    if name:
        equal(said[3], name, f"{path}: symbol of {command}")
    expected = first_instructions(path, address)
    with open(path, "rb") as f:
        f.seek(int(said[1], 16))
        equal(f.read(len(expected)), expected, f"{path}: code of {command}")


def address_of(path, name, *options):
    """By nm, which prints each symbol that is defined; two of one name only if they are versions."""
    found = {int(row.split()[0], 16) for row in run("nm", *options, "--defined-only", path).splitlines()
             if row.split()[2] == name}
    equal(len(found), 1, f"{path}: {name} by nm")
    return found.pop()


def check_every_function(path):
    """All functions that have a name of their own, in one go."""
    single = {name: rows[0][0] for name, rows in symbols(path).items()
              if len({row[0] for row in rows}) == 1 and all(row[1] == "FUNC" for row in rows) and "@" not in name
              and " " not in name}
    check(single, f"{path}: no functions")
    loads = segments(path)
    for (name, address), said in zip(single.items(), ask(path, *(f"find {name}" for name in single))):
        offset, = {address - start + offset for offset, start, size, _ in loads if start <= address < start + size}
        equal((int(said[0], 16), int(said[1], 16), said[3]), (address, offset, name), f"{path}: {name}")
    return len(single)


def build(folder, name, linker, *options, sources=("program.c", "other.c")):
    path = os.path.join(folder, f"{name}-{linker}")
    run("gcc", "-O1", "-w", f"-fuse-ld={linker}", *options, "-o", path, *(os.path.join(folder, s) for s in sources))
    return path


def put(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="ascii") as f:
        f.write(text)
    return os.path.join(folder, name)


def check_names(path):
    """Local namesakes, copies that a compiler made, what is no function of this file."""
    for name in ("probe_me", "run", "other", "only_here", "probe_weak"):
        check_place(path, f"find {name}", address_of(path, name), name)
    check_place(path, "find probe_me 4", address_of(path, "probe_me") + 4, "probe_me")
    check_place(path, f"address {address_of(path, 'run'):#x}", address_of(path, "run"), "")
    for name, found in (("shrunk", "shrunk.constprop.0.isra.3"), ("divided", "divided.part.0"),
                        ("frozen.cold", "frozen.cold")):
        check_place(path, f"find {name}", address_of(path, found), found)
    places = sorted(row[0] for row in symbols(path)["twice"])
    equal(len(places), 2, f"{path}: functions 'twice'")
    refused(path, "find twice", "ambiguous-symbol", *(f"{place:#x}" for place in places), "address")
    refused(path, "find forked", "ambiguous-symbol", r"forked\.isra\.0 at 0x", r"forked\.constprop\.1 at 0x", "name")
    refused(path, "find frozen", "unknown-symbol")
    refused(path, "find probe_mee", "unknown-symbol", "did you mean 'probe_me'")
    refused(path, "find a_variable", "bad-address", "data")
    refused(path, "find probe_me 0x10000", "bad-address", "after its end")
    refused(path, "address 0x7fffffff0000", "bad-address")
    said, = ask(path, "match probe_*")
    equal(said, ["probe_me", "probe_weak"], f"{path}: match")


def check_linker(folder, linker):
    n = 0
    for kind, options in (("pie", ["-pie", "-fPIE"]), ("fixed", ["-no-pie"]), ("static", ["-static"]),
                          ("shared", ["-shared", "-fPIC", "-DSHARED"]),
                          ("high", ["-no-pie", "-Wl,-Ttext-segment=0x10000000" if linker != "lld" else
                                    "-Wl,--image-base=0x10000000"]),
                          ("joined", ["-pie", "-fPIE", "-Wl,--rosegment" if linker == "gold" else
                                      "-Wl,-z,noseparate-code"]),
                          ("ids", ["-pie", "-fPIE", "-Wl,--build-id=sha1"])):
        path = build(folder, kind, linker, *options)
        check_names(path)
        n += check_every_function(path)
        expected = re.search(r"Build ID: (\w+)", run("readelf", "-n", path))
        equal(ask(path, "build-id"), [[expected.group(1) if expected else ""]], f"{path}: build id")
    check(expected, "no build id to compare with")

    path = build(folder, "stripped", linker, "-pie", "-fPIE", "-rdynamic")
    addresses = {name: address_of(path, name) for name in ("probe_me", "run", "other")}
    local = address_of(path, "only_here")
    run("strip", path)
    check(".symtab" not in run("readelf", "-SW", path), "strip left .symtab")
    for name, address in addresses.items():
        check_place(path, f"find {name}", address, name)
    check_place(path, f"address {local:#x}", local)
    refused(path, "find only_here", "unknown-symbol")
    refused(path, "find printf", "unknown-symbol", "libraries")

    path = build(folder, "bare", linker, "-static", "-DIFUNC")
    refused(path, "find picked", "ifunc", "picked_fast", "picked_slow")
    check_place(path, "find picked_fast", address_of(path, "picked_fast"))
    n += check_every_function(path)
    run("strip", path)
    refused(path, "find probe_me", "unknown-symbol", "no symbol table", "address")
    return n


def check_versions(folder, linker):
    library = build(folder, "versioned", linker, "-shared", "-fPIC", f"-Wl,--version-script={folder}/versions",
                    sources=("versioned.c",))
    old, new, gone, plain = (address_of(library, name) for name in ("old_read", "new_read", "gone_read", "plain"))
    for stripped in (False, True):
        if stripped:
            run("strip", library)
        for name, address in (("read_it", new), ("read_it@V1", old), ("read_it@V2", new), ("read_it@@V2", new),
                              ("plain", plain), ("plain@V2", plain), ("gone_it@V1", gone)):
            check_place(library, f"find {name}", address, name.split("@")[0])
        for name in ("read_it@V3", "read_it@@V1", "plain@V1"):
            refused(library, f"find {name}", "unknown-symbol")
        said, = ask(library, "match *it*")
        check({"read_it", "read_it@V1"} <= set(said), f"{library}: match {said}")
        if stripped or linker == "bfd":
            refused(library, "find gone_it", "unknown-symbol", "did you mean 'gone_it@V1'")


def notes(path):
    """(provider, name, location, base, semaphore, arguments), as readelf -n prints them."""
    return [(a, b, int(c, 16), int(d, 16), int(e, 16), f) for a, b, c, d, e, f in re.findall(
        r"Provider: (\S+)\s+Name: (\S+)\s+Location: (\S+), Base: (\S+), Semaphore: (\S+)\n\s+Arguments: ?(.*)",
        run("readelf", "-nW", path))]


def probes(path, provider="*", name="*"):
    said, = ask(path, f"probes {provider} {name}")
    check(said[0] != "refused", f"{path}: {said}")
    return [tuple(said[i:i + 7]) for i in range(0, len(said), 7)]


def check_mangled(folder, linker):
    """What C++ and Rust call a function is found by its identifier, which has its length before it."""
    put(folder, "mangled.c", "".join(f"int {name}(int x) {{ return x + {i}; }}\n" for i, name in enumerate(
        ("_ZN5outer3fibEi", "_Z3fibi", "_Z13fib3fibonaccii", "_ZN3run17h0123456789abcdefE", "_RNvC4main4walk", "fab"))))
    path = build(folder, "mangled", linker, "-shared", "-fPIC", sources=("mangled.c",))
    for name, symbol in (("fib", "_Z3fibi"), ("run", "_ZN3run17h0123456789abcdefE"), ("walk", "_RNvC4main4walk"), ("fabb", "fab")):
        refused(path, f"find {name}", "unknown-symbol", f"did you mean '{symbol}'")
    said, = ask(path, "find ib3fib")
    check("did you mean" not in said[3], said)


def check_static_probes(folder, linker):
    for kind, options in (("pie", ["-pie", "-fPIE"]), ("fixed", ["-no-pie"]),
                          ("filled", ["-pie", "-fPIE", "-DFILLED"])):
        path = build(folder, f"sdt-{kind}", linker, *options, sources=("sdt.c",))
        expected = notes(path)
        check(expected, "readelf -n shows no static probe")
        found = probes(path)
        equal(len(found), len(expected), f"{path}: sites")
        for site, (provider, name, location, base, semaphore, arguments) in zip(found, expected):
            equal(site[:2], (provider, name), f"{path}: names")
            equal(int(site[2], 16), offset_of(path, location), f"{path}: site of {name}")
            equal(int(site[3].rstrip("!"), 16), offset_of(path, semaphore), f"{path}: semaphore of {name}")
            equal(site[3].endswith("!"), linker == "lld" and kind != "filled", f"{path}: its page is mapped twice")
            equal(site[4], arguments, f"{path}: arguments of {name}")
            equal(len(arguments.split()), 3, f"{path}: number of arguments")
            with open(path, "rb") as f:
                f.seek(int(site[2], 16))
                equal(f.read(1), b"\x90", f"{path}: the nop of {name}")
        refused(path, "probes shop sell", "unknown-probe", "did you mean 'shop:sale'")
        check_prelinked(path, expected, found)
        check_kernel(path, found)
    path = build(folder, "sdt-none", linker, sources=("no-semaphore.c",))
    found = probes(path, "bare", "two")
    equal([site[3] for site in found], ["0", "0"], "no semaphore")
    check("arg2" not in found[0][5] and "arg2" in found[0][6], f"a floating point argument: {found[0]}")
    equal(found[1][5:], ("arg1=\\7:s32", ""), "a constant")
    equal(len(probes(path, "b*", "n?ne")), 1, "globs")
    refused(build(folder, "sdt-not", linker), "probes * *", "unknown-probe", "no static probes")


def check_prelinked(path, expected, found):
    """What prelink does: all moved but the notes. Here the notes are moved back, which is the same to their reader."""
    with open(path, "rb") as f:
        image = bytearray(f.read())
    for _, _, *words, _ in expected:
        note = b"".join(word.to_bytes(8, "little") for word in words)
        equal(image.count(note), 1, "a note in the file")
        at = image.find(note)
        image[at:at + 24] = b"".join((word - 0x200 & 2**64 - 1).to_bytes(8, "little") for word in words)
    moved = path + "-prelinked"
    with open(moved, "wb") as f:
        f.write(image)
    check(notes(moved) != expected, "nothing moved")
    equal(probes(moved), found, f"{moved}: sites")


def check_kernel(path, found):
    """The kernel takes the fetch args, raises the semaphore, and shows the values that the program passes."""
    if os.geteuid() != 0 or not os.path.exists(f"{TRACING}/uprobe_events"):
        return False
    name = f"test_elf_{os.getpid()}"
    instance = f"{TRACING}/instances/{name}"
    with contextlib.ExitStack() as stack:
        def write(file, text):
            fd = os.open(f"{TRACING}/{file}", os.O_WRONLY | os.O_APPEND)  # truncating would remove everyone's
            try:
                os.write(fd, text.encode())
            finally:
                os.close(fd)

        os.mkdir(instance)
        stack.callback(os.rmdir, instance)
        for i, site in enumerate(found):
            write("uprobe_events", f"p:{name}/p{i} {path}:0x{site[2]}(0x{site[3].rstrip('!')}) {site[5]}\n")
            stack.callback(write, "uprobe_events", f"-:{name}/p{i}\n")
        before = subprocess.Popen([path, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        before.stdout.read(1)
        write(f"instances/{name}/events/{name}/enable", "1")
        stack.callback(write, f"instances/{name}/events/{name}/enable", "0")
        shadowed = found[0][3].endswith("!")
        later = subprocess.run([path], check=False)
        equal(later.returncode, int(not shadowed), f"{path}: started later, saw its semaphore")
        before.communicate(b"go")
        equal(before.returncode, 1, f"{path}: started before, saw its semaphore")
        with open(f"{instance}/trace", encoding="ascii") as f:
            values = re.findall(r"arg1=(\S+) arg2=(\S+) arg3=(\S+)", f.read())
        equal(values, [(str(-i), str(200 + i), "-123456789012345") for i in range(5)] * 2, "arguments")
    return True


def main():
    folder = tempfile.mkdtemp(prefix="perfd-elf-")
    try:
        put(folder, "program.c", PROGRAM)
        put(folder, "other.c", OTHER)
        put(folder, "versioned.c", VERSIONED)
        put(folder, "versions", VERSIONS)
        put(folder, "sdt.c", STATIC_PROBES)
        put(folder, "no-semaphore.c", NO_SEMAPHORE)
        for linker in ("bfd", "gold", "lld"):
            n = check_linker(folder, linker)
            check_versions(folder, linker)
            check_mangled(folder, linker)
            check_static_probes(folder, linker)
            print(f"{linker}: {n} functions, their versions and static probes are where binutils say")
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
