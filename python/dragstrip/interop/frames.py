"""The figures of an output folder as a table for pandas, polars or Arrow."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.interop.result import FIGURES, Result, output_folder
from dragstrip.studies.sweep import dataset

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
    place = output_folder(folder)
    if (place / "sweep.json").is_file():
        if table != FIGURES:
            expected = f'"{FIGURES}": a sweep keeps no recordings of its runs'
            raise BadInputError("table", table, expected, str(place))
        rows = dataset.read(place)
    else:
        try:
            rows = Result.read(place).table(table)
        except BadInputError as error:
            raise error if error.source else error.at(str(place)) from None
    return _converted(rows, kind)


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
