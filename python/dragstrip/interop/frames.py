"""The figures of an output folder as a table for pandas, polars or Arrow."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io.files import read_json
from dragstrip.model.recording import TABLES, read
from dragstrip.studies.sweep import dataset

FIGURES = "figures"
ARROW = "pyarrow"
KINDS = ("pandas", "polars", ARROW)


def load(folder: str | Path, table: str = FIGURES, *, kind: str = ARROW) -> Any:
    """Return the figures of a run's or a sweep's output folder, as an Arrow table or a DataFrame.

    For a run there is one row per flow; a sweep gives its dataset (docs/how-to/sweeps.md). Whatever varied
    has a column, named as in a sweep's dataset: `path_rtt_ns` for `path.rtt`.

    `table` selects one of the recordings' tables instead (docs/reference/recording.md), such as `samples`:
    the rows of all runs, preceded by the run's number and name and what varied. Units are in the names of the
    columns. `kind` is `pyarrow`, `pandas` or `polars`.

    Raises `BadInputError` if there is no such folder or table, and `DragstripError` if `kind` is not
    installed.
    """
    place = Path(folder)
    if (place / "sweep.json").is_file():
        if table != FIGURES:
            expected = f'"{FIGURES}": a sweep keeps no recordings of its runs'
            raise BadInputError("table", table, expected, str(place))
        rows = dataset.read(place)
    elif table == FIGURES:
        rows = _rows(place)
    elif table in TABLES:
        rows = _recorded(place, table)
    else:
        table_names = ", ".join([FIGURES, *TABLES])
        raise BadInputError("table", table, f"one of {table_names}", str(place))
    return _converted(rows, kind)


def _result(place: Path) -> dict[str, Any]:
    if not (place / "result.json").is_file():
        raise BadInputError("", None, "is not the output folder of a run or a sweep", str(place))
    return read_json(place / "result.json")


def _rows(place: Path) -> pa.Table:
    document = _result(place)
    rows: list[dict[str, Any]] = []
    for number, (run, varied) in enumerate(zip(document["runs"], _varied(place, document), strict=True)):
        scalars = {key: value for key, value in run.items() if not isinstance(value, dict | list)}
        probe = {f"probe_{key}": value for key, value in _flat((run["probes"] or [{}])[0]).items()}
        rows += ({"run": number, **varied, **scalars, **_flat(flow), **probe} for flow in run["flows"])
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _varied(place: Path, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return for each run its repeat, and what the experiment varied, by column."""
    files = (place / run["recording"] / "provenance.json" for run in document["runs"])
    provenances = [read_json(file) if file.is_file() else {} for file in files]
    settings = [provenance.get("settings") or {} for provenance in provenances]
    paths = dict.fromkeys(path for run_settings in settings for path in run_settings)
    values = {
        path: [run_settings[path] for run_settings in settings if path in run_settings] for path in paths
    }
    columns = dataset.named_columns(values)
    return [
        {
            "repeat": provenance.get("repeat", 0),
            **{
                name: dataset.in_base_units(run_settings[path], suffix) if path in run_settings else None
                for path, name, suffix in columns
            },
        }
        for provenance, run_settings in zip(provenances, settings, strict=True)
    ]


def _flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten `{"rtt_ms": {"p50": 1}}` to `{"rtt_ms_p50": 1}`; lists are left out."""
    flattened: dict[str, Any] = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            flattened |= _flat(value, f"{prefix}{key}_")
        elif not isinstance(value, list):
            flattened[prefix + key] = value
    return flattened


def _recorded(place: Path, table: str) -> pa.Table:
    document = _result(place)
    parts = []
    for number, (run, varied) in enumerate(zip(document["runs"], _varied(place, document), strict=True)):
        rows = read(place / run["recording"])[table]
        before = {"run": number, "scenario": run["scenario"], **varied}
        columns = {name: pa.repeat(pa.scalar(value), rows.num_rows) for name, value in before.items()}
        parts.append(pa.table({**columns, **dict(zip(rows.column_names, rows.columns, strict=True))}))
    if not parts:
        raise BadInputError("", None, "holds no run", str(place))
    return pa.concat_tables(parts, promote_options="permissive")


def _converted(table: pa.Table, kind: str) -> Any:
    if kind not in KINDS:
        raise BadInputError("kind", kind, f"one of {', '.join(KINDS)}", "dragstrip.load")
    if kind == ARROW:
        return table
    try:
        module = importlib.import_module(kind)
    except ImportError:
        raise DragstripError(f"{kind} is not installed: pip install {kind}") from None
    return table.to_pandas() if kind == "pandas" else module.from_arrow(table)
