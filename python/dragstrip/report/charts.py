"""The figures of one setup, as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np

from dragstrip.report import quantity
from dragstrip.report.collect import Curves, Panel, Shares, throughput_bin_s, timeline_bin_s
from dragstrip.report.colours import GREY, INK, MUTED
from dragstrip.report.figure import Figure, Rows, Sheet
from dragstrip.report.quantity import RATES, SIZES, TIMES_MS, Unit, unit_for
from dragstrip.report.series import Curve
from dragstrip.report.setups import Setup
from dragstrip.report.stats import Figure as Measured
from dragstrip.report.stats import Row

CDF_WIDTH, CDF_HEIGHT = 360, 230
PANEL_WIDTH, PANEL_HEIGHT = 250, 78
BAR_WIDTH, BAR_STEP = 220, 24
# Wider spreads than this are drawn on a logarithmic axis.
LOG_RATIO = 15.0
COLUMNS_MAX = 5

GROUPS = ("summary", "cdf", "time", "shares")


def all_figures(
    setup: Setup, rows: list[Row], curves: list[Curves], shares: Shares | None
) -> dict[str, list[Figure]]:
    """Every figure, in the groups in which the page shows them."""
    return {
        "summary": summary_bars(rows),
        "cdf": [figure for figure in (rtt_cdf(setup, curves), throughput_cdf(setup, curves)) if figure],
        "time": timelines(setup, curves),
        "shares": share_figures(setup, shares) if shares else [],
    }


# --- distributions: figures 1 to 6 of CAIA's report 110729A ---------------------------------------


def rtt_cdf(setup: Setup, curves: list[Curves]) -> Figure | None:
    """The distribution of round-trip times, medians in the legend."""
    drawn = [(c, c.rtt_cdf, c.rtt_median_ms) for c in curves if len(c.rtt_cdf)]
    if not drawn:
        return None
    unit = TIMES_MS[1] if max(c.rtt_cdf.x[-1] for c in curves if len(c.rtt_cdf)) >= 1 else TIMES_MS[0]
    idle_ms = setup.path.rtt_ns / 1e6
    return _cdf(
        "cdf-rtt",
        "Round-trip time",
        drawn,
        unit,
        quantity.milliseconds,
        rule=idle_ms if idle_ms > 0 else None,
        rule_text=f"idle {quantity.milliseconds(idle_ms)}",
    )


def throughput_cdf(setup: Setup, curves: list[Curves]) -> Figure | None:
    """The distribution of what arrives per second (headers and retransmissions counted)."""
    drawn = [(c, c.throughput_cdf, c.throughput_median_bps) for c in curves if len(c.throughput_cdf)]
    if not drawn:
        return None
    bin_s = throughput_bin_s(setup)
    return _cdf(
        "cdf-throughput",
        f"Throughput per {quantity.digits(bin_s)} s",
        drawn,
        unit_for(max(float(curve.x[-1]) for _, curve, _ in drawn), RATES),
        quantity.rate,
        rule=None,
        rule_text="",
    )


def _cdf(
    name: str,
    title: str,
    drawn: list[tuple[Curves, Curve, float | None]],
    unit: Unit,
    text: Callable[[float | None], str],
    *,
    rule: float | None,
    rule_text: str,
) -> Figure:
    drawn = sorted(drawn, key=lambda entry: (entry[2] is None, entry[2] or 0.0))
    labels = [f"{c.contender.title}  {text(middle)}" for c, _, middle in drawn]
    rows: Rows = [
        {"x": round(unit.scale(float(x)), 5), "y": round(float(y), 5), "who": label}
        for label, (_, curve, _) in zip(labels, drawn, strict=True)
        for x, y in zip(curve.x, curve.y, strict=True)
    ]
    xs = [unit.scale(float(v)) for _, curve, _ in drawn for v in (curve.x[0], curve.x[-1])]
    scale, logarithmic = _cdf_scale(drawn, xs, unit.scale(rule) if rule is not None else None)
    sheet = Sheet()
    lines = (
        alt.Chart(sheet.data(rows), width=CDF_WIDTH, height=CDF_HEIGHT)
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True)
        .encode(
            x=alt.X("x:Q")
            .scale(**scale)
            .axis(title=f"{title} ({unit.name}{', logarithmic' if logarithmic else ''})", grid=True, tickCount=6),
            y=alt.Y("y:Q")
            .scale(domain=[0, 1])
            .axis(title="Share of samples at or below", format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
            order=alt.value(0),
            color=_colour_scale(labels, [c.contender.colour for c, _, _ in drawn]),
            strokeDash=alt.StrokeDash("who:N")
            .scale(domain=labels, range=[list(c.contender.dash) for c, _, _ in drawn])
            .legend(None),
        )
    )
    layers: list[alt.Chart] = [lines]
    if rule is not None:
        layers = [*_rule(sheet, unit.scale(rule), rule_text), lines]
    spoken = quantity.listing([f"{c.contender.title} {text(middle)}" for c, _, middle in drawn])
    return Figure(
        name,
        title,
        f"{title}: cumulative distribution. Medians: {spoken}.",
        sheet.spec(alt.layer(*layers)),
        [c.contender.cc for c, _, _ in drawn],
    )


def _cdf_scale(
    drawn: list[tuple[Curves, Curve, float | None]], xs: list[float], rule: float | None
) -> tuple[dict[str, Any], bool]:
    least, greatest = min([*xs, *([rule] if rule else [])]), max(xs)
    spread = [(np.interp(0.05, c.y, c.x), np.interp(0.95, c.y, c.x)) for _, c, _ in drawn]
    low, high = min(s[0] for s in spread), max(s[1] for s in spread)
    if low > 0 and high / low > LOG_RATIO and least > 0:
        return {"type": "log", "domain": [least * 0.9, greatest * 1.1], "nice": False}, True
    return {"domain": [0, greatest * 1.02], "nice": False}, False


def _rule(sheet: Sheet, at: float, text: str) -> list[alt.Chart]:
    data = sheet.data([{"x": at, "text": text}])
    base = alt.Chart(data).encode(x="x:Q")
    return [
        base.mark_rule(strokeDash=[3, 3], color=MUTED),
        base.mark_text(align="left", baseline="top", dx=4, dy=2, color=MUTED, fontSize=11).encode(
            y=alt.value(0), text="text:N"
        ),
    ]


def _colour_scale(labels: list[str], colours: list[str], title: str | None = "median") -> alt.Color:
    return (
        alt.Color("who:N")
        .scale(domain=labels, range=colours)
        .legend(title=title, orient="bottom", columns=2, symbolType="stroke", columnPadding=24)
    )


# --- what each costs, at a glance -----------------------------------------------------------------


def summary_bars(rows: list[Row]) -> list[Figure]:
    """Goodput, round-trip time and retransmissions, one line per contender."""
    goodput = unit_for(max((r.goodput_bps.middle for r in rows if r.goodput_bps), default=0), RATES)
    figures = [
        _bars("goodput", "Goodput", rows, lambda r: r.goodput_bps, goodput, quantity.rate),
        _intervals(rows),
        _bars(
            "retransmissions",
            "Retransmitted segments",
            rows,
            lambda r: r.retransmit_rate,
            Unit(0.01, "% of sent"),
            quantity.percent,
        ),
    ]
    return [figure for figure in figures if figure is not None]


def _bars(
    name: str,
    title: str,
    rows: list[Row],
    measure: Callable[[Row], Measured | None],
    unit: Unit,
    text: Callable[[float | None], str],
) -> Figure | None:
    known = [(row, figure) for row in rows if (figure := measure(row)) is not None]
    if not known:
        return None
    data: Rows = [
        {
            "who": row.contender.title,
            "value": unit.scale(figure.middle),
            "least": unit.scale(figure.least),
            "greatest": unit.scale(figure.greatest),
            "text": text(figure.middle),
        }
        for row, figure in known
    ]
    top = max(max(entry["greatest"] for entry in data) * 1.3, 1e-9)
    sheet = Sheet()
    base = alt.Chart(sheet.data(data), width=BAR_WIDTH, height=alt.Step(BAR_STEP)).encode(
        y=_who_axis([row.contender.title for row, _ in known])
    )
    layers: list[alt.Chart] = [
        base.mark_bar(height=13).encode(
            x=alt.X("value:Q").scale(domain=[0, top], nice=False).axis(title=f"{title} ({unit.name})", tickCount=4),
            color=_plain_colours(known),
        ),
        base.mark_text(align="left", dx=5, color=INK, fontSize=11).encode(x="greatest:Q", text="text:N"),
    ]
    if any(figure.varies for _, figure in known):
        layers.insert(1, base.mark_rule(color=INK).encode(x="least:Q", x2="greatest:Q"))
    spoken = quantity.listing([f"{row.contender.title} {text(figure.middle)}" for row, figure in known])
    return Figure(name, title, f"{title}: {spoken}.", sheet.spec(alt.layer(*layers)), _algorithms(known))


def _intervals(rows: list[Row]) -> Figure | None:
    known = [(row, figure) for row in rows if (figure := row.rtt_p50_ms) is not None]
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
    sheet = Sheet()
    top = max(entry["greatest"] for entry in data) * 1.3
    axis = alt.Axis(title="RTT (ms): median, 5th to 95th percentile", tickCount=4)
    base = alt.Chart(sheet.data(data), width=BAR_WIDTH, height=alt.Step(BAR_STEP)).encode(
        y=_who_axis([row.contender.title for row, _ in known]), color=_plain_colours(known)
    )
    layers = [
        base.mark_rule(strokeWidth=5, opacity=0.35).encode(
            x=alt.X("least:Q").scale(domain=[0, top], nice=False).axis(axis), x2="greatest:Q"
        ),
        base.mark_tick(thickness=4, height=15).encode(x="value:Q"),
        base.mark_text(align="left", dx=6, fontSize=11).encode(
            x="greatest:Q", text="text:N", color=alt.value(INK)
        ),
    ]
    spoken = quantity.listing(
        [f"{d['who']} {d['text']} ({quantity.digits(d['least'])} to {quantity.digits(d['greatest'])})" for d in data]
    )
    title = "Round-trip time"
    return Figure("rtt", title, f"{title}, median and 5th to 95th percentile: {spoken}.", sheet.spec(alt.layer(*layers)), _algorithms(known))


def _who_axis(titles: list[str]) -> alt.Y:
    return (
        alt.Y("who:N")
        .scale(domain=titles)
        .axis(title=None, labelFontSize=12, labelColor=INK, ticks=False, domain=False, labelLimit=160)
    )


def _plain_colours(known: list[tuple[Row, Measured]]) -> alt.Color:
    return (
        alt.Color("who:N")
        .scale(
            domain=[row.contender.title for row, _ in known], range=[row.contender.colour for row, _ in known]
        )
        .legend(None)
    )


def _algorithms(known: list[tuple[Row, Measured]]) -> list[str]:
    return list(dict.fromkeys(row.contender.cc for row, _ in known))


# --- over time ------------------------------------------------------------------------------------


def timelines(setup: Setup, curves: list[Curves]) -> list[Figure]:
    """A column of panels for each contender on common scales; first, all of them side by side."""
    scales = _common_scales(setup, curves)
    if not scales:
        return []
    columns = []
    everything = Sheet()
    charts = []
    for index, entry in enumerate(curves):
        sheet = Sheet()
        title = entry.contender.title
        columns.append(
            Figure(
                f"timeline-{index}",
                title,
                f"{title} over {quantity.digits(setup.duration_s)} s: "
                + quantity.listing([f"{scale.title} up to {scale.top_text}" for scale in scales])
                + ".",
                sheet.spec(_column(sheet, setup, entry, scales, y_titles=True)),
                [entry.contender.cc],
                entry.contender.colour,
                on_paper=False,
            )
        )
        # Side by side on paper, only the first of a row names the axes.
        chart = _column(everything, setup, entry, scales, y_titles=index % COLUMNS_MAX == 0)
        charts.append(chart.properties(title=alt.Title(title, color=entry.contender.colour)))
    together = alt.concat(*charts, columns=COLUMNS_MAX, spacing=12)
    titles = quantity.listing([c.contender.title for c in curves])
    combined = Figure(
        "timeline",
        "Over time",
        f"Throughput, round-trip time, window and queue over time of {titles}, on common scales.",
        everything.spec(together),
        [c.contender.cc for c in curves],
        on_page=False,
    )
    return [combined, *columns]


class _Scale:
    """One row of panels: its unit and common scale."""

    def __init__(self, key: str, title: str, unit: Unit, top: float, rule: float | None) -> None:
        self.key = key
        self.title = title
        self.unit = unit
        self.top = unit.scale(top)
        self.top_text = unit.text(top)
        self.rule = unit.scale(rule) if rule is not None and rule <= top * 1.1 else None


def _common_scales(setup: Setup, curves: list[Curves]) -> list[_Scale]:
    tops = {key: max((c.panels[key].greatest() for c in curves), default=0.0) for key in curves[0].panels}
    scales = []
    for key, title, units, rule in (
        ("throughput", "Throughput", RATES, setup.path.rate_bps),
        ("rtt", "RTT", (TIMES_MS[1],), setup.path.rtt_ns / 1e6 or None),
        ("cwnd", "Window", SIZES, None),
        ("queue", "Queue", SIZES, None),
    ):
        if tops[key] > 0:
            scales.append(_Scale(key, title, unit_for(tops[key], units), tops[key], rule))
    return scales


def _column(
    sheet: Sheet, setup: Setup, entry: Curves, scales: list[_Scale], *, y_titles: bool
) -> alt.VConcatChart:
    shared_queue = setup.together
    panels = []
    for scale in scales:
        last = scale is scales[-1]
        colour = GREY if scale.key == "queue" and shared_queue else entry.contender.colour
        panels.append(_panel(sheet, setup, entry.panels[scale.key], scale, colour, x_labels=last, y_title=y_titles))
    return alt.vconcat(*panels, spacing=8)


def _panel(
    sheet: Sheet, setup: Setup, panel: Panel, scale: _Scale, colour: str, *, x_labels: bool, y_title: bool
) -> alt.LayerChart:
    x = (
        alt.X("t:Q")
        .scale(domain=[0, setup.duration_s], nice=False)
        .axis(title="Time (s)" if x_labels else None, labels=x_labels, ticks=x_labels, tickCount=6, grid=True)
    )
    y = (
        alt.Y("v:Q")
        .scale(domain=[0, scale.top * 1.05], nice=False)
        .axis(
            title=f"{scale.title} ({scale.unit.name})" if y_title else None,
            tickCount=4,
            minExtent=32,
            titleFontSize=11,
        )
    )
    layers: list[alt.Chart] = []
    if scale.rule is not None:
        rule = alt.Chart(sheet.data([{"v": scale.rule}])).mark_rule(color=MUTED, strokeDash=[3, 3])
        layers.append(rule.encode(y="v:Q"))
    for lines, style in (
        (panel.pale, {"opacity": 0.3, "strokeWidth": 0.7}),
        (panel.dashed, {"opacity": 0.8, "strokeWidth": 1, "strokeDash": [3, 2], "interpolate": "step-after"}),
        (panel.main, {"strokeWidth": 1.3}),
    ):
        if lines or lines is panel.main:
            chart = alt.Chart(sheet.data(_rows(lines, scale.unit)), width=PANEL_WIDTH, height=PANEL_HEIGHT)
            layers.append(chart.mark_line(color=colour, clip=True, **style).encode(x=x, y=y, detail="s:N"))
    return alt.layer(*layers)


def _rows(curves: list[Curve], unit: Unit) -> Rows:
    return [
        {"t": round(float(t), 4), "v": round(unit.scale(float(v)), 4), "s": index}
        for index, curve in enumerate(curves)
        for t, v in zip(curve.x, curve.y, strict=True)
    ]


# --- shares: figures 9 and 10 of the BU report -----------------------------------------------------


def share_figures(setup: Setup, shares: Shares) -> list[Figure]:
    """Shares over time, the pie, and Jain's index over time."""
    palette = _share_palette(setup, shares)
    everything = sum(shares.total.values())
    figures = []
    if everything > 0:
        figures = [_share_bars(shares, palette), _pie(shares, palette, everything)]
    if len(shares.jain):
        figures.append(_jain(setup, shares))
    return figures


def _share_palette(setup: Setup, shares: Shares) -> dict[str, tuple[str, float]]:
    """A colour and an opacity for each part; flows of one algorithm share the hue and alternate in depth."""
    by_title = {c.title: c.colour for c in setup.contenders}
    lone = setup.contenders[0].colour
    palette: dict[str, tuple[str, float]] = {}
    used: dict[str, int] = {}
    for title in shares.bps:
        colour = by_title.get(title, lone)
        depth = used.get(colour, 0)
        used[colour] = depth + 1
        palette[title] = (colour, (1.0, 0.7, 0.85, 0.55)[depth % 4])
    return palette


def _share_scales(palette: dict[str, tuple[str, float]], labels: dict[str, str]) -> tuple[alt.Color, alt.Opacity]:
    titles = list(palette)
    names = [labels[title] for title in titles]
    many = len(titles) > 10
    colour = alt.Color("who:N").scale(domain=names, range=[palette[t][0] for t in titles])
    legend = colour.legend(None) if many else colour.legend(title=None, orient="bottom", columns=4, symbolType="square")
    depth = alt.Opacity("who:N").scale(domain=names, range=[palette[t][1] for t in titles]).legend(None)
    return legend, depth


def _share_bars(shares: Shares, palette: dict[str, tuple[str, float]]) -> Figure:
    titles = list(shares.bps)
    rows: Rows = [
        {
            "t": round(float(t - shares.bin_s / 2), 4),
            "t2": round(float(t + shares.bin_s / 2), 4),
            "v": round(float(shares.bps[title][i]), 1),
            "who": title,
            "rank": rank,
        }
        for rank, title in enumerate(titles)
        for i, t in enumerate(shares.time_s)
    ]
    sheet = Sheet()
    colour, depth = _share_scales(palette, {title: title for title in titles})
    chart = (
        alt.Chart(sheet.data(rows), width=CDF_WIDTH, height=CDF_HEIGHT)
        .mark_bar(clip=True)
        .encode(
            x=alt.X("t:Q").scale(domain=[0, float(shares.time_s[-1] + shares.bin_s / 2)], nice=False).axis(title="Time (s)", tickCount=6, grid=False),
            x2="t2:Q",
            y=alt.Y("v:Q").stack("normalize").axis(title=f"Share of what arrives per {quantity.digits(shares.bin_s)} s", format=".0%"),
            order="rank:Q",
            color=colour,
            opacity=depth,
        )
    )
    everything = sum(shares.total.values())
    spoken = quantity.listing([f"{t} {quantity.percent(v / everything)}" for t, v in shares.total.items()])
    return Figure("shares", "Shares over time", f"Shares over time; in all: {spoken}.", sheet.spec(chart), [])


def _pie(shares: Shares, palette: dict[str, tuple[str, float]], everything: float) -> Figure:
    labels = {t: f"{t} {quantity.percent(v / everything)}" for t, v in shares.total.items()}
    rows: Rows = [
        {"who": labels[title], "v": value, "rank": rank, "text": quantity.percent(value / everything) if value / everything >= 0.04 else ""}
        for rank, (title, value) in enumerate(shares.total.items())
    ]
    sheet = Sheet()
    colour, depth = _share_scales(palette, labels)
    base = alt.Chart(sheet.data(rows), width=260, height=CDF_HEIGHT).encode(
        theta=alt.Theta("v:Q").stack(True), order="rank:Q"
    )
    arcs = base.mark_arc(outerRadius=88, stroke="#ffffff", strokeWidth=1).encode(color=colour, opacity=depth)
    texts = base.mark_text(radius=106, fontSize=11, color=INK).encode(text="text:N")
    layers: list[alt.Chart] = [arcs, texts] if len(rows) <= 10 else [arcs]
    return Figure(
        "pie", "Shares of the whole", f"Shares of all that arrived: {quantity.listing(list(labels.values()))}.", sheet.spec(alt.layer(*layers)), []
    )


def _jain(setup: Setup, shares: Shares) -> Figure:
    rows: Rows = [
        {"t": round(float(t), 4), "v": round(float(v), 5)} for t, v in zip(shares.jain.x, shares.jain.y, strict=True)
    ]
    sheet = Sheet()
    chart = (
        alt.Chart(sheet.data(rows), width=CDF_WIDTH, height=120)
        .mark_line(color=INK, strokeWidth=1.6, clip=True)
        .encode(
            x=alt.X("t:Q").scale(domain=[0, setup.duration_s], nice=False).axis(title="Time (s)", tickCount=6),
            y=alt.Y("v:Q").scale(domain=[0, 1]).axis(title=f"Jain’s index per {quantity.digits(shares.bin_s)} s", tickCount=4),
        )
    )
    return Figure(
        "jain",
        "Fairness over time",
        f"Jain's index over time, between {shares.jain.y.min():.2f} and {shares.jain.y.max():.2f}.",
        sheet.spec(chart),
        [],
    )
