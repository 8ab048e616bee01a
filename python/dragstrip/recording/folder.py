"""A recording in a folder: a Parquet file per table, the scenario and its provenance.

The tables hold nothing of the machine or the hour: the same scenario and seed give the same bytes,
however many workers ran. Where and when it ran is in `provenance.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dragstrip import sums
from dragstrip.errors import BadInputError
from dragstrip.files import appearing, json_text, replacing
from dragstrip.outside import parquet, spelled_out
from dragstrip.recording.definition import FORMAT, SCHEMA
from dragstrip.recording.tables import TABLES, Recording, empty_column, empty_table

SCENARIO, PROVENANCE = "scenario.json", "provenance.json"
CAPTURES = "captures"
"""The folder of a run's packets, if they were captured."""


def write(recording: Recording, folder: Path, captures: Path | None = None) -> None:
    """Writes a recording in the present format, so that `folder` is there whole or not at all.

    `captures` is a folder of files on the same disk, which moves into it.
    """
    # The folder appears whole: its files need not.
    with replacing(folder) if folder.exists() else appearing(folder) as draft:
        for name in TABLES:
            table = recording[name].replace_schema_metadata({"dragstrip.format": str(FORMAT)})
            file = draft / f"{name}.parquet"
            pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        provenance = {"format": FORMAT, **recording.provenance}
        for name, content in ((SCENARIO, recording.scenario), (PROVENANCE, provenance)):
            # The command line among it may hold a path that is not UTF-8.
            text = json_text(content)
            (draft / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        sums.write(draft, [file.name for file in draft.iterdir()])
        if captures is not None:
            captures.rename(draft / CAPTURES)


def read(folder: Path) -> Recording:
    """Reads a recording of any format up to the present one.

    Tables that came later than its format are empty; the format is not in the provenance, because it is
    that of the files. Raises `BadInputError` for a file that is missing, none of ours or of a later format,
    `DamagedError` for one that is not what was written.
    """
    provenance = sums.read_json(folder, PROVENANCE)
    written = format_of(provenance, folder)
    provenance.pop("format", None)
    tables = {name: read_table(folder, name, written=written) for name in TABLES}
    return Recording(sums.read_json(folder, SCENARIO), tables, provenance)


def format_of(provenance: Mapping[str, Any], folder: Path) -> int:
    """The format that a recording was written in; raises `BadInputError` if this program cannot read it."""
    written = provenance.get("format", 1)
    if not isinstance(written, int) or isinstance(written, bool) or not 1 <= written <= FORMAT:
        expected = f"a format from 1 to {FORMAT}; a later one needs a later version of Dragstrip"
        raise BadInputError("format", written, expected, str(folder / PROVENANCE))
    return written


def read_table(
    folder: Path,
    name: str,
    columns: Sequence[str] | None = None,
    optional: Sequence[str] = (),
    written: int = FORMAT,
) -> pa.Table:
    """One table of a recording that was `written` in this format.

    `columns`: only these, each of which must be there, and of `optional` those that are there; all if none
    are named. Raises `BadInputError` for a file or a column that is missing and a file that is no table,
    `DamagedError` for one that is not what was written.
    """
    defined = SCHEMA[name]
    if min(column.since for column in defined.values()) > written:
        return empty_table(defined)
    path = folder / f"{name}.parquet"
    kinds = {column: described.kind for column, described in defined.items()}
    asked = None if columns is None else [*columns, *optional]
    try:
        sums.check(folder, path.name)
        with parquet(path, kinds, asked) as (file, schema):
            present = schema.names
            later = [it for it, column in defined.items() if column.since > written and it not in present]
            wanted = [column for column in present if column in defined]
            # A column under a wrong name is none that was left out: what stands in its place is not ours.
            foreign = any(column not in defined for column in present)
            needed = columns if columns is not None else defined if foreign else ()
            for column in needed:
                if column not in present and column not in later:
                    raise BadInputError(column, None, f"the table `{name}` lacks this column", str(path))
            if columns is not None:
                wanted = [column for column in (*columns, *optional) if column in present]
                later = [column for column in later if column in (*columns, *optional)]
            table = spelled_out(file.read(columns=wanted), schema, path)
    except BadInputError as error:
        if path.exists():
            raise
        raise BadInputError("", None, "this table of the recording is missing", str(path)) from error
    for column in later:
        table = table.append_column(column, empty_column(defined[column], table.num_rows))
    return table
