"""The paths of a set-up as an engine in real time measured them before the traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.display import quantity
from dragstrip.display.table import Cell, Table
from dragstrip.report.load import recording_of
from dragstrip.results.comparison.setups import Setup

HEADS = [
    ("Path", ""),
    (
        "What",
        "From pings, and from probe streams: a thin one, and one that keeps the bottleneck's queue full",
    ),
    ("Asked", "As configured; a buffer in whole frames"),
    ("Measured", "Minimum and maximum over the runs"),
    ("Limits", "The range in which it may lie"),
    ("Within", "Runs in which it is within that range"),
]


def checked(setup: Setup) -> Table | None:
    """Return a row for each path and quantity, or None if nothing was measured."""
    runs = {id(bout.run): bout.run for contender in setup.contenders for bout in contender.bouts}
    checks_by_quantity: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs.values():
        for check in recording_of(run).provenance.get("verified", {}).get("checks", ()):
            checks_by_quantity.setdefault((check["path"], check["what"]), []).append(check)
    if not checks_by_quantity:
        return None
    return Table(
        HEADS,
        [_row(path, quantity_name, checks) for (path, quantity_name), checks in checks_by_quantity.items()],
    )


def idle(setup: Setup) -> str:
    """Return a sentence on the pings over the idle path, measured by an engine with a kernel, or nothing."""
    measured_ns: list[int] = []
    for contender in setup.contenders:
        for bout in contender.bouts:
            verification = recording_of(bout.run).provenance.get("verified", {})
            measured_ns += verification.get("idle_rtt_ns", {}).values()
    if not measured_ns:
        return ""
    ends = dict.fromkeys(quantity.duration_ns(end) for end in (min(measured_ns), max(measured_ns)))
    return f" Measured before the traffic: {' to '.join(ends)}."


def _row(path: str, quantity_name: str, checks: list[Mapping[str, Any]]) -> list[Cell]:
    first = checks[0]
    measured = [check["measured"] for check in checks]
    passed = sum(check["least"] <= check["measured"] <= check["most"] for check in checks)
    return [
        Cell(path, number=False),
        Cell(quantity_name, number=False),
        Cell(_text(first["asked"], first["unit"])),
        Cell(_span(min(measured), max(measured), first["unit"])),
        Cell(_span(first["least"], first["most"], first["unit"])),
        Cell(f"{passed} of {len(checks)}"),
    ]


def _span(least: float, most: float, unit: str) -> str:
    ends = list(dict.fromkeys((_text(least, unit), _text(most, unit))))
    return " to ".join(ends)


def _text(value: float, unit: str) -> str:
    match unit:
        case "bit/s":
            return quantity.rate(value)
        case "bytes":
            return quantity.size(value)
        case "us":
            return quantity.duration_ns(value * 1e3)
        case _:
            return quantity.count(value)
