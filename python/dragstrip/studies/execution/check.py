"""The reproducibility check: every run of a plan is made twice, and the recordings are compared byte by byte.

No recording is kept, and none is taken from an earlier run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dragstrip.engines.registry import named
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import PlannedRun
from dragstrip.io.files import scratch
from dragstrip.model.recording import TABLES, Recording, read
from dragstrip.runs import UNLIMITED, Limits, Task, Watcher, raise_failure, run_all
from dragstrip.studies.execution.runner import Plan, prepare


@dataclass(frozen=True)
class RunComparison:
    """The comparison of two runs of one scenario: their hash, their first difference, or why a run failed."""

    run: PlannedRun
    sha256: str
    difference: str
    failure: str = ""

    @property
    def identical(self) -> bool:
        """True when both runs succeeded and left the same bytes."""
        return not self.difference and not self.failure


def check(
    planned: Plan,
    workers: int | None = None,
    watcher: Watcher | None = None,
    limits: Limits = UNLIMITED,
) -> list[RunComparison]:
    """Run everything twice; raises `BadInputError` for an engine in real time, whose runs always differ."""
    for name in planned.experiment.engines:
        if named(name).real_time:
            expected = "an engine in virtual time with --check: in real time no two runs are the same"
            raise BadInputError("--engine", name, expected, "command line")
    with scratch("check") as folder:
        runs = twice(planned.runs)
        options = {name: planned.experiment.options_of(name) for name in planned.experiment.engines}
        tasks = [
            Task(run.scenario, folder / str(number), {}, run.engine, options[run.engine])
            for number, run in enumerate(runs)
        ]
        prepare(tasks, watcher or Watcher())
        outcomes = run_all(tasks, workers, watcher, limits)
        raise_failure(outcomes)
        verdicts = []
        for number in range(0, len(runs), 2):
            failures = [outcome.failure for outcome in outcomes[number : number + 2] if not outcome.summary]
            if failures:
                verdicts.append(RunComparison(runs[number], "", "", failures[0]))
                continue
            first, second = (read(folder / str(at)) for at in (number, number + 1))
            digest = str(first.provenance["recording_sha256"])
            verdicts.append(RunComparison(runs[number], digest, difference(first, second)))
    return verdicts


def twice(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return every run followed by itself."""
    return [run for run in runs for _ in range(2)]


def difference(first: Recording, second: Recording) -> str:
    """Return the first place where two recordings differ, in words, or an empty string."""
    for table in TABLES:
        first_table, second_table = first[table], second[table]
        if first_table.column_names != second_table.column_names:
            return f"table {table}: columns {first_table.column_names} and {second_table.column_names}"
        rows = min(first_table.num_rows, second_table.num_rows)
        places = [
            (_first(first_table[column], second_table[column], rows), column)
            for column in first_table.column_names
        ]
        row, column = min(places, key=lambda place: place[0])
        if row < rows:
            sides = f"{first_table[column][row].as_py()} and {second_table[column][row].as_py()}"
            return f"table {table}, row {row}, column {column}: {sides}"
        if first_table.num_rows != second_table.num_rows:
            return f"table {table}: {first_table.num_rows} and {second_table.num_rows} rows"
    return ""


def _first(first: pa.ChunkedArray[Any], second: pa.ChunkedArray[Any], rows: int) -> int:
    """Return the first row that differs, or `rows` if none does."""
    if first.slice(0, rows).equals(second.slice(0, rows)):
        return rows
    values = [np.asarray(column.slice(0, rows).to_pylist(), dtype=object) for column in (first, second)]
    apart = np.flatnonzero(values[0] != values[1])
    return int(apart[0]) if apart.size else rows


def document(verdicts: Sequence[RunComparison]) -> dict[str, Any]:
    """Return the verdicts as JSON."""
    return {
        "identical": all(verdict.identical for verdict in verdicts),
        "runs": [
            {
                "scenario": verdict.run.name,
                "engine": verdict.run.engine,
                "seed": verdict.run.scenario["seed"],
                "identical": verdict.identical,
                "recording_sha256": verdict.sha256 or None,
                "difference": verdict.difference or None,
                "failure": verdict.failure or None,
            }
            for verdict in verdicts
        ],
    }


def describe(verdict: RunComparison) -> str:
    """Return a verdict as one line."""
    name = f"{verdict.run.name} ({verdict.run.engine}, seed {verdict.run.scenario['seed']})"
    if verdict.failure:
        return f"{name}: failed: {verdict.failure}"
    if verdict.difference:
        return f"{name}: differs: {verdict.difference}"
    return f"{name}: identical, {verdict.sha256[:16]}"
