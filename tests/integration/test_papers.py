#!/usr/bin/python3
"""What the README and libperfd(3) show is what works, as it stands there, for somebody who has only built. Needs root."""
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

import perfd
from perfd import Daemon, check, equal
from running import HERE
from test_tls_client import in_own_network

ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
BUILD = os.path.realpath(perfd.BUILD)


def blocks(language):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        return re.findall(rf"^```{language}\n(.*?)^```$", f.read(), flags=re.M | re.S)


def shipped():
    with open(os.path.join(ROOT, "config", "perfd.yaml"), encoding="utf-8") as f:
        return re.sub(r"(?m)^listen:\n(  .*\n)+", "", f.read())


def executes(daemon, program):
    """Programs, until this one has written a line; that line."""
    perfd.wait_until(lambda: daemon.status().n_subscribers == 1 or program.poll() is not None, "its subscription")
    for _ in range(20):
        subprocess.run(["/bin/true"], check=True)
    ready, _, _ = select.select([program.stdout], [], [], perfd.PATIENCE)
    check(ready, "it says nothing")
    return program.stdout.readline()


def test_python():
    """The README's program, with the shipped configuration."""
    (code,) = blocks("python")
    with Daemon(shipped()) as daemon:
        environment = {**os.environ, "PERFD_SOCKET": daemon.control, "PYTHONPATH": os.path.join(BUILD, "client", "python"),
                       "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen([sys.executable, "-B", "-c", code], env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as program:
            line = executes(daemon, program)
            program.send_signal(signal.SIGTERM)
            said = program.communicate(timeout=perfd.PATIENCE)[1]
        check(re.match(r"\d+ \S.* /\S+\n", line), f"{line!r}, and {said!r}")


def test_yaml():
    """The README's configuration has no mistake."""
    (yaml,) = blocks("yaml")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(yaml)
        file.flush()
        ran = subprocess.run([perfd.PERFD, "--check", "--config", file.name], capture_output=True, text=True, check=False,
                             timeout=perfd.PATIENCE)
        equal((ran.returncode, [line for line in ran.stderr.splitlines() if "error" in line]), (0, []), ran.stderr)


def test_session():
    """The first lines of the README's session start a perfd that its perfctl finds, and find its other programs."""
    session = next(block for block in blocks("console") if "perfctl doctor" in block)
    first = [line.removeprefix("$ ") for line in session.splitlines()[:2]]
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        script = "\n".join(first).replace("$PWD/build", BUILD).replace("/run/perfd-trial", f"{folder}/trial")
        check(folder in script and BUILD in script, script)
        script += "\nread -r -t 60 < ready; perfctl list && command -v perfd-relay; status=$?; kill $!; wait $!; exit $status\n"
        os.symlink(os.path.join(ROOT, "config"), os.path.join(folder, "config"))
        script = script.replace("--runtime-directory", "--ready-fd 3 3>ready --runtime-directory")
        os.mkfifo(os.path.join(folder, "ready"))
        ran = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
        check(ran.returncode == 0 and "sched:sched_process_exec" in ran.stdout, ran)
        check(f"{BUILD}/client/relay/perfd-relay" in ran.stdout, "the relay that the session starts is not found")


def test_remote_stream():
    """The README's three commands, as they stand, for somebody who has none of the directories: certificates, the relay, a stream."""
    session = next(block for block in blocks("console") if "perfctl doctor" in block)
    lines = [line.removeprefix("$ ") for line in session.splitlines() if "/tls" in line or "tls://" in line]
    equal([line.split()[0] for line in lines], ["perfd-relay", "perfd-relay", "perfctl"], "the programs of the three commands")
    in_own_network(lambda: run_three(*lines))  # which has port 7443


def run_three(certificates, relay, watch):
    path = os.pathsep.join([os.path.join(BUILD, "client", "perfctl"), os.path.join(BUILD, "client", "relay"), os.environ["PATH"]])
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as home, Daemon(shipped()) as daemon:
        environment = {**os.environ, "HOME": home, "PATH": path, "PERFD_SOCKET": daemon.control}
        environment.pop("PERFD_TLS", None)
        script = f"{certificates}\n{relay}\nwhile ! (: </dev/tcp/localhost/7443) 2>/dev/null; do kill -0 $! || exit 9; done\n" \
                 f"{watch} --count 1 --allow-loss & watch=$!\nwhile kill -0 $watch 2>/dev/null; do /bin/true; done\n" \
                 "wait $watch; status=$?; kill %1; wait %1; exit $status\n"
        ran = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
        check(ran.returncode == 0 and "sched:sched_process_exec" in ran.stdout, ran)


def test_python_by_tls():
    """The lines of PROTOCOL.md by which Python reads a stream of another host, but for the host's name."""
    with open(os.path.join(ROOT, "proto", "PROTOCOL.md"), encoding="utf-8") as f:
        (code,) = [block for block in re.findall(r"^```python\n(.*?)^```$", f.read(), flags=re.M | re.S) if "ssl." in block]
    check(code.count('"web1"') == 2, code)

    def body():
        with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder, Daemon(shipped()) as daemon:
            relay = os.path.join(BUILD, "client", "relay", "perfd-relay")
            subprocess.run([relay, "certificates", folder, "--server", "localhost", "--client", "me", "--perfd", daemon.directory], check=True,
                           stdout=subprocess.DEVNULL, timeout=perfd.PATIENCE)
            environment = {**os.environ, "PYTHONPATH": os.path.join(BUILD, "client", "python"), "PYTHONUNBUFFERED": "1"}
            code_here = "import socket\nimport ssl\nimport perfd\n" + code.replace('"web1"', '"localhost"')
            with subprocess.Popen([relay, "--config", f"{folder}/relay.yaml"], stderr=subprocess.PIPE) as server:
                try:
                    check(b"ready" in server.stderr.readline(), "the relay is not ready")
                    with subprocess.Popen([sys.executable, "-B", "-c", code_here], cwd=folder, env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
                        line = executes(daemon, program)
                        program.kill()
                        said = program.communicate(timeout=perfd.PATIENCE)[1]
                    check("sched:sched_process_exec" in line, f"{line!r}, and {said!r}")
                finally:
                    server.kill()

    in_own_network(body)  # which has port 7443


def test_library():
    """libperfd(3)'s program, built as the page says, without a warning."""
    with open(os.path.join(ROOT, "client", "libperfd.3"), encoding="utf-8") as f:
        page = f.read()
    code = page.split(".Bd -literal\n")[-1].split("\n.Ed")[0].replace("\\&", "").replace("\\e", "\\")
    command = next(line for line in page.splitlines() if line.startswith(".Dl cc -I")).removeprefix(".Dl ")
    compiler = shutil.which("cc")
    check(compiler, "there is no cc, which has built perfd")
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder, Daemon(shipped()) as daemon:
        with open(os.path.join(folder, "program.c"), "w", encoding="utf-8") as f:
            f.write(code + "\n")
        command = command.replace("program.c", f"{folder}/program.c").replace("$PWD/build", BUILD).replace("-Lbuild", f"-L{BUILD}")
        sanitizer = "" if perfd.SANITIZER == "none" else f"-fsanitize={perfd.SANITIZER}"  # of the library, and so of its user
        subprocess.run(["sh", "-c", f"{command} {sanitizer} -Wall -Wextra -Werror -o {folder}/program"], cwd=ROOT, check=True, timeout=perfd.PATIENCE)
        environment = {**os.environ, "PERFD_SOCKET": daemon.control}
        environment["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"  # stdbuf preloads a library
        with subprocess.Popen(["stdbuf", "-oL", f"{folder}/program"], env=environment, text=True, stdout=subprocess.PIPE) as program:
            line = executes(daemon, program)
            rest = program.stdout.read().splitlines()
        check(re.match(r"\d+ \S.* \S+\n", line), line)  # of whatever somebody executed first
        check(rest[-1].endswith("0 missed, the ledger balances"), rest)


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
