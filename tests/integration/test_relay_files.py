#!/usr/bin/python3
"""perfd-relay's files and options: certificates for a trial, what --check says of each file that cannot be used, control sockets, and what it
tells a service manager. Needs root."""
import contextlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

import certificates
import perfd
from certificates import utc
from perfd import Daemon, add, check, equal, pb, wait_until
from relay import RELAY, Relay, free_port

MADE = ["ca.crt", "ca.key", "client.crt", "client.key", "relay.yaml", "server.crt", "server.key"]


def run(*arguments, status=0):
    done = subprocess.run([RELAY, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
    equal(done.returncode, done.returncode if status is None else status, f"the status of {arguments}, which said {done.stdout + done.stderr!r}")
    return done.stdout + done.stderr


def test_certificates():
    """What is made is complete, is for its owner only, runs as it is, and is not overwritten."""
    with Daemon() as daemon, Relay(daemon) as relay, tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "config", "perfd", "tls")
        said = run("certificates", folder, "--server", "localhost", "--client", "me.example", "--perfd", daemon.directory)
        check(f"perfd-relay --config {folder}/relay.yaml" in said and f"perfctl --tls {folder} --host tls://localhost:7443" in said, said)
        equal(sorted(os.listdir(folder)), MADE, "the files")
        equal({stat.S_IMODE(os.stat(f"{folder}/{name}").st_mode) for name in MADE if name.endswith(".key")}, {0o600}, "modes of keys")
        equal(run("--check", "--config", f"{folder}/relay.yaml"), "", "what is said of its relay.yaml")
        names = "DNS:localhost", "DNS:me.example"
        for file, name in zip(("server", "client"), names):
            text = subprocess.run(["openssl", "x509", "-in", f"{folder}/{file}.crt", "-noout", "-ext", "subjectAltName"], check=True,
                                  capture_output=True, text=True).stdout
            check(name in text, f"the names in {file}.crt: {text}")
            subprocess.run(["openssl", "verify", "-x509_strict", "-purpose", f"ssl{file}", "-CAfile", f"{folder}/ca.crt", f"{folder}/{file}.crt"],
                           check=True, capture_output=True)
        before = {name: os.stat(f"{folder}/{name}").st_mtime_ns for name in MADE}
        check("is not overwritten" in run("certificates", folder, "--server", "a", "--client", "b", status=1), "it says so")
        equal({name: os.stat(f"{folder}/{name}").st_mtime_ns for name in MADE}, before, "files of the second time")
        relay.stop()
        port = free_port()
        with open(f"{folder}/relay.yaml", encoding="ascii") as f:
            text = f.read()
        check("tls: ['127.0.0.1:7443']" in text, text)
        for name in MADE:
            shutil.copy(f"{folder}/{name}", relay.at(name))
        with open(relay.at("relay.yaml"), "w", encoding="ascii") as f:
            f.write(text.replace("7443", str(port)))
        relay.port = port
        relay.start()
        with relay.client() as client:
            equal(client.request(status=pb.Empty()).daemon.access.limit.name, "CN:me.example", "who it is to perfd")
        run("certificates", f"{parent}/ip", "--server", "::1", "--client", "c")
        for arguments in (["--server", "a b", "--client", "c"], ["--server", "a", "--client", "*"], ["--server", "a"],
                          ["--server", "a", "--client", "c", "--perfd", "here"]):
            run("certificates", f"{parent}/no", *arguments, status=2)
        check(not os.path.exists(f"{parent}/no"), "something was made of what is refused")


def test_check():
    """Each file that cannot be used is said at the place of its key, all of them at once, and at a start too."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        ca = certificates.make(folder)
        other = certificates.Authority(elsewhere, "ca", "another CA")
        other.issue("stranger")
        shutil.copy(other.write_crl(), f"{folder}/other.crl")
        shutil.copy(f"{elsewhere}/stranger.key", f"{folder}/stranger.key")
        for key, value, said in (
                ("key", "stranger.key", r"4:8: listen\.key: '[^']*stranger\.key' is not the key of the certificate '[^']*server\.crt'"),
                ("key", "server.crt", r"4:8: listen\.key: '[^']*server\.crt' is no private key in PEM format"),
                ("certificate", "server.key", r"3:16: listen\.certificate: '[^']*server\.key' is no certificate in PEM format"),
                ("certificate", "none.crt", r"3:16: listen\.certificate: '[^']*none\.crt': the file cannot be opened: No such file"),
                ("ca", "server.crt", r"5:7: listen\.ca: certificate 1 of '[^']*server\.crt' is not that of a CA"),
                ("ca", "server.key", r"5:7: listen\.ca: '[^']*server\.key' has no certificate in PEM format"),
                ("crl", "other.crl", r"6:8: listen\.crl: CRL 1 of '[^']*other\.crl' was not signed by a CA of '[^']*ca\.crt'"),
                ("crl", "ca.crt", r"6:8: listen\.crl: '[^']*ca\.crt' has no CRL in PEM format")):
            files = {"certificate": "server.crt", "key": "server.key", "ca": "ca.crt", "crl": "ca.crl", key: value}
            with open(f"{folder}/relay.yaml", "w", encoding="ascii") as f:
                f.write("version: 1\nlisten:\n" + "".join(f"  {k}: {v}\n" for k, v in files.items()) +
                        f"  tls: ['127.0.0.1:{free_port()}']\nclients: [{{ name: a }}]\n")
            for arguments in ["--check"], []:
                out = run(*arguments, "--config", f"{folder}/relay.yaml", status=1)
                check(re.search(said, out) and "relay.yaml:" in out, f"{key}: {value}: {out!r}")
                check("Invalid argument" not in out, f"more than what is wrong: {out!r}")
        os.chmod(f"{folder}/server.key", 0o644)
        with open(f"{folder}/relay.yaml", "w", encoding="ascii") as f:
            f.write("version: 1\nlisten: { certificate: server.crt, key: server.key, ca: none, crl: ca.crl }\nclints: []\n")
        out = run("--check", "--config", f"{folder}/relay.yaml", status=1)
        for said in "has mode 0644: others can read", "none': the file cannot be opened", "unknown key 'clints'; did you mean 'clients'?":
            check(said in out, f"{said!r} is not in {out!r}")
        check(ca.name == "ca", "the CA of the test")


SCRIPTED = """version: 1
perfd: { stream: /run/perfd/stream.sock, control: /run/perfd/control.sock }
listen: { tls: ['0.0.0.0:7443', '[::]:7443'], certificate: server.crt, key: server.key, ca: ca.crt, crl: ca.crl }
clients:
  - { name: 'collector-*', events: ['sched:*', nginx-faults], where: 'pid != 0', bytes-per-second: 50MiB }
  - { name: ops, events: ['*'], control: true }
publish:
  servers: ['nats://127.0.0.1:4222']
  stream: perfd
  host: web1
  spool: { memory: 64MiB }
  routes: { execs: { events: ['sched:sched_process_exec'] } }
metrics: { listen: ['127.0.0.1:9464'] }
"""


def test_scripted():
    """What programs that write a relay.yaml rely on: all of it is accepted."""
    with tempfile.TemporaryDirectory() as folder:
        certificates.make(folder)
        with open(f"{folder}/relay.yaml", "w", encoding="ascii") as f:
            f.write(SCRIPTED)
        said = run("--check", "--config", f"{folder}/relay.yaml", status=None)
        check(said == "" or re.fullmatch(r"[^\n]*:8:1: publish: this perfd-relay was built without NATS[^\n]*\n", said), said)


def test_expired():
    """What has expired takes the place of nothing that is good: --check and a reload refuse it, a start warns; and soon is said in days."""
    with Daemon() as daemon, Relay(daemon) as relay, tempfile.TemporaryDirectory() as kept:
        for name in "server.crt", "server.key", "ca.crl":
            shutil.copy(relay.at(name), kept)
        crl = "-crl_lastupdate", utc(-3), "-crl_nextupdate", utc(-1)
        for (begin, end), what in (((-3, -1), "has expired"), ((1, 9), "is not valid yet")):
            relay.ca.issue("server", alternatives=["localhost"], usage="serverAuth", begin=begin, end=end)
            said = rf"relay\.yaml:\d+:\d+: listen\.certificate: '[^']*server\.crt' {what}: every client refuses the relay"
            check(re.search(said, out := run("--check", "--config", relay.at("relay.yaml"), status=1)), f"--check says {out!r}")
            before = relay.said().count("not reloaded, nothing has changed")
            relay.process.send_signal(signal.SIGHUP)
            wait_until(lambda: relay.said().count("not reloaded, nothing has changed") > before, "the refusal")
            check(re.search(said, relay.said()), relay.said())
            relay.client().close()
        relay.ca.issue("server", alternatives=["localhost"], usage="serverAuth", begin=-3, end=-1)
        relay.stop()
        relay.start()
        relay.refused_by_tls("client")
        relay.wait_for(r"is refused: it says that the relay's own certificate \(listen\.certificate\), or the CA of it, has expired")
        for name in "server.crt", "server.key":
            shutil.copy(f"{kept}/{name}", relay.at(name))
        relay.ca.openssl("ca", "-config", relay.at("ca.cnf"), "-gencrl", "-out", relay.at("ca.crl"), *crl)
        out = run("--check", "--config", relay.at("relay.yaml"), status=1)
        check(re.search(r"listen\.crl: CRL 1 of '[^']*ca\.crl' has expired: clients of this CA are refused", out), f"--check says {out!r}")
        shutil.copy(f"{kept}/ca.crl", relay.at("ca.crl"))
        equal(run("--check", "--config", relay.at("relay.yaml")), "", "what is said of what is good for a while")
        relay.ca.issue("server", alternatives=["localhost"], usage="serverAuth", begin=-90, end=9.5)
        out = run("--check", "--config", relay.at("relay.yaml"))
        check(re.search(r"listen\.certificate: '[^']*server\.crt' expires in 9 days: replace it and reload", out), f"--check says {out!r}")
        relay.reload()
        relay.wait_for("expires in 9 days")


def test_control():
    """`control: true` is the control socket, for who has it."""
    rules = "[{ name: client, control: true }, { name: other, events: ['*'] }]"
    with Daemon() as daemon, Relay(daemon, rules, perfd_keys=f", control: {daemon.control}") as relay:
        relay.ca.issue("other")
        with relay.client() as client, relay.client("other") as other:
            equal((client.hello.may_change, other.hello.may_change), (True, False), "who may change something")
            event, = add(client, {"event": "cpu-clock", "name": "clock", "period": 1_000_000})
            equal([e.spec.name for e in other.request(list=pb.ListRequest()).list.events], [event.name], "what the other one sees")


def test_service_manager():
    """A socket that is given is used, and what happens is told: READY, WATCHDOG, RELOADING, STOPPING."""
    with Daemon() as daemon, Relay(daemon) as relay, socket.socket() as given, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        relay.stop()
        notify.bind(relay.at("notify"))
        notify.settimeout(perfd.PATIENCE)
        given.bind(("127.0.0.1", 0))
        given.listen(5)
        relay.port = given.getsockname()[1]
        environment = {**os.environ, "NOTIFY_SOCKET": relay.at("notify"), "WATCHDOG_USEC": "300000", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "tls"}
        script = f'exec 3<&{given.fileno()}; LISTEN_PID=$$ exec "$@"'
        relay.process = subprocess.Popen(["sh", "-c", script, "sh", RELAY, "--config", relay.at("relay.yaml")], env=environment,
                                         pass_fds=[given.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=relay.log)

        def hear(word):
            while word not in (said := notify.recv(4096)):
                check(b"WATCHDOG=1" in said or b"READY=1" in said, f"{said} before {word}")

        hear(b"READY=1")
        relay.client().close()
        for _ in range(3):
            hear(b"WATCHDOG=1")
        relay.process.send_signal(signal.SIGHUP)
        hear(b"RELOADING=1\nMONOTONIC_USEC=")
        hear(b"READY=1")
        relay.client().close()
        relay.process.terminate()
        hear(b"STOPPING=1")
        equal(relay.process.wait(perfd.PATIENCE), 0, "the status")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(relay.at("notify"))


def test_addresses():
    """A reload listens on what is new, closes what is gone, and refuses what cannot be."""
    with Daemon() as daemon, Relay(daemon) as relay, relay.client() as stays, socket.socket() as taken:
        before, relay.port = relay.port, free_port()
        relay.configure("[{ name: client, events: ['*'], raw: true }]")
        relay.reload()
        relay.client().close()
        try:
            socket.create_connection(("127.0.0.1", before), 1).close()
            raise AssertionError("the old address is still there")
        except ConnectionRefusedError:
            pass
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        after, relay.port = relay.port, taken.getsockname()[1]
        relay.configure("[{ name: client, events: ['*'], raw: true }]")
        relay.reload()
        relay.wait_for("not reloaded, nothing has changed: listen.tls: [^\n]*Address already in use")
        relay.port = after
        relay.client().close()
        equal(stays.request(status=pb.Empty()).daemon.pid, daemon.pid, "who is connected stays so")
        wait_until(lambda: "is connected" in relay.said(), "the log")


if __name__ == "__main__":
    perfd.main(globals())
