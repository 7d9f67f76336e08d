"""Ledgers of a stream, as proto/PROTOCOL.md has them."""
from promise import require


def counts(rows):
    return {row.reason: row.count for row in rows}


def since_of(row):
    """What of an event's row was from where the stream began to where it ended; None: it does not say."""
    if not row.HasField("since"):
        return None
    lost = counts(row.since.lost)
    require(row.since.occurred == row.since.delivered + row.since.filtered + sum(lost.values()),
            f"what a row says of the stream's time does not add up: {row}")
    return {"occurred": row.since.occurred, "delivered": row.since.delivered, "filtered": row.since.filtered, "lost": lost}


def check_ledger(ledger):
    """The three kinds of row, added again; gives them back as dicts."""
    rows = []
    for e in ledger.events:
        lost = counts(e.lost)
        rows.append({"kind": "event", "event": e.name, "cpu": e.cpu, "occurred": e.occurred, "delivered": e.delivered,
                     "filtered": e.filtered, "lost": lost, "exact": e.exact, "doubled": e.doubled, "count": e.count, "removed": e.removed,
                     "since": since_of(e),
                     "balanced": e.occurred == e.delivered + e.filtered + sum(lost.values())})
    for r in ledger.rings:
        lost = counts(r.lost)
        unread = lost.get("unknown_id", 0) + lost.get("undecodable", 0)
        rows.append({"kind": "ring", "cpu": r.cpu, "records": r.records, "samples": r.samples,
                     "side_records": r.side_records, "lost": lost,
                     "balanced": r.records == r.samples + r.side_records + unread})
    for s in ledger.subscribers:
        dropped = counts(s.dropped)
        rows.append({"kind": "subscriber", "id": s.id, "peer": s.peer, "order": s.order, "matched": s.matched,
                     "sent": s.sent, "dropped": dropped, "queued": s.queued,
                     "balanced": s.matched == s.sent + sum(dropped.values()) + s.queued})
    for row, message in zip(rows, [*ledger.events, *ledger.rings, *ledger.subscribers]):
        require(row["balanced"], f"this row does not add up: {row}")
        require(message.balanced or getattr(message, "stalled", False),
                f"this row adds up, but the daemon says that it does not: {row}")
    return rows
