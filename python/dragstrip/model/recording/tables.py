"""A recording in memory: Arrow tables, the scenario and its provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


def from_core(columns: Mapping[str, Mapping[str, tuple[str, Any]]]) -> dict[str, pa.Table]:
    """Convert the core's columns of bytes (crates/py/src/tables.rs) to Arrow tables."""
    return {
        name: pa.table({column: _array(kind, data) for column, (kind, data) in table.items()})
        for name, table in columns.items()
    }


def _array(kind: str, data: Any) -> pa.Array[Any]:
    match kind:
        case "int":
            values = np.frombuffer(data, dtype="<i8")
            integers: pa.Array[Any] = pa.array(values, mask=values == NULL)
            return integers
        case "text":
            names, indexes = data
            return pa.DictionaryArray.from_arrays(
                pa.array(np.frombuffer(indexes, dtype="<i4")), pa.array(names, pa.string())
            )
        case "bool":
            flags: pa.Array[Any] = pa.array(np.frombuffer(data, dtype=np.uint8).astype(bool))
            return flags
        case "float":
            floats: pa.Array[Any] = pa.array(np.frombuffer(data, dtype="<f8"), from_pandas=True)
            return floats
        case _:
            raise AssertionError(f"the core sent a column of kind {kind}")


def empty_table(columns: Mapping[str, Column]) -> pa.Table:
    """Return a table with these columns and no rows."""
    return pa.table({name: pa.array([], _TYPES[column.kind]) for name, column in columns.items()})
