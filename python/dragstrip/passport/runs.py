"""The runs of a passport: which ones rows need, each made once, on all cores, and what is kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragstrip import engines
from dragstrip.errors import BadInputError
from dragstrip.execution.runner import Job
from dragstrip.experiment.expand import PlannedRun, draws, expand
from dragstrip.io.progress import ProgressMessages
from dragstrip.passport.rows import Row, Scenario, Subject
from dragstrip.passport.store import Shown, Store
from dragstrip.pool import Limits, Outcome, Task, Watcher, run_all
from dragstrip.scenario.paths import packets

TIME_LIMIT_S = 60.0
"""Real time in seconds after which a run counts as stalled."""


@dataclass(frozen=True)
class Planned:
    """The runs of one row with one algorithm, one for each seed, or why there are none."""

    runs: tuple[PlannedRun, ...]
    failure: str = ""


def planned(scenario: Scenario, subject: Subject) -> Planned:
    """The runs of a scenario with this algorithm; without anything random, those of one seed."""
    try:
        runs = expand(scenario.experiment(subject))
    except BadInputError as error:
        return Planned((), str(error))
    return Planned(tuple(run for run in runs if run.repeat == 0 or draws(run)))


class Made:
    """What the runs of a passport showed."""

    def __init__(self, shown: dict[str, Shown], plans: dict[tuple[str, str], Planned]) -> None:
        self._shown, self._plans = shown, plans

    def of(self, row: Row, subject: Subject) -> list[Shown]:
        """What the runs of a row with this algorithm showed, by seed, or why there are none."""
        plan = self._plans[row.id, subject.word]
        return [self._shown[_key(run)] for run in plan.runs] or [Shown(None, failure=plan.failure)]


def make(
    rows: Sequence[Row],
    subjects: Iterable[Subject],
    workers: int | None,
    quiet: bool,
    store: Store | None = None,
) -> Made:
    """Make the runs of these rows with each algorithm, every scenario once.

    What an earlier passport of the same build made is read from the store. A run that fails fails alone.
    """
    kept = Store(engines.named(engines.DEFAULT).build({})) if store is None else store
    words = list(subjects)
    known: dict[tuple[int, str], Planned] = {}  # the rows of one scenario share its runs
    plans = {}
    for row in rows:
        for subject in words:
            at = id(row.scenario), subject.word
            if at not in known:
                known[at] = planned(row.scenario, subject)
            plans[row.id, subject.word] = known[at]
    runs = {_key(run): run for plan in known.values() for run in plan.runs}
    shown: dict[str, Shown] = {}
    for key in runs:
        found = kept.find(key)
        if found is not None:
            shown[key] = found
    missing = sorted(
        (key for key in runs if key not in shown), key=lambda key: (-packets(runs[key].scenario), key)
    )
    if missing:
        tasks = [Task(runs[key].scenario, None) for key in missing]
        with _Keeping(missing, shown, kept, quiet) as watcher:
            run_all(tasks, workers, watcher, Limits(time_s=TIME_LIMIT_S))
    return Made(shown, plans)


def _key(run: PlannedRun) -> str:
    return Job(run, "").simulated


class _Keeping(Watcher):
    """Keeps what each run showed as it ends, and says how many have ended."""

    def __init__(self, keys: Sequence[str], shown: dict[str, Shown], store: Store, quiet: bool) -> None:
        self.keys, self.shown, self.store = keys, shown, store
        self.done = 0
        self.messages = ProgressMessages()
        if not quiet:
            self.messages.doing(lambda: f"simulating: {self.done} of {len(keys)} runs done")

    def finished(self, index: int, outcome: Outcome) -> None:
        """Keep a run that has ended."""
        self.done += 1
        made = Shown(outcome.summary, outcome.sha256, outcome.failure)
        self.shown[self.keys[index]] = made
        if made.summary is not None:
            self.store.keep(self.keys[index], made)

    def __enter__(self) -> _Keeping:
        return self

    def __exit__(self, *_: object) -> None:
        self.messages.close()
