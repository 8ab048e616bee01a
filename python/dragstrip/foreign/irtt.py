"""irtt's JSON (`round_trips`). Only round trips: one-way delays would need clocks that agree."""

from __future__ import annotations

from dragstrip.foreign.found import Found, Row, entries, nothing, table, text, whole


def is_one(document: Row) -> bool:
    """Whether a JSON document is one."""
    return "round_trips" in document


def read(document: Row, source: str) -> Found:
    """A probe; times are the client's, from its first request on."""
    config = table(document.get("config"))
    target = text(config.get("remote_address")) or ""
    found = Found()
    first: int | None = None
    for trip in map(table, entries(document["round_trips"], source, "round_trips")):
        client = table(table(trip.get("timestamps")).get("client"))
        sent = whole(table(client.get("send")).get("monotonic"))
        if sent is None:
            continue
        first = sent if first is None else first
        lost = str(trip.get("lost")).lower() != "false"
        rtt = None if lost else whole(table(trip.get("delay")).get("rtt"))
        row = {"probe": "irtt", "target": target, "rtt_ns": rtt, "lost": rtt is None}
        found.probes.append({"time_ns": max(sent - first, 0), **row})
    if not found.probes:
        raise nothing(source, "no round trip with a client's time")
    return found
