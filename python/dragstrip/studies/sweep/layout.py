"""Layout of a sweep's maps: the fields that span a map, and those with a map for each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragstrip.studies.sweep.plan import Sweep
from dragstrip.studies.sweep.stats import Findings


@dataclass(frozen=True)
class Layout:
    """Axes that span a map, and axes that give a map per level."""

    x: str | None
    y: str | None
    facets: list[tuple[dict[str, Any], list[int]]]
    """Settings of the other axes, and the cells that have them."""
    sampled: bool


def lay_out(sweep: Sweep, findings: Findings) -> Layout:
    """Choose rate as horizontal and RTT as vertical axis if they vary, else the axes with most levels."""
    sampled_paths = [
        path for axis in sweep.axes if axis.path == "sample" for path in axis.levels[0].assignments
    ]
    sizes = {axis.path: len(axis.levels) for axis in sweep.axes}
    candidates = sampled_paths or sorted(
        (path for path in findings.paths if path in sizes), key=lambda path: -sizes[path]
    )
    ordered: list[str] = [path for path in ("path.rate", "path.rtt", "path.delay") if path in candidates]
    ordered += [path for path in candidates if path not in ordered]
    x, y = (*ordered, None, None)[:2]
    rest = [path for path in findings.paths if path not in (x, y) and path not in sampled_paths]
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for number, settings in enumerate(findings.cells):
        facet_settings = {path: settings[path] for path in rest}
        groups.setdefault(repr(facet_settings), (facet_settings, []))[1].append(number)
    return Layout(x, y, list(groups.values()), bool(sampled_paths))
