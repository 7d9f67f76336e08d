#!/usr/bin/python3
"""The files of perfd-relay's spool, with a real nats-server: what was taken from perfd survives the relay, and is stored once, in order;
and what is lost is said, or in the ledger. Needs root."""
import contextlib
import os
import re
import signal
import subprocess

import perfd
from nats import Server, epochs
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import RELAY, free_port
from spool import Spooler, records
from test_fleet import fleet
from test_nats import ROUTES, close, need_server
from test_perfctl import GETPPID
from test_promises import CPUS

RATE = 50_000 if perfd.SANITIZER == "none" else 5_000  # a second
MIB = 1 << 20
SMALL_QUEUE = "{ calls: { events: [calls], queue: 64KiB } }"


@contextlib.contextmanager
def flood(routes=ROUTES, **spool):
    """A flood that goes on, a server that has stored some of it and was killed, and a relay that spools."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Spooler(daemon, server, routes, **spool) as relay:
            relay.wait_for(r"route calls has begun")
            relay.wait_for(r"publishing to")
            load.go()
            wait_until(lambda: len(server.messages()) > 5, "something to be stored")
            server.kill()
            relay.wait_for(r"nothing is published now")
            yield daemon, load, server, relay


def check_once(streams):
    """Each item is there once, and they are in the order of time: what was spooled first is stored first."""
    times = [item.time for stream in streams for item in stream.items]
    check(times == sorted(set(times)), "an item is there twice, or in the wrong order")


def spool_more(relay, size):
    wait_until(lambda: relay.size() > size, f"{size} bytes in the spool, which has {relay.size()}", 4 * perfd.PATIENCE)


def all_stored(relay):
    wait_until(lambda: relay.count_left() == 0, f"all to be stored: {relay.count_left()} messages are left", 4 * perfd.PATIENCE)


def test_ended_without_server():
    """A relay that ends and is started again while there is no server: both streams are stored, each with its closing ledger."""
    with flood() as (_, load, server, relay):
        spool_more(relay, 2 * MIB)
        relay.stop()
        check(re.search(r"\d+ messages were not stored, and stay in /", relay.said()), f"it said:\n{relay.said()}")
        check("are lost" not in relay.said(), f"it said:\n{relay.said()}")
        kept = relay.spooled()
        relay.start()
        relay.wait_for(r"has \d+ messages of an earlier run, which are published first")
        spool_more(relay, 3 * MIB)
        server.start()
        load.done(stop=True)
        all_stored(relay)
        relay.stop()
        messages = server.messages()
        first, second = streams = epochs(messages)
        for stream in streams:
            equal(close(stream, stream.own().matched), 0, "what was lost")
        check_once(streams)
        ids = {message.id for message in messages}
        equal([i for i in kept if i.count(".") == 5 and i not in ids], [], "messages of files that are not stored")
        rows = fleet(server, "ledger")[0]
        equal([row["state"] for row in rows], ["ended", "ended"], "the states")
        equal([(row["matched"], row["lost"]) for row in rows], [(s.n_items, {}) for s in (first, second)], "the ledger")


def test_killed_relay():
    """kill -9 of the relay, twice, while there is no server: nothing that it had taken is lost."""
    with flood() as (_, load, server, relay):
        kept = []
        for _ in range(2):
            before = relay.size()
            spool_more(relay, before + MIB)
            relay.process.kill()
            relay.process.wait(perfd.PATIENCE)
            kept = relay.spooled()
            relay.start()
        server.start()
        wait_until(lambda: len(epochs(server.messages())) == 3, "the last stream", 4 * perfd.PATIENCE)
        load.done(stop=True)
        relay.stop()
        messages = server.messages()
        streams = epochs(messages)
        check_once(streams)
        ids = [message.id for message in messages]
        packets = [i for i in kept if i.count(".") == 5]
        check(len(packets) > 10, f"only {len(packets)} packets were spooled")
        equal([i for i in ids if i in set(packets)], packets, "what is stored of the files, and its order")
        equal([stream.end is None for stream in streams], [True, True, False], "which were cut off")
        equal(close(streams[2], streams[2].own().matched), 0, "what was lost since")
        equal([row["state"] for row in fleet(server, "ledger", status=4)[0]], ["cut", "cut", "ended"], "the states")


def test_paused_server():
    """SIGSTOP of the server, and kill -9 of the relay meanwhile: what the server has not answered is sent again, and stored once."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Spooler(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            load.go()
            wait_until(lambda: len(server.messages()) > 5, "something to be stored")
            server.signal(signal.SIGSTOP)
            try:
                spool_more(relay, 2 * MIB)
                relay.kill_and_start()
            finally:
                server.signal(signal.SIGCONT)
            wait_until(lambda: len(epochs(server.messages())) == 2, "another stream", 4 * perfd.PATIENCE)
            load.done(stop=True)
        streams = epochs(server.messages())
        check_once(streams)
        equal(close(streams[1], streams[1].own().matched), 0, "what was lost since")


def overflow(daemon):
    wait_until(lambda: any(s.dropped and s.dropped[0].count for s in daemon.ledger().subscribers), "the queue to overflow", 4 * perfd.PATIENCE)


def test_full():
    """At its limit the spool takes nothing more: what fits nowhere is a gap with its count."""
    with flood(SMALL_QUEUE, disk="4MiB") as (daemon, load, server, relay):
        relay.wait_for(r"has reached publish\.spool\.disk")
        overflow(daemon)
        check(relay.size() <= 4 * MIB, f"{relay.size()} bytes")
        server.start()
        relay.wait_for(r"takes messages again")
        load.done(stop=True)
        relay.stop()
        epoch, = epochs(server.messages())
        check(close(epoch, sum(load.counts)) > 0, "nothing was lost")
        equal(set(epoch.gaps), {"outbox"}, "the reasons")


def test_ended_full():
    """A relay that ends with a full spool still keeps the end of its stream, and what it had no room for is a gap of its own."""
    with flood(SMALL_QUEUE, disk="4MiB") as (daemon, load, server, relay):
        relay.wait_for(r"has reached publish\.spool\.disk")
        overflow(daemon)
        relay.stop()
        check("are lost" not in relay.said(), f"it said:\n{relay.said()}")
        load.done(stop=True)
        relay.start()
        server.start()
        wait_until(lambda: len(epochs(server.messages())) == 2, "both streams", 4 * perfd.PATIENCE)
        first = epochs(server.messages())[0]
        equal(first.n_items + sum(first.gaps.values()), first.own().matched, "what was stored and the gaps")
        check(first.gaps["outbox"] > 0 and first.gaps["spool"] > 0, f"the gaps {first.gaps}")
        equal(sum(loss.count for loss in first.own().dropped), first.gaps["outbox"], "what perfd has dropped")
        row = next(row for row in fleet(server, "ledger", status=4)[0] if row["state"] == "ended")
        equal((row["matched"], row["lost"]), (first.own().matched, first.gaps), "the ledger")


# a file system of 3 MiB for one program alone
SMALL_DISK = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=3m,mode=0700 perfd-test SPOOL && exec "$@"', "sh"]


def test_full_disk():
    """A file system without room: it is said, memory takes what it can, the rest is a gap, and when there is room all goes on."""
    with flood(SMALL_QUEUE, prefix=SMALL_DISK) as (daemon, load, server, relay):
        relay.wait_for(r"cannot be written: No space left on device")
        overflow(daemon)
        server.start()
        relay.wait_for(r"takes messages again")
        load.done(stop=True)
        relay.stop()
        epoch, = epochs(server.messages())
        check(close(epoch, sum(load.counts)) > 0, "nothing was lost")
        equal(set(epoch.gaps), {"outbox"}, "the reasons")


def change(path, offset):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)
        f.seek(offset)
        f.write(bytes([byte[0] ^ 0x55]))


def test_damaged():
    """A byte that is wrong costs its message, whose place is said, and the ledger has it; a file that ends in a message is cut."""
    with flood() as (_, load, server, relay):
        spool_more(relay, 2 * MIB)
        load.done(stop=True)
        relay.stop()
        path, last = relay.files()[0], relay.files()[-1]
        _, offset, length, _ = records(path)[len(records(path)) // 2]
        change(path, offset + 40)
        torn = os.path.getsize(last)
        with open(last, "ab") as f:
            f.write(b"pmsg and so on")
        relay.start()
        relay.wait_for(rf"{last}: 14 bytes at offset {torn} were not written completely, and are cut off")
        equal(os.path.getsize(last), torn, "its size")
        server.start()
        relay.wait_for(rf"{path}: {length} bytes at offset {offset} are damaged, and are not published")
        wait_until(lambda: os.path.exists(path + ".damaged"), "the file to be put aside")
        wait_until(lambda: len({message.number("Perfd-Epoch") for message in server.messages()}) == 2, "the second stream")
        relay.stop()
        first = fleet(server, "ledger", status=4)[0][0]
        equal((first["state"], first["expired_packets"]), ("ended", 1), "the stream with the damage")
        equal(first["matched"], first["consumed"] + sum(first["lost"].values()), "its sum")
        check(first["lost"]["expired"] > 0, f"{first['lost']}")


def test_planted():
    """What has the name of a file and is none is passed over, and said once for all; messages are stored all the same."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Server() as server, Spooler(daemon, server, ROUTES) as relay:
        relay.stop()
        os.mkfifo(f"{relay.spool}/0000000000000000.spool")
        os.mkdir(f"{relay.spool}/0000000000000001.spool")
        os.remove(f"{relay.spool}/stored")
        os.symlink("/dev/zero", f"{relay.spool}/stored")
        relay.start()
        relay.wait_for(rf"{relay.spool}/\d+\.spool is no file of the spool, and passed over, as are 1 more like it: it is a \w+; remove it\n")
        relay.wait_for(rf"{relay.spool}/stored is no file of the spool, and passed over; how far [^\n]*: it is a symbolic link; remove it\n")
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])})
        relay.wait_for("route calls has begun")
        os.getppid()
        relay.stop()
        equal([stream.n_items for stream in epochs(server.messages())], [1], "the samples of each stream")
        equal((relay.said().count("is no file of the spool"), "is damaged" in relay.said()), (2, False), f"it said:\n{relay.said()}")


def test_memory():
    """What is in memory does not depend on what is in files, also when all of it is read again."""
    with flood(disk="256MiB") as (_, load, server, relay):
        spool_more(relay, 24 * MIB if perfd.SANITIZER == "none" else 3 * MIB)
        load.done(stop=True)
        before = relay.peak()
        relay.kill_and_start()
        server.start()
        all_stored(relay)
        check(perfd.SANITIZER != "none" or relay.peak() < before + 4 * MIB, f"it had {before} bytes, and has {relay.peak()}")


def run(relay, text, *options, prefix=(), **popen):
    path = relay.at("other.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return subprocess.run([*prefix, RELAY, "--config", path, *options], capture_output=True, text=True, check=False, timeout=perfd.PATIENCE, **popen)


def test_refused():
    """A directory that cannot be one of a spool is refused by --check, with its place; one that is used already, at the start."""
    need_server()
    with Daemon() as daemon, Server() as server, Spooler(daemon, server, ROUTES) as relay:
        with open(relay.at("relay.yaml"), encoding="utf-8") as f:
            text = f.read()
        done = run(relay, text.replace(str(relay.port), str(free_port())))
        equal(done.returncode, 1, f"the status of a second relay, {done.stderr}")
        check(f"publish.spool.path: {relay.spool} is the spool of another perfd-relay that runs" in done.stderr, done.stderr)
        equal(run(relay, text, "--check").returncode, 0, "the status of --check beside a relay that runs")
        for mode in (0o770, 0o702):
            os.mkdir(relay.at(f"mode{mode:o}"))
            os.chmod(relay.at(f"mode{mode:o}"), mode)
        for path, expected in (("missing", "does not exist: make a directory"), ("relay.yaml", "is no directory"),
                               ("mode770", r"others can write to \S+ \(mode 0770\)"), ("mode702", r"others can write to \S+ \(mode 0702\)")):
            done = run(relay, text.replace("path: spool", f"path: {path}"), "--check")
            equal(done.returncode, 1, f"the status for {path}")
            check(re.search(rf"other\.yaml:5:\d+: publish\.spool\.path: .*{expected}", done.stderr), f"{path}: {done.stderr}")
        os.chmod(relay.folder.name, 0o711)
        os.mkdir(relay.at("roots"), 0o755)
        done = run(relay, text.replace("path: spool", "path: roots"), "--check", user=65534)
        check(re.search(r"publish\.spool\.path: \S+/roots cannot be written to: Permission denied", done.stderr), done.stderr)
        done = run(relay, text, "--check", prefix=[word.replace("SPOOL", relay.spool) for word in SMALL_DISK])
        equal(done.returncode, 0, "the status of a warning")
        check(re.search(r"publish\.spool\.disk: the file system of \S+ has only 3 MiB, which are less", done.stderr), done.stderr)
        done = run(relay, text.replace("path: spool, ", ""), "--check")
        check(re.search(r"publish\.spool\.disk: it has no effect without 'path'", done.stderr), done.stderr)


if __name__ == "__main__":
    perfd.main(globals())
