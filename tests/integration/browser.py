"""A real Chromium without a screen, driven by chromedriver as the WebDriver protocol has it (https://www.w3.org/TR/webdriver2/)."""
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile

FOUND = all(map(shutil.which, ("chromedriver", "chromium")))
KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015"}


class Browser:
    """A context: `with Browser() as b: b.open(path)`. It may ask for nothing but files of this machine, and what it asked for is kept."""

    def __init__(self, width=1200, height=700):
        self.home = tempfile.TemporaryDirectory(prefix="perfd-browser-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       env={**os.environ, "HOME": self.home.name})
        said = ""
        for line in self.driver.stdout:
            said += line
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                break
        else:
            raise RuntimeError(f"chromedriver did not start: {said}")
        self.port, self.session = int(found[1]), ""
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.home.name}/profile",
                     f"--window-size={width},{height}"]
        try:
            reply = self.ask("POST", "", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments},
                                                                           "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}}})
        except Exception:
            self.driver.kill()
            self.driver.wait()
            raise
        self.session = "/" + reply["sessionId"]
        self.ask("POST", "/url", {"url": "about:blank"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.home.cleanup()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, f"/session{self.session}{path}", None if body is None else json.dumps(body),
                           {"Content-Type": "application/json"})
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{method} {path}: {value['error']}: {value['message']}")
        return value

    def open(self, path):
        self.ask("POST", "/url", {"url": "file://" + os.path.abspath(path)})

    def run(self, script, *args):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(args)})

    def devtools(self, command, **params):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def keys(self, *keys):
        """Presses keys one after the other: names of KEYS, or characters."""
        actions = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, x, y, press=True):
        actions = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}]
        if press:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def screenshot(self):
        """PNG"""
        return base64.b64decode(self.ask("GET", "/screenshot"))

    def said(self):
        """What the page has written to its console, and what was refused to it."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that were asked for since this was asked last."""
        entries = [json.loads(entry["message"])["message"] for entry in self.ask("POST", "/se/log", {"type": "performance"})]
        return [entry["params"]["request"]["url"] for entry in entries if entry["method"] == "Network.requestWillBeSent"]
