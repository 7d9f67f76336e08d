"""For the integration tests: a perfd of one's own, loads to trace, subscribers in processes of their own.

A test file is a program: functions called test_*, and at its end

    if __name__ == "__main__":
        perfd.main(globals())

which runs each of them (or those named as arguments), prints "ok NAME" or "FAIL NAME" and the reason, and ends with
status 1 if one failed, or 77 if all were skipped. The folder of the build is $PERFD_BUILD.

    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as client:
        client.request(add=pb.AddRequest(events=[pb.EventSpec(event="cpu-clock", period=1000000)]))

However a test ends, its daemon is stopped by SIGTERM, in bounded time, and what does not end with status 0, or has
complained of an assertion or by a sanitizer, fails the test. Nothing waits by sleeping for so long: wait_until() asks
for a fact, and gives up in bounded time.
"""
import atexit
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import doings
import subscriber
from running import BUILD, PATIENCE, SANITIZER, Skip, main, need_root  # pylint: disable=unused-import
from subscriber import Client, Refused, pb

PERFD = os.path.join(BUILD, "daemon", "perfd")
WORKLOAD = os.environ.get("PERFD_WORKLOAD", os.path.join(BUILD, "tests", "integration", "workload"))
TRACING = "/sys/kernel/tracing"
COMPLAINT = re.compile(r"Assertion .* failed|runtime error:|(ERROR|WARNING): \w+Sanitizer|SUMMARY: \w+Sanitizer")


# The CPUs of an emulated machine stand still for longer, in the middle of an occurrence too, than a backup waits for by default.
EMULATED = "version: 1\nreaders: { guard: 100ms }\n"


def check(fact, text):
    if not fact:
        raise AssertionError(text)


SHOWN = 2000  # characters of what a test found


def equal(found, expected, text):
    if found != expected:
        raise AssertionError(f"{text}: {repr(found)[:SHOWN]} instead of {repr(expected)[:SHOWN]}")


def wait_until(fact, text, seconds=PATIENCE):
    """Until fact() is true, which it gives back; AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while not (result := fact()):
        check(time.monotonic() < end, f"not within {seconds} s: {text}")
        time.sleep(0.01)
    return result


def online_cpus():
    with open("/sys/devices/system/cpu/online", encoding="ascii") as f:
        ranges = [r.split("-") for r in f.read().split(",")]
    return [cpu for r in ranges for cpu in range(int(r[0]), int(r[-1]) + 1)]


def private_copy(program):
    """A copy that goes with this process: what is defined on it, and counted there, is nobody else's."""
    folder, owner = tempfile.mkdtemp(prefix="perfd-test."), os.getpid()
    os.chmod(folder, 0o755)

    def remove():
        if os.getpid() == owner:  # and not a child of it
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return shutil.copy(program, folder)


def refused(client, reason, status=None, **body):
    """Sends a request that has to be refused for this reason, and with this status ("STATUS_INVALID"); gives the no."""
    try:
        client.request(**body)
    except Refused as no:
        equal(no.response.reason, reason, f"the reason of {no.response.message!r}")
        if status is not None:
            equal(pb.Status.Name(no.response.status), status, f"the status of {no.response.message!r}")
        return no.response
    raise AssertionError(f"not refused: {body}")


def add(client, *specs):
    """Adds events: names, or dicts with the fields of EventSpec; gives their EventRefs."""
    specs = [pb.EventSpec(**(spec if isinstance(spec, dict) else {"event": spec})) for spec in specs]
    return list(client.request(add=pb.AddRequest(events=specs)).added.events)


# ---- the daemon ------------------------------------------------------------------------------------------------------


class NotStarted(Exception):
    """perfd ended before it was ready: .status (as subprocess has it) and .stderr."""

    def __init__(self, status, stderr):
        super().__init__(f"perfd did not start, status {status}: {stderr.strip()}")
        self.status, self.stderr = status, stderr


class Asking(Client):
    """Fails the test in bounded time; .pid is that of its perfd."""

    def receive_bytes(self, deadline=None):
        try:
            return super().receive_bytes(deadline)
        except TimeoutError:
            raise AssertionError(f"perfd says nothing for {PATIENCE} s, its threads:\n{doings.of_process(self.pid)}") from None


@contextlib.contextmanager
def somebody(uid, groups=None):
    """This process with another effective uid, and with other groups if there are any."""
    before = os.getgroups(), os.getegid(), os.geteuid()
    try:
        if groups is not None:
            os.setgroups(groups)
            os.setegid(uid)
        os.seteuid(uid)
        yield
    finally:
        os.seteuid(before[2])
        if groups is not None:
            os.setegid(before[1])
            os.setgroups(before[0])


class Daemon:
    """A running perfd; use it in a `with`.

    config is the text of its YAML, or None. prefix is a command before it (its process is then a child of .process),
    the rest goes to subprocess.Popen. directory may be that of another daemon. NotStarted if it ends instead.
    """

    def __init__(self, config=None, prefix=(), directory=None, **popen):
        self.own = directory is None
        self.directory = tempfile.mkdtemp(prefix="perfd-test.") if self.own else directory
        self.control = os.path.join(self.directory, "control.sock")
        self.stream = os.path.join(self.directory, "stream.sock")
        self.log = open(os.memfd_create("log-of-test"), "w+b")  # where no disk can make perfd wait
        self.process, self.monitor, self.judged, self.last_words = None, None, False, None
        try:
            self.start(config, prefix, popen)
        except BaseException:
            self.kill()
            self.clean_up()
            raise

    def start(self, config, prefix, popen):
        config = EMULATED if config is None and "PERFD_MACHINE" in os.environ else config
        ready, theirs = os.pipe()
        command = [*prefix, PERFD, "--runtime-directory", self.directory, "--ready-fd", str(theirs)]
        if config is not None:
            path = os.path.join(self.directory, "perfd.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(config)
            command += ["--config", path]
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=self.log, pass_fds=[theirs, *popen.pop("pass_fds", [])], **popen)
        finally:
            os.close(theirs)
            with os.fdopen(ready, "rb", buffering=0) as f:
                if self.process:
                    check(select.select([f], [], [], PATIENCE)[0], f"not ready within {PATIENCE} s: {self.stderr()}")
                    is_ready = f.read(1) == b"\n" and (bool(prefix) or f.read(1) == b"")  # it has closed its end; a prefix has one too
        if not is_ready:
            status = self.wait()
            raise NotStarted(status, self.stderr())
        self.pid = self.find_pid()

    def client_of(self, uid, stream=True, groups=None):
        """The same of somebody else, by the stream socket, whose folder anybody may enter then."""
        os.chmod(self.directory, 0o755)
        return self.client(stream, uid, groups)

    def find_pid(self):
        """Of perfd, which is a child of its prefix, if that has not become perfd itself."""
        pid = self.process.pid
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return int((f.read().split() or [pid])[0])
        return pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.stop()
        except AssertionError:
            if kind is None:
                raise
            traceback.print_exc()  # the test has failed already: both are of interest
        finally:
            self.kill()
            self.clean_up()
            if kind is not None:
                print(f"  perfd said:\n{self.stderr()}", end="")

    def wait(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"perfd does not end within {PATIENCE} s: {self.stderr()}") from None

    def stop(self):
        """SIGTERM; the status has to be 0, its stderr clean, its sockets gone. Once."""
        if self.judged:
            return
        self.judged = True
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
        equal(self.wait(), 0, f"the exit status of perfd, which said: {self.stderr().strip()}")
        check(not (found := COMPLAINT.search(self.stderr())), found and found.group() + "\n" + self.stderr())
        equal([p for p in (self.control, self.stream) if os.path.exists(p)], [], "sockets that are left behind")

    def kill(self):
        if self.process and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.find_pid(), signal.SIGKILL)  # a tracer that is killed would leave it alone
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
            self.process.kill()
            self.process.wait()

    def clean_up(self):
        if self.monitor:
            self.monitor.socket.close()
        self.last_words = self.stderr()
        self.log.close()
        if self.own:
            shutil.rmtree(self.directory, ignore_errors=True)

    def stderr(self):
        """What it has said so far, or to its end."""
        if self.last_words is not None:
            return self.last_words
        return os.pread(self.log.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    def client(self, stream=False, uid=None, groups=None):
        """A Client on the control socket, or on the stream socket, which says what perfd does when that does not answer.

        uid: of somebody else; groups: with these and a group of the uid's number, else with those of this process. A connection
        has the uid and the groups of the moment at which it is made.
        """
        with contextlib.nullcontext() if uid is None else somebody(uid, groups):
            client = Asking(self.stream if stream else self.control, program="test")
        client.socket.settimeout(PATIENCE)
        client.pid = self.pid
        return client

    def status(self):
        """A StatusReply, on one connection that stays, so that asking changes nothing."""
        self.monitor = self.monitor or self.client()
        return self.monitor.request(status=pb.Empty()).daemon

    def ledger(self, *events):
        self.status()
        return self.monitor.request(ledger=pb.LedgerRequest(events=events)).ledger

    def list_fds(self):
        """{(fd, what it is)} of this moment."""
        found = set()
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.add((int(fd), re.sub(r":\[\d+\]$", "", os.readlink(f"/proc/{self.pid}/fd/{fd}"))))
        return found

    def fds(self):
        """What its file descriptors are, sorted: "anon_inode:[perf_event]", "socket", paths.

        Without timers: the one of the main loop is made when it is needed first, and kept; one tells the dispatcher that wall
        time was set; those of the stall monitor are one for each CPU that can be there, or fewer. Without files of /proc and /sys that it opens, reads and closes, such as how
        much memory is left: what it holds of them is there at every look.
        """
        held = self.list_fds()
        for _ in range(20):
            if not any(kind.startswith(("/proc/", "/sys/")) for _, kind in held):
                break
            time.sleep(0.01)
            again = self.list_fds()
            held = {fd for fd in held if fd in again or not fd[1].startswith(("/proc/", "/sys/"))}
        kinds = [kind for _, kind in held]
        with open("/sys/devices/system/cpu/possible", encoding="ascii") as f:
            most = 3 + int(re.split("[-,]", f.read())[-1])
        check(kinds.count("anon_inode:[timerfd]") <= most, f"more timers than {most}: {kinds}")
        return sorted(kind for kind in kinds if kind != "anon_inode:[timerfd]")

    def rss(self):
        """Bytes of its own memory: without rings, without what is shared with files."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon:"))


def fail_to_start(*words, config=None, status=1, **daemon):
    """Starts a perfd that has to end with this status and to say these words (re) in its last line of stderr.

    Gives all of stderr. Neither a socket nor anything else may be left in its directory.
    """
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        os.chmod(directory, 0o1777)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(Daemon(config=config, directory=directory, **daemon))
            except NotStarted as no:
                equal(no.status, status, f"the exit status of perfd, which said: {no.stderr.strip()}")
                check(not (found := COMPLAINT.search(no.stderr)), found and found.group() + "\n" + no.stderr)
                lines = [line for line in no.stderr.splitlines() if "the reader of CPU" not in line]  # a busy host's
                check(lines, "perfd says nothing at all")
                for word in words:
                    check(re.search(word, lines[-1]), f"no {word!r} in {lines[-1]!r}")
                left = sorted(set(os.listdir(directory)) - {"perfd.yaml"})
                equal(left, [], "left behind")
                return no.stderr
        raise AssertionError(f"perfd started, instead of saying {words}")


# ---- loads and subscribers -------------------------------------------------------------------------------------------


class Line:
    """A program that is talked to in lines, in bounded time; the rest goes to subprocess.Popen."""

    def __init__(self, command, **popen):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **popen)
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def say(self, word):
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, seconds=PATIENCE):
        while b"\n" not in self.received:
            readable, _, _ = select.select([self.process.stdout], [], [], seconds)
            check(readable, f"{self.process.args}: silent for {seconds} s")
            got = os.read(self.process.stdout.fileno(), 1 << 16)
            check(got, f"{self.process.args} ended")
            self.received += got
        line, self.received = self.received.split(b"\n", 1)
        return line.decode().split()


class Workload(Line):
    """workload.c: .pids are stopped before the load; after done() they are again, and .counts says what they did."""

    def __init__(self, kind, *numbers, cpus=None):
        super().__init__([WORKLOAD, kind, *map(str, numbers), *([",".join(map(str, cpus))] if cpus else [])])
        word, *pids = self.hear()
        equal(word, "ready", "the first word of the load")
        self.pids = [int(pid) for pid in pids]

    def go(self):
        self.say("go")

    def done(self, stop=False, seconds=PATIENCE):
        """Waits for its end; stop: asks a flood without end for it."""
        if stop:
            self.say("stop")
        word, *counts = self.hear(seconds)
        equal(word, "done", "the last word of the load")
        self.counts = [int(count) for count in counts]
        return self.counts

    def exit(self):
        self.say("exit")
        equal(self.process.wait(PATIENCE), 0, "the status of the load")

    def __enter__(self):
        return self


class Family:
    """A process with one child, both silent: .pid is the parent's."""

    def __enter__(self):
        self.process = subprocess.Popen(["sh", "-c", "sleep 1000 & echo; wait"], stdout=subprocess.PIPE,
                                        start_new_session=True)
        self.process.stdout.readline()
        self.pid = self.process.pid
        return self

    def __exit__(self, *_):
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


class Subscriber:
    """subscriber.py in a process of its own: it checks every packet, item and ledger, and broken promises fail it."""

    def __init__(self, daemon, *arguments):
        before = daemon.status().n_subscribers
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, subscriber.__file__, "--socket", daemon.stream, *arguments],
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.finished = False

        def began():
            check(self.process.poll() is None, f"the subscriber ended: {self.said()}")
            return daemon.status().n_subscribers > before

        try:
            wait_until(began, "the subscription")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def said(self):
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def finish(self, seconds=PATIENCE, signal_number=signal.SIGINT):
        """Stops it; gives its lines of JSON. AssertionError if it found a broken promise."""
        if signal_number:
            self.process.send_signal(signal_number)
        out, _ = self.process.communicate(timeout=seconds)
        equal(self.process.returncode, 0, f"the status of the subscriber, which said: {self.said()}")
        return [json.loads(line) for line in out.splitlines()]
