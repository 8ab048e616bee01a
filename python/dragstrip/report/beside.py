"""The report of recordings side by side: runs, captures and imported files.

They need no scenario, so there is no path, no bottleneck and no verdict: only what each recording contains,
in one table and on common axes. Unknown figures stay empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dragstrip.display import look, quantity
from dragstrip.display.colours import PALETTE
from dragstrip.display.quantity import MISSING, TIMES_MS, UNITS, Unit, unit_for
from dragstrip.display.table import Cell, Table
from dragstrip.io.files import adding
from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import Floats, grouped
from dragstrip.report import page, render, rows
from dragstrip.report.charts import cdf_scale
from dragstrip.report.figure import SOLID, Axis, Distribution, Figure, Line, Panel, Stroke, TimeLines
from dragstrip.report.paper import NO_FIGURES, Paper
from dragstrip.report.series import EMPTY, Curve, cdf, decimate, nice_bin_s, rate_per_bin
from dragstrip.results.measures import flow_figures, parts_text, probe_figures

Row: TypeAlias = dict[str, Any]

DRAWN_MAX = 8
"""Curves in a panel, at most; more would hide each other."""
ROWS_MAX = 200
"""Flows in the table, at most; the largest of each source come first."""
POINTS = 1200
DASHES = (SOLID, (6, 3), (2, 2), (8, 3, 2, 3))
"""Dash patterns; the first eight curves have a colour each, and a source's pings are dashed."""


@dataclass(frozen=True)
class Source:
    """A recording with its title on the page."""

    title: str
    kind: str
    """The origin of the recording: an engine, `capture`, or the program of an imported file."""
    recording: Recording
    flows: list[Row]
    """Rows of flows as `inspect --json` gives them."""
    probes: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def source(title: str, recording: Recording) -> Source:
    """Return any recording as a source, with the findings of `inspect` in its provenance, if any."""
    facts = recording.provenance
    inspected_flows = facts.get("flows")
    flows = inspected_flows if isinstance(inspected_flows, list) else flow_figures(recording)
    notes = facts.get("notes")
    note_texts = [str(note) for note in notes] if isinstance(notes, list) else []
    kind = str(facts.get("engine") or "")
    return Source(title, kind, recording, flows, probe_figures(recording), note_texts)


def document(sources: Sequence[Source]) -> Row:
    """Return the content of the page as JSON."""
    return {
        "version": 1,
        "sources": [
            {"title": source.title, "kind": source.kind, "notes": source.notes} for source in sources
        ],
        "flows": [{"source": source.title, **flow} for source in sources for flow in source.flows],
        "probes": [{"source": source.title, **probe} for source in sources for probe in source.probes],
    }


def write(sources: Sequence[Source], out: Path, figures: Paper = NO_FIGURES) -> Path:
    """Write `report.html` and the requested figures for papers into `out`, and return the page's path."""
    charts = _figures(sources)
    html = page.side_by_side(
        kinds=list(dict.fromkeys(source.kind for source in sources)),
        sources=sources,
        table=_table(sources),
        pings=_pings(sources),
        pictures=charts,
    )
    page_file = out / "report.html"
    with adding(out, page_file) as draft:
        (draft / page_file.name).write_text(html, encoding="utf-8", errors="backslashreplace")
        if figures.endings:
            (draft / "figures").mkdir()
            for figure in charts:
                if "csv" in figures.endings:
                    (draft / "figures" / f"{figure.name}.csv").write_text(
                        rows.csv_text(figure), encoding="utf-8"
                    )
                if figures.pictures:
                    picture = render.svg(figure, width_pt=figures.width_pt)
                    render.export(draft / "figures", figure.name, picture, figures)
    return page_file


# --- the tables -----------------------------------------------------------------------------------

METHODS = {
    "samples": "every sample",
    "latest": "the latest of each interval",
    "srtt": "smoothed",
    "ack": "data to acknowledgement",
    "echo": "acknowledgement to echo",
    "ack+echo": "both halves",
    "handshake": "handshake",
}
_HEADS = (
    ("Source", ""),
    ("Flow", ""),
    ("Algorithm", ""),
    ("Bytes", "New data that arrived, or were acknowledged"),
    ("Time", "From its first packet or row to its last"),
    ("Goodput", "Bytes over time"),
    ("RTT p5", ""),
    ("RTT p50", "In small type, how it was measured"),
    ("RTT p95", ""),
    ("Retransmitted", "Segments; in small type, what they were"),
    ("… of sent", "Retransmitted segments as a share of all"),
    ("Limited by", "Share of the time"),
    ("ECN", ""),
)
_DECIDING = frozenset({"Source", "Flow", "Goodput", "RTT p50", "Retransmitted"})


def _table(sources: Sequence[Source]) -> Table:
    body: list[list[Cell]] = []
    left_out = 0
    for source in sources:
        room = max(1, ROWS_MAX // len(sources))
        ordered = sorted(source.flows, key=lambda flow: -(flow["bytes"] or 0))
        left_out += max(0, len(ordered) - room)
        listed_flows = [flow for flow in source.flows if flow in ordered[:room]]
        for number, flow in enumerate(listed_flows):
            body.append(
                [Cell(source.title if number == 0 else "", source.kind if number == 0 else "", number=False)]
            )
            body[-1] += _cells(flow)
    caption = "Values that a source lacks are left open (–)."
    if left_out:
        caption += f" {quantity.count(left_out)} smaller flows are not shown."
    return Table(list(_HEADS), body, caption, [], _DECIDING)


def _cells(flow: Row) -> list[Cell]:
    rtt, again = flow["rtt_ms"], flow["retransmissions"]
    known_counts = [count for count in again.values() if count is not None]
    parts = [f"{quantity.count(count)} {name}" for name, count in again.items() if count]
    split = "" if again["needed"] is None else quantity.listing(parts)
    total = sum(known_counts) if known_counts else None
    share = total / flow["segments"] if total is not None and flow["segments"] else None
    return [
        Cell(flow["label"], number=False),
        Cell(flow.get("cc") or MISSING, number=False),
        Cell(quantity.size(flow["bytes"])),
        Cell(f"{flow['duration_s']:.4g} s"),
        Cell(quantity.rate(flow["goodput_bps"])),
        Cell(quantity.milliseconds(rtt["p5"])),
        Cell(quantity.milliseconds(rtt["p50"]), METHODS.get(rtt["method"] or "", "")),
        Cell(quantity.milliseconds(rtt["p95"])),
        Cell(quantity.count(total), split),
        Cell(quantity.percent(share)),
        Cell(parts_text(flow["limited_s"] or {}) or MISSING, number=False),
        Cell({None: MISSING, True: "yes", False: "no"}[flow["ecn"]], number=False),
    ]


def _pings(sources: Sequence[Source]) -> Table | None:
    body = []
    for source in sources:
        for probe in source.probes:
            rtt = probe["rtt_ms"]
            body.append(
                [
                    Cell(source.title, source.kind, number=False),
                    Cell(f"{probe['probe']} {probe['target'] or ''}".strip(), number=False),
                    *(Cell(quantity.count(probe[name])) for name in ("sent", "lost")),
                    *(Cell(quantity.milliseconds(rtt[name])) for name in ("p5", "p50", "p95")),
                ]
            )
    heads = ("Source", "Ping", "Sent", "Lost", "RTT p5", "RTT p50", "RTT p95")
    return Table([(head, "") for head in heads], body) if body else None


# --- the figures ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CurveSet:
    """A flow or a ping with its curves; `x` is in seconds from its source's beginning."""

    title: str
    colour: str
    dash: tuple[int, ...]
    round_trips: Curve
    arrived: Curve
    window: Curve
    flight: Curve


def _figures(sources: Sequence[Source]) -> list[Figure]:
    curve_sets = _curve_sets(sources)
    figures = [_distribution(curve_sets), _timelines(curve_sets)]
    return [figure for figure in figures if figure is not None]


def _curve_sets(sources: Sequence[Source]) -> list[_CurveSet]:
    """Choose the largest flow of each source, then the second of each, as far as there is room, then pings.

    A source without flows shows its pings instead.
    """
    entries: list[tuple[int, int, Source, Row | None, Row | None]] = []
    for place, source in enumerate(sources):
        ordered = sorted(source.flows, key=lambda flow: -(flow["bytes"] or 0))
        entries += [(rank, place, source, flow, None) for rank, flow in enumerate(ordered)]
        behind = len(ordered) and ROWS_MAX
        entries += [(behind + rank, place, source, None, probe) for rank, probe in enumerate(source.probes)]
    selected = sorted(entries, key=lambda entry: entry[:2])[:DRAWN_MAX]
    curve_sets = []
    for number, (_, _, source, flow, probe) in enumerate(
        sorted(selected, key=lambda entry: (entry[1], entry[0]))
    ):
        colour = PALETTE[number % len(PALETTE)]
        curve_sets.append(
            _flow(source, flow, colour) if flow is not None else _ping(source, probe or {}, colour)
        )
    return curve_sets


def _beginning_ns(recording: Recording) -> float:
    """Return a recording's time zero in nanoseconds: 0 with a scenario, else the time of the first row."""
    if recording.scenario.get("nodes"):
        return 0.0
    starts = [row["start_ns"] for row in recording["flows"].select(["start_ns"]).to_pylist()]
    first_times_ns: list[float] = [float(start) for start in starts if start is not None]
    for table in ("samples", "received", "rtts", "probes"):
        times = recording[table].column("time_ns")
        first_times_ns += [float(times[0].as_py())] if len(times) else []
    return min(first_times_ns, default=0.0)


def _flow(source: Source, flow: Row, colour: str) -> _CurveSet:
    origin = _beginning_ns(source.recording)

    def of(table: str, *columns: str) -> Row:
        by_flow = grouped(source.recording, table, "flow", ("time_ns", *columns))
        return by_flow.get(flow["flow"], {column: np.empty(0) for column in ("time_ns", *columns)})

    samples = of("samples", "rtt_ns", "srtt_ns", "cwnd_bytes", "bytes_in_flight", "bytes_acked")
    received, rtts = of("received", "new_bytes"), of("rtts", "rtt_ns")
    at = (samples["time_ns"] - origin) / 1e9

    def curve(column: str, divisor: float = 1.0) -> Curve:
        finite = np.isfinite(samples[column])
        return Curve(at[finite], samples[column][finite] / divisor)

    trips = Curve((rtts["time_ns"] - origin) / 1e9, rtts["rtt_ns"] / 1e6)
    for column in ("rtt_ns", "srtt_ns"):
        trips = trips if len(trips) else curve(column, 1e6)
    if len(received["time_ns"]):
        arrived = _rate(received["time_ns"] - origin, received["new_bytes"])
    else:
        acked = curve("bytes_acked")
        arrived = _rate(acked.x[1:] * 1e9, np.diff(acked.y)) if len(acked) else EMPTY
    several = len(source.flows) > 1
    title = f"{source.title}: {flow['label']}" if several else source.title
    return _CurveSet(title, colour, SOLID, trips, arrived, curve("cwnd_bytes"), curve("bytes_in_flight"))


def _ping(source: Source, probe: Row, colour: str) -> _CurveSet:
    rows_of = grouped(source.recording, "probes", "probe", ("time_ns", "rtt_ns", "target", "lost"))
    mine = rows_of[probe["probe"]]
    answered = (mine["target"] == probe["target"]) & (mine["lost"] != True)  # noqa: E712 - an array of objects
    at = (mine["time_ns"][answered] - _beginning_ns(source.recording)) / 1e9
    trips = Curve(at, mine["rtt_ns"][answered] / 1e6)
    name = f"{source.title}: ping {probe['target'] or ''}".strip()
    return _CurveSet(name, colour, DASHES[1], trips, EMPTY, EMPTY, EMPTY)


def _rate(time_ns: Floats, size_bytes: Floats) -> Curve:
    """Return the rate of new data over time, in bins no shorter than the spacing of the rows."""
    if not len(time_ns):
        return EMPTY
    end_s = float(time_ns[-1]) / 1e9
    # A bin shorter than the rows are apart would show gaps where there are none.
    spacing_s = float(np.median(np.diff(time_ns))) / 1e9 if len(time_ns) > 1 else end_s
    bin_s = nice_bin_s(end_s, 150, max(0.1, spacing_s))
    return rate_per_bin(time_ns, np.nan_to_num(size_bytes), 0.0, end_s, bin_s)


def _distribution(curve_sets: Sequence[_CurveSet]) -> Figure | None:
    entries = [
        (curve_set, cdf(curve_set.round_trips.y)) for curve_set in curve_sets if len(curve_set.round_trips)
    ]
    if not entries:
        return None
    unit = TIMES_MS[1] if max(float(curve.x[-1]) for _, curve in entries) >= 1 else TIMES_MS[0]
    lines = []
    for curve_set, curve in entries:
        note = quantity.milliseconds(float(np.median(curve_set.round_trips.y)))
        lines.append(
            Line(
                curve_set.title,
                note,
                curve_set.colour,
                Curve(curve.x / unit.divisor, curve.y),
                curve_set.dash,
            )
        )
    low, high, logarithmic = cdf_scale(lines, None)
    title = f"Round-trip time ({unit.name}{', logarithmic' if logarithmic else ''})"
    listed = quantity.listing([f"{line.label} {line.note}" for line in lines])
    content = Distribution(Axis(title, low, high, unit.name, logarithmic), lines)
    words = f"Round-trip time: cumulative distribution. Medians: {listed}."
    return Figure("cdf-rtt", "Round-trip time", words, content)


def _timelines(curve_sets: Sequence[_CurveSet]) -> Figure | None:
    panels = []
    for name, key in (
        ("arrived", "goodput"),
        ("round_trips", "rtt"),
        ("window", "cwnd"),
        ("flight", "flight"),
    ):
        title, kind = look.panel(key)
        curves = [(curve_set, decimate(getattr(curve_set, name), POINTS)) for curve_set in curve_sets]
        panel = _panel(title, UNITS[kind], [(curve_set, curve) for curve_set, curve in curves if len(curve)])
        panels += [] if panel is None else [panel]
    if not panels:
        return None
    strokes = [stroke for panel in panels for stroke in panel.strokes]
    end_s = max(float(curve.x[-1]) for stroke in strokes for curve in stroke.curves)
    names = quantity.listing([curve_set.title for curve_set in curve_sets])
    words = f"{names} over time, each from its own beginning, on common axes."
    content = TimeLines(Axis("Time (s)", 0, end_s or 1.0, "s"), panels, 400, 120)
    return Figure("overlay", "Over time", words, content)


def _panel(title: str, units: tuple[Unit, ...], curves: Sequence[tuple[_CurveSet, Curve]]) -> Panel | None:
    top = max((float(np.nanmax(curve.y)) for _, curve in curves), default=0.0)
    if top <= 0:
        return None
    unit = unit_for(top, units)
    strokes = [
        Stroke(
            [Curve(c.x, c.y / unit.divisor)],
            curve_set.colour,
            1.3,
            dash=curve_set.dash,
            label=curve_set.title,
            main=True,
        )
        for curve_set, c in curves
    ]
    return Panel(Axis(f"{title} ({unit.name})", 0, unit.scale(top) * look.HEADROOM, unit.name), strokes)
