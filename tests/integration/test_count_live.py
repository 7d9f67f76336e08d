#!/usr/bin/python3
"""`perfctl count --live` on terminals of several sizes, whose screens are looked at as a person sees them. Needs root."""
import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import perfd
from perfd import Daemon, add, check, equal, pb
from test_control import PERFCTL

EVENT = {"event": "external:x", "fields": [pb.ExternalField(name="who", type="text")]}
PATHS = "/usr/lib/a/long/way/to/the/first", "/usr/lib/a/long/way/to/the/second", "/usr/lib/a/long/way/to/another"
TIME = re.compile(r"[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6}")


class Screen:
    """What a terminal shows of what is written to it: no more than perfctl needs, and all else is an error."""

    def __init__(self, rows, columns):
        self.columns, self.rows, self.row, self.column, self.lines, self.n_wrapped = columns, rows, 0, 0, [""], 0

    def write(self, text):
        for part in re.findall(r"\x1b\[\d*[A-Z]|\r|\n|[^\x1b\r\n]|\x1b", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.down()
            elif part.endswith("A") and part[0] == "\x1b":
                self.row = max(self.row - int(part[2:-1]), max(0, len(self.lines) - self.rows))
            elif part == "\x1b[J":
                del self.lines[self.row + 1:]
                self.lines[self.row] = self.lines[self.row][:self.column]
            else:
                check(part.isprintable(), f"{part!r} is written to the terminal")
                self.put(part)

    def down(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def put(self, character):
        if self.column == self.columns:
            self.n_wrapped += 1
            self.column = 0
            self.down()
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[:self.column] + character + line[self.column + 1:]
        self.column += 1


class Live:
    """perfctl count on a terminal: .screen of all that it wrote to it so far."""

    def __init__(self, daemon, rows, columns, *words):
        self.master, theirs = pty.openpty()
        self.resize(rows, columns)
        self.screen = Screen(rows, columns)
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.errors = os.memfd_create("errors")
        self.process = subprocess.Popen([PERFCTL, "--socket", daemon.control, "count", "external:x", "--live", *words],
                                        stdin=subprocess.DEVNULL, stdout=theirs, stderr=self.errors)
        os.close(theirs)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """False: nothing more will come."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.master, 1 << 16)
        except OSError:  # EIO: it has ended
            return False
        self.screen.write(self.decoder.decode(got))
        return True

    def until(self, fact, text):
        end = time.monotonic() + perfd.PATIENCE
        while not fact(self.screen.lines):
            check(self.read(1) and time.monotonic() < end, f"never {text}: {self.screen.lines}")

    def finish(self):
        self.process.send_signal(signal.SIGINT)
        while self.read(perfd.PATIENCE):
            check(self.process.poll() is None or select.select([self.master], [], [], 0)[0], "it has ended, and is still there")
        said = os.pread(self.errors, 1 << 16, 0).decode()
        equal(self.process.wait(perfd.PATIENCE), 0, f"its status, behind {said}")
        return said

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.errors)


@contextlib.contextmanager
def live(rows, columns, *words):
    """With the screen, and a function that emits a sample of each of these texts."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, EVENT)
        with contextlib.closing(Live(daemon, rows, columns, *words)) as one:
            perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "its subscription")

            def emit(*texts):
                samples = [pb.ExternalSample(event="external:x", time=time.monotonic_ns(), values=[pb.ExternalValue(text=text.encode())])
                           for text in texts]
                equal(client.request(emit=pb.EmitRequest(samples=samples)).emitted.taken, len(texts), "taken")
            yield one, emit


def table(lines):
    """The last table on the screen, without its time."""
    begins = [i for i, line in enumerate(lines) if TIME.match(line)]
    return [line.rstrip() for line in lines[begins[-1] + 1:] if line] if begins else []


def test_in_its_place():
    """The second table is where the first was, and nothing is left of that; so is the last one."""
    with live(24, 80, "--by", "who", "--interval", "100ms", "--ledger") as (one, emit):
        emit("a", "b", "a")
        one.until(lambda lines: table(lines)[1:] == ["a        2", "b        1"], "the first samples")
        one.until(lambda lines: len(table(lines)) == 1, "an interval without any")
        emit("a much longer one")
        one.until(lambda lines: table(lines)[1:] == ["a much longer one      1"], "another sample")
        said = one.finish()
        equal((sum(bool(TIME.match(line)) for line in one.screen.lines), one.screen.n_wrapped), (1, 0), f"tables of {one.screen.lines}")
    check("\n4 samples, nothing lost; stopped\n" in said and "\nsubscriber " in said, said)


def test_width():
    """Texts lose their beginnings until lines fit, in bytes that are escaped too."""
    with live(24, 30, "--by", "event,who", "--interval", "100ms") as (one, emit):
        emit(*PATHS, "\x1b" * 9 + "end")
        one.until(lambda lines: len(table(lines)) == 5, "the samples")
        heading, *rows = table(one.screen.lines)
        equal({len(line) for line in (heading, *rows)}, {30}, f"the lengths of {rows}")
        texts = [row.split()[1] for row in rows]
        equal(len(set(texts)), 4, "different rows")
        check(all(text[0] == "…" and any(path.endswith(text[1:]) for path in (*PATHS, r"\x1b\x1b\x1b\x1bend")) for text in texts), rows)
        check({row.split()[0] for row in rows} == {"external:x"}, rows)
        one.finish()
        equal(one.screen.n_wrapped, 0, f"lines that are longer than the terminal of {one.screen.lines}")


def test_height():
    """No more rows than there is room for, and none is lost by that."""
    with live(12, 80, "--by", "who", "--interval", "100ms") as (one, emit):
        emit(*(f"key {i}" for i in range(30)), *["first"] * 9)
        one.until(lambda lines: len(table(lines)) > 1, "the samples")
        rows = table(one.screen.lines)[1:]
        equal((len(rows), rows[0].split(), rows[-1].split("  ")[0]), (7, ["first", "9"], "(25 more keys)"), f"rows of {rows}")
        equal(sum(int(row.rsplit(None, 1)[1]) for row in rows), 39, "all samples")
        one.until(lambda lines: len(table(lines)) == 1, "an interval without any")
        one.finish()
        check(len(one.screen.lines) < 12, one.screen.lines)


def test_resized():
    """A terminal that has become another one keeps what it shows: nobody knows where that is then."""
    with live(24, 80, "--by", "who", "--interval", "100ms") as (one, emit):
        one.until(table, "a table")
        one.resize(24, 40)
        one.until(lambda lines: sum(bool(TIME.match(line)) for line in lines) == 2, "one below the other")
        emit("x")
        one.until(lambda lines: table(lines)[1:] == ["x        1"], "the sample")
        one.finish()
        equal(sum(bool(TIME.match(line)) for line in one.screen.lines), 2, f"tables of {one.screen.lines}")


def test_refusals():
    with Daemon() as daemon:
        for words, text in ((["--live"], "stdout is not a terminal"), (["--live", "--json"], "stdout is not a terminal")):
            done = subprocess.run([PERFCTL, "--socket", daemon.control, *words[1:], "count", "external:x", words[0]],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
            equal((done.returncode, done.stdout), (2, ""), f"{words}: {done.stderr}")
            check(text in done.stderr, done.stderr)
        with contextlib.closing(Live(daemon, 24, 80, "--hist", "n")) as one:
            while one.read(perfd.PATIENCE):
                pass
            equal(one.process.wait(perfd.PATIENCE), 2, "its status")
            check("histograms are more than" in os.pread(one.errors, 1 << 16, 0).decode(), "it does not say why")


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
