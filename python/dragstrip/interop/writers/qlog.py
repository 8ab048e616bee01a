"""Writer of qlog 0.3, contained JSON: a trace for each sender of a TCP or QUIC flow.

Source: draft-ietf-quic-qlog-main-schema-03, draft-ietf-quic-qlog-quic-events-02, whose names qvis reads.
Recovery events are `congestion_state_updated`, and `metrics_updated` with what has changed since the last.
Packets are known only where the sender was captured; they are numbered as sent: TCP has no numbers, and those
of QUIC are encrypted in a capture.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from pathlib import Path

from dragstrip.interop.writers.packets import capture_of, flow_of, packets
from dragstrip.interop.writers.rows import EPOCH_S, Row, about, of_flow
from dragstrip.model.recording import Recording

PROTOCOLS = {"tcp": ("TCP", 34), "quic": ("QUIC", 42)}
"""By protocol of a flow: its name, and the bytes of a frame in front of its packet."""


def write(recording: Recording, stem: str, captures: Path) -> dict[str, bytes]:
    """Return one file for the run, or none if it has no flow of TCP or QUIC.

    Raises `BadInputError` for a sender's capture that no run has written.
    """
    traces = [
        _trace(recording, flow, captures)
        for flow in recording["flows"].to_pylist()
        if flow["protocol"] in PROTOCOLS
    ]
    if not traces:
        return {}
    # qvis looks for the version at the beginning of the file.
    document = {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": stem,
        "description": about(recording),
        "traces": traces,
    }
    return {f"{stem}.qlog": (json.dumps(document, allow_nan=False) + "\n").encode()}


def _trace(recording: Recording, flow: Row, captures: Path) -> Row:
    protocol, headers = PROTOCOLS[flow["protocol"]]
    captured_events = _sent_events(captures, flow, headers)
    events = heapq.merge(_recovery(recording, flow), captured_events, key=lambda event: event["time"])
    return {
        "vantage_point": {"name": flow["sender"], "type": "client"},
        "title": flow["label"],
        "description": f"{protocol}, {flow['cc']}, {flow['sender']} to {flow['receiver']}",
        "common_fields": {
            "protocol_type": [protocol],
            "time_format": "relative",
            "reference_time": EPOCH_S * 1000,
        },
        "events": list(events),
    }


def _recovery(recording: Recording, flow: Row) -> Iterator[Row]:
    """Yield the changes of state and metrics of a sender, from one sample to the next."""
    last_values: Row = {}
    state = None
    for sample in of_flow(recording, "samples", flow["flow"]):
        time_ms = sample["time_ns"] / 1e6
        if sample["state"] != state and sample["state"] is not None:
            change = {"new": sample["state"]} if state is None else {"old": state, "new": sample["state"]}
            yield {"time": time_ms, "name": "recovery:congestion_state_updated", "data": change}
            state = sample["state"]
        now = _metrics(sample)
        changed = {name: value for name, value in now.items() if last_values.get(name) != value}
        if changed:
            yield {"time": time_ms, "name": "recovery:metrics_updated", "data": changed}
            last_values = now


def _sent_events(captures: Path, flow: Row, headers: int) -> Iterator[Row]:
    """Yield the packets of a flow that left its sender, if that was captured; lengths in bytes."""
    path = capture_of(captures, flow["sender"])
    if path is None:
        return
    number = 0
    for packet in packets(path):
        if packet.event == "-" and flow_of(packet) == flow["flow"]:
            data = {
                "header": {"packet_type": "1RTT", "packet_number": number},
                "raw": {"length": packet.original - headers},
            }
            yield {"time": packet.at_ns / 1e6, "name": "transport:packet_sent", "data": data}
            number += 1


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
