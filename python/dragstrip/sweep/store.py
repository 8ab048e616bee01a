"""The store: what is known of every run that was ever made here, by key.

A folder of Parquet parts with names of their own: two stores are merged by copying their files into one
folder. A run that stands in two parts counts once. One row per flow and run; a run that has failed has one
row without a flow.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dragstrip import files

FLOW_FIGURES = (
    "goodput_bps",
    "throughput_bps_p50",
    "rtt_ms_p5",
    "rtt_ms_p50",
    "rtt_ms_p95",
    "retransmits",
    "segments_sent",
    "share",
    "power_bps_per_ms",
)
RUN_FIGURES = (
    "goodput_bps_total",
    "jain",
    "queue_bytes_p50",
    "queue_bytes_p95",
    "queue_bytes_max",
    "dropped",
    "marked",
    "probe_ms_p50",
    "probe_ms_p95",
    "probe_lost",
)
FIGURES = (*FLOW_FIGURES, *RUN_FIGURES)

Columns = tuple[tuple[str, pa.DataType], ...]

IDENTITY: Columns = (
    ("key", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("output", pa.string()),
    ("engine", pa.string()),
    ("version", pa.string()),
    ("seed", pa.int64()),
    ("recording_sha256", pa.string()),
    ("flow", pa.int32()),
    ("label", pa.string()),
    ("cc", pa.string()),
)
COST: Columns = (
    ("cpu_s", pa.float64()),
    ("wall_s", pa.float64()),
    ("attempts", pa.int32()),
    ("host", pa.string()),
)
SCHEMA = pa.schema(
    [
        *IDENTITY,
        *((name, pa.float64()) for name in FIGURES),
        *COST,
        ("scenario", pa.string()),
    ],
    metadata={"dragstrip_format": "1"},
)
RESULTS = [name for name in SCHEMA.names if name not in {"scenario", "output", *(name for name, _ in COST)}]
"""The columns that are the same wherever and whenever a run was made (a crash's last output is not)."""

FLUSH_S = 1.0
WAITING_MAX = 2_000
"""Rows that wait in memory."""
ROWS_MAX = 20_000
"""Of a row group; a part of fewer rows is small."""
PARTS_MAX = 64
"""More parts than this are made into fewer."""

Row = dict[str, Any]


class Store:
    """A folder of parts, and the rows that are not in it yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting: list[Row] = []
        self.flushed = time.monotonic()

    def open(self) -> None:
        """Makes the folder, removes what a killed sweep left behind."""
        files.make_folder(self.folder)
        files.remove_drafts(self.folder)

    def add(self, rows: Iterable[Row]) -> None:
        """Keeps a run's rows; they reach the disk within about a second."""
        self.waiting += rows
        if len(self.waiting) >= WAITING_MAX or time.monotonic() - self.flushed >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Writes what is waiting as a part."""
        self.flushed = time.monotonic()
        if self.waiting:
            table = pa.Table.from_pylist(self.waiting, schema=SCHEMA)
            files.write_whole(self._new_part(), lambda draft: _write(table, draft))
            self.waiting = []

    def _new_part(self) -> Path:
        return self.folder / f"{uuid.uuid4().hex}.parquet"

    def parts(self) -> list[Path]:
        """The parts, by name."""
        return sorted(self.folder.glob("*.parquet"))

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Every part's columns, a row group at a time; a damaged part is named and left out."""
        for part in self.parts():
            yield from read_part(part, columns)

    def keys(self, statuses: Sequence[str] | None = None) -> set[bytes]:
        """The runs that are here (those with one of these statuses)."""
        found: set[bytes] = set()
        for table in self.tables(["key", "status"]):
            for key, status in zip(table["key"].to_pylist(), table["status"].to_pylist(), strict=True):
                if statuses is None or status in statuses:
                    found.add(bytes.fromhex(str(key)))
        return found

    def compact(self, least: int = PARTS_MAX) -> None:
        """Makes few parts of many. The old ones go when the new one is there: nothing is ever missing."""
        small = [part for part in self.parts() if _rows(part) < ROWS_MAX]
        if len(small) < least:
            return
        good: list[Path] = []

        def write(draft: Path) -> None:
            with pq.ParquetWriter(draft, SCHEMA, compression="zstd") as writer:
                gathered: list[pa.Table] = []
                for part in small:
                    tables = list(read_part(part, SCHEMA.names))
                    if not tables:
                        continue
                    good.append(part)
                    gathered += tables
                    if sum(table.num_rows for table in gathered) >= ROWS_MAX:
                        writer.write_table(pa.concat_tables(gathered))
                        gathered = []
                if gathered:
                    writer.write_table(pa.concat_tables(gathered))

        files.write_whole(self._new_part(), write)
        for part in good:
            part.unlink(missing_ok=True)


def _write(table: pa.Table, draft: Path) -> None:
    pq.write_table(table, draft, compression="zstd")


def _rows(part: Path) -> int:
    try:
        return pq.read_metadata(part).num_rows
    except (OSError, pa.ArrowException):
        return ROWS_MAX


def read_part(part: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """A part's columns in our schema; a column that an older version did not write has no values."""
    try:
        with pq.ParquetFile(part) as file:
            known = [name for name in columns if name in file.schema_arrow.names]
            for group in range(file.num_row_groups):
                yield _conformed(file.read_row_group(group, columns=known), columns)
    except FileNotFoundError:
        return  # another sweep has just made fewer parts of many
    except (OSError, pa.ArrowException) as error:
        sys.stderr.write(f"warning: {part}: left out, cannot be read: {str(error).splitlines()[0]}\n")


def _conformed(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    fields = [SCHEMA.field(name) for name in columns]
    made = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in fields
    ]
    return pa.table(made, schema=pa.schema(fields))


def result_rows(key: bytes, text: str, seed: int, engine: str, version: str, answer: Row) -> list[Row]:
    """A run's rows from what its worker answered."""
    common: Row = {
        "key": key.hex(),
        "status": answer["status"],
        "reason": answer.get("reason"),
        "output": answer.get("output"),
        "engine": engine,
        "version": version,
        "seed": seed,
        "recording_sha256": answer.get("sha256"),
        "cpu_s": answer.get("cpu_s"),
        "wall_s": answer.get("wall_s"),
        "attempts": answer.get("attempts", 1),
        "host": answer.get("host") or os.uname().nodename,
        **answer.get("run", {}),
    }
    flows = answer.get("flows") or [{}]
    rows = [{**common, **flow} for flow in flows]
    rows[0]["scenario"] = text
    return rows
