#!/usr/bin/python3
"""Names of addresses of programs that are built here, in each way that linkers and distributions know: those that nm(1) has of their
files and perf script of a recording. Needs root, for perf record."""
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL
from test_roles import ANN, perfctl, rules

NAMES = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "symbol-names")
# Its functions have the names that C++ and Rust give them. It says where it is, and then waits, or works.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern int in_library(int n);
__attribute__((noinline)) static int local(int n) { volatile int x = n; for (int i = 0; i < 2000; i++) x = x * 31 + i; return x; }
__attribute__((noinline)) int cxx(int n) __asm__("_ZN5outer5innerEi");
__attribute__((noinline)) int cxx(int n) { return local(n) + 1; }
__attribute__((noinline)) int rust(int n) __asm__("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE");
__attribute__((noinline)) int rust(int n) { return cxx(n) + 2; }
int main(int argc, char **argv) {
        int sum = 0;
        if (argc > 1)
                for (int i = 0; i < atoi(argv[1]); i++)
                        sum += rust(i) + in_library(i) + (getppid() & 1);
        else {
                printf("%lx %lx %lx %lx\n", (long)local + 4, (long)cxx + 1, (long)rust, (long)in_library);
                fflush(stdout);
                getchar();
        }
        return sum == 12345;
}
"""
LIBRARY = "__attribute__((noinline)) int in_library(int n) { volatile int x = n; for (int i = 0; i < 2000; i++) x = x * 17 + i; return x; }\n"
EXPECTED = ["local+0x4", "outer::inner+0x1", "core::fmt::Formatter::pad+0x0", "in_library+0x0"]


def run(*command, **more):
    ran = subprocess.run(command, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False, **more)
    equal((ran.returncode, command), (0, command), ran.stderr)
    return ran.stdout


def build(folder, *options, name="program"):
    for file, text in (("program.c", PROGRAM), ("library.c", LIBRARY)):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            f.write(text)
    run("gcc", "-O1", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-o", "libnames.so", "library.c", cwd=folder)
    run("gcc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id", *options, "-o", name, "program.c", "-L.", "-lnames", "-Wl,-rpath," + folder, cwd=folder)
    return os.path.join(folder, name)


class Waiting:
    """A program that has said where its functions are."""
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addresses = self.process.stdout.readline().split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def rows(self, *options):
        return [line.split("\t") for line in run(NAMES, *options, "--pid", str(self.process.pid), *self.addresses).splitlines()]

    def names(self, *options):
        return [row[3] for row in self.rows(*options)]


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path)).group(1)


def test_linked():
    """PIE and not, without separate code, and by lld; names and offsets in files are those of nm."""
    for options in (("-pie", "-fPIE"), ("-no-pie", "-fno-pie"), ("-pie", "-fPIE", "-Wl,-z,noseparate-code"), ("-pie", "-fPIE", "-fuse-ld=lld")):
        with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
            path = build(folder, *options)
            with Waiting(path) as waiting:
                rows = waiting.rows()
                equal(waiting.names("--parameters")[1], "outer::inner(int)+0x1", "as addr2line -C has it")
            is_pie = "-pie" in options  # without, the address of a function of a library is that of its entry in the linkage table
            equal([row[3] for row in rows], EXPECTED if is_pie else EXPECTED[:3] + ["in_library@plt+0x0"], options)
            equal([row[4] for row in rows], [path] * 3 + [os.path.join(folder, "libnames.so") if is_pie else path], "dsos")
            equal([row[5] for row in rows[:3]], [build_id(path)] * 3, "build ids")
            nm = {line.split()[2]: int(line.split()[0], 16) for line in run("nm", path).splitlines() if len(line.split()) == 3}
            text = re.search(r"\.text +PROGBITS +([0-9a-f]+) +([0-9a-f]+)", run("readelf", "-SW", path))
            in_file = nm["local"] - int(text.group(1), 16) + int(text.group(2), 16) + 4
            equal(int(rows[0][6], 16), in_file, "the place in the file")


def test_plt():
    """Entries of the procedure linkage table, with and without indirect branch tracking."""
    for options in ((), ("-fcf-protection=full", "-Wl,-z,ibtplt"), ("-Wl,-z,now",)):
        with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
            path = build(folder, "-no-pie", "-fno-pie", *options)
            shown = re.findall(r"^0*([0-9a-f]+) <(\w+@plt)>:", run("objdump", "-d", path), re.M)
            check(len(shown) >= 4, shown)
            with Waiting(path) as waiting:
                waiting.addresses = [address for address, _ in shown]
                equal(waiting.names(), [name + "+0x0" for _, name in shown], options)


def test_apart():
    """Stripped, its symbols elsewhere: by .gnu_debuglink, below a directory of build ids, and in .gnu_debugdata; not by a link that lies."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        whole = build(folder)
        path, debug, ids = os.path.join(folder, "stripped"), os.path.join(folder, "stripped.debug"), os.path.join(folder, "ids")
        number = build_id(whole)
        run("objcopy", "--only-keep-debug", whole, debug)
        run("strip", "-o", path, whole)
        linked = os.path.join(folder, "linked")
        run("objcopy", "--add-gnu-debuglink=" + debug, path, linked)
        mini = os.path.join(folder, "mini")
        with open(debug, "rb") as f, open(debug + ".xz", "wb") as xz:
            xz.write(lzma.compress(f.read()))
        run("objcopy", "--add-section", f".gnu_debugdata={debug}.xz", path, mini)
        with Waiting(linked) as waiting:
            equal(waiting.names(), EXPECTED, "by its link")
            os.mkdir(os.path.join(folder, ".debug"))
            os.rename(debug, os.path.join(folder, ".debug", "stripped.debug"))
            equal(waiting.names(), EXPECTED, "by its link into .debug")
            with open(os.path.join(folder, ".debug", "stripped.debug"), "ab") as f:
                f.write(b"\0")
            check(EXPECTED[0] not in waiting.names(), "a CRC that does not fit was taken")
        run("objcopy", "--only-keep-debug", whole, debug)
        with Waiting(mini) as waiting:
            equal(waiting.names(), EXPECTED, "by .gnu_debugdata")
        with Waiting(path) as waiting:
            check(EXPECTED[0] not in waiting.names("--build-ids", ids), "a name out of nowhere")
            os.makedirs(os.path.join(ids, number[:2]))
            shutil.copy(debug, os.path.join(ids, number[:2], number[2:] + ".debug"))
            equal(waiting.names("--build-ids", ids), EXPECTED, "by its build id")


def test_gone_files():
    """Deleted: it is still there while the process lives. Replaced by another one: that has nothing to say."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = build(folder)
        with Waiting(path) as waiting:
            os.unlink(path)
            equal(waiting.names(), EXPECTED, "of a deleted file")
            other = build(folder, "-O0", name="other")
            os.rename(other, path)
            equal(waiting.names(), EXPECTED, "of a replaced file")


def perf_frames(path):
    """(time, pid, name, dso) of each frame, as perf has them."""
    frames, head = [], None
    out = run("perf", "script", "-i", path, "-F", "pid,time,ip,sym,symoff,dso", "--ns", "--show-kernel-path")
    for line in filter(str.strip, out.splitlines()):
        sample = re.match(r"\s*(-?\d+) +(\d+)\.(\d{9}): *(.*)$", line)
        if sample:
            head, line = (int(sample[2]) * 10**9 + int(sample[3]), int(sample[1])), sample[4]
        frame = re.match(r"\s*([0-9a-f]+) (.*?) \((.*)\)$", line)
        if frame:
            frames.append((*head, frame[2], frame[3]))
    return sorted(frames, key=lambda f: f[:2])


def frames(path, *options):
    rows = [line.split("\t") for line in run(NAMES, *options, path).splitlines()]
    found = [(int(row[0]), int(row[1]), "[unknown]" if row[3].startswith("+") else row[3], row[4] or "[unknown]") for row in rows]
    return sorted(found, key=lambda f: f[:2])


def script_frames(path):
    """The same of perfctl script."""
    found = []
    for line in run(PERFCTL, "--json", "script", "-i", path).splitlines():
        sample = json.loads(line)
        for frame in sample.get("kernel_callchain", []) + sample.get("user_callchain", []):
            name = f"{frame['symbol']}+0x{frame['offset']:x}" if frame["symbol"] else "[unknown]"
            found.append((sample["time"], sample["pid"], name, frame["dso"] or "[unknown]"))
    return sorted(found, key=lambda f: f[:2])


def test_recording():
    """A process that has gone, of which there is a recording: the names of perf script, frame by frame, of the kernel, the program and its
    libraries; those in which user memory is already another one (execve) have none here."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path, program = os.path.join(folder, "perf.data"), build(folder)
        run("perf", "record", "-q", "-g", "-e", "cpu-clock", "-o", path, "--", program, "8000")
        ours, theirs = frames(path), perf_frames(path)
        equal(len(ours), len(theirs), "frames")
        wrong = [(us, them) for us, them in zip(ours, theirs)
                 if us != them and not (us[2] == "[unknown]" and "exec" in them[2]) and "@plt" not in us[2] + them[2]]
        equal(wrong, [], f"of {len(theirs)} frames")
        # an address of return behind the end of what called is the next function's beginning to perf, and the call to perfctl
        equal([(us, shown) for us, shown in zip(ours, script_frames(path)) if us != shown and not us[2].endswith("+0x0")], [],
              "frames of perfctl script")
        lines = run(PERFCTL, "script", "-i", path)
        for name in "local", "outer::inner", "in_library", "main":
            check(re.search(rf"^\t\w*\t[0-9a-f]+\t{name}\+0x[0-9a-f]+ \({folder}/", lines, re.M), f"{name} is not in {lines[:2000]}")
        check("+0x" not in run(PERFCTL, "script", "-i", path, "--no-symbols"), "names with --no-symbols")
        another = os.path.join(folder, "another.data")
        with open(path, "rb") as f, open(another, "wb") as out:
            host = os.uname().nodename.encode() + b"\0"
            whole = f.read()
            at = whole.rindex(b"\x40\0\0\0" + host) + 4  # the section HOSTNAME, behind the records
            out.write(whole[:at] + b"#" + whole[at + 1:])
        equal({name for _, _, name, dso in script_frames(another) if dso == "[kernel.kallsyms]"}, {"[unknown]"}, "names of another host's kernel")
        named = {us[2].split("+")[0] for us in ours if us[3].startswith(folder)}
        check({"local", "outer::inner", "core::fmt::Formatter::pad", "in_library", "main"} <= named, named)
        # another build in its place: perf's own list of build ids says that it is not the one
        os.rename(build(folder, "-O0", name="other"), program)
        frames_of = [us for us in frames(path, "--build-ids", folder) if us[3] == program]
        check(frames_of and all(us[2] == "[unknown]" for us in frames_of), frames_of[:3])


def live(daemon, *words):
    done = subprocess.run([PERFCTL, "--socket", daemon.control, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=perfd.PATIENCE, check=False)
    equal(done.returncode, 0, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()] if "--json" in words else done.stdout


def place(frame):
    return frame["dso"], f"{frame['symbol']}+0x{frame['offset']:x}"


def test_watch():
    """Of a program that runs already, and of one that is started: the frames of its own calls, with the files and build ids; no side record
    that was not asked for is printed."""
    with perfd.Daemon() as daemon, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = build(folder)
        own, library = (path, build_id(path)), os.path.join(folder, "libnames.so")
        rows = live(daemon, "--json", "watch", "cpu-clock:u", "-c", "100us", "-g", "--", path, "1000")
        samples = [row for row in rows if row["kind"] == "sample" and row["comm"] == "program"]
        equal({row["kind"] for row in rows} - {"wall", "ring"}, {"start", "sample", "end", "event", "subscriber"}, "kinds of lines")
        chains = [row["user_callchain"] for row in samples if row["user_callchain"][0]["symbol"] == "local"]
        check(chains, f"none of {len(samples)} samples is in local()")
        for chain in chains:
            equal([f["symbol"] for f in chain[:4]], ["local", "outer::inner", "core::fmt::Formatter::pad", "main"], "a chain")
            equal({(f["dso"], f["build_id"]) for f in chain[:4]}, {own}, "its files")
        check(any(place(row["user_callchain"][0])[0] == library and row["user_callchain"][1]["symbol"] == "main" for row in samples), "library")
        rows = live(daemon, "--json", "watch", "cpu-clock:u", "-c", "100us", "-g", "--no-symbols", "--", path, "100")
        check(all(isinstance(ip, str) for row in rows for ip in row.get("user_callchain", [])), "with --no-symbols")
        process = subprocess.Popen([path, "1000000000"])
        try:
            text = live(daemon, "watch", "cpu-clock:u", "-c", "100us", "-g", "--count", "200", "--pid", str(process.pid))
        finally:
            process.kill()
            process.wait()
        check(re.search(rf"^\tuser\t[0-9a-f]+\tlocal\+0x[0-9a-f]+ \({path}\)\n\t\t[0-9a-f]+\touter::inner\+0x9 \({path}\)$", text, re.M), text[:2000])


def test_not_granted():
    """Who may not have side records of the host watches his own processes all the same, and is told why they have no names."""
    with perfd.Daemon(rules(f"{{ users: [{ANN}], own-processes: true }}")) as daemon:
        os.chmod(daemon.directory, 0o755)
        done = perfctl(daemon, ANN, "--json", "watch", "cpu-clock:u", "-c", "1ms", "--callchain", "user", "--count", "3", "--", "/bin/sh", "-c",
                       "while :; do :; done")
    check("callchains of programs have no names: what is mapped where is said by side records, which are not granted here" in done.stderr, done.stderr)
    frames_of = [f for line in done.stdout.splitlines() for f in json.loads(line).get("user_callchain", [])]
    check(len(frames_of) >= 3 and all(f["symbol"] is f["dso"] is None and int(f["ip"], 16) >= 0 for f in frames_of), done.stdout[:1000])


def test_perf_map():
    """The list of a JIT compiler of a process that lives; one of another user is not believed."""
    code = "import mmap,sys; m=mmap.mmap(-1,4096,prot=7); import ctypes; print(hex(ctypes.addressof(ctypes.c_char.from_buffer(m))),flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    path = f"/tmp/perf-{process.pid}.map"
    try:
        address = int(process.stdout.readline(), 16)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{address:x} 100 py::first\n{address + 0x100:x} 100 py::second with spaces\n")
        def names():
            return [line.split("\t")[3:5] for line in run(NAMES, "--pid", str(process.pid), f"{address + 16:x}", f"{address + 0x1ff:x}").splitlines()]
        equal(names(), [["py::first+0x10", path], ["py::second with spaces+0xff", path]], "of a perf map")
        os.chown(path, 65534, -1)
        equal([name for name, _ in names()], ["+0x0", "+0x0"], "of another user")
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
        if os.path.exists(path):
            os.unlink(path)


def test_container():
    """A program whose root is another one: its file is found there, and links of that root stay in it."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as root:
        os.mkdir(os.path.join(root, "bin"))
        with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
            with open(os.path.join(folder, "alone.c"), "w", encoding="utf-8") as f:
                f.write(PROGRAM.replace("extern int in_library(int n);", LIBRARY))
            path = os.path.join(root, "bin", "program")
            run("gcc", "-O1", "-static", "-o", path, os.path.join(folder, "alone.c"))
        os.symlink("/bin", os.path.join(root, "sbin"))
        process = subprocess.Popen(["chroot", root, "/sbin/program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with process:
            addresses = process.stdout.readline().split()
            rows = [line.split("\t") for line in run(NAMES, "--pid", str(process.pid), *addresses).splitlines()]
            process.stdin.close()
        equal([row[3] for row in rows], EXPECTED, "in another root")


def test_speed():
    """Finds that follow each other allocate nothing and are all named; how many a second is measured, not asserted."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        with Waiting(build(folder)) as waiting:
            ns, named = run(NAMES, "--finds", "1000000", str(waiting.process.pid), *waiting.addresses).split()
        equal(int(named), 1000000, "named")
        print(f"{1000 / (int(ns) / 1e6):.1f} million finds a second")


if __name__ == "__main__":
    perfd.main(globals())
