"""The bands that limit the errors of a fixed sample of cases in continuous integration.

A band is the error measured when the bands were last written, plus a small margin. The simulator is
deterministic, so the margin only admits changes too small to show in the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dragstrip.io.files import write_json
from dragstrip.io.untrusted import json_object
from dragstrip.studies.validation.validate import Case

MARGIN = {
    "goodput": 0.1,
    "rtt": 0.2,
    "ping": 0.2,
    "rtt_ks": 0.02,
    "ping_ks": 0.03,
    "reductions": 0.5,
    "retransmits": 1.0,
    "drops": 1.0,
    "marks": 1.0,
    "share": 0.2,
}
"""Margin added to the measured error, in the error's unit. Half a reduction, so that a single seed may not
have even one more."""


def write(cases: Iterable[Case], file: Path) -> None:
    """Write the bands of these cases; validation/README.md has the command."""
    bands = {
        case.name: {
            figure.quantity: round(figure.error + MARGIN[figure.quantity], 3)
            for figure in case.figures
            if figure.limit is not None
        }
        for case in sorted(cases, key=lambda case: case.name)
    }
    write_json(file, bands)


def read(file: Path) -> dict[str, dict[str, float]]:
    """Return the largest admitted error by case and quantity."""
    return json_object(file)


def beyond(case: Case, band: dict[str, float]) -> list[str]:
    """Return in words the figures that exceed their band; a figure without a band counts as one."""
    violations = []
    for figure in (figure for figure in case.figures if figure.limit is not None):
        limit = band.get(figure.quantity)
        if limit is None or figure.error > limit:
            violations.append(
                f"{case.name}: the error of {figure.quantity} is {figure.error:.4g}, its band ends "
                f"at {limit} (kernel {figure.kernel}, simulator {figure.simulator})"
            )
    return violations
