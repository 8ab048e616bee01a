"""The targets: the share of the cases that must lie within their limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dragstrip.studies.validation.figures import FigurePair


@dataclass(frozen=True)
class Quantity:
    """A row of the table of figures."""

    key: str
    title: str
    unit: str
    """Unit of the error."""
    target: tuple[str, str]
    """The target in words, without random loss and with it."""
    share: tuple[float, float]
    """Share of cases that must lie within the limit, without random loss and with it."""
    meaning: str

    @property
    def judged(self) -> bool:
        """True when there is a target; other quantities are only shown."""
        return any(self.target)


QUANTITIES = (
    Quantity(
        "goodput",
        "goodput",
        "%",
        ("median ≤ 1 %, 95 % of cases ≤ 3 %", "95 % of cases ≤ 5 %"),
        (0.95, 0.95),
        "bytes that arrived, once each, over the flows' whole time",
    ),
    Quantity(
        "rtt",
        "median RTT, flow",
        "%",
        ("95 % of cases ≤ 3 % or one packet time", "all ≤ 5 %"),
        (0.95, 1.0),
        "of the sender's smoothed RTT, sampled every 100 ms",
    ),
    Quantity(
        "ping",
        "median RTT, ping",
        "%",
        ("95 % of cases ≤ 3 % or one packet time", "all ≤ 5 %"),
        (0.95, 1.0),
        "of pings every 200 ms, whose replies pass the bottleneck (not smoothed)",
    ),
    Quantity(
        "rtt_ks",
        "RTT distribution, flow",
        "",
        ("90 % of cases ≤ 0.10", "all ≤ 0.15"),
        (0.9, 1.0),
        "Kolmogorov–Smirnov distance of the smoothed RTT's samples; where the kernel's all lie within "
        "0.1 ms, a shift of at most 1 % of their median counts instead",
    ),
    Quantity(
        "ping_ks",
        "RTT distribution, ping",
        "",
        ("90 % of cases ≤ 0.10", "all ≤ 0.15"),
        (0.9, 1.0),
        "Kolmogorov–Smirnov distance of the pings; likewise",
    ),
    Quantity(
        "rtt_w1",
        "RTT shift, flow",
        "%",
        ("", ""),
        (0.0, 0.0),
        "Wasserstein-1 distance of the smoothed RTT's samples, as a part of the kernel's median",
    ),
    Quantity(
        "reductions",
        "window reductions",
        "",
        ("95 % of cases within ±1 or ±10 %", "all within ±20 %"),
        (0.95, 1.0),
        "recoveries entered and timeouts; for CDG and with ECN falls of the window in samples of 100 ms",
    ),
    Quantity(
        "retransmits",
        "retransmissions",
        "",
        ("90 % of cases within ±3 or ±10 %", "all within ±20 %"),
        (0.9, 1.0),
        "segments",
    ),
    Quantity(
        "drops",
        "queue's drops",
        "",
        ("90 % of cases within ±3 or ±10 %", "all within ±3 or ±20 %"),
        (0.9, 1.0),
        "packets that a discipline dropped (not of FIFOs, where retransmissions tell the same)",
    ),
    Quantity(
        "marks",
        "queue's marks",
        "",
        ("90 % of cases within ±3 or ±10 %", "all within ±3 or ±20 %"),
        (0.9, 1.0),
        "packets that a discipline marked (ECN)",
    ),
    Quantity(
        "window",
        "window, by epoch",
        "%",
        ("", ""),
        (0.0, 0.0),
        "root mean square difference of the window over its mean, each epoch from one reduction to the next "
        "stretched to the other's length (first seeds)",
    ),
    Quantity(
        "period",
        "epoch",
        "%",
        ("", ""),
        (0.0, 0.0),
        "mean time from one reduction to the next, as far as samples show",
    ),
    Quantity(
        "share",
        "share of each flow",
        "points",
        ("90 % of cases within ±3 points", "all within ±5 points"),
        (0.9, 1.0),
        "of all flows' goodput, the flow that is furthest off",
    ),
)
BY_KEY = {quantity.key: quantity for quantity in QUANTITIES}
GOODPUT_MEDIAN_MAX = 1.0
"""Admitted median error of the goodput without random loss, in per cent."""


@dataclass(frozen=True)
class Standing:
    """Result of a class of cases against the target of one quantity."""

    quantity: Quantity
    group: str
    stochastic: bool
    cases: int
    cases_within: int
    median: float
    worst: float

    @property
    def target(self) -> str:
        """The target in words."""
        return self.quantity.target[self.stochastic] or "–"

    @property
    def count_text(self) -> str:
        """The number of cases within their limits, if there is a target."""
        return f"{self.cases_within} of {self.cases}" if self.quantity.judged else "–"

    @property
    def reached(self) -> bool:
        """True when enough cases are within their limits, and the median too if it has a target."""
        enough = self.cases_within >= self.quantity.share[self.stochastic] * self.cases - 1e-9
        half = self.quantity.key != "goodput" or self.stochastic or self.median <= GOODPUT_MEDIAN_MAX
        return enough and half


def standing(
    quantity: Quantity, group: str, stochastic: bool, figures: Iterable[FigurePair | None]
) -> Standing | None:
    """Return the standing of some cases, or None if none of them has the quantity."""
    comparisons: Sequence[FigurePair] = [figure for figure in figures if figure is not None]
    if not comparisons:
        return None
    errors = [figure.error for figure in comparisons]
    cases_within = sum(figure.reached for figure in comparisons)
    return Standing(
        quantity, group, stochastic, len(comparisons), cases_within, float(np.median(errors)), max(errors)
    )
