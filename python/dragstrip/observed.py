"""What a recording of a capture, of another program's file or of a run says of its flows and pings.

No scenario is needed.

What was not recorded is None; nothing is put in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dragstrip.recording import Recording

Row: TypeAlias = dict[str, Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]

PERCENTILES = (5, 50, 95)
LIMITS = {"cwnd": "cwnd", "pacing": "cwnd", "rwnd": "receiver", "sndbuf": "application", "app": "application"}
"""What `inspect` calls the values of `samples.limited_by`."""


def grouped(recording: Recording, table: str, key: str, columns: Sequence[str]) -> dict[Any, dict[str, Any]]:
    """Of each value of `key` the columns in the order of the table: numbers as float64, null as NaN."""
    held = recording[table]
    if not held.num_rows:
        return {}
    keys = held.column(key).unify_dictionaries().combine_chunks()
    encoded: Any = keys if pa.types.is_dictionary(keys.type) else keys.dictionary_encode()
    places = encoded.indices.to_numpy(zero_copy_only=False)
    words = encoded.dictionary.to_pylist()
    values = {column: _array(held.column(column)) for column in columns}
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


SAMPLES = ("time_ns", "rtt_ns", "srtt_ns", "bytes_acked", "retransmits", "limited_by")


def flows(recording: Recording) -> list[Row]:
    """Of each flow what `inspect --json` says of a captured one; what the recording does not say is None."""
    samples = grouped(recording, "samples", "flow", SAMPLES)
    received = grouped(recording, "received", "flow", ("time_ns", "new_bytes"))
    rtts = grouped(recording, "rtts", "flow", ("rtt_ns",))
    end_ns = recording.scenario.get("duration_ns") if recording.scenario.get("nodes") else None
    made = []
    for flow in recording["flows"].to_pylist():
        mine, arrived = samples.get(flow["flow"], {}), received.get(flow["flow"], {})
        times = [array for array in (mine.get("time_ns"), arrived.get("time_ns")) if array is not None]
        begin, end = flow["start_ns"], flow["stop_ns"]
        if begin is None:
            begin = min((float(array[0]) for array in times), default=0)
        if end is None:
            end = end_ns if end_ns is not None else max((float(array[-1]) for array in times), default=0)
        size, duration = _bytes(flow, mine, arrived), (end - begin) / 1e9
        again = flow["retransmits"]
        if again is None:
            again = _last(mine.get("retransmits"))
        made.append(
            {
                "flow": flow["flow"],
                "label": flow["label"],
                "cc": flow["cc"] or None,
                "bytes": size,
                "duration_s": duration,
                "goodput_bps": None if size is None or duration <= 0 else size * 8 / duration,
                "rtt_ms": _round_trips(mine, rtts.get(flow["flow"], {})),
                "segments": flow["segments_sent"],
                "retransmissions": {"needed": None, "spurious": None, "unknown": again},
                "reordered": None,
                "limited_s": _limited(mine, end),
                "ecn": flow["ecn_negotiated"],
            }
        )
    return made


def _last(values: FloatArray | None) -> int | None:
    known = np.empty(0) if values is None else values[np.isfinite(values)]
    return int(known[-1]) if len(known) else None


def _bytes(flow: Row, samples: Row, arrived: Row) -> int | None:
    """What arrived, or was acknowledged while somebody looked."""
    if flow["bytes_received"] is not None:
        return int(flow["bytes_received"])
    if arrived:
        return int(np.nansum(arrived["new_bytes"]))
    acked = samples.get("bytes_acked", np.empty(0))
    acked = acked[np.isfinite(acked)]
    return int(acked[-1] - acked[0]) if len(acked) else None


def _round_trips(samples: Row, rtts: Row) -> Row:
    """The finest there is: every sample, the latest one of each interval, or the smoothed estimate."""
    for method, values in (
        ("samples", rtts.get("rtt_ns")),
        ("latest", samples.get("rtt_ns")),
        ("srtt", samples.get("srtt_ns")),
    ):
        known = np.empty(0) if values is None else values[np.isfinite(values)]
        if len(known):
            return round_trips(known, method)
    return round_trips(np.empty(0), None)


def round_trips(known_ns: FloatArray, method: str | None) -> Row:
    """Percentiles in milliseconds, with the method and the number of samples."""
    values = [float(v) / 1e6 for v in np.percentile(known_ns, PERCENTILES)] if len(known_ns) else [None] * 3
    shown = {f"p{part}": value for part, value in zip(PERCENTILES, values, strict=True)}
    return {"method": method, "samples": len(known_ns), **shown}


def _limited(samples: Row, end_ns: float) -> Row | None:
    """Seconds by what limited the flow, each sample's word until the next one; None where none is told."""
    said = samples.get("limited_by")
    if said is None or not any(said):
        return None
    spent = np.diff(np.append(samples["time_ns"], max(end_ns, samples["time_ns"][-1]))) / 1e9
    found = {"cwnd": 0.0, "receiver": 0.0, "application": 0.0, "unknown": 0.0}
    for word in {word or "" for word in said}:
        chosen = np.array([(it or "") == word for it in said])
        found[LIMITS.get(word, "unknown")] += float(spent[chosen].sum())
    return found


def probes(recording: Recording) -> list[Row]:
    """Of each probe how many were sent and lost, and the round trips of the others."""
    rows = recording["probes"].to_pylist()
    made = []
    for probe, target in dict.fromkeys((row["probe"], row["target"]) for row in rows):
        mine = [row for row in rows if (row["probe"], row["target"]) == (probe, target)]
        answered = np.array([row["rtt_ns"] for row in mine if not row["lost"]], dtype=np.float64)
        made.append(
            {
                "probe": probe,
                "target": target,
                "sent": len(mine),
                "lost": len(mine) - len(answered),
                "rtt_ms": round_trips(answered, "echo" if len(answered) else None),
            }
        )
    return made
