"""A race's output in the terminal fits one screen, and `--verbose` prints the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.experiment.expand import expand
from dragstrip.report.cautions import cautions
from dragstrip.report.console import show_result
from dragstrip.report.load import load as load_result
from dragstrip.results.comparison.ranking import ranking
from dragstrip.results.comparison.setups import setups_of
from dragstrip.results.comparison.stats import rows_of

LINES = 24 - 1
"""Lines of a screen, without the one that names the report."""
PATH: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb"}
RACES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "two": (["cubic", "bbr"], PATH),
    "five": (["reno", "cubic", "vegas", "cdg", "bbr"], PATH),
    "five behind fq_codel": (["reno", "cubic", "vegas", "cdg", "bbr"], PATH | {"queue": "fq_codel"}),
    "together": (["cubic", "bbr"], PATH | {"together": True}),
    "both ways": (["cubic", "bbr"], {"path": "home DSL", "both_ways": True}),
}


@pytest.mark.parametrize("race", RACES)
@pytest.mark.parametrize("columns", [80, 120])
def test_a_race_fits_one_screen(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    race: str,
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    algorithms, options = RACES[race]
    experiment = dragstrip.compare(algorithms, duration="8s", **options)
    document = dict(dragstrip.run(experiment, tmp_path / "out").document)
    capsys.readouterr()
    show_result(document, expand(experiment))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= LINES
    assert sum("goodput" in line and "RTT" in line for line in lines[:4]) == 1
    for word in ("Why: ", "Next: "):
        assert sum(line.startswith(word) for line in lines) == 1, word
    assert not any("limited by" in line and "state" in line for line in lines)
    show_result(document, expand(experiment), verbose=True)
    assert re.search("limited by +state", capsys.readouterr().out)


@pytest.mark.parametrize(("algorithm", "has_rtts"), [("cubic", True), ("scream", False)])
def test_rtts_of_intervals_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], algorithm: str, has_rtts: bool
) -> None:
    sentence = "RTTs are of one sample each 100 ms"
    for options in ({}, {"no_rtts": True}):
        experiment = dragstrip.compare([algorithm], duration="3s", **PATH, **options)
        out = tmp_path / f"out-{len(options)}"
        document = dict(dragstrip.run(experiment, out).document)
        capsys.readouterr()
        show_result(document, expand(experiment))
        is_named = bool(options) and has_rtts
        assert (f"{sentence} (--no-rtts)." in capsys.readouterr().out) == is_named
        (setup,) = setups_of(load_result(out).runs)
        assert any(sentence in note for note in cautions(setup, rows_of(setup))) == is_named


def test_the_ranking_gives_what_separates_contenders(tmp_path: Path) -> None:
    experiment = dragstrip.compare(["cubic", "cdg"], duration="20s", **PATH)
    dragstrip.run(experiment, tmp_path / "out")
    (setup,) = setups_of(load_result(tmp_path / "out").runs)
    cubic, cdg = rows_of(setup)
    sentence = ranking(setup, [cubic, cdg])
    assert sentence is not None
    assert cubic.goodput_bps is not None
    assert cdg.goodput_bps is not None
    assert cubic.rtt_p50_ms is not None
    assert cdg.rtt_p50_ms is not None
    text = sentence.striptags()
    less = re.search(r"cdg: ([0-9.]+) % less, at ([0-9.]+) ms instead of ([0-9.]+) ms", text)
    assert less, text
    share = 100 * (1 - cdg.goodput_bps.middle / cubic.goodput_bps.middle)
    assert float(less[1]) == pytest.approx(share, rel=0.01)
    assert float(less[2]) == pytest.approx(cdg.rtt_p50_ms.middle, rel=0.01)
    assert float(less[3]) == pytest.approx(cubic.rtt_p50_ms.middle, rel=0.01)
