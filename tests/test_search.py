"""The search for texts: scores, errors, the log and what is refused."""

from __future__ import annotations

import doctest
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.studies.judge import command as judge_command
from dragstrip.studies.search import SearchTrial

ROOT = Path(__file__).parents[1]
QUICK: dict[str, Any] = {"hidden": 77, "scenarios": 2, "held_out_scenarios": 2}


def text(cut: float) -> str:
    return (
        "on ack { if limited { cwnd = cwnd + acked / cwnd } }\n"
        f"on loss {{ ssthresh = max(cwnd * {cut}, 2) }}\n"
    )


def of_generation(trials: Sequence[SearchTrial]) -> list[str]:
    """Three texts, the second of which has a fault; the same for the same trials."""
    number = trials[-1].generation if trials else 0
    return [text(0.5 + number / 10), "on ack { cwnd = cwm }", text(0.55 + number / 10)]


def test_scores_are_the_judges_and_the_best_are_scored_on_scenarios_held_out() -> None:
    result = dragstrip.search(of_generation, generations=2, population=3, keep=2, seed=5, **QUICK)
    good = [trial for trial in result.trials if trial.error is None]
    assert [trial.generation for trial in result.trials] == [1, 1, 1, 2, 2, 2]
    judged = dragstrip.judge([trial.text for trial in good], hidden=5, scenarios=2)
    assert [trial.score for trial in good] == [judgement.score for judgement in judged]
    assert [trial.interval for trial in good] == [judgement.interval for judgement in judged]
    scores = sorted((trial.score or 0.0 for trial in good), reverse=True)
    assert [entry["score"] for entry in result.best] == scores[:2]
    outside = dragstrip.judge([entry["text"] for entry in result.best], hidden=77, scenarios=2)
    assert [entry["held_out"]["score"] for entry in result.best] == [entry.score for entry in outside]
    assert (result["texts"], result["failures"]) == (6, 2)
    json.dumps(result.to_dict())
    assert "6 texts, 2 without a score; best: " in result.headline


def test_a_fault_reaches_the_next_proposal_with_its_place() -> None:
    errors: list[str | None] = []

    def propose(trials: Sequence[SearchTrial]) -> list[str]:
        errors.extend(trial.error for trial in trials)
        return ["cubic"] if not trials else []

    result = dragstrip.search(propose, **QUICK)
    assert errors == [result.trials[0].error]
    assert errors[0] is not None
    assert errors[0].startswith('text:1:1: got "cubic", expected ')
    assert (result.best, result["generations"]) == ([], 1)


def test_a_proposed_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "mine.cc").write_text(text(0.5))
    result = dragstrip.search(lambda _: [str(tmp_path / "mine.cc")], generations=1, **QUICK)
    assert result.trials[0].score is None


def test_a_policy_is_a_text() -> None:
    policy = (ROOT / "programs/my-delay.json").read_text()
    result = dragstrip.search(lambda _: [policy], generations=1, **QUICK)
    assert result.trials[0].error is None


def test_a_text_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    summary = judge_command._summary

    def counted(subject: Any, *rest: Any) -> Any:
        runs.append(subject.name)
        return summary(subject, *rest)

    dragstrip.judge(["reno"], hidden=1, scenarios=2)  # the baseline is made
    dragstrip.judge(["reno"], hidden=77, scenarios=2)
    monkeypatch.setattr(judge_command, "_summary", counted)
    result = dragstrip.search(lambda _: [text(0.5), text(0.5)], generations=3, **QUICK)
    assert len(runs) == 4  # two in the search, two held out
    assert len({trial.score for trial in result.trials}) == 1
    assert len(result.best) == 1


def test_an_interrupted_search_goes_on_and_its_log_is_that_of_a_whole_one(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    first = dragstrip.search(of_generation, generations=3, population=3, log=whole, workers=1, **QUICK)
    lines = whole.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 3 * 4
    for kept in range(len(lines) + 1):
        torn = lines[kept][:20] if kept < len(lines) else ""
        broken.write_text("".join(lines[:kept]) + torn)
        if kept not in (0, 1, 4, 5, 7, len(lines)):  # one of each kind; a run each takes a second
            continue
        calls: list[int] = []

        def propose(trials: Sequence[SearchTrial], calls: list[int] = calls) -> list[str]:
            calls.append(len(trials))
            return of_generation(trials)

        again = dragstrip.search(propose, generations=3, population=3, log=broken, workers=2, **QUICK)
        assert broken.read_bytes() == whole.read_bytes()
        assert again.to_dict() == first.to_dict()
        assert calls == [3 * number for number in range(3) if 1 + 4 * number >= kept]
    assert "77" not in json.loads(lines[0]).values()


def test_an_exception_of_the_proposal_leaves_the_log_for_the_next_call(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def propose(trials: Sequence[SearchTrial]) -> list[str]:
        if trials:
            raise TimeoutError("no answer")
        return of_generation(trials)

    with pytest.raises(TimeoutError, match="no answer"):
        dragstrip.search(propose, log=log, **QUICK)
    result = dragstrip.search(of_generation, generations=1, log=log, **QUICK)
    assert len(result.trials) == 3


def test_a_run_beyond_its_time_out_is_an_error() -> None:
    result = dragstrip.search(lambda _: [text(0.5)], generations=1, timeout_s=1e-9, **QUICK)
    assert result.trials[0].error == "alone-1: a run of more than 1e-09 s, the time-out"


def test_no_generation_begins_after_the_budget() -> None:
    result = dragstrip.search(lambda _: [text(0.5)], generations=50, budget_s=1e-9, **QUICK)
    assert result.trials == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"propose": 3}, "propose: got 3, expected a function of trials that returns texts"),
        ({"hidden": 1}, "hidden: got 1, expected another seed than that of the search"),
        ({"scenarios": 0}, "scenarios: got 0, expected a number from 1 to 1000"),
        ({"generations": 0}, "generations: got 0, expected a whole number from 1"),
        ({"timeout_s": -1}, "timeout_s: got -1, expected a number of seconds above 0"),
        ({"budget_s": "1h"}, "budget_s: got '1h', expected a number of seconds above 0"),
        ({"propose": lambda _: "on ack {}"}, "propose: got a text, expected a list of at most 16 texts"),
        ({"propose": lambda _: [1]}, "propose: got int, expected a list of at most 16 texts"),
        ({"propose": lambda _: None}, "propose: got NoneType, expected a list of at most 16 texts"),
        (
            {"propose": lambda _: ["x"] * 17},
            "propose: got more than 16 texts, expected a list of at most 16 texts",
        ),
        ({"log": "/"}, "log: got '/', expected a file"),
        ({"log": "/dev/null"}, "log: got '/dev/null', expected a regular file"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError) as error:
        dragstrip.search(**{"propose": of_generation, **QUICK, **arguments})
    assert str(error.value).startswith(message)


def test_a_log_of_something_else_is_refused_and_stays(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    dragstrip.search(of_generation, generations=1, log=log, **QUICK)
    before = log.read_bytes()
    with pytest.raises(BadInputError, match=r"log.jsonl:1: seed: got 1, expected 2, as in this search"):
        dragstrip.search(of_generation, log=log, seed=2, **QUICK)
    assert log.read_bytes() == before
    for content in ("[1]\n", "hello\n", '{"a": 1}\n', before.decode() + '{"score": 1}\n'):
        log.write_text(content)
        with pytest.raises(BadInputError, match=r"log.jsonl:\d+: got .*, expected a line of the log"):
            dragstrip.search(of_generation, log=log, **QUICK)
        assert log.read_text() == content


@pytest.mark.parametrize("content", ["precious, no newline", '{"search": 1, "versio\u0000', '{"seed"'])
def test_a_file_without_a_newline_is_kept_unless_it_begins_the_log(content: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text(content)
    with pytest.raises(BadInputError, match=r"notes.txt:1: got .*, expected a line of the log of a search"):
        dragstrip.search(of_generation, generations=1, log=notes, **QUICK)
    assert notes.read_text() == content


SCORE: dict[str, Any] = {"score": 0.5, "interval": [0.25, 0.75], "error": None}
ROWS: list[Any] = [{"id": "alone-1", "score": 0.5}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (json.dumps({**SCORE, "score": float("nan"), "rows": ROWS}), "NaN is no number of JSON"),
        (json.dumps({**SCORE, "score": float("inf"), "rows": ROWS}), "Infinity is no number of JSON"),
        (json.dumps({**SCORE, "rows": ROWS}).replace("0.25", "-1e999"), ""),
        (json.dumps({"score": None, "interval": None, "error": "text:1:1", "rows": ROWS}), ""),
        (json.dumps({**SCORE, "error": "both", "rows": ROWS}), ""),
        (json.dumps({**SCORE, "interval": ["low", "high"], "rows": ROWS}), ""),
        (json.dumps({**SCORE, "rows": [1, 2]}), ""),
        (json.dumps({**SCORE, "rows": [{"id": "alone-1", "score": "good"}]}), ""),
        (
            json.dumps({**SCORE, "rows": ROWS}).replace("{", '{"score": 0.75, ', 1),
            "key 'score' appears twice",
        ),
    ],
)
def test_a_score_that_no_search_writes_is_refused_with_its_line(
    line: str, reason: str, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    dragstrip.search(lambda _: [], log=log, **QUICK)
    proposal = json.dumps({"texts": [text(0.5)]})
    right = json.dumps({**SCORE, "rows": ROWS})
    log.write_text(f"{log.read_text()}{proposal}\n{right}\n")
    assert dragstrip.search(lambda _: [], generations=1, log=log, **QUICK).trials[0].score == 0.5
    before = log.read_text().replace(right, line)
    log.write_text(before)
    with pytest.raises(BadInputError) as error:
        dragstrip.search(lambda _: [], generations=1, log=log, **QUICK)
    assert str(error.value).startswith(f"{log}:3: got ")
    assert str(error.value).endswith(reason)
    assert log.read_text() == before


def test_no_more_is_read_of_an_endless_proposal_than_a_refusal_takes() -> None:
    read = []

    def endless(_: Sequence[SearchTrial]) -> Iterator[str]:
        for number in itertools.count():
            assert number < 5, "read on after population + 1"
            read.append(number)
            yield text(0.5)

    with pytest.raises(BadInputError, match="propose: got more than 3 texts, expected a list of at most 3"):
        dragstrip.search(endless, population=3, **QUICK)
    assert len(read) == 4


def test_half_a_surrogate_pair_is_an_error_with_its_place_and_its_log_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def propose(_: Sequence[SearchTrial]) -> list[str]:
        return ["\ud800", text(0.5), "on ack {\n \udc80 }"]

    result = dragstrip.search(propose, generations=1, log=log, **QUICK)
    first, good, last = result.trials
    assert first.error is not None
    assert first.error.startswith("text:1:1: got '\\ud800', expected text in UTF-8")
    assert last.error is not None
    assert last.error.startswith("text:2:2: got ")
    assert good.score is not None
    lines = log.read_text().splitlines(keepends=True)
    for kept in (2, len(lines)):  # before the first score, and after the last one
        log.write_text("".join(lines[:kept]))
        again = dragstrip.search(propose, generations=1, log=log, **QUICK)
        assert again.to_dict() == result.to_dict()
        assert log.read_text() == "".join(lines)


def test_two_searches_do_not_share_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def propose(trials: Sequence[SearchTrial]) -> list[str]:
        with pytest.raises(DragstripError, match=r"log.jsonl: another search is writing here"):
            dragstrip.search(of_generation, log=log, **QUICK)
        return []

    dragstrip.search(propose, log=log, **QUICK)


def test_the_examples_of_the_page_print_what_it_says() -> None:
    failed, tried = doctest.testfile(str(ROOT / "docs/how-to/search.md"), module_relative=False)
    assert (failed, tried > 3) == (0, True)


@pytest.mark.parametrize("example", ["model.py", "constants.py"])
def test_an_example_searches_and_goes_on(example: str, tmp_path: Path) -> None:
    if example == "constants.py":
        pytest.importorskip("cma")

    def printed() -> str:
        command = [sys.executable, str(ROOT / "docs/examples/search" / example), "2"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    whole = printed()
    assert " texts, " in whole
    (log,) = tmp_path.glob("*.jsonl")
    content = log.read_bytes()
    log.write_bytes(b"".join(content.splitlines(keepends=True)[:4]))
    assert printed() == whole
    assert log.read_bytes() == content
