"""The figures of an output folder as a table for pandas, polars or Arrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io.files import read_json
from dragstrip.recording import TABLES, read
from dragstrip.sweep import dataset

FIGURES = "figures"
KINDS = ("pandas", "polars", "pyarrow")


def load(folder: str | Path, table: str = FIGURES, *, kind: str | None = None) -> Any:
    """Return the figures of a run's or a sweep's output folder, as a DataFrame or an Arrow table.

    For a run there is one row per flow; a sweep gives its dataset (docs/how-to/sweeps.md).

    `table` selects one of the recordings' tables instead (docs/reference/recording.md), such as `samples`:
    the rows of all runs, preceded by the run's number and name. Units are in the names of the columns. `kind`
    is `pandas`, `polars` or `pyarrow`; None takes the first that is installed.

    Raises `BadInputError` if there is no such folder or table, and `DragstripError` if `kind` is not
    installed.
    """
    place = Path(folder)
    if (place / "sweep.json").is_file():
        if table != FIGURES:
            expected = f'"{FIGURES}": a sweep keeps no recordings of its runs'
            raise BadInputError("table", table, expected, str(place))
        found = dataset.read(place)
    elif table == FIGURES:
        found = pa.Table.from_pylist(list(_rows(_result(place))))
    elif table in TABLES:
        found = _recorded(place, table)
    else:
        known = ", ".join([FIGURES, *TABLES])
        raise BadInputError("table", table, f"one of {known}", str(place))
    return _converted(found, kind)


def _result(place: Path) -> dict[str, Any]:
    if not (place / "result.json").is_file():
        raise BadInputError("", None, "is not the output folder of a run or a sweep", str(place))
    return read_json(place / "result.json")


def _rows(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for number, run in enumerate(document["runs"]):
        own = {key: value for key, value in run.items() if not isinstance(value, dict | list)}
        probe = {f"probe_{key}": value for key, value in _flat((run["probes"] or [{}])[0]).items()}
        for flow in run["flows"]:
            yield {"run": number, **own, **_flat(flow), **probe}


def _flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten `{"rtt_ms": {"p50": 1}}` to `{"rtt_ms_p50": 1}`; lists are left out."""
    found: dict[str, Any] = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}_")
        elif not isinstance(value, list):
            found[prefix + key] = value
    return found


def _recorded(place: Path, table: str) -> pa.Table:
    parts = []
    for number, run in enumerate(_result(place)["runs"]):
        rows = read(place / run["recording"])[table]
        rows = rows.add_column(0, "run", pa.array([number] * rows.num_rows, pa.int64()))
        parts.append(rows.add_column(1, "scenario", pa.array([run["scenario"]] * rows.num_rows, pa.string())))
    if not parts:
        raise BadInputError("", None, "holds no run", str(place))
    return pa.concat_tables(parts)


def _converted(table: pa.Table, kind: str | None) -> Any:
    if kind is not None and kind not in KINDS:
        raise BadInputError("kind", kind, f"one of {', '.join(KINDS)}", "dragstrip.load")
    for wanted in KINDS if kind is None else (kind,):
        try:
            module = importlib.import_module(wanted)
        except ImportError:
            continue
        if wanted == "pandas":
            return table.to_pandas()
        return module.from_arrow(table) if wanted == "polars" else table
    raise DragstripError(f"{kind} is not installed: pip install 'dragstrip[{kind}]'")
