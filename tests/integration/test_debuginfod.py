#!/usr/bin/python3
"""Names that servers have, by --debuginfod: of one recording of a stripped program and its library, and of servers that are here. Needs
root, for perf record."""
import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL
from test_symbols import build, build_id, run

NOT_ASKED = "perfctl: script: debuginfod: no server is named: DEBUGINFOD_URLS in the environment lists their URLs\n"
ALL = {"local", "outer::inner", "core::fmt::Formatter::pad", "main"}  # the functions of the program


class Server:
    """Has `files`: {path: bytes}; `asked` are the paths that were asked for, in that order."""
    def __init__(self, files):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                content = files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


class Silent:
    """Takes connections, and never says anything."""
    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(perfd.PATIENCE)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        return self

    def __exit__(self, *_):
        self.listener.close()

    def count(self):
        """Those that wait to be taken."""
        self.listener.setblocking(False)
        n = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self.listener.accept()[0].close()
                n += 1
        return n


class Recorded:
    """A recording of a program, whose symbols and whose library's are in `files` for a server, and not here."""
    def __init__(self, folder):
        self.folder, self.data, self.files = folder, os.path.join(folder, "perf.data"), {}
        self.program, self.library = build(folder), os.path.join(folder, "libnames.so")
        run("gcc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id", "-shared", "-fPIC", "-o", self.library, "library.c", cwd=folder)
        for path in self.program, self.library:
            debug = path + ".debug"
            run("objcopy", "--only-keep-debug", path, debug)
            run("strip", path)
            with open(debug, "rb") as f:
                self.files[self.asked(path)] = f.read()
            os.unlink(debug)
        run("perf", "record", "-q", "-N", "-g", "-e", "cpu-clock:u", "-o", self.data, "--", self.program, "2000")

    @staticmethod
    def asked(path, kind="debuginfo"):
        return f"/buildid/{build_id(path)}/{kind}"

    @contextlib.contextmanager
    def environment(self, urls):
        """With a cache of its own, and without perf's, which may have a library that another test has built the same."""
        with tempfile.TemporaryDirectory(dir=self.folder) as cache:
            more = {"DEBUGINFOD_URLS": urls, "DEBUGINFOD_CACHE_PATH": cache, "no_proxy": "127.0.0.1", "HOME": cache}
            yield {**{name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD_")}, **more}

    def script(self, environment, *options):
        """The names of the program's frames, and what was said on stderr."""
        done = subprocess.run([PERFCTL, "--json", "script", "-i", self.data, *options], env=environment, capture_output=True, text=True,
                              timeout=perfd.PATIENCE, check=False)
        equal(done.returncode, 0, done.stderr)
        chains = [json.loads(line)["user_callchain"] for line in done.stdout.splitlines()]
        return {frame["symbol"] for chain in chains for frame in chain if frame["dso"] == self.program}, done.stderr


def mine(server, *paths):
    """How often each file was asked for: what else the program has mapped is of the system."""
    return [server.asked.count(path) for path in paths]


def names_are(recorded, environment, expected, said="", options=("--debuginfod",)):
    names, error = recorded.script(environment, *options)
    equal(names & ALL, ALL if expected else set(), "names of the program")
    equal(error, said, "stderr")


def check_names(recorded):
    """Only where it is asked for; each file once, and not again while the cache has it; and a program that is not here any more."""
    program, library = recorded.asked(recorded.program), recorded.asked(recorded.library)
    whole = recorded.asked(recorded.program, "executable")
    with Server(recorded.files) as server, recorded.environment(server.url) as environment:
        names_are(recorded, environment, False, options=())
        equal(server.asked, [], "requests without --debuginfod")
        names_are(recorded, environment, True)
        equal(mine(server, program, library, whole), [1, 1, 0], "requests")
        names_are(recorded, environment, True)
        equal(mine(server, program, library, whole), [1, 1, 0], "requests with what is in the cache")
        for verb, *options in ("report", "--children", "--sort", "symbol"), ("export", "--to", "folded", "-o", "-"), ("flame", "-o", "-"):
            done = run(PERFCTL, verb, "-i", recorded.data, "--debuginfod", *options, env=environment)
            check("outer::inner" in done, f"{verb} has no names: {done[:2000]}")
        environment["DEBUGINFOD_URLS"] = " "
        names_are(recorded, environment, False, NOT_ASKED)
    with open(recorded.program, "rb") as f:
        recorded.files[whole] = f.read()
    os.unlink(recorded.program)
    with Server(recorded.files) as server, recorded.environment(server.url) as environment:
        names_are(recorded, environment, True)
        equal(mine(server, program, whole), [1, 1], "requests for a program that is not here")


def check_wrong(recorded):
    """A file that a server does not have is no error; what is none, or another one, is said once, with where it lies, and ends it; so does
    a server that is not there."""
    program, library = recorded.asked(recorded.program), recorded.asked(recorded.library)
    with Server({}) as server, recorded.environment(server.url) as environment:
        names_are(recorded, environment, False)
        equal(mine(server, program, library), [1, 1], "requests for what is not there")
    other = recorded.files[library]
    for content in b"\x7fELF and what nobody knows", b"", other:
        with Server({program: content}) as server, recorded.environment(server.url) as environment:
            number = program.split("/")[2]
            cached = os.path.join(environment["DEBUGINFOD_CACHE_PATH"], number, "debuginfo")
            said = (f"perfctl: script: debuginfod: what {server.url} has for build id {number} is no file with symbols that has it: nothing more is "
                    f"asked for; remove {cached} before it is asked again\n")
            names_are(recorded, environment, False, said if content else "")
            equal(mine(server, program), [1], "requests for what is another file")
    with Silent() as server:
        url = server.url
    with recorded.environment(url) as environment:
        names_are(recorded, environment, False, f"perfctl: script: debuginfod: asking {url}: Connection refused: it is not asked any more, and files that "
                                                "are not here have no names\n")


def check_silent(recorded):
    """A server that takes a connection and never answers is asked for one file of several, which is said; Ctrl-C ends waiting for it."""
    with Silent() as server, recorded.environment(server.url) as environment:
        names_are(recorded, environment, False, f"perfctl: script: debuginfod: nothing came from {server.url} for two seconds: it is not asked any more, and "
                                                "files that are not here have no names\n")
        equal(server.count(), 1, "connections")
    with Silent() as server, recorded.environment(server.url) as environment:
        with subprocess.Popen([PERFCTL, "script", "-i", recorded.data, "--debuginfod"], env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            with server.listener.accept()[0]:
                process.send_signal(signal.SIGINT)
                equal((process.wait(perfd.PATIENCE), process.stderr.read()), (-signal.SIGINT, ""), "Ctrl-C")


def test_servers():
    """All of one recording, since that takes long; that which takes the program away is the last."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        recorded = Recorded(folder)
        check_wrong(recorded)
        check_silent(recorded)
        check_names(recorded)


if __name__ == "__main__":
    perfd.main(globals())
