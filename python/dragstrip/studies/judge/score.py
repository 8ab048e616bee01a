"""The score of a run: the objective of Remy over all its flows of TCP, against CUBIC in the subject's place.

Source: Winstein and Balakrishnan, TCP ex Machina, SIGCOMM 2013, section 3.3: the sum over all flows of
log(throughput) - delta * log(delay), here with delta = 1. A neighbour counts as much as the subject's own
flows, so that harm costs what it takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dragstrip.results.intervals import interval
from dragstrip.studies.passport.figures import neighbours, subjects
from dragstrip.studies.passport.rows import Scenario, Summary

SEGMENT_BITS = 1448 * 8
"""Least bits that a flow counts with, so that its logarithm is finite: one segment."""


def objective(summary: Summary, scenario: Scenario) -> float:
    """Return the mean over all flows of TCP of log2(goodput) - log2(median round trip), in bit/s and ms.

    A flow without a sample of its round trip counts with the run's duration.
    """
    duration_s = float(summary["duration_s"])
    least_bps = SEGMENT_BITS / duration_s
    flows = [*subjects(summary, scenario), *neighbours(summary, scenario)]
    return sum(
        math.log2(max(flow["goodput_bps"], least_bps)) - math.log2(flow["rtt_ms"]["p50"] or duration_s * 1e3)
        for flow in flows
    ) / len(flows)


def figures(summary: Summary, scenario: Scenario) -> dict[str, float | None]:
    """Return the goodput of the subject's flows and of their neighbours, in Mbit/s, and its median RTT in ms.

    A neighbour's goodput is None without one.
    """
    own, others = subjects(summary, scenario), neighbours(summary, scenario)
    return {
        "goodput_mbit": sum(flow["goodput_bps"] for flow in own) / 1e6,
        "neighbour_mbit": sum(flow["goodput_bps"] for flow in others) / 1e6 if others else None,
        "rtt_ms": own[0]["rtt_ms"]["p50"],
    }


def total(rows: Sequence[Mapping[str, Any]]) -> tuple[float, tuple[float, float]]:
    """Return the mean score of the rows, and its 95 % interval over the scenarios (a bootstrap)."""
    scores = np.array([row["score"] for row in rows], dtype=np.float64)
    centre, low, high = interval(scores[None, :], "judge", centre=np.mean)
    return float(centre[0]), (float(low[0]), float(high[0]))
