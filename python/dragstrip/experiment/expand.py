"""From an experiment to scenarios: every alternative, every repeat, all quantities in base units.

A scenario here is the JSON document of `crates/scenario` as a dictionary. The core multiplies out what
varies, names the runs, makes their scenarios and checks them (`crates/experiment`); what it refuses it
names in the experiment's own fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import _core, engines
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import files
from dragstrip.experiment.types import Experiment, refused
from dragstrip.model.scenario.memory import refuse_if_too_large
from dragstrip.model.scenario.paths import ScenarioFacts, scenario_facts

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class PlannedRun:
    """One scenario of an experiment, and which one it is."""

    number: int
    name: str
    scenario: Json
    settings: Json = field(default_factory=dict)
    """Settings of this alternative: dotted path → value, and `alternative` → name."""
    repeat: int = 0
    engine: str = engines.DEFAULT
    parsed: _core.Scenario | None = field(default=None, repr=False, compare=False)

    @cached_property
    def core(self) -> _core.Scenario:
        """The scenario as the core holds it."""
        return self.parsed or _core.Scenario(self.scenario)

    @property
    def text(self) -> str:
        """The scenario as JSON, with every default written out."""
        return self.core.to_json()

    @cached_property
    def facts(self) -> ScenarioFacts:
        """The scenario with its facts; a hundred thousand flows take a second."""
        return scenario_facts(self.scenario, self.core)

    @property
    def slug(self) -> str:
        """A folder's name: number and name without odd characters."""
        plain = re.sub(r"[^a-z0-9.+-]+", "-", self.name.lower()).strip("-.")
        return f"{self.number:03d}-{plain[:60].rstrip('-.') or 'run'}"


RUNS_MAX = 10_000
"""Runs of an experiment, which are all planned in memory and all in one report; a sweep may have more."""


def expand(
    experiment: Experiment,
    source: str = "",
    selects: Callable[[PlannedRun], bool] | None = None,
    *,
    fits_memory: bool = True,
) -> list[PlannedRun]:
    """All runs in the order of time: every alternative in turn, then all again with the next seed.

    Of two engines the first one's come first, and the second, against which it is held, runs everything once
    more, with one more seed: its distance from itself is the floor of what can be reached.

    Raises `BadInputError` for the first scenario that is wanted and that the core would refuse, and, with
    `fits_memory`, for one whose recording this machine has no memory for.
    """
    repeats_of_all = sum(experiment.repeat + (number > 0) for number in range(len(experiment.engines)))
    variants = _variants(experiment, source, repeats_of_all)
    algorithms = experiment.algorithms()
    runs: list[PlannedRun] = []
    for number, engine in enumerate(experiment.engines):
        repeats = experiment.repeat + (number > 0)

        def run(settings: Json, repeat: int, core: _core.Scenario, engine: str = engine) -> PlannedRun:
            scenario = core.document()
            return PlannedRun(len(runs), scenario["name"], scenario, settings, repeat, engine, core)

        def keeps(settings: Json, repeat: int, core: _core.Scenario) -> bool:
            return selects is None or selects(run(settings, repeat, core))

        try:
            rows = variants.expand(
                repeats,
                repeats,
                algorithms,
                lambda content: loaded(content, source),
                None if selects is None else keeps,
            )
        except _core.InputError as error:
            raise refused(error, source) from None
        for settings, repeat, core in rows:
            runs.append(run(settings, repeat, core))
            if fits_memory and repeat == 0:  # repeats differ in the seed alone
                refuse_if_too_large(core, runs[-1].scenario["duration_ns"], source)
    return runs


def planned(content: Json, algorithms: list[str], source: str, *, judged: bool) -> _core.Scenario:
    """Return the scenario of an experiment in which nothing varies.

    Raises `BadInputError` for what the core would refuse, if it is `judged`.
    """
    try:
        return _core.planned(content, algorithms, judged)
    except _core.InputError as error:
        raise refused(error, source) from None


def draws(run: PlannedRun) -> bool:
    """Return whether another seed may give another recording: a kernel has randomness of its own."""
    return run.engine != engines.SIMULATOR or run.core.draws


def complete(scenario: Json) -> Json:
    """Return the scenario with every default written out."""
    return _core.Scenario(scenario).document()


# --- alternatives -----------------------------------------------------------------------------


def _variants(experiment: Experiment, source: str, repeats: int) -> _core.Variants:
    """Return all combinations of what varies; raises `BadInputError` if they are too many."""
    try:
        variants = _core.Variants(experiment.content())
    except _core.InputError as error:
        raise refused(error, source) from None
    if (count := len(variants) * repeats) > RUNS_MAX:
        combinations = f"{len(variants)} combinations, {repeats} times each, are {count}"
        field = "repeat" if repeats > len(variants) else "vary"
        raise BadInputError(field, Raw(f"{count} runs"), f"at most {RUNS_MAX} ({combinations})", source)
    return variants


def loaded(content: Json, source: str) -> Json:
    """Return content with what the files hold that it names. Raises `BadInputError`."""
    try:
        return files.read_in(files.located(content, Path(source).parent))
    except BadInputError as error:
        raise error.at(source) from None


def varied(table: Mapping[str, Any], field: str, source: str) -> dict[str, list[Any]]:
    """Dotted path → its values; raises `BadInputError` where there is no list of them."""
    try:
        return _core.varied(dict(table), field)
    except _core.InputError as error:
        raise refused(error, source) from None


def flat(table: Mapping[str, Any]) -> Json:
    """Flattens tables to dotted path → leaf value: TOML makes tables of `flows.cc = [...]`."""
    return _core.flat(dict(table))


path_parts = _core.path_parts


def assign(content: Mapping[str, Any], assignments: Iterable[tuple[str, Any]], source: str) -> Json:
    """The content with the fields at these dotted paths set.

    A list without an index means each of its entries. Raises `BadInputError`.
    """
    try:
        return _core.assign(dict(content), list(assignments))
    except _core.InputError as error:
        raise refused(error, source) from None
