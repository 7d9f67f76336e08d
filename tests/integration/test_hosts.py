#!/usr/bin/python3
"""`perfctl --host` more than once: each verb on all of them, changes on all or on none, and streams merged by wall time, to the last
sample. The hosts are daemons of this machine, whose wall time is one, so that the right order is known. Needs root."""
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import tempfile
import termios

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_control import PERFCTL
from test_perfctl import GETPPID
from test_promises import CPUS

SECONDS = 2
RATE = 25_000 if perfd.SANITIZER == "none" else 2_500  # calls a second of each process; four of them are traced
UNKNOWN = 16_000_000_000  # ns: what a host whose clock nobody keeps says of its error, at most


def url(daemon):
    return "unix:" + daemon.control


def words_of(daemons):
    return [word for daemon in daemons for word in ("--host", url(daemon))]


def run(daemons, *words, status=0):
    result = subprocess.run([PERFCTL, *words_of(daemons), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=perfd.PATIENCE, check=False)
    equal(result.returncode, status, f"the status of {words}: {result.stderr!r}")
    check(not perfd.COMPLAINT.search(result.stderr), result.stderr)
    return result.stdout, result.stderr


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def running(daemon):
    return sorted(row["name"] for row in rows(run([daemon], "list", "--json")[0]))


@contextlib.contextmanager
def two():
    with Daemon() as first, Daemon() as second:
        yield [first, second]


def test_verbs():
    """Rows begin with the host, in the order in which hosts were given."""
    with two() as daemons:
        names = [url(daemon) for daemon in daemons]
        out = rows(run(daemons, "status", "--json")[0])
        equal([(row["host"], row["pid"]) for row in out], [(url(d), d.pid) for d in daemons], "whose status it is")
        equal(next(iter(out[0])), "host", "the first member")
        run(daemons, "add", "cpu-clock", "--name", "clock")
        out = [line.split("\t") for line in run(daemons, "list")[0].splitlines()]
        equal([line[:2] for line in out], [[name, "clock"] for name in names], "what runs there")
        for verb in ["version"], ["ledger"], ["doctor"], ["show", "sched:sched_switch"], ["available", "cpu-*"]:
            out = run(daemons, *verb)[0].splitlines()
            check(out and {line.split("\t")[0] for line in out} == set(names), f"{verb}: {out}")
            firsts = [line.split("\t")[0] for line in out]
            equal(firsts, sorted(firsts, key=names.index), f"the order of lines of {verb}")
        run(daemons, "remove", "clock")
        equal([running(daemon) for daemon in daemons], [[], []], "what is left")


def test_one_refuses():
    """What one host refuses is said of that one; the status says that there was one, and the others have done it."""
    with two() as daemons:
        with daemons[1].client() as control:
            add(control, {"event": "cpu-clock", "name": "clock"})
        err = run(daemons, "add", "dummy", "--name", "clock", status=1)[1]
        check(err.startswith(f"{url(daemons[1])}: perfctl: add: ") and url(daemons[0]) not in err, err)
        equal(running(daemons[0]), ["clock"], "what the other one has")


def test_apply_on_all_or_none():
    with two() as daemons, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        file = os.path.join(folder, "new.yaml")
        with open(file, "w", encoding="ascii") as f:
            f.write("version: 1\ngroups: {new: {events: [{event: cpu-clock, name: clock}]}}\n")
        before = [running(daemon) for daemon in daemons]
        missing = "unix:" + os.path.join(folder, "nobody.sock")
        err = run(daemons, "--host", missing, "apply", file, status=3)[1]
        check("nothing is changed on any host" in err, err)
        equal([running(daemon) for daemon in daemons], before, "what runs when one was not there")
        out = run(daemons, "apply", file)[0]
        equal([line.split("\t")[0] for line in out.splitlines()], [url(daemon) for daemon in daemons], out)
        equal([running(daemon) for daemon in daemons], [["clock"], ["clock"]], "what runs")


def test_terminal():
    """Lines of tables end where the terminal does."""
    with two() as daemons:
        run(daemons, "add", "syscalls:sys_enter_clock_nanosleep", "--name", "a" * 40)
        for columns in 80, 120:
            master, terminal = pty.openpty()
            with os.fdopen(master, "rb", closefd=True) as read:
                fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
                list_ = subprocess.Popen([PERFCTL, *words_of(daemons), "list"], stdin=subprocess.DEVNULL, stdout=terminal)
                os.close(terminal)
                text = b""
                with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
                    while part := os.read(read.fileno(), 65536):
                        text += part
                equal(list_.wait(perfd.PATIENCE), 0, "the status")
            lines = text.decode().splitlines()
            check(len(lines) > 3 and max(map(len, lines)) <= max(columns, len(url(daemons[0])) + 42), f"{columns}: {lines}")


def test_refused():
    with two() as daemons:
        for words, said in [(["emit", "external:x", "a=1"], "this is for one host: --host is given 2 times"),
                            (["apply", "-"], "the standard input cannot be read for several hosts: name a file"),
                            (["count", "cpu-clock", "-o", "x"], "-o is for one host: use the shell's `> x`"),
                            (["count", "cpu-clock", "--by", "cpu", "--live"], "--live is for one host"),
                            (["watch", "--reconnect", "5"], "--reconnect: '5' is not a time such as 500ms, 10s, 2m, nor the word never"),
                            (["watch", "cpu-clock", "--", "true"], "the command behind -- would run on this machine"),
                            (["watch", "--hold", "5"], "--hold: '5' is not a time such as 500ms, 10s, 2m"),
                            (["--host", "", "status"], "--host: the value is empty"),
                            (["--host", url(daemons[0]), "status"], f"--host {url(daemons[0])} was already given")]:
            err = run(daemons, *words, status=2)[1]
            check(said in err, f"{words}: {err!r}")


@contextlib.contextmanager
def loads(daemons):
    """A program that counts its calls for each daemon, on CPUs that they share."""
    with contextlib.ExitStack() as stack:
        all_loads = []
        for daemon in daemons:
            load = stack.enter_context(Workload("flood", SECONDS, RATE, cpus=CPUS))
            control = stack.enter_context(daemon.client())
            add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
            all_loads.append(load)
        yield all_loads
        for load in all_loads:
            load.exit()


def finish(watch):
    watch.send_signal(signal.SIGINT)
    err = watch.communicate(timeout=perfd.PATIENCE)[1]
    return watch.returncode, err


def start(daemons, out, *words):
    watch = subprocess.Popen([PERFCTL, *words_of(daemons), "watch", *words], stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the watches to begin")
    return watch


def test_watch():
    """Two floods at once: each sample is there or in its host's ledger, and all are in the order of wall time."""
    with two() as daemons, loads(daemons) as all_loads, tempfile.TemporaryFile("w+") as out:
        watch = start(daemons, out, "calls", "--json", "--allow-loss", "--queue", "64MiB", "--hold", "1m")
        for load in all_loads:
            load.go()
        for load in all_loads:
            load.done()
        code, err = finish(watch)
        equal(code, 0, f"the status, {err!r}")
        out.seek(0)
        items = rows(out.read())
    check(all(row["hostname"] == os.uname().nodename for row in items if row["kind"] == "start"), "the name of the machine")
    equal({row["host"] for row in items if row["kind"] == "start"}, {url(daemon) for daemon in daemons}, "hosts as they were given")
    samples = [row for row in items if row["kind"] == "sample"]
    for daemon, load in zip(daemons, all_loads):
        mine = [row for row in samples if row["host"] == url(daemon)]
        lost = sum(next(row["lost"] for row in items if row["kind"] == "end" and row["host"] == url(daemon)).values())
        equal(len(mine) + lost, sum(load.counts), f"samples of {url(daemon)}, and {lost} lost")
    walls = [row["wall"] for row in samples]
    equal(sum(a > b for a, b in zip(walls, walls[1:])), 0, "steps back in wall time")
    changes = sum(a["host"] != b["host"] for a, b in zip(samples, samples[1:]))
    check(changes > 10, f"{changes} changes of the host: the two were not at the same time")
    check_certain([row for row in items if "order_certain" in row],
                  max(row.get("host_error", UNKNOWN) for row in items if row["kind"] == "wall"))


def check_certain(items, error):
    """What is said to be behind everything of the other host is so by both errors; on a machine whose clock is kept that is many."""
    latest = {}
    for row in items:
        others = [wall for host, wall in latest.items() if host != row["host"]]
        if row["order_certain"]:
            check(all(wall < row["wall"] for wall in others), f"certain, and older than another host's: {row}")
        elif others:
            check(row["wall"] - max(others) <= 2 * error + 1_000_000, f"not certain, {row['wall'] - max(others)} ns behind: {row}")
        else:
            check(False, f"not certain, and nothing of another host before: {row}")
        latest[row["host"]] = max(latest.get(row["host"], 0), row["wall"])


def test_text():
    """One heading, and a line for each sample with its host."""
    with two() as daemons, loads(daemons) as all_loads, tempfile.TemporaryFile("w+") as out:
        watch = start(daemons, out, "calls", "--count", "5", "--allow-loss")
        for load in all_loads:
            load.go()
        err = watch.communicate(timeout=perfd.PATIENCE)[1]
        equal(watch.returncode, 0, f"the status, {err!r}")
        for load in all_loads:
            load.done()
        out.seek(0)
        lines = [line.split("\t") for line in out.read().splitlines()]
        equal(lines[0][:4], ["HOST", "", "TIME", "CPU"], "the heading")
        for daemon in daemons:
            equal(sum(line[0] == url(daemon) for line in lines), 5, f"lines of {url(daemon)}")
            check(f"{url(daemon)}: 5 items, " in err, err)
        equal(len(lines), 11, "lines")
        check({line[1] for line in lines} <= {"", "~"}, f"marks: {lines}")


def test_output():
    """One file of both, which is not what stdout gets; one that cannot be written is said at once."""
    with two() as daemons, loads(daemons) as all_loads, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        file = os.path.join(folder, "file")
        err = run(daemons, "watch", "calls", "-o", os.path.join(folder, "no", "file"), status=1)[1]
        check("-o: " in err and err.count("No such file") == 1, err)
        watch = start(daemons, subprocess.PIPE, "calls", "--count", "5", "--allow-loss", "--json", "-o", file)
        for load in all_loads:
            load.go()
        out, err = watch.communicate(timeout=perfd.PATIENCE)
        equal((watch.returncode, out), (0, ""), f"the status and stdout, {err!r}")
        for load in all_loads:
            load.done()
        with open(file, encoding="utf-8") as f:
            items = rows(f.read())
    equal([sum(row.get("host") == url(d) and row["kind"] == "sample" for row in items) for d in daemons], [5, 5], "samples")
    equal(items[-1]["kind"], "sum", "the last line")


def test_reader_that_goes():
    """As of `| head`: both streams end, and no process is left."""
    with two() as daemons, loads(daemons) as all_loads:
        watch = start(daemons, subprocess.PIPE, "calls")
        for load in all_loads:
            load.go()
        check(watch.stdout.readline(), "a line")
        watch.stdout.close()
        check(watch.wait(perfd.PATIENCE) in (0, 4), f"the status: {watch.returncode}, {watch.stderr.read()!r}")
        watch.stderr.close()
        for load in all_loads:
            load.done()
        for daemon in daemons:
            wait_until(lambda d=daemon: d.status().n_subscribers == 0, "its stream to end")


def test_quiet_host():
    """One that has nothing to say does not keep the other's samples."""
    with two() as daemons, tempfile.TemporaryFile("w+") as out:
        for daemon in daemons:
            with daemon.client() as control:
                add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])})
        with daemons[1].client() as control:
            control.request(disable=pb.SelectRequest(names=["calls"]))
        watch = start(daemons, out, "calls", "--json")
        os.getppid()
        wait_until(lambda: os.fstat(out.fileno()).st_size and '"sample"' in os.pread(out.fileno(), 1 << 16, 0).decode(), "the sample")
        equal(finish(watch)[0], 0, "the status")


def test_host_that_ends():
    """With --reconnect never its stream says so, the others go on, and the status tells that one is missing."""
    with two() as daemons, tempfile.TemporaryFile("w+") as out:
        for daemon in daemons:
            with daemon.client() as control:
                add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])})
        watch = start(daemons, out, "calls", "--json", "--reconnect", "never")
        os.kill(daemons[1].pid, signal.SIGKILL)
        daemons[1].process.wait(perfd.PATIENCE)
        daemons[1].judged = True
        wait_until(lambda: os.getppid() and '"sample"' in os.pread(out.fileno(), 1 << 16, 0).decode(), "a sample of the other")
        code, err = finish(watch)
        equal(code, 1, f"the status, {err!r}")
        check(f"{url(daemons[1])}: perfctl: watch: " in err, err)


if __name__ == "__main__":
    perfd.main(globals())
