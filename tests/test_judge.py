"""Scores on hidden scenarios: drawn by the seed alone, alike for any number of workers, errors kept apart."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.studies.judge import command, draws

ROOT = Path(__file__).parents[1]
FLOOD = "on ack { cwnd = 1e6 }\non loss { ssthresh = 1e6 }\n"
DIVIDES = "on ack { cwnd = cwnd + acked / (cwnd - cwnd) }\non loss { ssthresh = cwnd / 2 }\n"


def printed(*words: str, status: int = 0) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "dragstrip", "judge", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ended.returncode == status, ended.stderr
    return ended.stdout


def test_a_seed_draws_its_scenarios_and_more_do_not_change_the_first() -> None:
    few, many = draws.draw(7, 8), draws.draw(7, 24)
    assert [drawn.title for drawn in few] == [drawn.title for drawn in many[:8]]
    assert [drawn.id.rpartition("-")[0] for drawn in few] == list(draws.KINDS)
    assert len({drawn.title for drawn in many}) == 24
    assert {drawn.title for drawn in few}.isdisjoint(drawn.title for drawn in draws.draw(8, 8))


def test_every_draw_is_within_its_bounds() -> None:
    for seed in range(60):
        for drawn in draws.draw(seed, 8):
            options = drawn.scenario.options
            assert 2e6 <= dragstrip._core.parse_rate(options["rate"]) <= 100e6
            assert 5e6 <= dragstrip._core.parse_time(options["rtt"]) <= 200e6
            assert 8e9 <= dragstrip._core.parse_time(options["duration"]) <= 30e9


def test_cubic_is_the_zero_and_harm_costs() -> None:
    cubic, flood, vegas = dragstrip.judge(["cubic", FLOOD, "vegas"], hidden=7, quick=True)
    assert (cubic.score, cubic.interval, cubic.error) == (0.0, (0.0, 0.0), None)
    assert flood.score is not None
    assert flood.score < -0.5
    beside = next(row for row in flood.rows if row["id"] == "beside-cubic-1")
    assert beside["neighbour_mbit"] < beside["cubic"]["neighbour_mbit"] / 2
    assert beside["score"] < -0.5
    assert vegas.score is not None
    assert vegas.interval is not None
    assert vegas.interval[0] < vegas.score < vegas.interval[1]
    assert vegas.score == pytest.approx(sum(row["score"] for row in vegas.rows) / 8)


def test_a_text_equal_to_reno_has_renos_score_whatever_its_name() -> None:
    text = (ROOT / "programs/my-reno.cc").read_text()
    reno, nameless, named, file = dragstrip.judge(
        ["reno", text, dragstrip.program("best-of-all", text), ROOT / "programs/my-reno.cc"],
        hidden=3,
        quick=True,
    )
    assert reno.rows == nameless.rows == named.rows == file.rows != []


def test_answers_depend_neither_on_workers_nor_on_the_other_texts() -> None:
    alone = dragstrip.judge(["bbr"], hidden=5, quick=True, workers=1)[0]
    among = dragstrip.judge([FLOOD, "bbr", "no such"], hidden=5, quick=True, workers=4)[1]
    assert alone.to_dict() == among.to_dict()


def test_a_bad_text_has_its_error_and_ends_nothing() -> None:
    misspelt, divides, missing, unknown, native, good = dragstrip.judge(
        ["on ack { cwnd = cwm }", DIVIDES, "missing.cc", "cubicc", "my.rs", "reno"], hidden=1, quick=True
    )
    assert misspelt.error == (
        'text 1:1:17: got "cwm", expected a name that has been given, or a word of the language'
    )
    assert divides.error is not None
    assert divides.error.startswith("alone-1: text 2:1:30: gives infinity at ")
    assert missing.error == "missing.cc: no such file"
    assert unknown.error is not None
    assert unknown.error.startswith('got "cubicc", expected one of reno, cubic,')
    assert native.error is not None
    assert "code in Rust could reach its score; passport takes it" in native.error
    for judgement in (misspelt, divides, missing, unknown, native):
        assert (judgement.score, judgement.interval, judgement.rows) == (None, None, [])
    assert good.error is None
    assert good.score is not None


def test_half_a_surrogate_pair_is_an_error_with_its_place() -> None:
    with pytest.raises(BadInputError, match=r"m:1:1: got '\\ud800', expected text in UTF-8"):
        dragstrip.program("m", "\ud800")
    half, name, good = dragstrip.judge(["on ack {\ud800 }", "\ud800", "reno"], hidden=1, quick=True)
    assert half.error is not None
    assert half.error.startswith("text 1:1:9: got '\\ud800', expected text in UTF-8")
    assert name.error == "got '\\ud800', expected text in UTF-8"
    assert good.score is not None


def test_a_run_with_too_many_events_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dragstrip.judge(["reno"], hidden=1, quick=True)[0].error is None  # the baseline is made
    monkeypatch.setattr(command, "REPORTS_MAX", -20)
    (judgement,) = dragstrip.judge([FLOOD], hidden=1, quick=True)
    assert judgement.error is not None
    assert "events: it floods its path" in judgement.error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": []}, "texts: is a list of texts"),
        ({"texts": "cubic"}, "texts: is a list of texts"),
        ({"texts": [3]}, r"texts\[0\]: got 3, expected a text"),
        ({"texts": ["cubic"], "scenarios": 0}, "scenarios: got 0, expected a number from 1 to 1000"),
        ({"texts": ["cubic"], "scenarios": 4, "quick": True}, "quick: means scenarios 8: give one"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        dragstrip.judge(hidden=1, **arguments)  # type: ignore[arg-type]


def test_the_command_prints_a_line_for_each_and_hides_the_scenarios() -> None:
    lines = printed("reno", "none.cc", "--hidden", "9", "--quick", "--json", status=2).splitlines()
    reno, none = (json.loads(line) for line in lines)
    assert reno == dragstrip.judge(["reno"], hidden=9, quick=True)[0].to_dict()
    assert (none["algorithm"], none["score"], none["error"]) == ("none.cc", None, "none.cc: no such file")
    assert "replay" not in lines[0]
    text = printed("reno", "--hidden", "9", "--quick")
    assert text.startswith("Seed 9, 8 scenarios. Score: log2 of (goodput / RTT) relative to CUBIC")
    assert "Mbit/s" not in text


def test_a_file_that_fails_is_named_with_its_line_and_told_once(tmp_path: Path) -> None:
    file = tmp_path / "div.cc"
    file.write_text(DIVIDES)
    words = ["judge", "div.cc", "reno", "--hidden", "1", "--scenarios", "1"]
    ended = subprocess.run(
        [sys.executable, "-m", "dragstrip", *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "no score: alone-1: div.cc:1:30: gives infinity at " in " ".join(ended.stdout.split())
    assert (ended.returncode, ended.stderr) == (
        2,
        "error: command line: FILE: no score for div.cc: the answer says why\n",
    )


def test_a_replay_gives_the_figures_again(tmp_path: Path) -> None:
    line = printed("programs/my-exp.cc", "--hidden", "2", "--scenarios", "2", "--json", "--show")
    row = json.loads(line)["rows"][1]
    words = [*shlex.split(row["replay"]), "--json", "--out", str(tmp_path / "out")]
    ended = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=True, cwd=ROOT
    )
    flows = json.loads(ended.stdout)["runs"][0]["flows"]
    assert flows[0]["goodput_bps"] / 1e6 == row["goodput_mbit"]
    assert sum(flow["goodput_bps"] for flow in flows[1:]) / 1e6 == pytest.approx(row["neighbour_mbit"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("my pol", 'got the name "my pol", expected a letter'),
        ("ü", 'got the name "ü", expected a letter'),
        ("cubic", 'got the name "cubic", expected another name: cubic is an algorithm already'),
    ],
)
def test_a_file_that_no_replay_can_name_is_refused_with_show(name: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.json"
    file.write_bytes((ROOT / "programs/my-delay.json").read_bytes())
    words = (str(file), "--hidden", "2", "--scenarios", "1", "--json")
    shown = json.loads(printed(*words, "--show", status=2))
    assert shown["error"].startswith(reason)
    assert shown["rows"] == []
    assert json.loads(printed(*words))["error"] is None
