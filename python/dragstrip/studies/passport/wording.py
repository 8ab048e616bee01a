"""Figures in words, alike in the terminal, on the page and in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip.display import quantity


def measured(figure: float | None) -> str:
    """Returns a figure with its significant digits, or a dash."""
    return quantity.MISSING if figure is None else quantity.digits(figure)


def engine(document: Mapping[str, Any]) -> str:
    """The engine of a document with its kernel, such as `vm (Linux 6.1.0-56-amd64)`."""
    kernel = document.get("kernel")
    return f"{document['engine']} (Linux {kernel})" if kernel else str(document["engine"])


def by_reason(not_run: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The ids of rows that were not run, by the reason."""
    ids_by_reason: dict[str, list[str]] = {}
    for row in not_run:
        ids_by_reason.setdefault(row["why"], []).append(row["id"])
    return ids_by_reason


def agreed(comparison: Mapping[str, Any]) -> str:
    """Number of rows with the same verdict on a second engine, in words."""
    rows, same_verdicts = comparison["rows"], comparison["same"]
    share = f" ({quantity.percent(same_verdicts / rows)})" if rows else ""
    counts = f"{same_verdicts} of {quantity.plural(rows, 'row')} have the same verdict{share}"
    return f"Beside engine {engine(comparison)}: {counts}"


def tally(verdicts: Mapping[str, int]) -> str:
    """Counts of verdicts in words, such as `12 held; 3 missed`."""
    return "; ".join(f"{count} {name}" for name, count in verdicts.items()) or "no rows"


def escaped(text: str) -> str:
    """Text on one line as Markdown shows it literally."""
    flat = " ".join(text.split())
    return "".join(f"\\{character}" if character in "\\`*_<>|[]" else character for character in flat)


def unit(row: Mapping[str, Any]) -> str:
    """A row's figure with its unit; of a ratio, with the side that has less."""
    if row["value"] is None:
        return "no figure"
    less = f" ({row['smaller']} has less)" if row.get("smaller") else ""
    return f"{measured(row['value'])} {row['unit']}{less}"
