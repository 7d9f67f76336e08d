#!/usr/bin/python3
"""perfd-relay at NATS servers that are not open to everybody: TLS with certificates on both sides, users, tokens and JWTs. What a reload
changes of that, what --check says of the files, and that no secret is shown. Needs root."""
import contextlib
import os
import re
import subprocess

import certificates
import nkeys
import perfd
from nats import Publisher, Server, epochs
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import RELAY
from test_nats import CALLS, RATE, ROUTES, close, need_server
from test_perfctl import GETPPID
from test_promises import CPUS

TLS = 'tls {{ cert_file: "{0}/server.crt", key_file: "{0}/server.key", ca_file: "{0}/ca.crt", verify: {1} }}\n'


class Alone(Publisher):
    """A relay that only publishes: it has no clients, and no certificate for them."""

    def configure(self, clients):
        with open(self.at("relay.yaml"), "w", encoding="utf-8") as f:
            f.write(f"version: 1\nperfd: {{ stream: {self.stream} }}\n{self.publish}")

    def reconfigure(self, server, keys):
        self.publish = f"publish: {{ servers: ['{server.url}'], host: web1{keys}, routes: {ROUTES} }}\n"
        self.configure("")
        self.reload()

    def listens(self):
        """Inodes of its sockets that listen by TCP."""
        sockets = set()
        for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                sockets.add(os.readlink(f"/proc/{self.process.pid}/fd/{fd}"))
        found = set()
        for table in "tcp", "tcp6":
            with open(f"/proc/{self.process.pid}/net/{table}", encoding="ascii") as f:
                found |= {f"socket:[{row.split()[9]}]" for row in f.readlines()[1:] if row.split()[3] == "0A"}
        return sockets & found


class TlsServer(Server):
    """One with a certificate for localhost and 127.0.0.1, which asks its clients for one."""
    scheme, name = "tls", "localhost"

    def __init__(self, verify=True, names=("localhost", "127.0.0.1")):
        self.verify, self.names = verify, list(names)
        super().__init__()

    def configure(self, configuration="", jetstream=True):
        self.ca = certificates.make(self.folder.name, server=self.names, client="relay")
        super().configure(TLS.format(self.folder.name, str(self.verify).lower()))

    def keys(self, *names):
        files = {"ca": "ca.crt", "certificate": "client.crt", "key": "client.key"}
        return "".join(f", {name}: {self.at(files[name])}" for name in names)

    def messages_without_tls(self):
        """What was stored, read by another server on the same folder: the one for all cannot show a certificate."""
        self.kill()
        Server.configure(self)
        self.start()
        self.scheme = "nats"
        return self.messages()


@contextlib.contextmanager
def calls():
    """A daemon with an event, and the load that it counts."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS[:1]) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        yield daemon, load


def publish_all(relay, load):
    relay.wait_for(r"publishing to (nats|tls)://")
    relay.wait_for(r"route calls has begun")
    load.go()
    load.done()


def check_all(messages, load):
    epoch, = epochs(messages)
    equal(close(epoch, sum(load.counts)), 0, "what was lost")
    equal(epoch.end.reason, "stopped", "the reason of the end")


def test_alone():
    """A relay without clients needs no certificate, listens nowhere, and publishes each call."""
    with calls() as (daemon, load), Server() as server:
        with Alone(daemon, server, ROUTES) as relay:
            equal(relay.listens(), set(), "where it listens")
            publish_all(relay, load)
        check_all(server.messages(), load)


def test_tls():
    """Certificates on both sides, by the name and by the address of the server."""
    for name in "localhost", "127.0.0.1":
        with calls() as (daemon, load), TlsServer() as server:
            server.name = name
            with Alone(daemon, server, ROUTES, server.keys("ca", "certificate", "key")) as relay:
                relay.wait_for(rf"publishing to tls://{name}:")
                publish_all(relay, load)
            check_all(server.messages_without_tls(), load)


def test_required_tls():
    """nats:// is encrypted where the server requires it, and verified all the same."""
    with calls() as (daemon, load), TlsServer(verify=False) as server:
        server.scheme = "nats"
        with Alone(daemon, server, ROUTES) as relay:
            relay.wait_for(r"nothing is published now.*the server wants TLS: name its CA in publish\.ca")
            relay.reconfigure(server, server.keys("ca"))
            publish_all(relay, load)
        server.reader = (server.at("ca.crt"),)
        server.name = "localhost"
        check_all(server.messages(), load)


def refused(server, keys, *said):
    """A relay that says why it is not let in, once, and ends all the same."""
    need_server()
    with Daemon() as daemon, Alone(daemon, server, ROUTES, keys) as relay:
        relay.wait_for("nothing is published now")
        for text in said:
            check(re.search(text, relay.said()), f"{text} is not in {relay.said()}")
        equal(len(re.findall("nothing is published now", relay.said())), 1, f"how often it says so: {relay.said()}")


def test_refused_certificates():
    """Another CA, another name, no certificate, a server without TLS: said with what to do."""
    need_server()
    with TlsServer() as server, TlsServer() as other:
        refused(server, other.keys("ca"), r"SSL handshake error", r"compare the certificate of the server with publish\.ca")
        refused(server, server.keys("ca"), r"publish\.certificate names one")
        refused(server, server.keys("ca") + other.keys("certificate", "key"), r"does the server accept the CA of publish\.certificate\?")
    with TlsServer(names=["elsewhere.example"]) as server:
        refused(server, server.keys("ca", "certificate", "key"), r"ostname mismatch", r"the name in publish\.servers")
        server.name = "127.0.0.1"
        refused(server, server.keys("ca", "certificate", "key"), r"IP address mismatch", r"the name in publish\.servers")
        server.kill()
        Server.configure(server)
        server.start()
        refused(server, server.keys("ca"), r"the server has no TLS: write nats://")


def test_only_named_ca():
    """A CA that the host trusts is none of publish.ca."""
    with TlsServer(verify=False) as server, TlsServer() as other:
        os.environ["SSL_CERT_FILE"] = server.at("ca.crt")
        try:
            refused(server, other.keys("ca"), r"compare the certificate of the server with publish\.ca")
        finally:
            del os.environ["SSL_CERT_FILE"]


def test_credentials():
    """A JWT and its seed; those of an account that the server does not know are refused, until a reload brings others."""
    need_server()
    with Server() as server, calls() as (daemon, load):
        operator = nkeys.Operator(server.folder.name)
        good = operator.write_credentials("good.creds")
        bad = operator.write_credentials("bad.creds", nkeys.Key(server.folder.name, "unknown", "account"))
        server.kill()
        server.configure(operator.configuration())
        server.start()
        with Alone(daemon, server, ROUTES, f", credentials: {bad}") as relay:
            relay.wait_for(r"nothing is published now.*Authorization Violation.*compare publish\.credentials")
            os.rename(good, bad)
            relay.reload()
            publish_all(relay, load)
            with open(bad, encoding="ascii") as f:
                seed = re.search(r"^SU\w+$", f.read(), re.M).group()
            check(seed not in relay.said(), "the seed is in the log")
        server.reader = ("", bad)
        check_all(server.messages(), load)


ONE = 'authorization { user: relay, password: "%s" }\n'


def shown(relay):
    """What others of the host can see of it."""
    with open(f"/proc/{relay.process.pid}/cmdline", "rb") as f:
        return relay.said() + f.read().decode()


def write_secret(path, text, mode=0o600):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def test_password():
    """A user with a password, in a file or in the address; another one in the file is taken by a reload, and it is shown nowhere."""
    need_server()
    with Server(ONE % "s3cret@x") as server, calls() as (daemon, load):
        path = write_secret(server.at("password"), "wr0ng\n")
        keys = f", user: relay, password-file: {path}"
        with Alone(daemon, server, ROUTES, keys) as relay:
            relay.wait_for(r"nothing is published now.*Authorization Violation.*user and password-file")
            write_secret(path, "s3cret@x\n")
            relay.reload()
            publish_all(relay, load)
            os.chmod(relay.at("relay.yaml"), 0o600)
            server.user = "relay:s3cret%40x@"
            before = relay.said().count("publishing to nats://127")
            relay.reconfigure(server, "")
            wait_until(lambda: relay.said().count("publishing to nats://127") > before, "it to connect with the address")
            server.user = "relay:wr0ng@"
            relay.reconfigure(server, "")
            wait_until(lambda: relay.said().count("Authorization Violation") > 1, "it to be refused again")
            check(not re.search("s3cret|wr0ng", shown(relay)), f"a secret is shown: {shown(relay)}")
            server.user = "relay:s3cret%40x@"
            relay.reconfigure(server, "")
            wait_until(lambda: relay.said().count("publishing to nats://127") > before + 1, "it to connect again")
        server.kill()
        server.configure()
        server.user = ""
        server.start()
        check_all(server.messages(), load)


def test_token():
    need_server()
    with Server('authorization { token: "t0ken" }\n') as server, calls() as (daemon, load):
        with Alone(daemon, server, ROUTES, f", token-file: {write_secret(server.at('token'), 't0ken')}") as relay:
            publish_all(relay, load)
            check("t0ken" not in shown(relay), "the token is shown")
        server.user = "t0ken@"
        check_all(server.messages(), load)


ROUTE = "routes: { a: { events: ['*'] } }"
WRONG = [
    ("servers: ['http://h']", r"publish\.servers: found 'http://h', which does not begin with nats:// or tls://"),
    ("servers: ['nats://h:0']", r"publish\.servers: found 'nats://h:0', whose port"),
    ("servers: ['nats://h/x']", r"publish\.servers: found 'nats://h/x', whose host"),
    ("servers: ['nats://a:hush%2@h']", r"publish\.servers: found 'nats://\*\*\*@h', with '%'"),
    ("servers: ['nats://a:hu\"sh@h']", r"publish\.servers: found 'nats://\*\*\*@h', with a quote"),
    ("servers: 'nats://a:hush@h'", r"publish\.servers: found 'nats://\*\*\*@h', expected addresses"),
    ("servers: ['tls://h']", r"key 'ca' is missing, which tls:// in publish\.servers needs"),
    ("servers: ['nats://h'], certificate: client.crt", r"publish\.certificate: it needs publish\.key beside it"),
    ("servers: ['nats://h'], key: client.key", r"publish\.key: it needs publish\.certificate beside it"),
    ("servers: ['nats://[::1]'], user: a", r"publish\.user: it needs publish\.password-file beside it"),
    ("servers: ['nats://127.0.0.1'], token-file: secret, credentials: good.creds", r"publish\.token-file: the relay is one to a server, and there is publish\.credentials"),
    ("servers: ['nats://a:hush@127.0.0.1'], token-file: secret", r"publish\.token-file: the relay is one to a server, and there is user information"),
    ("servers: ['nats://127.0.0.1'], token-file: open", r"publish\.token-file: '[^']*/open' has mode 0644: others can read or change it; make another token"),
    ("servers: ['nats://127.0.0.1'], token-file: lines", r"publish\.token-file: '[^']*/lines' has more than one line"),
    ("servers: ['nats://127.0.0.1'], token-file: none", r"publish\.token-file: '[^']*/none': the file cannot be opened: No such file"),
    ("servers: ['nats://h'], credentials: secret", r"publish\.credentials: '[^']*/secret' has no JWT of a user"),
    ("servers: ['nats://h'], credentials: seedless", r"publish\.credentials: '[^']*/seedless' has no seed of a user"),
    ("servers: ['nats://h'], credentials: open.creds", r"publish\.credentials: '[^']*/open\.creds' has mode 0644"),
    ("servers: ['tls://h'], ca: client.crt", r"publish\.ca: certificate 1 of '[^']*/client\.crt' is not that of a CA: name the certificate that has signed those of servers"),
    ("servers: ['tls://h'], ca: secret", r"publish\.ca: '[^']*/secret' has no certificate in PEM format"),
    ("servers: ['tls://h'], ca: ca.crt, certificate: client.crt, key: server.key", r"publish\.key: '[^']*/server\.key' is not the key of the certificate '[^']*/client\.crt'"),
    ("servers: ['tls://h'], ca: ca.crt, certificate: client.crt, key: open.key", r"publish\.key: '[^']*/open\.key' has mode 0644"),
    ("servers: ['tls://h'], ca: ca.crt, certificate: old.crt, key: old.key", r"publish\.certificate: '[^']*/old\.crt' has expired: servers refuse the relay"),
]


def run_check(relay, status):
    done = subprocess.run([RELAY, "--config", relay.at("relay.yaml"), "--check"], capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
    equal(done.returncode, status, f"the status, and {done.stderr}")
    return done.stderr


def test_check():
    """What a server would refuse later, and what others could read, is said at --check, with its place and without the secret."""
    need_server()
    with Daemon() as daemon, Server() as server, Alone(daemon, server, ROUTES) as relay:
        good = nkeys.Operator(relay.folder.name).write_credentials("good.creds")
        with open(good, encoding="ascii") as f:
            text = f.read()
        write_secret(relay.at("open.creds"), text, 0o644)
        write_secret(relay.at("seedless"), text.partition("-----BEGIN USER")[0])
        write_secret(relay.at("secret"), "hush\n")
        write_secret(relay.at("open"), "hush\n", 0o644)
        write_secret(relay.at("lines"), "hush\nhush\n")
        with open(relay.at("client.key"), encoding="ascii") as f:
            write_secret(relay.at("open.key"), f.read(), 0o644)
        relay.ca.issue("old", begin=-3, end=-1)
        for keys, expected in WRONG:
            relay.publish = f"publish: {{ {keys}, {ROUTE} }}\n"
            relay.configure("")
            os.chmod(relay.at("relay.yaml"), 0o600)
            said = run_check(relay, 1)
            check(re.search(rf"relay\.yaml:3:\d+: {expected}", said), f"{keys}: {said}")
            equal(len(said.strip().splitlines()), 1, f"lines for {keys}: {said}")
            check("hush" not in said and "hu\\x" not in said, f"{keys}: a secret is shown: {said}")
        relay.publish = f"publish: {{ servers: ['nats://a:hush@127.0.0.1'], {ROUTE} }}\n"
        relay.configure("")
        equal(run_check(relay, 0), "", "what is said of a secret in relay.yaml that nobody else can read")
        os.chmod(relay.at("relay.yaml"), 0o644)
        check("has mode 0644 and a secret in publish.servers" in run_check(relay, 1), "a secret that others can read")
        relay.publish = f"publish: {{ servers: ['nats://a:hush@h.example'], {ROUTE} }}\n"
        relay.configure("")
        os.chmod(relay.at("relay.yaml"), 0o600)
        check("is sent without encryption to 'nats://h.example:4222'" in run_check(relay, 0), "a secret without TLS")


if __name__ == "__main__":
    perfd.main(globals())
