#!/usr/bin/python3
"""The memory of subscribers: it is charged as it is used, so that many modest ones fit; together they hold no more than they
may, whatever they do, and no more than perfd's cgroup and address space have left; and who reads loses nothing by those who do not. Needs root."""
import contextlib
import os
import resource
import threading

import perfd
from checker import Checker
from perfd import Daemon, Refused, Skip, Workload, add, check, equal, pb, refused, wait_until
from test_promises import CPUS, all_lost, rows_of

MIB = 1 << 20
MANY = 300
CALLS = 200
FLOOD = 15_000 if perfd.SANITIZER == "thread" else 100_000  # calls a second; ThreadSanitizer's dispatcher has hundreds to serve
MEMORY_V1 = "/sys/fs/cgroup/memory"
LIMIT = 96 if perfd.SANITIZER == "none" else 288  # MiB of perfd's cgroup: of memory that a sanitizer adds perfd knows nothing
UID_MEMORY = 24  # MiB
SLACK = 8        # MiB that are not charged: batches, rooms for packets; the allocator may lose a quarter of what is
NOBODY, SOMEBODY, ANYBODY = 65534, 65533, 65532

HOSTILE = f"""version: 1
access: {{ stream-mode: 0666 }}
subscribers: {{ memory: 64MiB, memory-per-uid: {UID_MEMORY}MiB }}
"""


@contextlib.contextmanager
def traced(config, load, **daemon):
    """A daemon whose streams anybody may have, and its event `calls` of a load."""
    with Daemon(config, **daemon) as d, d.client() as control:
        add(control, {"event": "syscalls:sys_enter_getppid", "name": "calls", "target": pb.Target(pids=load.pids)})
        yield d


def subscribe(daemon, uid=NOBODY, **more):
    """A stream of this uid that is there, and of which nothing was read."""
    client = daemon.client_of(uid)
    try:
        client.subscribe(events=["calls"], order=pb.ORDER_CPU, **more)
    except Refused:
        client.socket.close()
        raise
    return client


def numbers(client):
    """What it got until its end: who did what when, of each item."""
    return sorted((item["time"], item["cpu"], item["tid"]) for item in client.items())


class Watching:
    """Asks for the daemon's memory all the time: .most is the most that it was."""

    def __init__(self, daemon):
        self.daemon, self.most, self.over = daemon, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, self.daemon.rss())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_many():
    """Three hundred of one user at once, by default, by socket, in shared memory and in pools: all get the same, and all of it."""
    kinds = [{}, {"ring_bytes": 512 << 10}, {"ring_bytes": 512 << 10, "pool": True}]
    with Workload("syscalls", CALLS, cpus=CPUS) as load, \
         traced("version: 1\naccess: { stream-mode: 0666 }\n", load) as daemon, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(subscribe(daemon, **kinds[i % len(kinds)])) for i in range(MANY)]
        equal(daemon.status().n_subscribers, MANY, "subscribers")
        load.go()
        load.done()
        expected = None
        for client in clients:
            client.stop()
            got = numbers(client)
            expected = expected or got
            check(got == expected, "two subscribers got different samples")
            equal(client.end["ledger"][-1]["dropped"], {"outbox": 0, "memory": 0, "late": 0}, "what was dropped")
        equal(len(expected), CALLS * len(CPUS), "samples")
        load.exit()


def of_uid(daemon, uid):
    """What was dropped for want of memory, and waits, of the streams of a user; every row of them adds up."""
    rows = [row for row in daemon.ledger().subscribers if row.peer.endswith(f"uid {uid}")]
    for row in rows:
        check(row.balanced and row.matched == row.sent + row.queued + sum(c.count for c in row.dropped), f"the sum of {row}")
    return sum(c.count for row in rows for c in row.dropped if c.reason == "memory")


def got_all(daemon, good, calls):
    """Whoever reads got all calls. A sanitizer's daemon may be too slow for the load, and then says what the kernel lost."""
    seen = good.finish()
    lost = 0 if perfd.SANITIZER == "none" else all_lost(rows_of(daemon.ledger(), "calls"))
    equal((seen["items"] - seen["records"] + lost, seen["outbox"], seen["memory"]), (calls, 0, 0), "what the one who reads got, and what not")


def flood_goes_on(daemon):
    """For as many calls as a second of the flood has: whatever grows meanwhile is not bounded."""
    def made():
        return sum(row.occurred for row in daemon.ledger("calls").events)

    enough = made() + FLOOD
    wait_until(lambda: made() >= enough, "that the flood goes on")


def bounded(most, **kind):
    """Streams of a kind by an unprivileged user, as many as it may have or `most`, that nobody reads, in a flood."""
    with Workload("flood", 0, FLOOD, cpus=CPUS[:1]) as load, traced(HOSTILE, load) as daemon, contextlib.ExitStack() as stack:
        good = stack.enter_context(Checker(daemon, "cpu", "calls", queue=8 * MIB))
        before, n = daemon.rss(), 0
        with contextlib.suppress(Refused):
            while n < most:
                overflow = (pb.OVERFLOW_DROP_OLDEST, pb.OVERFLOW_DROP_NEWEST)[n % 2]
                # of different events, as far as there are bits for that, so that they share no packets
                stack.enter_context(subscribe(daemon, overflow=overflow, records=n % 50, **kind))
                n += 1
        with Watching(daemon) as memory:
            load.go()
            wait_until(lambda: of_uid(daemon, NOBODY) > 0, "that something is dropped")
            flood_goes_on(daemon)
            calls = load.done(stop=True)[0]
        grown = memory.most - before
        print(f"  {n} streams, {kind}: {grown / MIB:.1f} MiB")
        if perfd.SANITIZER == "none":
            check(grown < (UID_MEMORY * 5 / 4 + SLACK) * MIB, f"{grown} bytes more than before")
        got_all(daemon, good, calls)
        return n


def test_bound_of_queues():
    bounded(20, queue_bytes=UID_MEMORY * MIB)


def test_bound_of_many():
    check(bounded(1000, queue_bytes=UID_MEMORY * MIB, payload=pb.PAYLOAD_BOTH) > 200, "too few subscribers fit")


def test_bound_of_rings():
    equal(bounded(1000, queue_bytes=UID_MEMORY * MIB, ring_bytes=8 * MIB, pool=True), UID_MEMORY // 8 - 1, "rings that fit")


def test_refused():
    """What a stream has from its beginning to its end is reserved for its user, and refused with what there is; it comes back."""
    with Workload("syscalls", 1, cpus=CPUS[:1]) as load, traced(HOSTILE, load) as daemon:
        for _ in range(3):
            with contextlib.ExitStack() as stack:
                for _ in range(UID_MEMORY // 8 - 1):
                    stack.enter_context(subscribe(daemon, ring_bytes=8 * MIB))
                no = refused(stack.enter_context(daemon.client_of(NOBODY)), "queue-memory", "STATUS_EXHAUSTED",
                             subscribe=pb.SubscribeRequest(ring_bytes=8 * MIB))
                for words in f"uid {NOBODY}", str(UID_MEMORY * MIB), "subscribers.memory-per-uid", "smaller ring":
                    check(words in no.message, no.message)
                stack.enter_context(subscribe(daemon, uid=SOMEBODY, ring_bytes=8 * MIB))  # others are not concerned
                stack.enter_context(subscribe(daemon, uid=0, ring_bytes=8 * MIB))
            wait_until(lambda: daemon.status().n_subscribers == 0, "that they are gone")
        with daemon.client_of(NOBODY) as client:
            no = refused(client, "queue-memory", "STATUS_EXHAUSTED", subscribe=pb.SubscribeRequest(queue_bytes=UID_MEMORY * MIB + 1))
            check(str(UID_MEMORY * MIB) in no.message, no.message)
        with contextlib.ExitStack() as stack:  # all uids together: 60 MiB of 64 for those who are not root
            for uid in (NOBODY, SOMEBODY, ANYBODY):
                with contextlib.suppress(Refused):
                    while True:
                        stack.enter_context(subscribe(daemon, uid=uid, ring_bytes=2 * MIB))
            no = refused(stack.enter_context(daemon.client_of(ANYBODY)), "queue-memory", "STATUS_EXHAUSTED",
                         subscribe=pb.SubscribeRequest(ring_bytes=2 * MIB))
            check("subscribers.memory (" in no.message, no.message)
            stack.enter_context(subscribe(daemon, uid=0, ring_bytes=2 * MIB))
        load.go()
        load.done()
        load.exit()


def test_less():
    """A reload lowers what there is: whoever has not read drops what is too much at once, and its memory is the host's again."""
    with Workload("flood", 0, 0, cpus=CPUS[:1]) as load, traced(HOSTILE, load) as daemon, daemon.client() as control, \
         contextlib.ExitStack() as stack:
        for overflow in pb.OVERFLOW_DROP_OLDEST, pb.OVERFLOW_DROP_NEWEST, pb.OVERFLOW_DISCONNECT:
            # of different events, so that they share no packets
            stack.enter_context(subscribe(daemon, overflow=overflow, queue_bytes=20 * MIB, records=1 << overflow))
        load.go()
        # of some 40 bytes each, 15 MiB: memory itself says nothing under a sanitizer
        wait_until(lambda: sum(row.queued for row in daemon.ledger().subscribers) > 400_000, "that queues fill")
        load.done(stop=True)
        full, lost = daemon.rss(), of_uid(daemon, NOBODY)
        items = [row.queued for row in daemon.ledger().subscribers]
        control.request(apply=pb.ApplyRequest(yaml="version: 1\nsubscribers: { memory: 4MiB, memory-per-uid: 4MiB }\n"))
        wait_until(lambda: of_uid(daemon, NOBODY) > lost, "that they drop")
        left = [row.queued for row in daemon.ledger().subscribers]
        check(sum(left) < sum(items) / 2 and min(left) > 0, f"{left} wait of {items}")
        if perfd.SANITIZER == "none":
            check(daemon.rss() < full - 8 * MIB, f"{daemon.rss()} bytes, and {full} before")
        load.exit()


@contextlib.contextmanager
def limited(limit):
    """A cgroup with so much memory, where a v1 hierarchy has that controller: its folder."""
    if not os.access(os.path.join(MEMORY_V1, "cgroup.procs"), os.W_OK):
        raise Skip(f"no memory controller at {MEMORY_V1}")
    path = os.path.join(MEMORY_V1, f"perfd-test-{os.getpid()}")
    os.mkdir(path)
    try:
        with open(os.path.join(path, "memory.limit_in_bytes"), "w", encoding="ascii") as f:
            f.write(str(limit))
        yield path
    finally:
        wait_until(lambda: not open(os.path.join(path, "cgroup.procs"), encoding="ascii").read(), "that nobody is in it")
        os.rmdir(path)


def test_memory_limit():
    """Under a limit of its cgroup, far below what the configuration allows, perfd drops what nobody reads, and goes on."""
    if perfd.SANITIZER == "thread":
        raise Skip("ThreadSanitizer has five bytes of its own for each that was ever used, and gives none of them back")
    config = "version: 1\naccess: { stream-mode: 0666 }\n"
    # AddressSanitizer keeps 256 MiB of what is freed by default, so that nothing could be dropped in time
    freeing = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
    with limited(LIMIT * MIB) as path, Workload("flood", 0, FLOOD, cpus=CPUS[:1]) as load, \
         traced(config, load, prefix=["sh", "-c", f'echo $$ > {path}/cgroup.procs && exec "$@"', "sh"],
                env=freeing) as daemon, \
         contextlib.ExitStack() as stack:
        good = stack.enter_context(Checker(daemon, "cpu", "calls", queue=8 * MIB))
        for i in range(8):
            overflow = (pb.OVERFLOW_DROP_OLDEST, pb.OVERFLOW_DROP_NEWEST)[i % 2]
            stack.enter_context(subscribe(daemon, uid=(NOBODY, SOMEBODY)[i % 2], overflow=overflow, queue_bytes=400 * MIB,
                                          records=i))  # of different events, so that they share no packets
        load.go()
        wait_until(lambda: of_uid(daemon, NOBODY) > 0, "that something is dropped")
        flood_goes_on(daemon)
        calls = load.done(stop=True)[0]
        got_all(daemon, good, calls)
        with open(os.path.join(path, "memory.max_usage_in_bytes"), encoding="ascii") as f:
            print(f"  {int(f.read()) / MIB:.1f} of {LIMIT} MiB at most")


def test_address_space():
    """Rings that somebody takes until there are no more leave perfd enough for what it allocates itself, such as for a plan."""
    if perfd.SANITIZER != "none":
        raise Skip("a sanitizer maps terabytes")
    config = "version: 1\naccess: { stream-mode: 0666 }\n"
    with Daemon(config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (500 * MIB, 500 * MIB))) as daemon, \
         contextlib.ExitStack() as stack:
        reason, n = "", 0
        while not reason:
            client, n = stack.enter_context(daemon.client_of(NOBODY)), n + 1
            try:
                client.request(subscribe=pb.SubscribeRequest(ring_bytes=16 * MIB, records=n))
            except Refused as no:
                reason = no.response.reason
        equal(reason, "queue-memory", f"why there is no ring {n}")
        check(n > 8, f"only {n - 1} rings of 16 MiB fit")
        with daemon.client_of(NOBODY) as client:
            refused(client, "bad-config", plan=pb.PlanRequest(yaml="version: 1\nx: [" + "a," * 500_000 + "]"))


def test_small_address_space():
    """Where perfd itself has little, a stranger's long text is refused before it is read, short ones are not, and root is served."""
    if perfd.SANITIZER != "none":
        raise Skip("a sanitizer maps terabytes")
    config = "version: 1\naccess: { stream-mode: 0666 }\n"
    groups = ", ".join(f"g{i}: {{events: [{{event: cs, name: e{i}}}]}}" for i in range(18000))
    long_text, short_text = f"version: 1\ngroups: {{{groups}}}", "version: 1\n"
    with Daemon(config) as daemon, open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
        mapped = next(int(line.split()[1]) for line in f if line.startswith("VmSize:")) << 10
    limit = mapped + 16 * MIB
    with Daemon(config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) as daemon, \
         daemon.client_of(NOBODY) as client, daemon.client() as root:
        for kind in (pb.PlanRequest, pb.ValidateRequest) * 3:
            field = kind.__name__.replace("Request", "").lower()
            no = refused(client, "no-memory", "STATUS_EXHAUSTED", **{field: kind(yaml=long_text)})
            check("KiB are left" in no.message, no.message)
            client.request(**{field: kind(yaml=short_text)})
            root.request(status=pb.Empty())
        check(client.request(doctor=pb.Empty()).doctor.rows, "a doctor")
        try:
            root.request(plan=pb.PlanRequest(yaml=long_text))
        except Refused as no:
            equal(no.response.reason, "no-memory", no.response.message)
        perfd.add(root, "page-faults")


if __name__ == "__main__":
    perfd.main(globals())
