"""Figures of a queue, each from a run's entry of the result document alone.

Delays are above the round trip of the path without a queue. Long flows are the scenario's own (`subjects`);
those beside them are short ones or other classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np

from dragstrip import _core
from dragstrip.studies.passport.figures import neighbours, subjects
from dragstrip.studies.passport.queues.scenario import QueueScenario
from dragstrip.studies.passport.rows import RowFigure, Scenario, Summary

PERCENTILES = ("p50", "p95")
"""Percentiles of delays in the result document."""


def _base_ms(scenario: Scenario) -> float:
    return _core.parse_time(str(scenario.options["rtt"])) / 1e6


def _long(summary: Summary, scenario: Scenario) -> Sequence[Summary]:
    return [flow for flow in subjects(summary, scenario) if flow["cc"] != "udp"]


def _delay(percentile: str, summary: Summary, scenario: Scenario) -> float | None:
    """The mean over the long flows of TCP of a percentile of their round trips, above the base."""
    times = [flow["rtt_ms"][percentile] for flow in _long(summary, scenario)]
    if not times or None in times:
        return None
    return float(np.mean(times)) - _base_ms(scenario)


def _utilisation(summary: Summary, scenario: Scenario) -> float | None:
    arrived = sum(flow["bytes_received"] for flow in summary["flows"])
    capacity_bps = cast("QueueScenario", scenario).capacity_bps
    return float(arrived * 8 / summary["duration_s"] / capacity_bps)


def _least(summary: Summary, scenario: Scenario) -> float | None:
    goodputs = [flow["goodput_bps"] for flow in _long(summary, scenario)]
    mean = float(np.mean(goodputs)) if goodputs else 0.0
    return min(goodputs) / mean if mean else None


def _jain(summary: Summary, scenario: Scenario) -> float | None:
    return _core.jain([flow["goodput_bps"] for flow in _long(summary, scenario)])


def _dropped(summary: Summary, scenario: Scenario) -> float | None:
    del scenario
    segments_sent = sum(flow["segments_sent"] for flow in summary["flows"])
    return sum(queue["dropped"] for queue in summary["queues"]) / segments_sent if segments_sent else None


def _short(percentile: float, summary: Summary, scenario: Scenario) -> float | None:
    times = [flow["stop_s"] - flow["start_s"] for flow in neighbours(summary, scenario)]
    return float(np.percentile(times, percentile)) if times else None


def _ping(probe: int, percentile: str, summary: Summary, scenario: Scenario) -> float | None:
    if len(summary["probes"]) <= probe:
        return None
    time_ms: float | None = summary["probes"][probe]["rtt_ms"][percentile]
    return None if time_ms is None else time_ms - _base_ms(scenario)


DELAY_P50, DELAY_P95 = (
    RowFigure(
        f"delay {percentile}",
        "ms",
        False,
        partial(_delay, percentile),
        f"mean flows[].rtt_ms.{percentile} of the long flows less --rtt",
        0.5,
    )
    for percentile in PERCENTILES
)
FILLED = RowFigure(
    "utilisation",
    "of the rate",
    True,
    _utilisation,
    "sum of flows[].bytes_received over duration_s and the bottleneck's mean rate",
    0.005,
)
LEAST_LONG = RowFigure(
    "least share",
    "of the mean",
    True,
    _least,
    "least flows[].goodput_bps of the long flows over their mean",
    0.01,
)
JAIN_LONG = RowFigure("jain", "index", True, _jain, "Jain's index of the long flows' goodput_bps", 0.01)
DROPPED = RowFigure(
    "dropped",
    "of all segments",
    False,
    _dropped,
    "sum of queues[].dropped over flows[].segments_sent",
    0.001,
)
SHORT_P50 = RowFigure(
    "short p50",
    "s",
    False,
    lambda summary, scenario: _short(50, summary, scenario),
    "median stop_s - start_s of the short flows",
    0.005,
)
SHORT_P95 = RowFigure(
    "short p95",
    "s",
    False,
    lambda summary, scenario: _short(95, summary, scenario),
    "95th percentile of stop_s - start_s of the short flows",
    0.005,
)
PING_OVER_P50, PING_OVER_P95 = (
    RowFigure(
        f"ping {percentile}",
        "ms",
        False,
        partial(_ping, 0, percentile),
        f"probes[0].rtt_ms.{percentile} less --rtt",
        0.5,
    )
    for percentile in PERCENTILES
)
STEP_P50, STEP_P95 = (
    RowFigure(
        f"step {percentile}",
        "ms",
        False,
        partial(_ping, 1, percentile),
        f"probes[1].rtt_ms.{percentile}, of the pings from the step on, less --rtt",
        0.5,
    )
    for percentile in PERCENTILES
)
