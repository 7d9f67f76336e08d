"""From what was measured to rows: medians over repetitions, ratios within each of them, and their table."""
import statistics

import goals


def median(values):
    return statistics.median(values)


def rate_text(rate):
    return "flat out" if rate == 0 else f"{rate // 1000} k/s" if rate < 1_000_000 else f"{rate // 1_000_000} M/s"


def judge(goal, rate, runs, beside):
    """{text, value, reached}, from as many repetitions as both have; None if there is nothing to judge."""
    limit = goal.limit(rate)
    if limit is None or (goal.beside and not beside):
        return None
    value = median([goal.value(a, b) for a, b in zip(runs, beside or runs)])
    return {"text": goal.text(limit), "value": value, "limit": limit, "reached": value <= limit}


def make_row(case, rate, seconds, results, reference):
    """results: {(case's name, rate): what each repetition gave}."""
    runs, beside = results[case.name, rate], results.get((reference, rate))
    judged = [judge(goal, rate, runs, results.get((goal.beside, rate))) for goal in case.goals]
    return {
        "case": case.name, "text": case.text, "rate": rate,
        "ns_per_event": median(goals.cost(r) for r in runs),
        "ratio": median(goals.cost(a) / goals.cost(b) for a, b in zip(runs, beside)) if beside else None,
        "parts_ns": {part: median(r["parts"][part] / max(1, r["taken"]) for r in runs) for part in runs[0]["parts"]},
        "reader_ns": median(r.get("reader_ns", 0) / max(1, r["taken"]) for r in runs),
        "lost_percent": median(100 * r["lost"] / max(1, r["occurred"]) for r in runs),
        "lost_most": max(r["lost"] for r in runs),
        "sleeps_per_second": {name: median(r["wakeups"][name] / seconds for r in runs) for name in runs[0]["wakeups"]},
        "call_ns": median(r["call_ns"] for r in runs), "call_cpu_ns": median(r["call_cpu_ns"] for r in runs),
        "calls_per_second": median(r["calls_per_second"] for r in runs),
        "rss": median(r.get("rss", 0) for r in runs) or None,
        "goals": [goal for goal in judged if goal],
    }


def goal_text(goal):
    value = f"{goal['value']:.2f}" if goal["limit"] else f"{goal['value']:.0f}"
    return f"{'yes' if goal['reached'] else 'NO':3} {value:>6}  <= {goal['text']}"


def print_costs(rows):
    print(f"{'rate':9} {'case':17} {'ns/event':>8} {'x socket':>8}  {'lost %':>6} {'sleeps/s':>8} {'call ns':>7} {'reader':>6}  "
          f"{'of which':34} goal")
    last = None
    for row in rows:
        parts = ", ".join(f"{part} {ns:.0f}" for part, ns in row["parts_ns"].items() if ns >= 0.5)
        ratio = f"{row['ratio']:.2f}" if row["ratio"] and row["ns_per_event"] else "-"
        texts = [goal_text(goal) for goal in row["goals"]] or [""]
        print(f"{rate_text(row['rate']) if row['rate'] != last else '':9} {row['case']:17} {row['ns_per_event']:8.1f} "
              f"{ratio:>8}  {row['lost_percent']:6.2f} {sum(row['sleeps_per_second'].values()):8.0f} {row['call_ns']:7.0f} "
              f"{row['reader_ns']:6.1f}  {parts:34} {texts[0]}".rstrip())
        for text in texts[1:]:
            print(" " * 113 + text)
        last = row["rate"]
