"""The bands that continuous integration holds a fixed sample of cases to.

A band is the error as it was measured when the bands were last written, and a little: the simulator is
deterministic, so the margin only lets a change through that no reader of the table would see.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dragstrip.files import write_json
from dragstrip.outside import json_object
from dragstrip.validation.validate import Case

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
"""Added to the measured error, in its unit. Half a reduction: with one seed not one more."""


def write(cases: Iterable[Case], file: Path) -> None:
    """Writes the bands of these cases; the command is in validation/README.md."""
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
    """Case → quantity → greatest error that is let through."""
    return json_object(file)


def beyond(case: Case, band: dict[str, float]) -> list[str]:
    """What has grown past its band, in words; a figure without a band is past it."""
    said = []
    for figure in (figure for figure in case.figures if figure.limit is not None):
        limit = band.get(figure.quantity)
        if limit is None or figure.error > limit:
            said.append(
                f"{case.name}: the error of {figure.quantity} is {figure.error:.4g}, its band ends "
                f"at {limit} (kernel {figure.kernel}, simulator {figure.simulator})"
            )
    return said
