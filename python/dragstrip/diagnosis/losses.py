"""How a flow's segments were lost: behind a queue or not, singly or in bursts.

A queue that overflows is full, so the round trips before a loss are long. A policer and a noisy link drop
without delaying. A policer drops whatever exceeds its rate, so losses come in bursts, where its own burst is
longer than a few packets (Flach et al., An Internet-Wide Analysis of Traffic Policing, SIGCOMM 2016); random
losses come one by one. The variance of the number of losses in equal intervals over its mean, the index of
dispersion, is 1 for independent losses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BEFORE_S = 0.1
"""Seconds before a row with a loss, besides two round trips, whose round trips count: as long as a row."""


@dataclass(frozen=True)
class Pattern:
    """The losses of a flow."""

    count: int
    burstiness: float
    """Variance over mean of the number of losses in 100 ms."""
    delay_ms: float | None
    """Median of the longest queueing delay before each loss."""


def pattern(times_s: Floats, retransmitted: Floats, at_s: Floats, rtts_ms: Floats) -> Pattern | None:
    """Return the pattern of a flow's losses, or None without any.

    `retransmitted` counts segments at each of `times_s`; `rtts_ms` are round trips that were measured `at_s`.
    """
    steps = np.clip(np.diff(retransmitted, prepend=0.0), 0.0, None)
    if not steps.sum():
        return None
    delays = []
    if len(rtts_ms):
        least = float(rtts_ms.min())
        for time in times_s[steps > 0]:
            first, last = np.searchsorted(at_s, [time - BEFORE_S - 2 * least / 1e3, time], "right")
            if last > first:
                delays.append(float(rtts_ms[first:last].max()) - least)
    delay = float(np.median(delays)) if delays else None
    return Pattern(int(steps.sum()), float(steps.var() / steps.mean()), delay)
