"""The page of results: passports by chapter, and the harm of all pairs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.runs import Task, run_all
from dragstrip.studies.passport import suite
from tools import results

DOCS = Path(__file__).parents[1] / "docs"
PASSPORTS = results.stored(DOCS, "passports.json")
PAIRS = results.stored(DOCS, "pairs.json")


def test_the_page_is_that_of_the_stored_documents() -> None:
    assert (DOCS / "results.md").read_text() == results.page(PASSPORTS, PAIRS)


def test_the_stored_passports_are_of_this_suite_and_the_page_names_what_lacks() -> None:
    assert PASSPORTS["suite"] == suite.VERSION
    assert set(PAIRS["alone"]) == set(_core.ALGORITHMS)
    algorithms = dict(PASSPORTS["algorithms"])
    for name in ("cubic", "vegas"):
        del algorithms[name]
    page = results.page({**PASSPORTS, "algorithms": algorithms}, PAIRS)
    (line,) = [line for line in page.splitlines() if line.startswith("Not made with this suite yet: ")]
    assert set(re.findall(r"`(.+?)`", line)) == set(_core.ALGORITHMS) - set(algorithms)


@pytest.mark.parametrize(("first", "second"), [("cubic", "vegas"), ("reno", "bbr3")])
def test_a_pair_gives_the_stored_goodputs_again(first: str, second: str) -> None:
    first, second = sorted((first, second), key=list(_core.ALGORITHMS).index)
    together = expand(compare([first + results.LATER, second], together=True, **results.PATH))
    alone = expand(compare([second], **results.PATH))
    outcomes = run_all([Task(run.scenario, None) for run in (*together, *alone)])
    goodputs = [[flow["goodput_bps"] for flow in (outcome.summary or {})["flows"]] for outcome in outcomes]
    beside = PAIRS["beside"]
    assert goodputs == [[beside[first][second], beside[second][first]], [PAIRS["alone"][second]]]


def test_harm_is_the_lost_share() -> None:
    pairs = {"alone": {"a": 40.0, "b": 50.0}, "beside": {"a": {"b": 10.0}, "b": {"a": 55.0}}}
    assert results.harm(pairs, "b", "a") == 0.75
    assert results.harm(pairs, "a", "b") == pytest.approx(-0.1)


def test_what_cubic_misses_too_is_not_bad() -> None:
    chapter = {"rows": 8, "verdicts": {"held": 3, "missed": 1, "missed, as by CUBIC": 3, "worse": 1}}
    passports = json.loads(json.dumps({**PASSPORTS, "algorithms": {"x": {"alone": chapter}}}))
    line = next(line for line in results.page(passports, PAIRS).splitlines() if line.startswith("| [`x`]"))
    assert line.split(" | ")[1:3] == ["25", "25"]
