#!/usr/bin/python3
"""`perfctl --host`: a daemon behind a real sshd on this machine's loopback is read as one beside us is, to the last sample, and what
can go wrong on the way is told apart. Needs root."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile

import perfd
from perfd import Daemon, Skip, Workload, add, check, equal, pb, wait_until
from test_control import PERFCTL
from test_perfctl import GETPPID
from test_promises import CPUS

SSHD = "/usr/sbin/sshd"
CALLS = 200_000
PRIVILEGES = "/run/sshd"  # sshd does not start without it


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Host:
    """An sshd for this user, with keys, configuration and port of its own; its commands find perfctl in `path`."""

    def __init__(self, path=None):
        if not os.path.exists(SSHD):
            raise Skip("no sshd; ./tests/packages test installs it")
        self.folder = tempfile.mkdtemp(prefix="perfd-test.")
        self.port = free_port()
        path = path or os.path.dirname(PERFCTL) + ":/usr/bin:/bin"
        for name in "host", "user":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.at(name)], check=True)
        os.makedirs(PRIVILEGES, exist_ok=True)
        self.write("sshd_config", f"""ListenAddress 127.0.0.1:{self.port}
HostKey {self.at('host')}
AuthorizedKeysFile {self.at('user.pub')}
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
SetEnv PATH={path} LD_LIBRARY_PATH={os.environ.get('LD_LIBRARY_PATH', '')}
""")
        with open(self.at("host.pub"), encoding="ascii") as f:
            self.write("known", f"[127.0.0.1]:{self.port} {f.read()}")
        self.write("ssh_config", f"""Host web1
  HostName 127.0.0.1
  Port {self.port}
  User root
  IdentityFile {self.at('user')}
  IdentitiesOnly yes
  UserKnownHostsFile {self.at('known')}
  StrictHostKeyChecking yes
""")
        self.write("ssh", f"#!/bin/sh\nexec ssh -F {self.at('ssh_config')} \"$@\"\n", 0o755)
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", self.at("sshd_config")], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_until(self.answers, "sshd to listen")

    def at(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o600):
        with open(self.at(name), "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(self.at(name), mode)

    def answers(self):
        check(self.process.poll() is None, f"sshd has ended: {self.process.stderr.read() if self.process.poll() else ''}")
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port), 1) as s:
            return s.recv(4) == b"SSH-"
        return False

    def start(self, *arguments, host="web1", **popen):
        environment = {**os.environ, "PERFD_SSH": self.at("ssh"), "PERFD_HOST": host}
        return subprocess.Popen([PERFCTL, *arguments], **{"stdout": subprocess.PIPE, **popen}, stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, env=environment)

    def run(self, *arguments, status=0, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=perfd.PATIENCE)
        equal(process.returncode, status, f"the status of {arguments}, which said {err!r}")
        return out, err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(perfd.PATIENCE)
        self.process.stderr.close()
        for name in os.listdir(self.folder):
            os.unlink(self.at(name))
        os.rmdir(self.folder)


@contextlib.contextmanager
def daemon_there(config=None):
    """(daemon, host): what is to be reached as `host`."""
    with Daemon(config=config) as daemon, Host() as host:
        yield daemon, host, "web1" + daemon.control


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def test_verbs():
    """Each is answered as it is beside the daemon."""
    with daemon_there() as (daemon, host, name), daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls"})
        for verb in (["version"], ["status"], ["list"], ["show", "calls"], ["available", "sched:*exec"], ["ledger", "calls"], ["doctor"]):
            document = rows(host.run(*verb, "--json", host=name)[0])
            check(document and isinstance(document[0], dict), f"{verb}: {document}")
        equal(rows(host.run("status", "--json", host=name)[0])[0]["pid"], daemon.pid, "whose status it is")
        host.run("add", "cpu-clock", "--name", "clock", host=name)
        host.run("filter", "calls", "common_pid == 1", host=name)
        equal(sorted(row["name"] for row in rows(host.run("list", "--json", host=name)[0])), ["calls", "clock"], "what runs there")
        host.run("remove", "clock", host=name)
        err = host.run("remove", "clock", host=name, status=1)[1]
        check("clock" in err, f"the refusal from there: {err!r}")
        equal(rows(host.run("--host", f"unix:{daemon.stream}", "status", "--json", host="nowhere.invalid")[0])[0]["version"],
              rows(host.run("version", "--json", host=name)[0])[0]["perfd"], "--host unix: is before $PERFD_HOST")


def test_the_socket_there():
    """--socket is the path there, also beside a URI; what would be ignored is refused."""
    with daemon_there() as (daemon, host, _):
        for uri in ("ssh://web1", "ssh://web1/", "web1"):
            row = rows(host.run("--host", uri, "--socket", daemon.control, "status", "--json")[0])[0]
            equal(row["pid"], daemon.pid, f"who answers at {uri}")
        for uri, path, said in ((f"ssh://web1{daemon.control}", daemon.control, "named once"),
                                (f"unix:{daemon.control}", daemon.control, "named once"),
                                ("tls://web1", daemon.control, "named once"),
                                ("ssh://web1", "control.sock", "begin with '/'")):
            err = host.run("--host", uri, "--socket", path, "status", status=2)[1]
            check(said in err, f"--host {uri} --socket {path}: {err!r}")
        err = host.run("--host", "", "status", status=2)[1]
        check("--host: the value is empty" in err, err)


def test_every_call():
    """Two programs of a known number of calls: what is received and each loss is what was called, in the order of time. A flood may be
    quicker than ssh on a busy machine: then what the queue there dropped is counted."""
    with daemon_there() as (daemon, host, name), daemon.client() as control, tempfile.TemporaryFile("w+") as out, \
            Workload("syscalls", CALLS, cpus=CPUS) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        process = host.start("watch", "calls", "--json", "--allow-loss", host=name, stdout=out)
        wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        load.go()
        load.done()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=perfd.PATIENCE)[1]
        equal(process.returncode, 0, f"the status, {err!r}")
        out.seek(0)
        items = [json.loads(line) for line in out]
        times = [row["time"] for row in items if row["kind"] == "sample"]
        lost = next(row["lost"] for row in items if row["kind"] == "end")
        equal(len(times) + sum(lost.values()), sum(load.counts), f"samples and losses, with {lost}")
        check(set(lost) <= {"outbox"} and times, f"losses: {lost}")
        check(times == sorted(times), "the order of time")
        load.exit()


def test_what_is_of_this_host():
    with daemon_there() as (_, host, name):
        for words, said in [(["watch", "cpu-clock", "--", "true"], "would run on this machine"),
                            (["add", "uprobe:libc:malloc"], "by its path there"),
                            (["stat", "cpu-clock", "--per-cgroup", "--cgroup", "*"], "name the cgroups"),
                            (["stdio"], "by itself")]:
            err = host.run(*words, host=name, status=2)[1]
            check(said in err, f"{words}: {err!r}")


def test_stat_and_emit():
    """Both need the time there."""
    with daemon_there() as (daemon, host, name):
        row = rows(host.run("stat", "cpu-clock", "--for", "200ms", "--json", host=name)[0])[-1]
        check(row["value"] > 0, row)
        host.run("add", "external:deploy", "--field", "n:u32", host=name)
        process = host.start("watch", "external:deploy", "--json", "--count", "1", host=name)
        wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        host.run("emit", "external:deploy", "n=7", host=name)
        out = process.communicate(timeout=perfd.PATIENCE)[0]
        equal([row["fields"]["n"] for row in rows(out) if row["kind"] == "sample"], [7], "what was emitted there")


def test_failures():
    """No such host, no perfctl there, no perfd there, a shell that talks: each says what to do."""
    with Host() as host, Host(path="/usr/bin:/bin") as bare:
        err = host.run("status", host="web2.invalid", status=3)[1]
        check("web2.invalid cannot be reached by ssh: " in err and "resolve" in err, err)
        err = host.run("status", host="web1/nowhere/control.sock", status=3)[1]
        check("perfctl is there, and reaches no perfd" in err and "/nowhere/control.sock does not exist" in err, err)
        if not os.path.exists("/usr/bin/perfctl"):
            err = bare.run("status", status=3)[1]
            check("there is no perfctl" in err, err)
        host.write("ssh", "#!/bin/sh\necho 'Welcome to web1, all of you'\n", 0o755)
        err = host.run("status", status=3)[1]
        check("does a login shell there print something" in err, err)
        host.write("ssh", "#!/bin/sh\nprintf 'no\\033[31m\\n route\\n' >&2\nexit 255\n", 0o755)
        err = host.run("status", status=3)[1]
        check("cannot be reached by ssh: no?[31m route" in err, err)
        os.unlink(host.at("ssh"))
        err = host.run("status", status=3)[1]
        check("cannot be run: No such file" in err, err)
        host.write("ssh", "#!/bin/sh\nexit 1\n", 0o755)


def test_names_that_are_none():
    """What could be an option or a command of ssh, or is no host, never reaches it; what ssh is given is one word behind `--`."""
    with Host() as host:
        host.write("ssh", f"#!/bin/sh\nprintf '%s\\n' \"$@\" >>{host.at('words')}\nexit 255\n", 0o755)
        for wrong in "a b", "-oProxyCommand=x", "ssh://-oProxyCommand=x", "tls:/x", "ftp://web1", "@", "ssh://", "ssh:///run/x", "a\tb", "a\nb", \
                     "a\x1b[31m", "ssh://a\x7f", "://a", "web1;id", "$(id)", "`id`", "web1|id", "a'b", \
                     "ann@-oX":
            option = ["--host", wrong] if any(c in wrong for c in " \t\n") else []  # in $PERFD_HOST these are two names
            err = host.run(*option, "status", status=2, host="web1" if option else wrong)[1]
            check("expected unix:PATH, ssh://" in err, f"{wrong!r}: {err!r}")
            check("\x1b" not in err and not os.path.exists(host.at("words")), f"{wrong!r} came as far as ssh, or to the terminal: {err!r}")
        for odd in "web1", "ann@web1", "web1:22", "[::1]:22":
            host.run("status", host=odd, status=3)
            with open(host.at("words"), encoding="utf-8") as f:
                equal(f.read(), f"-T\n--\nssh://{odd}\nperfctl stdio\n", "the words of ssh")
            os.unlink(host.at("words"))


def test_connection_that_ends():
    """sshd's child is killed in the middle: the watch ends by itself, and says so."""
    with daemon_there() as (daemon, host, name), daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls"})
        process = host.start("watch", "calls", host=name)
        wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
            ssh = int(f.read().split()[0])
        os.kill(ssh, signal.SIGKILL)
        _, err = process.communicate(timeout=perfd.PATIENCE)
        check(process.returncode != 0 and "the connection to ssh://web1 has ended" in err, f"{process.returncode}: {err!r}")
        wait_until(lambda: daemon.status().n_subscribers == 0, "perfd to notice")


if __name__ == "__main__":
    perfd.main(globals())
