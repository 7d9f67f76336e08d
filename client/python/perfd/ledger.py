"""Sums of a ledger, done again here: that the daemon calls a row balanced would be worth little by itself."""
import collections


def counts(rows):
    """{reason: count}"""
    return {row.reason: row.count for row in rows}


def _all(rows):
    return sum(row.count for row in rows)


def event_adds_up(row):
    """occurred = delivered + filtered + all of lost, and the same of the stream's own time."""
    return all(part.occurred == part.delivered + part.filtered + _all(part.lost)
               for part in [row] + [row.since] * row.HasField("since"))


def ring_adds_up(row):
    """records = samples + side_records + those that nobody can read."""
    lost = counts(row.lost)
    return row.records == row.samples + row.side_records + lost.get("unknown_id", 0) + lost.get("undecodable", 0)


def subscriber_adds_up(row):
    """matched = sent + all of dropped + queued."""
    return row.matched == row.sent + _all(row.dropped) + row.queued


def balanced(ledger):
    """Whether every row of a Ledger adds up, by its numbers and by the daemon's own word."""
    checks = (ledger.events, event_adds_up), (ledger.rings, ring_adds_up), (ledger.subscribers, subscriber_adds_up)
    return all(row.balanced and adds_up(row) for rows, adds_up in checks for row in rows)


def losses(ledger):
    """{reason: count} of what a stream did not get, at any stage, by its closing ledger; empty: it got everything.

    What an event's row calls late is left out: that is of all streams, and what this one did not get is in its own row.
    """
    lost = collections.Counter()
    for row in ledger.events:
        for c in row.since.lost if row.HasField("since") else row.lost:
            if c.reason != "late":
                lost[c.reason] += c.count
    for row in ledger.rings:
        for c in row.lost_since:
            lost["side_records" if c.reason == "kernel_ring" else c.reason] += c.count
    for row in ledger.probes:
        lost["probe_missed"] += row.missed_since
    for row in ledger.subscribers:
        lost.update(counts(row.dropped))
    return {reason: count for reason, count in lost.items() if count}
