"""The same contender in several setups: medians side by side, differences of the same seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.display.colours import assign
from dragstrip.display.quantity import percent, rate
from dragstrip.experiment.types import Experiment
from dragstrip.report import across, timeline, variable, why
from dragstrip.report.collect import curves_of
from dragstrip.report.figure import Bars, TimeLines
from dragstrip.report.load import load, middle_of
from dragstrip.results.comparison import span
from dragstrip.results.comparison.setups import Setup, algorithms_of, setups_of
from dragstrip.results.comparison.stats import rows_of

QUEUES = ["bfifo limit 100kb", "fq_codel"]


def experiment(queues: list[str]) -> Experiment:
    return Experiment.build(
        {
            "name": "does-fq-codel-help",
            "title": "Does fq_codel help?",
            "duration": "3s",
            "repeat": 3,
            "path": {"rate": "5mbit", "rtt": "20ms", "queue": "bfifo limit 100kb", "loss": "0.5%"},
            "flows": [{"cc": "cubic"}],
            "vary": {"path.queue": queues, "flows.cc": ["cubic", "reno"]},
        }
    )


def setups_in(folder: Path) -> list[Setup]:
    bundle = load(folder)
    return setups_of(bundle.runs, assign(algorithms_of(bundle.runs)))


def test_setups_stand_side_by_side_with_paired_differences(tmp_path: Path) -> None:
    document: dict[str, Any] = dict(
        dragstrip.run(experiment(QUEUES), tmp_path / "out", figures=["csv"]).document
    )
    setups = setups_in(tmp_path / "out")
    table = across.table(setups)
    assert table is not None
    assert [head for head, _ in table.heads] == ["Algorithm", "Measure", "A", "B", "B − A"]
    goodput: dict[tuple[str, int], list[float]] = {}
    for run in document["runs"]:
        queue = next(at for at, queue in enumerate(QUEUES) if queue in run["scenario"])
        [flow] = run["flows"]
        goodput.setdefault((flow["cc"], queue), []).append(flow["goodput_bps"])
    for cc, at in (("cubic", 0), ("reno", 3)):
        before, after = goodput[cc, 0], goodput[cc, 1]
        apart = sorted(b - a for a, b in zip(before, after, strict=True))
        row = table.rows[at]
        assert row[0].text == cc
        assert [cell.text for cell in row[2:4]] == [rate(middle_of(before)), rate(middle_of(after))]
        sign = "−" if apart[1] < 0 else "+"
        assert row[4].text == (f"{sign}{rate(abs(apart[1]))}" if apart[1] else rate(0.0))
        assert " to " in row[4].note
    figures = {figure.name: figure for figure in across.figures(setups)}
    assert set(figures) == {"across-goodput", "across-rtt", "across-retransmitted"}
    bars = figures["across-goodput"].content
    assert isinstance(bars, Bars)
    assert [bar.label for bar in bars.bars] == ["cubic · A", "cubic · B", "reno · A", "reno · B"]
    assert bars.bars[1].value == pytest.approx(middle_of(goodput["cubic", 1]) / 1e6)
    assert "Across setups" in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "figures" / "across-goodput.csv").exists()


def test_one_setup_has_nothing_to_compare(tmp_path: Path) -> None:
    dragstrip.run(experiment(QUEUES[:1]), tmp_path / "out")
    setups = setups_in(tmp_path / "out")
    assert across.table(setups) is None
    assert across.figures(setups) == []
    assert "Across setups" not in (tmp_path / "out" / "report.html").read_text()


def test_set_ups_that_differ_in_one_number_are_drawn_along_it(tmp_path: Path) -> None:
    queues = ["bfifo limit 10kb", "bfifo limit 40kb", "bfifo limit 100kb"]
    document: dict[str, Any] = dict(
        dragstrip.run(experiment(queues), tmp_path / "out", figures=["csv"]).document
    )
    setups = setups_in(tmp_path / "out")
    figure = variable.figure(setups)
    assert figure is not None
    content = figure.content
    assert isinstance(content, TimeLines)
    assert content.time.title == "Buffer (kB)"
    goodput = content.panels[0]
    assert [stroke.label for stroke in goodput.strokes] == ["cubic", "reno"]
    for stroke in goodput.strokes:
        [curve] = stroke.curves
        assert list(curve.x) == [10.24, 40.96, 102.4]
        for queue, value in zip(queues, curve.y, strict=True):
            ours = [
                flow["goodput_bps"]
                for run in document["runs"]
                for flow in run["flows"]
                if flow["cc"] == stroke.label and queue in run["scenario"]
            ]
            assert value == pytest.approx(middle_of(ours) / 1e6)
    assert (tmp_path / "out" / "figures" / "along.csv").exists()
    # Two say no more than bars do.
    assert variable.figure(setups[:2]) is None


def test_another_discipline_is_no_number(tmp_path: Path) -> None:
    dragstrip.run(experiment([*QUEUES, "bfifo limit 40kb"]), tmp_path / "out", report=False)
    assert variable.figure(setups_in(tmp_path / "out")) is None


def together(queues: list[str]) -> Experiment:
    return Experiment.build(
        {
            "name": "buffers",
            "title": "Who gets the path?",
            "duration": "5s",
            "path": {"rate": "10mbit", "rtt": "40ms"},
            "flows": [{"cc": "cubic"}, {"cc": "vegas"}],
            "vary": {"path.queue": queues},
        }
    )


MANY = ["0.5bdp", "1bdp", "4bdp", "fq_codel"]


def test_many_set_ups_are_summed_up(tmp_path: Path) -> None:
    document: dict[str, Any] = dict(dragstrip.run(together(MANY), tmp_path / "out", report=False).document)
    setups = setups_in(tmp_path / "out")
    said = [it.striptags() for it in span.sentences([(setup, rows_of(setup)) for setup in setups])]
    shares: dict[str, list[float]] = {"cubic": [], "vegas": []}
    for run in document["runs"]:
        bytes_of = {flow["cc"]: flow["goodput_bps"] for flow in run["flows"]}
        for cc, found in shares.items():
            found.append(bytes_of[cc] / sum(bytes_of.values()))
    ahead = sum(share > 0.5 for share in shares["cubic"])
    assert (
        "cubic has the highest goodput in "
        + (f"all {len(MANY)} setups" if ahead == len(MANY) else f"{ahead} of {len(MANY)} setups")
        in said[0]
    )
    for cc, sentence in zip(shares, said[1:], strict=True):
        least, greatest = min(shares[cc]), max(shares[cc])
        ends = [f"{percent(share)} ({setups[shares[cc].index(share)].short})" for share in (least, greatest)]
        expected = f"{cc} gets {ends[0]} to {ends[1]} of the bytes."
        assert sentence == " ".join(expected.split())  # without thin spaces, as striptags leaves it
    # Two set-ups have a sentence each instead.
    assert span.sentences([(setup, rows_of(setup)) for setup in setups[:2]]) == []


def test_explanations_alike_are_told_once(tmp_path: Path) -> None:
    dragstrip.run(together(MANY), tmp_path / "out", report=False)
    setups = setups_in(tmp_path / "out")
    groups = why.common(setups)
    rules = [setup.runs[0].summary["why"][0] for setup in setups]
    first = [(found["rule"], tuple(found["flows"])) for found in rules]
    assert [group.count for group in groups] == sorted(
        (first.count(each) for each in dict.fromkeys(first)), reverse=True
    )
    assert groups[0].count > 1
    for group in groups:
        assert group.of == len(setups)
        own = rules[setups.index(group.setup)]
        assert group.reason.sentences[0] == own["sentence"]
        assert group.setup.short in group.where
        assert first.count((own["rule"], tuple(own["flows"]))) == group.count


def test_small_figures_have_common_scales(tmp_path: Path) -> None:
    dragstrip.run(together(MANY), tmp_path / "out", figures=["svg"])
    setups = setups_in(tmp_path / "out")
    curves = [curves_of(setup) for setup in setups]
    figures = timeline.multiples(list(zip(setups, curves, strict=True)))
    assert [figure.title for figure in figures] == [setup.short for setup in setups]
    scales = []
    for figure in figures:
        assert isinstance(figure.content, TimeLines)
        scales.append([panel.y for panel in figure.content.panels])
        for panel in figure.content.panels:
            assert [stroke.label for stroke in panel.strokes] == ["cubic", "vegas"]
            for stroke in panel.strokes:
                assert max(float(curve.y.max()) for curve in stroke.curves) <= panel.y.high
    assert all(scale == scales[0] for scale in scales)
    assert (tmp_path / "out" / "figures" / "multiples.svg").exists()


def test_many_set_ups_stand_in_rows(tmp_path: Path) -> None:
    dragstrip.run(together(MANY), tmp_path / "out", report=False)
    setups = setups_in(tmp_path / "out")
    table = across.table(setups)
    assert table is not None
    assert [head for head, _ in table.heads][:4] == ["Algorithm", "Setup", "Goodput", "Goodput − A"]
    assert [row[1].text for row in table.rows] == [
        f"{letter}: {setup.short}"
        for _ in ("cubic", "vegas")
        for letter, setup in zip("ABCD", setups, strict=True)
    ]
