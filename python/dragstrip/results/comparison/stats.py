"""The figures of a set-up: one row per contender, medians over repeats, and who is ahead on what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median as middle_of
from typing import Any

import numpy as np

from dragstrip.display.quantity import median, number
from dragstrip.results.comparison.setups import Bout, Contender, Json, Setup
from dragstrip.results.intervals import REPEATS_MIN, TIE, among_best


@dataclass(frozen=True)
class Statistic:
    """A median over repeats, with the minimum and the maximum."""

    middle: float
    least: float
    greatest: float
    values: tuple[tuple[Any, float], ...] = ()
    """Seed and value of each repeat that has a value."""

    @property
    def varies(self) -> bool:
        """True when the repeats differ by more than a tie."""
        return self.greatest - self.least > TIE * abs(self.middle)


@dataclass(frozen=True)
class Row:
    """A contender's figures; None where there is nothing to measure."""

    contender: Contender
    flows: int
    goodput_bps: Statistic | None
    throughput_p50_bps: Statistic | None
    share: Statistic | None
    rtt_p5_ms: Statistic | None
    rtt_p50_ms: Statistic | None
    rtt_p95_ms: Statistic | None
    retransmits: Statistic | None
    retransmit_rate: Statistic | None
    queue_p50_bytes: Statistic | None
    queue_p95_bytes: Statistic | None
    dropped: Statistic | None
    marked: Statistic | None
    jain: Statistic | None
    ping_p50_ms: Statistic | None = None
    """Median round-trip time of the run's first probe, in milliseconds."""
    competitors: tuple[str, ...] = ()
    """Labels of the flows that its flows compete with, its own included; empty if they belong to several
    sets."""
    together_s: tuple[float, float] | None = None
    """From when until when all of these live, where share and Jain's index are of that time alone."""
    max_min: bool = False
    """True when Jain's index is of the ratio to the max-min fair rates, which differ between the flows."""


def rows_of(setup: Setup) -> list[Row]:
    """Return one row per contender, in the order of the contenders."""
    return [_row(setup, contender) for contender in setup.contenders]


def _row(setup: Setup, contender: Contender) -> Row:
    def over(measure: Callable[[Bout], float | None]) -> Statistic | None:
        seed_values = [
            (bout.run.seed, value) for bout in contender.bouts if (value := measure(bout)) is not None
        ]
        values = [value for _, value in seed_values]
        return (
            Statistic(middle_of(values), min(values), max(values), tuple(seed_values))
            if seed_values
            else None
        )

    def queue(name: str, part: str | None = None) -> Statistic | None:
        link = setup.queue_link(contender)
        return over(lambda bout: _queue(link, bout, name, part))

    return Row(
        contender=contender,
        flows=max(len(bout.results) for bout in contender.bouts),
        goodput_bps=over(lambda bout: goodput_bps(bout.results)),
        throughput_p50_bps=over(
            lambda bout: median(number(r.get("throughput_bps_p50")) for r in bout.results)
        ),
        share=over(_share),
        rtt_p5_ms=over(lambda bout: rtt_ms(bout, "p5")),
        rtt_p50_ms=over(lambda bout: rtt_ms(bout, "p50")),
        rtt_p95_ms=over(lambda bout: rtt_ms(bout, "p95")),
        retransmits=over(lambda bout: _total(bout, "retransmits")) if contender.is_tcp else None,
        retransmit_rate=over(retransmit_rate) if contender.is_tcp else None,
        queue_p50_bytes=queue("backlog_bytes", "p50"),
        queue_p95_bytes=queue("backlog_bytes", "p95"),
        dropped=queue("dropped"),
        marked=queue("marked"),
        jain=over(_jain),
        ping_p50_ms=over(_ping),
        competitors=_labels(contender.bouts[0]),
        together_s=_together_s(contender.bouts[0]),
        max_min=bool((competitors(contender.bouts[0]) or {}).get("max_min_bps")),
    )


def _together_s(bout: Bout) -> tuple[float, float] | None:
    competing = competitors(bout) or {}
    begins, ends = number(competing.get("from_s")), number(competing.get("until_s"))
    return None if begins is None or ends is None else (begins, ends)


def _labels(bout: Bout) -> tuple[str, ...]:
    competing_flows = set((competitors(bout) or {}).get("flows") or [])
    return tuple(str(row.get("label")) for row in bout.run.flows if row.get("flow") in competing_flows)


def goodput_bps(flows: Sequence[Json]) -> float | None:
    """Return the new bytes of these flows per second, from the first start to the last stop, in bit/s.

    For one flow this is its goodput. Goodputs over different times must not be added, so bytes are.
    """
    if len(flows) == 1:
        return number(flows[0].get("goodput_bps"))
    figures = [[number(flow.get(name)) for flow in flows] for name in ("bytes_received", "start_s", "stop_s")]
    sizes, starts, stops = ([value for value in column if value is not None] for column in figures)
    if not flows or not len(sizes) == len(starts) == len(stops) == len(flows):
        return None
    seconds = max(stops) - min(starts)
    return sum(sizes) * 8 / seconds if seconds > 0 else None


def competitors(bout: Bout) -> Json | None:
    """Return the set of competing flows that a contender's flows belong to, with Jain's index.

    None if they belong to several sets or to none.
    """
    flow_numbers = {row.get("flow") for row in bout.results}
    sets = [
        competing_set
        for competing_set in bout.run.summary.get("competing") or []
        if flow_numbers & set(competing_set["flows"])
    ]
    return sets[0] if len(sets) == 1 else None


def _share(bout: Bout) -> float | None:
    return _total(bout, "share") if competitors(bout) is not None else None


def _jain(bout: Bout) -> float | None:
    """Return Jain's index over the competing flows; None for a single flow."""
    competing = competitors(bout)
    return number(competing.get("jain")) if competing is not None and len(competing["flows"]) > 1 else None


def _total(bout: Bout, name: str) -> float | None:
    """Return the sum over a contender's flows of the known values, or None if none is known."""
    figures = [value for value in (number(row.get(name)) for row in bout.results) if value is not None]
    return sum(figures) if figures else None


def rtt_ms(bout: Bout, part: str) -> float | None:
    """Return the median over a contender's flows of one quantile of their round-trip times, in ms."""
    return median(number((row.get("rtt_ms") or {}).get(part)) for row in bout.results)


def _ping(bout: Bout) -> float | None:
    probes = bout.run.summary.get("probes") or []
    return number((probes[0].get("rtt_ms") or {}).get("p50")) if probes else None


def retransmit_rate(bout: Bout) -> float | None:
    """Return the segments retransmitted as a share of all segments sent."""
    segments_sent, again = _total(bout, "segments_sent"), _total(bout, "retransmits")
    return again / segments_sent if segments_sent and again is not None else None


def _queue(link: str | None, bout: Bout, name: str, part: str | None) -> float | None:
    for queue in bout.run.summary.get("queues") or []:
        if queue.get("link") == link:
            value = queue.get(name)
            return number((value or {}).get(part)) if part else number(value)
    return None


def seconds_of(contender: Contender, field: str) -> dict[str, float]:
    """Return the seconds by name of `limited_s` or `state_s`, summed over all flows and repeats."""
    totals_s: dict[str, float] = {}
    for flow in (flow for bout in contender.bouts for flow in bout.results):
        for name, seconds in (flow.get(field) or {}).items():
            totals_s[name] = totals_s.get(name, 0.0) + (number(seconds) or 0.0)
    return totals_s


def count_of(contender: Contender, field: str) -> float | None:
    """Return the median over repeats of the sum over flows.

    Repeats in which a flow's value is unknown are left out; None if that is all of them.
    """

    def of(bout: Bout) -> float | None:
        counts = [number(flow.get(field)) for flow in bout.results]
        return _total(bout, field) if counts and None not in counts else None

    return median(of(bout) for bout in contender.bouts)


def idle_of(setup: Setup, contender: Contender) -> float | None:
    """Return the share of the flows' time in which their queue was empty, as a median over repeats."""
    link = setup.queue_link(contender)

    def of(bout: Bout) -> float | None:
        flows = bout.run.flows
        stops, starts = ([number(flow.get(name)) for flow in flows] for name in ("stop_s", "start_s"))
        seconds = _queue(link, bout, "idle_s", None)
        if seconds is None or not flows or None in stops or None in starts:
            return None
        busy = max(stop for stop in stops if stop is not None) - min(s for s in starts if s is not None)
        return seconds / busy if busy > 0 else None

    return median(of(bout) for bout in contender.bouts)


@dataclass(frozen=True)
class Ranking:
    """The best and the worst rows on one quantity."""

    best: list[int]
    """Indexes of the best row and of those that do not differ from it."""
    worst: list[int]
    """Indexes of the worst row and of those that do not differ from it; empty if no row differs from the
    best."""
    judged: bool
    """True when the order should hold for other seeds, as far as the repeats show; else it is of these runs
    alone."""


def order_of(
    setup: Setup, figures: Sequence[Statistic | None], *, most: bool, relative: bool = True, tie: float = TIE
) -> Ranking | None:
    """Return the order of rows by their figures, or None if fewer than two are known.

    Repeats are compared by the intervals of their paired differences (`intervals.py`). If no seed changes
    anything, one run is decisive.
    """
    ranked_places = [place for place, figure in enumerate(figures) if figure is not None]
    if len(ranked_places) < 2:
        return None
    statistics = [figure for figure in figures if figure is not None]
    values = _paired(statistics)
    judged = not setup.draws or min(len(figure.values) for figure in statistics) >= REPEATS_MIN
    if not setup.draws or not judged:
        # The order of these runs alone: their medians, taken as exact.
        middles = np.array([[[figure.middle] * REPEATS_MIN for figure in statistics]])
        values = middles
    best = _among(values, most, relative, tie)
    worst = _among(values, not most, relative, tie) & ~best
    return Ranking(
        [place for place, is_best in zip(ranked_places, best, strict=True) if is_best],
        [place for place, is_worst in zip(ranked_places, worst, strict=True) if is_worst],
        judged,
    )


def _among(values: Any, most: bool, relative: bool, tie: float) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return among_best(values, more_is_better=most, relative=relative, tie=tie)[0]


def _paired(statistics: Sequence[Statistic]) -> Any:
    """Return the figures in the shape 1 × rows × seeds, with NaN where a row has no run with the seed."""
    seeds = list(dict.fromkeys(seed for figure in statistics for seed, _ in figure.values))
    paired = np.full((1, len(statistics), max(1, len(seeds))), np.nan)
    for row, figure in enumerate(statistics):
        for seed, value in figure.values:
            paired[0, row, seeds.index(seed)] = value
    return paired
