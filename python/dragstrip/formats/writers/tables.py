"""Writer of CSV: a file for each table that has rows, with the recording's own columns."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.csv as csv

from dragstrip.recording import TABLES, Recording


def write(recording: Recording, stem: str) -> dict[str, bytes]:
    """Return the tables as files, each under its name."""
    made = {}
    for name in TABLES:
        table = recording[name]
        if not table.num_rows:
            continue
        plain = [
            column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
            for column in table.columns
        ]
        file = io.BytesIO()
        csv.write_csv(pa.table(dict(zip(table.column_names, plain, strict=True))), file)
        made[f"{stem}.{name}.csv"] = file.getvalue()
    return made
