"""The eight lessons: their figures are measured again, and the judge knows a right answer from a wrong one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.playground.lessons import COUNT, HERE, graded, judge, lesson, play

NUMBERS = range(1, COUNT + 1)


def test_there_are_ten() -> None:
    assert {it.name for it in HERE.glob("*.toml")} == {f"{number}.toml" for number in NUMBERS}


@pytest.mark.parametrize("number", NUMBERS)
def test_every_figure_shown_is_measured_again(number: int) -> None:
    told = lesson(number)
    see = told["see"]
    for row in see["rows"]:
        summary = play({**told["start"], **row["set"]}).summary
        figures = [_core.summary_figure(summary, it["measure"]) for it in see["columns"]]
        shown = [
            f"{value / column['scale']:.{column['digits']}f}"
            for column, value in zip(see["columns"], figures, strict=True)
            if value is not None
        ]
        assert shown == row["shown"], row["set"]
    assert _core.summary_figure(play(told["start"]).summary, told["bet"]["measure"]) is not None
    for change in told["break"]:
        play({**told["start"], **change["set"]})


@pytest.mark.parametrize("number", NUMBERS)
def test_a_right_and_a_wrong_answer(number: int) -> None:
    told = lesson(number)
    assert judge(told, told["quiz"]["right"])[0]
    assert not judge(told, told["quiz"]["wrong"])[0]


def test_an_answer_changes_what_is_free_alone() -> None:
    with pytest.raises(BadInputError, match="options, of: queue"):
        judge(lesson(6), {"algorithms": ["vegas"]})
    with pytest.raises(BadInputError, match="a number"):
        judge(lesson(2), {"queue": "fq_codel"})
    with pytest.raises(BadInputError, match="at most 100 flows"):
        judge(lesson(1), {"algorithms": ["cubic*101"]})


def test_a_finished_set_is_graded(tmp_path: Path) -> None:
    told = lesson(6)
    sha256 = judge(told, told["quiz"]["right"])[1].sha256
    some = {"recording": "0123abcd"}
    lines = [
        "Dragstrip 0.1.0",
        json.dumps({"lesson": 6, "answer": told["quiz"]["right"], "recording": sha256[:8]}),
        json.dumps({"lesson": 6, "answer": told["quiz"]["wrong"], **some}),
        json.dumps({"lesson": 3, "answer": {"queue": "no such"}, **some}),
        json.dumps({"lesson": 2, "answer": 1, **some}),
    ]
    marks = dict(enumerate(mark for _, mark in graded(lines)))
    assert marks[0] == "right"
    assert marks[1].startswith("wrong: ")
    assert marks[2].startswith("wrong; its recording differs: ")
    assert marks[3] == "not counted: the first answer to a lesson is"
    file, bad = tmp_path / "ada.txt", tmp_path / "bob.txt"
    file.write_text("\n".join(lines))
    bad.write_text("{}")
    command = [sys.executable, "-m", "dragstrip.playground.lessons"]
    ended = subprocess.run([*command, str(bad), str(file)], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stdout.startswith(f"{file}: 1 of 10 right\n  6: right\n")
    assert ended.stderr.startswith(f"{bad}: ")
    assert 'as {"lesson":1' in ended.stderr
    # A file whose name is among the words of the error is named too.
    (tmp_path / "a").write_text("{}")
    ended = subprocess.run([*command, "a"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.stderr.startswith("a: ")


@pytest.mark.parametrize(
    ("lesson", "answer"),
    [
        (2, int("9" * 400)),
        (2, float("inf")),
        (2, True),
        (1, {"algorithms": [["reno"]]}),
        (1, {"algorithms": "reno"}),
        (1, {"algorithms": ["reno*5000"]}),
        (1, {"algorithms": ["x" * 9_000]}),
        (3, {"queue": 7}),
        (3, {"queue": {"a": {"b": {}}}}),
        (3, []),
    ],
)
def test_a_hostile_answer_is_wrong(lesson: int, answer: object) -> None:
    ((number, mark),) = graded([json.dumps({"lesson": lesson, "answer": answer, "recording": "0123abcd"})])
    assert number == lesson
    assert mark.startswith("wrong: ")
    assert len(mark) < 1_000


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"lesson": true, "answer": 1, "recording": "0123abcd"}',
        '{"lesson": 1.0, "answer": 1, "recording": "0123abcd"}',
        '{"lesson": [1], "answer": 1, "recording": "0123abcd"}',
        '{"lesson": 11, "answer": 1, "recording": "0123abcd"}',
        '{"lesson": ' + "9" * 4_000 + ', "answer": 1, "recording": "0123abcd"}',
        '{"lesson": ' + "[" * 4_000 + ', "answer": 1, "recording": "0123abcd"}',
        '{"lesson": 1, "answer": 1}',
        '{"lesson": 1, "answer": 1, "recording": ""}',
        '{"lesson": 1, "answer": 1, "recording": ["0123abcd"]}',
        "{" + " " * 20_000 + "}",
        "\n".join(['{"lesson": 1, "answer": {"algorithms": ["reno"]}, "recording": "0123abcd"}'] * 100),
    ],
)
def test_a_line_that_is_no_answer_is_refused(line: str) -> None:
    with pytest.raises(BadInputError):
        graded(line.splitlines())


@pytest.mark.parametrize("content", ["", "not an answer\n", "Dragstrip 0.1.0\n"])
def test_a_hand_in_without_an_answer_is_refused(content: str) -> None:
    with pytest.raises(BadInputError, match="has no answers"):
        graded(content.splitlines())


def test_a_line_after_a_byte_order_mark_or_a_blank_counts() -> None:
    line = json.dumps({"lesson": 6, "answer": lesson(6)["quiz"]["right"], "recording": "0" * 8})
    assert [number for number, _ in graded([f"\ufeff {line}"])] == [6]


def test_no_hand_in_writes_to_a_terminal(tmp_path: Path) -> None:
    """Names of files and lines are the students' own: a name with an escape sequence once reached the terminal."""
    (tmp_path / "\x1b[31mada\n.txt").write_text("{\0\x9b2J}")
    (tmp_path / "\u202ebob.txt").write_text("")
    words = [
        sys.executable,
        "-m",
        "dragstrip.playground.lessons",
        *(file.name for file in tmp_path.iterdir()),
    ]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert (ended.stdout.count("\n"), ended.stderr.count("\n")) == (0, 2)
    assert (ended.stdout + ended.stderr).replace("\n", "").isprintable()
