"""From an experiment to scenarios: every alternative, every repeat, all quantities in base units.

A scenario here is the JSON document of `crates/scenario` as a dictionary. The core multiplies out what
varies, names the runs, makes their scenarios and checks them (`crates/experiment`); what it refuses it
names in the experiment's own fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import _core, engines
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import files
from dragstrip.experiment.files import as_json
from dragstrip.experiment.types import Experiment, refused
from dragstrip.scenario.memory import refuse_if_too_large
from dragstrip.scenario.paths import Known, scenario_facts

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
    text: str = field(default="", repr=False, compare=False)
    """The scenario as the core wrote it, where it did."""

    @cached_property
    def facts(self) -> Known:
        """The scenario with its facts, for all who ask: a hundred thousand flows take a second."""
        return scenario_facts(self.scenario, self.text)

    @property
    def slug(self) -> str:
        """A folder's name: number and name without odd characters."""
        plain = re.sub(r"[^a-z0-9.+-]+", "-", self.name.lower()).strip("-.")
        return f"{self.number:03d}-{plain[:60].rstrip('-.') or 'run'}"


RUNS_MAX = 10_000
"""Runs of an experiment, which are all planned in memory and all in one report; a sweep may have more."""


def expand(
    experiment: Experiment, source: str = "", selects: Callable[[PlannedRun], bool] | None = None
) -> list[PlannedRun]:
    """All runs in the order of time: every alternative in turn, then all again with the next seed.

    Of two engines the first one's come first, and the second, against which it is held, runs everything once
    more, with one more seed: its distance from itself is the floor of what can be reached.

    Raises `BadInputError` for the first scenario that is wanted and that the core would refuse.
    """
    repeats_of_all = sum(experiment.repeat + (number > 0) for number in range(len(experiment.engines)))
    variants = list(_variants(experiment, source, repeats_of_all))
    algorithms = experiment.algorithms()
    runs: list[PlannedRun] = []
    for number, engine in enumerate(experiment.engines):
        repeats = experiment.repeat + (number > 0)
        for repeat in range(repeats):
            for settings, content in variants:
                first = repeat == 0  # repeats differ in the seed alone
                arguments = (content, settings, (repeat, repeats), algorithms, source)
                text = planned(*arguments, judged=first and selects is None)
                scenario = json.loads(text)
                run = PlannedRun(len(runs), scenario["name"], scenario, settings, repeat, engine, text)
                if selects is not None and not selects(run):
                    continue
                if first:
                    if selects is not None:
                        planned(*arguments, judged=True)
                    refuse_if_too_large(text, scenario["duration_ns"], source)
                runs.append(run)
    return runs


def planned(
    content: str,
    settings: Mapping[str, Any],
    repeats: tuple[int, int],
    algorithms: list[str],
    source: str,
    *,
    judged: bool,
) -> str:
    """The scenario, as JSON, of one repeat (number from 0, and of how many) of content without alternatives.

    Raises `BadInputError` for what the core would refuse, if it is `judged`.
    """
    try:
        return _core.planned(content, json.dumps(settings), *repeats, algorithms, judged)
    except _core.InputError as error:
        raise refused(error, source) from None


def draws(run: PlannedRun) -> bool:
    """True if another seed may give another recording: a kernel has randomness of its own."""
    return run.engine != engines.DEFAULT or _core.draws(run.text or json.dumps(run.scenario))


def complete(scenario: Json) -> Json:
    """The scenario with every default written out."""
    filled: Json = json.loads(_core.complete(json.dumps(scenario)))
    return filled


# --- alternatives -----------------------------------------------------------------------------


def _variants(experiment: Experiment, source: str, repeats: int) -> Iterator[tuple[Json, str]]:
    """Each combination: what was chosen, and the content, as JSON, with what its files hold."""
    try:
        variants = _core.Variants(as_json(experiment.content()))
    except _core.InputError as error:
        raise refused(error, source) from None
    if (count := len(variants) * repeats) > RUNS_MAX:
        combinations = f"{len(variants)} combinations, {repeats} times each, are {count}"
        field = "repeat" if repeats > len(variants) else "vary"
        raise BadInputError(field, Raw(f"{count} runs"), f"at most {RUNS_MAX} ({combinations})", source)
    for number in range(len(variants)):
        try:
            settings, content = map(json.loads, variants[number])
        except _core.InputError as error:
            raise refused(error, source) from None
        yield settings, core_content(content, source)


def core_content(content: Json, source: str) -> str:
    """Content as the core takes it: JSON, with what the files hold that it names. Raises `BadInputError`."""
    try:
        return as_json(files.read_in(files.located(content, Path(source).parent)))
    except BadInputError as error:
        raise error.at(source) from None


def varied(table: Mapping[str, Any], field: str, source: str) -> dict[str, list[Any]]:
    """Dotted path → its values; raises `BadInputError` where there is no list of them."""
    try:
        values: dict[str, list[Any]] = json.loads(_core.varied(as_json(table), field))
    except _core.InputError as error:
        raise refused(error, source) from None
    return values


def flat(table: Mapping[str, Any]) -> Json:
    """Flattens tables to dotted path → leaf value: TOML makes tables of `flows.cc = [...]`."""
    values: Json = json.loads(_core.flat(as_json(table)))
    return values


path_parts = _core.path_parts


def assign(content: Mapping[str, Any], assignments: Iterable[tuple[str, Any]], source: str) -> Json:
    """The content with the fields at these dotted paths set.

    A list without an index means each of its entries. Raises `BadInputError`.
    """
    try:
        changed: Json = json.loads(_core.assign(as_json(content), as_json(list(assignments))))
    except _core.InputError as error:
        raise refused(error, source) from None
    return changed
