"""Lessons of the playground (docs/teaching.md): a bet, runs, why, and a quiz that is judged by running.

Each is a file N.toml in this folder. The page judges with the same rules (playground/src/judge.ts).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dragstrip.comparison import compare
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.expand import expand
from dragstrip.measures import summarise
from dragstrip.outside import parsed_toml

Options = dict[str, Any]
HERE = Path(__file__).parent
COUNT = 8
FLOWS_MAX = 100


@dataclass(frozen=True)
class Ran:
    """A run: its summary (docs/result-json.md) and the hash of its recording."""

    summary: dict[str, Any]
    sha256: str


def lesson(number: int) -> dict[str, Any]:
    """The lesson as its file has it."""
    return parsed_toml(HERE / f"{number}.toml")


def play(options: Mapping[str, Any]) -> Ran:
    """Runs what `dragstrip compare` makes of these options; raises `BadInputError`."""
    scenario = expand(compare(**options))[0].scenario
    if len(scenario["flows"]) > FLOWS_MAX:
        raise BadInputError("algorithms", options["algorithms"], f"at most {FLOWS_MAX} flows")
    recording = simulate(scenario)
    return Ran(summarise(recording), recording.provenance["recording_sha256"])


def measured(summary: Mapping[str, Any], measure: str) -> float | None:
    """A figure of a summary by its path, such as `flows.0.share`; `None` where there is none.

    `goodput_bps` is that of all flows, `ping_ms` the median.
    """
    if measure == "goodput_bps":
        return float(sum(flow["goodput_bps"] or 0 for flow in summary["flows"]))
    at: Any = summary
    for word in ("probes.0.rtt_ms.p50" if measure == "ping_ms" else measure).split("."):
        if isinstance(at, list):
            at = at[int(word)] if int(word) < len(at) else None
        elif at is not None:
            at = at.get(word)
    return None if at is None else float(at)


def right(lesson: Mapping[str, Any], answer: Any) -> tuple[bool, Ran]:
    """Whether an answer is right, found by running: a number, or options that the quiz leaves free.

    Raises `BadInputError` for an answer that is neither.
    """
    quiz = lesson["quiz"]
    options: Options = {**lesson["start"], **quiz.get("set", {})}
    if "within" in quiz:
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            raise BadInputError("answer", answer, "a number")
        ran = play(options)
        true = cast("float", measured(ran.summary, quiz["measure"])) / quiz["scale"]
        return abs(answer - true) <= quiz["within"] * true, ran
    if not isinstance(answer, dict) or not set(answer) <= set(quiz["free"]):
        raise BadInputError("answer", answer, f"options, of: {', '.join(quiz['free'])}")
    ran = play({**options, **answer})
    return all(_holds(ran.summary, condition) for condition in quiz["conditions"]), ran


def _holds(summary: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    value = measured(summary, condition["measure"])
    return (
        value is not None and condition.get("least", value) <= value and value <= condition.get("most", value)
    )


def graded(lines: Iterable[str]) -> list[tuple[int, str]]:
    """A finished set, as *Copy answers* gives it: each lesson's number and what its answer is worth.

    One line a lesson: `{"lesson":3,"answer":{"queue":"pfifo limit 16"},"recording":"0123abcd"}`; other
    lines are skipped. Raises `BadInputError` for one that is none.
    """
    marks: list[tuple[int, str]] = []
    for line in lines:
        if not line.startswith("{"):
            continue
        try:
            handed = json.loads(line)
            number, answer = handed["lesson"], handed["answer"]
        except (ValueError, KeyError, TypeError):
            raise BadInputError("line", line.strip(), 'as {"lesson":1,"answer":2.9}') from None
        if number not in range(1, COUNT + 1):
            raise BadInputError("lesson", number, f"1 to {COUNT}")
        try:
            fine, ran = right(lesson(number), answer)
        except BadInputError as error:
            marks.append((number, f"wrong: {error}"))
            continue
        same = ran.sha256.startswith(str(handed.get("recording", "")))
        mark = "right" if fine else "wrong"
        marks.append((number, mark if same else f"{mark}; the recording is another one: {ran.sha256[:8]}"))
    return marks
