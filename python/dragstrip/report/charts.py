"""The figures of one setup: distributions, what each costs, shares; those over time are in timeline.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dragstrip.report import quantity
from dragstrip.report.collect import Curves, Shares, throughput_span_s
from dragstrip.report.colours import INK, MUTED
from dragstrip.report.figure import Figure, Rows, Spec, chart, legend, linear, nominal, rows
from dragstrip.report.quantity import RATES, TIMES_MS, Unit, unit_for
from dragstrip.report.series import Curve
from dragstrip.report.setups import Contender, Setup
from dragstrip.report.stats import Figure as Measured
from dragstrip.report.stats import Row
from dragstrip.report.timeline import timelines

WIDTH, HEIGHT = 340, 220
BAR_WIDTH, BAR_STEP = 220, 24
# A wider spread than this (95th percentile of one to 5th of another) is drawn on a logarithmic axis.
LOG_RATIO = 15.0
# More parts than this are not told apart by a legend.
PARTS_MAX = 10

GROUPS = ("summary", "cdf", "shares", "time")
Text = Callable[[float | None], str]


def all_figures(
    setup: Setup, table: list[Row], curves: list[Curves], shares: Shares | None
) -> dict[str, list[Figure]]:
    """Every figure, in the groups in which the page shows them."""
    return {
        "summary": summary_bars(table),
        "cdf": [figure for figure in (rtt_cdf(setup, curves), throughput_cdf(setup, curves)) if figure],
        "shares": share_figures(setup, shares) if shares else [],
        "time": timelines(setup, curves),
    }


# --- distributions: figures 1 to 6 of CAIA's report 110729A ---------------------------------------


@dataclass(frozen=True)
class _Distribution:
    contender: Contender
    curve: Curve
    median: float
    label: str


def rtt_cdf(setup: Setup, curves: list[Curves]) -> Figure | None:
    """The distribution of round-trip times, medians in the legend, the idle path's as a rule."""
    drawn = _distributions([(c.contender, c.rtt_cdf, c.rtt_median_ms) for c in curves], quantity.milliseconds)
    if not drawn:
        return None
    unit = TIMES_MS[1] if max(d.curve.x[-1] for d in drawn) >= 1 else TIMES_MS[0]
    idle_ms = setup.path.rtt_ns / 1e6
    rule = (unit.scale(idle_ms), f"idle {quantity.milliseconds(idle_ms)}") if idle_ms > 0 else None
    return _cdf("cdf-rtt", "Round-trip time", drawn, unit, rule)


def throughput_cdf(setup: Setup, curves: list[Curves]) -> Figure | None:
    """The distribution of what arrives per second (headers and retransmissions counted)."""
    drawn = _distributions(
        [(c.contender, c.throughput_cdf, c.throughput_median_bps) for c in curves], quantity.rate
    )
    if not drawn:
        return None
    unit = unit_for(max(float(d.curve.x[-1]) for d in drawn), RATES)
    seconds = throughput_span_s(setup)
    span = "second" if seconds == 1 else f"{seconds:g} s"
    return _cdf("cdf-throughput", f"Throughput per {span}", drawn, unit, None)


def _distributions(entries: list[tuple[Contender, Curve, float | None]], text: Text) -> list[_Distribution]:
    """Those that have samples, in the order of their medians: the legend's order is that of the curves."""
    known = [
        _Distribution(contender, curve, median, f"{contender.title}  {text(median)}")
        for contender, curve, median in entries
        if median is not None and len(curve)
    ]
    return sorted(known, key=lambda d: d.median)


def _cdf(
    name: str, title: str, drawn: list[_Distribution], unit: Unit, rule: tuple[float, str] | None
) -> Figure:
    labels = [d.label for d in drawn]
    data: Rows = [
        {"x": round(unit.scale(float(x)), 5), "y": round(float(y), 5), "who": d.label}
        for d in drawn
        for x, y in zip(d.curve.x, d.curve.y, strict=True)
    ]
    scale, logarithmic = _cdf_scale(drawn, unit, rule[0] if rule else None)
    share = {"title": "Share of samples at or below", "format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
    x_title = f"{title} ({unit.name}{', logarithmic' if logarithmic else ''})"
    lines: Spec = {
        "data": rows(data),
        "mark": {"type": "line", "interpolate": "step-after", "clip": True},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": scale,
                "axis": {"title": x_title, "tickCount": 6},
            },
            "y": linear("y", 0, 1, share),
            "color": nominal(
                "who", labels, [d.contender.colour for d in drawn], legend(len(labels), 2, "median")
            ),
            "strokeDash": nominal("who", labels, [list(d.contender.dash) for d in drawn]),
            # Where curves coincide, the lower ones show beside the upper.
            "strokeWidth": nominal("who", labels, _widths(len(labels))),
        },
    }
    layers = [*(_rule(rule, scale) if rule else []), lines]
    spoken = quantity.listing([d.label.replace("  ", " ") for d in drawn])
    return Figure(
        name,
        title,
        f"{title}: cumulative distribution. Medians: {spoken}.",
        chart({"layer": layers, "width": WIDTH, "height": HEIGHT}),
        [d.contender.cc for d in drawn],
    )


def _widths(curves: int) -> list[float]:
    return [min(3.6, 1.8 + 0.45 * above) for above in reversed(range(curves))]


def _cdf_scale(drawn: list[_Distribution], unit: Unit, rule: float | None) -> tuple[Spec, bool]:
    ends = [unit.scale(float(x)) for d in drawn for x in (d.curve.x[0], d.curve.x[-1])]
    least = min([*ends, *([rule] if rule else [])])
    low = min(float(np.interp(0.05, d.curve.y, d.curve.x)) for d in drawn)
    high = max(float(np.interp(0.95, d.curve.y, d.curve.x)) for d in drawn)
    if least > 0 and low > 0 and high / low > LOG_RATIO:
        return {"type": "log", "domain": [least * 0.9, max(ends) * 1.1], "nice": False}, True
    return {"domain": [0, max(max(ends) * 1.02, 1e-9)], "nice": False}, False


def _rule(rule: tuple[float, str], scale: Spec) -> list[Spec]:
    """A dashed line with its name along it."""
    at, text = rule
    x = {"field": "x", "type": "quantitative", "scale": scale}
    data = rows([{"x": at, "text": text}])
    words = {"type": "text", "angle": 270, "baseline": "bottom", "dy": -3, "color": MUTED, "fontSize": 11}
    return [
        {"data": data, "mark": {"type": "rule", "strokeDash": [3, 3], "color": MUTED}, "encoding": {"x": x}},
        {
            "data": data,
            "mark": words,
            "encoding": {"x": x, "y": {"value": HEIGHT / 2}, "text": {"field": "text", "type": "nominal"}},
        },
    ]


# --- what each costs, at a glance -----------------------------------------------------------------


def summary_bars(table: list[Row]) -> list[Figure]:
    """Goodput, round-trip time and retransmissions, one line per contender."""
    goodput = unit_for(max((r.goodput_bps.middle for r in table if r.goodput_bps), default=0), RATES)
    lost = Unit(0.01, "% of sent")
    figures = [
        _bars("goodput", "Goodput", [(r, r.goodput_bps) for r in table], goodput, quantity.rate),
        _intervals(table),
        _bars(
            "retransmissions",
            "Retransmitted segments",
            [(r, r.retransmit_rate) for r in table],
            lost,
            quantity.percent,
        ),
    ]
    return [figure for figure in figures if figure is not None]


def _bars(
    name: str, title: str, entries: list[tuple[Row, Measured | None]], unit: Unit, text: Text
) -> Figure | None:
    known = [(row.contender, figure) for row, figure in entries if figure is not None]
    if not known:
        return None
    data: Rows = [
        {
            "who": contender.title,
            "value": unit.scale(figure.middle),
            "least": unit.scale(figure.least),
            "greatest": unit.scale(figure.greatest),
            "text": text(figure.middle),
        }
        for contender, figure in known
    ]
    top = max(entry["greatest"] for entry in data) * 1.3 or 1.0
    contenders = [contender for contender, _ in known]
    bar: Spec = {
        "mark": {"type": "bar", "height": 13},
        "encoding": {
            "x": linear("value", 0, top, {"title": f"{title} ({unit.name})", "tickCount": 4}),
            "color": _colours(contenders),
        },
    }
    span: Spec = {
        "mark": {"type": "rule", "color": INK},
        "encoding": {"x": {"field": "least", "type": "quantitative"}, "x2": {"field": "greatest"}},
    }
    varies = any(figure.varies for _, figure in known)
    spoken = quantity.listing([f"{entry['who']} {entry['text']}" for entry in data])
    layers = [bar, *([span] if varies else []), _figures_beside("greatest")]
    return Figure(
        name, title, f"{title}: {spoken}.", _lined_up(data, contenders, layers), _algorithms(contenders)
    )


def _intervals(table: list[Row]) -> Figure | None:
    known = [(row, figure) for row in table if (figure := row.rtt_p50_ms) is not None]
    if not known:
        return None
    data: Rows = [
        {
            "who": row.contender.title,
            "value": figure.middle,
            "least": row.rtt_p5_ms.middle if row.rtt_p5_ms else figure.middle,
            "greatest": row.rtt_p95_ms.middle if row.rtt_p95_ms else figure.middle,
            "text": quantity.milliseconds(figure.middle),
        }
        for row, figure in known
    ]
    contenders = [row.contender for row, _ in known]
    top = max(max(entry["greatest"] for entry in data) * 1.3, 1e-9)
    axis = {"title": "RTT (ms): median, 5th to 95th percentile", "tickCount": 4}
    span: Spec = {
        "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35},
        "encoding": {
            "x": linear("least", 0, top, axis),
            "x2": {"field": "greatest"},
            "color": _colours(contenders),
        },
    }
    tick: Spec = {
        "mark": {"type": "tick", "thickness": 4, "height": 15, "opacity": 1},
        "encoding": {"x": {"field": "value", "type": "quantitative"}, "color": _colours(contenders)},
    }
    spoken = quantity.listing(
        [
            f"{d['who']} {d['text']} ({quantity.digits(d['least'])} to {quantity.digits(d['greatest'])})"
            for d in data
        ]
    )
    return Figure(
        "rtt",
        "Round-trip time",
        f"Round-trip time, median and 5th to 95th percentile: {spoken}.",
        _lined_up(data, contenders, [span, tick, _figures_beside("greatest")]),
        _algorithms(contenders),
    )


def _lined_up(data: Rows, contenders: list[Contender], layers: list[Spec]) -> Spec:
    """Layers that share one line per contender."""
    axis = {"title": None, "labelFontSize": 12, "labelColor": INK, "ticks": False, "domain": False}
    scale = {"domain": [contender.title for contender in contenders]}
    y = {"field": "who", "type": "nominal", "scale": scale, "axis": {**axis, "labelLimit": 160}}
    size = {"width": BAR_WIDTH, "height": {"step": BAR_STEP}}
    return chart({"data": rows(data), "encoding": {"y": y}, "layer": layers, **size})


def _figures_beside(field: str) -> Spec:
    return {
        "mark": {"type": "text", "align": "left", "dx": 5, "color": INK, "fontSize": 11},
        "encoding": {
            "x": {"field": field, "type": "quantitative"},
            "text": {"field": "text", "type": "nominal"},
        },
    }


def _colours(contenders: list[Contender]) -> Spec:
    return nominal("who", [c.title for c in contenders], [c.colour for c in contenders])


def _algorithms(contenders: list[Contender]) -> list[str]:
    return list(dict.fromkeys(contender.cc for contender in contenders))


# --- shares: figures 9 and 10 of the BU report -----------------------------------------------------


def share_figures(setup: Setup, shares: Shares) -> list[Figure]:
    """Shares over time, the pie, and Jain's index over time."""
    everything = sum(shares.total.values())
    figures = []
    if everything > 0:
        looks = _looks(setup, shares)
        figures = [_share_bars(shares, looks, everything), _pie(shares, looks, everything)]
    if len(shares.jain):
        figures.append(_jain(setup, shares))
    return figures


@dataclass(frozen=True)
class _Look:
    colour: str
    depth: float


def _looks(setup: Setup, shares: Shares) -> dict[str, _Look]:
    """A colour for each part; parts of one algorithm share the hue and alternate in depth."""
    by_title = {contender.title: contender.colour for contender in setup.contenders}
    used: dict[str, int] = {}
    looks: dict[str, _Look] = {}
    for title in shares.bps:
        colour = by_title.get(title, setup.contenders[0].colour)
        number = used.get(colour, 0)
        used[colour] = number + 1
        looks[title] = _Look(colour, (1.0, 0.65, 0.82, 0.5)[number % 4])
    return looks


def _painted(looks: dict[str, _Look], labels: dict[str, str], columns: int) -> Spec:
    names = [labels[title] for title in looks]
    few = len(looks) <= PARTS_MAX
    return {
        "color": nominal(
            "who",
            names,
            [look.colour for look in looks.values()],
            legend(len(names), columns, symbol="square") if few else None,
        ),
        "opacity": nominal("who", names, [look.depth for look in looks.values()]),
    }


def _share_bars(shares: Shares, looks: dict[str, _Look], everything: float) -> Figure:
    """Bars of 100 %, the first part at the top; drawn as stepped areas, as bars would show seams."""
    titles = list(shares.bps)
    amounts = np.array([shares.bps[title] for title in titles])
    totals = amounts.sum(axis=0)
    tops = 1 - np.vstack([np.zeros(len(totals)), amounts.cumsum(axis=0)]) / np.where(totals > 0, totals, 1)
    tops[:, totals == 0] = 0
    half, last = shares.bin_s / 2, len(totals) - 1
    data: Rows = [
        {
            "t": round(float(edge), 4),
            "v": round(float(tops[rank + 1, min(i, last)]), 5),
            "v2": round(float(tops[rank, min(i, last)]), 5),
            "who": title,
        }
        for rank, title in enumerate(titles)
        for i, edge in enumerate([*(shares.time_s - half), shares.time_s[-1] + half])
    ]
    end = float(shares.time_s[-1] + half)
    y_title = f"Share of what arrives per {quantity.seconds(shares.bin_s)}"
    spec: Spec = {
        "width": WIDTH,
        "height": HEIGHT,
        "data": rows(data),
        "mark": {"type": "area", "interpolate": "step-after", "clip": True},
        "encoding": {
            "x": linear("t", 0, end, {"title": "Time (s)", "tickCount": 6, "grid": False}),
            "y": linear("v", 0, 1, {"title": y_title, "format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}),
            "y2": {"field": "v2"},
            **_painted(looks, {title: title for title in titles}, 5 if len(titles) in (5, 9, 10) else 4),
        },
    }
    spoken = quantity.listing([f"{t} {quantity.percent(v / everything)}" for t, v in shares.total.items()])
    return Figure("shares", "Shares over time", f"Shares over time; in all: {spoken}.", chart(spec))


def _pie(shares: Shares, looks: dict[str, _Look], everything: float) -> Figure:
    labels = {t: f"{t} {quantity.percent(v / everything)}" for t, v in shares.total.items()}
    data: Rows = [
        {
            "who": labels[title],
            "v": value,
            "rank": rank,
            "text": quantity.percent(value / everything) if value >= 0.04 * everything else "",
        }
        for rank, (title, value) in enumerate(shares.total.items())
    ]
    arcs: Spec = {
        "mark": {"type": "arc", "outerRadius": 90, "stroke": "#ffffff", "strokeWidth": 1},
        "encoding": _painted(looks, labels, 2 if len(labels) in (2, 4) else 3),
    }
    text: Spec = {
        "mark": {"type": "text", "radius": 108, "fontSize": 11, "color": INK},
        "encoding": {"text": {"field": "text", "type": "nominal"}},
    }
    spec: Spec = {
        "width": WIDTH,
        "height": HEIGHT,
        "data": rows(data),
        "encoding": {
            "theta": {"field": "v", "type": "quantitative", "stack": True},
            "order": {"field": "rank", "type": "quantitative"},
        },
        "layer": [arcs, text] if len(data) <= PARTS_MAX else [arcs],
    }
    spoken = quantity.listing(list(labels.values()))
    return Figure("pie", "Shares of all bytes", f"Shares of all bytes that arrived: {spoken}.", chart(spec))


def _jain(setup: Setup, shares: Shares) -> Figure:
    curve = shares.jain
    data: Rows = [
        {"t": round(float(t), 4), "v": round(float(v), 5)} for t, v in zip(curve.x, curve.y, strict=True)
    ]
    y_title = f"Jain’s index per {quantity.seconds(shares.bin_s)}"
    spec: Spec = {
        "width": WIDTH,
        "height": 120,
        "data": rows(data),
        "mark": {"type": "line", "color": INK, "strokeWidth": 1.6, "clip": True},
        "encoding": {
            "x": linear("t", 0, setup.end_s, {"title": "Time (s)", "tickCount": 6}),
            "y": linear("v", 0, 1, {"title": y_title, "tickCount": 4}),
        },
    }
    words = (
        f"Jain's index over time, between {curve.y.min():.2f} and {curve.y.max():.2f}; 1 is an equal split."
    )
    return Figure("jain", "Fairness over time", words, chart(spec))
