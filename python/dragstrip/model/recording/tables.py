"""A recording in memory: Arrow tables, the scenario and its provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dragstrip import _core
from dragstrip.model.recording.definition import SCHEMA, Column

TABLES = tuple(SCHEMA)
"""Names of all tables, in order of definition."""
NULL = np.iinfo(np.int64).min
"""The value that the core writes for null in a column of integers."""

_TYPES: Mapping[str, Any] = {
    "int": pa.int64(),
    "text": pa.dictionary(pa.int32(), pa.string()),
    "bool": pa.bool_(),
    "float": pa.float64(),
}


@dataclass(frozen=True)
class Recording:
    """A run's tables, scenario and provenance."""

    scenario: dict[str, Any]
    tables: Mapping[str, pa.Table]
    provenance: dict[str, Any] = field(default_factory=dict)
    core: _core.Scenario | None = field(default=None, repr=False, compare=False)
    """The scenario as the core holds it, if it has been read already."""

    def __getitem__(self, table: str) -> pa.Table:
        """Return a table by name; a defined table that the recording lacks is empty."""
        if table in self.tables or table not in SCHEMA:
            return self.tables[table]
        return empty_table(SCHEMA[table])


CoreColumns: TypeAlias = Mapping[str, tuple[str, Any]]
"""A table's columns as the core gives and takes them: kind and buffer by name (crates/py/src/tables.rs)."""


class CoreTables(Mapping[str, pa.Table]):
    """The tables that a run of the core returned; each becomes an Arrow table on first use."""

    def __init__(self, columns: Mapping[str, CoreColumns]) -> None:
        self._columns = dict(columns)
        self._tables: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._tables:
            columns = self._columns[name]
            self._tables[name] = pa.table({key: _array(kind, data) for key, (kind, data) in columns.items()})
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def core_columns(self, name: str) -> dict[str, tuple[str, Any]]:
        """Return a table's columns in the form that the core takes, without a copy."""
        return {key: (kind, _viewed(kind, data)) for key, (kind, data) in self._columns[name].items()}


_KINDS: Mapping[str, str] = {"int": "<i8", "float": "<f8", "bool": "u1"}


def _viewed(kind: str, data: Any) -> Any:
    if kind == "text":
        return data[0], np.frombuffer(data[1], "<i4")
    return np.frombuffer(data, _KINDS[kind])


def _array(kind: str, data: Any) -> pa.Array[Any]:
    """Return a column over the core's own buffer, without a copy of numbers.

    Not by `pa.array`, which imports `numpy.ma` to look at an array of NumPy.
    """
    match kind:
        case "int":
            integers = np.frombuffer(data, dtype="<i8")
            return _over(pa.int64(), data, len(integers), integers != NULL)
        case "text":
            words, indexes = data
            length = len(np.frombuffer(indexes, dtype="<i4"))
            return pa.DictionaryArray.from_arrays(
                _over(pa.int32(), indexes, length), pa.array(words, pa.string())
            )
        case "bool":
            flags = np.frombuffer(data, dtype=np.uint8)
            return _over(pa.bool_(), np.packbits(flags.astype(bool), bitorder="little"), len(flags))
        case "float":
            floats = np.frombuffer(data, dtype="<f8")
            return _over(pa.float64(), data, len(floats), ~np.isnan(floats))
        case _:
            raise AssertionError(f"the core sent a column of kind {kind}")


def _over(kind: Any, values: Any, length: int, valid: Any = None) -> pa.Array[Any]:
    """Return an array over a buffer of values; null where `valid` is False."""
    validity = None
    if valid is not None and not valid.all():
        validity = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(kind, length, [validity, pa.py_buffer(values)])


def empty_table(columns: Mapping[str, Column]) -> pa.Table:
    """Return a table with these columns and no rows."""
    return pa.table({name: pa.array([], _TYPES[column.kind]) for name, column in columns.items()})
