"""Writer of qlog, contained JSON: a trace for each TCP flow's sender.

Source: draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events. It writes two recovery events:
`recovery_metrics_updated` with what has changed since the last one, and `congestion_state_updated`. TCP has
no packet numbers, so there are no packet events.
"""

from __future__ import annotations

import json

from dragstrip.formats.writers.rows import Row, about, of_flow, tcp_flows
from dragstrip.recording import Recording


def write(recording: Recording, stem: str) -> dict[str, bytes]:
    """Return one file for the run, or none if it has no TCP flow."""
    traces = [_trace(recording, flow) for flow in tcp_flows(recording)]
    if not traces:
        return {}
    document = {
        "file_schema": "urn:ietf:params:qlog:file:contained",
        "serialization_format": "application/qlog+json",
        "title": stem,
        "description": about(recording),
        "traces": traces,
    }
    return {f"{stem}.qlog": (json.dumps(document, allow_nan=False) + "\n").encode()}


def _trace(recording: Recording, flow: Row) -> Row:
    events: list[Row] = []
    known: Row = {}
    state = None
    for sample in of_flow(recording, "samples", flow["flow"]):
        time_ms = sample["time_ns"] / 1e6
        if sample["state"] != state:
            change = {"new": sample["state"]} if state is None else {"old": state, "new": sample["state"]}
            events.append({"time": time_ms, "name": "quic:congestion_state_updated", "data": change})
            state = sample["state"]
        now = _metrics(sample)
        changed = {name: value for name, value in now.items() if known.get(name) != value}
        if changed:
            events.append({"time": time_ms, "name": "quic:recovery_metrics_updated", "data": changed})
            known = now
    return {
        "title": flow["label"],
        "description": f"TCP, {flow['cc']}, {flow['sender']} to {flow['receiver']}",
        "common_fields": {
            "time_format": "relative_to_epoch",
            "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
        },
        "vantage_point": {"name": flow["sender"], "type": "client"},
        "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
        "events": events,
    }


def _metrics(sample: Row) -> Row:
    """Return the known metrics in ms, bytes and bit/s."""
    values = {
        "min_rtt": (sample["min_rtt_ns"], 1e6),
        "smoothed_rtt": (sample["srtt_ns"], 1e6),
        "latest_rtt": (sample["rtt_ns"], 1e6),
        "congestion_window": (sample["cwnd_bytes"], 1),
        "bytes_in_flight": (sample["bytes_in_flight"], 1),
        "ssthresh": (sample["ssthresh_bytes"], 1),
        "pacing_rate": (sample["pacing_bps"], 1),
    }
    return {
        name: value / unit if unit != 1 else value
        for name, (value, unit) in values.items()
        if value is not None
    }
