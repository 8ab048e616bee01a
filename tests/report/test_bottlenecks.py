"""Several bottlenecks: each flow's figures are those of the link where it queues, and repeats are explained together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import dragstrip
from dragstrip.display import quantity
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.scenario.paths import with_facts
from dragstrip.report import picture, timeline
from dragstrip.report.collect import curves_of
from dragstrip.report.console import show_result
from dragstrip.report.load import load as load_result
from dragstrip.results.comparison.causes import causes
from dragstrip.results.comparison.setups import Setup, setups_of
from dragstrip.studies.execution.runner import execute, plan

from .test_why import page_text

CASES = Path(__file__).parent / "two-bottlenecks"


def _finding(rule: str, sentence: str, flows: list[str] | None = None, **figures: float) -> dict[str, Any]:
    return {"rule": rule, "flows": flows or ["a"], "sentence": sentence, "figures": figures}


def _run(*findings: dict[str, Any], **goodputs: float) -> dict[str, Any]:
    flows = [{"label": label, "goodput_bps": bps} for label, bps in goodputs.items()]
    return {"why": list(findings), "flows": flows}


def _queue(ms: str, label: str = "cubic-2") -> dict[str, Any]:
    return _finding("standing_queue", f"The queue at r1-r2 is rarely empty: {ms} ms of {label}'s is delay")


def test_a_cause_leads_only_if_most_repeats_show_it() -> None:
    other = _finding("pacing", "Pacing limits a for 60.0 % of the time")
    runs = [_run(other, _queue("10.0")), _run(_queue("20.0")), _run(_queue("30.0"))]
    first, second = causes(runs)
    assert (first.rule, first.holds, first.leads) == ("standing_queue", 3, True)
    assert first.sentence == "The queue at r1-r2 is rarely empty: 20.0 ms of cubic-2's is delay"
    assert (second.rule, second.extent, second.leads) == ("pacing", "holds in 1 of 3 repeats", False)


def test_medians_are_written_in_the_units_of_the_core() -> None:
    sentences = ["at 900 kbit/s of `4096 16384`, twice", "at 1.20 Mbit/s of `4096 16384`, twice"]
    (cause,) = causes([_run(_finding("filled", sentence)) for sentence in sentences])
    assert cause.sentence == "at 1.05 Mbit/s of `4096 16384`, twice"


def test_unequal_goodputs_are_those_of_the_table() -> None:
    def run(most: float, least: float) -> dict[str, Any]:
        words = f"a gets {most / least:.2f} times the goodput of b ({most:.2f} Mbit/s and {least:.2f} Mbit/s): why"
        figures = {"most_bps": most * 1e6, "least_bps": least * 1e6}
        told = [_finding("unfair_share", words, ["a", "b"], **figures)] if most >= 2 * least else []
        return _run(*told, a=most * 1e6, b=least * 1e6)

    (cause,) = causes([run(9.0, 3.0), run(8.0, 4.0), run(7.0, 6.0)])
    assert (cause.holds, cause.leads) == (2, True)
    assert cause.sentence == "a gets 2 times the goodput of b (8 Mbit/s and 4 Mbit/s): why"


def _made(name: str, out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], Setup, str, str]:
    experiment = Experiment.read(CASES / name)
    document: dict[str, Any] = dict(dragstrip.run(experiment, out).document)
    capsys.readouterr()
    show_result(document, expand(experiment), verbose=True)
    terminal = re.sub(r"\s+", " ", capsys.readouterr().out)
    (setup,) = setups_of(load_result(out).runs)
    return document, setup, terminal, page_text((out / "report.html").read_text())


def test_both_flows_queue_at_the_faster_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, setup, terminal, page = _made("park.toml", tmp_path / "out", capsys)
    (run,) = document["runs"]
    assert [flow["bottleneck"] for flow in run["flows"]] == ["r1-r2", "r1-r2"]
    queues = {queue["link"]: queue for queue in run["queues"]}
    assert queues["r1-r2"]["dropped"] > 0 == queues["r2-x"]["dropped"]
    kilobytes = f"{queues['r1-r2']['backlog_bytes']['p50'] / 1e3:.1f}"
    assert float(kilobytes) > 50
    assert terminal.count(kilobytes) == 2
    named = [sentence for finding in run["why"] for sentence in [finding["sentence"]] if "r2-x" in sentence]
    assert not named
    assert "At r1-r2 (" in page
    assert "Idle time of r1-r2" in page
    texts = [
        [panel.rule.text for panel in figure.content.panels if panel.rule]
        for figure in timeline.timelines(setup, curves_of(setup))
    ]
    assert [setup.way(contender).rate_bps for contender in setup.contenders] == [20_000_000, 20_000_000]
    idle = [next(text for text in each if text.startswith("idle")) for each in texts]
    assert idle[0] != idle[1]


def test_what_one_repeat_shows_does_not_lead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, _, terminal, page = _made("late-bbr.toml", tmp_path / "out", capsys)
    for run in document["runs"]:
        dropped = {queue["link"]: queue["dropped"] for queue in run["queues"]}
        for flow in run["flows"]:
            if flow["loss_link"]:
                assert dropped[flow["loss_link"]] > 0
        assert run["flows"][2]["loss_link"] != "r1-r2"
    known = causes(document["runs"])
    for cause in known:
        if cause.holds < 5:
            assert f"({cause.extent})" in page
            bold = [text for text in re.findall(r"<strong>(.*?)</strong>", page) if cause.sentence in text]
            assert cause.leads or not bold
    first = known[0]
    if first.leads:
        assert f"{first.sentence} ({first.extent})" in terminal
    unequal = [cause for cause in known if cause.rule == "unfair_share" and not cause.leads]
    assert all(cause.sentence not in terminal for cause in unequal)
    assert document["runs"][0]["competing"][0]["max_min_bps"]
    assert "max–min fair rates" in page


def test_a_fixed_window_is_not_called_reduced(tmp_path: Path) -> None:
    document = dict(
        dragstrip.run(dragstrip.compare(["fixed"], path="cable", duration="10s"), tmp_path / "out").document
    )
    (run,) = document["runs"]
    assert run["flows"][0]["reductions"] == 0
    assert "reduction" not in json.dumps(run["why"])


def test_a_counterfactual_has_the_medians_of_the_repeats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence took its figures from the first repeat alone."""
    path = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "loss": "0.1%", "duration": "5s"}
    experiment = dragstrip.compare(["cubic", "vegas"], together=True, **path)
    planned = plan(experiment.changed(repeat=5))
    document = execute(planned, tmp_path / "out", workers=1, counterfactuals=True)
    capsys.readouterr()
    show_result(document, planned.runs, verbose=True)
    terminal = re.sub(r"\s+", " ", capsys.readouterr().out)
    page = page_text((tmp_path / "out" / "report.html").read_text())
    (finding,) = [finding for run in document["runs"] for finding in run["why"] if "without" in finding]
    without = finding["without"]
    assert (finding["rule"], without["repeats"], without["confirms"]) == ("unfair_share", 5, True)
    goodputs = [run["flows"][1]["goodput_bps"] for run in document["runs"]]
    assert len(set(goodputs)) == 5
    again = execute(plan(Experiment.read(tmp_path / "out" / without["experiment"])), tmp_path / "again")
    after = median(run["flows"][0]["goodput_bps"] for run in again["runs"])
    assert without["figures"]["goodput_bps"] == after
    sentence = (
        f"vegas gets {quantity.rate(after)} instead of {quantity.rate(median(goodputs))} "
        "(medians of 5 runs of their own"
    )
    assert quantity.rate(goodputs[0]) != quantity.rate(median(goodputs))
    assert sentence in terminal
    assert sentence in page


def _boxes(svg: str) -> dict[str, float]:
    """Return the horizontal place of each node of a drawing."""
    names = re.findall(r'<text x="([\d.]+)"[^>]*font-weight="bold">(\w+)</text>', svg)
    return {name: float(place) for place, name in names}


def test_routers_in_series_stand_one_after_the_other() -> None:
    """A sender at each of two routers put both routers into one column."""
    experiment = Experiment.read(CASES / "late-bbr.toml")
    svg, _ = picture.draw([with_facts(expand(experiment)[0].scenario)], {})
    places = _boxes(svg)
    assert places["a"] == places["b"] < places["r1"] < places["r2"] < places["r3"] < places["x"]
    assert places["c"] == places["r1"]
    assert places["y"] == places["r3"]


def test_the_picture_marks_the_link_where_each_flow_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, setup, _, page = _made("apart.toml", tmp_path / "apart", capsys)
    assert setup.bottlenecks == {"r1-r2": ["near · cubic"], "r2-x": ["far · reno"]}
    assert "queue of near · cubic" in page
    assert "queue of far · reno" in page
    # The slowest link is not the one where they wait.
    _, setup, _, page = _made("park.toml", tmp_path / "park", capsys)
    assert list(setup.bottlenecks) == ["r1-r2"]
    svg = (tmp_path / "park" / "report.html").read_text()
    assert "queue of" not in svg
    assert len(re.findall(r"<text[^>]*>bottleneck</text>", svg)) == 2  # wide and narrow


def test_marks_of_crowded_links_stand_below_the_picture() -> None:
    experiment = Experiment.read(CASES / "late-bbr.toml")
    scenario = with_facts(expand(experiment)[0].scenario)
    for svg in picture.draw([scenario], {}, {"r1-r2": ["long", "short1"], "r2-r3": ["late"]}):
        places = dict(re.findall(r'<text x="8.0" y="([\d.]+)"[^>]*>([^<]*)</text>', svg))
        assert list(places.values()) == ["r1 → r2: queue of long, short1", "r2 → r3: queue of late"]
        height = float(re.search(r'height="(\d+)"', svg)[1])  # type: ignore[index]
        assert all(float(place) < height for place in places)
        assert svg.count('stroke-width="2.8"') == 2


def test_repeats_with_other_units_and_grouped_thousands_have_one_cause() -> None:
    sentences = [
        "a resends 9876 segments and waits 900 µs",
        "a resends 12\u2009344 segments and waits 1.20 ms",
    ]
    runs = [{"why": [{"rule": "aqm", "flows": ["a"], "sentence": sentence}]} for sentence in sentences]
    (cause,) = causes(runs)
    assert (cause.sentence, cause.holds) == ("a resends 11\u2009110 segments and waits 1.05 ms", 2)
