"""What explains a run: the same sentences and figures in result.json, in the terminal and on the page."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.experiment.expand import expand
from dragstrip.report.console import show_result
from dragstrip.report.write import write_report
from dragstrip.results.measures import parts_text

from . import synthetic


def page_text(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", page)))


@pytest.mark.parametrize("together", [False, True])
def test_the_page_and_the_terminal_say_what_the_document_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], together: bool
) -> None:
    race = dragstrip.compare(
        ["cubic", "bbr"],
        rate="10mbit",
        rtt="40ms",
        queue="bfifo limit 150kb",
        duration="8s",
        together=together,
    )
    document: dict[str, Any] = dict(dragstrip.run(race, tmp_path / "out").document)
    page = page_text((tmp_path / "out" / "report.html").read_text())
    show_result(document, expand(race), verbose=True)
    terminal = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert all(run["why"] for run in document["runs"])
    for run in document["runs"]:
        for finding in run["why"]:
            assert finding["sentence"] in page
        assert run["why"][0]["sentence"] in terminal
        for flow in run["flows"]:
            assert parts_text(flow["limited_s"]) in page
            assert parts_text(flow["state_s"]) in page
            assert sum(flow["limited_s"].values()) == pytest.approx(8.0, abs=0.2)
    if not together:
        rules = [run["why"][0]["rule"] for run in document["runs"]]
        assert rules == ["standing_queue", "pacing"]


def test_repeats_say_in_how_many_a_reason_holds(tmp_path: Path) -> None:
    race = dragstrip.compare(
        ["reno"], rate="5mbit", rtt="20ms", queue="bfifo limit 60kb", duration="4s", loss="0.01%", repeat=2
    )
    dragstrip.run(race, tmp_path / "out")
    assert "(holds in 2 of 2 repeats)" in page_text((tmp_path / "out" / "report.html").read_text())


def test_results_without_reasons_are_still_drawn(tmp_path: Path) -> None:
    """Those of earlier versions."""
    synthetic.write(synthetic.compare(["reno"], duration_s=4.0), tmp_path)
    document = json.loads((tmp_path / "result.json").read_text())
    assert "why" not in document["runs"][0]
    page = write_report(tmp_path).read_text()
    assert ">Why<" not in page
    assert "What limited each flow" not in page


def test_small_parts_are_left_out() -> None:
    assert parts_text({"cwnd": 1.0, "pacing": 99.0, "app": 0.5}) == "pacing 98.5 %"
    assert parts_text({"cwnd": 2.0, "pacing": 98.0}) == "pacing 98 %, cwnd 2 %"
    assert parts_text({}) == ""
