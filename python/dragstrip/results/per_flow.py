"""Figures per flow and per ping, for recordings that need no scenario: captures and imported files too.

A figure that the recording does not contain is None; nothing is estimated in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dragstrip.model.recording import Recording

Row: TypeAlias = dict[str, Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]

PERCENTILES = (5, 50, 95)
TAIL_SAMPLES = 20
"""Samples from which on the 5th and the 95th percentile are given: one of them lies beyond."""
LARGEST = 2.0**62
"""Figures that another program reports are smaller."""
LIMITS = {
    "cwnd": "cwnd",
    "pacing": "cwnd",
    "small_queue": "small_queue",
    "rwnd": "receiver",
    "sndbuf": "application",
    "app": "application",
}
"""The words of `inspect` for the values of `samples.limit`; a handshake is none of them.

A capture does not show TCP small queues (`small_queue`).
"""


def grouped(recording: Recording, table: str, key: str, columns: Sequence[str]) -> dict[Any, dict[str, Any]]:
    """Group a table's columns by the values of `key`, in the order of the table.

    Numbers become float64 arrays with NaN for null, other columns arrays of objects.
    """
    source_table = recording[table]
    if not source_table.num_rows:
        return {}
    keys = source_table.column(key).unify_dictionaries().combine_chunks()
    encoded: Any = keys if pa.types.is_dictionary(keys.type) else keys.dictionary_encode()
    places = encoded.indices.to_numpy(zero_copy_only=False)
    words = encoded.dictionary.to_pylist()
    values = {column: _array(source_table.column(column)) for column in columns}
    order = np.argsort(places, kind="stable")
    borders = np.flatnonzero(np.diff(places[order], prepend=-1))
    groups = np.split(order, borders[1:])
    return {
        words[int(places[rows[0]])]: {column: array[rows] for column, array in values.items()}
        for rows in groups
    }


def _array(column: pa.ChunkedArray[Any]) -> npt.NDArray[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return np.array(column.to_pylist(), dtype=object)
    return cast(FloatArray, np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64))


SAMPLES = ("time_ns", "rtt_ns", "srtt_ns", "bytes_acked", "bytes_written", "retransmits", "limit")


def flows(recording: Recording) -> list[Row]:
    """Return, for each flow, what `inspect --json` gives for a captured one, with None for the unknown."""
    samples = grouped(recording, "samples", "flow", SAMPLES)
    received = grouped(recording, "received", "flow", ("time_ns", "new_bytes"))
    rtts = grouped(recording, "rtts", "flow", ("rtt_ns",))
    end_ns = recording.scenario.get("duration_ns") if recording.scenario.get("nodes") else None
    flow_rows = []
    for flow in recording["flows"].to_pylist():
        reported = _reported(recording, flow["flow"])
        mine, arrived = samples.get(flow["flow"], {}), received.get(flow["flow"], {})
        times = [array for array in (mine.get("time_ns"), arrived.get("time_ns")) if array is not None]
        begin, end = flow["start_ns"], flow["stop_ns"]
        if begin is None:
            begin = min((float(array[0]) for array in times), default=0)
        if end is None:
            end = end_ns if end_ns is not None else max((float(array[-1]) for array in times), default=0)
        size, duration = _bytes(flow, mine, arrived), (end - begin) / 1e9
        measured = _figure(reported, "measured_s")
        if measured is None:
            measured = duration
        goodput = _figure(reported, "goodput_bps")
        if goodput is None and size is not None and measured > 0:
            goodput = size * 8 / measured
        again = flow["retransmits"]
        if again is None:
            again = _last(mine.get("retransmits"))
        flow_rows.append(
            {
                "flow": flow["flow"],
                "label": flow["label"],
                "cc": flow["cc"] or None,
                "bytes": size,
                "duration_s": duration,
                "goodput_bps": goodput,
                "rtt_ms": _round_trips(mine, rtts.get(flow["flow"], {}), reported.get("rtt_ms")),
                "segments": flow["segments_sent"],
                "retransmissions": {"needed": None, "spurious": None, "unknown": again},
                "reordered": None,
                "limited_s": _limited(mine, end),
                "ecn": flow["ecn_negotiated"],
            }
        )
    return flow_rows


def _last(values: FloatArray | None) -> int | None:
    finite = np.empty(0) if values is None else values[np.isfinite(values)]
    return int(finite[-1]) if len(finite) else None


def _reported(recording: Recording, flow: int) -> Row:
    """Return what another program computed for a flow itself (`formats.readers.measurements`)."""
    reported_by_flow = recording.provenance.get("reported")
    mine = reported_by_flow.get(str(flow)) if isinstance(reported_by_flow, dict) else None
    return mine if isinstance(mine, dict) else {}


def _figure(reported: object, name: str) -> float | None:
    value = reported.get(name) if isinstance(reported, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < LARGEST else None


def _bytes(flow: Row, samples: Row, arrived: Row) -> int | None:
    """Return the bytes that arrived, or were acknowledged during the samples, or else were written."""
    if flow["bytes_received"] is not None:
        return int(flow["bytes_received"])
    if arrived:
        return int(np.nansum(arrived["new_bytes"]))
    acked = samples.get("bytes_acked", np.empty(0))
    acked = acked[np.isfinite(acked)]
    if len(acked):
        return int(acked[-1] - acked[0])
    # For datagrams, the bytes written say little about the bytes that arrived.
    return _last(samples.get("bytes_written")) if flow["protocol"] == "tcp" else None


def _round_trips(samples: Row, rtts: Row, reported: object) -> Row:
    """Return the finest round trips recorded.

    Each sample, the latest per interval, or the smoothed estimate.
    """
    for method, values in (
        ("samples", rtts.get("rtt_ns")),
        ("latest", samples.get("rtt_ns")),
        ("srtt", samples.get("srtt_ns")),
    ):
        finite = np.empty(0) if values is None else values[np.isfinite(values)]
        if len(finite):
            return round_trips(finite, method, reported)
    return round_trips(np.empty(0), None, reported)


def round_trips(known_ns: FloatArray, method: str | None, reported: object = None) -> Row:
    """Return percentiles, extremes and mean of round-trip times in milliseconds, and how they were measured.

    Of fewer than `TAIL_SAMPLES` there are no percentiles but the median. Extremes and mean that another
    program has `reported`, from more samples than it wrote down, take precedence.
    """
    values = [float(v) / 1e6 for v in np.percentile(known_ns, PERCENTILES)] if len(known_ns) else [None] * 3
    statistics = {f"p{part}": value for part, value in zip(PERCENTILES, values, strict=True)}
    if len(known_ns) < TAIL_SAMPLES:
        statistics |= {f"p{part}": None for part in PERCENTILES if part != 50}
    for name, of in (("min", np.min), ("mean", np.mean), ("max", np.max)):
        computed = float(of(known_ns)) / 1e6 if len(known_ns) else None
        reported_value = _figure(reported, name)
        statistics[name] = computed if reported_value is None else reported_value
    return {"method": method, "samples": len(known_ns), **statistics}


def _limited(samples: Row, end_ns: float) -> Row | None:
    """Return the seconds by limiting factor, each sample's value held until the next.

    None if none is recorded.
    """
    limits = samples.get("limit")
    if limits is None or not any(limits):
        return None
    durations_s = np.diff(np.append(samples["time_ns"], max(end_ns, samples["time_ns"][-1]))) / 1e9
    seconds = {"cwnd": 0.0, "receiver": 0.0, "application": 0.0, "unknown": 0.0}
    for word in {word or "" for word in limits}:
        mask = np.array([(limit or "") == word for limit in limits])
        name = LIMITS.get(word, "unknown")
        seconds[name] = seconds.get(name, 0.0) + float(durations_s[mask].sum())
    return seconds


def probes(recording: Recording) -> list[Row]:
    """Return, for each probe, the numbers sent and lost, and the round trips of the others.

    Of requests that the file sums up instead of listing them, these are its own figures; numbers that it does
    not have are None.
    """
    rows = recording["probes"].to_pylist()
    sums = {(row["probe"], row["target"]): row for row in _summaries(recording)}
    probe_rows = []
    for probe, target in dict.fromkeys((row["probe"], row["target"]) for row in rows):
        requests = [row for row in rows if (row["probe"], row["target"]) == (probe, target)]
        answered = np.array([row["rtt_ns"] for row in requests if not row["lost"]], dtype=np.float64)
        whole = sums.get((probe, target))
        trips = round_trips(answered, "echo" if len(answered) else None, whole and whole.get("rtt_ms"))
        sent_count: int | None = len(requests)
        lost_count: int | None = len(requests) - len(answered)
        if whole is not None:
            trips |= {"method": "summary" if len(answered) else None, "samples": 0, "p50": None}
            sent_count, lost_count = whole.get("sent"), whole.get("lost")
        probe_rows.append(
            {"probe": probe, "target": target, "sent": sent_count, "lost": lost_count, "rtt_ms": trips}
        )
    return probe_rows


def _summaries(recording: Recording) -> list[Row]:
    """Return the sums of requests that another program's file has (`formats.readers.measurements`)."""
    stored = recording.provenance.get("summaries")
    rows = stored if isinstance(stored, list) else []
    return [row for row in rows if isinstance(row, dict) and {"probe", "target"} <= row.keys()]
