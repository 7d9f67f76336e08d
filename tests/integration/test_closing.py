#!/usr/bin/python3
"""A closing ledger is one place of each CPU: what the event's rows say was delivered while the stream was there, what the
subscriber's row says was matched and sent, and what came, are the same number, in the middle of a flow. Needs root."""
import contextlib
import json
import os
import re
import signal
import time

import perfd
from perfd import Daemon, Workload, add, check, equal, pb
from test_perfctl import run, start
from test_promises import CPUS, SYS_ENTER
from test_roles import ANN, BOB, NOTED, NUMBER, perfctl, rules, sample

SLOW = perfd.SANITIZER != "none"
ROUNDS = 5 if SLOW else 25
RATE = 2_000 if SLOW else 20_000  # that the subscribers keep pace


def own_of(rows):
    row, = [row for row in rows if row["kind"] == "subscriber"]
    return row


def check_closing(rows, n_came, names, delivered=None):
    """rows: the closing ledger of a stream that wants all of these events; delivered: to whom else, if that is known."""
    own, events = own_of(rows), [row for row in rows if row["kind"] == "event"]
    equal({row["event"] for row in events}, set(names), "events in the closing ledger")
    equal([row for row in rows if row["kind"] == "ring"], [], "rings of a stream without side records, that lost nothing")
    equal(own["queued"], 0, "items between the stream and its end")
    equal(own["matched"], own["sent"] + sum(own["dropped"].values()), "matched items")
    equal(own["sent"], n_came, "items that came")
    equal(own["dropped"]["late"], 0, "late items")
    check(all(row["since"] for row in events), f"a row does not say what was during the stream: {events}")
    for name in ("delivered", "occurred"):  # all that happened is wanted, and nothing is lost
        equal(sum(row["since"][name] for row in events), own["matched"], f"{name} during the stream, and matched")
    equal(sum(row["since"]["filtered"] + sum(row["since"]["lost"].values()) for row in events), 0, "filtered and lost")


def flow(load, client, *more):
    """Two events that go on, of which the streams here want one."""
    add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)},
        {"event": "raw_syscalls:sys_exit", "name": "returns", "target": pb.Target(pids=load.pids)}, *more)


def stop_after(client, items, n):
    """How many came when it was stopped after n."""
    came = 0
    for _ in items:
        came += 1
        if came == n:
            client.stop()
    return came


def finish(process):
    """What it still says on stdout and stderr, behind lines that were read already."""
    out, err = process.stdout.read(), process.stderr.read()
    process.wait(perfd.PATIENCE)
    return out, err


def watch_rows(out):
    """The items that perfctl printed, its word of the end, and the closing ledger."""
    lines = [json.loads(line) for line in out.splitlines()]
    end, = [line for line in lines if line["kind"] == "end"]
    return ([line for line in lines if line["kind"] == "sample"], end,
            [line for line in lines if line["kind"] in ("event", "ring", "subscriber")])


def test_streams_that_stop_in_a_flow():
    """By the socket, 25 times in each order, one after the other on the same events."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS) as load:
        flow(load, control)
        load.go()
        for i in range(2 * ROUNDS):
            with daemon.client(stream=True) as client:
                came = stop_after(client, client.subscribe(events=["calls"], order=i % 2, queue_bytes=1 << 26), 6)
                check(came >= 6, f"only {came} items")
                check_closing(client.end["ledger"], came, ["calls"])
        load.done(stop=True)
        load.exit()


def test_watch_with_a_count():
    """In shared memory: 6 is 6, whatever was on its way."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS) as load:
        flow(load, control)
        load.go()
        for i in range(ROUNDS):
            process = start(daemon, "watch", "calls", "--count", "6", "--json", "--order", ("time", "cpu")[i % 2])
            out, err = process.communicate(timeout=perfd.PATIENCE)
            equal((process.returncode, err), (0, ""), "how it ends")
            items, end, rows = watch_rows(out)
            equal((len(items), end["printed"]), (6, 6), "items that were printed")
            check_closing(rows, end["received"], ["calls"])
        load.done(stop=True)
        load.exit()


def test_streams_that_end_together():
    """Of one subscription and of others, all at once; one that stays gets all that any of them got, and no less."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS) as load:
        flow(load, control)
        stays = daemon.client(stream=True)
        of_stays = stays.subscribe(events=["calls"], queue_bytes=1 << 28)
        load.go()
        for _ in range(3 if SLOW else 8):
            wants = [(["calls"], 0), (["calls"], 0), (["calls"], 1), (["calls", "returns"], 0), (["returns"], 1)]
            watches = [start(daemon, "watch", *names, "--json", "--order", ("time", "cpu")[order], "--queue", "32MiB")
                       for names, order in wants]
            for process in watches:
                equal(json.loads(process.stdout.readline())["kind"], "start", "the first line")
                equal(json.loads(process.stdout.readline())["kind"], "wall", "the second line")
                check(json.loads(process.stdout.readline())["kind"] in ("sample", "wall"), "the third line")
            for process in watches:
                process.send_signal(signal.SIGINT)
            for process, (names, _) in zip(watches, wants):
                out, err = finish(process)
                equal((process.returncode, err), (0, ""), "how it ends")
                _, end, rows = watch_rows(out)
                check_closing(rows, end["received"], names)
        load.done(stop=True)
        stays.stop()
        came = sum(1 for _ in of_stays)
        check_closing(stays.end["ledger"], came, ["calls"])
        load.exit()


def test_subscribers_that_read_nothing():
    """Their outboxes are full at the end: what was dropped, and the rest, is all that there was to the cut."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, 0, cpus=CPUS) as load:
        flow(load, control)
        slow = [daemon.client(stream=True) for _ in range(4)]
        streams = [client.subscribe(events=["calls"], order=i % 2, overflow=i // 2, queue_bytes=64 << 10)
                   for i, client in enumerate(slow)]
        load.go()
        perfd.wait_until(lambda: all(sum(c.count for c in row.dropped) > 0 for row in daemon.ledger().subscribers), "a gap in each")
        for client in slow:
            client.stop()
        for client, items in zip(slow, streams):
            came = sum(1 for _ in items)
            own = own_of(client.end["ledger"])
            check(own["dropped"]["outbox"] > 0, own)
            equal(own["matched"], came + own["dropped"]["outbox"] + own["dropped"]["late"], "matched items")
            since = [row["since"] for row in client.end["ledger"] if row["kind"] == "event"]
            equal(sum(s["delivered"] + s["lost"]["late"] for s in since), own["matched"], "delivered during the stream")
        load.done(stop=True)
        load.exit()


def test_shutdown_in_a_flow():
    """SIGTERM: each stream ends at the same cut."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS) as load:
        flow(load, control)
        watches = [start(daemon, "watch", "calls", "--json", "--order", order) for order in ("time", "cpu", "time")]
        client = daemon.client(stream=True)
        items = client.subscribe(events=["calls"])
        load.go()
        for process in watches:
            for _ in range(100):
                process.stdout.readline()
        os.kill(daemon.pid, signal.SIGTERM)
        came = sum(1 for _ in items)
        equal(client.end["reason"], "shutdown", "why it ends")
        check_closing(client.end["ledger"], came, ["calls"])
        for process in watches:
            out, err = finish(process)
            equal(process.returncode, 1, f"its status, with {err}")
            _, end, rows = watch_rows(out)
            check_closing(rows, end["received"], ["calls"])
        daemon.stop()
        load.done(stop=True)
        load.exit()


def test_clients_emit_meanwhile():
    """External samples, of which each request has some at now and some older: taken are delivered or late, to the last one."""
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": "external:mine"}, {"event": "external:other"})
        for i in range(ROUNDS):
            with daemon.client(stream=True) as client, daemon.client() as emitter:
                items = client.subscribe(events=["external:mine"], order=i % 2)
                emitted = 0
                for k in range(40):
                    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                    emitter.request(emit=pb.EmitRequest(samples=[
                        pb.ExternalSample(event=name, time=now - ago) for name in ("external:mine", "external:other")
                        for ago in (0, 1_000_000, 30_000_000)]))
                    emitted += 3
                    if k == 20:
                        client.stop()
                came = sum(1 for _ in items)
                own = own_of(client.end["ledger"])
                equal(own["matched"], came + own["dropped"]["late"], "matched samples")
                row, = [row for row in client.end["ledger"] if row["kind"] == "event"]
                equal(row["event"], "external:mine", "the event in the closing ledger")
                equal(row["since"]["occurred"], own["matched"], "emitted during the stream")
                check(21 * 3 <= own["matched"] <= emitted, f"{own['matched']} of {emitted} samples")


def test_events_that_come_and_go():
    """Added and removed in the middle of streams, with a filter that changes."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS) as load:
        flow(load, control, {"event": SYS_ENTER, "name": "late-", "target": pb.Target(pids=load.pids), "disabled": True})
        load.go()
        for i in range(3 if SLOW else 10):
            with daemon.client(stream=True) as client:
                items = client.subscribe(events=["calls", "late-*"], order=i % 2, queue_bytes=1 << 26)
                names = [f"late-{i}-{k}" for k in range(3)]
                for name in names:
                    add(control, {"event": SYS_ENTER, "name": name, "target": pb.Target(pids=load.pids)})
                control.request(remove=pb.SelectRequest(names=names[:1]))
                client.stop()
                control.request(remove=pb.SelectRequest(names=names[1:2]))
                came = sum(1 for _ in items)
                control.request(remove=pb.SelectRequest(names=names[2:]))
                check_closing(client.end["ledger"], came, ["calls", "late-", *names])
        load.done(stop=True)
        load.exit()


def test_ledger_of_some():
    """`perfctl ledger EVENT...`: these events, and the subscribers of one of them; a name that means none is refused."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS) as load:
        flow(load, control)
        with daemon.client(stream=True) as one, daemon.client(stream=True) as other:
            one.subscribe(events=["calls"])
            other.subscribe(events=["returns"])
            everything = run(daemon, "ledger", "--json")
            equal({row["event"] for row in everything if row["kind"] == "event"}, {"calls", "returns"}, "events")
            equal(len([row for row in everything if row["kind"] == "subscriber"]), 2, "subscribers")
            check([row for row in everything if row["kind"] == "ring"], "no ring")
            for names in (["calls"], ["c*"], [f"#{daemon.ledger('calls').events[0].id}"]):
                some = run(daemon, "ledger", *names, "--json")
                equal({row["event"] for row in some if row["kind"] == "event"}, {"calls"}, f"events of {names}")
                equal([row["kind"] for row in some if row["kind"] != "event"], ["subscriber"], f"other rows of {names}")
            run(daemon, "ledger", "calls", "nonsense", status=1)


def test_ledger_of_a_predicate():
    """Who may see some samples does not learn how many others there are: not of events, removed ones, rings or by a trick."""
    text = rules(f"{{ users: [{ANN}], subscribe: ['external:*'], where: 'n < 10' }}", f"{{ users: [{BOB}], subscribe: ['external:*'] }}")
    conditions = "", "n > 100", "n < 10 || n >= 10", "n == 5"
    with Daemon(text) as daemon, daemon.client() as root, contextlib.ExitStack() as stack:
        add(root, NOTED, {"event": "external:gone", "fields": NUMBER})
        root.request(emit=pb.EmitRequest(samples=[sample(number=n % 20) for n in range(300)]))
        streams = []
        for uid, where in [(ANN, where) for where in conditions] + [(BOB, "")]:
            client = stack.enter_context(daemon.client_of(uid, groups=()))
            streams.append((uid, where, client, client.subscribe(events=["external:noted", "external:gone"], where=where)))
        root.request(emit=pb.EmitRequest(samples=[sample(number=n) for n in range(20)] + [sample("external:gone", n) for n in range(40)]))
        root.request(remove=pb.SelectRequest(names=["external:gone"]))
        for uid, where, client, items in streams:
            client.stop()
            n_items = len(list(items))
            rows = {kind: [row for row in client.end["ledger"] if row["kind"] == kind] for kind in ("event", "ring", "subscriber")}
            numbers = [[row[key] for key in ("occurred", "delivered", "filtered", "count", "doubled", "exact")] +
                       [row["since"][key] for key in ("occurred", "delivered", "filtered")] for row in rows["event"]]
            rings = [[row[key] for key in ("records", "samples", "side_records")] for row in rows["ring"]]
            equal(rows["subscriber"][0]["sent"], n_items, f"its own row, of {uid} where {where!r}")
            equal(client.stream.limited, uid == ANN, f"of {uid} where {where!r}")
            if uid == ANN:
                equal((numbers, any(map(any, rings))), ([[0] * 9] * 2, False), f"where {where!r}: {rows}")
            else:
                equal([row[0] for row in numbers], [320, 40], f"without a predicate: {rows}")
        for uid in ANN, BOB:
            done = perfctl(daemon, uid, "watch", "external:noted", "--for", "1ms", "--ledger")
            table = re.sub("[ \\t]+", " ", done.stdout + done.stderr)
            equal(["a rule of access.rules limits" in table, "external:noted - - - - " in table, "external:noted - 0 0 0 " in table],
                  [uid == ANN, uid == ANN, uid == BOB], table)
            done = perfctl(daemon, uid, "--json", "watch", "external:noted", "--for", "1ms", "--ledger")
            said = done.stdout
            rows = [row for row in map(json.loads, said.splitlines()) if row["kind"] in ("event", "limited")]
            equal([(row["kind"], row.get("occurred")) for row in rows], [("event", 0), ("limited", None)] if uid == ANN else [("event", 320)], said)


if __name__ == "__main__":
    perfd.main(globals())
