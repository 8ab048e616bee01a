"""Runs without the cause of a run: they show what they say, are repeated by their file, and are bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragstrip.execution import counterfactual
from dragstrip.execution.runner import execute, plan
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment
from dragstrip.io import checksums

PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "duration": "6s"}


def raced(
    out: Path, *algorithms: str, workers: int = 1, report: bool = False, **options: Any
) -> dict[str, Any]:
    described = compare(algorithms, **{**PATH, **options})
    return execute(plan(described), out, workers=workers, report=report, counterfactuals=True)


def first(document: dict[str, Any], run: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = document["runs"][run]["why"][0]
    return found


def test_the_flow_that_gets_less_runs_without_the_one_that_gets_more(tmp_path: Path) -> None:
    finding = first(raced(tmp_path / "both", "cubic", "vegas", together=True))
    assert (finding["rule"], finding["flows"]) == ("unfair_share", ["cubic", "vegas"])
    without = finding["without"]
    # As if nobody had ever added CUBIC to this path.
    alone = raced(tmp_path / "alone", "vegas")["runs"][0]["flows"][0]
    assert without["figures"] == {"goodput_bps": alone["goodput_bps"]}
    assert alone["goodput_bps"] > 2 * finding["figures"]["least_bps"]
    said = f"without cubic beside it, vegas gets {alone['goodput_bps'] / 1e6:.2f} Mbit/s instead of "
    assert without["sentence"].startswith(said)


def test_its_file_repeats_it(tmp_path: Path) -> None:
    out = tmp_path / "both"
    without = first(raced(out, "cubic", "bbr", "reno*2", together=True, queue="pfifo limit 30"))["without"]
    experiment = Experiment.read(out / without["experiment"])
    again = execute(plan(experiment), tmp_path / "again", report=False)["runs"][0]
    assert without["figures"]["goodput_bps"] in [flow["goodput_bps"] for flow in again["flows"]]
    assert len(again["flows"]) in (2, 3)
    assert without["experiment"] in (out / checksums.NAME).read_text()


def test_a_flow_in_a_large_buffer_runs_with_one_of_a_bdp(tmp_path: Path) -> None:
    document = raced(tmp_path / "large", "cubic")
    without = first(document)["without"]
    small = raced(tmp_path / "small", "cubic", queue="1bdp")["runs"][0]["flows"][0]
    assert without["figures"]["goodput_bps"] == small["goodput_bps"]
    assert without["figures"]["rtt_ms"] == small["rtt_ms"]["p50"]
    assert without["figures"]["rtt_ms"] < 0.6 * document["runs"][0]["flows"][0]["rtt_ms"]["p50"]
    assert "with a buffer of 40 ms (one BDP) instead of 164 ms" in without["sentence"]


@pytest.mark.parametrize(
    ("algorithms", "options"),
    [
        (["reno", "reno+3s"], {"together": True}),  # nothing distinguishes the algorithms
        (["cubic"], {"queue": "1bdp"}),  # the buffer is no larger
        (["cubic"], {"queue": "fq_codel"}),
        (["vegas"], {}),
    ],
)
def test_where_there_is_no_such_cause_nothing_is_run(
    algorithms: list[str], options: dict[str, Any], tmp_path: Path
) -> None:
    document = raced(tmp_path / "out", *algorithms, **options)
    assert not [finding for run in document["runs"] for finding in run["why"] if "without" in finding]
    assert not (tmp_path / "out" / counterfactual.FOLDER).exists()


def test_a_dear_run_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = raced(tmp_path / "cheap", "cubic")["runs"][0]["flows"][0]["segments_sent"]
    monkeypatch.setattr(counterfactual, "SEGMENTS_MAX", sent - 1)
    assert "without" not in first(raced(tmp_path / "dear", "cubic"))
    monkeypatch.setattr(counterfactual, "SEGMENTS_MAX", 2 * sent)
    monkeypatch.setattr(counterfactual, "RUNS_MAX", 1)
    document = raced(tmp_path / "two", "cubic", "reno")
    assert ["without" in first(document, run) for run in (0, 1)] == [True, False]


def test_the_bytes_are_the_same_at_any_number_of_workers(tmp_path: Path) -> None:
    made = []
    for workers in (1, 3):
        out = tmp_path / str(workers) / "out"
        out.parent.mkdir()
        raced(out, "cubic", "vegas", "reno", workers=workers, report=True)
        made.append({file.name: file.read_bytes() for file in [*out.glob("*.*"), *out.glob("*/*.toml")]})
    assert made[0] == made[1]
    assert {"00.toml", "01.toml", "result.json", "report.html"} <= made[0].keys()
    page = made[0]["report.html"].decode()
    assert "With a buffer of 40 ms (one BDP) instead of 164 ms, cubic gets" in page
    assert "(a run of its own: dragstrip run counterfactuals/00.toml, in the output folder)" in page
