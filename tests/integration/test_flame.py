#!/usr/bin/python3
"""What is written of profiles, without a daemon: folded stacks, pprof and speedscope by their sums, and the page of a flame graph in a
real Chromium, by what it has drawn."""
import gzip
import json
import os
import re
import struct
import sys
import tempfile
import zlib

import running
from browser import FOUND, Browser
from perfd import check, equal, wait_until
from profile_samples import INLINED, KERNEL, OFF_CPU, frame, grow, sample, write_pictures
from running import Skip

sys.path.insert(0, os.path.join(os.environ["PERFD_BUILD"], "client", "profile"))
import profile_pb2 # pylint: disable=import-error,wrong-import-position

LOCK = frame("lock", kind=KERNEL, address=0x20)
SMALL = [
    sample("server", ["main", "serve", "read", LOCK], 30, 3000, 100, 101, "web"),
    sample("server", ["main", frame("serve", address=0x99), frame("parse", kind=INLINED, file="parse.c", line=7, address=0x99)], 50, 5000, 100, 102),
    sample("server", ["main", "serve", "serve", "read"], 10, 1000, 100, 101, "web"),
    sample("worker", ["main", frame("[off-cpu]", kind=OFF_CPU), ], 10, 1000, 200, 200),
]
HOSTILE = ["</script><script>document.title='taken'</script>", "<img src=http://127.0.0.1:1/x onerror=document.title='taken'>", "a;b c 7",
           "quote\"'`${1}", "line\nbreak\ttab\x7f", b"bad\xff\xc0\x80utf8", "\u202egnirts\u2028", "__proto__", "constructor", "&lt;b&gt;", "-->", "\uef80"]


def made(samples, older=None):
    folder = tempfile.TemporaryDirectory(prefix="perfd-flame-")
    write_pictures(folder.name, samples, older)
    return folder


def read(folder, name):
    with open(os.path.join(folder.name, name), "rb") as f:
        return f.read()


def unfilter(how, line, before, channels):
    """Undoes a filter of PNG (https://www.w3.org/TR/png-3/, 9.2) in place."""
    if how == 2:
        line[:] = bytes((a + b) & 255 for a, b in zip(line, before))
    elif how != 0:
        for i, value in enumerate(line):
            left, up, corner = (line[i - channels], before[i], before[i - channels]) if i >= channels else (0, before[i], 0)
            nearest = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))[2]
            line[i] = value + (0, left, up, (left + up) // 2, nearest)[how] & 255


def pixels(png):
    """The rows of a PNG of 8 bits, each a list of (red, green, blue)."""
    at, compressed, width, channels = 8, b"", 0, 0
    while at < len(png):
        n, kind = struct.unpack_from(">I4s", png, at)
        if kind == b"IHDR":
            width, _, depth, color = struct.unpack_from(">IIBB", png, at + 8)
            equal(depth, 8, "depth of the screenshot")
            channels = {2: 3, 6: 4}[color]
        if kind == b"IDAT":
            compressed += png[at + 8:at + 8 + n]
        at += 12 + n
    raw, size, rows = zlib.decompress(compressed), width * channels, []
    before = bytearray(size)
    for start in range(0, len(raw), size + 1):
        line, how = bytearray(raw[start + 1:start + 1 + size]), raw[start]
        unfilter(how, line, before, channels)
        rows.append(line)
        before = line
    return [[tuple(row[i:i + 3]) for i in range(0, size, channels)] for row in rows]


def model(browser):
    return browser.run("flameGraph.draw(); return flameGraph.model()")


def by_name(shown, name):
    found = [f for f in shown["frames"] if f["name"] == name]
    equal(len(found), 1, f"frames of {name}: {shown['frames']}")
    return found[0]


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_folded():
    folder = made(SMALL)
    equal(read(folder, "folded").decode().splitlines(),
          ["server;main;serve;read;lock_[k] 30", "server;main;serve;parse_[i] 50", "server;main;serve;serve;read 10",
           "worker;main;[off-cpu] 10"], "folded stacks")


def test_folded_names():
    folder = made([sample("a;b\n", [name]) for name in HOSTILE])
    lines = read(folder, "folded").split(b"\n")
    equal((len(lines), lines[-1]), (len(HOSTILE) + 1, b""), "lines")
    for name, line in zip(HOSTILE, lines):
        name = name if isinstance(name, bytes) else name.encode()
        equal(line, b"a:b ;" + re.sub(rb"[\x00-\x1f\x7f]", b" ", name.replace(b";", b":")) + b" 1", "a line")


def pprof(folder):
    return profile_pb2.Profile.FromString(gzip.decompress(read(folder, "pprof")))


def test_pprof():
    p = pprof(made(SMALL))
    text = p.string_table
    equal([(text[t.type], text[t.unit]) for t in p.sample_type], [("samples", "count"), ("cycles", "count")], "types")
    functions, locations, mappings = ({x.id: x for x in xs} for xs in (p.function, p.location, p.mapping))
    found = []
    for s in p.sample:
        names = [text[functions[line.function_id].name] for i in s.location_id for line in locations[i].line]
        labels = {text[label.key]: text[label.str] or label.num for label in s.label}
        found.append((names, list(s.value), labels))
    expected = []
    for comm, container, pid, tid, _, n, cycles, frames in SMALL:
        labels = {"thread": comm, "pid": pid, "tid": tid, **({"container": container} if container else {})}
        expected.append(([f[0] for f in reversed(frames)], [n, cycles], labels))
    equal(found, expected, "samples")
    equal(sorted((text[m.filename], text[m.build_id], m.has_inline_frames, m.has_line_numbers) for m in mappings.values()),
          [("/usr/bin/server", "0123abcd", True, True), ("[kernel.kallsyms]", "feed", False, False)], "mappings")
    inlined = next(x for x in p.location if x.line[0].line)
    equal((inlined.address, inlined.line[0].line, text[functions[inlined.line[0].function_id].filename], text[mappings[inlined.mapping_id].filename]),
          (0x99, 7, "parse.c", "/usr/bin/server"), "the inlined frame")
    check(all(m.memory_start <= x.address < m.memory_limit for x in p.location for m in [mappings[x.mapping_id]]), "addresses")


def test_sums():
    """All forms have the same sums of a large profile as what was put in."""
    samples = grow(2000)
    folder = made(samples)
    n, cycles = sum(s[5] for s in samples), sum(s[6] for s in samples)
    p, scope = pprof(folder), json.loads(read(folder, "speedscope"))
    equal(sum(int(line.rsplit(b" ", 1)[1]) for line in read(folder, "folded").splitlines()), n, "folded")
    equal([sum(s.value[i] for s in p.sample) for i in (0, 1)], [n, cycles], "pprof")
    equal(sum(sum(x["weights"]) for x in scope["profiles"]), cycles, "speedscope")
    equal([x["endValue"] for x in scope["profiles"]], [sum(x["weights"]) for x in scope["profiles"]], "ends")
    tasks = {(s[0], s[1], s[2], s[3]) for s in samples}
    equal(len(scope["profiles"]), len(tasks), "threads")
    top = {}
    for s in samples:
        top[s[7][-1][0]] = top.get(s[7][-1][0], 0) + s[6]
    found = {}
    for x in scope["profiles"]:
        for stack, weight in zip(x["samples"], x["weights"]):
            name = scope["shared"]["frames"][stack[-1]]["name"]
            found[name] = found.get(name, 0) + weight
    equal(found, top, "sums of what ran")


def test_hostile_names():
    """No name ends what it stands in: JSON and protobuf have each of them, bytes that are no UTF-8 as characters of their own."""
    folder = made([sample(name, [name], container=name) for name in HOSTILE])
    expected = [name if isinstance(name, str) else "bad\uefff\uefc0\uef80utf8" for name in HOSTILE[:-1]] + ["\uefee\uefbe\uef80"]
    equal([f["name"] for f in json.loads(read(folder, "speedscope"))["shared"]["frames"]], expected, "speedscope")
    p = pprof(folder)
    equal([p.string_table[f.name] for f in p.function], expected, "pprof")


def need_browser():
    if not FOUND:
        raise Skip("there is no chromium with its chromedriver here (tests/packages test)")


def test_page():
    need_browser()
    with Browser(760, 480) as browser:
        check_drawing(browser)
        check_keyboard(browser)
        check_choices(browser)
        check_difference(browser)
        check_hostile_page(browser)
        check_large(browser)


def check_drawing(browser):
    folder = made(SMALL)
    browser.requests()
    browser.open(os.path.join(folder.name, "flame.html"))
    shown = model(browser)
    equal((shown["title"], shown["total"], shown["rows"]), ("make -j2 <b>&amp;</b>", 100, 6), "the page")
    equal(sorted((f["name"], f["depth"], f["value"], f["self"], f["kind"]) for f in shown["frames"]), sorted([
        ("all", 0, 100, 0, "root"), ("server", 1, 90, 0, "comm"), ("worker", 1, 10, 0, "comm"), ("main", 2, 90, 0, "user"),
        ("main", 2, 10, 0, "user"), ("serve", 3, 90, 0, "user"), ("[off-cpu]", 3, 10, 10, "off-cpu"), ("parse", 4, 50, 50, "inlined"),
        ("read", 4, 30, 0, "user"), ("serve", 4, 10, 0, "user"), ("lock", 5, 30, 30, "kernel"), ("read", 5, 10, 10, "user")]), "frames")
    root, parse, lock = (by_name(shown, name) for name in ("all", "parse", "lock"))
    check(abs(parse["width"] / root["width"] - 0.5) < 0.005, f"half of the width: {parse}")
    check(lock["y"] < parse["y"] < root["y"], "the root is at the bottom")
    check_pixels(browser, shown)

    # search: what matches, each sample once
    browser.keys("/", *"^(serve|lock)$")
    found = model(browser)
    equal(found["matched"], "90.00% match", "the share that matches")
    equal({f["name"] for f in found["frames"] if f["matched"]}, {"serve", "lock"}, "matches")
    check(by_name(found, "lock")["color"] != lock["color"], "what matches has another color")
    browser.keys("(")
    equal(model(browser)["matched"], "no regular expression", "a pattern that is none")
    browser.keys("Escape")
    equal((model(browser)["matched"], by_name(model(browser), "lock")["color"]), ("", lock["color"]), "after Escape")

    # zoom by a click, and everything again
    browser.click(*middle(parse))
    zoomed = model(browser)
    equal((zoomed["zoomed"], [f["name"] for f in zoomed["frames"]]), ("parse", ["all", "server", "main", "serve", "parse"]), "zoomed")
    check(abs(by_name(zoomed, "parse")["width"] - root["width"]) < 2, "it takes all of the width")
    check("50 samples, 50.00%" in zoomed["details"], zoomed["details"])
    browser.run("document.getElementById('reset').click()")
    equal((model(browser)["zoomed"], len(model(browser)["frames"])), ("all", 12), "after a reset")
    browser.click(*middle(by_name(model(browser), "lock")), press=False)
    tip = browser.run("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")
    check("lock" in tip and "30 samples, 30.00%" in tip and "[kernel.kallsyms]" in tip, tip)

    # inverted, and reversed
    browser.keys("i")
    icicle = model(browser)
    check(icicle["icicle"] and by_name(icicle, "lock")["y"] > by_name(icicle, "all")["y"], "the root is at the top")
    browser.keys("c")
    callers = model(browser)
    equal({(f["name"], f["value"]) for f in callers["frames"] if f["depth"] == 1},
          {("parse", 50), ("lock", 30), ("read", 10), ("[off-cpu]", 10)}, "what ran")
    browser.keys("c", "i")
    equal([f["name"] for f in model(browser)["frames"]], [f["name"] for f in shown["frames"]], "as it was")

    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    wait_until(lambda: model(browser)["dark"] and by_name(model(browser), "lock")["color"] != lock["color"], "what is drawn to be dark")
    browser.click(5, 5, press=False)
    check_pixels(browser, model(browser))
    equal(sum(pixels(browser.screenshot())[3][3]) < 200, True, "a dark page")
    browser.devtools("Emulation.setEmulatedMedia", features=[])
    equal({url for url in browser.requests() if not url.startswith(("data:", "chrome://"))}, {f"file://{folder.name}/flame.html"}, "requests")
    equal(browser.said(), [], "the console")


def check_pixels(browser, shown):
    """The screenshot has each frame's color where the model says that it is."""
    rows = pixels(browser.screenshot())
    colors = browser.run("""const c = document.createElement('canvas').getContext('2d');
        return arguments[0].map(color => { c.fillStyle = color; return c.fillStyle; })""", [box["color"] for box in shown["frames"]])
    for box, color in zip(shown["frames"], colors):
        x, y = round(box["x"] + box["width"] - 6), round(box["y"] + 3)
        expected = tuple(int(color[i:i + 2], 16) for i in (1, 3, 5))
        check(all(abs(a - b) <= 2 for a, b in zip(rows[y][x], expected)), f"{box}: {rows[y][x]} is not {expected}")


def check_keyboard(browser):
    folder = made(SMALL)
    browser.open(os.path.join(folder.name, "flame.html"))
    browser.run("document.getElementById('graph').focus()")
    for keys, focused in ((["Up"], "server"), (["Right"], "worker"), (["Right"], "worker"), (["Left", "Up", "Up", "Up"], "parse"),
                          (["Right"], "read"), (["Up"], "lock"), (["Down", "Down"], "serve")):
        browser.keys(*keys)
        equal(model(browser)["focused"], focused, f"behind {keys}")
        check(model(browser)["details"].startswith(focused), "what is said of it")
    plain = pixels(browser.screenshot())
    box = [f for f in model(browser)["frames"] if f["name"] == "serve" and f["depth"] == 3][0]
    equal(plain[round(box["y"])][round(box["x"] + 200)], (0, 0, 0), "the focus is seen")
    browser.keys("Enter")
    equal(model(browser)["zoomed"], "serve", "Enter")
    browser.keys("Escape")
    equal(model(browser)["zoomed"], "all", "Escape")
    equal(browser.said(), [], "the console")


def choose(browser, field, text):
    browser.run("""const f = document.getElementById(arguments[0]);
        f.value = [...f.querySelectorAll('option')].find(o => o.textContent === arguments[1]).value;
        f.dispatchEvent(new Event('change'))""", field, text)
    return model(browser)


def check_choices(browser):
    for text, total in (("web", 40), ("server", 90), ("server 100/102", 50), ("worker 200/200", 10), ("all", 100)):
        equal(choose(browser, "task", text)["total"], total, f"of {text}")
    equal(choose(browser, "value", "cycles")["total"], 10000, "cycles")


def check_difference(browser):
    older = [sample("server", ["main", "serve", "read", LOCK], 20, 2000), sample("server", ["main", "gone"], 20, 1000)]
    folder = made(SMALL, older)
    browser.open(os.path.join(folder.name, "flame.html"))
    shown = model(browser)
    equal((by_name(shown, "parse")["older"], by_name(shown, "lock")["older"]), (0, 20), "before")
    check(abs(by_name(shown, "lock")["change"] - (0.3 - 0.5)) < 1e-9, "the change of its share")
    red, blue = (by_name(shown, name)["color"] for name in ("parse", "lock"))
    check(red.startswith("hsl(8 ") and blue.startswith("hsl(214 "), f"{red}, {blue}")
    equal([f["name"] for f in shown["frames"] if f["name"] == "gone"], [], "what is no more has no width")
    gone = by_name(choose(browser, "width", "older"), "gone")
    equal((gone["value"], gone["older"]), (0, 20), "what is no more")
    equal(browser.said(), [], "the console")


def check_hostile_page(browser):
    folder = made([sample(name, [name], container=name) for name in HOSTILE], [sample("x", HOSTILE)])
    browser.requests()
    browser.open(os.path.join(folder.name, "flame.html"))
    shown = model(browser)
    names = {f["name"] for f in shown["frames"] if f["depth"] == 2}
    escaped = {"line\nbreak\ttab\x7f": "line\\x0abreak\\x09tab\\x7f", b"bad\xff\xc0\x80utf8": "bad\\xff\\xc0\\x80utf8",
               "\u202egnirts\u2028": "\\u202egnirts\\u2028", "\uef80": "\\xee\\xbe\\x80"}
    equal(names, {escaped.get(name, name) for name in HOSTILE}, "names")
    equal(shown["title"], "make -j2 <b>&amp;</b>", "the title")
    for box in shown["frames"]:
        if box["depth"] == 2:
            browser.click(*middle(box))
            browser.keys("Escape")
    equal(browser.run("return document.images.length + document.scripts.length"), 2, "elements that names have made")
    equal([url for url in browser.requests() if url.startswith("http")], [], "requests")
    equal(browser.said(), [], "the console")


def check_large(browser):
    """More than 100,000 frames, of which each row is drawn only as far as it is seen."""
    samples = grow(9500)
    folder = made(samples)
    browser.open(os.path.join(folder.name, "flame.html"))
    shown = model(browser)
    check(shown["nodes"] > 100000, f"{shown['nodes']} nodes")
    equal(shown["total"], sum(s[5] for s in samples), "the total")
    check(100 < len(shown["frames"]) < 20000, f"{len(shown['frames'])} drawn")
    browser.keys("/", *"read_")
    share = float(model(browser)["matched"].split("%")[0])
    expected = 100 * sum(s[5] for s in samples if any("read_" in f[0] for f in s[7])) / shown["total"]
    check(abs(share - expected) <= 0.005001, f"{share}% match, not {expected}%")
    browser.keys("Escape", "c")
    equal(model(browser)["total"], shown["total"], "the total of callers")
    equal(browser.said(), [], "the console")


if __name__ == "__main__":
    running.main(globals(), anybody=True)
