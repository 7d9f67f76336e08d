#!/usr/bin/python3
"""`perfctl --host tls://` against a TLS server that leads to a perfd: it is read as one beside us is, to the last sample, whatever the
records of TLS are cut into; and each reason for which one side refuses the other is told apart. Needs root."""
import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

import certificates
import package
import perfd
from perfd import Daemon, Skip, Workload, add, check, equal, pb, wait_until
from test_control import PERFCTL
from test_perfctl import GETPPID
from test_promises import CPUS
from tls_server import Server

CALLS = 100_000
SILENCE = 30  # s in which a peer that is gone is noticed: NETWORK_SILENCE


@contextlib.contextmanager
def folder_of(**options):
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        yield folder, certificates.make(folder, **{"server": ["localhost", "127.0.0.1", "::1"], "client": "collector-1", **options})


@contextlib.contextmanager
def daemon_there(**options):
    """(daemon, server, folder): by its stream socket, or by another one that is given by name."""
    path = options.pop("socket", "control")
    with Daemon() as daemon, folder_of() as (folder, _), Server(folder, getattr(daemon, path), **options) as server:
        yield daemon, server, folder


def start(server, folder, *words, url=None, **popen):
    environment = {**os.environ, "PERFD_TLS": folder, "PERFD_HOST": url or server.url}
    return subprocess.Popen([PERFCTL, *words], **{"stdout": subprocess.PIPE, **popen}, stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, env=environment)


def run(server, folder, *words, status=0, **options):
    process = start(server, folder, *words, **options)
    out, err = process.communicate(timeout=perfd.PATIENCE)
    equal(process.returncode, status, f"the status of {words}, which said {err!r}")
    check(not perfd.COMPLAINT.search(err), err)
    return out, err


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def test_verbs():
    """Each is answered as it is beside the daemon, also if each record of TLS has one byte."""
    for cut in 1, 1 << 14:
        with daemon_there(cut=cut) as (daemon, server, folder), daemon.client() as control:
            add(control, {"event": GETPPID, "name": "calls"})
            for verb in ["version"], ["status"], ["list"], ["show", "calls"], ["ledger", "calls"], ["doctor"]:
                document = rows(run(server, folder, *verb, "--json")[0])
                check(document and isinstance(document[0], dict), f"{verb}: {document}")
            equal(rows(run(server, folder, "status", "--json")[0])[0]["pid"], daemon.pid, "whose status it is")
            run(server, folder, "add", "cpu-clock", "--name", "clock")
            equal(sorted(row["name"] for row in rows(run(server, folder, "list", "--json")[0])), ["calls", "clock"], "what runs there")
            run(server, folder, "remove", "clock")
            err = run(server, folder, "remove", "clock", status=1)[1]
            check("clock" in err, f"the refusal from there: {err!r}")
            equal(set(server.names), {"collector-1"}, "who was there")
            equal(server.errors, [], "errors of the server")


def test_only_streams():
    """What the socket behind the relay refuses is passed on."""
    with daemon_there(socket="stream") as (_, server, folder):
        err = run(server, folder, "add", "cpu-clock", status=1)[1]
        check("stream socket" in err or "control" in err, err)


def check_items(out, load):
    items = rows(out)
    times = [row["time"] for row in items if row["kind"] == "sample"]
    lost = next(row["lost"] for row in items if row["kind"] == "end")
    equal(len(times) + sum(lost.values()), sum(load.counts), f"samples and losses, with {lost}")
    check(set(lost) <= {"outbox"} and times, f"losses: {lost}")
    check(times == sorted(times), "the order of time")
    return len(times), sum(lost.values())


@contextlib.contextmanager
def watched(daemon, server, folder, calls, *words):
    """(load, end): a load of known numbers that a watch looks at; end() gives what it has printed."""
    with daemon.client() as control, tempfile.TemporaryFile("w+") as out, Workload("syscalls", calls, cpus=CPUS) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        process = start(server, folder, "watch", "calls", "--json", "--allow-loss", *words, stdout=out)

        def end():
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=perfd.PATIENCE)[1]
            equal(process.returncode, 0, f"the status, {err!r}")
            out.seek(0)
            return out.read()
        try:
            wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
            yield load, process, end
            load.exit()
        finally:
            process.kill()
            process.wait()


def test_every_call():
    """Two programs of a known number of calls: what is received and each loss is what was called, in the order of time. Records of 16 KiB
    end in the middle of frames, and frames in the middle of records."""
    with daemon_there() as (daemon, server, folder), watched(daemon, server, folder, CALLS) as (load, _, end):
        load.go()
        load.done()
        check_items(end(), load)


def test_odd_cuts():
    for cut, calls in (1, 300), (7, 1000), (4099, 20_000):
        with daemon_there(cut=cut) as (daemon, server, folder), watched(daemon, server, folder, calls) as (load, _, end):
            load.go()
            load.done()
            received, lost = check_items(end(), load)
            equal((received, lost), (sum(load.counts), 0), f"received and lost, in records of {cut}")


def test_slow_reader():
    """One that is stopped in between loses what does not fit into its queue, by a numbered gap, and nothing else."""
    with daemon_there(send_buffer=1 << 14) as (daemon, server, folder), \
            watched(daemon, server, folder, CALLS, "--queue", "64KiB") as (load, process, end):
        process.send_signal(signal.SIGSTOP)
        load.go()
        load.done()
        process.send_signal(signal.SIGCONT)
        received, lost = check_items(end(), load)
        check(lost > 0, f"nothing is lost of {received}")


def test_python():
    """Python's ssl makes a socket that its package takes."""
    with daemon_there() as (daemon, server, folder), daemon.client() as control, Workload("syscalls", 1000, cpus=CPUS) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        context = ssl.create_default_context(cafile=os.path.join(folder, "ca.crt"))
        context.load_cert_chain(os.path.join(folder, "client.crt"), os.path.join(folder, "client.key"))
        context.set_alpn_protocols(["perfd/1"])
        sock = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port)), server_hostname="127.0.0.1")
        with package.Client(sock, timeout=perfd.PATIENCE) as client, client.subscribe("calls") as stream:
            load.go()
            load.done()
            wait_until(lambda: daemon.ledger("calls").events, "the ledger")
            stream.stop()
            n = sum(1 for _ in stream.samples())
            lost = sum(count.count for count in stream.end.ledger.subscribers[0].dropped)
            equal(n + lost, sum(load.counts), "samples and losses")
        load.exit()


# ---- what goes wrong ----


def test_server_that_is_refused():
    """Each for its reason, before anything is told to it."""
    with folder_of() as (folder, ca):
        names = ["localhost", "127.0.0.1"]
        ca.issue("expired", alternatives=names, usage="serverAuth", begin=-3, end=-2)
        ca.issue("early", alternatives=names, usage="serverAuth", begin=2)
        ca.issue("named", alternatives=["web1", "10.0.0.1"], usage="serverAuth")
        ca.issue("common", common_name="localhost", usage="serverAuth")
        ca.issue("client-only", alternatives=names, usage="clientAuth")
        certificates.Authority(folder, "other").issue("foreign", alternatives=names, usage="serverAuth")
        for name, host, said in [("expired", None, "has expired, at 20"), ("early", None, "is not yet valid, but from 20"),
                                 ("named", None, "is for web1, 10.0.0.1, and not for 127.0.0.1"),
                                 ("named", "localhost", "is for web1, 10.0.0.1, and not for localhost"),
                                 ("common", "localhost", "is for no host by its subjectAltName, and not for localhost"),
                                 ("client-only", None, "is not accepted: unsuitable certificate purpose"),
                                 ("foreign", None, f"is not of the CA in {folder}/ca.crt")]:
            with Server(folder, "/nowhere", name=name, host=host) as server:
                err = run(server, folder, "status", status=3)[1]
                check(said in err, f"{name}: {err!r}")
                wait_until(lambda: server.errors, "the server to be told")  # pylint: disable=cell-var-from-loop
                check("alert" in server.errors[0] and not server.names, f"{name}: {server.errors}")


def test_client_that_is_refused():
    with folder_of() as (folder, ca):
        ca.issue("expired", begin=-3, end=-2)
        ca.issue("early", begin=2)
        ca.issue("revoked")
        ca.revoke("revoked")
        ca.issue("server-only", usage="serverAuth")
        certificates.Authority(folder, "other").issue("foreign")
        for name, said in [("expired", "it has expired, or the list of revoked certificates (CRL) there has"),
                           ("early", "it is not valid there"), ("revoked", "it was revoked"),
                           ("foreign", "its CA is not the one of that relay"), ("server-only", "it is not valid there")]:
            with Server(folder, "/nowhere", crl="ca.crl") as server, tempfile.TemporaryDirectory(prefix="perfd-test.") as own:
                for file, link in ("ca.crt", "ca.crt"), (name + ".crt", "client.crt"), (name + ".key", "client.key"):
                    os.symlink(os.path.join(folder, file), os.path.join(own, link))
                err = run(server, own, "status", status=3)[1]
                check(f"does not accept the certificate of this client: {said}. It is {own}/client.crt (CN={name})" in err, f"{name}: {err!r}")


def test_other_servers():
    """What is no perfd-relay."""
    with folder_of() as (folder, _):
        for options, said in [({"newest": ssl.TLSVersion.TLSv1_2}, "does not speak TLS 1.3"),
                              ({"protocols": None}, "none that speaks perfd's protocol (ALPN perfd/1)"),
                              ({"protocols": ["http/1.1"]}, "none that speaks perfd's protocol (ALPN perfd/1)"),
                              ({"greeting": b"HTTP/1.1 400 Bad Request\r\n\r\n"}, "does not speak TLS (wrong version number)"),
                              ({"greeting": b"SSH-2.0-OpenSSH_9.2\r\n"}, "does not speak TLS"),
                              ({"greeting": b""}, "the connection was closed before there was an answer")]:
            with Server(folder, "/nowhere", **options) as server:
                err = run(server, folder, "status", status=3)[1]
                check(said in err, f"{options}: {err!r}")
        with Server(folder, "/nowhere") as server:  # no perfd behind it
            err = run(server, folder, "status", status=3)[1]
            check("the connection was closed before there was an answer" in err, err)
        check_strict_server(folder)


def check_strict_server(folder):
    """openssl's own, which refuses other protocols by an alert."""
    process = subprocess.Popen(["openssl", "s_server", "-accept", "0", "-naccept", "1", "-cert", f"{folder}/server.crt", "-key",
                                f"{folder}/server.key", "-alpn", "http/1.1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    try:
        line = next(line for line in process.stdout if line.startswith("ACCEPT"))
        err = run(None, folder, "status", status=3, url=f"tls://localhost:{line.split(':')[-1].strip()}")[1]
        check("does not speak perfd's protocol (ALPN perfd/1)" in err, err)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_no_way_there():
    with folder_of() as (folder, _):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        for url, said in [(f"tls://127.0.0.1:{port}", "nobody listens on this port at 127.0.0.1: does perfd-relay run on that host"),
                          (f"tls://[::1]:{port}", "nobody listens on this port at ::1"),
                          ("tls://web2.invalid:7443", "the name cannot be resolved")]:
            err = run(None, folder, "status", status=3, url=url)[1]
            check(said in err, f"{url}: {err!r}")
        done = subprocess.run(["unshare", "--net", PERFCTL, "--host", f"tls://127.0.0.1:{port}", "--tls", folder, "status"],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 3 and "there is no way to 127.0.0.1: Network is unreachable" in done.stderr, done.stderr)
        for wrong in "tls://web1", "tls://web1:", "tls://web1:0", "tls://web1:65536", "tls://::1:7443", "tls://ann@web1:1", "tls://web1:1/x":
            err = run(None, folder, "status", status=2, url=wrong)[1]
            check("or tls://HOST:PORT" in err, f"{wrong}: {err!r}")
        err = run(None, folder, "--host", "tls://web1:7443", "--socket", "/x", "status", status=2, url="-")[1]
        check("--socket and --host tls://web1:7443 exclude each other" in err, err)


def test_files():
    """Those of the client are looked at before anything is sent."""
    with folder_of() as (folder, ca):
        url, words = "tls://127.0.0.1:9", {"status": 3}

        def said(where=folder):
            return run(None, where, "status", url=url, **words)[1]

        check("/nowhere/ca.crt does not exist: tls:// needs" in said("/nowhere"), "a folder that is not there")
        os.chmod(ca.at("client.key"), 0o644)
        check(f"{folder}/client.key has mode 644, by which others can use it: `chmod 600" in said(), "a key for all")
        os.chmod(ca.at("client.key"), 0o640)
        check("nobody listens" in said(), "a key for root's group")
        os.chown(ca.at("client.key"), 1, -1)
        check("has mode 640" in said(), "a key for a user's group")
        os.chown(ca.at("client.key"), 0, -1)
        os.rename(ca.at("client.key"), ca.at("kept.key"))
        check("client.key does not exist" in said(), "no key")
        ca.openssl("pkey", "-in", ca.at("kept.key"), "-aes128", "-passout", "pass:secret", "-out", ca.at("client.key"))
        os.chmod(ca.at("client.key"), 0o600)
        check("client.key is encrypted" in said(), "a key with a passphrase")
        ca.make_key("client")
        check(f"{folder}/client.key is not the key of the certificate {folder}/client.crt" in said(), "another key")
        for name, what in [("client.key", "private key"), ("client.crt", "certificate"), ("ca.crt", "certificate")]:
            ca.write(name, "no PEM at all\n")
            check(f"{name} has no {what} in PEM" in said(), f"{name} that is none")
        os.unlink(ca.at("ca.crt"))
        os.mkfifo(ca.at("ca.crt"))
        check("ca.crt cannot be read: Invalid argument" in said(), "a CA that is a pipe")


def test_default_folder():
    with daemon_there() as (_, server, folder):
        home = os.path.join(folder, "home")
        os.makedirs(os.path.join(home, ".config/perfd"))
        os.symlink(folder, os.path.join(home, ".config/perfd/tls"))
        done = subprocess.run([PERFCTL, "--host", server.url, "version"], capture_output=True, text=True, check=False,
                              env={**os.environ, "HOME": home, "PERFD_TLS": ""})
        equal(done.returncode, 0, f"the status: {done.stderr}")
        run(server, "/nowhere", "--tls", folder, "version")  # is before $PERFD_TLS


def test_name_and_ipv6():
    """By its name, of which the server is told; and by an address in brackets."""
    for options in {"host": "localhost"}, {"address": "::1"}:
        with daemon_there(**options) as (daemon, server, folder):
            told = []
            server.context.sni_callback = lambda _, name, __: told.append(name)  # pylint: disable=cell-var-from-loop
            equal(rows(run(server, folder, "status", "--json")[0])[0]["pid"], daemon.pid, "whose status it is")
            equal(told, ["localhost" if "host" in options else None], "the name that the server is told")


def test_server_that_ends():
    """In the middle of a stream, without a word: the watch ends by itself, and says so."""
    with daemon_there() as (daemon, server, folder), daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls"})
        process = start(server, folder, "watch", "calls")
        wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        server.reset()
        _, err = process.communicate(timeout=perfd.PATIENCE)
        check(process.returncode == 1 and f"the connection to {server.url} has ended without a word" in err, f"{process.returncode}: {err!r}")
        wait_until(lambda: daemon.status().n_subscribers == 0, "perfd to notice")


def test_daemon_that_ends():
    with Daemon() as daemon, folder_of() as (folder, _), Server(folder, daemon.control) as server:
        with daemon.client() as control:
            add(control, {"event": GETPPID, "name": "calls"})
        process = start(server, folder, "watch", "calls")
        wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        daemon.monitor.close()
        daemon.stop()
        _, err = process.communicate(timeout=perfd.PATIENCE)
        check(process.returncode == 1 and "the daemon ended the stream" in err, f"{process.returncode}: {err!r}")


def in_own_network(function):
    """Runs it in a thread that has a network of its own, with nothing but lo; so have the threads and programs that it starts."""
    raised = []

    def body():
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(0x40000000) != 0:  # CLONE_NEWNET
                raise Skip(f"no network namespace: {os.strerror(ctypes.get_errno())}")
            set_loopback(True)
            function()
        except BaseException as error:  # pylint: disable=broad-exception-caught
            raised.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def set_loopback(is_up):
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1 if is_up else 0))  # SIOCSIFFLAGS, IFF_UP


def test_peer_that_is_gone():
    """Nothing says that the way to it is gone: it is noticed in the time that the papers name."""
    def body():
        with daemon_there() as (daemon, server, folder), daemon.client() as control:
            add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[1])})
            process = start(server, folder, "watch", "calls")
            wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
            begin = time.monotonic()
            set_loopback(False)
            _, err = process.communicate(timeout=SILENCE + perfd.PATIENCE)
            took = time.monotonic() - begin
            check(process.returncode == 1 and f"nothing was heard from there for up to {SILENCE} s" in err, f"{process.returncode}: {err!r}")
            check(took < SILENCE + 2, f"it took {took:.1f} s")
            set_loopback(True)

    in_own_network(body)


if __name__ == "__main__":
    perfd.main(globals())
