"""The tables in an agent's answer (crates/agent/src/record.rs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragstrip.engines.contract import Json
from dragstrip.model.recording import TABLES, CoreTables

if TYPE_CHECKING:
    import pyarrow as pa


def tables_of(head: Json, raw: memoryview) -> Mapping[str, pa.Table]:
    """The Arrow tables of an answer: the line of JSON says what stands where in the bytes behind it."""
    tables: dict[str, dict[str, tuple[str, Any]]] = {}
    for table in head["tables"]:
        tables[table["name"]] = {}
        for column in table["columns"]:
            data = bytes(raw[column["offset"] : column["offset"] + column["bytes"]])
            value: Any = (column["names"], data) if column["kind"] == "text" else data
            tables[table["name"]][column["name"]] = (column["kind"], value)
    assert tuple(tables) == TABLES, f"the agent sent the tables {tuple(tables)}"
    return CoreTables(tables)
