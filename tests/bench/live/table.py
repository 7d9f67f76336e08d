"""From what was measured to rows: medians over repetitions, ratios within each of them, and their tables."""
import math
import statistics

import goals
import measure

KEPT_UP = 0.95  # of its rate: less than that is worth saying
STOLEN = 10_000_000  # ns, one tick of the clock: so much says nothing yet
NO_LOAD = {"cpu_ns": 0, "wakeups": 0}


def rate_order(rate):
    """From nothing to flat out."""
    return math.inf if rate == 0 else 0 if isinstance(rate, str) else rate


def median(values):
    return statistics.median(values)


def rate_text(rate):
    return rate if isinstance(rate, str) else "flat out" if rate == 0 else f"{rate}/s" if rate < 1000 else \
        f"{rate // 1000} k/s" if rate < 1_000_000 else f"{rate // 1_000_000} M/s"


def at(rate):
    return f"where {rate} happens" if isinstance(rate, str) else "flat out" if rate == 0 else f"at {rate_text(rate)}"


def judge(goal, rate, runs, beside):
    """{text, value, limit, reached}; reached is None if there is no limit. None if there is nothing to judge."""
    limit = goal.limit(rate)
    if limit is None or (goal.beside and not beside):
        return None
    value = median(goal.value(a, b) for a, b in zip(runs, beside or runs))
    return {"text": goal.text(limit), "value": value, "limit": None if math.isinf(limit) else limit,
            "reached": None if math.isinf(limit) else value <= limit}


def make_row(case, rate, seconds, results, reference):
    """results: {(case's name, rate): what each repetition gave}."""
    runs, beside = results[case.name, rate], results.get((reference, rate)) if rate != measure.NOTHING else None
    judged = [judge(goal, rate, runs, results.get((goal.beside, rate))) for goal in case.goals]
    return {
        "case": case.name, "text": case.text, "rate": rate,
        "ns_per_event": median(goals.cost(r) for r in runs),
        "ratio": median(goals.ratio(goals.cost(a), goals.cost(b)) for a, b in zip(runs, beside)) if beside else None,
        "parts_ns": {part: median(r["parts"].get(part, 0) / max(1, r["taken"]) for r in runs)
                     for part in runs[0]["parts"]},
        "reader_ns": median(r["reader_ns"] / max(1, r["taken"]) for r in runs),
        "lost_percent": median(100 * r["lost"] / max(1, r.get("wanted", r["occurred"])) for r in runs),
        "lost_most": max(r["lost"] for r in runs),
        "reasons": {reason: max(r["reasons"].get(reason, 0) for r in runs)
                    for one in runs for reason in one.get("reasons", {})},
        "sleeps_per_second": {name: median(r["wakeups"].get(name, 0) / seconds for r in runs)
                              for name in runs[0]["wakeups"]},
        "call_ns": median(r["call_ns"] for r in runs), "call_cpu_ns": median(r["call_cpu_ns"] for r in runs),
        "calls_per_second": median(r["calls_per_second"] for r in runs),
        "stolen_most": max(r.get("stolen_ns", 0) for r in runs),
        "rss": median(r.get("rss", 0) for r in runs) or None,
        "n_floods": case.n_floods,
        "load": {name: {key: median(r["load"].get(name, NO_LOAD)[key] for r in runs) for key in NO_LOAD}
                 for name in runs[0]["load"]},
        "share_percent": median(100 * sum(thread["cpu_ns"] for thread in r["load"].values()) / 1e9 for r in runs),
        "goals": [goal for goal in judged if goal],
    }


def number(value):
    digits = 0 if value == int(value) or abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def goal_text(goal):
    word = {True: "yes", False: "NO", None: ""}[goal["reached"]]
    return f"{word:3} {number(goal['value']):>8} {goal['text']}"


def print_goals(judged, indent, first):
    """Behind what stands in the line already, and below."""
    texts = [goal_text(goal) for goal in judged] or [""]
    print(f"{first} {texts[0]}".rstrip())
    for text in texts[1:]:
        print(" " * indent, text)


def parts_text(row):
    """What each thread or process spends, if there are several."""
    parts = [f"{part} {ns:.0f}" for part, ns in row["parts_ns"].items() if ns >= 0.5]
    return ", ".join(parts) if len(row["parts_ns"]) > 1 else ""


def print_notes(row):
    if row["reasons"]:
        print(f"{'':28}lost at most: {', '.join(f'{n} by {reason}' for reason, n in row['reasons'].items())}")
    if row["calls_per_second"] < KEPT_UP * row["rate"]:
        print(f"{'':28}the traced program made only {row['calls_per_second'] / 1000:.0f} k calls a second")
    if stolen_text(row):
        print(f"{'':28}{stolen_text(row)}")


def stolen_text(row):
    """Where the host took so much that it explains what is odd; of all CPUs, in one repetition."""
    return f"the host kept CPUs from running for {row['stolen_most'] / 1e6:.0f} ms" if row["stolen_most"] > STOLEN else ""


def print_costs(rows):
    head = (f"{'rate':9} {'case':17} {'ns/event':>8} {'x socket':>8} {'+reader':>7} {'lost %':>6} {'sleeps/s':>8} "
            f"{'call ns':>7} {'own':>5}  {'of which':44}")
    print(f"{head} goal")
    last = None
    for row in rows:
        rate = rate_text(row["rate"]) if row["rate"] != last else ""
        ratio = f"{row['ratio']:.2f}" if row["ratio"] else ""
        own = f"{row['call_cpu_ns']:.0f}" if row["rate"] == 0 else ""  # else it spins between its calls
        first = (f"{rate:9} {row['case']:17} {row['ns_per_event']:8.1f} {ratio:>8} {row['reader_ns']:7.1f} "
                 f"{row['lost_percent']:6.2f} {sum(row['sleeps_per_second'].values()):8.0f} {row['call_ns']:7.0f} "
                 f"{own:>5}  {parts_text(row):44}")
        print_goals(row["goals"], len(head), first)
        print_notes(row)
        last = row["rate"]


def sample_text(row):
    """ns of the consumer and of who reads its output, together."""
    return "" if row["rate"] == measure.NOTHING else f"{row['ns_per_event'] + row['reader_ns']:,.0f}"


def wakeups_text(row):
    """Of each thread that does wake, in a second."""
    return ", ".join(f"{name} {thread['wakeups']:.1f}" for name, thread in row["load"].items() if thread["wakeups"] > 0) or "none"


def print_loads(rows):
    print(f"{'each CPU':9} {'CPUs':>4} {'case':17} {'ns/sample':>10} {'% of a CPU':>10}  wakeups a second of each thread")
    last = None
    for row in sorted(rows, key=lambda row: (row["n_floods"], rate_order(row["rate"]))):
        first = rate_text(row["rate"]) if (row["rate"], row["n_floods"]) != last else ""
        print(f"{first:9} {row['n_floods']:4} {row['case']:17} {sample_text(row):>10} {row['share_percent']:10.3f}  "
              f"{wakeups_text(row)}")
        last = row["rate"], row["n_floods"]
    for row in rows:
        for goal in row["goals"] if row["n_floods"] > 1 else ():
            print(f"{goal_text(goal)}: {row['case']} {at(row['rate'])}")


def print_latencies(rows):
    print(f"{'rate':9} {'case':17} {'ns/event':>8} {'sleeps/s':>8}  time stamp to read(2)")
    for row in rows:
        first = (f"{rate_text(row['rate']):9} {row['case']:17} {row['ns_per_event']:8.1f} "
                 f"{sum(row['sleeps_per_second'].values()):8.0f} ")
        print_goals(row["goals"], len(first), first)


def print_resting(judged):
    for goal in judged:
        print(f"{goal_text(goal)} <= {goal['limit']}")


def print_machine(found):
    host = found["machine"]
    print(f"{host['date']}: {host['n_cpus']} x {host['cpu']}, Linux {host['kernel']}; medians of {found['repetitions']} x "
          f"{found['seconds']:g} s\n")


def print_all(found):
    print_machine(found)
    for print_rows, rows in ((print_costs, found["costs"]), (print_loads, found["loads"]), (print_latencies, found["latencies"]),
                             (print_resting, found["resting"])):
        if rows:
            print_rows(rows)
            print()
    if found["simulated"]:
        print(f"on rings in memory, {found['simulated']['text']}", end="")
