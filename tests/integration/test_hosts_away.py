#!/usr/bin/python3
"""`perfctl watch` of several hosts, one of which goes away in the middle of a flood: it is connected again, the gap is an item, the
others go on, nothing is doubled, and the closing ledger has a row for each. The hosts are daemons of this machine. Needs root."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_control import PERFCTL
from test_hosts import RATE, finish, rows, start, two, url
from test_perfctl import GETPPID
from test_promises import CPUS
from test_remote import Host

NOTHING = "version: 1\n"


def config_of(pids):
    """Calls of these processes, also after a restart."""
    return f"version: 1\ntargets: {{t: {{pids: {pids}}}}}\ngroups: {{g: {{target: t, events: [{{event: '{GETPPID}', name: calls}}]}}}}\n"


def kill(daemon):
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.process.wait(perfd.PATIENCE)
    daemon.judged = True


def written(out):
    """The whole lines so far."""
    return os.pread(out.fileno(), 1 << 30, 0).decode().splitlines(keepends=True)


def has(out, host, kind, least=1):
    begin = f'{{"host":"{host}"'
    return sum(line.startswith(begin) and f'"kind":"{kind}"' in line for line in written(out)) >= least


def await_sample(out, name, least=1):
    """Of calls of this process."""
    wait_until(lambda: os.getppid() and has(out, name, "sample", least), f"a sample of {name}")


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
    with Workload("flood", 0, RATE, cpus=CPUS) as load:
        yield load
        load.exit()


def test_killed_daemon():
    """kill -9 and a restart of one, while both are flooded."""
    with flood() as left, flood() as right, tempfile.TemporaryFile("w+") as out, Daemon(config=config_of(left.pids)) as other, \
            Daemon(config=config_of(right.pids)) as first:
        watch = start([other, first], out, "calls", "--json", "--queue", "64MiB")
        for load in left, right:
            load.go()
        wait_until(lambda: has(out, url(first), "sample") and has(out, url(other), "sample"), "samples of both")
        kill(first)
        with Daemon(config=config_of(right.pids), directory=first.directory):
            wait_until(lambda: has(out, url(first), "gap"), "the gap")
            seen = sum(f'"{url(first)}"' in line for line in written(out))
            wait_until(lambda: sum(f'"{url(first)}"' in line for line in written(out)) > seen + 10, "samples behind it")
            for load in left, right:
                load.done(stop=True)
            code, err = finish(watch)
        equal(code, 4, f"the status, {err!r}")
        for text in "it was killed, or its log says why", "trying to connect again, at intervals of up to 30 s", "connected again after ":
            equal(err.count(text), 1, f"{text!r} in {err!r}")
        items = rows("".join(written(out)))
        check_host(items, url(other), left.counts, 0)
        check_host(items, url(first), right.counts, 1)
        check_last_stream(items, url(first))
        check_sum(items)


def test_stopped_daemon():
    """One that is stopped for longer than --hold: the other's samples come meanwhile, and it is not lost."""
    config = config_of([os.getpid()])
    with tempfile.TemporaryFile("w+") as out, Daemon(config=config) as other, Daemon(config=config) as stopped:
        watch = start([other, stopped], out, "calls", "--json", "--hold", "100ms")
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            await_sample(out, url(other), 3)
            check(not has(out, url(stopped), "sample"), "a sample of one that is stopped")
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        await_sample(out, url(stopped), 3)
        code, err = finish(watch)
        items = rows("".join(written(out)))
        lost = sum(items[-1]["lost"].values())
        equal(code, 4 if lost else 0, f"the status, {err!r}")
        equal(items[-1]["disconnected"], 0, "how often one was lost")
        check_sum(items)


def test_away_at_the_end():
    """The gap is the last item; --allow-loss is for it too. A daemon that ends in order has its closing ledger."""
    for words, how, status, why in ([], kill, 4, "it was killed"), (["--allow-loss"], Daemon.stop, 0, "perfd was stopped"):
        config = config_of([os.getpid()])
        with tempfile.TemporaryFile("w+") as out, Daemon(config=config) as other, Daemon(config=config) as lost:
            watch = start([other, lost], out, "calls", "--json", *words)
            await_sample(out, url(lost))
            how(lost)
            await_sample(out, url(other), 10)
            code, err = finish(watch)
            equal(code, status, f"the status, {err!r}")
            items = rows("".join(written(out)))
            gap, = of(items, url(lost), "gap")
            check(why in gap["why"] and gap["to"] > gap["from"], gap)
            equal(len(of(items, url(lost), "end")), int(how is Daemon.stop), "its closing ledgers")
            row, = of(items, url(lost), "host")
            equal((row["status"], row["disconnected"]), (status, 1), f"its row: {row}")
            check_sum(items)


def test_added_again():
    """What watch has added is added again, and shown in text: a line for the gap, a table with a row for each host and the sum."""
    with tempfile.TemporaryFile("w+") as out, Daemon(config=NOTHING) as other, Daemon(config=NOTHING) as first:
        watch = start([other, first], out, GETPPID, "--pid", str(os.getpid()))
        kill(first)
        with Daemon(config=NOTHING, directory=first.directory) as again:
            wait_until(lambda: again.status().n_subscribers == 1, "its stream")

            def is_seen():
                os.getppid()
                return any(line.startswith(url(first)) and "\t" + GETPPID in line for line in written(out))

            wait_until(is_seen, "a sample of the new event")
            code, err = finish(watch)
        equal(code, 4, f"the status, {err!r}")
        lines = written(out)
        equal(sum("\tTIME\t" in line for line in lines), 1, "headings")
        gap, = [line for line in lines if "--- nothing came since " in line]
        check(gap.startswith(url(first)) and "it was killed" in gap, gap)
        table = [line.split() for line in err.splitlines()[-4:]]
        equal([row[0] for row in table], ["HOST", url(other), url(first), "sum"], f"the table: {err!r}")
        equal([row[6] for row in table], ["DISCONNECTED", "0", "1", "1"], f"the table: {err!r}")


def test_refused():
    """Back without the event: that ends this host with the reason, and not the other one."""
    config = config_of([os.getpid()])
    with tempfile.TemporaryFile("w+") as out, Daemon(config=config) as other, Daemon(config=config) as first:
        watch = start([other, first], out, "calls", "--json")
        kill(first)
        with Daemon(config=NOTHING, directory=first.directory):
            wait_until(lambda: has(out, url(first), "gap"), "that it is given up")
            await_sample(out, url(other))
            code, err = finish(watch)
        equal(code, 1, f"the status, {err!r}")
        check(f"{url(first)}: perfctl: watch: " in err and "'calls'" in err, err)
        row, = of(rows("".join(written(out))), url(first), "host")
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
    """The ssh(1) that a process of this watch has started."""
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(child) for child in f.read().split()]

    ssh, = [grandchild for child in children(watch.pid) for grandchild in children(child)]
    return ssh


def test_killed_ssh():
    """The connection to one of two is killed in the middle of a flood; perfd there has it run on."""
    with Host() as host, two() as daemons, contextlib.ExitStack() as stack, tempfile.TemporaryFile("w+") as out:
        names = [url(daemons[0]), "web1" + daemons[1].control]
        loads = [stack.enter_context(flood()) for _ in daemons]
        for daemon, load in zip(daemons, loads):
            add(stack.enter_context(daemon.client()), {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        watch = subprocess.Popen([PERFCTL, "--host", names[0], "--host", names[1], "watch", "calls", "--json", "--queue", "64MiB"],
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                 env={**os.environ, "PERFD_SSH": host.at("ssh")})
        wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the watches to begin")
        for load in loads:
            load.go()
        wait_until(lambda: has(out, names[1], "sample"), "a sample by ssh")
        os.kill(ssh_of(watch), signal.SIGKILL)
        wait_until(lambda: has(out, names[1], "gap"), "the gap")
        seen = len(written(out))
        wait_until(lambda: any(f'"{names[1]}"' in line and '"kind":"sample"' in line for line in written(out)[seen:]), "samples behind it")
        for load in loads:
            load.done(stop=True)
        code, err = finish(watch)
        equal(code, 4, f"the status, {err!r}")
        check(f"{names[1]}: perfctl: watch: the connection to ssh://web1 has ended" in err, err)
        items = [json.loads(line) for line in written(out)]
        check_host(items, names[0], loads[0].counts, 0)
        check_host(items, names[1], loads[1].counts, 1)
        check_last_stream(items, names[1])
        check_sum(items)


if __name__ == "__main__":
    perfd.main(globals())
