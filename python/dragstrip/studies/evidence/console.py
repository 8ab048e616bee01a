"""The evidence for a terminal: a line for each clause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.display.terminal import as_text
from dragstrip.studies.evidence.text import counts, heading, row_count


def text(document: Mapping[str, Any]) -> str:
    """Return the clauses as a table with levels, verdicts and the numbers of rows, and the counts."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for name in ("clause", "level", "verdict"):
        table.add_column(name)
    for name in ("rows", "against"):
        table.add_column(name, justify="right")
    for clause in document["clauses"]:
        table.add_row(
            f"{clause['number']} {clause['title']}",
            clause["level"],
            clause["verdict"],
            str(row_count(clause)),
            str(len(clause["against"])),
        )
    return f"{heading(document)}: {counts(document)}.\n\n{as_text(table)}"
