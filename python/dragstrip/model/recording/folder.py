"""A recording in a folder: one Parquet file per table, the scenario and its provenance.

The tables do not depend on the machine or the time: the same scenario and seed give the same bytes, whatever
the number of workers. `provenance.json` says where and when the run was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dragstrip.errors import BadInputError, Raw
from dragstrip.io import checksums
from dragstrip.io.files import appearing, json_text, replacing
from dragstrip.io.untrusted import parquet, spelled_out
from dragstrip.model.recording.definition import FORMAT, LATER, SCHEMA
from dragstrip.model.recording.tables import TABLES, Recording, empty_table

SCENARIO, PROVENANCE = "scenario.json", "provenance.json"
CAPTURES = "captures"
"""Name of the folder with a run's packet captures, if any."""


def write(recording: Recording, folder: Path, captures: Path | None = None) -> None:
    """Write a recording to `folder` atomically, in the current format; raises `NotWrittenError`.

    `captures` is a folder of files on the same disk that is moved into the recording.
    """
    import pyarrow.parquet as pq  # not for a recording that stays in memory

    # The folder appears whole: its files need not.
    with replacing(folder) if folder.exists() else appearing(folder) as draft:
        for name in TABLES:
            if name in LATER and not recording[name].num_rows:
                continue
            table = recording[name].replace_schema_metadata({"dragstrip.format": str(FORMAT)})
            pq.write_table(table, draft / f"{name}.parquet", **_encoding(table))
        provenance = {"format": FORMAT, **recording.provenance}
        for name, content in ((SCENARIO, recording.scenario), (PROVENANCE, provenance)):
            # The command line among it may hold a path that is not UTF-8.
            text = json_text(content)
            (draft / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        checksums.write(draft, [file.name for file in draft.iterdir()])
        if captures is not None:
            captures.rename(draft / CAPTURES)


SMALL_BYTES = 1 << 20
"""Size in memory below which a table is compressed by Snappy: zstd prepares itself anew for each column."""


def _encoding(table: pa.Table) -> dict[str, Any]:
    """Return how a table is encoded, as options of `pyarrow.parquet.write_table`.

    Integers are differences to the row before: times and counters grow in steps, which take a few bits each.
    """
    return {
        "compression": "snappy" if table.nbytes < SMALL_BYTES else "zstd",
        "write_page_checksum": True,
        "use_dictionary": [field.name for field in table.schema if pa.types.is_dictionary(field.type)],
        "column_encoding": {
            field.name: "DELTA_BINARY_PACKED" for field in table.schema if pa.types.is_integer(field.type)
        },
    }


def read(folder: Path) -> Recording:
    """Read a recording.

    The format is not in the provenance that this returns, because it is the files' own. Raises
    `BadInputError` for a file that is missing, of another kind or of another format, and `DamagedError` for a
    file that differs from what was written.
    """
    provenance = checksums.read_json(folder, PROVENANCE)
    check_format(provenance, folder)
    provenance.pop("format", None)
    tables = {name: read_table(folder, name) for name in TABLES}
    return Recording(checksums.read_json(folder, SCENARIO), tables, provenance)


def check_format(provenance: Mapping[str, Any], folder: Path) -> None:
    """Raise `BadInputError` for a recording that was not written in the format that this program reads."""
    written_format = provenance.get("format", FORMAT)
    if written_format is True or written_format != FORMAT:
        expected = f"format {FORMAT}; this recording was made by another version of Dragstrip"
        raise BadInputError("format", Raw(json.dumps(written_format)), expected, str(folder / PROVENANCE))


def read_table(
    folder: Path,
    name: str,
    columns: Sequence[str] | None = None,
    optional: Sequence[str] = (),
) -> pa.Table:
    """Read one table of a recording.

    A table of `LATER` without a file has no rows. Only the columns in `columns` are read, each of which must
    exist, and those of `optional` that exist; None reads all. Raises `BadInputError` if the file or a column
    is missing or the file is no table, and `DamagedError` if the file differs from what was written.
    """
    defined = SCHEMA[name]
    path = folder / f"{name}.parquet"
    if name in LATER and not path.exists() and path.name not in (checksums.read(folder) or {}):
        return empty_table(defined)
    kinds = {column: described.kind for column, described in defined.items()}
    requested = None if columns is None else [*columns, *optional]
    try:
        checksums.check(folder, path.name)
        with parquet(path, kinds, requested) as (file, schema):
            present = schema.names
            selected = [column for column in present if column in defined]
            # A column under a wrong name is none that was left out: what stands in its place is not ours.
            foreign = any(column not in defined for column in present)
            needed = columns if columns is not None else defined if foreign else ()
            for column in needed:
                if column not in present:
                    raise BadInputError(column, None, f"the table `{name}` lacks this column", str(path))
            if columns is not None:
                selected = [column for column in (*columns, *optional) if column in present]
            return spelled_out(file.read(columns=selected), schema, path)
    except BadInputError as error:
        if path.exists():
            raise
        raise BadInputError("", None, "this table of the recording is missing", str(path)) from error
