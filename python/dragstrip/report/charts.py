"""The figures of one set-up except those over time: distributions, costs and shares.

`timeline.py` draws the figures over time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from dragstrip.display import quantity
from dragstrip.display.colours import INK
from dragstrip.display.quantity import RATES, TIMES_MS, Unit, unit_for
from dragstrip.report import transfers, video
from dragstrip.report.collect import SHARES_MAX, Curves, FlowShares, throughput_span_s
from dragstrip.report.figure import (
    PARTS_MAX,
    Axis,
    Bar,
    Bars,
    Cloud,
    Distribution,
    Figure,
    Line,
    Panel,
    Pie,
    Rule,
    Scatter,
    SharePart,
    Shares,
    Stroke,
    TimeLines,
)
from dragstrip.report.load import FloatArray
from dragstrip.report.series import EMPTY, Curve
from dragstrip.report.timeline import common_idle, overlay, timelines
from dragstrip.results.comparison.setups import Contender, Setup
from dragstrip.results.comparison.stats import Row
from dragstrip.results.comparison.stats import Statistic as Measured

# A wider spread than this (95th percentile of one to 5th of another) is drawn on a logarithmic axis.
LOG_RATIO = 15.0
JAIN_WIDTH, JAIN_HEIGHT = 340, 120

GROUPS = ("summary", "video", "live", "transfers", "scatter", "cdf", "shares", "overlay", "time")
Text = Callable[[float | None], str]
NONE_PUBLISHED: Mapping[str, tuple[float, float]] = MappingProxyType({})


def all_figures(
    setup: Setup,
    table: list[Row],
    curves: list[Curves],
    shares: list[FlowShares],
    published: Mapping[str, tuple[float, float]] = NONE_PUBLISHED,
) -> dict[str, list[Figure]]:
    """Return every figure, in the groups in which the page shows them.

    `published` has the RTT in ms and the goodput in bit/s that a publication gives, by contender.
    """
    return {
        "summary": summary_bars(table),
        "video": [figure for figure in (video.figure(setup),) if figure],
        "live": [figure for figure in (video.live_figure(setup),) if figure],
        "transfers": [figure for figure in (transfers.figure(setup),) if figure],
        "cdf": [figure for figure in (rtt_cdf(setup, curves), throughput_cdf(setup, curves)) if figure],
        "scatter": planes(setup, table, published),
        "shares": [
            replace(figure, name=figure.name + (f"-{number}" if number > 1 else ""))
            for number, set_shares in enumerate(shares, 1)
            for figure in share_figures(setup, set_shares)
        ],
        "overlay": [figure for figure in (overlay(setup, curves),) if figure],
        "time": timelines(setup, curves),
    }


# --- distributions: figures 1 to 6 of CAIA's report 110729A ---------------------------------------


@dataclass(frozen=True)
class _Distribution:
    contender: Contender
    curve: Curve
    median: float
    note: str


def rtt_cdf(setup: Setup, curves: list[Curves]) -> Figure | None:
    """Draw the distribution of round-trip times in ms, with medians in the legend and the idle RTT as a rule.

    None if there are no samples.
    """
    distributions = _distributions(
        [(c.contender, c.rtt_cdf, c.rtt_median_ms) for c in curves], quantity.milliseconds
    )
    if not distributions:
        return None
    unit = TIMES_MS[1] if max(d.curve.x[-1] for d in distributions) >= 1 else TIMES_MS[0]
    idle_ms, words = common_idle(setup)
    rule = Rule(unit.scale(idle_ms), words) if idle_ms > 0 else None
    return _cdf("cdf-rtt", "Round-trip time", distributions, unit, rule)


def throughput_cdf(setup: Setup, curves: list[Curves]) -> Figure | None:
    """Draw the distribution of throughput per second, with headers and retransmissions counted.

    None if there are no samples.
    """
    distributions = _distributions(
        [(c.contender, c.throughput_cdf, c.throughput_median_bps) for c in curves], quantity.rate
    )
    if not distributions:
        return None
    unit = unit_for(max(float(d.curve.x[-1]) for d in distributions), RATES)
    seconds = throughput_span_s(setup)
    span = "second" if seconds == 1 else f"{seconds:g} s"
    return _cdf("cdf-throughput", f"Throughput per {span}", distributions, unit, None)


def _distributions(entries: list[tuple[Contender, Curve, float | None]], text: Text) -> list[_Distribution]:
    """Return the contenders with samples, ordered by median, so that the legend matches the curves."""
    sampled = [
        _Distribution(contender, curve, median, text(median))
        for contender, curve, median in entries
        if median is not None and len(curve)
    ]
    return sorted(sampled, key=lambda d: d.median)


def _cdf(name: str, title: str, distributions: list[_Distribution], unit: Unit, rule: Rule | None) -> Figure:
    lines = [
        Line(d.contender.title, d.note, d.contender.colour, _scaled(d.curve, unit), d.contender.dash)
        for d in distributions
    ]
    low, high, logarithmic = cdf_scale(lines, rule.at if rule else None)
    x = Axis(
        f"{title} ({unit.name}{', logarithmic' if logarithmic else ''})", low, high, unit.name, logarithmic
    )
    listed = quantity.listing([f"{line.label} {line.note}" for line in lines])
    return Figure(
        name,
        title,
        f"{title}: cumulative distribution. Medians: {listed}.",
        Distribution(x, lines, rule),
        [d.contender.cc for d in distributions],
    )


def _scaled(curve: Curve, unit: Unit) -> Curve:
    """Return the curve with `x` in the unit."""
    return Curve(curve.x / unit.divisor, curve.y)


def cdf_scale(lines: list[Line], rule: float | None) -> tuple[float, float, bool]:
    """Return both ends of the axis, and whether it is logarithmic."""
    ends = [float(x) for line in lines for x in (line.curve.x[0], line.curve.x[-1])]
    least = min([*ends, *([rule] if rule else [])])
    low = min(float(np.interp(0.05, line.curve.y, line.curve.x)) for line in lines)
    high = max(float(np.interp(0.95, line.curve.y, line.curve.x)) for line in lines)
    if least > 0 and low > 0 and high / low > LOG_RATIO:
        return least * 0.9, max(ends) * 1.1, True
    return 0.0, max(max(ends) * 1.02, 1e-9), False


# --- delay against throughput ----------------------------------------------------------------------

# A normal distribution has 39 % of its points within one standard deviation's ellipse, 86 % within two.
DEVIATIONS = 1.0
ELLIPSE_POINTS_MIN = 8


BETTER = "↖ better"


def planes(
    setup: Setup, table: list[Row], published: Mapping[str, tuple[float, float]] = NONE_PUBLISHED
) -> list[Figure]:
    """Draw goodput against delay: one figure, or one for each set of flows that compete, such as a direction.

    Contenders that each had the path to themselves are in one figure.
    """
    sets: dict[tuple[str, ...], list[Row]] = {}
    for row in table:
        sets.setdefault(row.competitors if setup.together else (), []).append(row)
    figures = [
        figure for rows in sets.values() if (figure := delay_throughput(setup, rows, published)) is not None
    ]
    if len(figures) < 2:
        return figures
    named = zip(figures, sets.values(), strict=False)
    return [
        replace(
            figure,
            name=figure.name + (f"-{number}" if number > 1 else ""),
            title=f"{figure.title}: {quantity.listing([row.contender.title for row in rows])}",
        )
        for number, (figure, rows) in enumerate(named, 1)
    ]


def delay_throughput(
    setup: Setup, table: list[Row], published: Mapping[str, tuple[float, float]] = NONE_PUBLISHED
) -> Figure | None:
    """Draw goodput against round-trip time: a large point per contender, and how far its figures spread.

    Of repeats, each is a small point, with an ellipse around them; of one run, a line spans the 5th to 95th
    percentile of its round trips. Published figures are hollow. None if no contender has both figures.
    """
    plotted = [(row, row.goodput_bps, row.rtt_p50_ms) for row in table if row.goodput_bps and row.rtt_p50_ms]
    if not plotted:
        return None
    unit = unit_for(max(goodput.greatest for _, goodput, _ in plotted), RATES)
    clouds = [_cloud(row, goodput, trip, unit, setup.repeats > 1) for row, goodput, trip in plotted]
    clouds = [
        replace(cloud, published=(at[0], at[1] / unit.divisor))
        if (at := published.get(cloud.label))
        else cloud
        for cloud in clouds
    ]
    idle_ms, words = common_idle(setup)
    shown = [
        (float(x), float(y))
        for cloud in clouds
        for part in (cloud.points, cloud.ellipse)
        for x, y in zip(part.x, part.y, strict=True)
    ]
    shown += [cloud.middle for cloud in clouds]
    shown += [cloud.published for cloud in clouds if cloud.published]
    high_x = max(max(x for x, _ in shown), idle_ms) * 1.05
    high_y = max(y for _, y in shown) * 1.08
    rule = Rule(idle_ms, words) if idle_ms > 0 else None
    listed = quantity.listing([f"{cloud.label} {cloud.note}" for cloud in clouds])
    others = quantity.listing(
        [
            f"{cloud.label} {quantity.milliseconds(at[0])}, {quantity.rate(at[1])}"
            for cloud in clouds
            if (at := published.get(cloud.label))
        ]
    )
    return Figure(
        "delay-throughput",
        "Throughput against delay",
        f"Goodput against median round-trip time: {listed}." + (f" Published: {others}." if others else ""),
        Scatter(
            Axis("Round-trip time (ms)", 0, max(high_x, 1e-9), "ms"),
            Axis(f"Goodput ({unit.name})", 0, max(high_y, 1e-9), unit.name),
            clouds,
            rule,
            BETTER,
        ),
        _algorithms([row.contender for row, _, _ in plotted]),
    )


def _cloud(row: Row, goodput: Measured, trip: Measured, unit: Unit, repeated: bool) -> Cloud:
    middle = trip.middle, goodput.middle / unit.divisor
    note = f"{quantity.milliseconds(trip.middle)}, {unit.text(goodput.middle)}"
    if repeated:
        goodputs = dict(goodput.values)
        pairs = [(at, goodputs[seed]) for seed, at in trip.values if seed in goodputs]
        x, y = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
        points, spread = Curve(x, y / unit.divisor), _ellipse(x, y / unit.divisor)
    else:
        ends = [end.middle for end in (row.rtt_p5_ms, row.rtt_p95_ms) if end is not None]
        points = Curve(np.array([middle[0]]), np.array([middle[1]]))
        spread = Curve(np.array(ends), np.full(len(ends), middle[1]))
    contender = row.contender
    return Cloud(contender.title, note, contender.colour, points, spread, middle, contender.dash)


def _ellipse(x: FloatArray, y: FloatArray) -> Curve:
    """Return one standard deviation around the mean, clipped so that neither quantity is negative."""
    if len(x) < ELLIPSE_POINTS_MIN:
        return EMPTY
    # The Cholesky factor of the covariance makes the ellipse of a circle.
    apart_x, apart_y = x - x.mean(), y - y.mean()
    xx, xy, yy = (
        float((a * b).sum()) / (len(x) - 1)
        for a, b in ((apart_x, apart_x), (apart_x, apart_y), (apart_y, apart_y))
    )
    along = xy / math.sqrt(xx) if xx > 0 else 0.0
    across = math.sqrt(max(yy - along**2, 0.0))
    turn = np.linspace(0.0, 2.0 * np.pi, 61)
    around_x = x.mean() + DEVIATIONS * math.sqrt(xx) * np.cos(turn)
    around_y = y.mean() + DEVIATIONS * (along * np.cos(turn) + across * np.sin(turn))
    return Curve(np.maximum(around_x, 0.0), np.maximum(around_y, 0.0))


# --- what each costs, at a glance -----------------------------------------------------------------


def summary_bars(table: list[Row]) -> list[Figure]:
    """Draw goodput, round-trip time and retransmissions, with one line per contender."""
    goodput = unit_for(max((r.goodput_bps.middle for r in table if r.goodput_bps), default=0), RATES)
    percent_of_sent = Unit(0.01, "% of sent")
    figures = [
        _bars("goodput", "Goodput", [(r, r.goodput_bps) for r in table], goodput, quantity.rate),
        _intervals(table),
        _bars(
            "retransmissions",
            "Retransmitted segments",
            [(r, r.retransmit_rate) for r in table],
            percent_of_sent,
            quantity.percent,
        ),
    ]
    return [figure for figure in figures if figure is not None]


def _bars(
    name: str, title: str, entries: list[tuple[Row, Measured | None]], unit: Unit, text: Text
) -> Figure | None:
    bar_values = [(row.contender, figure) for row, figure in entries if figure is not None]
    if not bar_values:
        return None
    bars = [
        Bar(
            contender.title,
            contender.colour,
            unit.scale(figure.middle),
            unit.scale(figure.least),
            unit.scale(figure.greatest),
            text(figure.middle),
        )
        for contender, figure in bar_values
    ]
    top = max(bar.greatest for bar in bars) * 1.3 or 1.0
    varies = any(figure.varies for _, figure in bar_values)
    listed = quantity.listing([f"{bar.label} {bar.text}" for bar in bars])
    axis = Axis(f"{title} ({unit.name})", 0, top, unit.name)
    return Figure(
        name,
        title,
        f"{title}: {listed}.",
        Bars(axis, bars, ranged=varies),
        _algorithms([c for c, _ in bar_values]),
    )


def _intervals(table: list[Row]) -> Figure | None:
    rtt_rows = [(row, figure) for row in table if (figure := row.rtt_p50_ms) is not None]
    if not rtt_rows:
        return None
    bars = [
        Bar(
            row.contender.title,
            row.contender.colour,
            figure.middle,
            row.rtt_p5_ms.middle if row.rtt_p5_ms else figure.middle,
            row.rtt_p95_ms.middle if row.rtt_p95_ms else figure.middle,
            quantity.milliseconds(figure.middle),
        )
        for row, figure in rtt_rows
    ]
    top = max(max(bar.greatest for bar in bars) * 1.3, 1e-9)
    axis = Axis("RTT (ms): median, 5th to 95th percentile", 0, top, "ms")
    listed = quantity.listing(
        [
            f"{bar.label} {bar.text} ({quantity.digits(bar.least)} to {quantity.digits(bar.greatest)})"
            for bar in bars
        ]
    )
    return Figure(
        "rtt",
        "Round-trip time",
        f"Round-trip time, median and 5th to 95th percentile: {listed}.",
        Bars(axis, bars, interval=True),
        _algorithms([row.contender for row, _ in rtt_rows]),
    )


def _algorithms(contenders: list[Contender]) -> list[str]:
    return list(dict.fromkeys(contender.cc for contender in contenders))


# --- shares: figures 9 and 10 of the BU report -----------------------------------------------------


def share_figures(setup: Setup, shares: FlowShares) -> list[Figure]:
    """Draw shares over time, the pie of total shares, and Jain's index over time."""
    everything = sum(shares.total.values())
    figures = []
    if everything > 0:
        parts = _parts(setup, shares, everything)
        # One alone has all of it.
        figures = [_stacked(shares, parts), _pie(shares, parts)] if len(parts) > 1 else []
    if len(shares.jain):
        figures.append(_jain(setup, shares))
    return figures


def _parts(setup: Setup, shares: FlowShares, everything: float) -> list[SharePart]:
    """Return the parts; those of one algorithm share the hue and alternate in depth."""
    by_title = {contender.title: contender.colour for contender in setup.contenders}
    parts_by_colour: dict[str, int] = {}
    parts = []
    for place, (title, total) in enumerate(shares.total.items()):
        colour = by_title.get(title, setup.contenders[0].colour)
        number = parts_by_colour.get(colour, 0)
        parts_by_colour[colour] = number + 1
        depth = (1.0, 0.65, 0.82, 0.5)[number % 4]
        note = quantity.percent(total / everything)
        parts.append(SharePart(title, colour, depth, total, note, pooled=place >= SHARES_MAX))
    return parts


def _stacked(shares: FlowShares, parts: list[SharePart]) -> Figure:
    """Draw bars of 100 %, the first part at the top."""
    amounts = np.array([shares.bps[part.label] for part in parts])
    totals = amounts.sum(axis=0)
    tops = 1 - np.vstack([np.zeros(len(totals)), amounts.cumsum(axis=0)]) / np.where(totals > 0, totals, 1)
    tops[:, totals == 0] = 0
    edges = np.append(shares.time_s - shares.bin_s / 2, shares.time_s[-1] + shares.bin_s / 2)
    y_title = f"Share of what arrives per {quantity.seconds(shares.bin_s)}"
    return Figure(
        "shares",
        f"Shares over time{shares.title_suffix}",
        f"Shares over time{shares.title_suffix}; in all: {_in_words(parts)}.",
        Shares(
            Axis("Time (s)", 0, float(edges[-1]), "s"),
            Axis(y_title, 0, 1, share=True),
            parts,
            edges,
            tops,
        ),
    )


def _pie(shares: FlowShares, parts: list[SharePart]) -> Figure:
    words = f"Shares of all bytes that arrived: {_in_words(parts)}."
    return Figure("pie", f"Shares of all bytes{shares.title_suffix}", words, Pie(parts))


def _in_words(parts: list[SharePart]) -> str:
    """Return each part's share in words, or the smallest and the largest if there are many parts."""
    if len(parts) <= PARTS_MAX:
        return quantity.listing([f"{part.label} {part.note}" for part in parts])
    ordered = sorted((part for part in parts if not part.pooled), key=lambda part: part.total)
    pooled_words = "".join(f"; {part.label} {part.note} together" for part in parts if part.pooled)
    return f"{len(ordered)} flows, from {ordered[0].note} to {ordered[-1].note} each{pooled_words}"


def _jain(setup: Setup, shares: FlowShares) -> Figure:
    curve = shares.jain
    y = Axis(f"Jain’s index per {quantity.seconds(shares.bin_s)}", 0, 1)
    of = " of the ratio to the max–min fair rates" if shares.max_min else ""
    split = "the max–min fair share" if shares.max_min else "an equal split"
    words = f"Jain's index{of} over time, between {curve.y.min():.2f} and {curve.y.max():.2f}; 1 is {split}."
    panel = Panel(y, [Stroke([curve], INK, 1.6, main=True)])
    time = Axis("Time (s)", 0, setup.end_s, "s")
    return Figure(
        "jain",
        f"Fairness over time{shares.title_suffix}",
        words,
        TimeLines(time, [panel], JAIN_WIDTH, JAIN_HEIGHT),
    )
