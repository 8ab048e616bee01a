"""Claims of a sweep: each graded for every combination of the levels that it does not select itself.

A claim on `fct_s_p99` without a selector has a grade for each combination of levels, over its seeds. A claim
that compares `cubic` with `reno`, both levels of `flows.cc`, has one for each combination of the other axes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pyarrow.compute as pc

from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import PlannedRun
from dragstrip.experiment.types import Claim, Experiment
from dragstrip.results.claims import check, figure_selectors, grade_figures, run_selected
from dragstrip.runs.work import OK
from dragstrip.studies.sweep.axes import column
from dragstrip.studies.sweep.plan import Index, Json, Sweep
from dragstrip.studies.sweep.store import Store

NUMBER, TEXT = "claim_{}", "claim_{}_grade"
"""Columns of a claim in the dataset: its figure in its unit, and its grade."""


@dataclass
class _GradeRuns:
    """The runs that one grade needs."""

    settings: Json
    values: list[list[float]]
    """For each selector of the claim, the values of all runs."""
    runs: int = 0
    limits: list[str] = field(default_factory=list)
    points: list[int] = field(default_factory=list)

    def grade(self, claim: Claim) -> Json:
        """Return the graded claim, with the settings that it holds for."""
        limits = ""
        if self.limits:
            of_runs = f"{len(self.limits)} of {self.runs} runs" if self.runs > 1 else "the run"
            limits = f"{of_runs}: {self.limits[0]}"
        figures = [median(values) if values else None for values in self.values]
        return {"settings": self.settings, **grade_figures(claim, figures, limits)}


@dataclass(frozen=True)
class GradedClaim:
    """A claim with its grades over the sweep."""

    claim: Claim
    levels: list[Json]
    """A graded claim with its `settings`, for each combination of the levels that it does not select."""
    level_of: Mapping[int, int]
    """The number of the grade of a combination; combinations that no grade needs are left out."""

    @property
    def counts(self) -> dict[str, int]:
        """The number of combinations by grade."""
        return dict(Counter(level["grade"] for level in self.levels))

    def document(self) -> Json:
        """Return the claim as an entry of the summary document."""
        first = self.levels[0]
        common = {name: first[name] for name in ("id", "source", "metric", "published", "unit")}
        names = ("settings", "measured", "grade", "agrees", "reason")
        levels = [{name: level[name] for name in names if name in level} for level in self.levels]
        return {**common, "counts": self.counts, "levels": levels}

    def columns(self) -> tuple[str, str]:
        """Return the names of its two columns in the dataset."""
        return columns(self.claim)

    def figure(self, point: int) -> float | None:
        """Return the figure of a combination's grade in the claim's unit; None for an order."""
        measured = self._entry(point, "measured")
        return float(measured) if isinstance(measured, int | float) else None

    def grade(self, point: int) -> str | None:
        """Return the grade of a combination, or None if no grade needs it."""
        grade: str | None = self._entry(point, "grade")
        return grade

    def _entry(self, point: int, name: str) -> Any:
        number = self.level_of.get(point)
        return None if number is None else self.levels[number][name]


def columns(claim: Claim) -> tuple[str, str]:
    """Return the names of a claim's two columns in the dataset: figure and grade."""
    return NUMBER.format(column(claim.id)), TEXT.format(column(claim.id))


def expect_measurable(experiment: Experiment, sweep: Sweep, source: str) -> None:
    """Raise `BadInputError` for a claim that neither the file's own levels nor the sweep's can measure."""
    if not experiment.claims:
        return
    column_owners: dict[str, str] = {}
    for at, claim in enumerate(experiment.claims):
        for name in columns(claim):
            if (owner := column_owners.setdefault(name, claim.id)) != claim.id:
                expected = f"an id whose column {name} no other claim has: {owner} has it"
                raise BadInputError(f"claims[{at}].id", claim.id, expected, source)
    check(experiment, list(_one_at_a_time(sweep)), source)


def _one_at_a_time(sweep: Sweep) -> Iterator[PlannedRun]:
    """Yield the first combination, and those that differ from it on one axis: they have every value."""
    step = sweep.points
    points = {0}
    for axis in sweep.axes:
        step //= len(axis.levels)
        points.update(step * place for place in range(len(axis.levels)))
    for point in sorted(points):
        scenario = sweep.scenario(point, checked=True).document()
        settings = sweep.settings(point)
        for repeat in range(sweep.repeat):
            yield PlannedRun(point, "", scenario, settings, repeat, sweep.engine)


def grade_claims(sweep: Sweep, index: Index, store: Store) -> list[GradedClaim]:
    """Return every claim of a sweep, graded by the runs in its store."""
    if not sweep.claims:
        return []
    values, limits = _stored_values(index, store)
    return [_graded(claim, at, sweep, index, values, limits) for at, claim in enumerate(sweep.claims)]


def _stored_values(index: Index, store: Store) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the claims' values of each finished run of the sweep by key, and how the machine limited it."""
    wanted_keys = {key.hex() for key in index.all_keys()}
    values: dict[str, Any] = {}
    limits: dict[str, str] = {}
    names = ["key", "status", "reason", "claim_values"]
    for table in store.tables(names):
        measured = table.filter(pc.is_valid(table["claim_values"]))
        for key, status, reason, text in zip(*(measured[name].to_pylist() for name in names), strict=True):
            if status == OK and key in wanted_keys:
                values[key] = json.loads(text)
                if reason:
                    limits[key] = reason
    return values, limits


def _graded(
    claim: Claim,
    at: int,
    sweep: Sweep,
    index: Index,
    values: Mapping[str, Any],
    limits: Mapping[str, str],
) -> GradedClaim:
    selectors = figure_selectors(claim)
    selected_paths = {path for where in selectors for path in where}
    groups: dict[str, _GradeRuns] = {}
    for point in range(sweep.points):
        settings = sweep.settings(point)
        shared = {path: value for path, value in settings.items() if not _selects(path, selected_paths)}
        group = groups.setdefault(repr(shared), _GradeRuns(shared, [[] for _ in selectors]))
        runs_before = group.runs
        for repeat in range(sweep.repeat):
            key = index.key(point * sweep.repeat + repeat).hex()
            if key in values and _add(group, selectors, settings, repeat, values[key][at]):
                group.runs += 1
                if key in limits:
                    group.limits.append(limits[key])
        if group.runs > runs_before:
            group.points.append(point)
    level_of = {point: number for number, group in enumerate(groups.values()) for point in group.points}
    return GradedClaim(claim, [group.grade(claim) for group in groups.values()], level_of)


def _selects(path: str, selected_paths: set[str]) -> bool:
    """Return whether a claim's selectors choose among the levels of a varied field."""
    return path in selected_paths or ("cc" in selected_paths and path.rpartition(".")[2] == "cc")


def _add(
    group: _GradeRuns, selectors: Sequence[Json], settings: Json, repeat: int, run_values: list[list[float]]
) -> bool:
    """Add a run's values to a group where its settings are selected; return whether there were any."""
    run = PlannedRun(0, "", {}, settings, repeat)
    before = sum(map(len, group.values))
    for values, where, additional in zip(group.values, selectors, run_values, strict=True):
        if run_selected(where, run):
            values += additional
    return sum(map(len, group.values)) > before


def summary_lines(claims: Sequence[Json]) -> list[str]:
    """Return the claims of a summary document as text for people."""
    return [f"{claim['id']}: {published(claim)}: {counts(claim)}" for claim in claims]


def published(claim: Json) -> str:
    """Return what a claim's entry of the summary says was published."""
    figures = claim["published"]
    if isinstance(figures, list) and claim["unit"] != "order":
        return f"{figures[0]:g} to {figure_text(figures[1], claim['unit'])}"
    return "nothing published" if figures is None else figure_text(figures, claim["unit"])


def figure_text(measured: Any, unit: str) -> str:
    """Return a claim's figure in its unit, or an order, as text."""
    if measured is None:
        return "–"
    if unit == "order":
        return " < ".join(map(str, measured))
    return f"{measured:.4g}" if unit == "1" else f"{measured:.4g} {unit}"


def counts(claim: Json) -> str:
    """Return how many combinations of a claim's entry have which grade."""
    total = len(claim["levels"])
    parts = ", ".join(f"{grade} on {count:,}" for grade, count in claim["counts"].items())
    return f"{parts} of {total:,} combination{'s' * (total != 1)}"
