#!/usr/bin/python3
"""perfctl fleet: what relays have published to a real nats-server is read as it was sent, and every sum closes. Needs root."""
import copy
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile

import certificates
import nkeys
import perfd
from nats import Plain, Publisher, Server
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_nats import CALLS, RATE, ROUTES, need_server
from test_perfctl import GETPPID
from test_promises import CPUS

PERFCTL = f"{perfd.BUILD}/client/perfctl/perfctl"


def fleet(server, *words, status=0):
    done = subprocess.run([PERFCTL, "--json", "fleet", "--nats", server.url, *words], capture_output=True, text=True, check=False,
                          timeout=4 * perfd.PATIENCE)
    equal(done.returncode, status, f"the status of {words}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


AWAY = "the server is away: trying to connect again\nconnected again after TIME\n"


def without_away(said):
    """Without what differs: who says it, and for how long."""
    return re.sub(r"(?m)^perfctl: fleet: nats://127\.0\.0\.1:\d+: (.*?)( after .*)?$", lambda m: m[1] + " after TIME" * bool(m[2]), said)


class Watch:
    """perfctl fleet watch, until it has printed so many lines; then it is told to end."""

    def __init__(self, server, *words):
        self.process = subprocess.Popen([PERFCTL, "fleet", "--nats", server.url, "watch", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    @classmethod
    def lines(cls, server, n, *words):
        """So many, whatever else it says and ends with."""
        watch = cls(server, *words)
        lines = [watch.process.stdout.readline() for _ in range(n)]
        watch.process.terminate()
        watch.process.communicate(timeout=perfd.PATIENCE)
        return lines

    def take(self, n, status=0):
        lines = [self.process.stdout.readline() for _ in range(n)]
        self.process.terminate()
        rest, errors = self.process.communicate(timeout=perfd.PATIENCE)
        equal((self.process.returncode, rest, errors), (status, "", ""), "what it ends with")
        return lines


def publish(daemon, control, server, load, keys=""):
    """All calls of a load, as one epoch that has ended."""
    event, = add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
    with Publisher(daemon, server, ROUTES, keys) as relay:
        relay.wait_for(r"publishing to")
        relay.wait_for(r"route calls has begun")
        load.go()
        load.done()
    return event


def test_every_call():
    """The ledger of what is stored balances with nothing lost, and each item comes once, with its host, also of a glob of hosts."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        publish(daemon, control, server, load)
        row, = fleet(server, "ledger")[0]
        n = sum(load.counts)
        equal((row["host"], row["route"], row["state"], row["matched"], row["consumed"], row["lost"], row["expired_packets"]),
              ("web1", "calls", "ended", n, n, {}, 0), "the row")
        host, = fleet(server, "hosts")[0]
        equal((host["host"], host["state"], host["published"], host["lost"]), ("web1", "ended", n, {}), "the host")
        equal((host["machine"], host["boot"], host["messages"], host["bytes"]), (row["machine"], row["boot"], row["messages"], row["bytes"]),
              "as the ledger has it")
        route, = host["routes"]
        equal((route["epoch"], route["matched"], route["published"], route["held"], route["balanced"], route["connected"]),
              (row["epoch"], n, n, 0, True, False), "its route")
        for host in ("db*", "db1"):  # by a glob here, or by the server: there is no last message of its subject
            said = f"no host matches '{host}' in the stream 'perfd'"
            check(said in fleet(server, "ledger", "--host", host, status=1)[1], f"what is said of {host}")
        items = [json.loads(line) for line in Watch(server, "calls", "--all", "--json", "--host", "web*").take(n)]
        equal({(i["host"], i["kind"], i["event"]) for i in items}, {("web1", "sample", "calls")}, "what items are")
        times = [i["time"] for i in items]
        check(times == sorted(times), "an item is older than the one before it")
        calls = {(i["pid"], i["time"]) for i in items}  # those of two CPUs can have the same time
        equal(len(calls), n, "items that are there once")
        equal([sum(pid == p for pid, _ in calls) for p in load.pids], load.counts, "the calls of each pid")
        line = Watch(server, "calls", "--all").take(n)[0]
        check(line.startswith("web1\t") and "calls" in line, f"a line for people: {line!r}")


def test_full_stream():
    """What JetStream drops by its limits is `expired`, and a watch from the middle can decode."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        publish(daemon, control, server, load, ", max-bytes: 1MiB")
        row, = fleet(server, "ledger", status=4)[0]
        n = sum(load.counts)
        check(row["lost"]["expired"] > 0 and row["expired_packets"] > 0, f"nothing has expired: {row}")
        equal((row["matched"], row["consumed"] + row["lost"]["expired"]), (n, n), f"the sum: {row}")
        equal({json.loads(line)["event"] for line in Watch(server, "calls", "--all", "--json").take(row["consumed"], 4)}, {"calls"},
              "items from the middle")
        with Plain(server) as plain:  # the last one is gone, and no message has its number
            last = plain.api("INFO.perfd")["state"]["last_seq"]
            plain.api("MSG.DELETE.perfd", seq=last)
            row, = fleet(server, "ledger", status=4)[0]
            equal((row["state"], row["matched"], row["consumed"] + row["lost"]["expired"]), ("ended", n, n), f"without the last one: {row}")
            plain.api("PURGE.perfd")
        row, = fleet(server, "ledger", status=4)[0]
        equal((row["state"], row["matched"], row["consumed"], row["lost"]), ("ended", n, 0, {"expired": n}), f"with nothing left: {row}")


def test_running_route():
    """The sum closes while a route goes on, with what a limit of messages has dropped of it; a relay that holds nothing back says so."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Plain(server) as plain:
            plain.api("CREATE.perfd", name="perfd", subjects=["perfd.*.*"], max_msgs=20, storage="file", retention="limits", discard="old")
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            load.go()
            load.done()
            n = sum(load.counts)
            wait_until(lambda: server.messages()[-1].number("Perfd-Matched") == n, "all to be stored")
            row, = fleet(server, "ledger", status=4)[0]
            check(row["expired_packets"] > 0 and row["lost"]["expired"] > 0, f"nothing has expired: {row}")
            equal((row["state"], row["messages"], row["consumed"] + row["lost"]["expired"]), ("open", 20, n), f"the sum: {row}")
            host, = fleet(server, "hosts")[0]
            equal((host["state"], [r["connected"] for r in host["routes"]]), ("publishing", [True]), f"the host: {host}")


def made(message, contents, subject=None):
    """One with the headers of another."""
    other = copy.copy(message)
    other.bytes, other.subject = contents, subject or message.subject
    return other


def test_same_name():
    """Two hosts of one name are two, also if only the boot differs, and so are their streams."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", 100, RATE, cpus=CPUS[:1]) as load, Server() as server:
        publish(daemon, control, server, load)
        status = server.messages("perfd-status")[-1]
        with Plain(server) as plain:
            for machine, boot in (("0" * 31 + "1", None), (None, "0" * 31 + "2")):
                subject = status.subject.split(".")
                old = status.headers["Perfd-Machine"], status.headers["Perfd-Boot"]
                new = machine or old[0], boot or old[1]
                packet = pb.Packet.FromString(status.bytes)
                packet.relay.machine, packet.relay.boot = new
                plain.put(made(status, packet.SerializeToString(), ".".join([*subject[:3], *new])), Perfd_Machine=new[0], Perfd_Boot=new[1])
                for m in server.messages():
                    if m.headers["Perfd-Machine"] == old[0] and m.headers["Perfd-Boot"] == old[1]:
                        plain.put(m, Perfd_Machine=new[0], Perfd_Boot=new[1])
        rows = fleet(server, "ledger")[0]
        equal(len({(r["machine"], r["boot"]) for r in rows}), 3, f"streams: {rows}")
        equal({(r["host"], r["matched"], r["consumed"], r["state"]) for r in rows}, {("web1", 100, 100, "ended")}, "each")
        equal(len({(h["machine"], h["boot"]) for h in fleet(server, "hosts")[0]}), 3, "hosts")


class Durable:
    """A durable reader, whose output waits for the test to read it."""

    def __init__(self, server, name):
        words = [PERFCTL, "--json", "fleet", "--nats", server.url, "watch", "calls", "--all", "--durable", name]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def take(self, n):
        return [json.loads(self.process.stdout.readline()) for _ in range(n)]

    def end(self, number):
        """What it has written until then, in whole lines."""
        self.process.send_signal(number)
        rest, error = self.process.stdout.read(), self.process.stderr.read()  # which have an end when it has
        status = 0 if number == signal.SIGTERM else -number
        equal((self.process.wait(perfd.PATIENCE), error), (status, ""), f"the end by {number}")
        return [json.loads(line) for line in rest.split("\n")[:-1]]


def test_durable():
    """A durable reader that is told to end goes on where it stopped; one that was killed repeats at most what it had not acknowledged."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS // 4, RATE, cpus=CPUS) as load, Server() as server:
        publish(daemon, control, server, load)
        messages = server.messages()
        n_hosts = 256 // len(messages) + 2  # a reader has at most 64 messages more than it is asked for
        with Plain(server) as plain:
            for i in range(2, n_hosts + 1):
                for m in messages:
                    plain.put(made(m, m.bytes, f"perfd.web{i}.calls"))
        n = n_hosts * sum(load.counts)
        for name, number in (("told", signal.SIGTERM), ("killed", signal.SIGKILL)):
            calls = []
            for _ in range(2):
                reader = Durable(server, name)
                calls += reader.take(1)
                calls += reader.end(number)
            known = {(x["host"], x["pid"], x["time"]) for x in calls}
            check(0 < len(known) < n, f"{len(known)} of {n} calls before the last reader")
            last = Durable(server, name)
            while len(known) < n:
                calls += last.take(1)
                known.add((calls[-1]["host"], calls[-1]["pid"], calls[-1]["time"]))
            calls += last.end(signal.SIGTERM)
            equal(len({(x["host"], x["pid"], x["time"]) for x in calls}), n, f"calls that readers have got that are {name}")
            if number == signal.SIGTERM:
                equal(len(calls), n, "calls that are there once")
        equal(fleet(server, "watch", "other", "--durable", "told", status=1)[1].count("reads perfd.*.calls"), 1, "of another route")


def test_second_durable():
    """Only one reader has a name: another one is refused by who has it, and another name reads beside it. What a stranger takes is said."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", 100, RATE, cpus=CPUS[:1]) as load, Server() as server:
        publish(daemon, control, server, load)
        messages = server.messages()
        first = Durable(server, "one")
        equal(len(first.take(100)), 100, "what the first one gets")
        words = ["watch", "calls", "--all", "--durable", "one"]
        check(f"is being read by process {first.process.pid} of " in fleet(server, *words, status=1)[1], "what the second one says")
        other = Durable(server, "two")
        equal(len(other.take(100)), 100, "what one of another name gets")
        other.end(signal.SIGTERM)
        with Plain(server) as plain:
            copies = [made(m, m.bytes, "perfd.web2.calls") for m in messages]
            plain.put(copies[0])
            first.take(messages[0].number("Perfd-Items"))
            first.process.send_signal(signal.SIGSTOP)
            try:
                wait_until(lambda: not plain.request("$JS.API.CONSUMER.INFO.perfd.one")["num_waiting"], "its last request to end")
                for copy in copies[1:]:
                    plain.put(copy)
                plain.socket.sendall(b"PUB $JS.API.CONSUMER.MSG.NEXT.perfd.one answer 0\r\n\r\n")
                equal(plain.line("HMSG")[1], "perfd.web2.calls", "the message that the stranger takes")
            finally:
                first.process.send_signal(signal.SIGCONT)
        check("messages were given to another reader" in first.process.stderr.readline(), "what is said at once")
        first.process.send_signal(signal.SIGTERM)
        rest, said = first.process.communicate(timeout=perfd.PATIENCE)
        equal((first.process.returncode, "another reader of this consumer has got 1 messages" in said), (4, True), f"the end of the first: {said}")
        gap, = (row for row in map(json.loads, rest.splitlines()) if row["kind"] == "gap")
        equal((gap["first_sequence"], gap["last_sequence"], gap["items"], gap["from"], gap["to"]), (2, 2, None, None, None), f"the gap: {gap}")


def test_silent_durable():
    """Where the server does not let readers ask each other, or a stream answers in their place, one reads and says that it does not know."""
    need_server()
    denied = "{ deny: 'perfd-reader.>' }"
    users = f"{{ user: reader, password: s3cret, permissions: {{ publish: {denied}, subscribe: {denied} }} }}"
    with Daemon() as daemon, daemon.client() as control, Workload("spin", 100, RATE, cpus=CPUS[:1]) as load, \
            Server(f"no_auth_user: all\nauthorization {{ users: [{{ user: all, password: s3cret }}, {users}] }}") as server:
        publish(daemon, control, server, load)
        with Plain(server) as plain:
            plain.api("CREATE.all", name="all", subjects=["perfd-reader.>"])
        for user in "reader:s3cret@", "":
            server.user = user
            reader = Durable(server, f"of-{user[:6]}")
            equal(len(reader.take(100)), 100, f"what {user!r} gets")
            check("is not known, as nobody answers" in reader.process.stderr.readline(), f"what is said to {user!r}")
            reader.end(signal.SIGTERM)


def test_killed_server():
    """Readers go on with what another server on the same folder gets, also of a host that they had not seen, and say that it was away."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", 100, RATE, cpus=CPUS[:1]) as load, Server() as server:
        publish(daemon, control, server, load)
        messages = server.messages()
        readers = [Durable(server, "reader"), Watch(server, "calls", "--all", "--json")]
        for reader in readers:
            equal({json.loads(reader.process.stdout.readline())["host"] for _ in range(100)}, {"web1"}, "the host before")
        for host, number in ("web2", signal.SIGKILL), ("web3", signal.SIGTERM):
            server.signal(number)
            server.process.wait(perfd.PATIENCE)
            server.start()
            with Plain(server) as plain:
                for m in messages:
                    plain.put(made(m, m.bytes, f"perfd.{host}.calls"))
            for reader in readers:
                equal({json.loads(reader.process.stdout.readline())["host"] for _ in range(100)}, {host}, f"the host behind {number}")
                equal(without_away(reader.process.stderr.readline() + reader.process.stderr.readline()), AWAY, f"what is said behind {number}")
        equal((readers[0].end(signal.SIGTERM), readers[1].take(0)), ([], []), "what is left")


def test_steady():
    """What is read is written although messages, here of hosts that are not meant, come without a pause."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", 100, RATE, cpus=CPUS[:1]) as load, Server() as server:
        publish(daemon, control, server, load)
        message = server.messages()[0]
        for words in ((), ("--json",)):
            with Plain(server) as plain:
                watch = Watch(server, "calls", "--all", "--host", "web[1]", *words)
                wait_until(lambda: plain.put(made(message, message.bytes, "perfd.other.calls")) and
                           select.select([watch.process.stdout], [], [], 0)[0], f"lines of {words}")
            equal(len(watch.take(100)), 100, "lines")


def test_since():
    """A reader can begin at a time, and a glob names several routes; one of a route that no host has waits for it."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", 100, RATE, cpus=CPUS[:1]) as load, Server() as server:
        publish(daemon, control, server, load)
        for since in ("10m", "1970-01-02 00:00:00", "1970-01-01", "1960-02-29", "500000h"):
            equal(len(Watch(server, "c*s", "--since", since).take(100)), 100, f"lines since {since}")
        late = Watch(server, "calls", "--since", "10m", "--host", "w*1")
        equal(len(late.take(100)), 100, "of a glob of hosts")


def test_foreign():
    """What others write on these subjects is counted and said, ends nothing, and changes no sum."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", 100, RATE, cpus=CPUS[:1]) as load, Server() as server:
        publish(daemon, control, server, load)
        messages, status = server.messages(), server.messages("perfd-status")[-1]
        first, last = messages[0], messages[-1]
        huge = str((1 << 64) - 1)
        with Plain(server) as plain:
            plain.request("perfd.web1.calls", b"x")
            plain.request("perfd.a b.calls".replace(" ", "%"), b"x")
            for name in ("Machine", "Boot", "Epoch", "Sequence", "Items", "Part", "Wall_Offset", "Descriptors"):
                plain.put(first, **{f"Perfd_{name}": None})
            for part in ("0/1", "2/1", "1/65", "1/" + huge, "-1/1", "1", ""):
                plain.put(first, Perfd_Part=part)
            plain.put(first, Perfd_Epoch="1" + huge)
            plain.put(first, Perfd_Matched="-1")
            n_alien = 2 + 8 + 7 + 2
            plain.put(status, Perfd_Boot="0" * 32)
            plain.put(made(status, b"x"))
            n_alien += 2
            # of streams of their own: another sequence number, more items, a wrong digest, no packet, and too much that matched
            for i, (message, headers) in enumerate((
                    (first, {"Perfd_Sequence": "7"}), (first, {"Perfd_Items": huge, "Perfd_Matched": huge}),
                    (last, {"Perfd_Descriptors": "0" * 32}), (made(first, b"\xff\xff\xff"), {}))):
                plain.put(message, Perfd_Epoch=str(i + 1), **headers)
        rows, said = fleet(server, "ledger", status=4)
        row, = [r for r in rows if r["epoch"] > 100]
        equal((row["matched"], row["consumed"], row["lost"], row["damaged_packets"], row["state"]), (100, 100, {}, 0, "ended"), "the host's own")
        equal({(r["epoch"], r["state"], r["consumed"], r["damaged_packets"]) for r in rows if r["epoch"] < 100},
              {(i + 1, "unreadable", 0, 1) for i in range(4)}, "the others")
        check(f"{n_alien} messages are not of a relay" in said, f"what is said of {n_alien}: {said}")
        items = [json.loads(line) for line in Watch.lines(server, 100, "calls", "--all", "--json")]
        equal(len({i["time"] for i in items}), 100, "what a watch shows")


def test_tls():
    """By TLS with certificates of both sides; a server of another name or CA, and a client without a certificate, are refused."""
    need_server()
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        ca = certificates.make(folder)
        ca.issue("elsewhere", alternatives=["elsewhere"], usage="serverAuth")
        stranger = os.path.join(folder, "stranger")
        os.mkdir(stranger)
        certificates.make(stranger)
        bare = os.path.join(folder, "bare")  # without a CA
        os.mkdir(bare)
        for name in "client.crt", "client.key":
            shutil.copy(os.path.join(folder, name), bare)

        def tls(name):
            return f'tls {{ cert_file: "{folder}/{name}.crt", key_file: "{folder}/{name}.key", ca_file: "{folder}/ca.crt", verify: true }}'

        with Server(tls("server")) as server:
            url = f"tls://localhost:{server.port}"
            for directory, status, expected in ((folder, 1, "has no stream 'perfd'"), (stranger, 3, "certificate"), ("/nowhere", 1, "No such file"),
                                                (bare, 3, "certificate"), (bare, 1, "has no stream 'perfd'")):
                words = [PERFCTL, "--tls", directory, "fleet", "--nats", url, "ledger"]
                known = {"SSL_CERT_FILE": os.path.join(folder, "ca.crt")} if (directory, status) == (bare, 1) else {}  # of this machine
                done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=perfd.PATIENCE, env={**os.environ, **known})
                equal((done.returncode, expected in done.stderr), (status, True), f"with {directory}: {done.stderr}")
            os.chmod(os.path.join(bare, "client.key"), 0o644)
            done = subprocess.run([PERFCTL, "--tls", bare, "fleet", "--nats", url, "ledger"], capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
            equal((done.returncode, "has mode 644" in done.stderr), (1, True), f"with a key that others can read: {done.stderr}")
        with Server(tls("elsewhere")) as server:
            words = [PERFCTL, "--tls", folder, "fleet", "--nats", f"tls://localhost:{server.port}", "ledger"]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
            equal((done.returncode, "is for another name" in done.stderr), (3, True), f"with a server of another name: {done.stderr}")


def test_credentials():
    """A file with JWT and seed of a user whom the server knows by its operator, and one of an account that it does not know."""
    need_server()
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        operator = nkeys.Operator(folder)
        known = operator.write_credentials("known.creds")
        unknown = operator.write_credentials("unknown.creds", nkeys.Key(folder, "stranger", "account"))
        with Server(operator.configuration()) as server:
            for words, status, expected in ((("--credentials", known), 1, "has no stream"), (("--credentials", unknown), 3, "Authorization Violation"),
                                            ((), 3, "--credentials FILE")):
                check(expected in fleet(server, "ledger", *words, status=status)[1], f"with {words}")
            pipe = os.path.join(folder, "pipe")  # that nobody writes to
            os.mkfifo(pipe, 0o600)
            os.chmod(known, 0o644)
            for path, expected in (known, "has mode 644"), (pipe, "not a regular file"), ("/dev/zero", "not a regular file"):
                check(expected in fleet(server, "ledger", "--credentials", path, status=1)[1], f"with {path}")


def test_users():
    """A password of the address is never shown; a file of credentials that cannot be read is said to be one."""
    need_server()
    with Server('authorization { user: "reader", password: "s3cret" }') as server:
        for user, status, expected in (("reader:s3cret@", 1, "has no stream"), ("reader:wr0ng@", 3, "...@127.0.0.1"), ("", 3, "--credentials FILE")):
            url = f"nats://{user}127.0.0.1:{server.port}"
            done = subprocess.run([PERFCTL, "fleet", "--nats", url, "ledger"], capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
            equal((done.returncode, expected in done.stderr), (status, True), f"as {user}: {done.stderr}")
            check("s3cret" not in done.stderr and "wr0ng" not in done.stderr, f"a password is shown: {done.stderr}")
        check("No such file" in fleet(server, "ledger", "--credentials", "/nowhere.creds", status=1)[1], "a file that is not there")


def test_cut_stream():
    """A relay that is killed: its stream was cut off, and the next one goes on."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            load.go()
            wait_until(lambda: len(server.messages()) > 5, "something to be stored")
            equal([row["state"] for row in fleet(server, "ledger")[0]], ["open"], "the state of a stream that goes on")
            relay.kill_and_start()
            relay.wait_for(r"(?s)route calls has begun.*route calls has begun")
            load.done(stop=True)
        (first, second), errors = fleet(server, "ledger", status=4)
        equal(errors.count("1 stream was cut off without an end"), 1, f"what it says of it: {errors}")
        equal((first["state"], first["matched"], second["state"], second["matched"]), ("cut", first["consumed"], "ended", second["consumed"]), "both")
        equal(fleet(server, "hosts")[0][0]["lost"], {}, "what the relay has lost since it was started again")


def test_left_behind():
    """A relay ends without its server, and has no spool on disk: the sums of what is stored close, and that something is lost is said."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            load.go()
            wait_until(lambda: len(server.messages()) > 5, "something to be stored")
            server.kill()
            relay.wait_for(r"nothing is published now")
            load.done(stop=True)
            relay.stop()
            check("messages were not stored, and are lost" in relay.said(), f"it said:\n{relay.said()}")
            server.start()
            relay.start()
            relay.wait_for(r"(?s)route calls has begun.*route calls has begun")
        (first, second), errors = fleet(server, "ledger", status=4)
        equal((first["state"], first["lost"], second["state"], second["lost"]), ("cut", {}, "ended", {}), "both")
        check("1 stream was cut off without an end" in errors, f"what it says of it: {errors}")


def test_errors():
    """Bad words are said to be wrong, and a server or a stream that is not there."""
    need_server()
    with Server() as server:
        for words, status, expected in (
                (["ledger"], 1, "has no stream 'perfd'"), (["host"], 2, "expected hosts, ledger or watch"),
                (["watch"], 2, "needs the name of a route"), (["watch", "a.b"], 2, "cannot be the name of a route"),
                (["ledger", "x"], 2, "only watch has an argument"), (["hosts"], 1, "no relay has said anything"),
                (["hosts", "--host", "a", "--host", "b"], 2, "fleet takes one --host"), (["hosts", "--all"], 2, "are for watch"),
                (["hosts", "--stream", "a.b"], 2, "at most 64 letters"), (["ledger", "--stream", 65 * "a"], 2, "at most 64 letters"),
                (["hosts", "--stream", 64 * "a"], 1, 64 * "a" + "-status"), (["watch", "a", "--durable", 65 * "a"], 2, "at most 64 letters"),
                (["watch", "a", "--since", "10"], 2, "the unit is missing"), (["watch", "a", "--since", "2026-02-30"], 2, "expected a duration"),
                (["watch", "a", "--since", "25:00"], 2, "expected a duration"), (["watch", "a", "--all", "--since", "1m"], 2, "exclude each other"),
                (["watch", "a", "--since", "2999-01-01"], 2, "is in the future"), (["watch", "a", "--durable", "a.b"], 2, "letters, digits")):
            check(expected in fleet(server, *words, status=status)[1], f"{words}")
        with Plain(server) as plain:
            plain.api("CREATE.perfd", name="perfd", subjects=["perfd.*.*"])
            plain.api("CREATE.perfd-status", name="perfd-status", subjects=["perfd.*.status.*.*"])
        for words in ["ledger"], ["hosts"]:
            check("no host matches 'nosuch'" in fleet(server, *words, "--host", "nosuch", status=1)[1], f"{words} of a host that is not there")
            equal(fleet(server, *words), ([], ""), f"{words} of all")
        server.kill()
        errors = fleet(server, "ledger", status=3)[1]
        check(server.url in errors and "nothing accepts connections there" in errors, f"what it says of a server that is not there: {errors}")
        for scheme in "http", "TLS", "natss":  # behind these libnats would be plain
            done = subprocess.run([PERFCTL, "fleet", "--nats", f"{scheme}://u:s3cret@127.0.0.1", "ledger"], capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
            equal((done.returncode, f"not with '{scheme}://'" in done.stderr, "s3cret" in done.stderr), (2, True, False), f"{scheme}: {done.stderr}")
    with Server(jetstream=False) as server:
        check("`jetstream {}` in" in fleet(server, "ledger", status=3)[1], "what it says of a server without JetStream")


if __name__ == "__main__":
    perfd.main(globals())
