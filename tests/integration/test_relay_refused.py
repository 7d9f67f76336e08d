#!/usr/bin/python3
"""What perfd-relay refuses: each client hears why, the log says it with address and certificate, and nothing of it reaches perfd. Needs
root."""
import os
import re
import socket
import ssl
import subprocess

import certificates
import perfd
from perfd import Daemon, add, check, equal, pb, refused, wait_until
from relay import Relay, frame
from test_control import PERFCTL
from test_perfctl import GETPPID


def make_bad_ones(relay):
    """Certificates that nobody should accept: old, early, server-only, gone, and stranger, of another CA, which is other.crt."""
    relay.ca.issue("old", begin=-3, end=-1)
    relay.ca.issue("early", begin=1, end=3)
    relay.ca.issue("server-only", usage="serverAuth")
    relay.ca.issue("gone")
    relay.ca.revoke("gone")
    relay.reload()
    certificates.Authority(relay.folder.name, "other", "another CA").issue("stranger")


def test_handshakes():
    """Who has no valid certificate, or speaks something else, is refused by TLS itself."""
    with Daemon() as daemon, Relay(daemon) as relay:
        make_bad_ones(relay)
        for name, reason, alert in ((None, "it has no certificate", "certificate required"), ("stranger", "unable to get local issuer", "unknown ca"),
                                    ("old", "certificate has expired", "expired"), ("early", "not yet valid", "bad certificate"),
                                    ("gone", "certificate revoked", "revoked"), ("server-only", "unsuitable certificate purpose", "unsupported certificate")):
            said = relay.refused_by_tls(name)
            check(alert in said.replace("_", " ").lower(), f"what TLS says to {name}: {said!r}")
            relay.wait_for(rf"127\.0\.0\.1:\d+ is refused: [^\n]*{reason}" + (f"[^\n]*; certificate of CN={name}\n" if name else "\n"))
        equal(daemon.status().n_connections, 1, "connections of perfd, of which one is the test's own")
        relay.client().close()


def test_protocols():
    """TLS 1.2, no ALPN or another one, and plain text."""
    with Daemon() as daemon, Relay(daemon) as relay:
        context = relay.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE) as raw:
            try:
                context.wrap_socket(raw, server_hostname="localhost")
                raise AssertionError("TLS 1.2 was accepted")
            except ssl.SSLError as no:
                check("PROTOCOL_VERSION" in str(no), f"what TLS says: {no}")
        relay.wait_for("is refused: it does not offer TLS 1.3")
        for alpn in (), ("http/1.1",):
            check("no application protocol" in relay.refused_by_tls_at_once(alpn=alpn), f"what TLS says of the ALPN {alpn}")
        wait_until(lambda: relay.said().count("it does not offer the ALPN protocol perfd/1") == 2, "both lines")
        for text in b"GET / HTTP/1.1\r\n\r\n", frame(hello=pb.Hello(protocol=1)), b"\0" * 100:
            with socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE) as raw:
                raw.sendall(text)
                raw.shutdown(socket.SHUT_WR)
                try:
                    check(len(raw.recv(1000)) < 10, "more than an alert of TLS for what is not TLS")
                except ConnectionResetError:
                    pass
        wait_until(lambda: relay.said().count("what it sends is not TLS") >= 2, f"what is not TLS is called so:\n{relay.said()}")
        relay.client().close()


def test_names():
    """The first item that matches a name decides: CN, DNS, URI or email; and no other has a chance."""
    rules = "[{ name: client, events: ['a'] }, { name: '*.example.org', events: ['b'] }, { name: 'spiffe://*', events: ['c'] }, " \
            "{ name: 'ann@*', events: ['d'] }]"
    with Daemon() as daemon, Relay(daemon, rules) as relay:
        relay.ca.issue("dns", alternatives=["web1.example.org"])
        relay.ca.issue("uri", alternatives=["URI:spiffe://here/collector"])
        relay.ca.issue("mail", alternatives=["email:ann@example.org"])
        relay.ca.issue("nobody", alternatives=["web1.example.com"])
        for name, kind, events in (("client", "CN:client", ["a"]), ("dns", "DNS:web1.example.org", ["b"]),
                                   ("uri", "URI:spiffe://here/collector", ["c"]), ("mail", "email:ann@example.org", ["d"])):
            with relay.client(name) as client:
                limit = client.request(status=pb.Empty()).daemon.access.limit
                equal((limit.name, list(limit.events)), (kind, events), f"the limit of {name}")
        no = relay.refusal("nobody")
        equal((no.id, pb.Status.Name(no.status), no.reason), (0, "STATUS_DENIED", "not-permitted"), f"the refusal {no.message!r}")
        relay.wait_for("is refused: no item of 'clients'[^\n]*: CN:'nobody', DNS:'web1.example.com'; certificate of CN=nobody")
        relay.ca.issue("clinet")
        no = relay.refusal("clinet")
        relay.wait_for("is refused: no item of 'clients'[^\n]*: CN:'clinet'; the nearest item is 'client'; certificate of CN=clinet")
        check("client'" not in no.message, f"what the client is told of other names: {no.message!r}")
        equal(daemon.status().n_connections, 1, "connections of perfd, of which one is the test's own")


def test_many_names():
    """What does not match among the first 256 names does not match, and certificates that are too long are not read: the log says so."""
    with Daemon() as daemon, Relay(daemon, "[{ name: 'n299.*' }, { name: 'client' }]") as relay:
        relay.ca.issue("many", alternatives=[f"n{i}.example.org" for i in range(300)])
        relay.ca.issue("huge", alternatives=[f"n{i}.{'x' * 50}.example.org" for i in range(1000)])
        equal(relay.refusal("many").reason, "not-permitted", "the reason")
        relay.wait_for("CN:'many', DNS:'n0.example.org', DNS:'n1.example.org', DNS:'n2.example.org' and 297 more, of which only the first 256 "
                       "are compared[^\n]*; certificate of CN=many")
        check("illegal parameter" in relay.refused_by_tls("huge").replace("_", " ").lower(), "what TLS says of 1000 long names")
        relay.wait_for("is refused: a message of its handshake is too long: its certificates may have 65536 bytes together")
        relay.client().close()


def test_rights():
    """Events, payloads, queues and requests that the item does not permit are refused by perfd, and so is every way around it."""
    rules = "[{ name: client, events: [calls], where: 'sample.pid == 1', status: false, queue: 64KiB }]"
    with Daemon() as daemon, Relay(daemon, rules) as relay, daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])}, {"event": "cpu-clock", "name": "clock", "period": 1_000_000})
        with relay.client() as client:
            for body in ({"subscribe": pb.SubscribeRequest(events=["clock"])},
                         {"subscribe": pb.SubscribeRequest(events=["calls"], payload=pb.PAYLOAD_RAW)},
                         {"subscribe": pb.SubscribeRequest(events=["calls"], ring_bytes=1 << 20)},
                         {"subscribe": pb.SubscribeRequest(events=["calls"], queue_bytes=(64 << 10) + 1)},
                         {"subscribe": pb.SubscribeRequest(events=["calls", "clock"])},
                         {"subscribe": pb.SubscribeRequest(events=["calls"], records=1)},
                         {"ledger": pb.LedgerRequest()}, {"doctor": pb.Empty()}, {"remove": pb.SelectRequest(names=["calls"])},
                         {"add": pb.AddRequest(events=[pb.EventSpec(event="cpu-clock", period=1_000_000)])}, {"reload": pb.Empty()}):
                refused(client, "not-granted", "STATUS_DENIED", **body)
            refused(client, "bad-request", hello=pb.Hello(protocol=1, limit=pb.Limit(events=["*"], status=True, raw=True)))
            equal([e.spec.name for e in client.request(list=pb.ListRequest()).list.events], ["calls"], "what it sees of events")
            for where in "1 == 1) || (1 == 1", "sample.pid != 1) || (sample.pid != 1", "1 == 1) ||", "|| 1 == 1", "1 == 1 ||", "(1 == 1", "1 == 1)", \
                         "sample.pid == 1) || (sample.pid != 1) || (sample.pid == 1", "sample.comm == \"a\") || (\"a\" == \"a\"":
                refused(client, "bad-expression", subscribe=pb.SubscribeRequest(events=["calls"], where=where))
        for where in "", "sample.pid != 1", "sample.pid != 1 || sample.pid == 1", "(sample.pid != 1) || (sample.pid >= 0)":
            with relay.client() as client:
                items = client.subscribe(["calls"], where=where)
                os.getppid()
                client.stop()
                equal(list(items), [], f"samples of other processes, by {where!r}")
        check(sum(row.occurred for row in daemon.ledger("calls").events) > 0, "no sample occurred that it could have had")


def test_read_only():
    """perfctl of a client without `control` and `raw` counts what runs; of what it may not do it proposes nothing but what it may, there."""
    with Daemon() as daemon, daemon.client() as control, Relay(daemon, "[{ name: client, events: ['*'] }]") as relay:
        add(control, {"event": GETPPID, "name": "calls"})
        where = ["--tls", relay.folder.name, "--host", f"tls://localhost:{relay.port}"]

        def run(*words, status=1, environment=()):
            done = subprocess.run([PERFCTL, *where[:2], *(() if environment else where[2:]), *words], capture_output=True, text=True, check=False,
                                  timeout=perfd.PATIENCE, env={**os.environ, **dict(environment)})
            equal(done.returncode, status, f"the status of {words}, which said {done.stderr!r}")
            return done.stderr

        for words in ["calls"], ["calls", "--by", "comm"]:
            run("count", *words, "--for", "50ms", status=0)
        hint = f"`perfctl {where[2]} {where[3]} {where[0]} {where[1]} list` shows the running events"
        for verb in "watch", "count":
            err = run(verb, "context-switches")
            check(hint in err and "only reads events that run there" in err and "perfctl add" not in err, err)
        err = run("watch", "context-switches", environment={"PERFD_HOST": where[3]})
        check("`perfctl list` shows the running events" in err, err)
        err = run("stat", "context-switches", "--for", "50ms")
        check("without 'control: true' in relay.yaml(5)" in err and "`watch` and `count` read those that run" in err, err)
        err = run("remove", "calls")
        check("limited to reading events that run" in err, err)


def test_connections():
    """So many of one name at a time; one that has gone makes room."""
    with Daemon() as daemon, Relay(daemon, "[{ name: '*', events: ['*'], connections: 2 }]") as relay:
        relay.ca.issue("other")
        with relay.client(), relay.client() as second, relay.client("other"):
            no = relay.refusal()
            equal((pb.Status.Name(no.status), no.reason), ("STATUS_EXHAUSTED", "connections"), f"the refusal {no.message!r}")
            second.close()
            wait_until(lambda: relay.said().count("has ended after") == 1, "the second to be gone")
            relay.client().close()


def test_perfd_says_no():
    """A predicate that perfd could not parse is not loaded, and is said with its place; and a perfd that is not there."""
    with Daemon() as daemon, Relay(daemon, "[{ name: client, events: ['*'] }]") as relay:
        relay.configure("[{ name: client, events: ['*'], where: 'pid = = 1' }]")
        relay.reload()
        relay.wait_for(r"relay\.yaml:4:\d+: where: found a single '=': write == to compare")
        relay.wait_for("not reloaded, nothing has changed")
        relay.client().close()
        daemon.stop()
        no = relay.refusal()
        equal(no.reason, "no-perfd", f"the reason of {no.message!r}")


def s_client(relay, *words, name="client", ca="ca", host="localhost", alpn="perfd/1", **popen):
    """openssl s_client, which reads until the end, and verifies the relay."""
    words = [*words, *(["-cert", relay.at(name + ".crt"), "-key", relay.at(name + ".key")] if name else []), *(["-alpn", alpn] if alpn else [])]
    return subprocess.Popen(["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{relay.port}", "-CAfile", relay.at(ca + ".crt"),
                             "-verify_return_error", "-verify_hostname", host, "-servername", host, *words],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)


def test_s_client():
    """openssl s_client is a client too: its frames are answered."""
    with Daemon() as daemon, Relay(daemon) as relay:
        process = s_client(relay)
        process.stdin.write(frame(hello=pb.Hello(protocol=1, program="s_client")))
        process.stdin.flush()
        length = int.from_bytes(process.stdout.read(4), "little")
        message = pb.ServerMessage()
        message.ParseFromString(process.stdout.read(length))
        equal((message.response.status, message.response.hello.protocol), (pb.STATUS_OK, 1), "the response")
        process.kill()
        process.communicate()
        relay.wait_for("CN:client, [^\n]*has ended after")


def test_s_client_refused():
    """Whichever side refuses the other, both say why, and nothing is sent to who is refused."""
    with Daemon() as daemon, Relay(daemon, "[{ name: client, events: ['*'] }]") as relay:
        make_bad_ones(relay)
        for name, options, alert, reason in (
                (None, {}, "certificate required", "it has no certificate"),
                ("stranger", {}, "unknown ca", "unable to get local issuer certificate"),
                ("old", {}, "certificate expired", "certificate has expired"),
                ("early", {}, "bad certificate", "certificate is not yet valid"),
                ("gone", {}, "certificate revoked", "certificate revoked"),
                ("server-only", {}, "unsupported certificate", "unsuitable certificate purpose"),
                ("client", {"words": ["-tls1_2"]}, "protocol version", "it does not offer TLS 1.3"),
                ("client", {"alpn": None}, "no application protocol", "it does not offer the ALPN protocol perfd/1"),
                ("client", {"alpn": "h2"}, "no application protocol", "it does not offer the ALPN protocol perfd/1"),
                ("client", {"host": "web1"}, "hostname mismatch", "it does not accept the relay's own certificate"),
                ("client", {"ca": "other"}, "certificate verify failed", "it says that it does not know the CA of the relay's own")):
            before = len(relay.said())
            process = s_client(relay, *options.pop("words", ()), name=name, **options)
            try:
                out, err = process.communicate(b"", perfd.PATIENCE)
            finally:
                process.kill()
            said = err.decode("utf-8", "replace").lower()
            check(alert in said and process.returncode != 0, f"s_client with {name} {options} ends with {process.returncode} and says {said}")
            equal(out, b"", f"what was sent to {name} {options}")
            wait_until(lambda: re.search(rf"127\.0\.0\.1:\d+ is refused: {reason}", relay.said()[before:]),  # pylint: disable=cell-var-from-loop
                       f"{reason!r}, but it said {relay.said()[before:]}")
        equal(daemon.status().n_connections, 1, "connections of perfd, of which one is the test's own")


def test_wrong_server():
    """Python's ssl verifies the relay: another name, and another CA, is its error, and the relay's log says so."""
    with Daemon() as daemon, Relay(daemon) as relay:
        certificates.Authority(relay.folder.name, "other", "another CA")
        for options, host, error, reason in (({}, "web1", "Hostname mismatch", "it does not accept the relay's own certificate"),
                                             ({"ca": "other"}, "localhost", "certificate verify failed", "it says that it does not know the CA")):
            with socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE) as raw:
                try:
                    relay.context(**options).wrap_socket(raw, server_hostname=host)
                    raise AssertionError(f"{host}, {options} is accepted")
                except ssl.SSLCertVerificationError as no:
                    check(error in str(no), no)
            relay.wait_for(f"is refused: {reason}")
        equal(daemon.status().n_connections, 1, "connections of perfd, of which one is the test's own")


if __name__ == "__main__":
    perfd.main(globals())
