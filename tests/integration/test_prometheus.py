#!/usr/bin/python3
"""Metrics, alerts and the dashboard by Prometheus itself: promtool, and a server that scrapes the relay. Needs root."""
import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.parse

import perfd
from perfd import Daemon, Skip, Workload, add, check, equal, pb, wait_until
from relay import Relay, free_port
from test_metrics import families
from test_perfctl import GETPPID
from test_promises import CPUS
from test_relay_metrics import OPENMETRICS, ask, serve

CALLS = 1000
CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "config")
RULES = os.path.abspath(os.path.join(CONFIG, "perfd.rules.yaml"))
TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "perfd.rules.test.yaml")
NAME = re.compile(r"\bperfd_[a-z0-9_]+\b")


def promtool(*words, **options):
    """What it says of what it accepts."""
    if not shutil.which("promtool"):
        raise Skip("no promtool; ./tests/packages test installs it, with prometheus")
    done = subprocess.run(["promtool", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=perfd.PATIENCE, **options)
    equal(done.returncode, 0, f"promtool {' '.join(words)}: {done.stdout}")
    return done.stdout


def dashboard():
    with open(os.path.join(CONFIG, "grafana-dashboard.json"), encoding="utf-8") as f:
        return json.load(f)


def expressions():
    """Those of the dashboard, with a value for each variable of Grafana."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$instance", ".*").replace("$__rate_interval", "1m")


@contextlib.contextmanager
def something_of_everything():
    """A relay, with a client, of a daemon that has an event, a stream, and something in each row of its ledger."""
    with Daemon() as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load, serve(daemon) as relay:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with relay.client() as remote:
            items = remote.subscribe(events=["calls"])
            yield daemon, relay, load, items


def test_promtool_check_metrics():
    """It has nothing to say: names, units, suffixes and help are as they should be; of perfctl too."""
    with something_of_everything() as (daemon, relay, _, _):
        for text in ask(relay.metrics)[2], families(daemon)[1]:
            check("perfd_event_lost_total" in text, text)
            equal(promtool("check", "metrics", input=text), "", "promtool")


def tested(rules):
    """Whether promtool's tests succeed with these rules, and what it says."""
    with open(TESTS, encoding="utf-8") as f, tempfile.TemporaryDirectory() as folder:
        for name, text in ("rules.yaml", rules), ("tests.yaml", f.read().replace("RULES", f"{folder}/rules.yaml")):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as own:
                own.write(text)
        done = subprocess.run(["promtool", "test", "rules", f"{folder}/tests.yaml"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=perfd.PATIENCE)
        return done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout


def test_rules():
    """promtool's own tests of each alert: when it is there, and when it is not. Without it, they fail."""
    with open(RULES, encoding="utf-8") as f:
        rules = f.read()
    head, *alerts = re.split(r"(?m)^(?=      - alert: )", rules)
    check(f"{len(alerts)} rules found" in promtool("check", "rules", RULES), "the number of rules")
    success, said = tested(rules)
    check(success, said)
    for i, alert in enumerate(alerts):
        check(not tested(head + "".join(alerts[:i] + alerts[i + 1:]))[0], f"no test needs {alert}")


def test_names():
    """Each metric that rules, their texts and the dashboard have is one that is served."""
    with something_of_everything() as (_, relay, _, _):
        text = ask(relay.metrics)[2]
    served = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
    with open(RULES, encoding="utf-8") as f:
        rules = set(NAME.findall(f.read()))
    panels = {name for expression in expressions() for name in NAME.findall(expression)}
    panels |= {name for variable in dashboard()["templating"]["list"] for name in NAME.findall(json.dumps(variable))}
    check(len(rules) >= 12 and len(panels) >= 20, f"few names: {sorted(rules)}, {sorted(panels)}")
    equal(sorted((rules | panels) - served), [], "names that nobody serves")
    ids = [panel["id"] for panel in dashboard()["panels"]]
    equal(len(ids), len(set(ids)), "ids of panels")
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in dashboard()["panels"]]
    check(all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in dashboard()["panels"]) and len(places) == len(set(places)), places)


class Prometheus:
    """A server of one's own, on loopback, that scrapes a relay every second."""

    def __init__(self, port, keys=""):
        if not shutil.which("prometheus"):
            raise Skip("no prometheus; ./tests/packages test installs it")
        self.folder = tempfile.TemporaryDirectory(prefix="perfd-test.")
        self.port = free_port()
        path = os.path.join(self.folder.name, "prometheus.yml")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: ['{RULES}']\n"
                    f"scrape_configs: [{{ job_name: perfd, static_configs: [{{ targets: ['127.0.0.1:{port}'] }}]{keys} }}]\n")
        promtool("check", "config", path)
        self.log = open(os.path.join(self.folder.name, "log"), "w+b")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(["prometheus", "--config.file", path, "--storage.tsdb.path", os.path.join(self.folder.name, "tsdb"),
                                         "--web.listen-address", f"127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, cwd=self.folder.name)

    def get(self, path, **query):
        """The data of an answer of its API; None: it does not answer yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=perfd.PATIENCE)
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
            answer = connection.getresponse()
            text = answer.read()
        except ConnectionRefusedError:
            check(self.process.poll() is None, f"it has ended: {self.said()}")
            return None
        finally:
            connection.close()
        if answer.status == 503:  # it still reads what it has stored
            return None
        said = json.loads(text)
        equal((answer.status, said["status"]), (200, "success"), f"{path} {query}: {said}")
        return said["data"]

    def query(self, expression):
        """{labels: value} of an instant; None: it does not answer yet."""
        data = self.get("query", query=expression)
        return data and {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in data["result"]}

    def said(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        try:
            self.process.wait(perfd.PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            if kind:
                print(f"  prometheus said:\n{self.said()}")
            self.log.close()
            self.folder.cleanup()


def test_scrape():
    """What it stores is what happened: each call, on each CPU; as OpenMetrics, without an error; rules and the dashboard's expressions are
    evaluated on it."""
    with something_of_everything() as (_, relay, load, items), Prometheus(relay.metrics) as server:
        wait_until(lambda: list((server.query("perfd_up") or {}).values()) == [1], "the first scrape")
        load.go()
        counts = load.done()
        for _ in range(sum(counts)):
            next(items)
        wait_until(lambda: list(server.query("sum(perfd_subscriber_sent_total)").values()) == [sum(counts)], "it to have seen all")
        for cpu, made in zip(CPUS, counts):
            for name in "count", "occurred", "delivered":
                equal(list(server.query(f'perfd_event_{name}_total{{event="calls",cpu="{cpu}"}}').values()), [made], f"{name} of CPU {cpu}")
        equal(list(server.query("sum(perfd_event_lost_total)").values()), [0], "lost")
        target, = server.get("targets")["activeTargets"]
        equal((target["health"], target["lastError"]), ("up", ""), "the target")
        n = len(re.findall(r"^perfd_", ask(relay.metrics, accept=OPENMETRICS)[2], re.M))
        wait_until(lambda: list(server.query("scrape_samples_scraped").values()) == [n], "each series to be stored")
        wait_until(lambda: list(server.query("rate(perfd_samples_total[1m]) > 0").values()), "two scrapes of before and behind")
        group, = server.get("rules")["groups"]
        wait_until(lambda: all(rule["health"] == "ok" for rule in server.get("rules")["groups"][0]["rules"]), "all rules to be evaluated")
        equal({rule["name"] for rule in group["rules"] if rule["state"] == "firing"}, set(), "alerts")
        empty = [expression for expression in expressions() if not server.query(expression)]
        check(all(expression.endswith("> 0") for expression in empty), f"expressions without a result: {empty}")
        before = sum(server.query('perfd_relay_collections_total{result="done"}').values())
        wait_until(lambda: sum(server.query('perfd_relay_collections_total{result="done"}').values()) > before, "the next scrape")
        relay.stop()
        wait_until(lambda: list(server.query('up{job="perfd"}').values()) == [0], "it to see that the relay is gone")
        check("level=error" not in server.said(), server.said())


def test_by_tls():
    """As perfd-relay(8) has it: with a certificate, at the address of streams."""
    with Daemon() as daemon, Relay(daemon, "[{ name: client, metrics: true }]", server=["localhost", "127.0.0.1"]) as relay:
        files = f"ca_file: {relay.at('ca.crt')}, cert_file: {relay.at('client.crt')}, key_file: {relay.at('client.key')}"
        with Prometheus(relay.port, f", scheme: https, tls_config: {{ {files} }}") as server:
            wait_until(lambda: list((server.query("perfd_up") or {}).values()) == [1], "the first scrape")
            target, = server.get("targets")["activeTargets"]
            equal((target["health"], target["lastError"], target["scrapeUrl"]), ("up", "", f"https://127.0.0.1:{relay.port}/metrics"), "the target")


def test_perfd_away():
    """Its alert begins when perfd is away."""
    with Daemon() as daemon, serve(daemon) as relay, Prometheus(relay.metrics) as server:
        wait_until(lambda: list((server.query("perfd_up") or {}).values()) == [1], "the first scrape")
        daemon.stop()
        wait_until(lambda: server.query('ALERTS{alertname="PerfdDown"}'), "the alert")
        equal([dict(labels)["alertstate"] for labels in server.query('ALERTS{alertname="PerfdDown"}')], ["pending"], "its state, for 2 minutes")


if __name__ == "__main__":
    perfd.main(globals())
