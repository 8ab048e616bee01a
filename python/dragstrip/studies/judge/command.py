"""Steps of `dragstrip judge`: make each algorithm's runs of the hidden scenarios, and score them.

A text cannot reach its score: it runs under the same name as every other, its language has neither input nor
output (docs/how-to/program.md), and nothing of how the scenario was drawn is part of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from dragstrip import engines
from dragstrip.display.document import StudyDocument
from dragstrip.display.progress import ProgressMessages
from dragstrip.engines.contract import Progress
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment.comparison import COMMAND_LINE
from dragstrip.experiment.expand import expand
from dragstrip.experiment.programs import in_file
from dragstrip.results.measures import summarise
from dragstrip.runs import run_parallel
from dragstrip.studies.judge import score
from dragstrip.studies.judge.draws import HiddenScenario, draw
from dragstrip.studies.judge.entrants import NAME, Entrant, Judged, entrant, first_line, replayable
from dragstrip.studies.passport.rows import SIMULATOR, Subject, Summary

BASELINE = "cubic"
SCENARIOS = 40
QUICK_SCENARIOS = 8
SCENARIOS_MAX = 1000
REPORTS_MAX = 16
"""Reports of progress, beyond one a simulated second, after which a run is ended. The core reports after 2^20
events at the latest, so that this bounds a run's events, alike on every machine."""


class Judgement(StudyDocument):
    """Score of an algorithm on hidden scenarios, or the reason why it has none."""

    @property
    def score(self) -> float | None:
        """The mean over the scenarios of log2(goodput / round trip), less CUBIC's; None with an error."""
        return None if self["score"] is None else float(self["score"])

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the score's 95 % interval over the scenarios; None with an error."""
        ends = self["interval"]
        return None if ends is None else (float(ends[0]), float(ends[1]))

    @property
    def error(self) -> str | None:
        """Why there is no score, in one line; None if there is one."""
        return None if self["error"] is None else str(self["error"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A scenario each, with its own score and figures; empty with an error."""
        return list(self["rows"])


def scenario_count(quick: bool, scenarios: int | None) -> int:
    """Return the number of scenarios that these options ask for; raises `BadInputError`."""
    if scenarios is None:
        return QUICK_SCENARIOS if quick else SCENARIOS
    if quick:
        raise BadInputError("--quick", None, f"means --scenarios {QUICK_SCENARIOS}: give one", COMMAND_LINE)
    if not 1 <= scenarios <= SCENARIOS_MAX:
        expected = f"a number from 1 to {SCENARIOS_MAX}"
        raise BadInputError("--scenarios", scenarios, expected, COMMAND_LINE)
    return scenarios


def judge(
    algorithms: Sequence[Judged],
    hidden: int,
    *,
    count: int = SCENARIOS,
    show: bool = False,
    workers: int | None = None,
    quiet: bool = True,
    judged: Callable[[Judgement], object] | None = None,
) -> list[Judgement]:
    """Return a judgement of each algorithm, in their order, on the first `count` scenarios of seed `hidden`.

    `judged` gets each of them as soon as it and those before it are ready. With `show` a row has its
    scenario's title and the command that replays it, so that a file needs a name that `compare` takes. An
    algorithm that cannot be read, or whose run fails, has an error and no score; the others go on. The
    answers do not depend on `workers` or on each other.
    """
    entrants = [entrant(algorithm, number) for number, algorithm in enumerate(algorithms, 1)]
    if show:
        entrants = [replayable(entry) for entry in entrants]
    return judge_entrants(
        entrants, hidden, count=count, show=show, workers=workers, quiet=quiet, judged=judged
    )


def judge_entrants(
    entrants: Sequence[Entrant],
    hidden: int,
    *,
    count: int = SCENARIOS,
    show: bool = False,
    workers: int | None = None,
    quiet: bool = True,
    timeout_s: float | None = None,
    judged: Callable[[Judgement], object] | None = None,
) -> list[Judgement]:
    """Return a judgement of each algorithm that has been read, as `judge` does.

    A run that takes longer than `timeout_s` seconds ends with an error; which one does, depends on the
    machine.
    """
    scenarios = draw(hidden, count)
    messages = ProgressMessages()
    finished: list[Judgement] = []
    if not quiet:
        messages.doing(lambda: f"judging: {len(finished)} of {len(entrants)} algorithms done")
    try:
        readable = [entry for entry in entrants if entry.subject is not None]
        baseline = _baseline(hidden, count, workers) if readable else ()
        results = _Results(len(readable), count)

        def conclude(index: int, result: Summary | str) -> None:
            results.add(index, result)
            release()

        def release() -> None:
            while len(finished) < len(entrants):
                entry = entrants[len(finished)]
                runs: Sequence[Summary | str] | None = ()
                if entry.subject is not None and (runs := results.first()) is None:
                    return
                finished.append(_judgement(entry, hidden, scenarios, runs or (), baseline, show))
                if judged is not None:
                    judged(finished[-1])

        release()
        items = [(entry, scenario) for entry in readable for scenario in scenarios]
        run_parallel(partial(_outcome, timeout_s=timeout_s), items, workers, finished=conclude)
    finally:
        messages.close()
    return finished


class _Results:
    """Results of all runs, which end in any order, handed out algorithm by algorithm."""

    def __init__(self, algorithms: int, count: int) -> None:
        self._missing = [count] * algorithms
        self._results: dict[int, Summary | str] = {}
        self._count, self._next = count, 0

    def add(self, index: int, result: Summary | str) -> None:
        """Store the result of the run with this number."""
        self._results[index] = result
        self._missing[index // self._count] -= 1

    def first(self) -> list[Summary | str] | None:
        """Return and forget the results of the next algorithm; None while some are missing."""
        if self._missing[self._next]:
            return None
        start = self._next * self._count
        self._next += 1
        return [self._results.pop(index) for index in range(start, start + self._count)]


def _outcome(
    item: tuple[Entrant, HiddenScenario], progress: Progress, timeout_s: float | None
) -> Summary | str:
    """Return the summary of one run, or the error that ended it."""
    entry, hidden = item
    assert entry.subject is not None
    try:
        return _summary(entry.subject, hidden, progress, timeout_s)
    except BadInputError as error:
        return f"{hidden.id}: {first_line(in_file(error, {NAME: entry.label}))}"
    except DragstripError as error:
        return f"{hidden.id}: {first_line(error)}"


def _summary(
    subject: Subject, hidden: HiddenScenario, progress: Progress, timeout_s: float | None = None
) -> Summary:
    """Return the summary of one run; raises `DragstripError` for one with too many events or too late."""
    scenario = expand(hidden.scenario.experiment(subject, 1))[0].scenario
    reports_max = REPORTS_MAX + int(scenario["duration_ns"] / 1e9) + 1
    reports = 0
    deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s

    def bounded(now_ns: int, arrived_bytes: int = 0, /) -> object:
        nonlocal reports
        reports += 1
        if reports > reports_max:
            raise DragstripError(f"a run of more than {reports_max << 20} events: it floods its path")
        if time.monotonic() > deadline_s:
            raise DragstripError(f"a run of more than {timeout_s:g} s, the time-out")
        return progress(now_ns, arrived_bytes)

    return summarise(engines.named(SIMULATOR.engine).run(scenario, {}, bounded))


@lru_cache(maxsize=8)
def _baseline(hidden: int, count: int, workers: int | None) -> tuple[Summary, ...]:
    """Return CUBIC's runs in the subject's place, made once for many judgements of one seed."""
    return tuple(run_parallel(partial(_summary, Subject(BASELINE)), draw(hidden, count), workers))


def _judgement(
    entry: Entrant,
    hidden: int,
    scenarios: Sequence[HiddenScenario],
    results: Sequence[Summary | str],
    baseline: Sequence[Summary],
    show: bool,
) -> Judgement:
    head: dict[str, Any] = {"algorithm": entry.label, "hidden": hidden, "scenarios": len(scenarios)}
    error = entry.error or next((result for result in results if isinstance(result, str)), "")
    if error:
        document = {**head, "score": None, "interval": None, "error": error, "rows": []}
        return Judgement(document, f"{entry.label}: {error}")
    summaries = [result for result in results if not isinstance(result, str)]
    rows = [_row(entry, *parts, show=show) for parts in zip(scenarios, summaries, baseline, strict=True)]
    mean, (low, high) = score.total(rows)
    document = {**head, "score": mean, "interval": [low, high], "error": None, "rows": rows}
    return Judgement(document, f"{entry.label}: {mean:+.3f} ({low:+.3f} to {high:+.3f})")


def _row(
    entry: Entrant, hidden: HiddenScenario, summary: Summary, cubic: Summary, *, show: bool
) -> dict[str, Any]:
    scenario = hidden.scenario
    row: dict[str, Any] = {
        "id": hidden.id,
        "score": score.objective(summary, scenario) - score.objective(cubic, scenario),
        **score.figures(summary, scenario),
        BASELINE: score.figures(cubic, scenario),
    }
    if show:
        row.update(title=hidden.title, replay=scenario.command(entry.replayed, 1))
    return row
