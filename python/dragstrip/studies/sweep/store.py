"""The store: the figures of every run that was ever made here, by key.

It is a folder of Parquet parts, each named after the SHA-256 of its bytes. Two stores are merged by copying
their files into one folder, and a part that has changed since it was written is recognised by its name. A run
in two parts counts once. There is one row per flow and run, and one row without a flow for a failed run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import files, untrusted
from dragstrip.io.files import DamagedError, warn
from dragstrip.studies.sweep.build import run_key

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
    "size_bytes",
    "fct_s",
    "slowdown",
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
FORMAT = "3"
"""Format of the parts; parts of any other are refused."""
SCHEMA = pa.schema(
    [
        *IDENTITY,
        *((name, pa.float64()) for name in FIGURES),
        *COST,
        ("scenario", pa.string()),
        ("claims", pa.string()),
        ("claim_values", pa.string()),
    ],
    metadata={"dragstrip_format": FORMAT},
)
_TEXTS = {"scenario", "claims", "claim_values", "output"}
RESULTS = [name for name in SCHEMA.names if name not in {*_TEXTS, *(name for name, _ in COST)}]
"""Columns that do not depend on where and when a run was made, unlike a crash's last output."""

FLUSH_S = 1.0
WAITING_MAX = 2_000
"""Rows kept in memory, at most."""
ROWS_MAX = 20_000
"""Rows of a row group, at most; a part with fewer rows counts as small."""
PARTS_MAX = 64
"""Number of small parts from which they are merged."""
TEXTS_AT_A_TIME = 1_000
"""Scenarios whose keys are checked at once, which bounds the memory."""

ENDING = ".parquet"

Row = dict[str, Any]
Found = Callable[[DamagedError], object]
"""Called with the error of a damaged part, which is then left out unless the function raises it."""


def refuse(error: DamagedError) -> None:
    """Raise the error, for callers that need every part."""
    raise error


class Store:
    """A folder of parts, and the rows that are not written yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting: list[Row] = []
        self.flushed = time.monotonic()
        self._sound: dict[str, tuple[int, int, int]] = {}
        """Parts whose checksums have been verified, with size and times of the file at that moment."""

    def open(self) -> None:
        """Make the folder and remove what a killed sweep left behind."""
        files.make_folder(self.folder)
        files.remove_drafts(self.folder)

    def add(self, rows: Iterable[Row]) -> None:
        """Add a run's rows, which are written within about a second."""
        self.waiting += rows
        if len(self.waiting) >= WAITING_MAX or time.monotonic() - self.flushed >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write the waiting rows as a part."""
        self.flushed = time.monotonic()
        if self.waiting:
            table = pa.Table.from_pylist(self.waiting, schema=SCHEMA)
            files.write_by_hash(self.folder, ENDING, lambda draft: _write(table, draft))
            self.waiting = []

    def parts(self) -> list[Path]:
        """Return the parts by name."""
        return sorted(self.folder.glob(f"*{ENDING}"))

    def tables(self, columns: Sequence[str], damaged: Found = refuse) -> Iterator[pa.Table]:
        """Yield these columns of every part, one row group at a time."""
        for part in self.parts():
            try:
                self._check(part)
                yield from read_part(part, columns)
            except FileNotFoundError:
                pass  # another sweep has just made fewer parts of many
            except DamagedError as error:
                damaged(error)

    def keys(self, statuses: Sequence[str] | None = None, damaged: Found = warn) -> set[bytes]:
        """Return the keys of the runs that are done, or only those with one of `statuses`.

        A part counts if its bytes match its name and every key in it that of its scenario.
        """
        stored_keys: set[bytes] = set()
        for part in self.parts():
            try:
                self._check(part)
                stored_keys |= _keys(part, statuses)
            except FileNotFoundError:
                pass
            except DamagedError as error:
                damaged(error)
        return stored_keys

    def set_aside(self, error: DamagedError) -> None:
        """Rename a damaged part, so that it is reported once and its runs are made again."""
        aside = error.path.with_name(f"{error.path.name}.damaged")
        try:
            error.path.replace(aside)
        except OSError as why:
            raise files.NotWrittenError(aside, why) from why
        warn(DamagedError(error.path, f"{error.reason}; now {aside.name}, and its runs are made again"))

    def _check(self, part: Path) -> None:
        """Raise `DamagedError` for a part whose bytes do not match its name."""
        try:
            stands = part.stat()
            state = (stands.st_size, stands.st_mtime_ns, stands.st_ctime_ns)
            if self._sound.get(part.name) == state:
                return
            if files.sha256(part) != part.stem:
                raise DamagedError(part, "its SHA-256 is not the one in its name")
        except BadInputError as error:
            if not part.exists():
                raise FileNotFoundError(part) from None
            raise DragstripError(str(error)) from error
        self._sound[part.name] = state

    def compact(self, least: int = PARTS_MAX) -> None:
        """Merge small parts if there are at least `least`; old parts are removed once the new one exists."""
        small = [part for part in self.parts() if _rows(part) < ROWS_MAX]
        if len(small) < least:
            return
        good: list[Path] = []

        def write(draft: Path) -> None:
            with pq.ParquetWriter(draft, SCHEMA, compression="zstd", write_page_checksum=True) as writer:
                gathered: list[pa.Table] = []
                for part in small:
                    try:
                        self._check(part)
                        tables = list(read_part(part, SCHEMA.names))
                    except (FileNotFoundError, DamagedError):
                        continue  # whoever needs its runs says so
                    good.append(part)
                    gathered += tables
                    if sum(table.num_rows for table in gathered) >= ROWS_MAX:
                        writer.write_table(pa.concat_tables(gathered))
                        gathered = []
                if gathered:
                    writer.write_table(pa.concat_tables(gathered))

        compacted_part = files.write_by_hash(self.folder, ENDING, write)
        for part in good:
            if part != compacted_part:
                part.unlink(missing_ok=True)


def _write(table: pa.Table, draft: Path) -> None:
    pq.write_table(table, draft, compression="zstd", write_page_checksum=True)


def _rows(part: Path) -> int:
    try:
        with untrusted.parquet(part, _KINDS, ["key"]) as (file, _):
            rows: int = file.metadata.num_rows
            return rows
    except BadInputError:
        return ROWS_MAX


def _keys(part: Path, statuses: Sequence[str] | None) -> set[bytes]:
    """Return a part's keys (with one of these statuses), each checked against its scenario."""
    part_keys: set[bytes] = set()
    columns = ["key", "status", "scenario", "engine", "version", "claims"]
    for table in read_part(part, columns):
        for slice_ in table.to_batches(max_chunksize=TEXTS_AT_A_TIME):
            rows = zip(*(slice_[name].to_pylist() for name in columns), strict=True)
            for key, status, text, engine, version, claims in rows:
                if text is None:
                    continue  # another flow of the same run
                expected_key = run_key(text, engine, version, claims or "")
                if expected_key.hex() != key:
                    raise DamagedError(part, f"the key {key} is not that of the scenario beside it")
                if statuses is None or status in statuses:
                    part_keys.add(expected_key)
    return part_keys


_KINDS = {name: untrusted.kind_of(SCHEMA.field(name).type) for name in SCHEMA.names}


def read_part(part: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield these columns of a part, one row group at a time.

    Raises `DamagedError` for a part that cannot be read, is of another format or lacks a column, and
    `FileNotFoundError` if there is none.
    """
    try:
        with untrusted.parquet(part, _KINDS, columns) as (file, schema):
            _expect_format(part, schema, columns)
            for group in range(file.num_row_groups):
                table = untrusted.spelled_out(file.read_row_group(group, columns=list(columns)), schema, part)
                yield _conformed(table, columns)
    except BadInputError as error:
        if not part.exists():
            raise FileNotFoundError(part) from error
        raise DamagedError(part, f"no part of a store: {error.explanation}") from error


def _expect_format(part: Path, schema: pa.Schema, columns: Sequence[str]) -> None:
    metadata = schema.metadata or {}
    part_format = metadata.get(b"dragstrip_format", b"none").decode(errors="replace")
    if part_format != FORMAT:
        raise DamagedError(part, f"its format is {part_format!r}, and this version reads {FORMAT!r} alone")
    if missing := [name for name in columns if name not in schema.names]:
        raise DamagedError(part, f"it lacks the column {missing[0]}")


def _conformed(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    fields = [SCHEMA.field(name) for name in columns]
    return pa.table([table[field.name].cast(field.type) for field in fields], schema=pa.schema(fields))


def result_rows(
    key: bytes, text: str, seed: int, engine: str, version: str, answer: Row, claims: str = ""
) -> list[Row]:
    """Return a run's rows from its worker's answer; `claims` is what claims measure in it, as JSON."""
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
    if claims:
        rows[0]["claims"] = claims
        rows[0]["claim_values"] = json.dumps(answer["claims"]) if "claims" in answer else None
    return rows
