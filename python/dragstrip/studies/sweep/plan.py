"""Runs of a sweep, and the key of each.

A sweep may have a hundred thousand runs, so it is one description, and each run is computed from its number.
Scenarios exist as text only on their way to a worker, never all at once.

A run's key is the SHA-256 of its scenario (with every default and without its name), engine and version. The
same run is therefore found done, however it was described.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.engines import DEFAULT, options_of
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.comparison import path_tables
from dragstrip.experiment.expand import assign, loaded, planned
from dragstrip.experiment.types import Claim, Experiment, algorithms, rebuilt
from dragstrip.io.shape import SWEEP, expect
from dragstrip.model.scenario.memory import refuse_if_too_large
from dragstrip.model.scenario.paths import packets
from dragstrip.results.claims import requests
from dragstrip.studies.sweep import axes as _axes
from dragstrip.studies.sweep.axes import AGAINST, ALONE, Level, Range, SweepAxis
from dragstrip.studies.sweep.build import run_key
from dragstrip.studies.sweep.build import version as build_version

Json: TypeAlias = dict[str, Any]

RUNS_MAX = 10_000_000
"""Runs of a sweep, at most; their keys alone take 360 MB."""

FORMAT = 1
"""Format of sweep.json and of the tables in the store (docs/how-to/sweeps.md)."""

COMPETITOR = "competitor"
"""Label of the flow that `--competitor` adds."""


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

    number: int
    point: int
    repeat: int
    key: bytes
    text: str
    """The scenario as JSON, as the core takes it."""
    weight: float
    """Estimated cost of the run: the packets that its bottlenecks can carry."""


@dataclass(frozen=True)
class Sweep:
    """The description of a sweep, checked."""

    base: Json
    """The experiment without what varies."""
    axes: list[SweepAxis]
    repeat: int
    seed: int
    engine: str = DEFAULT
    source: str = ""
    name: str = "sweep"
    title: str = ""
    engine_build: str = ""
    """The version of the engine's build; empty means the current one."""
    claims: Sequence[Claim] = ()
    """The claims that every combination is graded by."""

    @cached_property
    def version(self) -> str:
        """The version in every run's key; raises `DragstripError` if the engine is not ready."""
        return self.engine_build or build_version(self.engine, self.options)

    @property
    def options(self) -> Json:
        """The engine's options in the experiment."""
        return options_of(self.engine, self.base.get("engine_options", {}))

    @property
    def points(self) -> int:
        """The number of combinations of levels."""
        count = 1
        for axis in self.axes:
            count *= len(axis.levels)
        return count

    @property
    def runs(self) -> int:
        """The number of runs: every combination with every seed."""
        return self.points * self.repeat

    def levels(self, point: int) -> list[int]:
        """Return the index of a combination's level on each axis; the last axis varies fastest."""
        places = []
        for axis in reversed(self.axes):
            point, place = divmod(point, len(axis.levels))
            places.append(place)
        return places[::-1]

    def settings(self, point: int) -> Json:
        """Return what is shown of a combination, by dotted path."""
        settings: Json = {}
        for axis, place in zip(self.axes, self.levels(point), strict=True):
            level = axis.levels[place]
            if axis.path == "sample":
                settings.update(level.assignments)
            else:
                settings[axis.path] = level.label
        return settings

    def columns(self) -> list[str]:
        """Return the paths that vary, in order."""
        return list(self.settings(0))

    def at(self, point: int, checked: bool = False) -> list[SweepRun]:
        """Return the runs of one combination, which differ in the seed and in the arrivals drawn from it.

        Raises `BadInputError` for a combination that the core refuses, unless it was `checked` before.
        """
        scenario = self.scenario(point, checked)
        filled = scenario.document()
        if not checked:
            refuse_if_too_large(scenario, filled["duration_ns"], self.source)
        weight = packets(filled)
        runs = []
        for repeat in range(self.repeat):
            if repeat and self.draws_arrivals:
                filled = self.scenario(point, checked=True, repeat=repeat).document()
            filled.update(name="", seed=self.seed + repeat)
            text = json.dumps(filled, sort_keys=True, separators=(",", ":"))
            key = run_key(text, self.engine, self.version, self.measured)
            runs.append(SweepRun(point * self.repeat + repeat, point, repeat, key, text, weight))
        return runs

    def run(self, number: int) -> SweepRun:
        """Return one run by its number; raises `BadInputError` as `at` does."""
        point, repeat = divmod(number, self.repeat)
        return self.at(point)[repeat]

    @cached_property
    def measured(self) -> str:
        """Measurements that the claims need of each run, as JSON; empty without claims."""
        return json.dumps(requests(self.claims), sort_keys=True) if self.claims else ""

    @cached_property
    def draws_arrivals(self) -> bool:
        """True when flows may arrive at times drawn from the seed, so that each seed has its own scenario."""
        assignments = (level.assignments for axis in self.axes for level in axis.levels)
        flows = self.base.get("flows", [])
        return any("arrivals" in flow for flow in flows) or any(
            "arrivals" in str(part) for part in assignments
        )

    @cached_property
    def algorithms(self) -> list[str]:
        """The congestion controls that flows may name. Raises `BadInputError`."""
        return algorithms({**self.base, "engine": self.engine})

    def scenario(self, point: int, checked: bool = False, repeat: int = 0) -> _core.Scenario:
        """Return the scenario of a combination, with the first seed or that of a later repeat.

        Raises `BadInputError` for one that the core would refuse, unless it was `checked` before.
        """
        settings = self.settings(point)
        levels = [axis.levels[place] for axis, place in zip(self.axes, self.levels(point), strict=True)]
        content = assign(
            self.base, (item for level in levels for item in level.assignments.items()), self.source
        )
        rival = settings.get(AGAINST, ALONE)
        if rival != ALONE:
            content["flows"] = [*content["flows"], {"cc": rival, "label": COMPETITOR}]
        content["seed"] = self.seed + repeat
        try:
            return planned(loaded(content, self.source), self.algorithms, self.source, judged=not checked)
        except BadInputError as error:
            varied = ", ".join(f"{path} = {value!r}" for path, value in settings.items())
            raise BadInputError(
                error.field, Raw(error.value), f"{error.expected} (where {varied})", self.source
            ) from None

    def document(self) -> Json:
        """Return the content of sweep.json, which suffices to make every run again."""
        return {
            "format": FORMAT,
            "version": self.version,
            "engine": self.engine,
            "name": self.name,
            "title": self.title,
            "seed": self.seed,
            "repeat": self.repeat,
            "experiment": self.base,
            **({"claims": [claim.content() for claim in self.claims]} if self.claims else {}),
            "axes": [
                {
                    "path": axis.path,
                    "levels": [
                        {"label": level.label, "set": dict(level.assignments)} for level in axis.levels
                    ],
                }
                for axis in self.axes
            ],
        }

    @classmethod
    def read(cls, document: Mapping[str, Any], source: str) -> Sweep:
        """Read a sweep from the content of sweep.json; raises `BadInputError`."""
        if document.get("format") != FORMAT:
            raise BadInputError("format", document.get("format"), f"format {FORMAT} of sweep.json", source)
        expect(document, SWEEP, source)
        axes = [
            SweepAxis(axis["path"], tuple(Level(level["label"], level["set"]) for level in axis["levels"]))
            for axis in document["axes"]
        ]
        sweep = cls(
            document["experiment"],
            axes,
            document["repeat"],
            document["seed"],
            document["engine"],
            source,
            document["name"],
            document["title"],
            document["version"],
            _stored_claims(document, source),
        )
        if not 1 <= sweep.runs <= RUNS_MAX:
            raise BadInputError("axes", Raw(f"{sweep.runs} runs"), f"1 to {RUNS_MAX} of them", source)
        return sweep


def _stored_claims(document: Mapping[str, Any], source: str) -> Sequence[Claim]:
    """Return the claims in a sweep.json; raises `BadInputError`."""
    if "claims" not in document:
        return ()
    return Experiment.build({**document["experiment"], "claims": document["claims"]}, source).claims


class Index:
    """Keys and weights of all runs, in 36 bytes each: 32 for a key and 4 for a weight."""

    def __init__(self, sweep: Sweep) -> None:
        self.keys = bytearray()
        self.weights = array("f")
        for point in range(sweep.points):
            for run in sweep.at(point):
                self.keys += run.key
                self.weights.append(run.weight)

    def __len__(self) -> int:
        return len(self.weights)

    def key(self, number: int) -> bytes:
        """Return the key of a run."""
        return bytes(self.keys[32 * number : 32 * number + 32])

    def all_keys(self) -> Iterator[bytes]:
        """Yield every run's key, in order."""
        return (self.key(number) for number in range(len(self)))


def describe(
    experiment: Experiment,
    source: str,
    *,
    path: str | None = None,
    vary: Sequence[str] = (),
    repeat: int | None = None,
    seed: int | None = None,
    duration: str | None = None,
    sample: str | None = None,
    competitor: str | None = None,
    engine: str | None = None,
    engine_options: Mapping[str, Any] | None = None,
    programs: Mapping[str, str] | None = None,
) -> Sweep:
    """Return the sweep that an experiment and the command line describe; raises `BadInputError`.

    `path` is a built-in or a saved path, which replaces the experiment's own.
    """
    if repeat is not None and (isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1):
        raise BadInputError("--repeat", repeat, "a whole number from 1", "command line")
    changed: Json = {} if engine is None else {"engine": engine}
    if engine_options:
        changed["engine_options"] = {**experiment.engine_options, **engine_options}
    if programs:
        changed["programs"] = {**experiment.programs, **programs}
    if path is not None:
        changed |= _on_path(experiment, path, source)
    if changed:
        experiment, _ = rebuilt(experiment.content(), changed)
    if len(experiment.engines) > 1:
        raise BadInputError("engine", experiment.engine, "one engine for a sweep", source)
    if experiment.load:
        raise BadInputError("load", ", ".join(experiment.load), "none: sweeps load no algorithms yet", source)
    base = experiment.content()
    for part in ("vary", "alternatives", "claims", "repeat", "seed", "description", "source"):
        base.pop(part, None)
    if duration is not None:
        base["duration"] = duration
    by_path: dict[str, SweepAxis | Range] = {
        axis.path: axis for axis in _axes.of_experiment(experiment, source)
    }
    by_path.update(_typed(vary))
    for alias in ("seed", "repeat"):
        if alias in by_path:
            raise BadInputError(f"vary.{alias}", None, f"is not varied: use --{alias}", source)
    sample_seed = experiment.seed if seed is None else seed
    axes = _axes.sampled(list(by_path.values()), sample, sample_seed)
    if competitor is not None:
        axes.append(_competition(competitor, axes))
    described = Sweep(
        base,
        axes,
        experiment.repeat if repeat is None else repeat,
        sample_seed,
        experiment.engine,
        source,
        experiment.name or Path(source).stem or "sweep",
        experiment.title,
        claims=experiment.claims,
    )
    if described.runs > RUNS_MAX:
        parts = [f"{len(axis.levels):,} of {axis.path}" for axis in axes]
        run_product = " x ".join([*parts, f"{described.repeat:,} seeds"])
        raise BadInputError(
            "--vary", Raw(run_product), f"at most {RUNS_MAX:,} runs in a sweep", "command line"
        )
    return described


def _on_path(experiment: Experiment, name: str, source: str) -> Json:
    """Return the tables by which a named path replaces that of an experiment; raises `BadInputError`."""
    if experiment.links:
        expected = f"an experiment with a path: {source} has nodes and links"
        raise BadInputError("--path", name, expected, "command line")
    settings = [*experiment.vary, *(field for entry in experiment.alternatives for field in entry.set)]
    if "path" in settings:
        expected = f"an experiment with one path: {source} varies it"
        raise BadInputError("--path", name, expected, "command line")
    tables = path_tables(name)
    media = {**experiment.media, **tables.pop("media", {})}
    title = {"title": f"{experiment.title} (on the path {name})"} if experiment.title else {}
    return {**tables, **title, **({"media": media} if media else {})}


def _typed(vary: Sequence[str]) -> Iterator[tuple[str, SweepAxis | Range]]:
    """Yield the axes of the command line; raises `BadInputError` for a field that is varied twice."""
    varied_paths = set()
    for text in vary:
        axis = _axes.parse(text)
        if axis.path in varied_paths:
            expected = f"each field once: {axis.path} is varied by another --vary"
            raise BadInputError("--vary", text, expected, "command line")
        varied_paths.add(axis.path)
        yield axis.path, axis


def _competition(rival: str, axes: Sequence[SweepAxis]) -> SweepAxis:
    """Return the axis that runs everything alone and beside a flow of `rival`.

    Harm is how much the rival's own figures change beside a contender.
    """
    contenders = [level.label for axis in axes if axis.path == "flows.cc" for level in axis.levels]
    if rival not in contenders:
        raise BadInputError(
            "--competitor",
            rival,
            "one of the varied flow.cc, so that its own figures are there to compare with "
            f"(varied: {', '.join(map(str, contenders)) or 'none'})",
            "command line",
        )
    return SweepAxis(AGAINST, tuple(Level(label, {}) for label in (ALONE, rival)))
