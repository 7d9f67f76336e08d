"""The same for RESULTS.md, as Markdown."""
import contextlib
import io
import os
import sys
import tempfile

import table

BEGIN, END = "<!-- written by tests/bench/live.py --results -->", "<!-- end of what it wrote -->"


def cell(row):
    """ns of the consumer, and of who reads its output."""
    if not row or not row["ns_per_event"]:
        return "-"
    reader = f" (+{row['reader_ns']:,.0f})" if row["reader_ns"] >= 1 else ""
    return f"{row['ns_per_event']:,.0f}{reader}"


def losses(rows):
    """Where more than nothing was lost; at most over the repetitions if it does not even show in the median."""
    found = [f"{row['lost_percent']:.1f} % {table.at(row['rate'])}" if row["lost_percent"] >= 0.05 else
             f"{row['lost_most']} {table.at(row['rate'])}" for row in rows if row["lost_most"]]
    return ", ".join(found) or "0"


def print_stolen(rows):
    """What the host took while something was lost."""
    for row in rows:
        if row["lost_most"] and not row["lost_percent"] >= 0.05 and table.stolen_text(row):
            print(f"{row['text']} {table.at(row['rate'])}: {table.stolen_text(row)}.")


def print_costs(rows):
    rates, texts = list(dict.fromkeys(row["rate"] for row in rows)), list(dict.fromkeys(row["text"] for row in rows))
    print("| consumer | " + " | ".join(table.rate_text(rate) for rate in rates) + " | lost | traced call |")
    print("| --- |" + " --- |" * (len(rates) + 2))
    for text in texts:
        own = {row["rate"]: row for row in rows if row["text"] == text}
        call = own[max(own, key=lambda rate: (rate == 0, rate))]
        print("| " + text.replace("|", "\\|") + " | " + " | ".join(cell(own.get(rate)) for rate in rates) +
              f" | {losses(own.values())} | {call['call_ns']:,.0f} ns {table.at(call['rate'])} |")


def print_loads(rows):
    """What a host feels of it that is no flood."""
    print("| each CPU | consumer | ns a sample, with its reader | % of a CPU | wakeups a second of each thread |")
    print("| --- | --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda row: (row["n_floods"], table.rate_order(row["rate"]))):
        print(f"| {table.rate_text(row['rate'])} | {row['text']} | {table.sample_text(row) or '-'} | {row['share_percent']:.3f} | "
              f"{table.wakeups_text(row)} |")


def verdict(goal):
    return {True: "yes", False: "no", None: ""}[goal["reached"]]


def print_goals(rows, resting):
    print("| goal | is | reached |\n| --- | --- | --- |")
    for row in rows:
        for goal in row["goals"]:
            what = f"{row['text']} {table.at(row['rate'])}: {goal['text']}"
            print(f"| {what} | {table.number(goal['value'])} | {verdict(goal)} |")
    for goal in resting:
        print(f"| {goal['text']} <= {goal['limit']} | {table.number(goal['value'])} | {verdict(goal)} |")


def print_all(found):
    table.print_machine(found)
    print_costs(found["costs"])
    print()
    print_stolen(found["costs"])
    if found["loads"]:
        print_loads(found["loads"])
        print()
    costs = {(row["case"], row["rate"]) for row in found["costs"]}
    more = [row for row in found["loads"] if (row["case"], row["rate"]) not in costs]
    print_goals(found["costs"] + more + found["latencies"], found["resting"])
    if found["simulated"]:
        print(f"\n```\n{found['simulated']['text']}```")


def split(path):
    """What is before and behind the figures of a paper; exits if it has not each of its two marks once, in this order."""
    with open(path, encoding="utf-8") as f:
        head, begin, rest = f.read().partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in tail:
        sys.exit(f"{path} needs one line {BEGIN}, and one line {END} below it")
    return head, tail


def write(found, path):
    """Puts the figures into the paper, all or none."""
    head, tail = split(path)
    with io.StringIO() as block, contextlib.redirect_stdout(block):
        print_all(found)
        figures = block.getvalue().strip()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(os.path.abspath(path)), delete=False) as f:
        f.write(f"{head}{BEGIN}\n\n{figures}\n\n{END}{tail}")
    os.chmod(f.name, 0o644)
    os.replace(f.name, path)
