#!/usr/bin/python3
"""Source lines and inlined functions of programs that are built here, at each address of their code, as addr2line(1) has them."""
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import perfd
from perfd import check, equal

NAMES = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "symbol-names")
C = r"""
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int innermost(int n) {
        return n * 31 + getenv("X")[0];
}
static inline __attribute__((always_inline)) int middle(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += innermost(i) * 3;
        return sum;
}
__attribute__((noinline)) static int outer(int n) {
        return middle(n) + innermost(n + 1);
}
int main(int argc, char **argv) {
        printf("%d %s\n", outer(argc), argv[0]);
        return middle(argc);
}
"""
CXX = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
namespace shapes {
template <typename T, int N> struct Sum {
        T value{};
        inline void add(const T &more) { for (int i = 0; i < N; i++) value = value + more; }
};
struct Shape { virtual ~Shape() = default; virtual int area() const = 0; };
struct Square : Shape { int side; explicit Square(int s) : side(s) {} int area() const override { return side * side; } };
}
static int work(const std::vector<std::string> &words) {
        std::map<std::string, shapes::Sum<int, 3>> counts;
        std::for_each(words.begin(), words.end(), [&](const std::string &word) { counts[word].add(static_cast<int>(word.size())); });
        std::vector<int> sorted;
        for (auto &[word, sum] : counts)
                sorted.push_back(sum.value);
        std::sort(sorted.begin(), sorted.end(), [](int a, int b) { return a > b; });
        return sorted.empty() ? 0 : sorted.front();
}
int main(int argc, char **argv) {
        std::vector<std::string> words(argv, argv + argc);
        shapes::Square square(argc);
        std::cout << work(words) + static_cast<shapes::Shape &>(square).area() << "\n";
}
"""


def run(*command, **more):
    ran = subprocess.run(command, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False, **more)
    equal((ran.returncode, command), (0, command), ran.stderr)
    return ran.stdout


def build(folder, text, language, *options, name="program"):
    source, path = os.path.join(folder, "source." + language), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    run("gcc" if language == "c" else "g++", "-O2", "-g", "-Wl,--build-id", *options, "-o", path, source, cwd=folder)
    return path


def places(path, step):
    """(address, place in the file) of every step-th byte of its code."""
    text = re.search(r" \.text +PROGBITS +([0-9a-f]+) +([0-9a-f]+) +([0-9a-f]+)", run("readelf", "-SW", path))
    address, place, size = (int(number, 16) for number in text.groups())
    return [(address + i, place + i) for i in range(0, size, step)]


def ours(path, at, *options):
    """{place: [(name, file, line)]}"""
    frames = {}
    out = run(NAMES, "--lines", "--parameters", *options, "--inlined", path, input="\n".join(f"{place:x}" for _, place in at))
    for row in out.splitlines():
        place, name, line, _ = row.split("\t")
        file, _, number = line.rpartition(":")
        frames.setdefault(int(place, 16), []).append((name, os.path.normpath(file) if file else "", int(number)))
    return frames


@functools.cache
def theirs(path):
    """The same of all places by addr2line -i: a block for each address, which begins with it. What it says of one depends on those before."""
    at = places(path, 1)
    out = run("addr2line", "-a", "-i", "-f", "-C", "-e", path, input="\n".join(f"{address:x}" for address, _ in at))
    frames, list_of = {}, None
    place_of = dict(at)
    lines = iter(out.splitlines())
    for line in lines:
        if line.startswith("0x"):
            list_of = frames.setdefault(place_of[int(line, 16)], [])
            continue
        file, _, number = re.sub(r" \(discriminator \d+\)$", "", next(lines)).rpartition(":")
        list_of.append((line, os.path.normpath(file) if file != "??" else "", int(number) if number.isdigit() else 0))
    return frames


def mend(them, us, source, n_lines):
    """addr2line takes the symbol of the linker for the innermost function in pieces that were moved away from theirs, and the file of the
    unit for that of a line which that file does not even have; eu-addr2line has what we have. Whether it was so."""
    name, file, number = them[0]
    is_symbol, is_unit = name == us[-1][0] != us[0][0], file == source and number > n_lines
    them[0] = (us[0][0] if is_symbol else name, us[0][1] if is_unit else file, number)
    return is_symbol or is_unit


def compare(path, step=1, stripped=None, options=()):
    """Every place; where addr2line knows a line. The function itself has the name that the linker has for it."""
    at = places(path, step)
    us, them = ours(stripped or path, at, *options), theirs(path)
    source = os.path.join(os.path.dirname(path), "source.cc" if "source.cc" in os.listdir(os.path.dirname(path)) else "source.c")
    with open(source, encoding="utf-8") as f:
        n_lines = len(f.readlines())
    n_known = n_inlined = n_mended = 0
    for _, place in at:
        if not them[place][0][2]:  # a file alone is that of the symbol there, or of the unit
            continue
        n_known += 1
        n_inlined += len(them[place]) > 1
        n_mended += mend(them[place], us[place], source, n_lines)
        equal([line for _, *line in us[place]], [line for _, *line in them[place]], f"lines at {place:x} of {path}")
        equal([name for name, *_ in us[place]][:-1], [name for name, *_ in them[place]][:-1], f"inlined at {place:x} of {path}")
    check(n_mended <= n_known / 30, f"{n_mended} of {n_known} are not as addr2line has them")
    return n_known, n_inlined


def test_inlined_c():
    """PIE and not, with DWARF of versions 4 and 5, compressed, and where the linker left functions out."""
    for options in (("-pie", "-fPIE"), ("-no-pie", "-fno-pie"), ("-gdwarf-4",), ("-gz",), ("-ffunction-sections", "-Wl,--gc-sections")):
        with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
            n_known, n_inlined = compare(build(folder, C, "c", *options))
            check(n_known > 100 and n_inlined > 50, (options, n_known, n_inlined))


def test_split():
    """Debug information in .dwo files, which addr2line does not read: the same as in one file; without them lines alone, which is said."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        whole, split = build(folder, C, "c"), build(folder, C, "c", "-gsplit-dwarf", name="split")
        frames = ours(whole, places(whole, 1))
        equal(ours(split, places(split, 1)), frames, "split and whole")
        at = [one for one in places(whole, 1) if len(frames[one[1]]) > 1][:1]
        for name in os.listdir(folder):
            if name.endswith(".dwo"):
                os.unlink(os.path.join(folder, name))
        equal([len(frames) for frames in ours(split, at).values()], [1], "without its .dwo")


def test_inlined_cxx():
    """Templates, lambdas and the standard library; its debug information in the program, by its link, and by its build id."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = build(folder, CXX, "cc")
        n_known, n_inlined = compare(path)
        check(n_known > 2000 and n_inlined > 500, (n_known, n_inlined))
        debug, linked, stripped, ids = (os.path.join(folder, name) for name in ("linked.debug", "linked", "stripped", "ids"))
        run("objcopy", "--only-keep-debug", path, debug)
        run("strip", "-g", "-o", linked, path)
        check(all(len(frames) == 1 and frames[0][1:] == ("", 0) for frames in ours(linked, places(path, 16)).values()), "lines out of nowhere")
        run("objcopy", "--add-gnu-debuglink=" + debug, linked)
        equal(compare(path, 7, linked)[1] > 50, True, "by its link")
        run("strip", "-o", stripped, path)
        number = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path)).group(1)
        os.makedirs(os.path.join(ids, number[:2]))
        shutil.copy(debug, os.path.join(ids, number[:2], number[2:] + ".debug"))
        equal(compare(path, 7, stripped, ("--build-ids", ids))[1] > 50, True, "by its build id")


def test_memory():
    """More lines than there is memory for are not there, which is said; symbols are."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, texts = build(folder, C, "c"), os.path.join(folder, "texts")
        run("objcopy", "--dump-section", ".debug_str=" + texts, path)
        with open(texts, "ab") as f:
            f.write(bytes(2 << 20))
        run("objcopy", "--update-section", ".debug_str=" + texts, path)
        at = places(path, 64)
        out = run(NAMES, "--lines", "--memory", "1048576", "--inlined", path, input="\n".join(f"{place:x}" for _, place in at))
        notes = {row.split("\t")[3] for row in out.splitlines()}
        equal(notes, {"its debug information needs more than memory_max"}, "the note")
        check("main" in {row.split("\t")[1] for row in out.splitlines()}, "its symbols")


if __name__ == "__main__":
    perfd.main(globals())
