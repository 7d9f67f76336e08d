"""A program on a terminal that a test looks at: what is on its screen, by pyte, a terminal in Python."""
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import perfd
from perfd import check

try:
    import pyte
except ImportError:
    pyte = None


def need_pyte():
    if pyte is None:
        raise perfd.Skip("pyte is missing: tests/packages test")


class Terminal:
    """What runs on it has it as its controlling terminal, and as stdin, stdout and stderr."""

    def __init__(self, command, rows=24, columns=80, term="linux"):
        need_pyte()
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.master, self.theirs = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.theirs)
        self.written = b""
        self.process = subprocess.Popen(command, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # pylint: disable=subprocess-popen-preexec-fn
                                        env={**os.environ, "TERM": term})

    def resize(self, rows, columns):
        """The kernel sends SIGWINCH by itself."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        """Whether something came."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            got = os.read(self.master, 1 << 16)
        except OSError as error:
            check(error.errno == errno.EIO, str(error))
            got = b""
        self.written += got
        self.stream.feed(got)
        return bool(got)

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def until(self, fact, text):
        """Waits until this is true of the lines, which may be half drawn; gives them."""
        end = time.monotonic() + perfd.PATIENCE
        while select.select([self.master], [], [], 0)[0] and self.read(0):
            pass
        while not fact(self.lines):
            check(time.monotonic() < end, f"never {text}: " + "\n".join(self.lines))
            if not self.read(1):
                check(self.process.poll() is None, f"it has ended before {text}: " + "\n".join(self.lines))
        return self.lines

    def has_settings_of_before(self):
        return termios.tcgetattr(self.theirs) == self.before

    def end(self, *signals):
        """Its status, when all that it wrote is on the screen."""
        for number in signals:
            self.process.send_signal(number)
        perfd.wait_until(lambda: self.read(0) or self.process.poll() is not None, "its end")
        while self.process.poll() is None or self.read(0):
            self.read(0.05)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)
        os.close(self.theirs)
