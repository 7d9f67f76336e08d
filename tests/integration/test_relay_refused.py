#!/usr/bin/python3
"""What perfd-relay refuses: each client hears why, the log says it with address and certificate, and nothing of it reaches perfd. Needs
root."""
import os
import socket
import ssl
import subprocess
import tempfile

import certificates
import perfd
from perfd import Daemon, add, check, equal, pb, refused, wait_until
from relay import Relay, frame
from test_perfctl import GETPPID


def test_handshakes():
    """Who has no valid certificate, or speaks something else, is refused by TLS itself."""
    with Daemon() as daemon, Relay(daemon) as relay:
        relay.ca.issue("old", begin=-3, end=-1)
        relay.ca.issue("early", begin=1, end=3)
        relay.ca.issue("server-only", usage="serverAuth")
        relay.ca.issue("gone")
        relay.ca.revoke("gone")
        relay.reload()
        with tempfile.TemporaryDirectory() as elsewhere:
            certificates.Authority(elsewhere, "ca", "another CA").issue("stranger")
            for name in "stranger.crt", "stranger.key":
                with open(f"{elsewhere}/{name}", "rb") as source, open(relay.at(name), "wb") as target:
                    target.write(source.read())
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
        relay.wait_for("is refused: no item of 'clients'[^\n]*; certificate of CN=nobody")
        equal(daemon.status().n_connections, 1, "connections of perfd, of which one is the test's own")


def test_rights():
    """Events, payloads, queues and requests that the item does not permit are refused by perfd, and so is every way around it."""
    rules = "[{ name: client, events: [calls], where: 'sample.pid == 1', status: false, queue: 64KiB }]"
    with Daemon() as daemon, Relay(daemon, rules) as relay, daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()])}, {"event": "cpu-clock", "name": "clock", "period": 1_000_000})
        with relay.client() as client:
            for body in ({"subscribe": pb.SubscribeRequest(events=["clock"])},
                         {"subscribe": pb.SubscribeRequest(events=["calls"], payload=pb.PAYLOAD_RAW)},
                         {"subscribe": pb.SubscribeRequest(events=["calls"], ring_bytes=1 << 20)},
                         {"ledger": pb.LedgerRequest()}, {"doctor": pb.Empty()}, {"remove": pb.SelectRequest(names=["calls"])},
                         {"add": pb.AddRequest(events=[pb.EventSpec(event="cpu-clock", period=1_000_000)])}, {"reload": pb.Empty()}):
                refused(client, "not-granted", "STATUS_DENIED", **body)
            refused(client, "bad-request", hello=pb.Hello(protocol=1, limit=pb.Limit(events=["*"], status=True, raw=True)))
            equal([e.spec.name for e in client.request(list=pb.ListRequest()).list.events], ["calls"], "what it sees of events")
            for where in "1 == 1) || (1 == 1", "sample.pid != 1) || (sample.pid != 1":
                refused(client, "bad-expression", subscribe=pb.SubscribeRequest(events=["calls"], where=where))
            items = client.subscribe(["calls"], where="sample.pid != 1 || sample.pid == 1")
            os.getppid()
            client.stop()
            equal(list(items), [], "samples of other processes, whatever the predicate is")
            check(sum(row.occurred for row in daemon.ledger("calls").events) > 0, "no sample occurred that it could have had")


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


def test_s_client():
    """openssl s_client is a client too: its frames are answered."""
    with Daemon() as daemon, Relay(daemon) as relay:
        process = subprocess.Popen(["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{relay.port}", "-alpn", "perfd/1", "-CAfile",
                                    relay.at("ca.crt"), "-verify_return_error", "-verify_hostname", "localhost", "-servername", "localhost",
                                    "-cert", relay.at("client.crt"), "-key", relay.at("client.key")],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(frame(hello=pb.Hello(protocol=1, program="s_client")))
        process.stdin.flush()
        length = int.from_bytes(process.stdout.read(4), "little")
        message = pb.ServerMessage()
        message.ParseFromString(process.stdout.read(length))
        equal((message.response.status, message.response.hello.protocol), (pb.STATUS_OK, 1), "the response")
        process.kill()
        process.communicate()
        relay.wait_for("CN:client, [^\n]*has ended after")


if __name__ == "__main__":
    perfd.main(globals())
