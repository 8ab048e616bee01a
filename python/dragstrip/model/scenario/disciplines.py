"""Facts of queue disciplines, from their rows in `crates/qdisc`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from dragstrip import _core


@cache
def rows() -> Mapping[str, Mapping[str, Any]]:
    """Return each discipline's row by its name: tc's words, an example, facts."""
    return {row["name"]: row for row in _core.names()["queues"]}


def is_fifo(kind: str) -> bool:
    """Return whether a discipline serves in order and drops the arriving packet when it is full."""
    return kind in rows() and bool(rows()[kind]["fifo"])


def is_aqm(kind: str) -> bool:
    """Return whether a discipline drops or marks packets before it is full (RFC 7567)."""
    return kind in rows() and bool(rows()[kind]["aqm"])


def is_probabilistic(kind: str) -> bool:
    """Return whether a discipline drops or marks with a probability, so that a run is one sample of many."""
    return kind in rows() and bool(rows()[kind]["probabilistic"])


def modules() -> list[str]:
    """Return the kernel's modules that the disciplines may be in."""
    return [module for row in rows().values() for module in row["modules"]]


def since(kind: str) -> tuple[int, int] | None:
    """Return the Linux release that brought a discipline, if a kernel in use may be older."""
    release = rows()[kind]["since"] if kind in rows() else None
    return None if release is None else (release[0], release[1])


def marks(words: str) -> bool:
    """Return whether a discipline in tc's words marks packets of ECN-capable flows.

    Of words that the simulator does not model, the option `ecn` decides if the discipline has it.
    """
    try:
        return _core.queue_marks(words)
    except _core.InputError:
        kind, *options = words.split() or [""]
        row = rows().get(kind)
        if row is None or "ecn" in row["words"]:
            return "ecn" in options
        return _core.queue_marks(row["example"])
