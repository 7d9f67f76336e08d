#!/usr/bin/python3
"""Packets that equal subscribers read where they lie: all get the same as by a socket, who does not read takes nothing from
the others, and what a stream tells of stays as it is until its subscriber has read it, also behind the stream's end."""
import contextlib
import errno
import fcntl
import mmap
import os
import signal
import time

import perfd
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb, wait_until
from test_failures import Trace, attached, need_strace
from test_promises import CPUS, SYS_ENTER
from test_roles import ANN, BOB, TRACERS, reload, rules
from test_shared import CALLS, check_reader, delivered, items_of, subscribe, traced

RING = 1 << 19
POOL = 2 << 20
QUEUE = 1 << 26
MANY = 40_000  # calls whose items fill the pool several times


def take_all(client):
    """Its items until its stream ends."""
    items = []
    while not client.stream.end:
        items += client.stream.take(client.receive().packet)
    check(client.receive() is None, "something behind the end")
    return items


def take(client, n):
    """Its next n items, or some more: those of whole packets."""
    items = []
    while len(items) < n:
        items += client.stream.take(client.receive().packet)
    return items


def pooled(daemon, **more):
    return subscribe(daemon, ring_bytes=RING, pool=True, **{"queue_bytes": QUEUE, "order": pb.ORDER_TIME, **more})


def keys(items):
    return [(item["cpu"], item["time"], str(item["fields"])) for item in items]


def all_calls(daemon, n):
    wait_until(lambda: delivered(daemon) == n, "all of them")


def test_same_for_all():
    """By a pool, by a ring alone and by a socket, in both orders."""
    for order in ("time", "cpu"):
        with traced() as (daemon, load), contextlib.ExitStack() as stack:
            each = [stack.enter_context(Subscriber(daemon, "--order", order, "--queue-bytes", str(QUEUE), *ring, "calls"))
                    for ring in ((), ("--ring", str(RING)), ("--ring", str(RING)), ("--ring", str(1 << 16)))]
            alone = subscribe(daemon, ring_bytes=RING, order=f"ORDER_{order.upper()}", queue_bytes=QUEUE)
            own = pooled(daemon, order=f"ORDER_{order.upper()}")
            load.go()
            load.done()
            all_calls(daemon, (CALLS + 1) * len(CPUS))
            ends = [items_of(subscriber.finish()) for subscriber in each]
            for client in (alone, own):
                client.stop()
            items = [take_all(client) for client in (alone, own)]
            equal(alone.pooled, 0, "packets in a pool of one that asked for none")
            check(own.pooled > 0, "nothing came in a pool: the test shows nothing")
            equal(keys(items[0]), keys(items[1]), f"items by ring and by pool, order of {order}")
            for found, row in ends:
                equal(sum(map(len, found.values())), (CALLS + 1) * len(CPUS), "items that came")
                check(found == ends[0][0], f"other items, order of {order}")
                equal(row["dropped"], {"outbox": 0, "memory": 0, "late": 0}, "what was dropped")
            equal(sum(map(len, ends[0][0].values())), len(items[0]), "items of all")
            for client in (alone, own):
                client.socket.close()


def test_alone():
    """Nobody else is there: it gets its items where it has them alone, and the pool takes no memory, until another one comes."""
    with traced(cpus=CPUS[:1]) as (daemon, load):
        client = pooled(daemon)
        load.go()
        load.done()
        all_calls(daemon, CALLS + 1)
        client.stop()
        equal((len(take_all(client)), client.pooled), (CALLS + 1, 0), "items, and packets in the pool")
        client.socket.close()
        wait_until(lambda: not [fd for fd in daemon.fds() if "perfd-packets" in fd], "the first one has gone, and what it had")
        request = pb.SubscribeRequest(events=["calls"], ring_bytes=RING, pool=True)
        with daemon.client(stream=True) as first, daemon.client(stream=True) as second:
            for client, blocks in ((first, 0), (second, POOL // 512)):
                client.request(subscribe=request)
                equal(os.fstat(first.fds[2]).st_blocks, blocks, "blocks of 512 bytes of the pool's file")


def test_who_does_not_read():
    """One sleeps, and has what it was told of: half of the pool at most, which nobody writes. The others miss nothing."""
    with traced(numbers=(MANY,), cpus=CPUS[:1]) as (daemon, load):
        sleeper = pooled(daemon)
        with Subscriber(daemon, "--quiet", "--queue-bytes", str(QUEUE), "--ring", str(RING), "calls") as quick, \
                Subscriber(daemon, "--queue-bytes", str(QUEUE), "--ring", str(RING), "calls") as other:
            load.go()
            load.done()
            all_calls(daemon, MANY + 1)
            for subscriber in (quick, other):
                lines = subscriber.finish()
                equal((lines[-1]["sent"], lines[-1]["dropped"]), (MANY + 1, {"outbox": 0, "memory": 0, "late": 0}), "what the others got")
        sleeper.stop()
        items = take_all(sleeper)
        check(0 < sleeper.pooled <= POOL // 2 >> 16, f"{sleeper.pooled} packets in the pool")
        equal(sleeper.stream.missing, 0, "missing ones")
        check([(item["cpu"], item["time"]) for item in items] == [(line["cpu"], line["time"]) for line in lines if "kind" not in line],
              "it does not have what the others have")
        sleeper.socket.close()


def test_end_before_it_was_read():
    """It asks for its end and sleeps, and reads when others have filled the pool several times with other things."""
    with traced(numbers=(MANY,), cpus=CPUS[:1]) as (daemon, load), \
            Workload("syscalls", CALLS, cpus=CPUS[:1]) as first, daemon.client() as control:
        add(control, {"event": SYS_ENTER, "name": "calls-first", "target": pb.Target(pids=first.pids)})
        with Subscriber(daemon, "--quiet", "--queue-bytes", str(QUEUE), "--ring", str(RING)) as other:
            early, late = pooled(daemon, events=[]), pooled(daemon, events=[])
            early.ring.sleep()
            first.go()
            first.done()
            all_calls(daemon, CALLS + 1)
            early.stop()
            while early.receive_bells():
                pass
            load.go()
            load.done()
            items = take(late, CALLS + 1 + MANY + 1)
            check(late.pooled > 3, f"{late.pooled} packets in the pool of another one: the test shows nothing")
            equal(daemon.status().n_subscribers, 3, "subscribers, of which one has ended and has not read")
            own = take_all(early)
            check(early.pooled > 0, "nothing came in a pool: the test shows nothing")
            equal([item["event"] for item in own], (CALLS + 1) * ["calls-first"], "items of its own")
            equal(keys(own), keys(items[:CALLS + 1]), "its items, and those of another one")
            early.socket.close()
            wait_until(lambda: daemon.status().n_subscribers == 2, "it is gone")
            late.socket.close()
            equal(other.finish()[-1]["sent"], CALLS + 1 + MANY + 1, "what the third one got")
        first.exit()


def test_shutdown_before_it_was_read():
    """perfd ends, and does not wait for who does not read; what he was told of is there all the same."""
    with traced(cpus=CPUS[:1]) as (daemon, load):
        clients = [pooled(daemon) for _ in range(3)]
        clients[0].stop()
        take_all(clients[0])
        load.go()
        load.done()
        all_calls(daemon, CALLS + 1)
        clients[1].stop()  # it lingers
        while clients[1].receive_bells():
            pass
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(30), 0, "the status of perfd")
        check("did not read their closing ledger" not in daemon.stderr(), "it has waited for one who does not read")
        for client in clients[1:]:
            equal(len(take_all(client)), CALLS + 1, "items")
            check(client.pooled > 0, "nothing came in a pool: the test shows nothing")
        for client in clients:
            client.socket.close()


def test_file():
    """It can be read, and neither written, cut nor grown. perfd has one of it for each subscription, while somebody has that."""
    with traced(cpus=CPUS[:1]) as (daemon, load):
        before = daemon.fds()
        request = pb.SubscribeRequest(events=["calls"], ring_bytes=RING, pool=True)
        with daemon.client(stream=True) as client, daemon.client(stream=True) as other:
            equal(client.request(subscribe=request).ring.pool_bytes, POOL, "bytes of the pool")
            other.request(subscribe=request)
            equal([len(each.fds) for each in (client, other)], [3, 3], "fds that came")
            equal(len({os.fstat(each.fds[2]).st_ino for each in (client, other)}), 1, "files")
            fd = client.fds[2]
            equal((os.fstat(fd).st_size, fcntl.fcntl(fd, fcntl.F_GET_SEALS) & 0x1f), (POOL, 0x07), "its length, and its seals")
            for call in (lambda: os.ftruncate(fd, 0), lambda: os.ftruncate(fd, 2 * POOL), lambda: os.write(fd, b"x")):
                try:
                    call()
                    check(False, "not refused")
                except OSError as no:
                    check(no.errno in (errno.EINVAL, errno.EBADF), str(no))
            check_reader(fd)
            wait_until(lambda: len([fd for fd in daemon.fds() if "memfd:perfd" in fd]) == 1, "one file that the daemon keeps")
        wait_until(lambda: daemon.fds() == before, "as before")
        load.go()
        load.done()


SECRET = {"event": "external:secret", "fields": [pb.ExternalField(name="text", type="text")]}
AS_ANYBODY = pb.SubscribeRequest(events=["external:secret"], ring_bytes=RING, pool=True)


def tell_secrets(root, n):
    """So many samples, as many packets in a pool."""
    for number in range(n):
        text = b"secret %d " % number + 4000 * b"."
        root.request(emit=pb.EmitRequest(samples=[pb.ExternalSample(event="external:secret", time=time.monotonic_ns(),
                                                                    values=[pb.ExternalValue(text=text)])]))


def test_who_shares():
    """Those of whom rules say the same at any time: of one uid, with the same groups, by the same socket or as root."""
    with Daemon(rules(f"{{ users: [{ANN}, {BOB}], subscribe: ['*'] }}")) as daemon, contextlib.ExitStack() as stack:
        with daemon.client() as root:
            add(root, SECRET)
        each = [(ANN, ()), (ANN, ()), (ANN, (TRACERS,)), (BOB, ()), (BOB, ()), (0, ()), (0, (TRACERS,))]
        clients = [stack.enter_context(daemon.client_of(uid, groups=groups)) for uid, groups in each]
        clients.append(stack.enter_context(daemon.client()))
        for client in clients:
            equal(client.request(subscribe=AS_ANYBODY).ring.pool_bytes, POOL, "bytes of the pool")
        files = [os.fstat(client.fds[2]) for client in clients]
        equal([[i for i, other in enumerate(files) if other.st_ino == file.st_ino][0] for file in files],
              [0, 0, 2, 3, 3, 5, 5, 5], "the first of those with the same file")
        equal([file.st_blocks * 512 for file in files], [POOL, POOL, 0, POOL, POOL, POOL, POOL, POOL], "their memory")
        equal(len([fd for fd in daemon.fds() if "perfd-packets" in fd]), 4, "files that perfd keeps")
        for client in clients[1:4]:
            client.socket.close()
        wait_until(lambda: len([fd for fd in daemon.fds() if "perfd-packets" in fd]) == 3, "the one of nobody is gone")


def test_pools_side_by_side():
    """What most share is where items are written; the others get copies, and all get the same."""
    with Daemon(rules(f"{{ users: [{ANN}, {BOB}], subscribe: ['*'] }}")) as daemon, daemon.client() as root, \
            contextlib.ExitStack() as stack:
        add(root, SECRET)
        clients = [daemon.client_of(uid, groups=()) for uid in (BOB, BOB, ANN, ANN, ANN)]
        for client in clients:
            stack.callback(client.socket.close)
            client.subscribe(events=["external:secret"], ring_bytes=RING, pool=True, queue_bytes=QUEUE)
        tell_secrets(root, 20)
        for client in clients:
            client.stop()
        items = [take_all(client) for client in clients]
        equal([(len(each), client.pooled > 0) for each, client in zip(items, clients)], 2 * [(20, False)] + 3 * [(20, True)],
              "items, and whether some came in a pool")
        for each in items:
            equal(keys(each), keys(items[0]), "items")


def test_revoked():
    """Whose grant is gone reads no more in the pool that it has mapped, also if its stream had ended before."""
    both, one = (rules(f"{{ users: [{users}], subscribe: ['*'] }}") for users in (f"{ANN}, {BOB}", ANN))
    with Daemon(both) as daemon, daemon.client() as root, contextlib.ExitStack() as stack:
        add(root, SECRET)
        bobs = [stack.enter_context(daemon.client_of(BOB, groups=())) for _ in range(3)]
        for bob in bobs:
            bob.request(subscribe=AS_ANYBODY)
        pool = stack.enter_context(mmap.mmap(bobs[0].fds[2], POOL, prot=mmap.PROT_READ))
        anns = [daemon.client_of(ANN, groups=()) for _ in range(2)]
        for ann in anns:
            stack.callback(ann.socket.close)
            ann.subscribe(events=["external:secret"], ring_bytes=RING, pool=True, queue_bytes=QUEUE)
        tell_secrets(root, 3)
        wait_until(lambda: b"secret 2" in pool[:], "what it may read is there")
        bobs[2].socket.close()
        wait_until(lambda: "the peer closed the connection" in daemon.stderr(), "perfd has seen that one of them has gone")
        reload(daemon, one)
        equal(daemon.stderr().count(f"the access rules for uid {BOB} have changed"), 2, "streams that end")
        tell_secrets(root, 30)
        for ann in anns:
            ann.stop()
            equal((len(take_all(ann)), ann.pooled > 0), (33, True), "items, and whether some came in a pool")
        equal([n for n in range(3, 30) if b"secret %d " % n in pool[:]], [], "secrets in what it has mapped")


def test_failures():
    """No pool can be made, or it gets no memory: that is said, and everybody gets copies."""
    need_strace()
    for trace in (Trace("memfd_create", "EMFILE", 3), Trace("fallocate", "ENOSPC", 5)):
        with traced(cpus=CPUS[:1]) as (daemon, load):
            with attached(daemon, trace):
                clients = [pooled(daemon)]
                if not trace.injected():
                    clients.append(pooled(daemon))
            check(trace.injected(), "nothing failed: the test shows nothing")
            load.go()
            load.done()
            all_calls(daemon, CALLS + 1)
            for client in clients:
                client.stop()
                equal((len(take_all(client)), client.pooled), (CALLS + 1, 0), "items, and packets in a pool")
                client.socket.close()
            equal(daemon.stderr().count("cannot share packets with others"), 1, "how often it is said")


if __name__ == "__main__":
    perfd.main(globals())
