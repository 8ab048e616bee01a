"""Places of a legend's entries, in as many lines as they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def entry_places(widths: Iterable[float], left: float, right: float) -> Iterator[tuple[float, int]]:
    """Yield each entry's x in pixels and its line, from 0, between `left` and `right`."""
    x, line = left, 0
    for width in widths:
        if x > left and x + width > right:
            x, line = left, line + 1
        yield x, line
        x += width
