"""A flow's segments as arrays: what was sent when, which copies were lost, and what came back.

Positions and byte counts are of TCP data, times are seconds since the flow's first segment. A copy is lost if
its bytes were sent again and the core judges that this was needed (docs/how-to/captures.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NEW, AGAIN, PROBE, ACKNOWLEDGEMENT = range(4)
"""Kinds of rows (crates/inspect/src/series.rs)."""
NEEDED, SPURIOUS, UNKNOWN, REORDERED = range(1, 5)
"""Verdicts on data sent again."""
NONE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Segments:
    """Segments with data, in the order of time."""

    time_s: Floats
    start: Integers
    bytes: Integers
    ip_bytes: Integers
    again: Flags
    lost_bytes: Integers
    """Bytes of the segment whose copy was lost."""
    marked: Flags
    in_flight: Integers
    """Bytes under way with this segment."""

    def __len__(self) -> int:
        return len(self.time_s)


@dataclass(frozen=True)
class AckSeries:
    """Acknowledgements, in the order of time."""

    time_s: Floats
    acked: Integers
    delivered: Integers
    """Bytes acknowledged or SACKed so far."""
    in_flight: Integers
    rtt_s: Floats
    """Round trip of the last newly acknowledged segment that was sent once; NaN without one."""
    window: Floats
    """Bytes that the receiver offers; NaN where the scale is unknown."""
    marked: Flags

    def __len__(self) -> int:
        return len(self.time_s)


@dataclass(frozen=True)
class CapturedFlow:
    """A flow as one capture shows it."""

    number: int
    """Its place among the capture's flows."""
    name: str
    place: str
    origin_ns: int
    full_bytes: int
    """Data of a full segment."""
    header_bytes: int
    """Headers of IP and TCP in a segment with data."""
    opening_s: float | None
    ecn: bool | None
    segments: Segments
    returned: AckSeries
    cut: bool
    """The capture has more segments than are looked at."""
    trips_s: tuple[float, ...]
    """Quantiles of the round trip that `inspect` reports, in seconds: 5 %, 50 %, 95 %; empty without one."""
    receiver_limited: float | None
    """Share of the time in which the receiver's window limited the sender."""
    rtt_method: str
    clock_steps: int
    """Times that the capture's clock was set back."""
    queue_drops: int = 0
    """Packets of the file whose comments say that the queue at the captured link dropped them."""

    @property
    def overhead(self) -> float:
        """Bytes at the IP layer per byte of data, in full segments."""
        return 1 + self.header_bytes / self.full_bytes

    @property
    def duration_s(self) -> float:
        """Time from the first to the last row."""
        ends = [times[-1] for times in (self.segments.time_s, self.returned.time_s) if len(times)]
        return float(max(ends, default=0.0))


def of(inspect_row: Mapping[str, Any], rows: Mapping[str, Any], file: Mapping[str, Any]) -> CapturedFlow:
    """Return a flow from what the core says of it and of its file, and its segments in columns."""
    column = {name: np.frombuffer(rows[name], "<i8") for name in rows if isinstance(rows[name], bytes)}
    times = column["time_ns"]
    origin = int(times[0]) if len(times) else 0
    seconds = (times - origin) / 1e9
    acks = column["kind"] == ACKNOWLEDGEMENT
    data = ~acks & (column["kind"] != PROBE)
    segments = _segments({name: values[data] for name, values in column.items()}, seconds[data])
    back = {name: values[acks] for name, values in column.items()}
    clean = (back["rtt_ns"] != NONE) & (back["echoed"] == 0)
    returned = AckSeries(
        seconds[acks],
        back["position"],
        back["delivered"],
        back["in_flight"],
        np.where(clean, back["rtt_ns"] / 1e9, np.nan),
        np.where(back["window"] == NONE, np.nan, back["window"].astype(float)),
        back["marked"] == 1,
    )
    limited = {name: float(value) for name, value in inspect_row["limited_s"].items()}
    trips = inspect_row["rtt_ms"]
    quantiles = tuple(trips[name] / 1e3 for name in ("p5", "p50", "p95") if trips[name] is not None)
    headers = segments.ip_bytes - segments.bytes
    limited_s_total = sum(limited.values())
    full = int(rows["full_bytes"])
    single = segments.bytes <= full
    return CapturedFlow(
        number=inspect_row["flow"],
        name=inspect_row["label"],
        place=inspect_row["place"],
        origin_ns=origin,
        full_bytes=max(1, full),
        header_bytes=int(np.median(headers[single])) if single.any() else 52,
        opening_s=None if rows["opening_ns"] is None else rows["opening_ns"] / 1e9,
        ecn=inspect_row["ecn"],
        segments=segments,
        returned=returned,
        cut=bool(rows["left_out"]),
        trips_s=quantiles,
        receiver_limited=None
        if limited["unknown"] >= limited_s_total
        else limited["receiver"] / limited_s_total,
        rtt_method=trips["method"],
        clock_steps=file["clock_steps"],
        queue_drops=file.get("queue_drops", 0),
    )


def _segments(column: Mapping[str, Integers], seconds: Floats) -> Segments:
    start, count = column["position"], column["bytes"]
    again = column["kind"] == AGAIN
    lost_bytes = np.zeros(len(start), np.int64)
    repaired = again & np.isin(column["verdict"], (NEEDED, UNKNOWN))
    fresh = np.flatnonzero(~again)
    begins = start[fresh]
    copies: dict[int, int] = {}
    for row in np.flatnonzero(again):
        first, last = int(start[row]), int(start[row] + count[row])
        if repaired[row]:
            earlier = copies.get(first)
            if earlier is not None:
                lost_bytes[earlier] = min(count[earlier], lost_bytes[earlier] + count[row])
            else:
                at = int(np.searchsorted(begins, first, "right")) - 1
                while 0 <= at < len(fresh) and begins[at] < last:
                    whole = fresh[at]
                    overlap = min(last, begins[at] + count[whole]) - max(first, begins[at])
                    if overlap > 0 and whole < row:
                        lost_bytes[whole] = min(count[whole], lost_bytes[whole] + overlap)
                    at += 1
        copies[first] = int(row)
    return Segments(
        seconds,
        start,
        count,
        column["ip_bytes"],
        again,
        lost_bytes,
        column["marked"] == 1,
        column["in_flight"],
    )
