"""A quantity with an interval, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A quantity with an interval; `value` is None where the capture cannot tell, and `reason` says why.

    `low` is None where nothing is known from below, `high` where nothing is known from above.
    """

    value: float | None
    low: float | None
    high: float | None
    reason: str = ""


def unknown(reason: str, low: float | None = None, high: float | None = None) -> Estimate:
    """Return an estimate that cannot tell, and perhaps a bound."""
    return Estimate(None, low, high, reason)
