"""Ledgers of a daemon and of a stream in which every row has to add up, as dicts."""
from package.errors import require
from package.ledger import counts, event_adds_up, ring_adds_up, subscriber_adds_up


def since_of(row):
    """What of an event's row was from where the stream began to where it ended; None: it does not say."""
    if not row.HasField("since"):
        return None
    return {"occurred": row.since.occurred, "delivered": row.since.delivered, "filtered": row.since.filtered,
            "lost": counts(row.since.lost)}


def check_ledger(ledger):
    """The three kinds of row, added again; gives them back as dicts."""
    rows = []
    for e in ledger.events:
        lost = counts(e.lost)
        rows.append({"kind": "event", "event": e.name, "cpu": e.cpu, "occurred": e.occurred, "delivered": e.delivered,
                     "filtered": e.filtered, "lost": lost, "exact": e.exact, "doubled": e.duplicates, "count": e.count, "removed": e.removed,
                     "since": since_of(e), "balanced": event_adds_up(e)})
    for r in ledger.rings:
        lost = counts(r.lost)
        rows.append({"kind": "ring", "cpu": r.cpu, "records": r.records, "samples": r.samples,
                     "side_records": r.side_records, "lost": lost,
                     "balanced": ring_adds_up(r)})
    for s in ledger.subscribers:
        dropped = counts(s.dropped)
        rows.append({"kind": "subscriber", "id": s.id, "peer": s.peer, "order": s.order, "matched": s.matched,
                     "sent": s.sent, "dropped": dropped, "queued": s.queued,
                     "balanced": subscriber_adds_up(s)})
    for row, message in zip(rows, [*ledger.events, *ledger.rings, *ledger.subscribers]):
        require(row["balanced"], f"this row does not add up: {row}")
        require(message.balanced or getattr(message, "stalled", False),
                f"this row adds up, but the daemon says that it does not: {row}")
    return rows
