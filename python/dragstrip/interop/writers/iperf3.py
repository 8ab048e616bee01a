"""Writer of iperf3's JSON (`iperf_api.c`, version 3.12).

A file for each TCP flow, as its client would write it. Bytes of an interval are those that the socket
accepted, as iperf3 counts them, so the sender's include what is still in the socket's buffer at the end. What
a recording does not have (`rttvar`, the peer's window) is -1, as iperf3 writes unknown values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

from dragstrip.errors import BadInputError
from dragstrip.interop.writers.rows import EPOCH_S, Row, about, at_ends, of_flow, tcp_flows, word
from dragstrip.io.untrusted import one_line
from dragstrip.model.recording import Recording

STEP_NS = 1_000_000_000
"""iperf3's reporting interval in nanoseconds, unless samples are further apart."""
SOCKET = 5
"""The descriptor of a client's first data socket."""
UNKNOWN = -1
FILE_NAME_MAX = 255
"""Bytes of a file's name, at most (NAME_MAX)."""


def write(recording: Recording, stem: str) -> dict[str, bytes]:
    """Return a file for each TCP flow that sent."""
    files: dict[str, bytes] = {}
    for flow in tcp_flows(recording):
        document = _document(recording, flow)
        if document is not None:
            text = json.dumps(document, indent="\t", allow_nan=False) + "\n"
            name = _name(stem, flow, files)
            if len(name.encode()) > FILE_NAME_MAX:
                expected = f"a label with which a file's name has at most {FILE_NAME_MAX} bytes"
                raise BadInputError("flows.label", one_line(flow["label"]), expected, stem)
            files[name] = text.encode()
    return files


def _name(stem: str, flow: Row, files: Mapping[str, bytes]) -> str:
    """Return the name of a flow's file: its label, and the flow's number if that name is another file's."""
    label = word(flow["label"])
    name = f"{stem}.{label}.iperf3.json"
    number = int(flow["flow"])
    while name in files:
        name = f"{stem}.{label}-{number}.iperf3.json"
        number += 1
    return name


def _document(recording: Recording, flow: Row) -> Row | None:
    step_ns = max(STEP_NS, recording.scenario["record"]["interval_ns"])
    start_ns = flow["start_ns"]
    samples = of_flow(recording, "samples", flow["flow"])
    samples = [{**sample, "time_ns": sample["time_ns"] - start_ns} for sample in samples]
    ends = list(at_ends([sample for sample in samples if sample["time_ns"] > 0], step_ns))
    if not ends:
        return None
    nothing = {"time_ns": 0, "bytes_written": 0, "retransmits": 0}
    stop_ns = flow["stop_ns"] - start_ns
    ends[-1]["time_ns"] = max(min(ends[-1]["time_ns"], stop_ns), 1)
    streams = [_interval(recording, flow, before, after) for before, after in pairwise([nothing, *ends])]
    keys = ("start", "end", "seconds", "bytes", "bits_per_second", "retransmits", "omitted", "sender")
    intervals = [{"streams": [stream], "sum": {key: stream[key] for key in keys}} for stream in streams]
    return {
        "start": _start(recording, flow, stop_ns),
        "intervals": intervals,
        "end": _end(flow, streams, ends[-1], stop_ns),
    }


def _interval(recording: Recording, flow: Row, before: Row, after: Row) -> Row:
    start, end = before["time_ns"] / 1e9, after["time_ns"] / 1e9
    sent_bytes = after["bytes_written"] - before["bytes_written"]
    return {
        "socket": SOCKET,
        "start": start,
        "end": end,
        "seconds": end - start,
        "bytes": sent_bytes,
        "bits_per_second": sent_bytes * 8 / (end - start),
        "retransmits": after["retransmits"] - before["retransmits"],
        "snd_cwnd": after["cwnd_bytes"],
        "snd_wnd": UNKNOWN,
        "rtt": UNKNOWN if after["srtt_ns"] is None else after["srtt_ns"] // 1000,
        "rttvar": UNKNOWN,
        "pmtu": _mtu(recording, flow),
        "omitted": False,
        "sender": True,
    }


def _mtu(recording: Recording, flow: Row) -> int:
    hosts = {node["name"]: node for node in recording.scenario["nodes"]}
    mtu: int = hosts[flow["sender"]].get("mtu_bytes", UNKNOWN)
    return mtu


def _start(recording: Recording, flow: Row, stop_ns: int) -> Row:
    began_s = EPOCH_S + flow["start_ns"] // STEP_NS
    return {
        "connected": [
            {
                "socket": SOCKET,
                "local_host": flow["sender"],
                "local_port": 30_001 + flow["flow"],
                "remote_host": flow["receiver"],
                "remote_port": 5_001 + flow["flow"],
            }
        ],
        "version": "iperf 3.12",
        "system_info": about(recording),
        "timestamp": {"timesecs": began_s},
        "connecting_to": {"host": flow["receiver"], "port": 5_001 + flow["flow"]},
        "test_start": {
            "protocol": "TCP",
            "num_streams": 1,
            "omit": 0,
            "duration": round(stop_ns / 1e9),
            "bytes": 0,
            "blocks": 0,
            "reverse": 0,
            "tos": 0,
            "target_bitrate": 0,
        },
    }


def _end(flow: Row, streams: Sequence[Row], last: Row, stop_ns: int) -> Row:
    rtts = [stream["rtt"] for stream in streams if stream["rtt"] != UNKNOWN]
    seconds = last["time_ns"] / 1e9
    sender_totals = {
        "start": 0,
        "end": seconds,
        "seconds": seconds,
        "bytes": last["bytes_written"],
        "bits_per_second": last["bytes_written"] * 8 / seconds,
        "retransmits": last["retransmits"],
        "sender": True,
    }
    most = {
        "max_snd_cwnd": max(stream["snd_cwnd"] for stream in streams),
        "max_snd_wnd": UNKNOWN,
        "max_rtt": max(rtts, default=UNKNOWN),
        "min_rtt": min(rtts, default=UNKNOWN),
        "mean_rtt": sum(rtts) // len(rtts) if rtts else UNKNOWN,
    }
    stop = stop_ns / 1e9
    received = {
        "start": 0,
        "end": stop,
        "seconds": stop,
        "bytes": flow["bytes_received"],
        "bits_per_second": flow["bytes_received"] * 8 / stop,
        "sender": True,
    }
    return {
        "streams": [
            {
                "sender": {"socket": SOCKET, **sender_totals, **most},
                # iperf3 itself says the sender's seconds here (`iperf_print_results`).
                "receiver": {"socket": SOCKET, **received, "seconds": seconds},
            }
        ],
        "sum_sent": sender_totals,
        "sum_received": received,
        "sender_tcp_congestion": flow["cc"],
        "receiver_tcp_congestion": flow["cc"],
    }
