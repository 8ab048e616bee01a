"""What a file has: rows of the recording's tables, with the columns that it knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from dragstrip.errors import BadInputError
from dragstrip.recording import TABLES, Recording
from dragstrip.recording.definition import SCHEMA

Row: TypeAlias = dict[str, Any]

MOST = 2**62
"""Of a whole number in a table: nanoseconds of 146 years."""
ROWS_MAX = 10_000_000
NAME_MAX = 200
"""Characters of a label."""
_TYPES: Mapping[str, Any] = {
    "int": pa.int64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "float": pa.float64(),
}


@dataclass
class Found:
    """Rows, by table; the length in time; what is to be known of them."""

    flows: list[Row] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)
    received: list[Row] = field(default_factory=list)
    probes: list[Row] = field(default_factory=list)
    cc_state: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def flow(self, label: str, **known: Any) -> int:
        """Adds a flow; its number."""
        number = len(self.flows)
        self.flows.append({"flow": number, "label": label[:NAME_MAX], "protocol": "tcp", **known})
        return number

    def recording(self, provenance: Mapping[str, Any]) -> Recording:
        """The same as a recording; tables are in the order of time."""
        tables = {}
        for name in TABLES:
            rows: list[Row] = getattr(self, name, [])
            if name != "flows":
                rows = sorted(rows, key=lambda row: (row["time_ns"], row.get("flow", 0)))
            tables[name] = _table(name, rows)
        ends = [
            row["time_ns"]
            for rows in (self.samples, self.received, self.probes, self.cc_state)
            for row in rows
        ]
        ends += [row["stop_ns"] for row in self.flows if row.get("stop_ns") is not None]
        scenario = {"name": str(provenance.get("source", "")), "duration_ns": max(ends, default=0)}
        return Recording(scenario, tables, {**provenance, "notes": self.notes})


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    columns = {}
    for column, described in SCHEMA[name].items():
        kind = _TYPES[described.kind]
        values = pa.array([row.get(column) for row in rows], kind)
        columns[column] = values.dictionary_encode() if described.kind == "text" else values
    return pa.table(columns)


def number(value: object) -> float | None:
    """A finite number of a JSON document; none for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and abs(found) <= MOST else None


def whole(value: object, factor: float = 1) -> int | None:
    """A number times a factor, rounded, from 0 to `MOST`; -1 is how programs say that they do not know."""
    found = number(value)
    if found is None or found < 0 or found * factor > MOST:
        return None
    return round(found * factor)


def nanoseconds(said: str) -> int:
    """Decimal seconds such as `1700000000.123`, to nine digits behind the point exactly; at most `MOST`."""
    seconds, _, rest = said.partition(".")
    return min(int(seconds) * 1_000_000_000 + int(rest[:9].ljust(9, "0")), MOST)


def table(value: object) -> Row:
    """A JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: object, source: str, what: str) -> list[Any]:
    """A JSON list of limited length, or an empty one."""
    if not isinstance(value, list):
        return []
    if len(value) > ROWS_MAX:
        raise BadInputError(what, len(value), f"at most {ROWS_MAX} entries", source)
    return value


def text(value: object) -> str | None:
    """A short text, or none."""
    return value[:NAME_MAX] if isinstance(value, str) else None


def nothing(source: str, what: str) -> BadInputError:
    """A file of a known kind without what it should have."""
    return BadInputError("", None, f"has {what}", source)
