#!/usr/bin/python3
"""Copies of user stacks, unwound: the callers that perf script shows, frame by frame, of a program without frame pointers, and the same
of a live host. Needs root, for perf record."""
import json
import os
import re
import subprocess
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL
from test_symbols import live, run

# Each round makes system calls in a chain of functions, out of a callback of the C library, and in a handler of a signal.
PROGRAM = r"""
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define DEEP __attribute__((noinline, noclone)) static
static volatile int sum;
DEEP int leaf(int n) { volatile char room[40]; memset((void *)room, n, sizeof(room)); return getppid() + room[n & 7]; }
DEEP int dynamic(int n) { char *p = alloca(32 + n % 64); memset(p, 1, 32); return leaf(n) + p[n & 15]; }
DEEP int second(int a, int b, int c, int d, int e, int f, int g, int h) { int r = dynamic(a + b); return r + c * d + e * f + g * h; }
DEEP int first(int n) { int r = second(n, 1, 2, 3, 4, 5, 6, 7); return r ^ n; }
DEEP int again(int n, int depth) { return depth > 0 ? again(n, depth - 1) * 3 + depth : first(n); }
static int compare(const void *a, const void *b) { sum += again(*(const int *)a, 2); return *(const int *)a - *(const int *)b; }
static void on_signal(int n) { sum += first(n); }
int main(int argc, char **argv) {
        signal(SIGUSR1, on_signal);
        for (int i = 0; i < atoi(argv[1]); i++) {
                int list[] = { 3, 1, 2 };
                sum += again(i, 5);
                qsort(list, 3, sizeof(int), compare);
                raise(SIGUSR1);
        }
        return argc - 2;
}
"""
CALLS = "syscalls:sys_enter_getppid"


def build(folder):
    path = os.path.join(folder, "deep")
    with open(path + ".c", "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    run("gcc", "-O2", "-fomit-frame-pointer", "-Wl,--build-id", "-o", path, path + ".c")
    return path


def ours(path):
    """Of each sample its time and its callers: the place of each in its page, as perf has it, and its name."""
    found = []
    for line in run(PERFCTL, "--json", "script", "-i", path).splitlines():
        sample = json.loads(line)
        found.append((sample["time"], [(int(f["ip"], 16), f["symbol"] or "[unknown]") for f in sample.get("user_callchain", [])]))
    return found


def of_perf(path):
    found = []
    for line in run("perf", "script", "-i", path, "--ns", "--no-inline", "-F", "time,ip,sym").splitlines():
        begun = re.match(r"\s*(\d+)\.(\d{9}):", line)
        if begun:
            found.append((int(begun[1]) * 10**9 + int(begun[2]), []))
        elif line.strip():
            ip, name = line.split(None, 1)
            if int(ip, 16) < 1 << 63:
                found[-1][1].append((int(ip, 16), name))
    return found


def is_same(us, them, has_names):
    """perf shows the call, a byte before where it returns to, but of a frame that a signal has interrupted, and addresses in the file. """
    return len(us) == len(them) and all((ip - where) % 4096 in ((0, 1) if i else (0,)) and (name == their or not has_names)
                                        for i, ((ip, name), (where, their)) in enumerate(zip(us, them)))


def compare(path, has_names=True):
    us, them = ours(path), of_perf(path)
    equal([time for time, _ in us], [time for time, _ in them], "times")
    wrong = [(a, b) for a, b in zip(us, them) if not is_same(a[1], b[1], has_names)]
    equal(wrong[:2], [], f"{len(wrong)} of {len(us)} chains")
    return us


def names(chain):
    return [name for _, name in chain]


def test_recording():
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, program = os.path.join(folder, "perf.data"), build(folder)
        run("perf", "record", "-q", "-e", CALLS, "--call-graph", "dwarf", "-o", path, "--", program, "10")
        chains = [chain for _, chain in compare(path)]
        direct = ["leaf", "dynamic", "second", "first", "again", "main"]
        equal(sum(names(chain)[1:7] == direct for chain in chains), 10, "calls of main()")
        handled = [chain for chain in chains if "on_signal" in names(chain)]
        equal((len(handled), {"raise" in names(chain) and names(chain)[-1] for chain in handled}), (10, {"_start"}), "calls of the handler")
        equal({names(chain)[-1] for chain in chains}, {"_start"}, "where all begin")
        folded = run(PERFCTL, "export", "--to", "folded", "-i", path)
        equal(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines() if ";main;again;first;second;dynamic;leaf;" in line), 10, folded)
        rows = run(PERFCTL, "report", "-i", path, "--children", "--sort", "symbol").splitlines()
        equal([int(row.split("\t")[3]) for row in rows if row.split("\t")[-1] == "[.] main"], [len(chains)], "samples below main()")
        for options, has_callers in ((), True), (("--no-symbols",), False):
            text = run(PERFCTL, "script", "-i", path, *options)
            equal(("\tmain+0x" in text, "\tuser stack\t" in text), (has_callers, not has_callers), f"in text, with {options}")


def test_clock():
    """At any instruction, of prologues, epilogues, the dynamic linker and procedure linkage tables."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "perf.data")
        run("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "2000", "--call-graph", "dwarf,4096", "-o", path, "--", build(folder), "30000")
        chains = compare(path, has_names=False)  # perf calls procedure linkage tables by the symbol before them
        check(len({tuple(names(chain)) for _, chain in chains}) > 5, f"few places in {len(chains)} samples")


def check_calls(chains, n):
    """Of that many calls of main(), and of its handler."""
    direct = ["leaf", "dynamic", "second", "first", "again", "main"]
    equal(sum(chain[1:7] == direct for chain in chains), n, "calls of main()")
    equal(sum("on_signal" in chain and "raise" in chain for chain in chains), n, "calls of the handler")
    equal({chain[-1] for chain in chains}, {"_start"}, "where all begin")


def test_live():
    """--callchain dwarf, of a stream and of a recording: the chains of the kernel walk no user stack, as with perf record; with less of the
    stack than there is some callers; and with registers and stack of attrs."""
    with perfd.Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        program, path = build(folder), os.path.join(folder, "perf.data")

        def watch(*options):
            rows = live(daemon, "--json", "watch", CALLS, *options, "--", program, "3")
            return [row for row in rows if row["kind"] == "sample" and row["comm"] == "deep"]

        def users(rows):
            return [[frame["symbol"] for frame in row["user_callchain"]] for row in rows]
        whole = watch("--callchain", "dwarf")
        check_calls(users(whole), 3)
        alone = watch("--callchain", "user,dwarf,248")
        equal({len(row["user_stack"]) for row in alone}, {2 * 248}, "hexadecimal digits, as they were asked for")
        check(all(0 < len(chain) < len(all_of) for chain, all_of in zip(users(alone), users(whole))), "the callers in 248 bytes")
        check_calls(users(watch("--callchain", "kernel", "--attr", "sample-type=regs-user,stack-user", "--attr", "sample-regs-user=0xff0fff",
                                "--attr", "sample-stack-user=8192")), 3)
        run(PERFCTL, "--socket", daemon.control, "record", "-o", path, CALLS, "--callchain", "dwarf", "--", program, "10")
        check_calls([names(chain) for _, chain in compare(path)], 10)
        ours = "0xff0fff" if os.uname().machine == "x86_64" else "0x1ffffffff"
        one = "r15" if os.uname().machine == "x86_64" else "x28"
        for options, attr in ((("--callchain", "user,dwarf,16380"), (16384, int(ours, 0))),
                              (("--callchain", "kernel", "--attr", "sample-type=regs-user,stack-user,weight", "--attr", f"sample-regs-user={ours}",
                                "--attr", "sample-stack-user=32768", "--attr", "mmap-data=true"),
                               (32768, int(ours, 0))),
                              (("--attr", "sample-type=regs-user", "--attr", f"sample-regs-user=sp|{one}"), (0, None))):
            said = subprocess.run([PERFCTL, "--socket", daemon.control, "record", "-o", path, CALLS, *options, "--", program, "10"], timeout=perfd.PATIENCE,
                                  capture_output=True, text=True, check=True).stderr
            equal("the recording leaves out weight\n" in said, "weight" in str(options), f"what is said, with {options}: {said}")
            found = dict(re.findall(r"(sample_\w+_user): (\w+)", run("perf", "evlist", "-v", "-i", path)))
            equal(int(found.get("sample_stack_user", "0"), 0), attr[0], f"the stack, with {options}")
            lines = run("perf", "script", "-F", "uregs", "-i", path).splitlines()
            names_of = {re.sub(r":.*", "", word).lower() for line in lines for word in line.split()[1:]}
            if attr[1]:
                equal(int(found["sample_regs_user"], 0), attr[1], "registers")
                check_calls([names(chain) for _, chain in compare(path)], 10)
            else:
                equal(names_of, {"sp", one}, "registers that perf script shows")


if __name__ == "__main__":
    perfd.main(globals())
