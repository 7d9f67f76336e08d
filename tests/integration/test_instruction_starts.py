#!/usr/bin/python3
"""Where the instructions of a program begin, and that no probe gets into the middle of one: against what objdump says of the same
bytes. The whole C library of this machine is compared, and what it does not use is assembled."""
import contextlib
import os
import re
import subprocess
import tempfile

import perfd
from perfd import Daemon, check, equal, pb, refused
from test_births import libc
from test_elf import ask, put

PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
IS_X86 = os.uname().machine == "x86_64"

# Each form of an immediate, a displacement and a map that compilers use seldom or never.
SELDOM = """
f:
        enter $0x1234, $5
        movabs 0x1122334455667788, %al
        movabs %rax, 0x1122334455667788
        .byte 0x67, 0xa1, 1, 2, 3, 4
        movabs $0x1122334455667788, %r9
        mov $0x1234, %ax
        mov $0x12345678, %ecx
        add $0x1234, %ax
        addw $0x1234, (%rax)
        testb $1, 0x1234(%rip)
        testw $0x1234, 8(%rsp,%rbp,4)
        testq $1, 0x100(%r12)
        notb (%r13)
        negl 0x12345678(,%rbp,1)
        imul $0x1234, %cx, %dx
        imul $5, (%rsp), %rdx
        lret $4
        ret $8
        int $0x80
        in $1, %al
        push $0x12345678
        pushw $0x1234
        xabort $3
        xbegin 1f
1:      loop 1b
        jrcxz 1b
        mov %cr0, %rax
        mov %rax, %dr7
        mov %cr8, %r12
        cmpxchg16b (%r8)
        lock incl %fs:0x10(%rax)
        rep movsq
        bswap %r10
        shld $3, %rax, %rbx
        bt $3, %rcx
        pfadd (%rax), %mm0
        pshufw $1, (%rax), %mm1
        psrlq $3, %mm1
        extrq $1, $2, %xmm3
        insertq $1, $2, %xmm1, %xmm2
        palignr $1, 8(%rax), %xmm3
        pshufb %xmm1, %xmm2
        crc32q (%rax), %rbx
        cmpltsd %xmm1, %xmm2
        vzeroupper
        vpsrlq $3, %xmm1, %xmm2
        vpermq $1, %ymm1, %ymm2
        vpshufd $1, (%r9), %ymm12
        vcmpps $3, %ymm1, %ymm2, %ymm3
        vfmadd213ps (%rax), %ymm1, %ymm2
        andn %rax, %rbx, %rcx
        rorx $3, %rax, %rbx
        kmovq %rax, %k1
        kshiftlq $1, %k1, %k2
        vpternlogd $1, 64(%rax){1to16}, %zmm1, %zmm2{%k1}{z}
        vpcmpub $0, 0x40(%rdi), %zmm17, %k1
        vpsrlw $3, %zmm1, %zmm2
        vaddph %zmm1, %zmm2, %zmm3
        vfmadd213ph (%rax), %zmm1, %zmm2
        vpcomltb %xmm1, %xmm2, %xmm3
        vprotb $1, %xmm1, %xmm2
        vphaddbw %xmm1, %xmm2
        bextr $0x12345678, %eax, %ebx
        pop (%rax)
        endbr64
        rdsspq %rax
        wrpkru
        nopw 0x0(%rax,%rax,1)
        ud2
        ret
"""

FIB = """
        .text
        .globl fib, main
        .type fib, @function
        .type main, @function
fib:    push %rbx
        mov %rdi, %rbx
        mov %rbx, %rax
        pop %rbx
        ret
        .size fib, . - fib
main:   mov $7, %edi
        call fib
        sub $7, %eax
        ret
        .size main, . - main
        .section .note.GNU-stack, "", @progbits
"""


def skip_unless_x86():
    if not IS_X86:
        raise perfd.Skip("instructions of x86-64")


def disassembled(path, *options):
    """[(address, bytes as hex)] of what objdump can read; a line of a REX alone is data that looks like code."""
    said = subprocess.run(["objdump", "-d", "-w", "--insn-width=16", *options, path], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return [(int(address, 16), code.replace(" ", "")) for address, code, text in
            re.findall(r"^\s*(\w+):\t([0-9a-f ]+?)\s*\t(.*)$", said, re.M) if "(bad)" not in text]


def compare(path):
    found = disassembled(path)
    rest = "90" * 15  # whatever follows
    wrong = [(hex(address), code, size) for (address, code), (size,) in
             zip(found, ask(path, *(f"instruction {code}{rest}" for _, code in found))) if int(size) != len(code) // 2]
    equal(wrong, [], f"{path}: sizes that objdump does not say, of {len(found)}")
    return len(found)


def test_the_size_of_each_instruction():
    skip_unless_x86()
    check(compare(libc()) > 100_000, "instructions of the C library")
    with tempfile.TemporaryDirectory() as folder:
        put(folder, "seldom.s", SELDOM)
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", f"{folder}/seldom", f"{folder}/seldom.s"], check=True)
        equal(compare(f"{folder}/seldom"), SELDOM.count("\n") - 2, "instructions")
        for unknown in ("06", "d503c0", "66e81234", "62f17448", "0f", "", "4866", "0fff", "c5"):
            equal(ask(f"{folder}/seldom", f"instruction {unknown}"), [["0"]], unknown)


def test_each_offset_of_functions():
    skip_unless_x86()
    path = libc()
    for name in ("malloc", "printf", "qsort_r"):
        begin, _, size, _ = ask(path, f"find {name}")[0]
        begin, size = int(begin, 16), int(size, 16)
        starts = {address - begin for address, _ in disassembled(path, f"--start-address={begin}", f"--stop-address={begin + size}")}
        check(len(starts) > 5, f"{name} has {starts}")
        by_name = ask(path, *(f"starts {name} {i}" for i in range(size)))
        by_address = ask(path, *(f"starts-at {begin + i}" for i in range(size)))
        for said in by_name, by_address:
            equal({i for i, words in enumerate(said) if words == ["known"]}, starts, f"{name}: where instructions begin")
            equal({words[2] for i, words in enumerate(said) if i not in starts}, {"bad-address"}, f"{name}: what is refused")


@contextlib.contextmanager
def fib():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        put(folder, "fib.s", FIB)
        subprocess.run(["gcc", "-no-pie", "-o", f"{folder}/fib", f"{folder}/fib.s"], check=True)
        yield f"{folder}/fib"


def add_probe(client, path, place):
    return client.request(add=pb.AddRequest(events=[pb.EventSpec(event=f"uprobe:{path}:{place}", name="probe")]))


def test_middle_of_an_instruction():
    """It is refused, by name and by address, and the program gives what it should; where it cannot be seen, the reply says so."""
    skip_unless_x86()
    with fib() as path, Daemon() as daemon, daemon.client() as client:
        begin = int(ask(path, "find fib")[0][0], 16)
        for offset, around in ((2, (1, 4)), (3, (1, 4)), (5, (4, 7))):
            for place, words in ((f"fib+{offset}", "fib+0x{:x} and fib+0x{:x}".format(*around)),
                                 (f"{begin + offset:#x}", "{:#x} and {:#x}".format(*(begin + i for i in around)))):
                said = refused(client, "bad-address", "STATUS_INVALID",
                               add=pb.AddRequest(events=[pb.EventSpec(event=f"uprobe:{path}:{place}")]))
                check(f"middle of an instruction of '{path}'" in said.message and f"begin at {words}" in said.message, said.message)
        equal(subprocess.run([path], check=False).returncode, 0, "the program")
        for place in ("fib", "fib+1", f"{begin + 4:#x}"):
            equal(list(add_probe(client, path, place).added.notes), [], place)
            equal(subprocess.run([path], check=False).returncode, 0, f"the program with a probe at {place}")
            equal(sum(row.occurred for row in daemon.ledger().events if row.name == "probe"), 1, "hits")
            client.request(remove=pb.SelectRequest(names=["probe"]))
        subprocess.run(["strip", path], check=True)
        note, = add_probe(client, path, f"{begin + 4:#x}").added.notes
        check("cannot check that an instruction begins there" in note, note)
        equal(subprocess.run([path], check=False).returncode, 0, "the stripped program")


def test_address_in_a_library_by_its_name():
    skip_unless_x86()
    begin = int(ask(libc(), "find qsort_r")[0][0], 16)
    inside = next(i for i in range(20) if ask(libc(), f"starts-at {begin + i}") != [["known"]])
    with Daemon() as daemon:
        for offset, status in (0, 0), (inside, 1):
            said = subprocess.run([PERFCTL, "--socket", daemon.control, "add", f"uprobe:libc:{begin + offset:#x}", "--pid", str(os.getpid())],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=perfd.PATIENCE)
            equal((said.returncode, "middle of an instruction" in said.stderr), (status, status == 1), f"{offset}: {said.stderr}")


def test_what_cannot_be_checked():
    """Another machine's code, and a function whose begin is too far away or has bytes that are no instruction."""
    skip_unless_x86()
    with tempfile.TemporaryDirectory() as folder:
        put(folder, "far.s", ".globl f, g\n.type f, @function\n.type g, @function\nf: .fill 1100000, 1, 0x90\n.size f, . - f\n"
            "g: .byte 0x06\nnop\nnop\n.size g, . - g\n")
        path = f"{folder}/far"
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", path, f"{folder}/far.s"], check=True)
        equal(ask(path, "starts f 1048576", "starts f 1048577", "starts g 2"), [["known"], ["unknown"], ["unknown"]], "x86-64")
        for machine, expected in ((3, [["unknown"], ["unknown"]]), (183, [["known"], ["refused"]])):
            with open(path, "r+b") as f:
                f.seek(18)
                f.write(machine.to_bytes(2, "little"))
            equal([words[:1] for words in ask(path, "starts f 4", "starts f 2")], expected, f"machine {machine}")
        said, = ask(path, "starts f 6")
        check("begin at f+0x4 and f+0x8" in said[3], said)


if __name__ == "__main__":
    perfd.main(globals())
