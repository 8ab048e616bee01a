"""Completion in the shell: names that begin with what was typed."""

from __future__ import annotations

from dragstrip import _core


def algorithms(typed: str) -> list[str]:
    """Complete a congestion control."""
    return [name for name in (*_core.ALGORITHMS, *_core.QUIC) if name.startswith(typed)]


def paths(typed: str) -> list[str]:
    """Complete the name of a path, built in or the user's own."""
    from dragstrip.experiment import saved_paths

    return [*(name for name in saved_paths.names() if name.startswith(typed)), *_names_of("paths", typed)]


def media(typed: str) -> list[str]:
    """Complete the name of a medium."""
    return _names_of("media", typed)


def hosts(typed: str) -> list[str]:
    """Complete the name of a kind of host."""
    return _names_of("hosts", typed)


def workloads(typed: str) -> list[str]:
    """Complete the name of a workload."""
    return _names_of("workloads", typed)


def experiments(typed: str) -> list[str]:
    """Complete the name of an experiment of the catalogue."""
    from dragstrip.experiment import catalogue

    return [name for name in catalogue.files() if name.startswith(typed)]


def _names_of(kind: str, typed: str) -> list[str]:
    names = [entry["name"] for entry in _core.names()[kind]]
    return [name for name in names if name.lower().startswith(typed.lower())]
