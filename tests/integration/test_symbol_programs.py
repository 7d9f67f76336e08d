#!/usr/bin/python3
"""Names of programs of several languages and of the vdso: those of perf script, frame by frame, of the same recordings; and callers by call
frame information that is apart, of which perf misses some. Needs root, for perf record."""
import os
import shutil
import tempfile

import perfd
from perfd import check, equal
from test_symbols import frames, perf_frames, run
from test_unwind import names, ours

GO = """package main
import ("fmt"; "os"; "strconv")
type shape struct{ n uint64 }
//go:noinline
func (s *shape) turn(by uint64) uint64 { for i := uint64(0); i < 5000; i++ { s.n = s.n*31 + by + i }; return s.n }
//go:noinline
func leaf(n uint64) uint64 { for i := uint64(0); i < 5000; i++ { n = n*17 + i }; return n }
func main() {
	s, sum := &shape{1}, uint64(0)
	n, _ := strconv.Atoi(os.Args[1])
	for i := 0; i < n; i++ { sum += s.turn(uint64(i)) + leaf(sum) }
	fmt.Println(sum)
}
"""
CXX = """#include <cstdlib>
namespace outer {
template <typename T> struct Box {
        volatile T value;
        __attribute__((noinline)) T operator()(T n) { for (int i = 0; i < 5000; i++) value = value * 31 + n + i; return value; }
        __attribute__((noinline)) ~Box() { for (int i = 0; i < 5000; i++) value = value * 17 + i; }
};
}
namespace { __attribute__((noinline)) long inner(const char *, long n) { volatile long x = n; for (int i = 0; i < 5000; i++) x = x * 13 + i; return x; } }
int main(int, char **argv) {
        long sum = 0;
        for (int i = 0; i < atoi(argv[1]); i++) { outer::Box<unsigned long> box = { 7 }; sum += box(i) + inner("", i); }
        return sum == 12345;
}
"""
CLOCK = """#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
        struct timespec t;
        for (int i = 0; i < atoi(argv[1]); i++) clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec == 0;
}
"""
# No call frame information is loaded: only the debug file has it.
DEEP = """#include <stdlib.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) int leaf(int n) { volatile char room[64]; room[n % 64] = (char)n; sink = getppid(); return room[n % 64]; }
__attribute__((noinline)) int middle(int n) { volatile char room[n % 7 + 24]; room[0] = (char)n; int x = leaf(n) + room[0]; sink = x; return x; }
__attribute__((noinline)) int outer(int n) { int x = middle(n + 1); sink = x; return x + 1; }
int main(int argc, char **argv) { int sum = 0; for (int i = 0; i < atoi(argv[1]); i++) { sum += outer(i); sink = sum; } return 0; }
"""


def put(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def check_names(folder, program, rounds, *expected):
    """Frame by frame those of perf; and these are among them."""
    path = os.path.join(folder, "perf.data")
    run("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "1000", "-o", path, "--", program, rounds)
    found, theirs = frames(path), perf_frames(path)
    wrong = [(us, them) for us, them in zip(found, theirs) if us != them and "@plt" not in us[2] + them[2]]
    equal((len(found), wrong[:3]), (len(theirs), []), f"frames of {program}")
    shown = {us[2].rsplit("+", 1)[0] for us in found}
    check(set(expected) <= shown, f"{set(expected) - shown} not in {shown}")
    return found


def test_go():
    """With and without a table of symbols: what Go keeps for itself neither perf nor perfctl reads, and there are no names then."""
    if not shutil.which("go"):
        print("skipped: there is no go here (golang-go)")
        return
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        put(folder, "main.go", GO)
        environment = {**os.environ, "GO111MODULE": "off", "GOCACHE": os.path.join(folder, "cache"), "GOFLAGS": ""}
        for options, expected in (((), ("main.(*shape).turn", "main.leaf")), (("-ldflags=-s",), ("[unknown]",))):
            program = os.path.join(folder, "program")
            run("go", "build", *options, "-o", program, "main.go", cwd=folder, env=environment)
            found = check_names(folder, program, "12000", *expected)
            equal({name for _, _, name, dso in found if dso == program and not expected[0].startswith("main")} - {"[unknown]"}, set(), options)


def test_cxx():
    """PIE and not, and stripped with its symbols apart, by .gnu_debuglink."""
    expected = ("outer::Box<unsigned long>::operator()", "outer::Box<unsigned long>::~Box", "(anonymous namespace)::inner")
    for options in ("-pie", "-fPIE"), ("-no-pie", "-fno-pie"):
        with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
            put(folder, "program.cc", CXX)
            program = os.path.join(folder, "program")
            run("g++", "-O1", "-g", "-fno-inline", *options, "-o", program, "program.cc", cwd=folder)
            check_names(folder, program, "6000", *expected)
            run("objcopy", "--only-keep-debug", "program", "program.debug", cwd=folder)
            run("strip", "program", cwd=folder)
            run("objcopy", "--add-gnu-debuglink=program.debug", "program", cwd=folder)
            check_names(folder, program, "6000", *expected)


def test_vdso():
    """What the kernel maps into each process, and is of no file."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        put(folder, "clock.c", CLOCK)
        program = os.path.join(folder, "clock")
        run("gcc", "-O1", "-o", program, "clock.c", cwd=folder)
        found = check_names(folder, program, "4000000")
        inside = [name for _, _, name, dso in found if dso == "[vdso]"]
        check(len(inside) > 10 and "[unknown]" not in inside, f"{len(inside)} frames in the vdso: {inside[:3]}")


def test_frames_apart():
    """.debug_frame in the debug file alone: the callers of each call, with frames whose size only the program knows."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        put(folder, "deep.c", DEEP)
        program, path = os.path.join(folder, "deep"), os.path.join(folder, "perf.data")
        run("gcc", "-O1", "-g", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-Wl,--build-id", "-o", program, "deep.c", cwd=folder)
        run("objcopy", "--only-keep-debug", "deep", "deep.debug", cwd=folder)
        run("strip", "deep", cwd=folder)
        run("objcopy", "--add-gnu-debuglink=deep.debug", "deep", cwd=folder)
        sections = run("readelf", "-SW", program)
        check(".debug_frame" not in sections, sections)
        run("perf", "record", "-q", "-e", "syscalls:sys_enter_getppid", "--call-graph", "dwarf", "-o", path, "--", program, "20")
        chains = [names(chain) for _, chain in ours(path)]
        equal(sum(chain[1:5] == ["leaf", "middle", "outer", "main"] and chain[-1] == "_start" for chain in chains), 20, chains[:2])
        os.unlink(os.path.join(folder, "deep.debug"))
        equal(sum("middle" in names(chain) for _, chain in ours(path)), 0, "callers out of nowhere")


if __name__ == "__main__":
    perfd.main(globals())
