"""Reader of irtt's JSON (`round_trips`): round trips only, since one-way delays need synchronised clocks."""

from __future__ import annotations

from dragstrip.interop.readers.measurements import (
    Measurements,
    Row,
    entries,
    missing_content,
    table,
    text,
    whole,
)


def is_one(document: Row) -> bool:
    """Return whether a JSON document is one of irtt's."""
    return "round_trips" in document


def read(document: Row, source: str) -> Measurements:
    """Return a probe with the client's times, from its first request on; raises `BadInputError`."""
    config = table(document.get("config"))
    target = text(config.get("remote_address")) or ""
    measurements = Measurements()
    first: int | None = None
    for trip in map(table, entries(document["round_trips"], source, "round_trips")):
        client = table(table(trip.get("timestamps")).get("client"))
        sent_ns = whole(table(client.get("send")).get("monotonic"))
        if sent_ns is None:
            continue
        first = sent_ns if first is None else first
        is_lost = str(trip.get("lost")).lower() != "false"
        rtt = None if is_lost else whole(table(trip.get("delay")).get("rtt"))
        measurements.probe(max(sent_ns - first, 0), "irtt", target, rtt)
    if not measurements.probes:
        raise missing_content(source, "no round trip with a client's time")
    return measurements
