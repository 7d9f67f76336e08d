#!/usr/bin/python3
"""Streams in shared memory: the same items as by a socket, exact gaps for who reads slowly, and nothing that a client can
do with its file, its bells or its death touches the daemon or another stream."""
import contextlib
import errno
import fcntl
import itertools
import mmap
import os
import signal
import socket
import threading
import time
import types

import perfd
from asleep import wait_until_asleep
from checker import Checker
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb, refused, wait_until
from test_failures import Trace, attached, need_strace
from test_promises import CPUS, SYS_ENTER

SIZE = 1 << 16
LARGE = 1 << 18
QUEUE = 1 << 18
CALLS = 2_000
PACED = 20_000  # many rings full
FLOOD = 30_000  # calls, more than a ring, a queue and half of a pool can hold
MADV_REMOVE = 9


@contextlib.contextmanager
def traced(kind="syscalls", numbers=(CALLS,), cpus=CPUS):
    """A daemon that traces a load of so many calls."""
    with Daemon() as daemon, daemon.client() as client, Workload(kind, *numbers, cpus=cpus) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        daemon.status()  # its connection is one of the fds
        yield daemon, load


def delivered(daemon):
    return sum(row.delivered for row in daemon.ledger().events)


def own_row(daemon, program):
    return next((row for row in daemon.ledger().subscribers if row.peer.startswith(program)), None)


def subscribe(daemon, **more):
    """A stream in shared memory, in this process: its client. Its first packet has come."""
    client = daemon.client(stream=True)
    client.subscribe(**{"events": ["calls"], "ring_bytes": SIZE, "order": pb.ORDER_CPU, "queue_bytes": QUEUE, **more})
    check(not list(client.stream.take(client.receive().packet)), "items in the first packet")
    return client


def items_of(lines):
    """What a subscriber printed: its items by CPU, and its own row."""
    items = [line for line in lines if "kind" not in line]
    return {cpu: [item for item in items if item["cpu"] == cpu] for cpu in CPUS}, lines[-1]


def test_same_as_by_socket():
    for order in ("time", "cpu"):
        with traced() as (daemon, load):
            fds = daemon.fds()
            with contextlib.ExitStack() as stack:
                each = [stack.enter_context(Subscriber(daemon, "--order", order, "--queue-bytes", str(1 << 26), *ring, "calls"))
                        for ring in ((), ("--ring", str(SIZE)), ("--ring", str(LARGE)))]
                load.go()
                equal(load.done(), [CALLS] * len(CPUS), "calls made")
                wait_until(lambda d=daemon: delivered(d) == (CALLS + 1) * len(CPUS), "all of them")
                ends = [items_of(subscriber.finish()) for subscriber in each]
            wait_until(lambda d=daemon, f=fds: d.fds() == f, "no fd more than before")
        for items, own in ends:
            equal(sum(map(len, items.values())), (CALLS + 1) * len(CPUS), "items that came")
            check(items == ends[0][0], f"other items, order of {order}")
            equal((own["matched"], own["dropped"]), ((CALLS + 1) * len(CPUS), {"outbox": 0, "memory": 0, "late": 0}), "its row")


def test_slow_reader():
    """It does not read at all until all has happened: what fits is in ring and outbox, each policy drops the rest."""
    for policy in ("drop-oldest", "drop-newest", "disconnect"):
        with traced(numbers=(FLOOD,), cpus=CPUS[:1]) as (daemon, load):
            with Subscriber(daemon, "--quiet", "--order", "cpu", "--overflow", policy, "--queue-bytes", str(QUEUE),
                            "--ring", str(SIZE), "calls") as slow, \
                    Subscriber(daemon, "--quiet", "--order", "cpu", "--queue-bytes", str(1 << 26), "--ring", str(LARGE),
                               "calls") as quick:
                slow.process.send_signal(signal.SIGSTOP)
                load.go()
                load.done()
                wait_until(lambda d=daemon: delivered(d) == FLOOD + 1, "all of them")
                slow.process.send_signal(signal.SIGCONT)
                seen = slow.finish(signal_number=0 if policy == "disconnect" else signal.SIGINT)[-1]
                others = quick.finish()[-1]
        equal((others["sent"], others["dropped"]["outbox"]), (FLOOD + 1, 0), f"what another one got, {policy}")
        check(seen["dropped"]["outbox"] > 0, f"nothing was dropped: the test shows nothing, {policy}")
        equal(seen["queued"], 0, f"items behind the end, {policy}")
        if policy != "disconnect":
            equal(seen["sent"] + seen["dropped"]["outbox"], FLOOD + 1, f"the sum, {policy}")


def test_pace():
    """A reader that sleeps in between, with a ring that is full again and again: nothing is lost but time."""
    with traced(numbers=(PACED,), cpus=CPUS[:1]) as (daemon, load):
        client = subscribe(daemon, queue_bytes=1 << 26)
        waits = set()
        load.go()
        load.done()
        wait_until(lambda: delivered(daemon) == PACED + 1, "all of them")
        while client.stream.items < PACED + 1:
            waits.add(client.ring.daemon_waits[0])
            for _ in client.stream.take(client.receive().packet):
                pass
        client.stop()
        for _ in client.items():
            pass
        check(len(waits) > 10, f"the daemon waited {len(waits)} times only")
        check(client.ring.told > 10, f"it was told of room {client.ring.told} times only")
        equal((client.stream.items, client.stream.missing), (PACED + 1, 0), "items, and missing ones")
        client.socket.close()


def break_tail(to):
    def attack(client):
        client.ring.tail[0] = to(client.ring.head[0]) % (1 << 64)
    return attack


def tell_of_room(client):
    client.send(room=pb.Empty())


def ends_with(daemon, words, attack, **subscription):
    """This attack, while the load goes on, ends the stream, with these words in the log."""
    client = subscribe(daemon, **subscription)
    client.socket.settimeout(1)

    def is_over():
        """A head that has risen since it was looked at can make a good tail of a bad one: then it is attacked again."""
        with contextlib.suppress(ConnectionError):
            attack(client)
            try:
                while client.socket.recv(1 << 16):
                    pass
            except TimeoutError:
                return False
        return True

    wait_until(is_over, "the end of the stream")
    client.socket.close()
    wait_until(lambda: words in daemon.stderr(), f"{words!r} in the log")


def test_hostile():
    with traced("flood", (0, 4000)) as (daemon, load), \
            Subscriber(daemon, "--quiet", "--queue-bytes", str(1 << 26), "--ring", str(LARGE), "calls") as good:
        load.go()
        fds = daemon.fds()
        said = 0
        for to in (lambda head: head + 1, lambda head: head - SIZE - 1, lambda head: head + SIZE, lambda head: 1 << 63):
            ends_with(daemon, "the tail of its ring is invalid", break_tail(to))
            said += 1
            wait_until(lambda n=said: daemon.stderr().count("the tail of its ring is invalid") == n, "it is said of each")

        client = subscribe(daemon)
        wait_until(lambda: client.ring.head[0] > client.ring.tail[0], "something in the ring")
        client.ring.tail[0] = seen = client.ring.head[0]
        wait_until(lambda: client.ring.head[0] > seen, "more in the ring, the tail was looked at")
        client.ring.ours.madvise(MADV_REMOVE)  # a hole, and so a tail of 0
        equal(client.ring.tail[0], 0, "the tail in a hole")
        wait_until(lambda: daemon.stderr().count("the tail of its ring is invalid") == said + 1, "it goes backwards")
        client.socket.close()

        ends_with(daemon, "it sent `room` although perfd did not wait for it", tell_of_room)
        ends_with(daemon, "it sent something other than `stop`", tell_of_room, ring_bytes=0)
        ends_with(daemon, "it sent something other than `stop`", lambda c: c.send(status=pb.Empty()))
        with daemon.client(stream=True) as client:
            refused(client, "bad-request", room=pb.Empty())
        wait_until(lambda: daemon.fds() == fds and daemon.status().n_subscribers == 1, "as before")
        counts = load.done(stop=True)
        wait_until(lambda: own_row(daemon, "subscriber").matched >= sum(counts), "all of them")
        own = good.finish()[-1]
    check(own["matched"] >= sum(counts) and own["sent"] == own["matched"], f"what the good one got: {own}")


def check_reader(fd):
    """Another user can neither write the file by this fd, nor open it anew, nor allow itself to."""
    path = f"/proc/self/fd/{fd}"
    equal((fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE, os.fstat(fd).st_mode & 0o777), (os.O_RDONLY, 0o400), "how it is open")
    with perfd.somebody(65534):
        for call in (lambda: mmap.mmap(fd, 4096), lambda: os.open(path, os.O_RDWR), lambda: os.open(path, os.O_RDONLY),
                     lambda: os.fchmod(fd, 0o666)):
            try:
                call()
                check(False, "not refused")
            except PermissionError:
                pass


def test_files():
    """What comes by SCM_RIGHTS can be read, or written, but neither cut nor grown; the daemon keeps no fd of it."""
    with traced() as (daemon, _):
        before = daemon.fds()
        with daemon.client(stream=True) as client:
            reply = client.request(subscribe=pb.SubscribeRequest(events=["calls"], ring_bytes=SIZE)).ring
            theirs, ours = client.fds
            equal((reply.bytes, reply.offset), (SIZE, os.sysconf("SC_PAGESIZE")), "the ring")
            equal((os.fstat(theirs).st_size, os.fstat(ours).st_size), (reply.offset + SIZE, reply.offset), "lengths")
            seals = [fcntl.fcntl(fd, fcntl.F_GET_SEALS) & 0x1f for fd in (theirs, ours)]
            equal(seals, [0x07, 0x07], "seals: shrink, grow, no more seals")
            for call in (lambda: os.ftruncate(theirs, 0), lambda: os.ftruncate(ours, 0), lambda: os.write(theirs, b"x")):
                try:
                    call()
                    check(False, "not refused")
                except OSError as no:
                    check(no.errno in (errno.EINVAL, errno.EBADF, errno.EPERM), str(no))
            check_reader(theirs)
            equal([fd for fd in daemon.fds() if "memfd:perfd" in fd], [], "files that the daemon keeps")
        wait_until(lambda: daemon.fds() == before, "as before")


def blocks(fds):
    """KiB that the files have."""
    return [os.fstat(fd).st_blocks // 2 for fd in fds]


def test_memory_ends_with_the_stream():
    """Who keeps the files of a stream that is over keeps no memory in them, and who keeps its connection is charged for them."""
    config = "version: 1\naccess: { stream-mode: 0666 }\nsubscribers: { memory: 64MiB, memory-per-uid: 4608KiB }\n"
    request = pb.SubscribeRequest(events=["external:noted"], ring_bytes=1 << 20, pool=True)
    page = os.sysconf("SC_PAGESIZE") >> 10
    kept = []
    with Daemon(config) as daemon, contextlib.ExitStack() as stack:
        with daemon.client() as client:
            add(client, {"event": "external:noted", "fields": [pb.ExternalField(name="n", type="u32")]})
        for _ in range(8):
            first = daemon.client_of(65534, groups=())
            second = stack.enter_context(daemon.client_of(65534, groups=()))
            for client in (first, second):
                client.request(subscribe=request)
            equal(blocks(first.fds), [1024 + page, page, 2048], "KiB of its files")
            with daemon.client_of(65534, groups=()) as third:
                refused(third, "queue-memory", subscribe=request)
            files, first.fds = [*first.fds, *second.fds], []
            kept += files
            second.fds = []
            second.send(stop=pb.Empty())
            wait_until(lambda s=second: b"" == s.receive_bytes(time.monotonic() + perfd.PATIENCE), "the end of the connection")
            first.socket.close()
            wait_until(lambda f=files: sum(blocks(f[:2])) == 0, "no memory in the files of a stream whose connection was closed")
            equal(blocks(files[2:]), [2048, 1024 + page, page, 2048], "KiB of one that ended, and has not read that")
            wait_until(lambda: daemon.status().n_subscribers == 1, "one subscriber, which has ended")
            with daemon.client_of(65534, groups=()) as third:
                refused(third, "queue-memory", subscribe=pb.SubscribeRequest(events=["external:noted"], ring_bytes=4 << 20))
            second.socket.close()
            wait_until(lambda f=files: sum(blocks(f)) == 0, "no memory in the files of all others")
            wait_until(lambda: daemon.status().n_subscribers == 0, "nobody is charged")
    for fd in kept:
        os.close(fd)


def test_without_fds():
    """Who reads its socket through something that passes bytes only, has a ring that it cannot reach, and a way out."""
    with traced(cpus=CPUS[:1]) as (daemon, load):
        client = daemon.client(stream=True)
        client.receive_bytes = lambda _: client.socket.recv(1 << 16)
        try:
            client.subscribe(events=["calls"], ring_bytes=SIZE)
            check(False, "a ring without fds")
        except perfd.subscriber.Broken as no:
            check("no fds came" in str(no), str(no))
        client.socket.close()
        wait_until(lambda: daemon.status().n_subscribers == 0, "it is gone")
        with Subscriber(daemon, "--quiet", "calls") as again:
            load.go()
            load.done()
            equal(again.finish()[-1]["sent"], CALLS + 1, "items")


def relay(path, to):
    """Accepts at `path`, for ever, and passes bytes only, as ssh does."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def pass_on(source, sink):
        with contextlib.suppress(OSError):
            while got := source.recv(1 << 16):
                sink.sendall(got)
            sink.shutdown(socket.SHUT_WR)

    def accept():
        while True:
            near, far = listener.accept()[0], socket.socket(socket.AF_UNIX)
            far.connect(to)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def test_forwarded():
    """libperfd by a socket that is forwarded, and by perfd's own: both get all, and neither was asked to know of it."""
    with traced(cpus=CPUS[:1]) as (daemon, load), contextlib.ExitStack() as stack:
        forwarded = os.path.join(daemon.directory, "forwarded.sock")
        relay(forwarded, daemon.stream)
        checkers = []
        for path in (daemon.stream, forwarded):
            daemon_there = types.SimpleNamespace(stream=path)
            checkers.append(stack.enter_context(Checker(daemon_there, "cpu", "calls", queue=1 << 26)))
        check("subscriber 3" in daemon.stderr(), "the second one has not asked anew")
        load.go()
        load.done()
        equal([checker.finish()["items"] for checker in checkers], 2 * [CALLS + 1], "items")


def test_sizes():
    """Of rings and queues; what they are charged to is in test_memory.py."""
    mib = 1 << 20
    with traced() as (daemon, _):
        with daemon.client(stream=True) as client:
            for size in (1, SIZE // 2, SIZE + 1, 3 * SIZE, 32 * mib, 0xffffffff):
                refused(client, "bad-ring", "STATUS_INVALID", subscribe=pb.SubscribeRequest(ring_bytes=size))
            no = refused(client, "queue-memory", "STATUS_EXHAUSTED", subscribe=pb.SubscribeRequest(queue_bytes=513 * mib))
            check(str(512 * mib) in no.message, no.message)


def shared_memory(daemon):
    with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("RssShmem:"))


# each call that a ring is made with, and why it is refused then; EINVAL: an older kernel, which has a flag less
FAILURES = [("memfd_create", {"EMFILE": "too-many-fds", "ENOMEM": "no-memory", "EPERM": "no-ring"}, 2),
            ("memfd_create", {"EINVAL": None}, 2),
            ("fallocate", {"ENOSPC": "no-memory", "ENOMEM": "no-memory"}, 2),
            ("fcntl", {"EINVAL": "no-ring", "EPERM": "no-ring"}, 2)]


def test_failures():
    """No ring can be made: it is refused by its reason, nothing of it is left, and the socket is still there."""
    need_strace()
    with traced() as (daemon, _):
        fds, memory = daemon.fds(), shared_memory(daemon)
        for syscall, errors, n_calls in FAILURES:
            for (error, reason), k in itertools.product(errors.items(), range(1, n_calls + 1)):
                trace = Trace(syscall, error, k)
                request = pb.SubscribeRequest(events=["calls"], ring_bytes=LARGE)
                with daemon.client(stream=True) as client:
                    with attached(daemon, trace):
                        if reason:
                            refused(client, reason, subscribe=request)
                        else:
                            equal(client.request(subscribe=request).ring.bytes, LARGE, "the ring")
                    check(trace.injected(), f"there is no {syscall} number {k}")
                    if reason:
                        request.ring_bytes = 0
                        client.request(subscribe=request)
                wait_until(lambda: daemon.status().n_subscribers == 0 and daemon.fds() == fds, f"as before {error}")
                equal(shared_memory(daemon), memory, f"shared memory after {error} of {syscall}")


def test_killed():
    with traced("flood", (0, 4000)) as (daemon, load):
        load.go()
        fds, memory = daemon.fds(), shared_memory(daemon)
        for _ in range(5):
            with Subscriber(daemon, "--quiet", "--ring", str(16 << 20), "calls") as subscriber:
                wait_until(lambda d=daemon: own_row(d, "subscriber").sent > 1000, "items on their way")
                subscriber.process.kill()
                wait_until(lambda d=daemon: d.status().n_subscribers == 0, "it is gone")
            wait_until(lambda d=daemon: d.fds() == fds, "no fd more than before")
            check(shared_memory(daemon) < memory + (1 << 20), "its ring is still there")
        load.done(stop=True)


def test_idle():
    """Nothing happens: nobody wakes. The event is enabled, its processes are stopped."""
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", 10, cpus=CPUS[:1]) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids), "disabled": True})
        with Subscriber(daemon, "--quiet", "--ring", str(SIZE), "calls") as subscriber:
            before = wait_until_asleep(daemon.pid)["dispatcher"]
            time.sleep(1)  # of silence, which is what is measured
            equal(wait_until_asleep(daemon.pid)["dispatcher"] - before, 0, "wakeups of the dispatcher in a second")
            client.request(enable=pb.SelectRequest(names=["calls"]))
            load.go()
            load.done()
            wait_until(lambda: own_row(daemon, "subscriber").sent == 11, "all of them")
            equal(subscriber.finish()[-1]["sent"], 11, "items")


def test_shutdown():
    """perfd ends: what is in the ring, with the closing ledger, is read when the socket is closed already."""
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", CALLS, cpus=CPUS[:1]) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        stream = subscribe(daemon, ring_bytes=16 << 20)
        load.go()
        load.done()
        wait_until(lambda: delivered(daemon) == CALLS + 1, "all of them")
        daemon.stop()
        for _ in stream.items():
            pass
        equal((stream.end["reason"], stream.stream.items), ("shutdown", CALLS + 1), "its end")
        stream.socket.close()


if __name__ == "__main__":
    perfd.main(globals())
