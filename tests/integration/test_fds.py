#!/usr/bin/python3
"""A perfd that may have few fds, and clients of the stream socket, of uid 65534, that take all they can get.

It lives, says why it refuses, answers root on the control socket all the time, and is as before when they are gone.
"""
import contextlib
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import time

import perfd
from perfd import Client, Refused, check, equal, pb, wait_until

FEW = 100        # RLIMIT_NOFILE
NOBODY = 65534
SECONDS = 5      # of an attack
LOST = 4         # exit status of perfctl watch if something was lost
CONFIG = "version: 1\naccess: { stream-mode: 0666 }\n"


@contextlib.contextmanager
def poor_daemon(**more):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW))

    with perfd.Daemon(config=CONFIG, preexec_fn=few, **more) as daemon:
        os.chmod(daemon.directory, 0o755)
        yield daemon


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(perfd.PATIENCE)
    s.connect(path)
    return s


def hello(number=1):
    message = pb.Request(id=number, hello=pb.Hello(protocol=1)).SerializeToString()
    return struct.pack("<I", len(message)) + message


def first_answer(s):
    """The id and the reason of the first response, or None where there is none."""
    with contextlib.suppress(ConnectionResetError):
        head = s.recv(4, socket.MSG_WAITALL)
        if len(head) == 4:
            answer = pb.ServerMessage.FromString(s.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL)).response
            return answer.id, answer.reason
    return None


@contextlib.contextmanager
def nobody(action, *arguments):
    """A process of uid 65534 that does it until it is killed. What it writes to the fd that it is given can be read here."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            action(writing, *arguments)
        except BaseException as e:  # pylint: disable=broad-except
            os.write(writing, f"died: {e!r}\n".encode())
        finally:
            os._exit(1)
    os.close(writing)
    try:
        with os.fdopen(reading) as f:
            yield f
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def hear(f):
    check(select.select([f], [], [], perfd.PATIENCE)[0], "a client says nothing")
    line = f.readline().strip()
    check(line and not line.startswith("died"), f"a client {line}")
    return line


def sit(told, path, n):
    """n idle connections: says how many were answered, and which reasons the others were given."""
    connections, reasons = [], {}
    for _ in range(n):
        s = connect(path)
        with contextlib.suppress(BrokenPipeError):
            s.sendall(hello())
        number, reason = first_answer(s) or (0, "nothing")
        reasons[reason or "hello"] = reasons.get(reason or "hello", 0) + 1
        connections.append(s)
    os.write(told, (" ".join(f"{reason}={n}" for reason, n in sorted(reasons.items())) + "\n").encode())
    signal.pause()


def root_is_served(daemon, name):
    """Everything that an administrator does, each by a connection of its own.

    What was opened to plan something, and waits to be closed, still is open: then there may be none left for an event, and
    perfctl says so.
    """
    def perfctl(*arguments, may_say=None):
        done = subprocess.run([os.path.join(perfd.BUILD, "client", "perfctl", "perfctl"), "--socket", daemon.control, *arguments],
                              capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
        if may_say and may_say in done.stderr:
            return False
        equal(done.returncode, 0, f"the status of perfctl {arguments}, which said: {done.stderr}")
        return True

    perfctl("status")
    wait_until(lambda: perfctl("add", "cpu-clock", "--period", "1000000000", "--name", name,
                               may_say=f"of perfd's {FEW} are left"), "room for an event")
    perfctl("list")
    perfctl("ledger")
    perfctl("remove", name)


def test_idle_connections():
    """74 of them, or 200, as the first attack did: those for which there is no place are told why."""
    for n in (74, 200):
        with poor_daemon() as daemon:
            daemon.status()
            before = daemon.fds()
            with nobody(sit, daemon.stream, n) as f:
                told = dict(word.split("=") for word in hear(f).split())
                equal(sorted(told), ["hello", "too-many-connections"], "what they were told")
                check(int(told["hello"]) >= 8, f"only {told['hello']} of them were served")
                equal(sum(map(int, told.values())), n, "answers")
                # those that were refused are closed when they have been told so
                wait_until(lambda: len(daemon.fds()) <= len(before) + int(told["hello"]), "the connections that were refused are closed")
                equal(len(daemon.fds()), len(before) + int(told["hello"]), "fds")
                root_is_served(daemon, "one")
            wait_until(lambda: daemon.fds() == before, "as before")
            with nobody(sit, daemon.stream, 8) as f:
                equal(hear(f), "hello=8", "what others are told afterwards")
            equal(daemon.stderr().count("accept4"), 0, "complaints of accept4(2)")


def attack(told, path, kind):
    """One kind of request after the other, without an end; each connection stays for a while."""
    os.write(told, b"began\n")
    clients, n = [], 0
    while True:
        n += 1
        try:
            client = Client(path, program=kind)
            client.socket.settimeout(perfd.PATIENCE)
            clients.append(client)
            if kind == "plan":
                client.request(plan=pb.PlanRequest(yaml="version: 1\ngroups: { g: { events: ['syscalls:*'] } }\n"))
            elif kind == "validate":
                client.request(validate=pb.ValidateRequest(yaml="version: 1\ngroups: { g: { events: [cs, 'sched:*'] } }\n"))
            elif kind == "subscribe":
                client.send(subscribe=pb.SubscribeRequest(events=[f"*{n % 50}*", "*"], ring_bytes=1 << 16, pool=True,
                                                          queue_bytes=1 << 16))
            elif kind == "available":
                client.request(available=pb.AvailableRequest(glob="s*", fields=True))
            elif kind == "doctor":
                client.request(doctor=pb.Empty())
        except (Refused, OSError, EOFError, ConnectionError):
            pass
        if len(clients) > 30 or n % 40 == 0:
            for client in clients[:20]:
                client.socket.close()
            del clients[:20]


def test_everything_at_once():
    kinds = ["idle", "plan", "validate", "subscribe", "subscribe", "available", "doctor"]
    with poor_daemon() as daemon:
        daemon.status()
        before = daemon.fds()
        with contextlib.ExitStack() as stack:
            for kind in kinds:
                equal(hear(stack.enter_context(nobody(attack, daemon.stream, kind))), "began", "the first word")
            rounds, end = 0, time.monotonic() + SECONDS
            while time.monotonic() < end:
                root_is_served(daemon, f"event-{rounds}")
                rounds += 1
            check(rounds > 0, "no round")
        print(f"  {rounds} rounds of root's while {len(kinds)} clients attacked")
        wait_until(lambda: daemon.status().n_subscribers == 0 and daemon.status().n_connections == 1, "nobody left")
        wait_until(lambda: daemon.fds() == before, "the fds of before")
        with nobody(sit, daemon.stream, 8) as f:
            equal(hear(f), "hello=8", "what others are told afterwards")
        root_is_served(daemon, "last")


def test_slow_clients_of_root():
    """128 connections of uid 0 to the stream socket, by default all that one uid may have, lock nobody out."""
    with perfd.Daemon(config="version: 1\n") as daemon, contextlib.ExitStack() as stack:
        for _ in range(128):
            s = stack.enter_context(connect(daemon.stream))
            s.sendall(hello() + b"\x10")  # and the beginning of another request
            equal(first_answer(s), (1, ""), "what it is told")
        root_is_served(daemon, "one")
        for _ in range(40):  # and as many on the control socket as there are places, and more
            s = stack.enter_context(connect(daemon.control))
            s.sendall(hello())
            equal(first_answer(s), (1, ""), "what it is told")
        root_is_served(daemon, "two")


def test_two_users():
    """Two uids that have all connections of the stream socket, for ever, leave a place for a third one."""
    with perfd.Daemon(config="version: 1\naccess: { stream-mode: 0666 }\nconnections: { max: 16, per-uid: 8 }\n") as daemon:
        os.chmod(daemon.directory, 0o755)
        with contextlib.ExitStack() as stack:
            with nobody(sit, daemon.stream, 8) as f:
                equal(hear(f), "hello=8", "what they are told")
                for _ in range(8):
                    s = stack.enter_context(connect(daemon.stream))
                    s.sendall(hello())
                    equal(first_answer(s), (1, ""), "what root is told")
                equal(as_uid(65533, daemon.stream), "hello", "what a third uid is told")
                equal(as_uid(65533, daemon.stream), "hello", "and again")


def burst(daemon, n, arguments):
    """n perfctl at once, all of root, on the control socket: none is thrown out for another one."""
    perfctl = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(subprocess.Popen([perfctl, "--socket", daemon.control, *arguments(i)], text=True,
                                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)) for i in range(n)]
        try:
            said = [client.communicate(timeout=2 * perfd.PATIENCE)[1] for client in clients]
        finally:
            for client in clients:
                client.kill()
    fine = (0, LOST)  # all system calls of the host may be too many for the rings
    equal([text for client, text in zip(clients, said) if client.returncode not in fine], [], f"what those of {n} said that failed")


def test_bursts():
    """As many as a script starts in one loop. Each watch is planned before it becomes a stream, while the others wait."""
    with perfd.Daemon(config="version: 1\n") as daemon:
        with daemon.client() as client:
            perfd.add(client, "syscalls:*")
        burst(daemon, 60 if perfd.SANITIZER == "none" else 20, lambda i: ["watch", "syscalls:*", "--where", f"pid == {i + 1}", "--for", "1s"])
        burst(daemon, 100, lambda i: ["status"])
    with poor_daemon() as daemon:
        burst(daemon, 40, lambda i: ["status"])


def as_uid(uid, path):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told = "died"
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            s = connect(path)
            s.sendall(hello())
            number, reason = first_answer(s) or (0, "nothing")
            told = "hello" if number == 1 else reason
        except BaseException as e:  # pylint: disable=broad-except
            told = repr(e)
        finally:
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as f:
        told = f.read()
    os.waitpid(child, 0)
    return told


if __name__ == "__main__":
    perfd.main(globals())
