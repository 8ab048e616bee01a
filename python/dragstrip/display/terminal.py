"""Tables for a terminal, safe for text that comes from outside."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from copy import copy as twin
from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from dragstrip.io.untrusted import one_line, printable

WIDTH = 80
"""Columns of a text that is written for any terminal."""
NAME_MAX, WORD_MAX = 44, 20
"""Characters of a word that stays in one piece, in the first column and in others."""
_WORDS = re.compile(r"(?<!\d)\s+")
"""Separator of words: a number belongs to the unit that follows it."""
COMFORTABLE = 30
"""Characters to which a text is wrapped where a table is divided in any case."""


class Terminal(Console):
    """A rich console that prints strings literally: no markup, no emoji, no terminal control sequences.

    Styled output is a `Text` made from the program's own words. A table that is wider than the terminal (80
    columns where there is none) wraps its text; columns that do not fit even so follow in a table of their
    own, with the first column repeated. No figure is cut or broken.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a cell, heading or line as it is printed."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, tables among them within the terminal's width."""
        for item in objects if any(isinstance(candidate, Table) for candidate in objects) else [objects]:
            if isinstance(item, Table):
                for number, part in enumerate(self._parts(item)):
                    if number and item.box is None:
                        super().print()
                    super().print(part, **options)
            else:
                super().print(*(item if isinstance(item, tuple) else [item]), **options)

    def _parts(self, table: Table) -> Iterator[Table]:
        """Yield a table as it is if it fits, else its columns in as few tables as hold them all."""
        columns = table.columns
        wide = self.options.update(max_width=10_000)
        most = [self._width_needed(column) for column in columns]
        around = Measurement.get(self, wide, table).maximum - sum(most)
        if sum(most) + around <= self.width or not columns:
            yield table
            return
        around = -(-around // len(columns))
        longest = [NAME_MAX] + [WORD_MAX] * (len(columns) - 1)
        least = [self._width_needed(*pair) for pair in zip(columns, longest, strict=True)]
        least = [min(pair) for pair in zip(least, most, strict=True)]
        groups = [list(range(len(columns)))]
        if sum(least) + around * len(columns) > self.width:
            usual = [max(low, min(high, COMFORTABLE)) + around for low, high in zip(least, most, strict=True)]
            groups = _divided(usual, self.width)
            # As many tables, but none much narrower than the others.
            for room in range(self.width, 0, -1):
                if len(narrower := _divided(usual, room)) > len(groups):
                    break
                groups = narrower
        for number, group in enumerate(groups):
            room = self.width - around * len(group)
            widths = _shared_out([least[at] for at in group], [most[at] for at in group], room)
            part = twin(table)
            part.columns = [_fixed(columns[at], width) for at, width in zip(group, widths, strict=True)]
            part.title = table.title if number == 0 else None
            part.caption = table.caption if number == len(groups) - 1 else None
            yield part

    def _width_needed(self, column: Column, longest: int | None = None) -> int:
        """Return the width of a column in one piece, or the least that breaks no figure and no word.

        A figure is a cell on the right, or a number and its unit in a text; words of more than `longest`
        characters may be broken. A column that folds at a width of its own has that least.
        """
        if longest is not None and column.overflow == "fold" and column.min_width is not None:
            return column.min_width
        widths = [0]
        for at, cell in enumerate([column.header, *column.cells]):
            lines = (cell if isinstance(cell, Text) else self.render_str(str(cell))).plain.split("\n")
            if longest is None or column.no_wrap or (at and column.justify == "right"):
                widths += map(len, lines)
            else:
                widths += (min(len(word), longest) for line in lines for word in _WORDS.split(line))
        return max(widths)


def as_text(table: Table) -> str:
    """Return a table as it is printed on this terminal."""
    out = StringIO()
    Terminal(file=out).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))


_UNIT = re.compile(r"(?<=\d) (?=(?:%|µs|ms|s|[kMG]?bit/s|[kMG]?B|[kMG]iB)(?![A-Za-z])|\d{3}(?!\d))")
"""The space between a figure and its unit, and between its thousands."""


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Return a text in lines of at most 80 columns: the first begins with `first`, the others with `rest`.

    `rest` is as many blanks unless told. A figure stays beside its unit, and a word is never divided.
    """
    lines = textwrap.wrap(
        _UNIT.sub("\u00a0", one_line(text)),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\u00a0", " ") for line in lines]


def hanging(line: str, indent: int) -> str:
    """Return a line in as many lines as the terminal's width asks for, all but the first indented."""
    wrapped = textwrap.wrap(
        line,
        shutil.get_terminal_size().columns,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrapped)


def _divided(widths: list[int], room: int) -> list[list[int]]:
    """Return the columns of as few tables as have room for them, the first column in each."""
    groups = [[0]]
    for at in range(1, len(widths)):
        if len(groups[-1]) > 1 and sum(widths[column] for column in (*groups[-1], at)) > room:
            groups.append([0])
        groups[-1].append(at)
    return groups


def _fixed(column: Column, width: int) -> Column:
    """Return a column of this width whose text wraps."""
    return replace(column, width=width, min_width=None, max_width=None, no_wrap=False, overflow="fold")


def _shared_out(least: list[int], most: list[int], room: int) -> list[int]:
    """Return the widths of columns in a room: the least, and what is left by how much each lacks."""
    widths = list(least)
    spare = room - sum(widths)
    lacking = [high - low for low, high in zip(least, most, strict=True)]
    total = sum(lacking)
    if spare <= 0 or not total:
        return widths
    return [width + min(lack, lack * spare // total) for width, lack in zip(widths, lacking, strict=True)]
