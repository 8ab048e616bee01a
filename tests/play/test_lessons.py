"""The eight lessons: their figures are measured again, and the judge knows a right answer from a wrong one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragstrip.errors import BadInputError
from dragstrip.lessons import COUNT, HERE, graded, lesson, measured, play, right

NUMBERS = range(1, COUNT + 1)


def test_there_are_eight() -> None:
    assert sorted(it.name for it in HERE.glob("*.toml")) == [f"{number}.toml" for number in NUMBERS]


@pytest.mark.parametrize("number", NUMBERS)
def test_every_figure_shown_is_measured_again(number: int) -> None:
    told = lesson(number)
    see = told["see"]
    for row in see["rows"]:
        summary = play({**told["start"], **row["set"]}).summary
        figures = [measured(summary, it["measure"]) for it in see["columns"]]
        shown = [
            f"{value / column['scale']:.{column['digits']}f}"
            for column, value in zip(see["columns"], figures, strict=True)
            if value is not None
        ]
        assert shown == row["shown"], row["set"]
    assert measured(play(told["start"]).summary, told["bet"]["measure"]) is not None
    for change in told["break"]:
        play({**told["start"], **change["set"]})


@pytest.mark.parametrize("number", NUMBERS)
def test_a_right_and_a_wrong_answer(number: int) -> None:
    told = lesson(number)
    assert right(told, told["quiz"]["right"])[0]
    assert not right(told, told["quiz"]["wrong"])[0]


def test_an_answer_changes_what_is_free_alone() -> None:
    with pytest.raises(BadInputError, match="options, of: queue"):
        right(lesson(6), {"algorithms": ["vegas"]})
    with pytest.raises(BadInputError, match="a number"):
        right(lesson(2), {"queue": "fq_codel"})
    with pytest.raises(BadInputError, match="at most 100 flows"):
        right(lesson(1), {"algorithms": ["cubic*101"]})


def test_a_finished_set_is_graded(tmp_path: Path) -> None:
    told = lesson(6)
    sha256 = right(told, told["quiz"]["right"])[1].sha256
    lines = [
        "Dragstrip 0.1.0",
        json.dumps({"lesson": 6, "answer": told["quiz"]["right"], "recording": sha256[:8]}),
        json.dumps({"lesson": 6, "answer": told["quiz"]["right"], "recording": "00000000"}),
        json.dumps({"lesson": 6, "answer": {"queue": "no such"}}),
        json.dumps({"lesson": 2, "answer": 1}),
    ]
    marks = [mark for _, mark in graded(lines)]
    assert marks[0] == "right"
    assert marks[1] == f"right; the recording is another one: {sha256[:8]}"
    assert marks[2].startswith("wrong: ")
    assert marks[3] == "wrong"
    file = tmp_path / "ada.txt"
    file.write_text("\n".join(lines))
    command = [sys.executable, "-m", "dragstrip.lessons"]
    ended = subprocess.run([*command, str(file)], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(f"{file}: 1 of 8 right\n  6: right\n")
    file.write_text("{}")
    ended = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert 'as {"lesson":1' in ended.stderr
