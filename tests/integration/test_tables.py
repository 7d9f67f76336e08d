#!/usr/bin/python3
"""perfctl's tables on a terminal of 80 columns: no line is longer, nothing of a number or a reason is missing. Needs root."""
import fcntl
import os
import pty
import struct
import subprocess
import tempfile
import termios
import time
import unicodedata

import perfd
from perfd import Daemon, add, check, equal, pb
from test_control import PERFCTL
from test_targets import Tree

LONG = "external:" + "a-name-of-many-characters-" * 2  # 61 characters
COLUMNS = 80


def width(line):
    """As wcwidth(3) for what these tests write: no combining characters."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def on_terminal(daemon, columns, *words, status=0):
    """The lines that perfctl writes to a terminal of so many columns."""
    master, theirs = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([PERFCTL, "--socket", daemon.control, *words], stdin=subprocess.DEVNULL, stdout=theirs) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                got = os.read(master, 1 << 16)
            except OSError:  # EIO: it has ended
                break
            said += got
        os.close(master)
        equal(process.wait(perfd.PATIENCE), status, f"status of {words}, which said {said[-300:]}")
    return said.decode().replace("\r\n", "\n").splitlines()


def piped(daemon, *words):
    return subprocess.run([PERFCTL, "--socket", daemon.control, *words], check=True, stdout=subprocess.PIPE, text=True,
                          timeout=perfd.PATIENCE).stdout.splitlines()


def check_fits(lines, columns=COLUMNS):
    equal([line for line in lines if width(line) > columns], [], "lines that are too long")


def blocks(lines):
    """The rows of each block, by their first word."""
    return [block.split("\n") for block in "\n".join(lines).split("\n\n")]


def check_whole(daemon, *words):
    """All that has no room to the right stands in a further block; each cell of the piped table that is a number or a short word is in
    one of them."""
    lines = on_terminal(daemon, COLUMNS, *words)
    check_fits(lines)
    found = {cell for line in lines for cell in line.split()}
    for row in piped(daemon, *words):
        equal([cell for cell in row.split("\t") if cell.isdigit() and cell not in found], [], f"numbers of {row} that are not in {lines}")
    return lines


def test_long_names():
    """list, ledger, plan: of events whose names have 60 characters, and one with wide characters in its filter."""
    with Daemon() as daemon, daemon.client() as client:
        for name in (LONG, LONG[:-1] + "x"):
            add(client, {"event": name, "fields": [pb.ExternalField(name="who", type="text")]})
        add(client, {"event": "sched:sched_process_exec", "name": "wide", "filter": 'filename == "' + "\u4e8b\u4ef6" * 30 + '"'})
        add(client, {"event": "sched:sched_process_exec", "name": "of-" + "executed-" * 7, "filter": "pid == 1 && " * 20 + "pid == 2"})
        lines = check_whole(daemon, "list")
        equal([block[0].split()[0] for block in blocks(lines)], ["NAME"] * len(blocks(lines)), "the first column of each block")
        equal([len(block) for block in blocks(lines)[:-1]], [5] * (len(blocks(lines)) - 1), f"the rows of each block of {lines}")
        check("\u4e8b\u4ef6\u4e8b" in "".join(lines), "wide characters are not there")
        check_fits(on_terminal(daemon, COLUMNS, "ledger"))
        check_fits(on_terminal(daemon, COLUMNS, "show", LONG))
        wide = on_terminal(daemon, 900, "list")
        equal(len(blocks(wide)), 1, "blocks on a terminal that is wide enough")
        equal([line.split("\t")[0] for line in piped(daemon, "list")], [line.split()[0] for line in wide[1:]], "names, none of them cut")


def test_plan():
    """Each block has the names; no event is cut that is one."""
    names = ["syscalls:sys_enter_clock_gettime", "syscalls:sys_enter_clock_nanosleep"]
    yaml = f"version: 1\ngroups: {{a-group: {{events: [{', '.join(names)}, {{event: 'sched:sched_process_exec', name: x, filter: pid > 1}}]}}}}\n"
    with Daemon() as daemon, tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(yaml)
        file.flush()
        lines = on_terminal(daemon, COLUMNS, "plan", file.name)
        check_fits(lines)
        check(len(blocks(lines)) > 1, lines)
        for block in blocks(lines):
            check("NAME" in block[0], block)
            equal([name for name in names if any(name in line for line in block)], names, f"the names in {block}")


def test_headings():
    """In a pipe each table names its columns, if it is told so: `ledger` has some with different ones."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": "sched:sched_process_exec"})
        lines = [line.split("\t") for line in piped(daemon, "ledger", "--headings")]
        equal(lines[0][:4], ["EVENT", "CPU", "HITS", "DELIVERED"], "the first heading")
        check(sum(line[0].isupper() for line in lines) > 1, lines)
        for before, line in zip(lines, lines[1:]):
            check(line[0].isupper() or len(line) == len(before), lines)
        check(not any(line.split("\t")[0].isupper() for line in piped(daemon, "ledger")), "headings that nobody has asked for")
        equal(piped(daemon, "list", "--headings")[0].split("\t")[:2], ["NAME", "ID"], "the heading of list")
        said = subprocess.run([PERFCTL, "--socket", daemon.control, "list"], env={**os.environ, "PERFCTL_HEADINGS": "1"}, check=True,
                              stdout=subprocess.PIPE, text=True, timeout=perfd.PATIENCE).stdout
        check(said.startswith("NAME\tID\t"), said)


def test_long_cgroup():
    """A path of 200 characters: its end is what is seen; a pipe gets all of it."""
    with Tree() as tree, Daemon() as daemon, daemon.client() as client:
        name = "/".join(["a-cgroup-of-many-characters-" + "x" * 20] * 4)
        tree.make(name)
        cgroup = tree.path(name)
        check(len(cgroup) >= 190, cgroup)
        add(client, {"event": "cpu-clock", "period": 1 << 40, "target": pb.Target(cgroups=[cgroup])})
        lines = check_whole(daemon, "list")
        check(any("\u2026" in line for line in lines), lines)
        check(any(cgroup in row for row in piped(daemon, "list")), "the whole path in a pipe")


def test_other_tables():
    """What else is a table: no line is too long, and none is empty but between blocks."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": "sched:sched_switch"})
        for words in (["status"], ["available", "sched:*"], ["available", "sched:*", "--fields"], ["show", "sched:sched_switch"],
                      ["doctor"], ["ledger"], ["list"]):
            lines = on_terminal(daemon, COLUMNS, *words)
            check(len(lines) > 2, lines)
            check_fits(lines)
        doctor = " ".join(" ".join(on_terminal(daemon, COLUMNS, "doctor")).split())
        for row in piped(daemon, "doctor"):
            topic, what, _, found, remedy = row.split("\t")
            check(" ".join(found.split()) in doctor and " ".join(remedy.split()) in doctor, f"{topic} {what}: {found} {remedy}")


def test_counts_by_text():
    """count: the texts are cut, the counts are not."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": LONG, "fields": [pb.ExternalField(name="who", type="text")]})
        master, theirs = pty.openpty()
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        with subprocess.Popen([PERFCTL, "--socket", daemon.control, "count", LONG, "--by", "event,who", "--for", "1s"],
                              stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "its subscription")
            samples = [pb.ExternalSample(event=LONG, time=time.monotonic_ns(), values=[pb.ExternalValue(text=text.encode())])
                       for text in ["/".join(["folder"] * 30), "\u4e8b" * 60, "\u4e8b" * 60]]
            equal(client.request(emit=pb.EmitRequest(samples=samples)).emitted.taken, 3, "taken")
            said = b""
            while True:
                try:
                    said += os.read(master, 1 << 16) or b""
                except OSError:
                    break
            os.close(master)
            equal(process.wait(perfd.PATIENCE), 0, f"status of {said}")
        lines = [line for line in said.decode().replace("\r\n", "\n").splitlines() if "\u2026" in line]
        check_fits(lines)
        equal([line.split()[-1] for line in lines], ["2", "1"], f"counts of {lines}")


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
