"""Whether a run says the same twice: every run of a plan, two times, byte against byte.

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
from dragstrip.expand import PlannedRun
from dragstrip.files import scratch
from dragstrip.pool import UNLIMITED, Limits, Task, Watcher, complain, run_all
from dragstrip.recording import TABLES, Recording, read
from dragstrip.runner import Plan, prepare


@dataclass(frozen=True)
class Verdict:
    """What two runs of one scenario say: the same hash, the first difference, or why there is none to see."""

    run: PlannedRun
    sha256: str
    difference: str
    failure: str = ""

    @property
    def identical(self) -> bool:
        """Both ran, and left the same bytes."""
        return not self.difference and not self.failure


def check(
    planned: Plan,
    workers: int | None = None,
    watcher: Watcher | None = None,
    limits: Limits = UNLIMITED,
) -> list[Verdict]:
    """Runs everything twice; raises `BadInputError` for an engine whose runs are never the same."""
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
        complain(outcomes)
        verdicts = []
        for number in range(0, len(runs), 2):
            failures = [outcome.failure for outcome in outcomes[number : number + 2] if not outcome.summary]
            if failures:
                verdicts.append(Verdict(runs[number], "", "", failures[0]))
                continue
            first, second = (read(task.folder) for task in tasks[number : number + 2])
            digest = str(first.provenance["recording_sha256"])
            verdicts.append(Verdict(runs[number], digest, difference(first, second)))
    return verdicts


def twice(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Every run, and then the same again."""
    return [run for run in runs for _ in range(2)]


def difference(first: Recording, second: Recording) -> str:
    """The first place where two recordings differ, in words; nothing where they are the same."""
    for table in TABLES:
        one, other = first[table], second[table]
        if one.column_names != other.column_names:
            return f"table {table}: columns {one.column_names} and {other.column_names}"
        rows = min(one.num_rows, other.num_rows)
        places = [(_first(one[column], other[column], rows), column) for column in one.column_names]
        row, column = min(places, key=lambda place: place[0])
        if row < rows:
            sides = f"{one[column][row].as_py()} and {other[column][row].as_py()}"
            return f"table {table}, row {row}, column {column}: {sides}"
        if one.num_rows != other.num_rows:
            return f"table {table}: {one.num_rows} and {other.num_rows} rows"
    return ""


def _first(one: pa.ChunkedArray[Any], other: pa.ChunkedArray[Any], rows: int) -> int:
    """The first row that differs; `rows` if none does."""
    if one.slice(0, rows).equals(other.slice(0, rows)):
        return rows
    values = [np.asarray(column.slice(0, rows).to_pylist(), dtype=object) for column in (one, other)]
    apart = np.flatnonzero(values[0] != values[1])
    return int(apart[0]) if apart.size else rows


def document(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The result as JSON."""
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


def describe(verdict: Verdict) -> str:
    """One line."""
    name = f"{verdict.run.name} ({verdict.run.engine}, seed {verdict.run.scenario['seed']})"
    if verdict.failure:
        return f"{name}: failed: {verdict.failure}"
    if verdict.difference:
        return f"{name}: differs: {verdict.difference}"
    return f"{name}: identical, {verdict.sha256[:16]}"
