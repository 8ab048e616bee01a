"""Writer of trace events as JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Source: "Trace Event Format" of the Chromium project. Times are microseconds since the start of the run. Each
flow, queue and probe is a process. Counters are the recorded samples; a slice lasts from the first sample of
a state to the first one of another. Packets are known only where a run was captured: an arrow leads from the
drop of a segment to its retransmission.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip.interop.writers.repairs import Drop, repairs
from dragstrip.interop.writers.rows import Row, about, of_flow
from dragstrip.model.recording import Recording
from dragstrip.report.series import Curve, decimate

POINTS_MAX = 20_000
"""Values of one counter; of more, the first, least, greatest and last of every stretch of time are kept."""
DROPS_MAX = 50_000
"""Drops that are drawn with their arrows, the earliest first."""
INSTANT_US = 0.001
"""Duration of a packet's slice in microseconds: an arrow needs a slice to begin and to end in."""
LIFE, STATE, LIMIT, AGAIN, DROPS = 1, 2, 3, 4, 5
"""Numbers of the threads, in the order in which they are shown."""
SAMPLED = {
    "cwnd (kB)": ("cwnd_bytes", 1e3),
    "ssthresh (kB)": ("ssthresh_bytes", 1e3),
    "in flight (kB)": ("bytes_in_flight", 1e3),
    "smoothed RTT (ms)": ("srtt_ns", 1e6),
    "pacing rate (Mbit/s)": ("pacing_bps", 1e6),
    "delivery rate (Mbit/s)": ("delivery_bps", 1e6),
}
QUEUED = {"backlog (kB)": ("backlog_bytes", 1e3), "backlog (packets)": ("backlog_packets", 1.0)}


def write(recording: Recording, stem: str, captures: Path) -> dict[str, bytes]:
    """Return one file for the run; raises `BadInputError` for captures that no run has written."""
    flows = recording["flows"].to_pylist()
    queues = _by(recording, "queues", "link")
    probes = _by(recording, "probes", "probe")
    drops = repairs(recording, captures)
    links = list(dict.fromkeys([*queues, *(drop.where for drop in drops)]))
    names = [("flow", flow["flow"]) for flow in flows]
    names += [("queue", link) for link in links] + [("probe", probe) for probe in probes]
    pids = {name: pid for pid, name in enumerate(names, 1)}
    events: list[Row] = []
    for flow in flows:
        events += _flow(recording, flow, pids["flow", flow["flow"]])
    for link in links:
        events += _queue(link, queues.get(link, []), pids["queue", link])
    for probe, rows in probes.items():
        events += _probe(probe, rows, pids["probe", probe])
    events += _packets(drops[:DROPS_MAX], pids)
    metadata: Row = {"title": stem, "description": about(recording)}
    if drops:
        metadata |= {"drops": len(drops), "drops_drawn": min(len(drops), DROPS_MAX)}
    document = {
        "traceEvents": sorted(events, key=_order),
        "displayTimeUnit": "ms",
        "otherData": metadata,
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return {f"{stem}.perfetto.json": text.encode() + b"\n"}


def _by(recording: Recording, table: str, column: str) -> dict[str, list[Row]]:
    """Return the rows of a table by what a column says, in the order of its first appearance."""
    rows_by_value: dict[str, list[Row]] = {}
    for row in recording[table].to_pylist():
        rows_by_value.setdefault(row[column], []).append(row)
    return rows_by_value


def _order(event: Row) -> tuple[bool, float, bool, float]:
    """Return the sort key: names first, then by time; an arrow after the slice that it begins or ends in."""
    return event["ph"] != "M", event["ts"], event["ph"] in "sf", -event.get("dur", 0.0)


def _names(pid: int, name: str, threads: Mapping[int, str]) -> Iterator[Row]:
    """Yield the names of a process and its threads, in the order in which they are shown."""
    about_it = [("process_name", 0, {"name": name}), ("process_sort_index", 0, {"sort_index": pid})]
    for tid, thread in threads.items():
        about_it.append(("thread_name", tid, {"name": thread}))
        about_it.append(("thread_sort_index", tid, {"sort_index": tid}))
    for event_name, tid, args in about_it:
        yield {"ph": "M", "name": event_name, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _us(time_ns: int) -> float:
    return time_ns / 1e3


def _slice(pid: int, tid: int, name: str, span_ns: tuple[int, int], **args: Any) -> Row:
    begin, end = span_ns
    length = max(_us(end - begin), INSTANT_US)
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": _us(begin), "dur": length, "args": args}


def _counter(pid: int, name: str, points: Iterable[tuple[int, float | None]]) -> Iterator[Row]:
    """Yield the values that are known, thinned to `POINTS_MAX`."""
    measured = [(time_ns / 1e3, value) for time_ns, value in points if value is not None]
    if not measured:
        return
    x, y = np.array(measured, dtype=np.float64).T
    curve = decimate(Curve(x, y), POINTS_MAX)
    for at, value in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
        yield {"ph": "C", "name": name, "pid": pid, "ts": at, "args": {"value": value}}


def _scaled(rows: Sequence[Row], column: str, unit: float) -> Iterator[tuple[int, float | None]]:
    for row in rows:
        value = row[column]
        yield row["time_ns"], None if value is None else value / unit


def _phases(pid: int, tid: int, samples: Sequence[Row], column: str, stop_ns: int) -> Iterator[Row]:
    """Yield a slice for each stretch of samples with the same word in a column."""
    phases = [(word, next(rows)["time_ns"]) for word, rows in groupby(samples, key=lambda row: row[column])]
    ends = [begin for _, begin in phases[1:]] + [max(stop_ns, samples[-1]["time_ns"])] if samples else []
    for (word, begin), end in zip(phases, ends, strict=True):
        if word is not None:
            yield _slice(pid, tid, word, (begin, end))


def _flow(recording: Recording, flow: Row, pid: int) -> Iterator[Row]:
    title = f"{flow['label']} ({flow['sender']} to {flow['receiver']})"
    life = flow["start_ns"], flow["stop_ns"]
    yield from _names(
        pid, title, {LIFE: "flow", STATE: "congestion state", LIMIT: "limited by", AGAIN: "retransmissions"}
    )
    counts = ("bytes_received", "segments_sent", "retransmits", "rto_count", "reductions")
    totals = {name: flow[name] for name in counts if flow[name] is not None}
    yield _slice(pid, LIFE, flow["cc"] or flow["protocol"], life, **totals)
    samples = of_flow(recording, "samples", flow["flow"])
    yield from _phases(pid, STATE, samples, "state", flow["stop_ns"])
    yield from _phases(pid, LIMIT, samples, "limit", flow["stop_ns"])
    for name, (column, unit) in SAMPLED.items():
        yield from _counter(pid, name, _scaled(samples, column, unit))
    rtts = of_flow(recording, "rtts", flow["flow"]) or samples
    yield from _counter(pid, "RTT (ms)", _scaled(rtts, "rtt_ns", 1e6))
    yield from _counter(pid, "retransmissions so far", _scaled(samples, "retransmits", 1.0))
    received = of_flow(recording, "received", flow["flow"])
    yield from _counter(pid, "goodput (Mbit/s)", _goodput(received, flow["start_ns"]))


def _goodput(received: Sequence[Row], start_ns: int) -> Iterator[tuple[int, float | None]]:
    """Yield each interval's goodput in Mbit/s at the interval's beginning, and 0 at the end of all."""
    ends = [start_ns, *(row["time_ns"] for row in received)]
    for (begin, end), row in zip(pairwise(ends), received, strict=True):
        yield begin, row["new_bytes"] * 8e3 / (end - begin) if end > begin else None
    if received:
        yield ends[-1], 0.0


def _queue(link: str, rows: Sequence[Row], pid: int) -> Iterator[Row]:
    yield from _names(pid, f"queue {link}", {DROPS: "drops"})
    for name, (column, unit) in QUEUED.items():
        yield from _counter(pid, name, _scaled(rows, column, unit))
    yield from _counter(pid, "dropped so far", _scaled(rows, "dropped", 1.0))
    yield from _counter(pid, "marked so far", _scaled(rows, "marked", 1.0))


def _probe(label: str, rows: Sequence[Row], pid: int) -> Iterator[Row]:
    yield from _names(pid, f"ping {label}", {})
    yield from _counter(pid, "RTT (ms)", _scaled(rows, "rtt_ns", 1e6))


def _packets(drops: Sequence[Drop], pids: Mapping[tuple[str, Any], int]) -> Iterator[Row]:
    """Yield drops, retransmissions (one slice for all of an instant) and the arrows between them."""
    for (where, at_ns), group in groupby(drops, key=lambda drop: (drop.where, drop.at_ns)):
        group_drops = list(group)
        pid = pids["queue", where]
        yield _slice(
            pid,
            DROPS,
            "drop",
            (at_ns, at_ns),
            packets=len(group_drops),
            bytes=sum(one_drop.size for one_drop in group_drops),
        )
    again = sorted(
        (drop.flow, drop.again_ns) for drop in drops if drop.flow is not None and drop.again_ns is not None
    )
    for (flow, at_ns), repaired in groupby(again):
        count = len(list(repaired))
        yield _slice(pids["flow", flow], AGAIN, "retransmission", (at_ns, at_ns), drops=count)
    for number, drop in enumerate(drops, 1):
        if drop.again_ns is None:
            continue
        arrow = {"cat": "repair", "name": "repair", "id": number}
        begin, end = _us(drop.at_ns), _us(drop.again_ns)
        yield {"ph": "s", **arrow, "pid": pids["queue", drop.where], "tid": DROPS, "ts": begin}
        yield {"ph": "f", "bp": "e", **arrow, "pid": pids["flow", drop.flow], "tid": AGAIN, "ts": end}
