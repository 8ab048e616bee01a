"""The content of another program's file: rows of the recording's tables, with the known columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from dragstrip.errors import BadInputError
from dragstrip.model.recording import TABLES, Recording
from dragstrip.model.recording.definition import SCHEMA

Row: TypeAlias = dict[str, Any]

MOST = 2**62
"""Largest whole number in a table: nanoseconds of 146 years."""
ROWS_MAX = 10_000_000
LOST_MAX = 250_000
"""Requests without an answer that get a row, at most; one line may claim any number of them."""
WRAP = 1 << 16
"""Modulus of the sequence numbers of pings, which have 16 bits."""
IDLE, DOWNLOADING, UPLOADING, BOTH_WAYS = "idle", "during download", "during upload", "during both"
"""Names of the probes of a file that states under which load it measured them."""
NAME_MAX = 200
"""Characters of a label, at most."""
_TYPES: Mapping[str, Any] = {
    "int": pa.int64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "float": pa.float64(),
}


@dataclass
class Measurements:
    """Rows by table, and notes about them.

    `reported` has, by flow, figures that the other program computed, as `results.measures.flow_figures` takes
    them: `measured_s`, `goodput_bps` and `rtt_ms` with `min`, `mean` and `max`; `disciplines` the settings
    and counts of queues; `summaries`, by `probe` and `target`, what a file has of requests that it does not
    list.
    """

    flows: list[Row] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)
    received: list[Row] = field(default_factory=list)
    probes: list[Row] = field(default_factory=list)
    cc_state: list[Row] = field(default_factory=list)
    queues: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reported: dict[int, Row] = field(default_factory=dict)
    disciplines: list[Row] = field(default_factory=list)
    rtts: list[Row] = field(default_factory=list)
    summaries: list[Row] = field(default_factory=list)
    lost_requests: int = 0
    packet_loss_share: float | None = None
    """Share of a speed test's own datagrams that were lost, where the file has it."""
    began_s: float | None = None
    """Time 0 of the rows, in seconds since 1970, where the file has it."""

    def probe(self, time_ns: int, probe: str, target: str, rtt_ns: int | None) -> None:
        """Add a request and its round trip, None if it was lost."""
        self.lost_requests += rtt_ns is None
        row = {"probe": probe, "target": target, "rtt_ns": rtt_ns, "lost": rtt_ns is None}
        self.probes.append({"time_ns": time_ns, **row})

    def summary(
        self,
        time_ns: int,
        probe: str,
        target: str,
        rtt_ms: float | None,
        extremes_ms: tuple[float | None, float | None] = (None, None),
        counts: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Add requests of which the file has an average, perhaps extremes and the numbers sent and lost.

        The probe gets one row, with the average.
        """
        self.probe(time_ns, probe, target, whole(rtt_ms, 1e6))
        least, largest = extremes_ms
        figures = {"min": least, "mean": rtt_ms, "max": largest}
        self.summaries.append(
            {"probe": probe, "target": target, "sent": counts[0], "lost": counts[1], "rtt_ms": figures}
        )

    def flow(self, label: str, **columns: Any) -> int:
        """Add a flow and return its number."""
        number = len(self.flows)
        self.flows.append({"flow": number, "label": label[:NAME_MAX], "protocol": "tcp", **columns})
        return number

    def recording(self, provenance: Mapping[str, Any]) -> Recording:
        """Return the rows as a recording, with every table in order of time."""
        tables = {}
        for name in TABLES:
            rows: list[Row] = getattr(self, name, [])
            if name != "flows":
                rows = sorted(rows, key=lambda row: (row["time_ns"], row.get("flow", 0)))
            tables[name] = _table(name, rows)
        ends = [
            row["time_ns"]
            for rows in (self.samples, self.received, self.probes, self.cc_state, self.rtts)
            for row in rows
        ]
        ends += [row["stop_ns"] for row in self.flows if row.get("stop_ns") is not None]
        scenario = {"name": str(provenance.get("source", "")), "duration_ns": max(ends, default=0)}
        facts = {**provenance, "notes": self.notes}
        if self.reported:
            facts["reported"] = {str(flow): figures for flow, figures in self.reported.items()}
        if self.began_s is not None:
            facts["began_s"] = self.began_s
        if self.summaries:
            facts["summaries"] = self.summaries
        if self.packet_loss_share is not None:
            facts["packet_loss_share"] = self.packet_loss_share
        if self.disciplines:
            facts["disciplines"] = self.disciplines
        return Recording(scenario, tables, facts)


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    columns = {}
    for column, described in SCHEMA[name].items():
        kind = _TYPES[described.kind]
        values = pa.array([row.get(column) for row in rows], kind)
        columns[column] = values.dictionary_encode() if described.kind == "text" else values
    return pa.table(columns)


def number(value: object) -> float | None:
    """Return a finite number of a JSON document, and None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        finite = float(value)
    except OverflowError:
        return None
    return finite if math.isfinite(finite) and abs(finite) <= MOST else None


def whole(value: object, factor: float = 1) -> int | None:
    """Return a number times `factor`, rounded, or None outside 0 to `MOST`; programs write -1 for unknown."""
    finite = number(value)
    if finite is None or finite < 0 or finite * factor > MOST:
        return None
    return round(finite * factor)


def unwrapped(number: int, before: int) -> int:
    """Return a 16-bit sequence number as one that counts on, nearest to the one before."""
    return number + WRAP * ((before - number + WRAP // 2) // WRAP)


def nanoseconds(decimal_s: str) -> int:
    """Convert decimal seconds such as `1700000000.123` exactly, to nine decimals and at most `MOST`."""
    seconds, _, rest = decimal_s.partition(".")
    return min(int(seconds) * 1_000_000_000 + int(rest[:9].ljust(9, "0")), MOST)


def table(value: object) -> Row:
    """Return a JSON object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def entries(value: object, source: str, field_name: str) -> list[Any]:
    """Return a JSON list, or an empty one for anything else; raises `BadInputError` if it is too long."""
    if not isinstance(value, list):
        return []
    if len(value) > ROWS_MAX:
        raise BadInputError(field_name, len(value), f"at most {ROWS_MAX} entries", source)
    return value


def text(value: object) -> str | None:
    """Return a text of at most `NAME_MAX` characters, or None for anything else."""
    return value[:NAME_MAX] if isinstance(value, str) else None


def missing_content(source: str, defect: str) -> BadInputError:
    """Return the error for a file of a known format without the expected content."""
    return BadInputError("", None, f"has {defect}", source)
