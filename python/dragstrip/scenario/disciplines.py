"""Facts of queue disciplines, from their rows in `crates/qdisc`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip import _core

ROWS: Mapping[str, Mapping[str, Any]] = {row["name"]: row for row in _core.QUEUES}
"""Discipline → its row: tc's words, an example, facts."""
FIFOS = frozenset(name for name, row in ROWS.items() if row["fifo"])
"""Disciplines that serve packets in order of arrival and drop the arriving packet when they are full."""
AQMS = frozenset(name for name, row in ROWS.items() if row["aqm"])
"""Disciplines that drop or mark packets before they are full (active queue management, RFC 7567)."""
SINCE: Mapping[str, tuple[int, int]] = {
    name: (row["since"][0], row["since"][1]) for name, row in ROWS.items() if row["since"]
}
"""Discipline → the Linux release that brought it, if a kernel in use today may be older."""


def marks(words: str) -> bool:
    """Return whether a discipline in tc's words marks packets of ECN-capable flows.

    Of words that the simulator does not model, the option `ecn` decides if the discipline has it.
    """
    try:
        return _core.queue_marks(words)
    except _core.InputError:
        kind, *options = words.split() or [""]
        row = ROWS.get(kind)
        if row is None or "ecn" in row["words"]:
            return "ecn" in options
        return _core.queue_marks(row["example"])
