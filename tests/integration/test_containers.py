#!/usr/bin/python3
"""Containers by the names that their runtimes have for them, on the real kernel: who is observed while they are stopped, renamed,
made anew and removed, and what is said of one that is gone for good."""
import collections
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

import perfd
from checker import Checker
from perfd import Daemon, Subscriber, add, check, equal, pb, refused, wait_until
from test_targets import CALLS, N, Tree, events_of, occurred
from test_promises import rows_of
from test_sources import FIRE, Fire, total
from test_watch_text import watched

# what is below the folder is the daemon's own /var/lib
PREFIX = 'mount --make-rprivate / && mount --bind "$1" /var/lib && shift && exec "$@"'
STORE = "containers/storage/vfs-containers"
WEB, WEB_2, DB, GONE = (letter * 64 for letter in "abcd")


def prefix_of(folder):
    return ("unshare", "--mount", "sh", "-c", PREFIX, "sh", folder)


class Runtimes:
    """What podman and docker would write of containers whose cgroups the test makes itself. Each file is replaced whole."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(f"{folder}/{STORE}")

    def write(self, path, value):
        path = f"{self.folder}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        os.rename(f"{path}.new", path)

    def podman(self, **names):
        self.write(f"{STORE}/containers.json", [{"id": i, "names": [name]} for name, i in names.items()])

    def docker(self, name, i):
        self.write(f"docker/containers/{i}/config.v2.json", {"ID": i, "State": {"Running": True}, "Name": f"/{name}"})


@contextlib.contextmanager
def daemon_and_runtimes(**more):
    with tempfile.TemporaryDirectory() as folder, Tree() as tree:
        runtimes = Runtimes(folder)
        with Daemon(prefix=prefix_of(folder), **more) as daemon, daemon.client() as client:
            yield daemon, client, tree, runtimes


def absent(client):
    return {name: e.absent for name, e in events_of(client).items()}


def n_targets(client):
    return {name: e.n_targets for name, e in events_of(client).items()}


def test_names():
    """By name, by glob and by id at once, through removal, a new container of the same name, and a rename."""
    with daemon_and_runtimes() as (daemon, client, tree, runtimes):
        scope = {i: f"machine.slice/libpod-{i}.scope" for i in (WEB, WEB_2)} | {DB: f"system.slice/docker-{DB}.scope"}
        runtimes.podman(web=WEB)
        runtimes.docker("web-db", DB)
        for i in (WEB, DB):
            tree.make(scope[i])
        named = {"web": "web", "glob": "web*", "id": WEB, "short": WEB[:12], "db": "docker://web-db"}
        add(client, *({**CALLS, "name": name, "target": pb.Target(containers=[c])} for name, c in named.items()))
        with Fire(tree.make(scope[WEB])) as web, Fire(tree.make(scope[DB])) as db, Checker(daemon, "time", queue=1 << 26) as checker:
            web.fire("syscalls", N)
            db.fire("syscalls", 2 * N)
            checker.finish()
        equal(occurred(daemon, *named), {"web": N, "glob": 3 * N, "id": N, "short": N, "db": 2 * N}, "calls of each")

        # stopped: its runtime has it still
        tree.remove(scope[WEB])
        wait_until(lambda: n_targets(client) == {"web": 0, "glob": 1, "id": 0, "short": 0, "db": 1}, "one is stopped")
        equal(absent(client), {"web": "there is no container web now (it is stopped)", "glob": "",
                               "id": f"there is no container {WEB} now (it is stopped)",
                               "short": f"there is no container {WEB[:12]} now (it is stopped)", "db": ""}, "what is said of it")
        no = refused(client, "unknown-container", add=pb.AddRequest(events=[
            pb.EventSpec(name="again", target=pb.Target(containers=["web"]), **CALLS)])).message
        check("is not running: podman knows it" in no, no)

        # made anew under its name
        runtimes.podman(web=WEB_2)
        tree.make(scope[WEB_2])
        wait_until(lambda: n_targets(client) == {"web": 1, "glob": 2, "id": 0, "short": 0, "db": 1}, "the new one is followed")
        equal(absent(client)["id"], f"there is no container {WEB} now: it has been removed for good", "what is said of the old one's id")
        equal(absent(client)["web"], "", "what is said of its name")
        with Fire(tree.make(scope[WEB_2])) as web:
            web.fire("syscalls", 4 * N)
        equal(occurred(daemon, *named), {"web": 5 * N, "glob": 7 * N, "id": N, "short": N, "db": 2 * N}, "calls with the new one")
        said = daemon.stderr()
        check(f"id: there is no container {WEB} now: it has been removed for good; no runtime knows it any longer" in said, said[-2000:])

        # renamed while it runs: the tree has not changed
        runtimes.podman(shop=WEB_2)
        wait_until(lambda: n_targets(client)["web"] == 0 and n_targets(client)["glob"] == 1, "the new name is seen")
        equal(absent(client)["web"], "there is no container web now", "what is said of a name that is nobody's")
        runtimes.podman(web=WEB_2)
        wait_until(lambda: n_targets(client)["web"] == 1, "it has its name back")


def test_refusals():
    """What a name may mean twice, what is nobody's, and files that are none of a runtime's."""
    with daemon_and_runtimes() as (daemon, client, tree, runtimes):
        tree.make(f"machine.slice/libpod-{WEB}.scope")
        tree.make(f"system.slice/docker-{DB}.scope")
        runtimes.podman(web=WEB)
        runtimes.docker("web", DB)

        def ask(reason, container):
            return refused(client, reason, add=pb.AddRequest(events=[
                pb.EventSpec(name="calls", target=pb.Target(containers=[container]), **CALLS)])).message
        both = ask("ambiguous-container", "web")
        check(WEB in both and DB in both, both)
        check("did you mean 'web'?" in ask("unknown-container", "wbe"), "no hint")
        ask("bad-container", "a/b")
        add(client, {**CALLS, "name": "one", "target": pb.Target(containers=["podman://web"])})
        equal(n_targets(client), {"one": 1}, "the one of podman alone")
        for text, word in (("[{", "line"), ("[" * 1000, "nested more deeply"), (f'[&a {{"id": "{GONE}"}}]', "anchor"),
                           ('[{"id": "x", "names": [*a]}]', "alias"), ("a: b", "expected {"), ("\0\1", "containers.json"),
                           ("[" + " " * (8 << 20) + "]", "large")):
            runtimes.write(f"{STORE}/containers.json", text)
            said = ask("unknown-container", "other")
            check("vfs-containers/containers.json cannot be read" in said and word in said, said)
        equal(daemon.status().n_events, 1, "it goes on")


# ---- a pid namespace of perfd's own ----------------------------------------------------------------------------------

NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")
CHILD = "import os, sys; [os.getppid() for _ in range(3)]; os.write(1, b'%d\\n' % os.getpid()); {end}"
# calls before it has children, then makes them: each goes into the cgroup before its exec, as a runtime does it
PARENT = """
import os, sys
cgroup, n, child = sys.argv[1:]
sys.stdin.readline()
[os.getppid() for _ in range(3)]
print(os.getpid(), flush=True)
for _ in range(int(n)):
    if os.fork() == 0:
        with open(cgroup + "/cgroup.procs", "w") as f:
            f.write("0")
        os.execv(sys.executable, [sys.executable, "-c", child])
    if "exit" in child:
        os.wait()
sys.stdin.readline()
"""
CHILDREN = 20


class Parent(perfd.Line):
    """In the namespace of that process, and in the cgroup."""

    def __init__(self, pid, own, cgroup, end):
        super().__init__(["nsenter", "--target", str(pid), "--pid", os.sys.executable, "-c", PARENT, cgroup, str(CHILDREN),
                          CHILD.format(end=end)])
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            wait_until(lambda: f.seek(0) == 0 and f.read(), "nsenter forks")
            f.seek(0)
            self.child = int(f.read())
        with open(os.path.join(own, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(self.child))

    def go(self):
        """The pids, as they are there, of the parent and of its children."""
        self.say("go")
        return [int(self.hear()[0]) for _ in range(1 + CHILDREN)]


def of_whom(lines, pids):
    """[(comm, container, cgroup)] of all samples of these pids."""
    return [(line["comm"], (line.get("process") or {}).get("container", ""), (line.get("process") or {}).get("cgroup", ""))
            for line in lines if line.get("event") and line.get("pid") in pids]


def test_pid_namespace():
    """Who is outside is not called an idle CPU; whoever is in a new container never carries the cgroup of who has started it."""
    with Tree() as tree, Daemon(prefix=NAMESPACE) as daemon, daemon.client() as client:
        check("perfd is in a pid namespace: processes outside of it have pid 0" in daemon.stderr(), daemon.stderr())
        service, scope = tree.make("shop.service"), tree.make(f"machine.slice/libpod-{WEB}.scope")
        add(client, {**CALLS, "name": "calls"})
        for end, may_be_gone in (("sys.stdin.readline()", False), ("sys.exit()", True)):
            with Parent(daemon.pid, service, scope, end) as parent, Fire(service) as outside, Subscriber(daemon, "calls") as one:
                parent_pid, *pids = parent.go()
                outside.fire("syscalls", 7)
                lines = one.finish()
                parent.process.stdin.close()
            others = of_whom(lines, [0])  # those of other tests on this host too
            check(len(others) >= 7 and set(others) == {("outside", "", "")}, f"who is outside: {set(others)}")
            equal(of_whom(lines, [parent_pid]), [("python3", "", f"/{tree.own}/shop.service")] * 3, "who starts containers")
            found = of_whom(lines, pids)
            equal(len(found), 3 * CHILDREN, "samples of containers")
            inside = [(container, cgroup) for _, container, cgroup in found if cgroup]
            equal(set(inside), {(WEB, f"/{tree.own}/machine.slice/libpod-{WEB}.scope")} if inside else set(), "what containers carry")
            check(may_be_gone or len(inside) == len(found), f"{len(found) - len(inside)} samples of living containers have none")
            print(f"  {len(inside)} of {len(found)} samples of {'short' if may_be_gone else 'long'} lives have their container")


# name: (event, what an item of it says of tid 0, and calls it); None: what the CPU's idle thread is called
CLOCK = {"event": "cpu-clock", "frequency": 250}
ZERO_TIDS = {
    "calls": (CALLS, "outside", "outside"),
    "idle": ({"event": "sched:sched_switch", "filter": "prev_pid == 0"}, "idle", None),
    "busy": ({"event": "sched:sched_switch", "filter": "prev_pid != 0"}, "outside", "outside"),
    "user": ({**CLOCK, "attr": [pb.AttrSetting(name="exclude-kernel", value="true")]}, "outside", "outside"),
    "kernel": ({**CLOCK, "attr": [pb.AttrSetting(name="exclude-user", value="true")]}, "unknown", "idle-or-outside"),
}


def of_zero_tid(lines):
    """{(event or record, zero_tid, comm): how many} of what has tid 0, with None for the right idle thread."""
    return collections.Counter((line["event"] or line["record"], line.get("zero_tid"),
                                None if line["comm"] == f"swapper/{line['cpu']}" else line["comm"]) for line in lines
                               if "tid" in line and line["tid"] == 0 and "comm" in line)


def delivered(daemon, name):
    """Of a sampled event not all occurrences are counted: its row is not exact."""
    return sum(row.delivered for row in daemon.ledger().events if row.name == name)


def test_zero_tid():
    """Who has tid 0 is told apart by what the record shows: idle threads and threads outside, and what shows neither says so."""
    with Tree() as tree, Daemon(prefix=NAMESPACE) as daemon, daemon.client() as client:
        folder = tree.make("shop.service")
        own = {"calls": {"target": pb.Target(cgroups=[f"{tree.own}/shop.service"])}}  # others on this host may call often
        add(client, *({**event, "name": name, **own.get(name, {})} for name, (event, _, _) in ZERO_TIDS.items()))
        with Fire(folder) as outside, Subscriber(daemon, "--records", *ZERO_TIDS) as one, \
                Subscriber(daemon, "--where", 'comm == "outside"', "calls", "idle", "kernel") as named, \
                Subscriber(daemon, "--where", 'comm ~ "swapper/*"', "calls", "idle", "kernel") as idle, \
                Subscriber(daemon, "--where", 'comm == "idle-or-outside"', "calls", "idle", "kernel") as unknown:
            before = {name: delivered(daemon, name) for name in ZERO_TIDS if name != "idle"}  # a busy host has no idle CPU
            outside.fire("syscalls", N)
            wait_until(lambda: sum(range(100000)) and all(delivered(daemon, name) > n for name, n in before.items()), "some of each")
            subprocess.run(["true"], check=True)  # forks, and executes another program
            printed = watched(daemon, lambda: outside.fire("syscalls", N), "--count", str(N), "calls")
            equal({(line["zero_tid"], line["comm"]) for line in printed}, {("outside", "outside")}, "perfctl watch --json")
            streams = [of_zero_tid(who.finish()) for who in (one, named, idle, unknown)]
        expected = {(name, zero_tid, comm) for name, (_, zero_tid, comm) in ZERO_TIDS.items()}
        records = {(kind, "outside", "outside") for kind in ("comm_record", "fork", "exit", "mmap2")}
        for who, n in streams[0].items():
            print(f"  {n} of {who}")
        equal(set(streams[0]) | {("idle", "idle", None)}, expected | records, "who has tid 0")
        check(streams[0]["calls", "outside", "outside"] >= N, f"the calls of one outside: {streams[0]}")
        for found, (name, zero_tid, comm) in zip(streams[1:], (("calls", "outside", "outside"), ("idle", "idle", None),
                                                               ("kernel", "unknown", "idle-or-outside"))):
            equal(set(found) | ({("idle", "idle", None)} & {(name, zero_tid, comm)}), {(name, zero_tid, comm)}, f"whose comm is {comm}")


def test_zero_tid_of_host():
    """With the host's pids tid 0 is the idle thread, and nothing more is said of it."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {**CALLS, "name": "calls"}, {**ZERO_TIDS["idle"][0], "name": "idle"})
        with Tree() as tree, Fire(tree.make("shop.service")) as other, Subscriber(daemon, "calls", "idle") as one:
            other.fire("syscalls", N)
            lines = [line for line in one.finish() if line.get("event")]
        check(len(lines) >= N and not any("zero_tid" in line for line in lines), f"{len(lines)} samples")
        equal({("idle", None, None), *of_zero_tid(lines)}, {("idle", None, None)}, "who has tid 0")


def test_foreign_proc():
    """With the pids of another /proc nobody has a cgroup: it would be anybody's."""
    with Tree() as tree, Daemon(prefix=NAMESPACE[:-1]) as daemon, daemon.client() as client:
        check("which belongs to another namespace: no process has one" in daemon.stderr(), daemon.stderr())
        service, scope = tree.make("shop.service"), tree.make(f"machine.slice/libpod-{WEB}.scope")
        add(client, {**CALLS, "name": "calls"})
        with Parent(daemon.pid, service, scope, "sys.stdin.readline()") as parent, Subscriber(daemon, "calls") as one:
            pids = parent.go()
            lines = one.finish()
            parent.process.stdin.close()
        found = of_whom(lines, pids)
        equal((len(found), {who[1:] for who in found}), (3 + 3 * CHILDREN, {("", "")}), "samples, and what they carry")


# ---- a real runtime --------------------------------------------------------------------------------------------------

def run_podman(folder, *words, **more):
    """podman whose store is in the folder. Its runtime is runc without limits of resources, which no container may raise here."""
    command = ["podman", "--root", f"{folder}/containers/storage", "--runroot", f"{folder}/run", "--storage-driver", "vfs",
               "--cgroup-manager", "cgroupfs", "--runtime", f"{folder}/runc", *words]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=4 * perfd.PATIENCE, check=False, **more)


RUNC = """#!/usr/bin/python3
import json, os, sys
for option, value in zip(sys.argv, sys.argv[1:]):
    if option == "--bundle":
        with open(f"{value}/config.json", encoding="utf-8") as f:
            config = json.load(f)
        config["process"].pop("rlimits", None)
        config["process"].pop("oomScoreAdj", None)
        with open(f"{value}/config.json", "w", encoding="utf-8") as f:
            json.dump(config, f)
os.execv(RUNC, [RUNC, *sys.argv[1:]])
"""


def remove_all(folder):
    """Whether it is gone: what podman leaves running behind a container may write there for a moment more."""
    shutil.rmtree(folder, ignore_errors=True)
    return not os.path.exists(folder)


@contextlib.contextmanager
def podman():
    """Gives the folder of its store and that of a root for its containers."""
    real = shutil.which("runc")
    if not real or not shutil.which("podman") or not os.path.exists("/bin/busybox"):
        raise perfd.Skip("podman, runc and busybox-static are needed: ./tests/packages test")
    folder = tempfile.mkdtemp(dir="/var/tmp")
    with contextlib.ExitStack() as stack:
        stack.callback(wait_until, lambda: remove_all(folder), f"{folder} is removed")
        with open(f"{folder}/runc", "w", encoding="utf-8") as f:
            f.write(RUNC.replace("RUNC", repr(real)))
        os.chmod(f"{folder}/runc", 0o755)
        root = f"{folder}/root"
        for name in ("bin", "proc", "sys", "dev", "etc", "tmp", "run"):
            os.makedirs(f"{root}/{name}")
        shutil.copy("/bin/busybox", f"{root}/bin/busybox")
        try:
            yield folder, root
        finally:
            run_podman(folder, "rm", "--all", "--force", "--time", "0")
            run_podman(folder, "system", "reset", "--force")


def test_podman():
    """A real one: by its name, made anew by `podman run --replace`, and removed for good."""
    with podman() as (folder, root):
        def run(*more):
            ran = run_podman(folder, "run", "--detach", "--name", "perfd-test-web", "--network", "none", *more, "--rootfs", root,
                             "/bin/busybox", "sh", "-c", "while :; do /bin/busybox sleep 0.05; done")
            if ran.returncode != 0 and not more:
                raise perfd.Skip(f"podman can run no container here: {ran.stdout.strip()[-300:]}")
            equal(ran.returncode, 0, ran.stdout)
            return ran.stdout.split()[-1]
        first = run()
        with Daemon(prefix=prefix_of(folder)) as daemon, daemon.client() as client:
            add(client, *({**CALLS, "filter": "", "name": name, "target": pb.Target(containers=[c])}
                          for name, c in {"name": "perfd-test-web", "glob": "perfd-test-*", "id": first}.items()))
            equal(n_targets(client), {"name": 1, "glob": 1, "id": 1}, "where it runs")
            wait_until(lambda: min(occurred(daemon, "name", "glob", "id").values()) > 0, "its calls")
            second = run("--replace")
            check(first != second, "another id")
            wait_until(lambda: n_targets(client) == {"name": 1, "glob": 1, "id": 0}, "the new one is followed")
            before = occurred(daemon, "name")["name"]
            wait_until(lambda: occurred(daemon, "name")["name"] > before, "its calls")
            wait_until(lambda: absent(client)["id"] == f"there is no container {first} now: it has been removed for good", "the old one")
            equal(run_podman(folder, "rm", "--force", "--time", "0", "perfd-test-web").returncode, 0, "podman rm")
            wait_until(lambda: n_targets(client) == {"name": 0, "glob": 0, "id": 0}, "nobody is left")
            wait_until(lambda: absent(client)["name"] == "there is no container perfd-test-web now", "what is said of its name")


# ---- perfd with few privileges ---------------------------------------------------------------------------------------

GROUP = 1


@contextlib.contextmanager
def perfd_with_group(prefix=()):
    """Gives a client, and the stream socket, of a perfd that makes its sockets as its configuration says, and then all that it says."""
    said = []
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w+", encoding="utf-8") as log:
        config, control, stream = (f"{folder}/{name}" for name in ("perfd.yaml", "control.sock", "stream.sock"))
        with open(config, "w", encoding="utf-8") as f:
            f.write(f'version: 1\nlisten: {{ control: {control}, stream: {stream} }}\naccess: {{ stream-group: "{GROUP}" }}\n')
        ready, theirs = os.pipe()
        process = subprocess.Popen([*prefix, perfd.PERFD, "--config", config, "--ready-fd", str(theirs)], stderr=log,
                                   pass_fds=[theirs])
        os.close(theirs)
        try:
            with os.fdopen(ready, "rb", buffering=0) as f:
                equal(f.read(1), b"\n", "what perfd says when it is ready")
            with perfd.Client(control) as client:
                yield client, stream, said
        finally:
            process.terminate()
            process.wait(perfd.PATIENCE)
        log.seek(0)
        said.append(log.read())


def test_no_chown():
    """What it may not give to a group is for itself alone, and the log and doctor say so: no reason not to start."""
    with perfd_with_group() as (client, stream, _):
        mode = os.stat(stream)
        equal((mode.st_mode & 0o777, mode.st_gid), (0o660, GROUP), "the socket with CAP_CHOWN")
    with perfd_with_group(("setpriv", "--bounding-set=-chown", "--inh-caps=-chown")) as (client, stream, said):
        mode = os.stat(stream)
        equal((mode.st_mode & 0o777, mode.st_gid), (0o600, os.getegid()), "the socket without")
        row, = [row for row in client.request(doctor=pb.Empty()).doctor.rows if row.what == "sockets"]
        check(not row.works and "CAP_CHOWN" in row.remedy, str(row))
    check("stream.sock is for root alone: it cannot be given to the group 1 without CAP_CHOWN" in said[0], said[0])


def test_kept_roots():
    """The number in /proc/PID/root/PATH is another process's after a restart."""
    with Daemon() as daemon, daemon.client() as client:
        for path in (f"/proc/{os.getpid()}/root{FIRE}",):
            no = refused(client, "bad-event", add=pb.AddRequest(keep=True, events=[pb.EventSpec(event=f"uprobe:{path}:fire_call")]))
            check("can belong to another process after a restart" in no.message and "podman mount" in no.message, no.message)


def options_of_manifest(folder):
    """Those of systemd/container.md, with the test's own folders."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "systemd", "container.md")
    with open(path, encoding="utf-8") as f:
        words = f.read().split("podman run", 1)[1].split("IMAGE", 1)[0].replace("\\\n", " ").split()
    words[words.index("--name") + 1] = "perfd-test-perfd"
    own = {"/run/perfd": f"{folder}/sockets", "/etc/perfd": f"{folder}/config", "/var/lib/perfd": f"{folder}/kept", "/var/lib/containers/storage": f"{folder}/containers/storage"}
    return [f"{own[word.split(':')[0]]}:{word.split(':', 1)[1]}" if word.split(":")[0] in own else word for word in words]


def test_perfd_in_container():
    """With the options that the manifest names it observes the host: another container by its name, and who is in it."""
    with podman() as (folder, root):
        for name in "sockets", "config", "kept":
            os.mkdir(f"{folder}/{name}")
        with open(f"{folder}/config/perfd.yaml", "w", encoding="utf-8") as f:
            f.write("version: 1\nlisten: { control: /run/perfd/control.sock, stream: /run/perfd/stream.sock }\n"
                    f'access: {{ stream-group: "{GROUP}" }}\n')
        perfd_root = f"{folder}/perfd"
        for name in ("usr", "build", "proc", "sys", "dev", "etc", "tmp", "run", "var/lib"):
            os.makedirs(f"{perfd_root}/{name}")
        for name in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{name}", f"{perfd_root}/{name}")
        web = run_podman(folder, "run", "--detach", "--name", "perfd-test-web", "--network", "none", "--rootfs", root, "/bin/busybox",
                         "sh", "-c", "while :; do /bin/busybox sleep 0.05; done")
        if web.returncode != 0:
            raise perfd.Skip(f"podman can run no container here: {web.stdout.strip()[-300:]}")
        ran = run_podman(folder, "run", *options_of_manifest(folder), "--volume", "/usr:/usr:ro", "--volume", f"{perfd.BUILD}:/build:ro",
                         "--rootfs", perfd_root, "/build/daemon/perfd", "--config", "/etc/perfd/perfd.yaml")
        equal(ran.returncode, 0, ran.stdout)
        control, stream = f"{folder}/sockets/control.sock", f"{folder}/sockets/stream.sock"
        try:
            wait_until(lambda: all(os.path.exists(path) and os.stat(path).st_mode & 0o777 for path in (control, stream)),
                       "perfd in the container is ready")  # whoever makes a socket gives it its mode last
        except AssertionError:
            print(run_podman(folder, "logs", "perfd-test-perfd").stdout)
            raise
        mode = os.stat(stream)
        equal((mode.st_mode & 0o777, mode.st_gid), (0o660, GROUP), "the stream socket")
        with perfd.Client(control) as client:
            add(client, {"event": "raw_syscalls:sys_enter", "name": "calls", "target": pb.Target(containers=["perfd-test-web"])})
            equal(n_targets(client), {"calls": 1}, "the other container")
            rows = {row.what: row for row in client.request(doctor=pb.Empty()).doctor.rows}
            for what in ("host-wide events", "tracepoints", "cgroups", "pids", "sockets"):
                check(rows[what].works, str(rows[what]))

            def calls():
                return total(rows_of(client.request(ledger=pb.LedgerRequest()).ledger, "calls"), "occurred")
            wait_until(lambda: calls() > 0, "its calls")


if __name__ == "__main__":
    perfd.main(globals())
