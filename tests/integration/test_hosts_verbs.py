#!/usr/bin/python3
"""Each verb that makes sense on several hosts, on two of them: its rows begin with the host, in the order in which hosts were given, and
what it changes is changed on both. The hosts are daemons of this machine. Needs root."""
import json
import os
import subprocess
import tempfile

import perfd
from perfd import Daemon, add, check, equal, pb
from test_control import PERFCTL
from test_hosts import rows, run, start, two, url
from test_perfctl import GETPPID

READS = [["status"], ["list"], ["ledger"], ["doctor"], ["version"], ["show", "calls"], ["available", "cpu-*"]]
ONE = [["emit", "external:x", "a=1"], ["metrics"]]  # what changes nothing that two hosts have, or what another program reads


def with_calls(daemons):
    for daemon in daemons:
        with daemon.client() as control:
            add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])})


def check_rows(daemons, out, what):
    """Of JSON: the first member of each is the host, and hosts are in turn."""
    found = [next(iter(json.loads(line).items())) for line in out.splitlines()]
    names = [url(daemon) for daemon in daemons]
    equal({key for key, _ in found}, {"host"}, f"the first member of {what}")
    order = [name for _, name in found]
    equal(order, sorted(order, key=names.index), f"the order of hosts of {what}")
    equal(set(order), set(names), f"the hosts of {what}")


def check_lines(daemons, out, what):
    names = [url(daemon) for daemon in daemons]
    firsts = [line.split("\t")[0] for line in out.splitlines()]
    equal((set(firsts), firsts), (set(names), sorted(firsts, key=names.index)), f"what lines of {what} begin with")


def test_reads():
    with two() as daemons:
        with_calls(daemons)
        for words in READS:
            check_rows(daemons, run(daemons, *words, "--json")[0], words)
            check_lines(daemons, run(daemons, *words)[0], words)


def of_both(daemons, member):
    """This member of the row of `calls`, on each."""
    return [row[member] for row in rows(run(daemons, "list", "calls", "--json")[0])]


def test_changes():
    with two() as daemons:
        run(daemons, "add", GETPPID, "--name", "calls")
        for words, member, value in ((["disable", "calls"], "enabled", False), (["enable", "calls"], "enabled", True),
                                     (["filter", "calls", "common_pid == 1"], "filter", "common_pid == 1"),
                                     (["period", "calls", "7"], "period", 7)):
            run(daemons, *words)
            equal(of_both(daemons, member), [value] * 2, f"behind {words}")
        run(daemons, "remove", "calls")
        equal(run(daemons, "list", "--json")[0], "", "what runs behind remove")
        for words in ["remove", "calls"], ["filter", "calls", "pid == 1"], ["enable", "calls"]:
            err = run(daemons, *words, status=1)[1]
            check(all(f"{url(daemon)}: perfctl: " in err for daemon in daemons), f"{words}: {err!r}")


def test_configurations():
    """validate, plan, apply and reload; a file with a mistake changes nothing, and each host says it."""
    with two() as daemons, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        good, bad = os.path.join(folder, "good.yaml"), os.path.join(folder, "bad.yaml")
        for path, event in (good, "cpu-clock"), (bad, "no:such_event"):
            with open(path, "w", encoding="ascii") as f:
                f.write(f"version: 1\ngroups: {{new: {{events: [{{event: '{event}', name: clock}}]}}}}\n")
        equal(run(daemons, "validate", good)[0], "", "what validate says of a file without a mistake")
        check_lines(daemons, run(daemons, "validate", bad)[0], "validate")
        out = run(daemons, "plan", good, "--json")[0]
        check_rows(daemons, out, "plan")
        equal([row["change"] for row in rows(out)], ["added"] * 2, "what is planned")
        err = run(daemons, "apply", bad, status=1)[1]
        check("nothing is changed on any host" in err and all(f"{url(daemon)}: " in err for daemon in daemons), err)
        out = run(daemons, "apply", good, "--json")[0]
        check_rows(daemons, out, "apply")
        equal([row["added"] for row in rows(out)], [1, 1], "what is added")


def test_apply_where_one_refuses():
    """The same file fits one host, and not the other, where a name is taken: nothing is changed on either."""
    with two() as daemons, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        file = os.path.join(folder, "new.yaml")
        with open(file, "w", encoding="ascii") as f:
            f.write("version: 1\ngroups: {new: {events: [{event: cpu-clock, name: clock}]}}\n")
        with daemons[1].client() as control:
            add(control, {"event": "dummy", "name": "clock"})
            before = run(daemons, "list")[0]
            err = run(daemons, "apply", file, status=1)[1]
            check("nothing is changed on any host" in err and f"{url(daemons[1])}: perfctl: apply: " in err, err)
            equal(run(daemons, "list")[0], before, "what runs")


def test_apply_where_one_only_reads():
    """By the socket for streams a file can be planned, and not be applied: nothing is changed on the other, whose turn is before."""
    with two() as daemons, tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        file = os.path.join(folder, "new.yaml")
        with open(file, "w", encoding="ascii") as f:
            f.write("version: 1\ngroups: {new: {events: [{event: cpu-clock, name: clock}]}}\n")
        words = [PERFCTL, "--host", url(daemons[0]), "--host", f"unix:{daemons[1].stream}", "apply", file]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        equal((done.returncode, done.stdout), (1, ""), done.stderr)
        check(f"unix:{daemons[1].stream}: perfctl: apply: apply is not granted" in done.stderr and "nothing is changed on any host" in done.stderr,
              done.stderr)
        equal(run(daemons, "list")[0], "", "what runs")


def test_streams():
    """watch, count and stat."""
    with two() as daemons:
        with_calls(daemons)
        names = {url(daemon) for daemon in daemons}
        with tempfile.TemporaryFile("w+") as out:
            watch = start(daemons, out, "calls", "--json", "--count", "1")
            os.getppid()
            equal(watch.wait(perfd.PATIENCE), 0, f"the status, {watch.stderr.read()!r}")
            watch.stderr.close()
            out.seek(0)
            items = rows(out.read())
        equal({row.get("host") for row in items if row["kind"] != "sum"}, names, "the hosts of watch")
        stat = rows(run(daemons, "stat", "cpu-clock", "--for", "100ms", "--json")[0])
        equal(sorted((row["host"], row["event"]) for row in stat), sorted((name, "cpu-clock") for name in names), "the hosts of stat")
        for row in stat:
            check(row["value"] > 0, row)


def test_count():
    with two() as daemons:
        with_calls(daemons)
        words = [word for daemon in daemons for word in ("--host", url(daemon))]
        count = subprocess.Popen([PERFCTL, *words, "count", "calls", "--by", "pid", "--json"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        perfd.wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the streams to begin")
        for _ in range(10):
            os.getppid()
        perfd.wait_until(lambda: all(s.matched >= 10 for daemon in daemons for s in daemon.ledger().subscribers), "the calls")
        count.send_signal(perfd.signal.SIGINT)
        out, err = count.communicate(timeout=perfd.PATIENCE)
        equal(count.returncode, 0, f"the status, {err!r}")
        items = rows(out)
        for daemon in daemons:
            row, = [row for row in items if row["kind"] == "count" and row["host"] == url(daemon)]
            equal(row["key"], {"pid": os.getpid()}, "the key")
            own, = [r for r in items if r["kind"] == "host" and r["host"] == url(daemon)]
            equal((own["counted"], own["disconnected"], own["lost"]), (row["count"], 0, {}), f"its row: {own}")
        equal((items[-1]["kind"], items[-1]["hosts"]), ("sum", 2), "the last line")


def test_one_host():
    with two() as daemons:
        for words in ONE:
            check("this is for one host" in run(daemons, *words, status=2)[1], f"{words}")


def test_environment():
    """$PERFD_HOST names several with blanks between them; an option is before it; one that is empty names none."""
    with two() as daemons:
        names = [url(daemon) for daemon in daemons]

        def status(value, *words, code=0):
            done = subprocess.run([PERFCTL, *words, "status", "--json"], capture_output=True, text=True, timeout=perfd.PATIENCE, check=False,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "PERFD_HOST": value})
            equal(done.returncode, code, f"the status with {value!r}: {done.stderr!r}")
            return rows(done.stdout) if code == 0 else done.stderr

        equal([row["host"] for row in status(" ".join(names))], names, "hosts")
        equal([row["host"] for row in status(f"  {names[1]}\t{names[0]} ")], names[::-1], "hosts with other blanks")
        equal([row["pid"] for row in status(names[0])], [daemons[0].pid], "who answers of one")
        equal([row["pid"] for row in status(" ".join(names), "--host", names[1])], [daemons[1].pid], "who answers with an option")
        equal([row["pid"] for row in status("nowhere.invalid", "--socket", daemons[1].control)], [daemons[1].pid], "who answers with a socket")
        for empty in "", "  ":
            equal([row["pid"] for row in status(empty, "--socket", daemons[0].control)], [daemons[0].pid], "who answers with none")
        check(f"{names[0]} is named twice" in status(f"{names[0]} {names[0]}", code=2), "what it says of one that is there twice")


def test_environment_reconnects():
    """One host of $PERFD_HOST is one that --reconnect is for."""
    with Daemon() as daemon, tempfile.TemporaryFile("w+") as out:
        with_calls([daemon])
        watch = subprocess.Popen([PERFCTL, "watch", "calls", "--json", "--reconnect", "1m", "--count", "1"], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                 env={**os.environ, "PERFD_HOST": url(daemon)})
        perfd.wait_until(lambda: daemon.status().n_subscribers, "the watch to begin")
        os.getppid()
        err = watch.communicate(timeout=perfd.PATIENCE)[1]
        equal(watch.returncode, 0, f"the status, {err!r}")
        out.seek(0)
        equal({row.get("host") for row in rows(out.read()) if row["kind"] == "sample"}, {url(daemon)}, "the host of its lines")


if __name__ == "__main__":
    perfd.main(globals())
