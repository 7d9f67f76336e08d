#!/usr/bin/python3
"""Clients that break every rule, while somebody else's stream goes on.

Each attack is made on a daemon of its own that traces a steady load, whose subscriber reads it all: it must see every
single event in order, without a gap, and its closing ledger must be that of the load. The attack is made once, then
three times more: the daemon may hold no fd and no connection of it afterwards, and not GROWTH bytes more memory.
"""
import contextlib
import os
import random
import re
import resource
import select
import signal
import socket
import struct
import time

import perfd
from perfd import Client, Daemon, Skip, check, equal, pb, refused, wait_until

RATE = 4000        # calls a second of each process of the load, one for each CPU
GROWTH = 1 << 20   # bytes of its own memory that the daemon may have more after three more of the same attacks
ENDED = 2 * 4096 * 512  # bytes for tasks that have ended, of which it remembers so many for each order of streams
QUOTA = 128        # connections.per-uid
PATIENCE_OF_PERFD = 10

CONFIG = f"""version: 1
access: {{ stream-mode: 0666 }}
connections: {{ max: 256, per-uid: {QUOTA} }}
subscribers: {{ max: 64, queue: 16MiB }}
"""


@contextlib.contextmanager
def peace():
    """A daemon, with the load and its subscriber around."""
    with perfd.Daemon(config=CONFIG) as daemon, daemon.client() as control:
        os.chmod(daemon.directory, 0o755)
        with perfd.Workload("flood", 0, RATE) as load:
            perfd.add(control, {"event": "syscalls:sys_enter_getppid", "name": "load",
                                "target": pb.Target(pids=load.pids)})
            with perfd.Subscriber(daemon, "--quiet", "load") as good:
                load.go()
                yield daemon
                counts = load.done(stop=True)
                rows = good.finish()
            load.exit()
        events = [row for row in rows if row["kind"] == "event"]
        own = rows[-1]
        equal(sum(row["occurred"] for row in events), sum(counts), "events in the ledger, and calls of the load")
        equal(sum(row["delivered"] for row in events), sum(counts), "delivered")
        equal([n for row in events for n in row["lost"].values() if n], [], "losses")
        equal((own["sent"], own["matched"]), (sum(counts), sum(counts)), "what its subscriber was sent, and matched")
        equal([n for n in own["dropped"].values() if n], [], "drops")


def dropped(daemon, program):
    """What each subscriber that calls itself so did not get because it does not read."""
    return [count.count for s in daemon.ledger().subscribers if s.peer.startswith(program)
            for count in s.dropped if count.reason == "outbox"]


class State:
    """What the daemon holds for its peers, when nobody is about to come or go."""

    def __init__(self, daemon):
        self.daemon = daemon
        wait_until(lambda: daemon.status().n_connections == 2, "only the connections of the test itself")
        self.fds = daemon.fds()

    def again(self, more=()):
        """Waits until it is the same again; more: kinds of fds besides."""
        expected = sorted([*self.fds, *more])
        try:
            wait_until(lambda: self.daemon.fds() == expected and self.daemon.status().n_subscribers == 1, "as before")
        except AssertionError:
            status = self.daemon.status()
            raise AssertionError(f"fds are {self.daemon.fds()} instead of {expected}, there are {status.n_connections} "
                                 f"connections and {status.n_subscribers} subscribers") from None


def survive(attack, more=0):
    """more: bytes that it may have besides GROWTH, for a reason of the attack's own."""
    with peace() as daemon:
        before = State(daemon)
        attack(daemon)
        before.again()
        rss = daemon.rss()
        for _ in range(3):
            attack(daemon)
            before.again()
        grown = daemon.rss() - rss
        print(f"  {attack.__name__}: {len(before.fds)} fds, {rss >> 10} KiB, three times later {grown >> 10:+} KiB")
        if perfd.SANITIZER == "none":  # which keeps what is freed
            check(grown <= GROWTH + more, f"{grown} bytes more than before")


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(path)
    s.settimeout(perfd.PATIENCE)
    return s


def frame(message):
    return struct.pack("<I", len(message)) + message


def request(number, **body):
    return frame(pb.Request(id=number, **body).SerializeToString())


def read_all(s):
    """Everything until the daemon closes: in bounded time, because each read is."""
    got = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while part := s.recv(1 << 16):
            got += part
    return bytes(got)


def responses(got):
    """Whole frames, which is all that may have come."""
    while got:
        length, = struct.unpack_from("<I", got)
        check(len(got) >= 4 + length, f"the last frame is cut: {len(got)} of {4 + length} bytes")
        yield pb.ServerMessage.FromString(got[4:4 + length]).response
        got = got[4 + length:]


# ---- requests --------------------------------------------------------------------------------------------------------


def send_garbage(daemon):
    """What is no request is answered once, with id 0, and the connection closed; on both sockets."""
    dice = random.Random(1)
    unreadable = [b"\x0a", b"\xff" * 64, b"\x0f" + bytes(100), b"\x10\x05hello",
                  *(b"\x0f" + dice.randbytes(dice.randrange(1, 4000)) for _ in range(20))]
    for path in (daemon.control, daemon.stream):
        for message in unreadable:
            with connect(path) as s:
                s.sendall(frame(message))
                answers = list(responses(read_all(s)))
                equal([(a.id, a.reason) for a in answers], [(0, "bad-request")], f"the answer to {message[:20]}")
        for length in (0xffffffff, 0x80000000, (1 << 20) + 1):
            with connect(path) as s:
                s.sendall(request(1, hello=pb.Hello(protocol=1)) + struct.pack("<I", length))
                answers = list(responses(read_all(s)))
                equal([(a.id, a.reason) for a in answers], [(1, ""), (0, "bad-request")], f"answers to {length} bytes")
                check("max_request" in answers[1].message, answers[1].message)
        with connect(path) as s:  # a whole message, of nothing: it can be followed, so the connection goes on
            s.sendall(frame(b"") + request(2, list=pb.ListRequest()))
            s.shutdown(socket.SHUT_WR)
            equal([(a.id, a.reason) for a in responses(read_all(s))], [(0, "bad-request"), (2, "")], "the answers")


def test_garbage():
    survive(send_garbage)


def send_in_one(daemon):
    """Requests behind one another without taking a response: one answer each, in their order."""
    n = 500
    with connect(daemon.control) as s:
        s.sendall(b"".join(request(i + 1, list=pb.ListRequest()) for i in range(n)))
        s.shutdown(socket.SHUT_WR)
        equal([(a.id, a.reason) for a in responses(read_all(s))], [(i + 1, "") for i in range(n)], "the answers")
    with connect(daemon.stream) as s:  # behind subscribe nothing may follow; nothing was subscribed, nothing is lost
        s.sendall(request(1, subscribe=pb.SubscribeRequest()) + request(2, stop=pb.Empty()) +
                  request(3, status=pb.Empty()))
        s.shutdown(socket.SHUT_WR)
        answers = list(responses(read_all(s)))
        equal([(a.id, a.reason) for a in answers], [(1, "bad-request"), (2, "bad-request"), (3, "")], "the answers")
        equal(answers[2].daemon.n_subscribers, 1, "subscribers")
    with connect(daemon.stream) as s:  # and a part of a request is something too
        s.sendall(request(1, subscribe=pb.SubscribeRequest()) + b"\x05")
        s.shutdown(socket.SHUT_WR)
        equal([(a.id, a.reason) for a in responses(read_all(s))], [(1, "bad-request")], "the answer")


def test_pipelined():
    survive(send_in_one)


def test_half_requests():
    """A request that has begun, and a response that nobody takes, have 10 s; silence behind the first request has for ever."""
    with peace() as daemon, contextlib.ExitStack() as stack:
        before = State(daemon)
        idle = stack.enter_context(daemon.client())
        debtors, begin = {}, time.monotonic()
        whole = request(1, hello=pb.Hello(protocol=1, program="half"))
        megabyte = struct.pack("<I", 1 << 20)
        for name, sent in (("two bytes", whole[:2]), ("only a length", megabyte), ("half", whole[:8]),
                           ("one and a half", whole + whole[:-1]), ("64 KiB of 1 MiB", megabyte + bytes(1 << 16))):
            for path in (daemon.control, daemon.stream):
                s = debtors[name, path] = stack.enter_context(connect(path))
                s.sendall(sent)
        slow = stack.enter_context(connect(daemon.stream))  # a byte now and then buys no time
        slow.sendall(struct.pack("<I", 1000))
        deaf = stack.enter_context(connect(daemon.stream))
        deaf.sendall(b"".join(request(i, available=pb.AvailableRequest(fields=True)) for i in range(4)))
        closed = {}
        while len(closed) < len(debtors) + 1 and time.monotonic() - begin < PATIENCE_OF_PERFD + perfd.PATIENCE:
            waiting = [s for s in (*debtors.values(), slow) if s not in closed]
            for s in select.select(waiting, [], [], 0.5)[0]:
                with contextlib.suppress(ConnectionResetError):
                    if s.recv(1 << 16):
                        continue
                closed[s] = time.monotonic() - begin
            if slow not in closed:
                with contextlib.suppress(BrokenPipeError):
                    slow.sendall(b"\0")
        for (name, path), s in {**debtors, ("a trickle", daemon.stream): slow}.items():
            check(s in closed, f"{name} on {path} was never closed")
            check(PATIENCE_OF_PERFD - 0.5 < closed[s] < PATIENCE_OF_PERFD + perfd.PATIENCE,
                  f"{name} on {path} was closed after {closed[s]} s")
        # all but the idle one: also the one that takes no response, which cannot see it
        before.again(more=["socket"])
        idle.request(list=pb.ListRequest())
        equal(daemon.stderr().count("an incomplete request"), len(debtors) + 2, "connections closed for their debts")


def connect_often(daemon):
    """A thousand connections: as many as the quota of a uid allows, the others are told. Another uid is served."""
    before = len(daemon.fds())
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(daemon.stream)) for _ in range(1000)]
        good, told = 0, 0
        for i, s in enumerate(connections):
            with contextlib.suppress(BrokenPipeError):  # refused already
                s.sendall(request(i + 1, hello=pb.Hello(protocol=1)))
        for i, s in enumerate(connections):
            length, = struct.unpack("<I", s.recv(4, socket.MSG_WAITALL))
            answer = pb.ServerMessage.FromString(s.recv(length, socket.MSG_WAITALL)).response
            if answer.id == i + 1:
                equal(answer.reason, "", "the reason")
                good += 1
            else:
                equal((answer.id, answer.reason), (0, "too-many-connections"), "the answer")
                check(str(QUOTA) in answer.message, answer.message)
                equal(read_all(s), b"", "what follows a refusal")
                told += 1
        equal((good, told), (QUOTA, 1000 - QUOTA), "connections, and refusals")
        equal(len(daemon.fds()), before + good, "fds")
        equal(as_nobody(daemon.stream), "hello", "what another uid is told")


def as_nobody(path):
    """What a client of another uid is told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told = "died"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with Client(path) as client:
                told = "hello" if client.hello.protocol == 1 else "nothing"
        except Exception as e:  # pylint: disable=broad-except
            told = str(e)
        finally:
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as f:
        told = f.read()
    os.waitpid(child, 0)
    return told


def test_thousand_connections():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    survive(connect_often)


# ---- streams ---------------------------------------------------------------------------------------------------------


def die_in_frames(daemon):
    """kill -9 of subscribers that have read a part of a frame, and of those for whom frames wait half sent."""
    n, children = 6, []
    for i in range(n):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                client = Client(daemon.stream, program="victim")
                client.send(subscribe=pb.SubscribeRequest(overflow="OVERFLOW_DROP_NEWEST", queue_bytes=1 << 16))
                client.socket.recv(5 + i, socket.MSG_WAITALL)
                if i % 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()
            os._exit(1)
        children.append(child)
    # the others live until the daemon cannot send on, so that what was sent last is a part of a frame
    try:
        wait_until(lambda: sum(d > 0 for d in dropped(daemon, "victim")) == n // 2, "a full queue of each victim")
    finally:
        for child in children[::2]:
            os.kill(child, signal.SIGKILL)
        for child in children:
            equal(os.waitpid(child, 0)[1], signal.SIGKILL, "how a victim ended")


def test_killed_subscribers():
    survive(die_in_frames, more=ENDED)  # each victim is a process


def say_something_else(daemon):
    """On a subscribed connection there is `stop`: everything else ends it, without an end of the stream."""
    for said in (request(3, list=pb.ListRequest()), request(3, subscribe=pb.SubscribeRequest()), frame(b"\xff" * 100),
                 b"\xff\xff\xff\xff", struct.pack("<I", 4097), frame(b""), b"GET / HTTP/1.1\r\n\r\n", None):
        with daemon.client(stream=True) as client:
            items = client.subscribe(events=["load"])
            next(items)
            if said is None:
                client.socket.shutdown(socket.SHUT_WR)
            else:
                client.socket.sendall(said)
            read_all(client.socket)  # bounded: it closes
            equal(client.end, None, "the end of the stream")


def test_garbage_on_streams():
    survive(say_something_else)


def read_nothing(daemon):
    """Subscribers that do not read, with a small queue, by each policy: what they miss is theirs alone, and counted."""
    policies = {"OVERFLOW_DROP_OLDEST": "stopped", "OVERFLOW_DROP_NEWEST": "stopped", "OVERFLOW_DISCONNECT": "overflow"}
    rss, n_cpus = daemon.rss(), len(perfd.online_cpus())
    with contextlib.ExitStack() as stack:
        slow = {}
        for policy in policies:
            client = stack.enter_context(Client(daemon.stream, program=policy))
            client.socket.settimeout(perfd.PATIENCE)
            slow[policy] = client, client.subscribe(events=["load"], overflow=policy, queue_bytes=1 << 16)

        wait_until(lambda: all(d >= 1000 for d in dropped(daemon, "OVERFLOW_DROP")), "1000 items dropped for both")
        wait_until(lambda: all(dropped(daemon, "OVERFLOW_DISCONNECT")), "an overflow")
        if perfd.SANITIZER == "none":  # the batches of each CPU (batches.pool) are there at last, and three queues
            grown = daemon.rss() - rss
            check(grown <= (n_cpus << 20) + 3 * (1 << 16) + GROWTH, f"{grown} bytes more for three full queues")
        for policy, (client, items) in slow.items():
            n = 0
            for _ in items:  # checks gaps, order and the closing ledger
                n += 1
                if client.stream.missing:
                    client.stop()
            own = client.end["ledger"][-1]
            equal(client.end["reason"], policies[policy], f"how the stream of {policy} ended")
            missing = client.stream.missing
            equal((own["sent"], own["dropped"]["outbox"]), (n, missing), "the numbers")
            check(missing >= (1 if policy == "OVERFLOW_DISCONNECT" else 1000), f"{missing} missing")


def test_slow_readers():
    survive(read_nothing)


def begin_long_requests(client):
    """All but the last byte of the longest request; what perfd answers, or None."""
    with contextlib.suppress(ConnectionError):
        client.socket.sendall(struct.pack("<I", 1 << 20) + bytes((1 << 20) - 1))
    return client.receive() if select.select([client.socket], [], [], 0)[0] else None


def in_time(begin):
    """perfd ends who is in the middle of a frame after 10 s: what the first ones held is free then, and others get it."""
    took = time.monotonic() - begin
    if perfd.SANITIZER != "none" and took > PATIENCE_OF_PERFD:
        raise Skip(f"with a sanitizer, on this machine, it took {took:.0f} s until all had sent or asked, and perfd waits for {PATIENCE_OF_PERFD} s")


def test_long_requests_that_do_not_end():
    """Of one uid they take 24 MiB, of all 48; then they are refused, and who asks for little is served as before."""
    with Daemon(CONFIG) as daemon, contextlib.ExitStack() as stack:
        before, refusals, begin = daemon.rss(), {}, time.monotonic()
        for uid in 65534, 65533, 65532:
            refusals[uid] = 0
            for _ in range(30):
                client = stack.enter_context(daemon.client_of(uid))
                said = begin_long_requests(client)
                if said:
                    equal((said.response.id, said.response.reason), (0, "request-memory"), said.response.message)
                    refusals[uid] += 1
                daemon.status()  # all that was sent is read by now, or will not be
        in_time(begin)
        check(refusals[65534] >= 5 and sum(refusals.values()) >= 40, f"refused: {refusals}")
        if perfd.SANITIZER == "none":
            check(daemon.rss() - before <= (60 << 20), f"{(daemon.rss() - before) >> 20} MiB more")
        with daemon.client_of(65531) as small:
            small.request(status=pb.Empty())


def ask_for_all(client):
    """Does not read the response: its length."""
    client.send(list=pb.ListRequest(fields=True))
    return struct.unpack("<I", client.socket.recv(4, socket.MSG_PEEK | socket.MSG_WAITALL))[0]


def test_long_responses_that_are_not_read():
    """Of one uid they take 24 MiB, of all 48; then they are refused, until some are read. Root's are not limited."""
    fields = ", ".join(f"f{k}: u32" for k in range(64))
    events = "".join(f"      - {{ event: external:e{k}, fields: {{ {fields} }} }}\n" for k in range(1000))
    with Daemon(CONFIG + "groups:\n  g:\n    events:\n" + events) as daemon, contextlib.ExitStack() as stack:
        daemon.monitor = stack.enter_context(daemon.client())
        daemon.monitor.request(list=pb.ListRequest(fields=True))  # what it takes to make one
        # first of all, because who has not taken a response after 10 s is ended
        clients = {uid: [stack.enter_context(daemon.client_of(uid)) for _ in range(15)] for uid in (65534, 65533, 65532)}
        before, each, n, begin = daemon.rss(), 0, 0, time.monotonic()
        for uid, own in clients.items():
            most, taken = min(24 << 20, (48 << 20) - n * each), []
            for client in own:
                length = ask_for_all(client)
                if length < 1 << 16:
                    refusal = client.receive().response
                    equal((refusal.reason, refusal.status), ("response-memory", pb.STATUS_EXHAUSTED), refusal.message)
                    break
                taken.append(client)
                each = length
            in_time(begin)
            check(0 <= most - len(taken) * each < each, f"{len(taken)} responses of {each} bytes of uid {uid}")
            n += len(taken)
            client.request(status=pb.Empty())  # who asks for little is served
        if perfd.SANITIZER == "none":  # 48 MiB, and holes that were left by making them
            check(daemon.rss() - before <= (80 << 20), f"{(daemon.rss() - before) >> 20} MiB more")
        root = stack.enter_context(daemon.client(stream=True))
        check(ask_for_all(root) == each, "root's response is another one")
        taken = stack.enter_context(daemon.client_of(65534))
        length = ask_for_all(taken)
        in_time(begin)
        check(length < 1 << 16, "a response of a uid that has not read others")
        stack.close()
        with daemon.client_of(65534) as client:
            equal(len(client.request(list=pb.ListRequest(fields=True)).list.events), 1000, "events, when nobody holds any")


def test_files_that_are_sent():
    """Files of a peer are not taken: to close them in recv(2) may take main seconds. Before Linux 6.16 nothing can refuse them."""
    if tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) < (6, 16):
        raise Skip("this kernel lets nobody refuse files that are sent (SO_PASSRIGHTS)")
    with Daemon() as daemon:
        for path in daemon.control, daemon.stream:
            with Client(path, program="sends") as client:
                frame = pb.Request(id=client.last_id + 1, status=pb.Empty()).SerializeToString()
                try:
                    socket.send_fds(client.socket, [struct.pack("<I", len(frame)) + frame], [0])
                    raise AssertionError("a file was taken")
                except PermissionError:
                    pass
                client.request(status=pb.Empty())


def test_stop_with_slow_reader():
    """A subscriber that takes nothing does not keep perfd from stopping."""
    with peace() as daemon:
        client = Client(daemon.stream, program="stuck")
        client.subscribe(events=["load"], overflow="OVERFLOW_DROP_OLDEST", queue_bytes=1 << 16)
        wait_until(lambda: any(dropped(daemon, "stuck")), "a full queue")
    with client:
        check("did not read their closing ledger" in daemon.last_words, f"perfd said: {daemon.last_words}")


if __name__ == "__main__":
    perfd.main(globals())
