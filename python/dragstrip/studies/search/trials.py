"""Trials of a search: proposed texts with their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dragstrip.studies.judge import Judgement


@dataclass(frozen=True)
class SearchTrial:
    """A proposed text with its score, or with the error that it has in place of a score."""

    generation: int
    """Number of the call that proposed it, from 1."""
    text: str
    score: float | None
    """As `Judgement.score`; None with an error."""
    interval: tuple[float, float] | None
    """Ends of the score's 95 % interval; None with an error."""
    error: str | None
    """The fault, in one line, with its line and column in the text; None with a score."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """A scenario each, as `Judgement.rows`; empty with an error."""

    @classmethod
    def of(cls, generation: int, text: str, judgement: Mapping[str, Any]) -> SearchTrial:
        """Return the trial that a judgement, or its document in a log, describes."""
        ends = judgement["interval"]
        interval = None if ends is None else (ends[0], ends[1])
        rows = tuple(judgement["rows"])
        return cls(generation, text, judgement["score"], interval, judgement["error"], rows)


Proposer: TypeAlias = Callable[[Sequence[SearchTrial]], Iterable[str]]
"""Returns the texts of the next generation from all trials so far; none ends the search."""


def best_first(trials: Sequence[SearchTrial]) -> list[SearchTrial]:
    """Return the trials with a score, each text once: the best first, and of equals the earlier one."""
    firsts = {trial.text: trial for trial in reversed(trials) if trial.score is not None}
    order = {id(trial): number for number, trial in enumerate(trials)}
    return sorted(firsts.values(), key=lambda trial: (-(trial.score or 0.0), order[id(trial)]))


def judgement_fields(judgement: Judgement) -> dict[str, Any]:
    """Return the part of a judgement that a trial has."""
    return {name: judgement[name] for name in ("score", "interval", "error", "rows")}
