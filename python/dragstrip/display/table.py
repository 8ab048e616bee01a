"""Tables of a page: rows of cells, which the template macro `table` writes as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A text, with a smaller note below it and a colour swatch before it."""

    text: str
    note: str = ""
    colour: str = ""
    best: bool = False
    number: bool = True
    look: str = ""
    """Grade that the text is marked as: `good`, `bad`, `open`, `even` or none."""
    link: str = ""
    """Address that the text links to."""


@dataclass(frozen=True)
class Table:
    """Headings (text and explanation) and rows of cells; the first cell of a row names the row."""

    heads: list[tuple[str, str]]
    rows: list[list[Cell]]
    caption: str = ""
    algorithms: list[str] = field(default_factory=list)
    # On a phone these columns stand there, the others on request; empty: all.
    deciding: frozenset[str] = frozenset()


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str | Cell]], caption: str = "") -> Table:
    """Return a table of plain texts; a row may mix them with cells."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell, number=False) for cell in row] for row in rows]
    return Table([(head, "") for head in heads], cells, caption)
