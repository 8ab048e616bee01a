"""All contenders in one figure: over time on one axis, and delay against throughput; a trace behind the throughput."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dragstrip
from dragstrip.display.colours import assign
from dragstrip.display.quantity import RATES
from dragstrip.report import charts, embed, vega
from dragstrip.report.collect import curves_of
from dragstrip.report.figure import Figure, Scatter, TimeLines
from dragstrip.report.load import load
from dragstrip.report.timeline import capacity
from dragstrip.results.comparison.setups import Setup, algorithms_of, setups_of
from dragstrip.results.comparison.stats import rows_of

from . import synthetic


def the_setup(folder: Path) -> Setup:
    bundle = load(folder)
    [setup] = setups_of(bundle.runs, assign(algorithms_of(bundle.runs)))
    return setup


def figures_of(setup: Setup) -> dict[str, Figure]:
    groups = charts.all_figures(setup, rows_of(setup), curves_of(setup), [])
    return {figure.name: figure for group in groups.values() for figure in group}


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    synthetic.write(synthetic.compare(["reno", "vegas"], repeats=2, duration_s=20.0), tmp_path)
    return the_setup(tmp_path)


def test_all_contenders_are_on_one_axis(setup: Setup) -> None:
    figures = figures_of(setup)
    content = figures["overlay"].content
    assert isinstance(content, TimeLines)
    for panel, alone in zip(content.panels, figures["timeline-2"].content.panels, strict=True):  # type: ignore[union-attr]
        assert [stroke.label for stroke in panel.strokes] == ["reno", "vegas"]
        assert panel.y == alone.y
        [own] = [stroke for stroke in alone.strokes if stroke.main]
        assert np.array_equal(panel.strokes[1].curves[0].y, own.curves[0].y)


def test_one_alone_has_no_overlay(tmp_path: Path) -> None:
    synthetic.write(synthetic.compare(["reno"], duration_s=4.0), tmp_path)
    assert "overlay" not in figures_of(the_setup(tmp_path))


def test_a_point_is_a_row_of_the_table_and_its_cloud_the_repeats(tmp_path: Path) -> None:
    synthetic.write(synthetic.compare(["reno", "vegas"], repeats=9, duration_s=8.0), tmp_path)
    setup = the_setup(tmp_path)
    figure = figures_of(setup)["delay-throughput"]
    assert isinstance(figure.content, Scatter)
    assert "better" in figure.content.corner
    for row, cloud in zip(rows_of(setup), figure.content.clouds, strict=True):
        assert row.rtt_p50_ms
        assert row.goodput_bps
        assert cloud.middle == (row.rtt_p50_ms.middle, pytest.approx(row.goodput_bps.middle / 1e6))
        trips = np.array([value for _, value in row.rtt_p50_ms.values])
        assert cloud.points.x.tolist() == trips.tolist()
        # One standard deviation in each direction, around the mean.
        assert float(cloud.ellipse.x.max()) == pytest.approx(
            float(trips.mean() + np.std(trips, ddof=1)), rel=0.01
        )
    assert [row[0].text for row in embed.table(figure).rows] == ["reno", "vegas"]
    assert vega.spec(figure)["layer"]


def test_of_a_single_run_a_line_spans_its_round_trips(tmp_path: Path) -> None:
    synthetic.write(synthetic.compare(["reno", "vegas"], duration_s=8.0), tmp_path)
    setup = the_setup(tmp_path)
    content = figures_of(setup)["delay-throughput"].content
    assert isinstance(content, Scatter)
    for row, cloud in zip(rows_of(setup), content.clouds, strict=True):
        assert row.rtt_p5_ms
        assert row.rtt_p95_ms
        assert cloud.ellipse.x.tolist() == [row.rtt_p5_ms.middle, row.rtt_p95_ms.middle]
        assert set(cloud.ellipse.y.tolist()) == {cloud.middle[1]}


def test_a_trace_is_drawn_behind_the_throughput(tmp_path: Path) -> None:
    trace = tmp_path / "cell.trace"
    # 12 Mbit/s in the first half of each second, 3 Mbit/s in the second.
    lines = [*range(1, 501), *range(504, 1001, 4)]
    trace.write_text("".join(f"{line}\n" for line in lines))
    race = dragstrip.compare(
        ["cubic", "bbr"],
        trace=str(trace),
        rtt="20ms",
        queue="bfifo limit 60kb",
        duration="6s",
    )
    dragstrip.run(race, tmp_path / "out")
    setup = the_setup(tmp_path / "out")
    [stroke] = capacity(setup, setup.way(setup.contenders[0]), RATES[0])
    [curve] = stroke.curves
    mean = float(curve.y.mean())
    assert mean == pytest.approx(len(lines) * 12_000, rel=0.01)
    assert float(curve.y.max()) == pytest.approx(12e6, rel=0.03)
    for name in ("overlay", "timeline-1"):
        content = figures_of(setup)[name].content
        assert isinstance(content, TimeLines)
        [panel] = [panel for panel in content.panels if panel.y.title.startswith("Throughput")]
        assert panel.strokes[0].label == "capacity"
        assert panel.y.high >= 12.0
    for entry in curves_of(setup):
        for line in entry.panels["throughput"].main:
            assert float(np.nanmax(line.y)) <= 1.05 * 12e6
