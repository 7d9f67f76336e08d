#!/usr/bin/python3
"""`perfctl count` and `stat` of several hosts, one of which goes away: it is connected again, the gap is said, what was counted before it
is printed, and the others go on. The hosts are daemons of this machine. Needs root."""
import contextlib
import os
import signal
import subprocess
import time

import perfd
from perfd import Daemon, check, equal, pb, wait_until
from relay import Relay
from test_control import PERFCTL
from test_hosts import finish, two, url
from test_hosts_away import NOTHING, Out, check_sum, config_of, flood, kill, of, ssh_of
from test_remote import Host

STAT = ["stat", "context-switches", "--json"]


def start(names, out, *words, **environment):
    return subprocess.Popen([PERFCTL, *(word for name in names for word in ("--host", name)), *words], stdin=subprocess.DEVNULL, stdout=out,
                            stderr=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, **environment})


def begin(daemons, out, *words):
    process = start([url(daemon) for daemon in daemons], out, *words)
    wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the streams to begin")
    return process


def has_sent(daemon, least=1):
    return any(subscriber.sent >= least for subscriber in daemon.ledger().subscribers)


def has_counted(daemon):
    """More than where the counters of each CPU began, of which alone stat makes no report."""
    return has_sent(daemon, 3 * len(perfd.online_cpus()))


def lines_of(out, name):
    """Of stat, which have no kind."""
    return [row for row in out.rows() if row["host"] == name and "kind" not in row]


def await_lines(out, name, least):
    wait_until(lambda: len(lines_of(out, name)) >= least, f"{least} lines of {name}")


def test_count():
    """kill -9 and a restart in the middle of two floods: a table of each stream, and the sums of their rows are what came."""
    with flood() as left, flood() as right, Out() as out, Daemon(config=config_of(left.pids)) as other, \
            Daemon(config=config_of(right.pids)) as first:
        count = begin([other, first], out, "count", "calls", "--by", "pid", "--json", "--queue", "64MiB")
        for load in left, right:
            load.go()
        wait_until(lambda: has_sent(first) and has_sent(other), "samples of both")
        kill(first)
        wait_until(lambda: out.count(url(first), "count"), "the table of what came until then")
        with Daemon(config=config_of(right.pids), directory=first.directory) as again:
            wait_until(lambda: out.count(url(first), "disconnected"), "the gap")
            wait_until(lambda: has_sent(again), "samples behind it")
            for load in left, right:
                load.done(stop=True)
            code, err = finish(count)
        equal(code, 4, f"the status, {err!r}")
        check("connected again after " in err, err)
        items = out.rows()
        for daemon, load, n_gaps in (other, left, 0), (first, right, 1):
            name = url(daemon)
            tables, (row,), gaps = of(items, name, "count"), of(items, name, "host"), of(items, name, "gap")
            equal((len(gaps), row["disconnected"], len(of(items, name, "start"))), (n_gaps, n_gaps, 1 + n_gaps), f"gaps of {name}")
            equal((sum(table["count"] for table in tables), row["counted"]), (row["received"],) * 2, f"what was counted of {name}")
            equal({table["key"]["pid"] for table in tables}, set(load.pids), f"keys of {name}")
            if n_gaps == 0:
                equal(row["counted"] + sum(row["lost"].values()), sum(load.counts), f"what was counted, and lost: {row}")
            for gap in gaps:
                check(0 < gap["from"] < gap["to"] and "it was killed" in gap["why"], f"the gap: {gap}")
        gap, = of(items, url(first), "gap")
        at = items.index(gap)
        last, = of(items[at:], url(first), "end")
        equal(sum(row["count"] for row in of(items[at:], url(first), "count")) + sum(last["lost"].values()),
              sum(row["since"]["occurred"] for row in of(items[at:], url(first), "event")), "what was counted and lost since the gap")
        check_count_sum(items)


def check_count_sum(items):
    """As of a watch, by another name."""
    check_sum([{**row, "printed": row["counted"]} if row["kind"] in ("host", "sum") else row for row in items])


def test_count_text():
    """The gap stands between two tables, and each has its heading."""
    with Out() as out, Daemon(config=config_of([os.getpid()])) as other, Daemon(config=config_of([os.getpid()])) as first:
        count = begin([other, first], out, "count", "calls", "--headings")
        wait_until(lambda: os.getppid() and has_sent(first), "samples")
        kill(first)
        with Daemon(config=config_of([os.getpid()]), directory=first.directory) as again:
            wait_until(lambda: again.status().n_subscribers, "its stream")
            wait_until(lambda: os.getppid() and has_sent(again), "samples of it")
            code, err = finish(count)
        equal(code, 4, f"the status, {err!r}")
        lines = [line for line in out.lines() if line.startswith(url(first) + "\t")]
        at, = [i for i, line in enumerate(lines) if "\t--- nothing came since " in line]
        check("it was killed" in lines[at], lines[at])
        for part in lines[:at], lines[at + 1:]:
            equal(sum("COUNT" in line for line in part), 1, f"headings in {part}")
            equal(sum("calls" in line for line in part), 1, f"rows in {part}")
        check("COUNTED" in err and "DISCONNECTED" in err, f"the table of hosts: {err!r}")


def test_stat():
    """Lines come again; --count is for all streams of a host together."""
    with Out() as out, Daemon(config=NOTHING) as other, Daemon(config=NOTHING) as first:
        stat = begin([other, first], out, *STAT, "--interval", "100ms", "--count", "120")
        await_lines(out, url(first), 3)
        kill(first)
        with Daemon(config=NOTHING, directory=first.directory):
            err = stat.communicate(timeout=perfd.PATIENCE)[1]
        equal(stat.returncode, 4, f"the status, {err!r}")
        check("connected again after " in err, err)
        items = out.rows()
        gap, = [row for row in items if row["host"] == url(first) and row.get("kind") == "gap"]
        check(0 < gap["from"] < gap["to"] and "it was killed" in gap["why"], f"the gap: {gap}")
        equal([len(lines_of(out, url(daemon))) for daemon in (other, first)], [120, 120], "lines")
        at = items.index(gap)
        since = [row for row in items[at:] if row["host"] == url(first) and "kind" not in row]
        check(since and since[0]["time"] < lines_of(out, url(first))[-1]["time"] + 1, f"lines behind the gap: {since}")


def test_stat_report():
    """Without intervals there is a report of what was counted until it was lost, and one of the time since."""
    with Out() as out, Daemon(config=NOTHING) as other, Daemon(config=NOTHING) as first:
        stat = begin([other, first], out, "stat", "context-switches", "--all-cpus")
        wait_until(lambda: has_counted(first) and has_counted(other), "reads of both")
        kill(first)
        with Daemon(config=NOTHING, directory=first.directory) as again:
            wait_until(lambda: again.status().n_subscribers and has_counted(again), "reads behind the gap")
            code, err = finish(stat)
        equal(code, 4, f"the status, {err!r}")
        lines = out.lines()
        for daemon, n in (other, 1), (first, 2):
            mine = [line for line in lines if line.startswith(url(daemon) + "\t")]
            equal(sum("Performance counter stats" in line for line in mine), n, f"reports of {url(daemon)}: {mine}")
            equal(sum("context-switches" in line for line in mine), n, f"counts of {url(daemon)}: {mine}")
        at, = [i for i, line in enumerate(lines) if "\t--- nothing came since " in line]
        equal(sum("Performance counter stats" in line and line.startswith(url(first)) for line in lines[:at]), 1, "reports before the gap")


def test_stat_away_at_the_end():
    """The gap is the last line; in columns for programs it is said on stderr alone. A daemon that ends in order is away too."""
    for words, how in (["--json"], kill), (["--json"], Daemon.stop), (["--field-separator", ","], kill):
        with Out() as out, Daemon(config=NOTHING) as other, Daemon(config=NOTHING) as lost:
            stat = begin([other, lost], out, "stat", "context-switches", "--interval", "100ms", *words)
            wait_until(lambda o=out, d=lost: any(line.find(url(d)) >= 0 for line in o.lines()), "a line")
            how(lost)
            n = len(out.lines())
            wait_until(lambda o=out, k=n: len(o.lines()) > k + 10, "lines of the other")
            code, err = finish(stat)
            equal(code, 4, f"the status, {err!r}")
            check("trying to connect again" in err, err)
            if words == ["--json"]:
                last = [row for row in out.rows() if row["host"] == url(lost)][-1]
                equal((last["kind"], last["reason"]), ("gap", "disconnected"), f"the last line: {last}")
            else:
                equal([line for line in out.lines() if "nothing came" in line], [], "gaps among columns")


def test_never():
    """With --reconnect never the others go on, and the status tells."""
    for words in ["count", "calls"], ["stat", "context-switches", "--interval", "100ms"]:
        config = config_of([os.getpid()])
        with Out() as out, Daemon(config=config) as other, Daemon(config=config) as lost:
            process = begin([other, lost], out, *words, "--json", "--reconnect", "never")
            wait_until(lambda d=lost: os.getppid() and has_sent(d), "samples")
            kill(lost)
            wait_until(lambda o=other, n=other.ledger().subscribers[0].sent: os.getppid() and o.ledger().subscribers[0].sent > n,
                       "that the other goes on")
            code, err = finish(process)
            equal(code, 1, f"the status of {words}, {err!r}")
            check("trying to connect" not in err and f"{url(lost)}: perfctl: {words[0]}: " in err, err)
    with two() as daemons:
        for words in ["count", "calls"], ["stat"]:
            done = subprocess.run([PERFCTL, "--socket", daemons[0].control, *words, "--reconnect", "1m"], capture_output=True, text=True,
                                  timeout=perfd.PATIENCE, check=False)
            equal(done.returncode, 2, f"the status of {words} without --host, {done.stderr!r}")
            check("--reconnect is for hosts that --host names" in done.stderr, done.stderr)


def test_stat_by_ssh():
    """It has two connections: that which keeps the counters, and the stream. Whichever is lost, both are made again."""
    with Host() as host, two() as daemons:
        names = [url(daemons[0]), "web1" + daemons[1].control]
        for which in 0, 1:
            with Out() as out:
                stat = start(names, out, *STAT, "--interval", "100ms", PERFD_SSH=host.at("ssh"))
                await_lines(out, names[1], 2)
                os.kill(ssh_of(stat)[which], signal.SIGKILL)
                wait_until(lambda o=out: o.count(names[1], "disconnected"), "the gap")
                await_lines(out, names[1], len(lines_of(out, names[1])) + 2)
                code, err = finish(stat)
                equal(code, 4, f"the status, {err!r}")
            wait_until(lambda: not daemons[1].status().n_subscribers and not events_of(daemons[1]), "its counters to end")


def test_killed_relay():
    """What perfd knows of wall time is older than the stream behind the gap, which ends where that stream begins. By its clock, if the
    client may ask for the status, else by ours."""
    keys = "control: true"
    for words, kind, grants in (["count", "calls", "--json"], "count", "events: ['*'], raw: true"), (["count", "calls", "--json"], "count", keys), \
            ([*STAT, "--interval", "100ms"], None, keys):
        with Daemon(config=config_of([os.getpid()])) as daemon, Out() as out, \
                Relay(daemon, f"[{{ name: client, {grants} }}]", perfd_keys=f", control: {daemon.control}") as relay:
            name = f"tls://localhost:{relay.port}"
            process = start([name], out, "--tls", relay.folder.name, *words, "--reconnect", "10m")
            # some packets of them: the relay that is killed may still have the last one
            wait_until(lambda d=daemon: os.getppid() and has_sent(d, 30 if kind else 1), "samples")
            if not kind:
                await_lines(out, name, 2)
            relay.process.kill()
            relay.process.wait(perfd.PATIENCE)
            wait_until(lambda o=out, d=daemon: not d.status().n_subscribers and (o.count(name, "count") or not kind),
                       "the stream to end, and what was counted")
            before = time.time_ns()
            relay.start()
            wait_until(lambda o=out: o.count(name, "disconnected"), "the gap")
            gap, = (row for row in out.rows() if row.get("reason") == "disconnected")
            check(gap["from"] < before <= gap["to"] <= time.time_ns(), f"the gap of {words}, {grants}, with the relay back at {before}, at {time.time_ns()}: {gap}")
            code, err = finish(process)
            equal(code, 4, f"the status, {err!r}")


def events_of(daemon):
    with daemon.client() as client:
        return list(client.request(list=pb.ListRequest()).list.events)


def test_one_host():
    """One host ends with a status and what was counted, unless --reconnect is given."""
    for words, printed in (["count", "calls", "--json"], "count"), ([*STAT, "--all-cpus"], "context-switches"):
        config = config_of([os.getpid()])
        for reconnect in False, True:
            with contextlib.ExitStack() as stack:
                out, lost = stack.enter_context(Out()), stack.enter_context(Daemon(config=config))
                process = begin([lost], out, *words, *(["--reconnect", "1m"] if reconnect else []))
                has_begun = has_sent if words[0] == "count" else has_counted
                wait_until(lambda d=lost, has=has_begun: os.getppid() and has(d), "samples")
                kill(lost)
                if reconnect:
                    again = stack.enter_context(Daemon(config=config, directory=lost.directory))
                    wait_until(lambda d=again: d.status().n_subscribers and os.getppid() and has_begun(d), "samples behind the gap")
                    process.send_signal(signal.SIGINT)
                err = process.communicate(timeout=perfd.PATIENCE)[1]
                equal(process.returncode, 4 if reconnect else 1, f"the status of {words}, {err!r}")
                found = [line for line in out.lines() if f'"{printed}"' in line and '"kind":"event"' not in line]
                equal(len(found), 1 + reconnect, f"tables or reports of {words}: {found}")


if __name__ == "__main__":
    perfd.main(globals())
