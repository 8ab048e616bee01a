"""Columns of a recording, as NumPy arrays for Python and as buffers for the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dragstrip.model.recording.definition import SCHEMA
from dragstrip.model.recording.tables import NULL, CoreTables, Recording

Floats: TypeAlias = npt.NDArray[np.float64]


def numbers(table: pa.Table, column: str) -> Floats:
    """Return a column as float64, one value per row, with NaN for null."""
    return np.asarray(table[column].to_numpy(), dtype=np.float64)


def matching(table: pa.Table, column: str, value: str) -> pa.Table:
    """Return the rows whose text column `column` equals `value`."""
    return table.filter(pa.array(texts(table, column) == value))


def texts(table: pa.Table, column: str) -> npt.NDArray[np.object_]:
    """Return a text column as an array of strings, one per row."""
    chunks = table[column]
    if chunks.null_count or not pa.types.is_dictionary(chunks.type):
        return np.asarray(chunks.to_pylist(), dtype=object)
    # As the core writes it: few words, many rows. Each word becomes one Python object, not each row.
    parts = [
        np.asarray(chunk.dictionary.to_pylist(), dtype=object)[np.asarray(chunk.indices)]
        for chunk in chunks.chunks
        if isinstance(chunk, pa.DictionaryArray) and len(chunk)
    ]
    return np.concatenate(parts) if parts else np.asarray([], dtype=object)


def grouped(recording: Recording, table: str, key: str, columns: Sequence[str]) -> dict[Any, dict[str, Any]]:
    """Group a table's columns by the values of `key`, in the order of the table.

    Numbers become float64 arrays with NaN for null, other columns arrays of objects.
    """
    source_table = recording[table]
    if not source_table.num_rows:
        return {}
    keys = source_table.column(key).unify_dictionaries().combine_chunks()
    encoded: Any = keys if pa.types.is_dictionary(keys.type) else keys.dictionary_encode()
    places = encoded.indices.to_numpy(zero_copy_only=False)
    words = encoded.dictionary.to_pylist()
    values = {column: _values(source_table.column(column)) for column in columns}
    order = np.argsort(places, kind="stable")
    borders = np.flatnonzero(np.diff(places[order], prepend=-1))
    groups = np.split(order, borders[1:])
    return {
        words[int(places[rows[0]])]: {column: array[rows] for column, array in values.items()}
        for rows in groups
    }


def _values(column: pa.ChunkedArray[Any]) -> npt.NDArray[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return np.array(column.to_pylist(), dtype=object)
    return cast(Floats, np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64))


def to_core(
    recording: Recording, only: Mapping[str, Sequence[str]] | None = None
) -> dict[str, dict[str, tuple[str, Any]]]:
    """Return a recording's defined columns by table and name, in the form of crates/py/src/measures.rs.

    With `only`, return these columns of these tables, as far as the recording has them.
    """
    tables = recording.tables
    if only is None and isinstance(tables, CoreTables):
        return {name: tables.core_columns(name) for name in tables}
    return {
        name: {
            column: (defined.kind, _buffer(defined.kind, table[column]))
            for column, defined in SCHEMA[name].items()
            if column in table.column_names and (only is None or column in only[name])
        }
        for name, table in tables.items()
        if name in (SCHEMA if only is None else only)
    }


def _buffer(kind: str, column: pa.ChunkedArray[Any]) -> Any:
    match kind:
        case "int":
            return np.ascontiguousarray(_filled(column, pa.int64(), int(NULL)), dtype=np.int64)
        case "float":
            return np.ascontiguousarray(column.to_numpy(), dtype=np.float64)
        case "bool":
            return np.ascontiguousarray(_filled(column, pa.bool_(), False), dtype=np.uint8)
        case _:
            words: Any = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            words = words.unify_dictionaries().combine_chunks()
            if isinstance(words, pa.ChunkedArray):  # without rows
                return [], np.empty(0, dtype=np.int32)
            index = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            return words.dictionary.to_pylist(), np.ascontiguousarray(index, dtype=np.int32)


def _filled(column: Any, kind: Any, null: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = column.cast(kind).fill_null(null).to_numpy()
    return values
