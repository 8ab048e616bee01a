"""What a page says against itself: winners that hardly send, cores that are not of their sources, idle paths."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from dragstrip.display.quantity import RATES
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment
from dragstrip.report import timeline
from dragstrip.report.load import load
from dragstrip.report.write import write_report
from dragstrip.results.comparison import path as paths
from dragstrip.results.comparison.setups import setups_of
from dragstrip.results.comparison.stats import rows_of
from dragstrip.results.comparison.verdict import headline, verdicts
from dragstrip.studies.execution.runner import execute, plan

from . import synthetic


def _text(page: Path) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", page.read_text())))


@pytest.mark.parametrize(("share", "starved"), [(0.05, True), (0.2, False)])
def test_who_hardly_sends_does_not_win_on_delay_without_a_word(
    tmp_path: Path, share: float, starved: bool
) -> None:
    """Vegas has the lowest delay of the three; whether it has used the path decides what is said of that."""
    shares = {"reno": 1.0, "cubic": 1.0, "vegas": share}
    runs = [synthetic.RunPlan(cc, [synthetic.FlowPlan(cc, cc, share=part)]) for cc, part in shares.items()]
    synthetic.write(synthetic.Plan(runs, duration_s=20.0), tmp_path)
    text = _text(write_report(tmp_path))
    (setup,) = setups_of(load(tmp_path).runs)
    rows = rows_of(setup)
    of_delay = {verdict.quantity_name: verdict for verdict in verdicts(setup, rows)}["Lowest median RTT"]
    assert of_delay.best == ["vegas"]
    assert bool(of_delay.note) == starved
    words = re.compile(r"vegas gets only [\d.]+ % of the highest goodput; of the others, (\w+)")
    assert bool(words.search(of_delay.note)) == starved
    assert bool(words.search(headline(setup, rows).striptags())) == starved
    assert len(words.findall(text)) == (3 if starved else 0)  # the sentence, the median, the 95th percentile


BUILDS: list[tuple[dict[str, Any], str]] = [
    ({"profile": "release", "sources_changed_since": False}, ""),
    ({"profile": "quick", "sources_changed_since": False}, "1 of 2 runs were made by a quick build"),
    ({"profile": "release", "sources_changed_since": True}, "1 of 2 runs were made by a core older than its"),
]


@pytest.mark.parametrize(("build", "said"), BUILDS)
def test_the_page_says_what_core_made_its_figures(tmp_path: Path, build: dict[str, Any], said: str) -> None:
    synthetic.write(synthetic.compare(["reno", "cubic"], duration_s=2.0), tmp_path)
    file = tmp_path / "runs" / "001-cubic" / "provenance.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "build": build}))
    text = _text(write_report(tmp_path))
    assert said in text
    assert ("runs were made by" in text) == bool(said)


PATHS = [
    {"rate": "1mbit", "link": "wire"},
    {"rate": "1mbit", "link": "htb"},
    {"rate": "1mbit", "link": "wire", "up_rate": "500kbit"},
]


@pytest.mark.parametrize("path", PATHS)
def test_the_idle_round_trip_is_what_an_idle_ping_takes(tmp_path: Path, path: dict[str, Any]) -> None:
    """Against the pings of a run whose flow begins after them."""
    race = compare(["reno"], rtt="40ms", queue="bfifo limit 60kb", duration="3s", **path)
    content = race.content() | {"vary": {}}
    content["flows"] = [{"cc": "reno", "start": "2s"}]
    planned = plan(Experiment.build(content))
    document = execute(planned, tmp_path / "out", workers=1)
    probes = parquet.read_table(
        tmp_path / "out" / document["runs"][0]["recording"] / "probes.parquet"
    ).to_pydict()
    idle = [
        rtt / 1e6 for at, rtt in zip(probes["time_ns"], probes["rtt_ns"], strict=True) if at < 2e9 and rtt
    ]
    (setup,) = setups_of(load(tmp_path / "out").runs)
    milliseconds, words = paths.idle(setup.path)
    # The first one waits for ARP.
    assert len(idle) > 5
    assert idle[1:] == pytest.approx([milliseconds] * (len(idle) - 1), abs=1e-6)
    text = _text(tmp_path / "out" / "report.html")
    assert f"A ping over the idle path takes {words.removeprefix('idle ')}." in text


def test_a_path_that_changes_has_no_single_rate(tmp_path: Path) -> None:
    """The title says so, the times are listed and marked, and the capacity is a curve instead of a line."""
    race = compare(
        ["cubic", "reno"], rate="10mbit", rtt="20ms", queue="bfifo limit 60kb", duration="4s",
        change=["2s rate=2mbit", "3s state=down rtt=30ms", "3.2s state=up"],
    )  # fmt: skip
    planned = plan(race)
    execute(planned, tmp_path)
    text = _text(write_report(tmp_path))
    assert "at first (3 changes)" in text
    assert "bottleneck 10" not in text
    assert "2 s: r → d 2 Mbit/s" in text
    assert "3 s: r → d down; d → r delay 30 ms" in text
    (setup,) = setups_of(load(tmp_path).runs)
    capacity = timeline.capacity(setup, setup.path, RATES[-1])[0].curves[0]
    rates = capacity.y * RATES[-1].divisor
    assert capacity.x.tolist() == [0.0, 2.0, 3.0, 3.2, setup.end_s]
    assert rates.tolist() == [1e7, 2e6, 0.0, 2e6, 2e6]
    assert [mark.at for mark in timeline.marks(setup)] == [2.0, 3.0, 3.2]
    # 2 s at 10, 1.8 s at 2 Mbit/s: nobody has more than the integral.
    for run in setup.runs:
        assert sum(flow["bytes_received"] for flow in run.flows) * 8 <= 2 * 1e7 + 1.8 * 2e6 + 1e6
