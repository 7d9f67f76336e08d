#!/usr/bin/python3
"""perfd-relay serves metrics by HTTP: the same as `perfctl metrics`, and what it knows itself. Needs root."""
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import time

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from relay import RELAY, Relay, free_port
from test_metrics import families, families_of, of
from test_perfctl import GETPPID

OPENMETRICS = "application/openmetrics-text"
OF_PROMETHEUS = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def serve(daemon, keys="", ports=None, **options):
    """A relay that serves metrics, at .metrics of 127.0.0.1."""
    ports = ports or [free_port()]
    addresses = ", ".join(f"'127.0.0.1:{port}'" for port in ports)
    relay = Relay(daemon, tail=f"metrics: {{ listen: [{addresses}]{keys} }}\n", **options)
    relay.metrics = ports[0]
    return relay


def ask(port, method="GET", path="/metrics", accept=None, body=None, host="127.0.0.1"):
    """(status, headers, text) of one request; what is behind it has to be the end."""
    connection = http.client.HTTPConnection(host, port, timeout=perfd.PATIENCE)
    try:
        connection.request(method, path, body=body, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8")
        equal(answer.getheader("Connection"), "close", "what becomes of the connection")
        return answer.status, answer.headers, text
    finally:
        connection.close()


def scrape(relay, is_open=False):
    status, headers, text = ask(relay.metrics, accept=OPENMETRICS if is_open else None)
    equal(status, 200, text)
    equal(headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8" if is_open
          else "text/plain; version=0.0.4; charset=utf-8", "the type")
    equal(int(headers["Content-Length"]), len(text.encode()), "the length")
    return families_of(text, is_open)


def settled(relay):
    """After perfd has been asked again: nothing of before."""
    before = of(scrape(relay), "perfd_relay_collections_total")
    return wait_until(lambda: (v := scrape(relay)) and of(v, "perfd_relay_collections_total") > before and v, "a new answer")


def test_same_as_perfctl():
    """Each series of perfctl is there, in both formats, and what the relay counts beside them."""
    with Daemon() as daemon, daemon.client() as control, serve(daemon) as relay:
        add(control, {"event": GETPPID, "name": "calls"}, "cpu-clock")
        plain, opened = scrape(relay), scrape(relay, is_open=True)
        equal(set(plain), set(opened), "the series of both formats")
        local = {key for key in families(daemon)[0] if not key[0].startswith("perfd_subscriber_")}
        equal({key for key in plain if not key[0].startswith("perfd_relay_")}, local, "the series of perfctl")
        equal((of(plain, "perfd_up"), of(plain, "perfd_events"), of(plain, "perfd_omitted_series")), (1, 2, 0), "up, events, omitted")
        with relay.client():
            values = settled(relay)
            equal((of(values, "perfd_relay_clients"), of(values, "perfd_relay_handshakes"), of(values, "perfd_relay_accepted_total"),
                   of(values, "perfd_relay_admitted_total")), (1, 0, 1, 1), "clients, handshakes, accepted, admitted")
            check(of(values, "perfd_relay_sent_bytes_total") > 0 and of(values, "perfd_relay_received_bytes_total") > 0, "bytes")
        relay.refused_by_tls(name=None)
        values = wait_until(lambda: (v := scrape(relay)) and of(v, "perfd_relay_refused_total") and v, "the refusal to be counted")
        equal((of(values, "perfd_relay_clients"), of(values, "perfd_relay_admitted_total")), (0, 1), "clients and admitted")


def test_requests():
    """GET and HEAD of /metrics, and nothing else; the format that the client prefers."""
    with Daemon() as daemon, serve(daemon) as relay:
        for accept, is_open in ((None, False), ("*/*", False), ("text/plain", False), (OPENMETRICS, True), (OF_PROMETHEUS, True),
                                ("text/plain, application/openmetrics-text;q=0.9", False), (OPENMETRICS + ";q=0", False),
                                ("text/html", False), ("Application/OpenMetrics-Text ; version=1.0.0 ; q=0.5 , */*;q=0.1", True)):
            status, headers, text = ask(relay.metrics, accept=accept)
            equal((status, headers["Content-Type"].startswith(OPENMETRICS), text.endswith("# EOF\n")), (200, is_open, is_open), accept)
        status, headers, text = ask(relay.metrics, "HEAD")
        equal((status, text), (200, ""), "HEAD")
        check(int(headers["Content-Length"]) > 1000, headers)
        equal(ask(relay.metrics, path="/metrics?x=/y&z")[0], 200, "with a query")
        for path in "/", "/metric", "/metrics/", "/metrics2", "/../metrics", "//metrics", "/%00", "*":
            status, _, text = ask(relay.metrics, path=path)
            equal((status, text), (404, "The metrics of perfd are at /metrics.\n"), path)
        for method in "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "PROPFIND":
            status, headers, text = ask(relay.metrics, method, body="x" * 100)
            equal((status, headers["Allow"], text), (405, "GET, HEAD", "Metrics are only read, by GET or HEAD.\n"), method)
        equal(of(settled(relay), "perfd_relay_http_requests_total", result="refused"), 15, "refused requests")


def test_once_a_second():
    """However many ask: uptime, which is another number in each answer of perfd, changes once a second at most."""
    with Daemon() as daemon, serve(daemon) as relay:
        began, seen, n = time.monotonic(), set(), 0
        while time.monotonic() < began + 3 or len(seen) < 2:
            seen.add(of(scrape(relay), "perfd_uptime_seconds"))
            n += 1
        elapsed = time.monotonic() - began
        check(len(seen) <= elapsed + 1, f"{len(seen)} answers of perfd in {elapsed} s for {n} requests")
        print(f"  {n} requests in {elapsed:.1f} s, {len(seen)} answers of perfd")


def test_perfd_away():
    """Without perfd, and with one that does not answer, there are the relay's own series and perfd_up 0; TLS goes on meanwhile."""
    with Daemon() as daemon, serve(daemon) as relay:
        equal(of(scrape(relay), "perfd_up"), 1, "up")
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            values = wait_until(lambda: (v := scrape(relay)) and of(v, "perfd_up") == 0 and v, "perfd_up 0")
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        check(all(name.startswith("perfd_relay_") or name in ("perfd_up", "perfd_omitted_series") for name, _ in values), sorted(values))
        wait_until(lambda: of(scrape(relay), "perfd_up") == 1, "perfd_up 1")
        daemon.stop()
        wait_until(lambda: of(scrape(relay), "perfd_up") == 0, "perfd_up 0")
        equal(of(settled(relay), "perfd_relay_info", version="0.1.0"), 1, "what the relay knows")
        relay.wait_for("metrics have perfd_up 0: .*did not answer[^\n]*\n.*metrics have perfd_up 1 again\n.*metrics have perfd_up 0: .*stream.sock: ")
        equal(relay.said().count("metrics have"), 3, "lines of the log")


def test_stop_while_perfd_hangs():
    """The end of the relay does not wait for an answer of perfd, nor does a reload."""
    with Daemon() as daemon, serve(daemon) as relay, socket.create_connection(("127.0.0.1", relay.metrics), perfd.PATIENCE) as waiting:
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            waiting.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda: asks_perfd(relay), "the relay to ask perfd")
            relay.metrics = free_port()
            relay.tail = f"metrics: {{ listen: ['127.0.0.1:{relay.metrics}'] }}\n"
            relay.configure("[{ name: client, events: ['*'] }]")
            relay.reload()
            said = waiting.recv(1 << 16)
            check(said == b"" or said.startswith(b"HTTP/1.1 503 "), f"the scrape of before: {said}")
            with socket.create_connection(("127.0.0.1", relay.metrics), perfd.PATIENCE) as again:
                again.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                wait_until(lambda: asks_perfd(relay), "the relay to ask perfd again")
                relay.stop()
            check("metrics have" not in relay.said(), relay.said())
        finally:
            os.kill(daemon.pid, signal.SIGCONT)


def asks_perfd(relay):
    """Whether its thread of metrics waits in poll(2) for an answer: it is the one with a socket of AF_UNIX that is connected."""
    fds = f"/proc/{relay.process.pid}/fd"
    inodes = {os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds)}
    with open("/proc/net/unix", encoding="ascii") as f:
        return any(f"socket:[{line.split()[6]}]" in inodes for line in f.readlines()[1:] if line.split()[5] == "03")


def test_addresses():
    """IPv4 and IPv6; a reload serves new ones, keeps those that stay, ends those that are gone, and refuses what cannot be."""
    first, second, third = free_port(), free_port(), free_port()
    with Daemon() as daemon, serve(daemon, ports=[first, second]) as relay, socket.socket() as taken:
        def configure(*addresses):
            relay.tail = f"metrics: {{ listen: {list(addresses)} }}\n" if addresses else ""
            relay.configure("[{ name: client, events: ['*'] }]")
            relay.reload()

        def is_served(port, host="127.0.0.1"):
            try:
                return ask(port, host=host)[0] == 200
            except ConnectionRefusedError:
                return False

        equal([is_served(port) for port in (first, second, third)], [True, True, False], "at first")
        configure(f"127.0.0.1:{second}", f"127.0.0.1:{third}", f"[::1]:{first}")
        equal([is_served(port) for port in (first, second, third)], [False, True, True], "behind the reload")
        equal(is_served(first, "::1"), True, "IPv6")
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        configure(f"127.0.0.1:{second}", f"127.0.0.1:{taken.getsockname()[1]}")
        relay.wait_for("not reloaded, nothing has changed: metrics.listen: [^\n]*Address already in use; stop the program")
        equal([is_served(port) for port in (second, third)], [True, True], "behind the refused reload")
        relay.metrics = second
        values = settled(relay)
        equal([of(values, "perfd_relay_reloads_total", result=result) for result in ("done", "refused")], [1, 1], "reloads")
        configure()
        equal([is_served(port) for port in (second, third)], [False, False], "without the key")
        configure(f"127.0.0.1:{first}")
        equal(is_served(first), True, "with it again")


def test_check():
    """Errors at their places: an address that others reach, one that is none, one of TLS, what is out of range, what is missing."""
    with Daemon() as daemon, Relay(daemon) as relay:
        for yaml, said in (
                ("metrics:\n  listen: ['127.0.0.1:9464', '0.0.0.0:9464', '[::]:1']\n",
                 ["6:30: metrics.listen: found '0.0.0.0:9464', which other hosts reach, and metrics are served without TLS; use an address of "
                  "this host alone, such as 127.0.0.1:9464 or [::1]:9464, and let other hosts read them by TLS: 'metrics: true' in an item of 'clients'",
                  "6:46: metrics.listen: found '[::]:1', which other hosts reach"]),
                (f"metrics: {{ listen: ['127.0.0.1:{relay.port}'] }}\n", [f"5:21: metrics.listen: found '127.0.0.1:{relay.port}', which listen.tls has too"]),
                ("metrics: { listen: [localhost:1, '127.0.0.1'] }\n",
                 ["5:21: metrics.listen: found 'localhost:1', which is no address in numbers", "5:35: metrics.listen: found '127.0.0.1', without a port"]),
                ("metrics: { listen: ['[::1]:1'], connections: 0, request-timeout: 1ms, series: 7, lissen: [] }\n",
                 ["5:46: metrics.connections: found '0', expected a whole number from 1 to 1024",
                  "5:66: metrics.request-timeout: found '1ms', expected a duration from 100ms to 5m",
                  "5:79: metrics.series: found '7', expected a whole number from 100 to 100000",
                  "5:82: unknown key 'lissen'; did you mean 'listen'?"]),
                ("metrics: { series: 200 }\n", ["5:10: key 'listen' is missing, expected loopback addresses"]),
                ("metrics: yes\n", ["5:10: metrics: found 'yes', expected a mapping of keys to values"])):
            relay.tail = yaml
            relay.configure("[{ name: client }]")
            done = subprocess.run([RELAY, "--check", "--config", relay.at("relay.yaml")], capture_output=True, text=True, check=False,
                                  timeout=perfd.PATIENCE)
            equal((done.returncode, done.stderr.count("\n")), (1, len(said)), done.stderr)
            for text in said:
                check(text in done.stderr, f"{text!r} is not in {done.stderr!r}")


def test_series():
    """At most so many as relay.yaml says, those of perfd itself first, and the number of those that are left out."""
    with Daemon() as daemon, daemon.client() as control, serve(daemon) as relay:
        add(control, *({"event": "cpu-clock", "name": f"clock{i}", "period": 1_000_000_000} for i in range(30)))
        every = settled(relay)
        equal(of(every, "perfd_omitted_series"), 0, "omitted by default")
        relay.tail = f"metrics: {{ listen: ['127.0.0.1:{relay.metrics}'], series: 300 }}\n"
        relay.configure("[{ name: client }]")
        relay.reload()
        for is_open in False, True:
            some = scrape(relay, is_open)
            equal(len(some), 300 + 1, "series, and that which counts them")
            equal(of(some, "perfd_omitted_series"), len(every) - len(some), "omitted")
            check(set(some) <= set(every), set(some) - set(every))
        check(all(any(name == has for has, _ in some) for name in ("perfd_up", "perfd_lost_samples_total", "perfd_ledger_balanced", "perfd_ring_lost_total",
                                                                    "perfd_reader_stalled_seconds")), sorted(some))


def test_certificate():
    """When the relay's certificate ends, to the second; of the one that it has, not of one that it has not read."""
    def end_of_file(relay):
        text = subprocess.run(["openssl", "x509", "-in", relay.at("server.crt"), "-noout", "-enddate"], capture_output=True, text=True,
                              check=True, timeout=perfd.PATIENCE).stdout.strip()
        return ssl.cert_time_to_seconds(text.removeprefix("notAfter="))

    with Daemon() as daemon, serve(daemon) as relay:
        before = end_of_file(relay)
        equal(of(scrape(relay), "perfd_relay_certificate_end_timestamp_seconds"), before, "the end")
        relay.ca.issue("server", alternatives=["localhost"], usage="serverAuth", end=40)
        after = end_of_file(relay)
        check(before != after, "the certificate is the same")
        equal(of(settled(relay), "perfd_relay_certificate_end_timestamp_seconds"), before, "before it is read")
        relay.reload()
        equal(of(settled(relay), "perfd_relay_certificate_end_timestamp_seconds"), after, "behind a reload")


def ask_by_tls(relay, name, method="GET", path="/metrics", accept=None, alpn=("h2", "http/1.1")):
    """As ask(), of a client with this certificate at the address of streams."""
    connection = http.client.HTTPSConnection("localhost", relay.port, timeout=perfd.PATIENCE, context=relay.context(name, alpn=alpn))
    try:
        connection.request(method, path, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode("utf-8")
    finally:
        connection.close()


def test_by_tls():
    """The same for a client whose item permits it, and for no other; streams beside it; a reload begins and ends it."""
    rules = "[{ name: client, events: ['*'] }, { name: 'scraper*', events: [calls], metrics: true, connections: 2 }]"
    with Daemon() as daemon, daemon.client() as control, Relay(daemon, rules) as relay:
        add(control, {"event": GETPPID, "name": "calls"}, "cpu-clock")
        for name in "scraper", "stranger":
            relay.ca.issue(name)
        local = {key for key in families(daemon)[0] if not key[0].startswith("perfd_subscriber_")}
        for is_open in False, True:
            status, headers, text = ask_by_tls(relay, "scraper", accept=OPENMETRICS if is_open else None)
            equal((status, int(headers["Content-Length"])), (200, len(text.encode())), text)
            equal({key for key in families_of(text, is_open) if not key[0].startswith("perfd_relay_")}, local, "the series of perfctl")
        relay.wait_for("CN:scraper, 127[^\n]*, is connected for metrics, by the item 'scraper\\*'")
        relay.wait_for("CN:scraper, 127[^\n]*, has ended after \\d+ bytes: (metrics were answered|it has closed)")  # whoever is first
        equal([ask_by_tls(relay, "scraper", *words)[0] for words in (["HEAD"], ["GET", "/"], ["POST"])], [200, 404, 405], "other requests")
        for name, said in ("client", "its item of 'clients' in relay.yaml has no 'metrics: true'\n"), \
                          ("stranger", "no item of 'clients' in relay.yaml matches a name of this certificate\n"):
            equal(ask_by_tls(relay, name)[::2], (403, said), name)
        check("certificate required" in said_by_tls(relay, None), "a client without a certificate")
        check("no application protocol" in said_by_tls(relay, "scraper", alpn=["h2"]), "HTTP/2 alone")
        with relay.connect("scraper", alpn=["http/1.1"]) as first, relay.connect("scraper", alpn=["http/1.1"]) as second, relay.client() as stream:
            equal((relay.refusal("scraper").reason, ask_by_tls(relay, "scraper")[0]), ("connections", 403), "a third one of its name")
            relay.configure(rules.replace(", metrics: true", ""))
            relay.reload()
            for s in first, second:
                equal(s.recv(1), b"", "the end of a connection that is not permitted any more")
            check("no application protocol" in said_by_tls(relay, "scraper"), "without a client that may read metrics")
            equal(stream.request(status=pb.Empty()).daemon.pid, daemon.pid, "who reads streams stays")
            relay.configure(rules)
            relay.reload()
            equal(ask_by_tls(relay, "scraper")[0], 200, "with it again")


def said_by_tls(relay, name, **options):
    try:
        ask_by_tls(relay, name, **options)
    except (ssl.SSLError, ConnectionError) as no:
        return str(no).replace("_", " ").lower()
    return ""


def test_not_granted():
    """access.rules of perfd that do not let the relay ask: said, and perfd_up 0."""
    with Daemon(config="version: 1\naccess: {stream-mode: 0666, rules: [{users: [nobody], subscribe: ['cpu-clock']}]}\n") as daemon, \
            serve(daemon) as relay:
        relay.stop()
        for path in daemon.directory, relay.folder.name:
            os.chmod(path, 0o755)
        for name in "server.key", "client.key":
            os.chown(relay.at(name), 65534, 65534)
        relay.start(prefix=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
        equal(of(scrape(relay), "perfd_up"), 0, "up")
        check(re.search("metrics have perfd_up 0: access.rules of perfd do not grant `status`", relay.said()), relay.said())


if __name__ == "__main__":
    perfd.main(globals())
