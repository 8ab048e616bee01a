"""Reader of irtt's JSON (`round_trips`): round trips only, since one-way delays need synchronised clocks."""

from __future__ import annotations

from dragstrip.formats.readers.found import Found, Row, entries, nothing, table, text, whole


def is_one(document: Row) -> bool:
    """Return whether a JSON document is one of irtt's."""
    return "round_trips" in document


def read(document: Row, source: str) -> Found:
    """Return a probe with the client's times, from its first request on; raises `BadInputError`."""
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
        found.probe(max(sent - first, 0), "irtt", target, rtt)
    if not found.probes:
        raise nothing(source, "no round trip with a client's time")
    return found
