"""The runs of a passport: each run that its rows need, once, on all cores, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragstrip import engines
from dragstrip.display.progress import ProgressMessages
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.programs import in_file
from dragstrip.model.recording import core_build
from dragstrip.model.scenario.paths import packets
from dragstrip.runs import Limits, Outcome, Task, Watcher, run_all
from dragstrip.runs.local import too_long
from dragstrip.studies.execution.runner import Job
from dragstrip.studies.passport.figures import TIMEOUTS
from dragstrip.studies.passport.rows import SEEDS, SIMULATOR, On, PassportRow, Scenario, Subject
from dragstrip.studies.passport.store import RunStore, StoredRun

TIME_LIMIT_S = 60.0
"""Real time in seconds after which a run counts as stalled."""
STALLED_MAX = 3
"""Stalled runs of an algorithm after which no more of its runs are started."""
COST_MAX_S = 900.0
"""Seconds of one core that all runs may take where an engine says what one takes; two cores: 7.5 min."""
REAL_TIME_MAX_S = 560.0
"""The same in real time, one run after the other."""
RUN_MAX_S = 60.0
"""Seconds of one core that a single run may take there."""
QUIC_LIMIT_S = 600.0
"""The same where a QUIC stack takes part, whose packets cost ten times as much (docs/how-to/quic.md)."""
SLOW_LIMIT_S = 600.0
"""Real time in seconds after which such a run counts as stalled: it shares the machine."""
SLOW_SEEDS = 3
"""Runs there of a row in which something is random by itself; a kernel's own chance is small, and a row with
nothing else runs once: more rows tell more than more runs of few."""


@dataclass(frozen=True)
class RowRuns:
    """The runs of one row with one algorithm, one for each seed, or why there are none."""

    runs: tuple[PlannedRun, ...]
    failure: str = ""


def planned(scenario: Scenario, subject: Subject) -> RowRuns:
    """The runs of a scenario with this algorithm; without anything random, one."""
    try:
        runs = expand(scenario.experiment(subject))
    except BadInputError as error:
        return RowRuns((), str(error))
    return RowRuns(tuple(run for run in runs if run.repeat < _seeds(run)))


def _seeds(run: PlannedRun) -> int:
    """Number of seeds of the run's row."""
    if not run.core.draws:
        return 1
    return SEEDS if engines.named(run.engine).model else SLOW_SEEDS


class PassportRuns:
    """Results of the runs of a passport."""

    def __init__(
        self,
        results: dict[str, StoredRun],
        plans: dict[tuple[str, str], RowRuns],
        skip_reasons: dict[str, str],
    ) -> None:
        self.results, self._plans = results, plans
        self.skip_reasons = skip_reasons
        """Reasons for the rows that were not run on this engine, by id."""

    def of(self, row: PassportRow, subject: Subject) -> list[StoredRun]:
        """Returns the results of a row's runs with this algorithm, by seed, or the reason for none."""
        plan = self._plans[row.id, subject.word]
        return [self.results[_key(run)] for run in plan.runs] or [StoredRun(None, failure=plan.failure)]


def make(
    rows: Sequence[PassportRow],
    subjects: Iterable[Subject],
    workers: int | None,
    quiet: bool,
    store: RunStore | None = None,
    on: On = SIMULATOR,
) -> PassportRuns:
    """Make the runs of these rows with each algorithm, every scenario once.

    Results of an earlier passport of the same build are read from the store. A run that fails fails alone.
    Rows that this engine cannot run, or that would take too long on it, are left out.
    """
    engine = engines.named(on.engine)
    with _Keeping(quiet) as watcher:
        engine.prepare(on.all_options, watcher.preparing)
        words = list(subjects)
        watcher.files = {Path(file).stem: file for subject in words for file in subject.files}
        plans_by_scenario: dict[tuple[int, str], RowRuns] = {}  # the rows of one scenario share its runs
        plans = {}
        for row in rows:
            for subject in words:
                at = id(row.scenario), subject.word
                if at not in plans_by_scenario:
                    plans_by_scenario[at] = planned(row.scenario, subject)
                plans[row.id, subject.word] = plans_by_scenario[at]
        skip_reasons = _skip_reasons(rows, words, plans, on)
        names = {row.id for row in rows} - skip_reasons.keys()
        runs: dict[str, PlannedRun] = {}
        algorithms: dict[str, str] = {}
        for (name, word), plan in plans.items():
            for run in plan.runs if name in names else ():
                runs[_key(run)] = run
                algorithms.setdefault(_key(run), word)
        watcher.store = (RunStore(on.build) if store is None else store) if not engine.real_time else None
        results = watcher.results
        for key in runs:
            stored_result = None if watcher.store is None else watcher.store.find(key)
            if stored_result is not None:
                results[key] = stored_result
        missing = sorted(
            (key for key in runs if key not in results), key=lambda key: (-packets(runs[key].scenario), key)
        )
        _run(missing, runs, algorithms, on, workers, watcher)
    return PassportRuns(results, plans, skip_reasons)


def _run(
    missing: Sequence[str],
    runs: Mapping[str, PlannedRun],
    algorithms: Mapping[str, str],
    on: On,
    workers: int | None,
    watcher: _Keeping,
) -> None:
    """Make these runs; of an algorithm whose runs stall, no more than a few."""
    slow = not engines.named(on.engine).in_process
    # An emulator maps more memory than it uses.
    limits = Limits(SLOW_LIMIT_S, 0) if slow else Limits(time_s=TIME_LIMIT_S)
    if any(
        flow["transport"]["protocol"] == "quic" for key in missing for flow in runs[key].scenario["flows"]
    ):
        limits = Limits(time_s=QUIC_LIMIT_S)
    waiting = list(missing)
    while waiting:
        watcher.begin(waiting, [algorithms[key] for key in waiting], too_long(limits)["reason"])
        try:
            run_all(
                [Task(runs[key].scenario, None, engine=on.engine, options=on.all_options) for key in waiting],
                workers,
                watcher,
                limits,
            )
        except _StalledError as stalled:
            reason = f"not started: {STALLED_MAX} runs of {stalled.word} took longer than {limits.time_s:g} s"
            for key in waiting:
                if key not in watcher.results and algorithms[key] == stalled.word:
                    watcher.results[key] = StoredRun(None, failure=reason)
        waiting = [key for key in waiting if key not in watcher.results]


def _skip_reasons(
    rows: Sequence[PassportRow], subjects: Sequence[Subject], plans: Mapping[tuple[str, str], RowRuns], on: On
) -> dict[str, str]:
    """The reasons for rows that this engine does not run, by id: it cannot, or all would take too long."""
    engine, options = engines.named(on.engine), on.all_options
    if on == SIMULATOR:
        return _beyond_stacks(rows, subjects, plans)
    untold = "a kernel does not tell the phases of an algorithm"
    skip_reasons = {row.id: untold for row in rows if row.figure.of_phases and not engine.model}
    together: dict[int, list[PassportRow]] = {}
    for row in (row for row in rows if row.id not in skip_reasons):
        together.setdefault(id(row.scenario), []).append(row)
    costs: list[tuple[float, int]] = []
    for at, group in together.items():
        group_plans = [plans[group[0].id, subject.word] for subject in subjects]
        scenarios = [run.scenario for plan in group_plans for run in plan.runs]
        reasons = [plan.failure for plan in group_plans if plan.failure]
        reasons += [
            str(refusal.error())
            for scenario in scenarios
            for refusal in engine.refusals(scenario, options)[:1]
        ]
        if not reasons:
            reasons += [
                str(refusal.error()) for refusal in engine.missing(scenarios, options) if refusal is not None
            ]
        run_costs_s = [engine.cost_s(scenario) for scenario in scenarios]
        if not reasons and run_costs_s and max(run_costs_s) > RUN_MAX_S:
            reasons = [f"one of its runs takes more than {RUN_MAX_S:.0f} s of a core there"]
        if reasons:
            skip_reasons.update((row.id, reasons[0]) for row in group)
        else:
            costs.append((sum(run_costs_s), at))
    limit, total = REAL_TIME_MAX_S if engine.real_time else COST_MAX_S, 0.0
    for cost, at in sorted(costs, key=lambda entry: (entry[0], together[entry[1]][0].id)):
        total += cost
        if total > limit:
            reason = f"cheaper rows fill the {limit:.0f} s of a core that a passport takes there"
            skip_reasons.update((row.id, reason) for row in together[at])
    return skip_reasons


def _beyond_stacks(
    rows: Sequence[PassportRow], subjects: Sequence[Subject], plans: Mapping[tuple[str, str], RowRuns]
) -> dict[str, str]:
    """The reasons for rows that a QUIC stack does not run or that need what it does not count, by id."""
    skip_reasons = {}
    for word in (subject.word for subject in subjects if "/" in subject.word):
        for row in rows:
            if failure := plans[row.id, word].failure:
                skip_reasons[row.id] = failure
            elif row.figure is TIMEOUTS:
                skip_reasons[row.id] = "QUIC stacks do not count timeouts"
    return skip_reasons


def _key(run: PlannedRun) -> str:
    """A hash of a run's inputs beside the build: its scenario, and the Rust files of its algorithms."""
    rust_hashes = [
        sha256 for name, sha256 in core_build.algorithm_files().items() if f'"cc":"{name}"' in run.text
    ]
    return Job(run, "").simulated + "".join(rust_hashes)


class _StalledError(Exception):
    """Raised when the runs of an algorithm stall."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class _Keeping(Watcher):
    """Stores the result of each finished run and reports the progress."""

    def __init__(self, quiet: bool) -> None:
        self.results: dict[str, StoredRun] = {}
        self.store: RunStore | None = None
        self.keys: Sequence[str] = ()
        self.words: Sequence[str] = ()
        self.files: Mapping[str, str] = {}
        """Files of the programs, by their names."""
        self.stall = ""
        self.stalled: Counter[str] = Counter()
        self.finished_count = self.count = 0
        self.quiet = quiet
        self.messages = ProgressMessages()

    def preparing(self, activity: str) -> None:
        """Reports a compilation or start before the runs."""
        if not self.quiet:
            self.messages.doing(lambda: activity)

    def begin(self, keys: Sequence[str], words: Sequence[str], stall: str) -> None:
        """Starts a batch of runs, each with its algorithm; `stall` is the failure of a stalled run."""
        self.keys, self.words, self.stall = keys, words, stall
        self.count = self.count or len(keys)
        if not self.quiet:
            self.messages.doing(lambda: f"running: {self.finished_count} of {self.count} runs done")

    def finished(self, index: int, outcome: Outcome) -> None:
        """Stores the result of a finished run.

        Raises `BadInputError` for a program that the kernel refuses to load: no other run would load it.
        """
        if outcome.wrong and outcome.wrong[0] == "load":
            field, value, expected, source = outcome.wrong
            raise BadInputError(field, Raw(value), expected, source)
        self.finished_count += 1
        result = StoredRun(outcome.summary, outcome.sha256, self._failure(outcome))
        self.results[self.keys[index]] = result
        if result.summary is not None:
            if self.store is not None:
                self.store.keep(self.keys[index], result)
        elif outcome.failure == self.stall:
            word = self.words[index]
            self.stalled[word] += 1
            if self.stalled[word] == STALLED_MAX:
                raise _StalledError(word)

    def _failure(self, outcome: Outcome) -> str:
        """Returns why a run failed; an error in a line of a program names the program's file."""
        if not outcome.wrong:
            return outcome.failure
        field, value, expected, source = outcome.wrong
        error = BadInputError(field, Raw(value), expected, source)
        located = in_file(error, self.files)
        return outcome.failure if located is error else str(located)

    def __enter__(self) -> _Keeping:
        return self

    def __exit__(self, *_: object) -> None:
        self.messages.close()
