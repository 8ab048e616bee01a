"""Experiments on two engines side by side, for `dragstrip validate EXPERIMENT...`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from dragstrip import engines
from dragstrip.errors import BadInputError
from dragstrip.experiment import catalogue
from dragstrip.experiment.expand import PlannedRun, assign
from dragstrip.experiment.types import Experiment, rebuilt
from dragstrip.io.files import scratch, write_text
from dragstrip.runs import UNLIMITED, Limits
from dragstrip.runs.progress import watching
from dragstrip.studies.execution.runner import Plan, execute_all, plan
from dragstrip.studies.validation import both, real_time
from dragstrip.studies.validation.conditions import conditions
from dragstrip.studies.validation.document import definitions, every_case, standings
from dragstrip.studies.validation.grid import Grid
from dragstrip.studies.validation.validate import Agreement

MODEL, REFERENCE = engines.parse(engines.PAIR)
REPEATS = 10
"""Seeds run on the kernel where netem impairs at random; the simulator is then asked for more (both.py)."""


@dataclass(frozen=True)
class Selection:
    """Experiments as a command line names and changes them."""

    experiments: list[str]
    only: str | None
    settings: list[str]
    """Settings in the form PATH=VALUE."""
    repeat: int | None
    duration: str | None
    load: list[str]
    """BPF programs with congestion controls, which are loaded into the kernel."""
    engine: str = REFERENCE
    """The reference engine."""
    against: tuple[str, ...] = (MODEL,)
    """Engines compared with the reference; the first runs beside it, the others when it has finished."""
    strict: bool = False
    """True when a run that the machine slowed down counts as failed."""

    @property
    def pair(self) -> str:
        """The engines of the runs; raises `BadInputError` if they are no pair."""
        for engine_name in self.against:
            engines.parse(f"{engine_name},{self.engine}")
        return f"{self.against[0]},{self.engine}"


def plans(selection: Selection) -> list[Plan]:
    """Return the plans of what is to run; raises `BadInputError` before anything does."""
    selected_plans = []
    for name in selection.experiments:
        for member in catalogue.members(name) or [name]:
            experiment, source = catalogue.load(member, selection.pair, selection.load or None)
            planned = plan(_changed(experiment, selection), source)
            runs = [
                run
                for run in planned.runs
                if _matches(experiment, run.name, selection.only)
                and _needed(run, selection.repeat, planned.experiment.engines[0])
            ]
            if runs:
                selected_plans.append(replace(planned, runs=runs))
    if not selected_plans:
        raise BadInputError(
            "--only", selection.only, "the name of a run, or a part or a pattern of it", "command line"
        )
    return selected_plans


def _changed(experiment: Experiment, selection: Selection) -> Experiment:
    content = experiment.content()
    changed: dict[str, object] = {"engine": selection.pair}
    if selection.strict:
        changed["engine_options"] = {**experiment.engine_options, "strict": "yes"}
    for part in ("claims", "ablations", "flow_tables"):
        content.pop(part, None)
    content["repeat"] = selection.repeat or REPEATS
    if selection.load:
        content["load"] = selection.load
    if selection.duration is not None:
        changed["duration"] = selection.duration
    for setting in selection.settings:
        path, equals, value = setting.partition("=")
        if not (path.strip() and equals and value.strip()):
            raise BadInputError("--set", setting, "PATH=VALUE, such as hosts.*.tick_hz=250", "command line")
        content = assign(content, [(path.strip(), _value(value.strip()))], "command line")
    return rebuilt(content, changed)[0]


def _needed(run: PlannedRun, repeat: int | None, model: str) -> bool:
    """Return whether a repeat is needed.

    With random impairments ten seeds are run on both engines, else one, and one more on the reference.
    """
    if repeat is None and conditions(run.scenario).stochastic:
        return run.repeat < REPEATS
    return run.repeat < (repeat or 1) + (run.engine != model)


def _value(text: str) -> object:
    """Parse a value as in a TOML file; a word without quotes is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _matches(experiment: Experiment, run: str, only: str | None) -> bool:
    if only is None:
        return True
    pattern = only if set("*?[") & set(only) else f"*{only}*"
    return fnmatchcase(f"{experiment.name}: {run}", pattern)


def run(
    planned: Sequence[Plan],
    out: Path | None,
    workers: int | None,
    command: str,
    *,
    nominal: bool,
    spread: bool,
    quiet: bool,
    limits: Limits = UNLIMITED,
    other_engines: Sequence[str] = (),
) -> dict[str, Agreement]:
    """Run everything on both engines and return the agreement of the reference with each engine, by name.

    The recordings and a report of each experiment stay in `out`, if given. A run that reaches its `limits` is
    left out, with the reason. `nominal` leaves the kernel hosts' own processing time out of the simulator's
    path; `spread` also measures the simulator against itself. The engines are the model that ran beside the
    reference and the `other_engines`.
    """
    by_name = {entry.experiment.name: entry for entry in planned}
    runs = [job.run for entry in planned for job in entry.jobs]
    with _place(out) as folder, watching(runs, quiet=quiet) as watcher:
        documents = execute_all(
            by_name,
            folder,
            workers=workers,
            watcher=watcher,
            command=command,
            report=out is not None,
            limits=limits,
        )
        watcher.concluding("comparing")
        model = planned[0].experiment.engines[0]
        agreements: dict[str, list[Agreement]] = {engine: [] for engine in (model, *other_engines)}
        for name, document in documents.items():
            prefix = f"{name}: " if len(planned) > 1 else ""
            if nominal:
                agreements[model].append(both.of_result(document, folder / name, prefix))
            else:
                agreements[model].append(both.with_hosts(document, folder / name, prefix, spread))
            for engine in other_engines:
                agreements[engine].append(both.with_model(document, folder / name, prefix, engine))
    return {engine: _together(parts) for engine, parts in agreements.items()}


def _together(parts: Sequence[Agreement]) -> Agreement:
    failed = {name: reason for part in parts for name, reason in part.failed.items()}
    return Agreement(both.worst_first(case for part in parts for case in part.cases), failed)


@contextmanager
def _place(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with scratch("validate") as folder:
        yield folder


def grid(selection: Selection, agreement: Agreement) -> Grid:
    """Return what the page needs to know of a grid, for experiments."""
    title = f"Simulator and kernel: {', '.join(selection.experiments)}"
    return Grid(title=title, kernel=", ".join(agreement.kernels), recordings="")


def in_real_time(selection: Selection) -> bool:
    """Return whether the reference runs in real time, so that no two runs are the same."""
    return engines.named(selection.engine).real_time


def write_docs(
    agreements: Mapping[str, Agreement],
    selection: Selection,
    planned: Sequence[Plan],
    command: str,
    file: Path,
) -> None:
    """Write a page for docs/: what agreement is reached, every case, and what was left out."""
    if in_real_time(selection):
        names = [entry.experiment.name for entry in planned]
        write_text(file, "\n".join(real_time.page(agreements, selection.engine, names, command)) + "\n")
        return
    agreement = next(iter(agreements.values()))
    seconds = sorted({run.scenario["duration_ns"] / 1e9 for entry in planned for run in entry.runs})
    lasts = f"{seconds[0]:g}" + (f" to {seconds[-1]:g}" if len(seconds) > 1 else "")
    lines = [
        f"<!-- Written by `{command}`: do not edit. -->",
        f"# The simulator beside the kernel: {', '.join(selection.experiments)}\n",
        f"Every run of {', '.join(entry.experiment.name for entry in planned)}, {lasts} s each, in the "
        f"simulator and on {', '.join(agreement.kernels)}. Written by\n",
        f"    {command}\n",
        *standings(agreement),
        *definitions(),
        *every_case(agreement),
    ]
    if agreement.failed:
        lines += ["", "## Left out\n", "| run | why |", "|---|---|"]
        lines += [f"| {name} | {reason} |" for name, reason in agreement.failed.items()]
    write_text(file, "\n".join(lines) + "\n")
