#!/usr/bin/python3
"""`perfctl watch` of several hosts, one of which goes away in the middle of a flood: it is connected again, the gap is an item, the
others go on, nothing is doubled, and the closing ledger has a row for each. The hosts are daemons of this machine. Needs root."""
import collections
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import tempfile
import termios
import time

import doings
import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import Relay
from test_control import PERFCTL
from test_hosts import RATE, finish, start, two, url
from test_perfctl import GETPPID
from test_promises import CPUS
from test_remote import Host

NOTHING = "version: 1\n"
FLOOD = RATE // 5  # calls a second of each process; four of them are traced, and run until both hosts have samples again
LINE = re.compile(rb'{"host":"([^"]+)".*?"kind":"([a-z_]+)"(?:,"reason":"([a-z_]+)")?')


def config_of(pids):
    """Calls of these processes, also after a restart."""
    return f"version: 1\ntargets: {{t: {{pids: {pids}}}}}\ngroups: {{g: {{target: t, events: [{{event: '{GETPPID}', name: calls}}]}}}}\n"


def kill(daemon):
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.process.wait(perfd.PATIENCE)
    daemon.judged = True


class Out:
    """What a watch prints, in a file that is read once while it grows; lines of JSON are counted by host and kind, or a gap's reason."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()
        self.counts, self.at, self.rest = collections.Counter(), 0, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def fileno(self):
        return self.file.fileno()

    def read(self, at):
        """From there to the end. A buffer of the size that is there: malloc would fill a larger one, under MALLOC_PERTURB_."""
        return os.pread(self.fileno(), os.fstat(self.fileno()).st_size - at, at)

    def count(self, host, kind):
        new = self.read(self.at)
        self.at += len(new)
        *lines, self.rest = (self.rest + new).split(b"\n")
        for line in lines:
            if found := LINE.match(line):
                host_of, kind_of, reason = (word and word.decode() for word in found.groups())
                self.counts[host_of, reason if kind_of == "gap" else kind_of] += 1
        return self.counts[host, kind]

    def lines(self):
        return self.read(0).decode().splitlines()

    def rows(self):
        return [json.loads(line) for line in self.lines()]


def await_sample(out, name, least=1):
    """Of calls of this process."""
    wait_until(lambda: os.getppid() and out.count(name, "sample") >= least, f"a sample of {name}")


def of(items, host, kind):
    return [row for row in items if row.get("host") == host and row["kind"] == kind]


def check_host(items, host, calls, n_gaps):
    """All that can be said of one: its streams, their gaps, and its row; gives how many samples it had."""
    samples, ends, gaps = of(items, host, "sample"), of(items, host, "end"), of(items, host, "gap")
    gaps = [gap for gap in gaps if gap["reason"] == "disconnected"]
    row, = of(items, host, "host")
    equal(len({(s["time"], s["cpu"], s["tid"]) for s in samples}), len(samples), f"samples of {host} that are there once")
    equal((len(gaps), row["disconnected"]), (n_gaps, n_gaps), f"gaps of {host}")
    for gap in gaps:
        check(0 < gap["from"] <= gap["to"] and gap["why"], f"a gap: {gap}")
        equal([s for s in samples if gap["from"] < s["wall"] < gap["to"]], [], f"samples in {gap}")
    equal((row["printed"], row["received"]), (len(samples), len(samples)), f"items of {host}")
    check(len(samples) <= sum(calls), f"{len(samples)} samples of {sum(calls)} calls")
    for end in ends:
        check(end["balanced"], f"a closing ledger: {end}")
        for reason, count in end["lost"].items():
            check(row["lost"][reason] >= count, f"{reason}: {end['lost']} in {row}")
    if n_gaps == 0:
        equal(len(samples) + sum(row["lost"].values()), sum(calls), f"samples of {host}, and what was lost: {row}")
        equal((row["loss_exact"], row["away"], row["reason"]), (True, 0, "stopped"), f"the row of {host}")
    else:
        check(not row["loss_exact"] and row["away"] > 0, f"the row of {host}: {row}")
    return len(samples)


def check_last_stream(items, host):
    """What came since the last gap, and each loss of it, is what its event has counted."""
    last = max(i for i, row in enumerate(items) if row.get("host") == host and row["kind"] == "gap" and row["reason"] == "disconnected")
    rest = items[last:]
    lost = sum(of(rest, host, "end")[0]["lost"].values())
    own, = of(rest, host, "subscriber")
    samples = of(rest, host, "sample")
    equal(len(samples), own["sent"], "samples since the gap")
    equal(len(samples) + lost, sum((e.get("since") or e)["occurred"] for e in of(rest, host, "event")), f"calls since the gap, {lost} lost")
    check(samples, "no sample since the gap")


def check_sum(items):
    hosts, total = [row for row in items if row["kind"] == "host"], items[-1]
    equal((total["kind"], total["hosts"]), ("sum", len(hosts)), "the last line")
    for name in "printed", "received", "missed", "disconnected", "away":
        equal(total[name], sum(row[name] for row in hosts), f"the sum of {name}")
    lost = {reason for row in hosts for reason in row["lost"]}
    equal(total["lost"], {reason: sum(row["lost"].get(reason, 0) for row in hosts) for reason in lost}, "the sum of losses")


@contextlib.contextmanager
def flood():
    with Workload("flood", 0, FLOOD, cpus=CPUS) as load:
        yield load
        load.exit()


def test_killed_daemon():
    """kill -9 and a restart of one, while both are flooded."""
    with flood() as left, flood() as right, Out() as out, Daemon(config=config_of(left.pids)) as other, \
            Daemon(config=config_of(right.pids)) as first:
        watch = start([other, first], out, "calls", "--json", "--queue", "64MiB")
        for load in left, right:
            load.go()
        wait_until(lambda: out.count(url(first), "sample") and out.count(url(other), "sample"), "samples of both")
        kill(first)
        with Daemon(config=config_of(right.pids), directory=first.directory):
            wait_until(lambda: out.count(url(first), "disconnected"), "the gap")
            seen = out.count(url(first), "sample")
            wait_until(lambda: out.count(url(first), "sample") > seen, "samples behind it")
            for load in left, right:
                load.done(stop=True)
            code, err = finish(watch)
        equal(code, 4, f"the status, {err!r}")
        for text in "it was killed, or its log says why", "trying to connect again, at intervals of up to 30 s", "connected again after ":
            equal(err.count(text), 1, f"{text!r} in {err!r}")
        items = out.rows()
        check_host(items, url(other), left.counts, 0)
        check_host(items, url(first), right.counts, 1)
        check_last_stream(items, url(first))
        check_sum(items)


def test_stopped_daemon():
    """One that is stopped for longer than --hold: the other's samples come meanwhile, and it is not lost."""
    config = config_of([os.getpid()])
    with Out() as out, Daemon(config=config) as other, Daemon(config=config) as stopped:
        watch = start([other, stopped], out, "calls", "--json", "--hold", "100ms")
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: doings.state_of(stopped.pid) == "T", "it to stop")
            begin, seen = time.clock_gettime_ns(time.CLOCK_MONOTONIC), out.count(url(other), "sample")
            await_sample(out, url(other), seen + 3)
            late = [row for row in map(json.loads, out.lines()[:-1]) if row["kind"] == "sample" and row["host"] == url(stopped) and row["time"] > begin]
            equal(late, [], "samples of one that is stopped")
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        await_sample(out, url(stopped), 3)
        code, err = finish(watch)
        items = out.rows()
        lost = sum(items[-1]["lost"].values())
        equal(code, 4 if lost else 0, f"the status, {err!r}")
        equal(items[-1]["disconnected"], 0, "how often one was lost")
        check_sum(items)


def test_away_at_the_end():
    """The gap is the last item; --allow-loss is for it too. A daemon that ends in order has its closing ledger."""
    for words, how, status, why in ([], kill, 4, "it was killed"), (["--allow-loss"], Daemon.stop, 0, "perfd was stopped"):
        config = config_of([os.getpid()])
        with Out() as out, Daemon(config=config) as other, Daemon(config=config) as lost:
            watch = start([other, lost], out, "calls", "--json", *words)
            await_sample(out, url(lost))
            how(lost)
            await_sample(out, url(other), 10)
            code, err = finish(watch)
            equal(code, status, f"the status, {err!r}")
            items = out.rows()
            gap, = of(items, url(lost), "gap")
            check(why in gap["why"] and gap["to"] > gap["from"], gap)
            equal(len(of(items, url(lost), "end")), int(how is Daemon.stop), "its closing ledgers")
            row, = of(items, url(lost), "host")
            equal((row["status"], row["disconnected"], row["reason"]), (status, 1, "disconnected"), f"its row: {row}")
            check_sum(items)


def test_added_again():
    """What watch has added is added again, and shown in text: a line for the gap, a table with a row for each host and the sum."""
    with Out() as out, Daemon(config=NOTHING) as other, Daemon(config=NOTHING) as first:
        watch = start([other, first], out, GETPPID, "--pid", str(os.getpid()))
        kill(first)
        with Daemon(config=NOTHING, directory=first.directory) as again:
            wait_until(lambda: again.status().n_subscribers == 1, "its stream")

            def is_seen():
                os.getppid()
                return any(line.startswith(url(first)) and "\t" + GETPPID in line for line in out.lines())

            wait_until(is_seen, "a sample of the new event")
            code, err = finish(watch)
        equal(code, 4, f"the status, {err!r}")
        lines = out.lines()
        equal(sum("\tTIME\t" in line for line in lines), 1, "headings")
        gap, = [line for line in lines if "--- nothing came since " in line]
        check(gap.startswith(url(first)) and "it was killed" in gap, gap)
        table = [line.split() for line in err.splitlines()[-4:]]
        equal([row[0] for row in table], ["HOST", url(other), url(first), "sum"], f"the table: {err!r}")
        equal([row[6] for row in table], ["DISCONNECTED", "0", "1", "1"], f"the table: {err!r}")


def test_refused():
    """Back without the event: that ends this host with the reason, and not the other one."""
    config = config_of([os.getpid()])
    with Out() as out, Daemon(config=config) as other, Daemon(config=config) as first:
        watch = start([other, first], out, "calls", "--json")
        kill(first)
        with Daemon(config=NOTHING, directory=first.directory):
            wait_until(lambda: out.count(url(first), "disconnected"), "that it is given up")
            await_sample(out, url(other))
            code, err = finish(watch)
        equal(code, 1, f"the status, {err!r}")
        check(f"{url(first)}: perfctl: watch: " in err and "'calls'" in err, err)
        row, = of(out.rows(), url(first), "host")
        equal((row["status"], row["reason"]), (1, "failed"), f"its row: {row}")


def test_how_long():
    """--reconnect TIME and never; --for ends a host that is away; a host that was never there is not tried again."""
    config = config_of([os.getpid()])
    for words, said, status in (["--reconnect", "300ms"], "is not tried any more", 3), \
            (["--reconnect", "10m", "--for", "1s"], "trying to connect again", 4), (["--reconnect", "never"], "it was killed", 1):
        with Daemon(config=config) as lost:
            watch = subprocess.Popen([PERFCTL, "--host", url(lost), "watch", *words, "calls"], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            wait_until(lambda d=lost: d.status().n_subscribers, "the watch to begin")
            kill(lost)
            err = watch.communicate(timeout=perfd.PATIENCE)[1]
            equal(watch.returncode, status, f"the status of {words}, {err!r}")
            check(said in err, f"{words}: {err!r}")
    with Daemon(config=config) as other:
        watch = subprocess.Popen([PERFCTL, "--host", url(other), "--host", "unix:/nowhere/x.sock", "watch", "calls", "--for", "100ms"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        err = watch.communicate(timeout=perfd.PATIENCE)[1]
        equal(watch.returncode, 3, f"the status, {err!r}")
        check("trying to connect" not in err, err)


def ssh_of(watch):
    """The ssh(1)s that processes of this watch have started, in their order."""
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(child) for child in f.read().split()]

    return [grandchild for child in children(watch.pid) for grandchild in children(child)]


def start_by_ssh(host, names, out, *words):
    return subprocess.Popen([PERFCTL, *(word for name in names for word in ("--host", name)), "watch", *words], stdin=subprocess.DEVNULL,
                            stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env={**os.environ, "PERFD_SSH": host.at("ssh")})


def test_added_by_ssh():
    """An added event has two connections: that which keeps it, and the stream. Whichever is lost, both are made again."""
    with Host() as host, two() as daemons:
        names = [url(daemons[0]), "web1" + daemons[1].control]
        for which in 0, 1:
            with Out() as out:
                watch = start_by_ssh(host, names, out, GETPPID, "--pid", str(os.getpid()), "--json")
                wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the watches to begin")
                await_sample(out, names[1])
                os.kill(ssh_of(watch)[which], signal.SIGKILL)
                wait_until(lambda o=out: os.getppid() and o.count(names[1], "disconnected"), "the gap")
                await_sample(out, names[1], out.count(names[1], "sample") + 1)
                code, err = finish(watch)
                equal(code, 4, f"the status, {err!r}")
                row, = of(out.rows(), names[1], "host")
                equal((row["disconnected"], row["reason"]), (1, "stopped"), f"its row: {row}")
            wait_until(lambda: not daemons[1].status().n_subscribers and not daemons[1].client().request(list=pb.ListRequest()).list.events,
                       "the added event to end")


def test_killed_ssh():
    """The connection to one of two is killed in the middle of a flood; perfd there has it run on."""
    with Host() as host, two() as daemons, contextlib.ExitStack() as stack, Out() as out:
        names = [url(daemons[0]), "web1" + daemons[1].control]
        loads = [stack.enter_context(flood()) for _ in daemons]
        for daemon, load in zip(daemons, loads):
            add(stack.enter_context(daemon.client()), {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        watch = start_by_ssh(host, names, out, "calls", "--json", "--queue", "64MiB")
        wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the watches to begin")
        for load in loads:
            load.go()
        wait_until(lambda: out.count(names[1], "sample"), "a sample by ssh")
        os.kill(ssh_of(watch)[0], signal.SIGKILL)
        wait_until(lambda: out.count(names[1], "disconnected"), "the gap")
        seen = out.count(names[1], "sample")
        wait_until(lambda: out.count(names[1], "sample") > seen, "samples behind it")
        for load in loads:
            load.done(stop=True)
        code, err = finish(watch)
        equal(code, 4, f"the status, {err!r}")
        check(f"{names[1]}: perfctl: watch: the connection to ssh://web1 has ended" in err, err)
        items = out.rows()
        check_host(items, names[0], loads[0].counts, 0)
        check_host(items, names[1], loads[1].counts, 1)
        check_last_stream(items, names[1])
        check_sum(items)


def test_tls():
    """perfd-relay is killed in the middle of a flood, and perfd behind it; a certificate that was revoked ends that host for good."""
    with two() as daemons, Relay(daemons[1]) as relay, contextlib.ExitStack() as stack, Out() as out:
        names = [url(daemons[0]), f"tls://localhost:{relay.port}"]
        loads = [stack.enter_context(flood()) for _ in daemons]
        for daemon, load in zip(daemons, loads):
            add(stack.enter_context(daemon.client()), {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        watch = subprocess.Popen([PERFCTL, "--tls", relay.folder.name, "--host", names[0], "--host", names[1], "watch", "calls", "--json",
                                  "--queue", "64MiB"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the watches to begin")
        for load in loads:
            load.go()
        wait_until(lambda: out.count(names[1], "sample"), "a sample by TLS")
        relay.process.kill()
        relay.process.wait(perfd.PATIENCE)
        relay.start()
        wait_until(lambda: out.count(names[1], "disconnected"), "the gap")
        relay.ca.revoke("client")
        relay.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemons[1].status().n_subscribers == 0, "its stream to end")
        for load in loads:
            load.done(stop=True)
        code, err = finish(watch)
        equal(code, 1, f"the status, {err!r}")
        check("revoked" in err and "connected again after" in err, err)
        items = out.rows()
        check_host(items, names[0], loads[0].counts, 0)
        check_host(items, names[1], loads[1].counts, 1)
        check_sum(items)


def test_count_and_keys():
    """--count is for all streams of a host together; Ctrl-C in an attempt that hangs ends it at once, with the ledger."""
    config = config_of([os.getpid()])
    with Out() as out, Daemon(config=config) as other, Daemon(config=config) as first:
        watch = start([other, first], out, "calls", "--json", "--count", "30", "--allow-loss")
        await_sample(out, url(first))
        check(out.count(url(first), "sample") < 30, "its 30 samples are there already")
        kill(first)
        with Daemon(config=config, directory=first.directory):
            wait_until(lambda: os.getppid() and watch.poll() is not None, "the watch to end")
            err = watch.communicate()[1]
        equal(watch.returncode, 0, f"the status, {err!r}")
        items = out.rows()
        equal([len(of(items, url(d), "sample")) for d in (other, first)], [30, 30], "samples")

    with Out() as out, Daemon(config=config) as other, Daemon(config=config) as first:
        watch = start([other, first], out, "calls", "--json")
        kill(first)
        os.unlink(first.control)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(first.control)
            silent.listen()
            silent.settimeout(perfd.PATIENCE)
            with silent.accept()[0]:
                code, err = finish(watch)
        equal(code, 4, f"the status, {err!r}")
        items = out.rows()
        equal(len(of(items, url(first), "gap")), 1, "gaps")
        check_sum(items)


def test_typed():
    """Ctrl-C at a terminal, which each process gets by itself: while one waits for its next attempt, and while an attempt hangs."""
    config = config_of([os.getpid()])
    for hangs in False, True:
        with Out() as out, Daemon(config=config) as other, Daemon(config=config) as first, contextlib.ExitStack() as stack:
            master, terminal = pty.openpty()
            stack.callback(os.close, master)
            watch = subprocess.Popen([PERFCTL, "--host", url(other), "--host", url(first), "watch", "calls", "--json"], stdin=terminal,
                                     stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                     preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            os.close(terminal)
            wait_until(lambda o=other, f=first: o.status().n_subscribers and f.status().n_subscribers, "the watches to begin")
            kill(first)
            if hangs:
                os.unlink(first.control)
                silent = stack.enter_context(socket.socket(socket.AF_UNIX))
                silent.bind(first.control)
                silent.listen()
                silent.settimeout(perfd.PATIENCE)
                stack.enter_context(silent.accept()[0])
            else:  # which is said of the first attempt, and not again of the others
                while "nobody listens" not in watch.stderr.readline():
                    pass
            os.write(master, b"\x03")
            err = watch.communicate(timeout=perfd.PATIENCE)[1]
            equal(watch.returncode, 4, f"the status, {err!r}")
            items = out.rows()
            equal(len(of(items, url(first), "gap")), 1, "gaps")
            check_sum(items)


if __name__ == "__main__":
    perfd.main(globals())
