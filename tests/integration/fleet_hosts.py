"""For tests and benchmarks of fleets: relays under the names of many hosts, which publish what one perfd sends to each of them."""
import contextlib
import os
import re
import subprocess
import tempfile

import certificates
import perfd
from perfd import PATIENCE, check, equal, wait_until
from relay import RELAY


class Hosts:
    """So many relays that have begun their route, which is `calls`; `queue` is that of each in perfd."""

    def __init__(self, daemon, server, n, queue="1MiB"):
        self.folder = tempfile.TemporaryDirectory(prefix="perfd-test.")
        certificates.make(self.folder.name)
        self.names = [f"host{i:03}" for i in range(n)]
        self.processes, self.logs = {}, {}
        self.daemon, self.server, self.queue = daemon, server, queue
        try:
            for name in self.names:
                self.start(name)
            for name in self.names:
                self.wait_for(name, r"publishing to")
                self.wait_for(name, r"route calls has begun")
        except BaseException:
            self.__exit__()
            raise

    def start(self, name):
        # an address of its own, whose port no connection of the others can have
        n = self.names.index(name)
        address = f"127.{os.getpid() % 250 + 2}.{n // 250}.{n % 250 + 1}:7443"
        path = os.path.join(self.folder.name, name)
        with open(path + ".yaml", "w", encoding="utf-8") as f:
            f.write(f"version: 1\nperfd: {{ stream: {self.daemon.stream} }}\nclients: [{{ name: nobody, events: ['*'] }}]\n"
                    f"listen: {{ tls: ['{address}'], certificate: server.crt, key: server.key, ca: ca.crt }}\n"
                    f"publish: {{ servers: ['{self.server.url}'], host: {name}, routes: {{ calls: {{ events: [calls], "
                    f"queue: {self.queue} }} }} }}\n")
        self.logs[name] = path + ".log"
        with open(path + ".log", "wb") as log:
            self.processes[name] = subprocess.Popen([RELAY, "--config", path + ".yaml"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self, name):
        with open(self.logs[name], encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_for(self, name, pattern):
        def is_said():
            check(self.processes[name].poll() is None, f"{name} has ended, and said:\n{self.said(name)}")
            return re.search(pattern, self.said(name))

        wait_until(is_said, f"{name} to say {pattern!r}", 4 * PATIENCE)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait(PATIENCE)

    def stop(self):
        """Each ends its stream, and stores all of it."""
        for process in self.processes.values():
            process.terminate()
        for name, process in self.processes.items():
            equal(process.wait(4 * PATIENCE), 0, f"the status of {name}, which said:\n{self.said(name)}")
            check(not perfd.COMPLAINT.search(self.said(name)), self.said(name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        self.folder.cleanup()
