"""What the shell offers behind Tab: names that begin with what was typed."""

from __future__ import annotations

import json

from dragstrip import _core


def algorithms(typed: str) -> list[str]:
    """Congestion controls."""
    return [name for name in _core.algorithms() if name.startswith(typed)]


def paths(typed: str) -> list[str]:
    """Paths by name."""
    return _named("paths", typed)


def media(typed: str) -> list[str]:
    """Media by name."""
    return _named("media", typed)


def workloads(typed: str) -> list[str]:
    """Workloads by name."""
    return _named("workloads", typed)


def experiments(typed: str) -> list[str]:
    """The catalogue's experiments."""
    from dragstrip import catalogue

    return [name for name in catalogue.files() if name.startswith(typed)]


def _named(kind: str, typed: str) -> list[str]:
    names = [entry["name"] for entry in json.loads(_core.names())[kind]]
    return [name for name in names if name.lower().startswith(typed.lower())]
