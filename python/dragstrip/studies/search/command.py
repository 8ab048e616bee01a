"""Steps of `dragstrip.search`: ask for texts, score them, and score the best on scenarios held out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip import __version__
from dragstrip.display.document import StudyDocument
from dragstrip.display.progress import ProgressMessages
from dragstrip.display.quantity import plural
from dragstrip.errors import BadInputError, Raw
from dragstrip.io.files import only_one
from dragstrip.studies.judge import Judgement, judge_entrants, text_entrant
from dragstrip.studies.judge.command import SCENARIOS_MAX
from dragstrip.studies.search.log import SearchLog, expect_log
from dragstrip.studies.search.trials import Proposer, SearchTrial, best_first, judgement_fields

LABEL = "text"
"""Name of every text in its error."""


@dataclass(frozen=True)
class SearchSettings:
    """Options of a search, as `dragstrip.search` describes them."""

    hidden: int
    seed: int
    generations: int
    population: int
    scenarios: int
    held_out_scenarios: int
    keep: int
    timeout_s: float | None
    budget_s: float | None

    def expect_right(self) -> None:
        """Raise `BadInputError` for an option that cannot be right."""
        if self.hidden == self.seed:
            raise BadInputError("hidden", self.hidden, "another seed than that of the search")
        for name in ("scenarios", "held_out_scenarios"):
            count = getattr(self, name)
            if not 1 <= count <= SCENARIOS_MAX:
                raise BadInputError(name, count, f"a number from 1 to {SCENARIOS_MAX}")
        for name in ("timeout_s", "budget_s"):
            seconds = getattr(self, name)
            numeric = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if seconds is not None and not (numeric and 0 < seconds < float("inf")):
                raise BadInputError(name, seconds, "a number of seconds above 0, or None")


class SearchResult(StudyDocument):
    """The best texts of a search, with their scores on the search's scenarios and on those held out."""

    def __init__(self, document: dict[str, Any], text: str, trials: Sequence[SearchTrial]) -> None:
        super().__init__(document, text)
        self.trials: tuple[SearchTrial, ...] = tuple(trials)
        """All trials, in the order in which their texts were proposed."""

    @property
    def best(self) -> list[dict[str, Any]]:
        """The best texts: dicts of `text`, `generation`, `score`, `interval` and `held_out`.

        They are in the order of their scores in the search. `held_out` has `score`, `interval`, `error` and
        `rows` on scenarios that no proposal has seen.
        """
        return list(self["best"])

    @property
    def headline(self) -> str:
        """The number of texts and the best one's scores."""
        return str(self).partition("\n")[0]


def search(
    propose: Proposer, settings: SearchSettings, log: Path | None, workers: int | None, quiet: bool
) -> SearchResult:
    """Return the best of the texts that `propose` has returned; raises `BadInputError`.

    An exception of `propose` and an interrupt end the search as they are; the log then has all that was
    scored.
    """
    settings.expect_right()
    if log is not None:
        expect_log(log)
    with nullcontext() if log is None else only_one(log, "search", log):
        return _search(propose, settings, log, workers, quiet)


def _search(
    propose: Proposer, settings: SearchSettings, log: Path | None, workers: int | None, quiet: bool
) -> SearchResult:
    head = {"search": 1, "version": __version__, "seed": settings.seed, "scenarios": settings.scenarios}
    search_log = SearchLog(log, head)
    run = _SearchRun(settings, search_log, workers)
    messages = ProgressMessages()
    if not quiet:
        messages.doing(run.message)
    try:
        run.generations(propose)
        best = best_first(run.trials)[: settings.keep]
        held_out = run.held_out([trial.text for trial in best])
    finally:
        messages.close()
    return _result(settings, run.trials, best, held_out)


class _SearchRun:
    """The state of a search."""

    def __init__(self, settings: SearchSettings, log: SearchLog, workers: int | None) -> None:
        self._settings = settings
        self._log = log
        self._workers = workers
        self._logged = list(zip(log.proposals, range(1, len(log.proposals) + 1), strict=True))
        self._scores: dict[str, dict[str, Any]] = {}
        """Scores by text: a text that is proposed again is not run again."""
        self.trials: list[SearchTrial] = []
        self._activity = "searching"

    def message(self) -> str:
        """Return a line of progress."""
        scored = [trial.score for trial in self.trials if trial.score is not None]
        best = f", best score {max(scored):+.3f}" if scored else ""
        return f"{self._activity}: {plural(len(self.trials), 'text')} scored{best}"

    def generations(self, propose: Proposer) -> None:
        """Score the generations of the log, and then those that `propose` returns."""
        began_s = time.monotonic()
        scores = iter(list(self._log.scores))
        for number in range(1, self._settings.generations + 1):
            self._activity = f"generation {number} of {self._settings.generations}"
            if number <= len(self._logged):
                texts = self._logged[number - 1][0]
            else:
                budget_s = self._settings.budget_s
                if budget_s is not None and time.monotonic() - began_s >= budget_s:
                    return
                texts = _proposal(propose(tuple(self.trials)), self._settings.population)
                if not texts:
                    return
                self._log.propose(texts)
            logged = [fields for _, fields in zip(texts, scores, strict=False)]
            for text, fields in zip(texts, logged, strict=False):
                self._scores.setdefault(text, fields)
                self.trials.append(SearchTrial.of(number, text, fields))
            self._score(number, texts[len(logged) :])

    def _score(self, generation: int, texts: Sequence[str]) -> None:
        """Score a generation's texts and log them in their order."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._scores]
        pending = list(texts)

        def release() -> None:
            while pending and (fields := self._scores.get(pending[0])) is not None:
                self._log.score(fields)
                self.trials.append(SearchTrial.of(generation, pending.pop(0), fields))

        remaining = list(fresh)

        def judged(judgement: Judgement) -> None:
            self._scores[remaining.pop(0)] = judgement_fields(judgement)
            release()

        release()
        self._judge(fresh, self._settings.seed, self._settings.scenarios, judged)

    def held_out(self, texts: Sequence[str]) -> list[Judgement]:
        """Return the judgements of texts on the scenarios that are held out."""
        self._activity = "scoring the best on scenarios held out"
        return self._judge(texts, self._settings.hidden, self._settings.held_out_scenarios)

    def _judge(self, texts: Sequence[str], seed: int, count: int, judged: Any = None) -> list[Judgement]:
        entrants = [text_entrant(text, LABEL) for text in texts]
        timeout_s = self._settings.timeout_s
        return judge_entrants(
            entrants, seed, count=count, workers=self._workers, timeout_s=timeout_s, judged=judged
        )


def _proposal(proposed: Any, population: int) -> list[str]:
    """Return the texts of a proposal; raises `BadInputError` for anything else."""
    expected = f"a list of at most {population} texts"
    if isinstance(proposed, str | bytes):
        raise BadInputError("propose", Raw("a text"), f"{expected}, also of one")
    try:
        iterator = iter(proposed)
    except TypeError:
        raise BadInputError("propose", Raw(type(proposed).__name__), expected) from None
    texts = list(itertools.islice(iterator, population + 1))  # an iterator may be endless
    for text in texts:
        if not isinstance(text, str):
            raise BadInputError("propose", Raw(type(text).__name__), expected)
    if len(texts) > population:
        raise BadInputError(
            "propose", Raw(f"more than {plural(population, 'text')}"), f"{expected} (population)"
        )
    return texts


def _result(
    settings: SearchSettings,
    trials: Sequence[SearchTrial],
    best: Sequence[SearchTrial],
    held_out: Sequence[Judgement],
) -> SearchResult:
    failures = sum(trial.error is not None for trial in trials)
    entries: list[dict[str, Any]] = [
        {
            "text": trial.text,
            "generation": trial.generation,
            "score": trial.score,
            "interval": None if trial.interval is None else list(trial.interval),
            "held_out": judgement_fields(judgement),
        }
        for trial, judgement in zip(best, held_out, strict=True)
    ]
    document = {
        "seed": settings.seed,
        "scenarios": settings.scenarios,
        "hidden": settings.hidden,
        "held_out_scenarios": settings.held_out_scenarios,
        "generations": max((trial.generation for trial in trials), default=0),
        "texts": len(trials),
        "failures": failures,
        "best": entries,
    }
    lines = [f"{plural(len(trials), 'text')}, {failures} without a score"]
    if entries:
        lines[0] += f"; best: {_scores(entries[0])}"
    for entry in entries:
        lines += [_scores(entry), *(f"    {line}" for line in entry["text"].splitlines())]
    return SearchResult(document, "\n".join(lines), trials)


def _scores(entry: dict[str, Any]) -> str:
    held_out = entry["held_out"]
    if held_out["score"] is None:
        return f"{entry['score']:+.3f} in the search; held out: {held_out['error']}"
    low, high = held_out["interval"]
    outside = f"{held_out['score']:+.3f} ({low:+.3f} to {high:+.3f}) held out"
    return f"{entry['score']:+.3f} in the search, {outside}"
