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

    def times(self, factor: float) -> Estimate:
        """Return the quantity in another unit."""
        value, low, high = (
            None if value is None else value * factor for value in (self.value, self.low, self.high)
        )
        return Estimate(value, low, high, self.reason)


def unknown(reason: str, low: float | None = None, high: float | None = None) -> Estimate:
    """Return an estimate that cannot tell, and perhaps a bound."""
    return Estimate(None, low, high, reason)
