"""Writer of CSV: a file for each table that has rows, with the recording's own columns."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from dragstrip.io.untrusted import FORMULA
from dragstrip.model.recording import TABLES, Recording


def write(recording: Recording, stem: str) -> dict[str, bytes]:
    """Return the tables as files, each under its name.

    Texts that a spreadsheet would take for formulas stand behind an apostrophe.
    """
    files = {}
    for name in TABLES:
        table = recording[name]
        if not table.num_rows:
            continue
        plain = [_plain(column) for column in table.columns]
        file = io.BytesIO()
        csv.write_csv(pa.table(dict(zip(table.column_names, plain, strict=True))), file)
        files[f"{stem}.{name}.csv"] = file.getvalue()
    return files


def _plain(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return a column of a table for people."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_string(column.type):
        return column
    return pc.replace_substring_regex(column, pattern=f"^({FORMULA.pattern})", replacement=r"'\1")
