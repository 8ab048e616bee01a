"""Reader of qlog, contained JSON and JSON-SEQ: recovery metrics, by their current and former names.

Source: draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragstrip.interop.readers.measurements import (
    Measurements,
    Row,
    entries,
    missing_content,
    number,
    table,
    text,
    whole,
)

METRICS = {
    "min_rtt": ("min_rtt_ns", 1e6),
    "smoothed_rtt": ("srtt_ns", 1e6),
    "latest_rtt": ("rtt_ns", 1e6),
    "congestion_window": ("cwnd_bytes", 1.0),
    "bytes_in_flight": ("bytes_in_flight", 1.0),
    "ssthresh": ("ssthresh_bytes", 1.0),
    "pacing_rate": ("pacing_bps", 1.0),
}


def is_one(document: Row) -> bool:
    """Return whether a JSON document is a qlog."""
    return "traces" in document and ("qlog_version" in document or "file_schema" in document)


def joined(records: Sequence[Any]) -> Row:
    """Join the records of JSON-SEQ, a head with `trace` and then its events, into one document."""
    head = table(records[0]) if records else {}
    return {
        "qlog_version": "",
        "file_schema": head.get("file_schema"),
        "traces": [{**table(head.get("trace")), "events": list(records[1:])}],
    }


def read(document: Row, source: str) -> Measurements:
    """Return a flow for each trace that has metrics; raises `BadInputError` if none has."""
    measurements = Measurements()
    for at, trace in enumerate(map(table, entries(document["traces"], source, "traces"))):
        samples, losses = _samples(trace, source)
        if not samples:
            continue
        flow = measurements.flow(text(trace.get("title")) or f"trace {at}", protocol="quic", retransmits=None)
        measurements.samples += [{"flow": flow, **sample} for sample in samples]
        if losses:
            measurements.notes.append(
                f"{measurements.flows[flow]['label']}: {losses} packets lost, as the sender saw it"
            )
    if not measurements.samples:
        raise missing_content(source, "no event with recovery metrics")
    return measurements


def _samples(trace: Row, source: str) -> tuple[list[Row], int]:
    """Return the known metrics after each event of changed ones, and the number of lost packets."""
    common = table(trace.get("common_fields"))
    relative = common.get("time_format") in ("relative_to_previous_event", "delta")
    metrics: Row = {}
    samples: list[Row] = []
    losses, clock = 0, 0.0
    first: float | None = None
    for event in map(table, entries(trace.get("events"), source, "events")):
        time_ms = number(event.get("time"))
        if time_ms is None:
            continue
        clock = clock + time_ms if relative else time_ms
        first = clock if first is None else first
        name = str(event.get("name")).rsplit(":", 1)[-1]
        losses += name == "packet_lost"
        if name == "congestion_state_updated":
            metrics["state"] = text(table(event.get("data")).get("new"))
        if name not in ("recovery_metrics_updated", "metrics_updated"):
            continue
        data = table(event.get("data"))
        for metric, (column, factor) in METRICS.items():
            if metric in data:
                metrics[column] = whole(data[metric], factor)
        time_ns = whole(max(clock - _origin(common, first), 0.0), 1e6)
        if time_ns is not None:
            samples.append({"time_ns": time_ns, **metrics})
    return samples, losses


def _origin(common: Row, first: float) -> float:
    """Return the time to subtract, so that times since 1970 count from the first event."""
    return first if common.get("time_format") == "absolute" or first > 1e11 else 0.0
