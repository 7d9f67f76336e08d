"""What checks of an installation share. They run inside tests/integration/systemd/machine --bare, as a unit."""
import json
import os
import re
import select
import subprocess
import sys
import time

SERVICE = "perfd.service"
SOCKETS = ["perfd-control.socket", "perfd-stream.socket"]
UNITS = [SERVICE, *SOCKETS]
CONFIG = "/etc/perfd/perfd.yaml"
KEPT = "/var/lib/perfd/events"
UPPER = "/run/machine/upper"
PATIENCE_SEC = 40

# of others: what dpkg, useradd's libraries, the loader and journald write of anything that is installed
NOT_OURS = re.compile(r"/(etc/(passwd|group|g?shadow|subuid|subgid)-?|etc/\.pwd\.lock|etc/ld\.so\.cache|var/cache/(ldconfig|man|debconf)/.*"
                      r"|var/lib/dpkg/(lock|lock-frontend|status|status-old|available|triggers/.*|info/format|updates/.*)"
                      r"|var/log/(dpkg|alternatives)\.log|var/lib/systemd/(random-seed|timesync/.*|catalog/database))")


def call(*command, status=0, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="backslashreplace", timeout=110, **more)
    assert status is None or done.returncode == status, f"{' '.join(command)}: {done.returncode}: {done.stdout}"
    return done.stdout


def show(unit, key):
    return call("systemctl", "show", "--value", "-p", key, unit).strip()


def states(key="ActiveState"):
    return [show(unit, key) for unit in UNITS]


def enabled():
    return [call("systemctl", "is-enabled", unit, status=None).strip() for unit in UNITS]


def main_pid():
    pid = int(show(SERVICE, "MainPID"))
    assert pid > 0, "perfd does not run"
    return pid


def events():
    return {row["name"]: row for row in map(json.loads, call("perfctl", "list", "--json").splitlines())}


def written():
    """Every file of the root that was written or deleted since boot, and the empty folders that are named after perfd."""
    found = set()
    for folder, folders, files in os.walk(UPPER):
        found |= {os.path.join(folder, name)[len(UPPER):] for name in files}
        found |= {path[len(UPPER):] + "/" for path in (os.path.join(folder, name) for name in folders)
                  if "perf" in path[len(UPPER):] and not os.listdir(path)}
    return {path for path in found if not NOT_OURS.fullmatch(path)}


def whole_file(path):
    """What a file holds, and whose it is."""
    s = os.stat(path)
    with open(path, "rb") as f:
        return f.read(), oct(s.st_mode), s.st_uid, s.st_gid


def edit_configuration():
    """As an administrator does: another event, and a mode of his own. Returns whole_file() of it."""
    with open(CONFIG, "a", encoding="ascii") as f:
        f.write("\n  mine:\n    events: [{ event: 'sched:sched_process_wait', name: waits }]\n")
    os.chmod(CONFIG, 0o640)
    os.chown(CONFIG, 0, int(call("getent", "group", "perfd").split(":")[2]))
    return whole_file(CONFIG)


def read_line(stream, what):
    assert select.select([stream], [], [], PATIENCE_SEC)[0], f"no line within {PATIENCE_SEC} s: {what}"
    return stream.readline()


def run(*steps):
    """Exits with 1 at the first step that fails, with what the journal says."""
    status = 0
    try:
        for step in steps:
            begin = time.monotonic()
            step()
            print(f"ok {step.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    except Exception as e:  # of whatever kind: what the journal says belongs to it
        status = 1
        print(f"FAILED {step.__name__}: {type(e).__name__}: {e}", flush=True)
        subprocess.run(["journalctl", "--no-pager", "--lines=200", "-o", "short-precise"], check=False)
    sys.exit(status)
