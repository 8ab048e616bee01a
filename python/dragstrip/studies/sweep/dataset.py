"""The dataset: the runs of one sweep in its order, with a column for everything that varies.

`DIR/dataset/*.parquet` has one row per flow and run, and opens as one path in DuckDB, pandas and polars. It
does not depend on the machine, the time or the order of work: the same sweep and version give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import files, untrusted
from dragstrip.io.files import DamagedError
from dragstrip.studies.sweep.axes import column, quantity
from dragstrip.studies.sweep.grading import GradedClaim
from dragstrip.studies.sweep.plan import Index, Sweep
from dragstrip.studies.sweep.stats import cells_of_points
from dragstrip.studies.sweep.store import RESULTS, SCHEMA, Store

RUNS_AT_A_TIME = 20_000
"""Runs read from the store in one pass, which bounds the memory."""

FOLDER = "dataset"
WHOLE = "sweep.parquet"


def axis_columns(sweep: Sweep) -> list[tuple[str, str, str | None]]:
    """Return path, column and unit suffix of every varied path; the suffix of a text column is None."""
    values: dict[str, list[Any]] = {path: [] for path in sweep.columns()}
    for axis in sweep.axes:
        for level in axis.levels:
            assignments = level.assignments if axis.path == "sample" else {axis.path: level.label}
            for path, value in assignments.items():
                values[path].append(value)
    return named_columns(values)


def named_columns(values: Mapping[str, Sequence[Any]]) -> list[tuple[str, str, str | None]]:
    """Return path, column and unit suffix of every path with the values that it takes.

    The suffix of a text column is None, and so is that of values of several kinds.
    """
    columns: list[tuple[str, str, str | None]] = []
    for path, labels in values.items():
        kinds = {parsed[0] if (parsed := quantity(label)) else None for label in labels}
        suffix = kinds.pop() if len(kinds) == 1 else None
        columns.append((path, column(path, suffix or ""), suffix))
    return columns


def write(
    sweep: Sweep,
    index: Index,
    store: Store,
    folder: Path,
    shard: tuple[int, int] = (1, 1),
    least: int = 0,
    claims: Sequence[GradedClaim] = (),
) -> Path:
    """Write the dataset of the runs in the store, with the grades of `claims`, and return its file.

    Raises `DragstripError`, and keeps the existing file, if there are fewer runs than `least`.
    """
    files.make_folder(folder)
    files.remove_drafts(folder)
    name = WHOLE if shard[1] == 1 else f"shard-{shard[0]}-of-{shard[1]}.parquet"
    columns = axis_columns(sweep)
    schema = _schema(columns, claims)

    def fill(draft: Path) -> None:
        runs = 0
        with pq.ParquetWriter(draft, schema, compression="zstd", write_page_checksum=True) as writer:
            for table in _tables(sweep, index, store, shard, columns, schema, claims):
                writer.write_table(table)
                runs += len(pc.unique(table["run"]))
        if runs < least:
            raise DragstripError(
                f"{folder / name}: left as it is: {store.folder} has {runs:,} runs of this sweep, and "
                f"{least:,} are wanted; the sweep's own command makes what is missing"
            )

    files.write_whole(folder / name, fill)
    files.write_text(_checksum(folder / name), f"{files.sha256(folder / name)}  {name}\n")
    if name == WHOLE:
        for part in folder.glob("shard-*.parquet"):
            part.unlink(missing_ok=True)
            _checksum(part).unlink(missing_ok=True)
    return folder / name


def _checksum(part: Path) -> Path:
    """Return the hidden file with a part's SHA-256, in the format of sha256sum(1)."""
    return part.with_name(f".{part.name}.sha256")


def _schema(columns: list[tuple[str, str, str | None]], claims: Sequence[GradedClaim]) -> pa.Schema:
    fields: list[Any] = [("run", pa.int64()), ("repeat", pa.int32()), ("cell", pa.int64())]
    for _, name, suffix in columns:
        whole = suffix in ("_bps", "_ns", "_bytes")
        kind = pa.string() if suffix is None else pa.int64() if whole else pa.float64()
        fields.append((name, kind))
    fields += [SCHEMA.field(name) for name in RESULTS]
    for claim in claims:
        fields += zip(claim.columns(), (pa.float64(), pa.string()), strict=True)
    return pa.schema(fields, metadata={"dragstrip_format": "1"})


def _tables(
    sweep: Sweep,
    index: Index,
    store: Store,
    shard: tuple[int, int],
    columns: list[tuple[str, str, str | None]],
    schema: pa.Schema,
    claims: Sequence[GradedClaim],
) -> Iterator[pa.Table]:
    part, parts = shard
    cells = cells_of_points(sweep)
    for first in range(0, len(index), RUNS_AT_A_TIME):
        numbers = range(first, min(first + RUNS_AT_A_TIME, len(index)))
        mine = [n for n in numbers if int.from_bytes(index.key(n)[:4], "big") % parts == part - 1]
        if mine:
            yield _labelled(sweep, mine, _rows(index, mine, store), columns, schema, cells, claims)


def _rows(index: Index, numbers: list[int], store: Store) -> pa.Table:
    """Return the store's rows of these runs with the runs' numbers, in order and without duplicates."""
    keys = [index.key(number).hex() for number in numbers]
    key_set = pa.array(keys)
    matching_tables = []
    for table in store.tables(RESULTS):
        inside = table.filter(pc.is_in(table["key"], value_set=key_set))
        if inside.num_rows:
            matching_tables.append(inside)
    gathered = (
        pa.concat_tables(matching_tables) if matching_tables else pa.table([[]] * len(RESULTS), names=RESULTS)
    )
    return _expanded(gathered, keys, numbers)


def _expanded(rows: pa.Table, keys: list[str], numbers: list[int]) -> pa.Table:
    """Return one row per flow and run: a key that several runs share is repeated, a duplicate key is not.

    If a key has both a success and a failure, because the run was retried, the success counts.
    """
    by_key: dict[str, list[tuple[bool, int, int]]] = {}
    flows: list[Any] = rows["flow"].to_pylist()
    row_keys: list[Any] = rows["key"].to_pylist()
    good = [status == "ok" for status in rows["status"].to_pylist()]
    for place, key in enumerate(row_keys):
        by_key.setdefault(key, []).append((good[place], -1 if flows[place] is None else flows[place], place))
    row_places: list[int] = []
    owner: list[int] = []
    for key, number in zip(keys, numbers, strict=True):
        entries = by_key.get(key, [])
        best = max((entry[0] for entry in entries), default=False)
        places = {flow: place for ok, flow, place in reversed(entries) if ok == best}
        for flow in sorted(places):
            row_places.append(places[flow])
            owner.append(number)
    return rows.take(pa.array(row_places, pa.int64())).append_column("run", pa.array(owner, pa.int64()))


def _labelled(
    sweep: Sweep,
    numbers: list[int],
    rows: pa.Table,
    columns: list[tuple[str, str, str | None]],
    schema: pa.Schema,
    cells: npt.NDArray[np.int64],
    claims: Sequence[GradedClaim],
) -> pa.Table:
    runs = np.asarray(rows["run"].to_numpy(), dtype=np.int64)
    points, repeats = np.divmod(runs, sweep.repeat)
    distinct, where = np.unique(points, return_inverse=True)
    settings = [sweep.settings(int(point)) for point in distinct]
    labelled_columns: dict[str, Any] = {
        "run": rows["run"],
        "repeat": pa.array(repeats, pa.int32()),
        "cell": pa.array(cells[points], pa.int64()),
    }
    for path, name, suffix in columns:
        values = [in_base_units(setting[path], suffix) for setting in settings]
        labelled_columns[name] = pa.array(values, schema.field(name).type).take(pa.array(where))
    for name in RESULTS:
        labelled_columns[name] = rows[name].cast(SCHEMA.field(name).type)
    for claim in claims:
        for name, entry in zip(claim.columns(), (claim.figure, claim.grade), strict=True):
            entries = [entry(int(point)) for point in distinct]
            labelled_columns[name] = pa.array(entries, schema.field(name).type).take(pa.array(where))
    return pa.table([labelled_columns[name] for name in schema.names], schema=schema)


def in_base_units(label: Any, suffix: str | None) -> Any:
    """Return a value as its column has it: in the unit of the suffix, or as text."""
    if suffix is None:
        return label if isinstance(label, str) else repr(label)
    parsed = quantity(label)
    assert parsed is not None
    return round(parsed[1]) if suffix in ("_bps", "_ns", "_bytes") else parsed[1]


def read(folder: Path, columns: list[str] | None = None) -> pa.Table:
    """Return the dataset of a sweep's folder, or only some of its columns, as one table.

    Raises `BadInputError` if it is missing, and `DamagedError` if a part differs from what was written.
    """
    place = folder / FOLDER
    parts = [part for part in (place / WHOLE, *sorted(place.glob("shard-*.parquet"))) if part.exists()]
    if not parts:
        raise BadInputError("", None, "is missing: the dataset of a sweep", str(place / WHOLE))
    kinds = {
        "run": "int",
        "repeat": "int",
        "cell": "int",
        **{name: untrusted.kind_of(SCHEMA.field(name).type) for name in RESULTS},
    }
    tables = []
    for part in parts:
        _check(part)
        with untrusted.parquet(part, kinds) as (file, schema):
            column_names = columns or schema.names
            tables.append(untrusted.spelled_out(file.read(columns=column_names), schema, part))
    return pa.concat_tables(tables)


def _check(part: Path) -> None:
    checksum_file = _checksum(part)
    if checksum_file.exists() and untrusted.content(checksum_file, untrusted.KIB).split()[:1] != [
        files.sha256(part).encode()
    ]:
        advice = f"dragstrip report {part.parent.parent} writes it again"
        raise DamagedError(part, f"its SHA-256 is not the one in {checksum_file.name}", advice)


def runs_in(folder: Path) -> int:
    """Return the number of runs in the dataset of a sweep's folder; 0 if none can be read."""
    try:
        return len(pc.unique(read(folder, ["run"])["run"]))
    except (BadInputError, DamagedError, pa.ArrowException):
        return 0
