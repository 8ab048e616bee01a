"""What a page and a terminal show: their tables and sentences as text, and quantities read back from text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "br", "link", "img", "hr"}
MISSING = "–"
UNITS = {
    "bit/s": 1.0,
    "kbit/s": 1e3,
    "Mbit/s": 1e6,
    "Gbit/s": 1e9,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "µs": 1e-3,
    "ms": 1.0,
    "s": 1e3,
    "%": 0.01,
    "": 1.0,
}
"""Of rates in bit/s, sizes in bytes, times in ms, shares of 1."""


@dataclass
class Node:
    """An element with its children and texts."""

    tag: str
    attributes: dict[str, str]
    inside: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it, blanks made one."""
        return re.sub(r"[ \n]+", " ", "".join(self._texts())).strip()

    def _texts(self) -> Iterator[str]:
        for part in self.inside:
            if isinstance(part, str):
                yield part
            else:
                yield from part._texts()

    def all(self, tag: str, kind: str = "") -> list[Node]:
        """Elements below it by name, and by a word of their class."""
        return [node for node in self.below() if node.tag == tag and (not kind or kind in node.kinds)]

    @property
    def kinds(self) -> list[str]:
        """The words of its class."""
        return self.attributes.get("class", "").split()

    def below(self) -> Iterator[Node]:
        """Every element below it, in order."""
        for part in self.inside:
            if isinstance(part, Node):
                yield part
                yield from part.below()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def read(html: str) -> Node:
    """The page."""
    reader = _Reader()
    reader.feed(html)
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> does not end"
    return reader.open[0]


@dataclass(frozen=True)
class Cell:
    """A cell: its text, the small note beneath, whether it is marked as the best."""

    text: str
    note: str
    best: bool


@dataclass(frozen=True)
class Table:
    """A table: heads, and cells by head."""

    heads: list[str]
    meanings: dict[str, str]
    rows: list[dict[str, Cell]]
    caption: str = ""


def table(node: Node) -> Table:
    """A table of the page."""
    heads = [head for row in node.all("thead") for head in row.all("th")]
    names = [head.text for head in heads]
    rows = []
    for row in (row for body in node.all("tbody") for row in body.all("tr")):
        cells = [part for part in row.inside if isinstance(part, Node)]
        assert len(cells) == len(names), f"{len(cells)} cells under {len(names)} heads"
        rows.append({name: cell(part) for name, part in zip(names, cells, strict=True)})
    meanings = {head.text: head.attributes.get("title", "") for head in heads}
    return Table(names, meanings, rows)


def cell(node: Node) -> Cell:
    notes = node.all("small")
    own = [part for part in node.inside if isinstance(part, str) or part.tag != "small"]
    own = [part for part in own if isinstance(part, str) or "mark" not in part.kinds]
    return Cell(Node("", {}, own).text, notes[0].text if notes else "", bool(node.all("span", "mark")))


def figures(node: Node) -> dict[str, dict[str, Any]]:
    """The descriptions of the figures below a node, by name."""
    found = [json.loads(script.text) for script in node.all("script", "chart-data")]
    return {figure["name"]: figure for figure in found}


def quantity(text: str) -> tuple[float, float] | None:
    """`9.57 Mbit/s` as 9.57e6 and half a unit of its last digit; none of a dash."""
    if text == MISSING:
        return None
    number, _, unit = text.replace("\u2009", "").replace("−", "-").replace("+", "").partition(" ")
    decimals = len(number.partition(".")[2])
    return float(number) * UNITS[unit], 0.5 * 10.0**-decimals * UNITS[unit]


def says(text: str, value: float | None) -> bool:
    """Whether a text is this value, rounded to at most as coarse as three digits, or two below 1."""
    shown = quantity(text)
    if shown is None or value is None:
        return shown is None and value is None
    middle, half = shown
    # A part of a hundred has one decimal.
    coarsest = 0.06 if text.lstrip("-").startswith("0.") else 0.006
    coarse = half > coarsest * abs(middle) > 0 and not text.endswith("%")
    exact = float(2 * value).is_integer() or abs(middle - value) <= 1e-6 * abs(value)
    return abs(middle - value) <= half * (1 + 1e-6) + 1e-9 * abs(value) and not (coarse and not exact)


def span_says(note: str, text: str, least: float, greatest: float) -> bool:
    """Whether a small note gives a range, with a unit of its own or that of the figure above."""
    low, high = note.split(" – ") if " – " in note else note.split("–")
    unit = text.partition(" ")[2]
    ends = [end if " " in end or not unit else f"{end} {unit}" for end in (low, high)]
    candidates = [ends]
    # Without units the ends share one, which need not be that of the figure above.
    if " " not in low and unit:
        candidates = [[f"{low} {other}", f"{high} {other}"] for other in UNITS if other]
    return any(says(one, least) and says(other, greatest) for one, other in candidates)


def close(one: float | None, other: float | None, part: float = 1e-5) -> bool:
    """Equal to within rounding to six digits."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=part, abs_tol=1e-9)
