"""Lessons of the playground (docs/how-to/teaching.md): a bet, runs, an explanation, and a quiz.

A quiz is graded by running. Belongs here: the lessons, each a file N.toml in this folder, and the grading
of what students hand in. Does not belong here: the verdict on an answer, which the core gives here and on
the page (crates/measures/src/quiz.rs), and how a lesson is shown, which is in playground/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.io.untrusted import parsed_json, parsed_toml
from dragstrip.results.measures import summarise

Options = dict[str, Any]
HERE = Path(__file__).parent
COUNT = 10
FLOWS_MAX = 100
ANSWER_MAX = 1e15
"""Numbers of answers are smaller."""
WORDS_MAX = 200
"""Characters of an option in an answer, at most."""
LINE_MAX = 10_000
"""Characters of a line that is handed in, at most."""
EXAMPLE = '{"lesson":1,"answer":2.9,"recording":"0123abcd"}'
"""A line with the answer to a lesson."""
_RECORDING = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its summary (docs/reference/result-json.md) and the SHA-256 of its recording."""

    summary: dict[str, Any]
    sha256: str


def lesson(number: int) -> dict[str, Any]:
    """Return the content of lesson `number`."""
    return parsed_toml(HERE / f"{number}.toml")


def play(options: Mapping[str, Any]) -> FinishedRun:
    """Run what `dragstrip compare` makes of these options, keyed as its arguments; raises `BadInputError`."""
    flows = 0
    for word in options["algorithms"]:
        with suppress(_core.InputError):  # `compare` says what is wrong
            flows += _core.flow_word(word).count or 1
    if flows > FLOWS_MAX:  # before they are spelt out
        raise BadInputError("algorithms", options["algorithms"], f"at most {FLOWS_MAX} flows")
    scenario = expand(compare(**options))[0].scenario
    if len(scenario["flows"]) > FLOWS_MAX:
        raise BadInputError("algorithms", options["algorithms"], f"at most {FLOWS_MAX} flows")
    recording = simulate(scenario)
    return FinishedRun(summarise(recording), recording.provenance["recording_sha256"])


def judge(lesson: Mapping[str, Any], answer: Any) -> tuple[bool, FinishedRun]:
    """Run the answer to a lesson's quiz and return the verdict and the run.

    An answer is a number, or options that the quiz leaves free. The verdict is the core's
    (crates/measures/src/quiz.rs), as on the page. Raises `BadInputError` for an answer that is neither.
    """
    quiz = lesson["quiz"]
    options: Options = {**lesson["start"], **quiz.get("set", {})}
    if "within" in quiz:
        if isinstance(answer, bool) or not isinstance(answer, int | float) or not abs(answer) < ANSWER_MAX:
            raise BadInputError("answer", Raw(str(answer)[:WORDS_MAX]), f"a number, at most {ANSWER_MAX:.0e}")
        number = float(answer)
    else:
        _check_options(answer, quiz["free"])
        options |= answer
        number = 0.0
    run = play(options)
    return _core.quiz_is_right(quiz, run.summary, number), run


def _check_options(answer: Any, free: Sequence[str]) -> None:
    """Raise `BadInputError` unless the answer is options, each one of `free` and a text of bounded length."""
    if not isinstance(answer, dict) or not set(answer) <= set(free):
        raise BadInputError("answer", Raw(json.dumps(answer)[:WORDS_MAX]), f"options, of: {', '.join(free)}")
    for name, value in answer.items():
        words = value if name == "algorithms" else [value]
        if not isinstance(words, list) or not all(
            isinstance(option_text, str) and len(option_text) <= WORDS_MAX for option_text in words
        ):
            kind = "a list of texts" if name == "algorithms" else "a text"
            expected = f"{kind} of at most {WORDS_MAX} characters"
            raise BadInputError(f"answer.{name}", Raw(json.dumps(value)[:WORDS_MAX]), expected)


def graded(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Grade a finished set, as *Copy answers* gives it: each lesson's number and the grade of its answer.

    Each lesson is one line, `{"lesson":3,"answer":{"queue":"pfifo limit 16"},"recording":"0123abcd"}`; lines
    that do not begin with a brace are skipped. Of several answers to one lesson only the first one is run and
    counts. Raises `BadInputError` for a line that cannot be read, and where there is no line with an answer.
    """
    answers: dict[int, tuple[Any, str]] = {}
    more: list[tuple[int, str]] = []
    for line in lines:
        line = line.strip("\ufeff \t")
        if not line.startswith("{"):
            continue
        number, answer, recording = _handed_in(line)
        if number in answers:
            more.append((number, "not counted: the first answer to a lesson is"))
        answers.setdefault(number, (answer, recording))
        if len(more) > COUNT:
            raise BadInputError("lesson", number, "one answer to each lesson")
    if not answers:
        expected = f"has no answers: a line for each lesson is expected, such as {EXAMPLE}"
        raise BadInputError("", None, expected)
    marks: list[tuple[int, str]] = []
    for number, (answer, recording) in answers.items():
        try:
            is_right, run = judge(lesson(number), answer)
        except BadInputError as error:
            marks.append((number, f"wrong: {error}"))
            continue
        mark = "right" if is_right else "wrong"
        is_reproduced = run.sha256.startswith(recording)
        marks.append((number, mark if is_reproduced else f"{mark}; its recording differs: {run.sha256[:8]}"))
    return marks + more


def _handed_in(line: str) -> tuple[int, Any, str]:
    """Return a line's lesson, answer and recording; raises `BadInputError`."""
    expected = f"as {EXAMPLE}"
    line_text = Raw(line.strip()[:WORDS_MAX])
    if len(line) > LINE_MAX:
        raise BadInputError("line", Raw(f"{len(line)} characters"), f"at most {LINE_MAX}")
    try:
        handed = parsed_json(line, "")
    except BadInputError:
        raise BadInputError("line", line_text, expected) from None
    if not isinstance(handed, dict) or not {"lesson", "answer"} <= set(handed):
        raise BadInputError("line", line_text, expected)
    number, recording = handed["lesson"], handed.get("recording")
    if type(number) is not int or not 1 <= number <= COUNT:
        raise BadInputError("lesson", Raw(json.dumps(number)[:WORDS_MAX]), f"1 to {COUNT}")
    if not isinstance(recording, str) or not _RECORDING.fullmatch(recording):
        recording_text = Raw(json.dumps(recording)[:WORDS_MAX])
        raise BadInputError(
            f"recording of lesson {number}", recording_text, "the 8 hexadecimal digits that the page gives"
        )
    return number, handed["answer"], recording
