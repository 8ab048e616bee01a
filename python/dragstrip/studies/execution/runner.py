"""Runs a whole experiment: check everything, run, measure, grade, write.

The output folder appears with a file `PARTIAL` in it, and every recording is moved into it by one rename. The
marker is removed when the result is written. Bad input writes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip import _core, engines
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError, DragstripError, note
from dragstrip.experiment.expand import PlannedRun, draws, expand
from dragstrip.experiment.types import Experiment
from dragstrip.io import checksums
from dragstrip.io.files import (
    NotWrittenError,
    claimed_folder,
    expect_name,
    is_held,
    only_one,
    parents_of,
    remove_drafts,
    remove_empty,
    write_json,
    writing,
)
from dragstrip.model.scenario.memory import release_memory
from dragstrip.report.paper import NO_FIGURES, Paper
from dragstrip.runs import UNLIMITED, Limits, Outcome, Task, Watcher, in_this_process, raise_failure, run_all
from dragstrip.studies.execution import counterfactual

if TYPE_CHECKING:
    from markupsafe import Markup

    from dragstrip.model.recording import Recording
    from dragstrip.report.load import Bundle
    from dragstrip.results.ablations import AblationRuns
    from dragstrip.results.claims import Finished

PARTIAL = "PARTIAL"
"""The marker file of an output folder that is being written or whose run was interrupted."""


@dataclass(frozen=True)
class Plan:
    """An experiment that has been checked and expanded and can run."""

    experiment: Experiment
    runs: list[PlannedRun]
    source: str = ""
    ablations: list[AblationRuns] = field(default_factory=list)
    capture: CaptureRequest | None = None
    """The packet capture of its runs; runs of ablations are not captured."""

    @cached_property
    def jobs(self) -> list[Job]:
        """Each run with its recording's folder; a run that also occurs in an ablation is made once."""
        jobs = [Job(run, f"runs/{run.slug}") for run in self.runs]
        simulated = {job.simulated for job in jobs}
        for at, part in enumerate(self.ablations):
            for run in part.runs:
                job = Job(run, f"ablations/{at:02d}-{run.slug}")
                if job.simulated not in simulated:
                    simulated.add(job.simulated)
                    jobs.append(job)
        return jobs


@dataclass(frozen=True)
class Job:
    """A run, and the folder of its recording, relative to the output folder."""

    run: PlannedRun
    folder: str

    @cached_property
    def simulated(self) -> str:
        """A hash that is equal for runs that differ in nothing but their names."""
        # The core writes the name first, then the seed; a quote within the name is escaped.
        name, _, rest = self.run.text.partition(',"seed":')
        assert name.startswith('{"name":'), name
        text = f"{self.run.engine} {rest}"
        return hashlib.sha256(text.encode()).hexdigest()  # a hundred thousand hosts are 70 MB of text


def plan(experiment: Experiment, source: str = "") -> Plan:
    """Check everything that can be checked before anything is written; raises `BadInputError`.

    Repeats that could only be copies of the first are left out, with a `Note`.
    """
    original, runs = experiment, expand(experiment, source)
    if _copies(experiment, runs):
        name = f"{experiment.name}: " if source else ""
        note(f"{name}nothing here is random: every run is made once, not {experiment.repeat} times")
        experiment = experiment.changed(repeat=1)
        runs = expand(experiment, source)
    if not (experiment.claims or experiment.flow_tables or experiment.ablations):
        return Plan(experiment, runs, source)
    from dragstrip.results.ablations import ablated  # what measures loads Arrow: not before it is needed
    from dragstrip.results.claims import check

    check(experiment, runs, source)
    parts = list(ablated(experiment.changed(engine=experiment.engines[0]), source))
    if original is not experiment and any(draws(run) for part in parts for run in part.runs):
        parts = list(ablated(original, source))  # what an ablation changes may be random
    return Plan(experiment, runs, source, parts)


def _copies(experiment: Experiment, runs: Sequence[PlannedRun]) -> bool:
    """Return whether all repeats would be identical and nothing selects one of them by its number."""
    if experiment.repeat == 1 or any(draws(run) for run in runs if run.repeat == 0):
        return False
    claimed = [part for claim in experiment.claims for part in (claim.where, claim.over or {}, {claim.by: 0})]
    tables = [table.where for table in experiment.flow_tables]
    return not any("repeat" in selector for selector in (*claimed, *tables))


def execute(
    planned: Plan,
    out: Path,
    *,
    workers: int | None = None,
    watcher: Watcher | None = None,
    command: str = "",
    report: bool = True,
    figures: Paper = NO_FIGURES,
    limits: Limits = UNLIMITED,
    measured: Callable[[dict[str, Any]], object] = lambda _: None,
    counterfactuals: bool = False,
) -> dict[str, Any]:
    """Run a plan into the folder `out` and return the result document (docs/reference/result-json.md).

    `figures` for papers are written with the report. `limits` apply to each run; a run that reaches one
    fails. `measured` is called with the document before the report is written. With `counterfactuals`, cheap
    runs are made again without what explains them (`studies/execution/counterfactual.py`).

    Raises `BadInputError` for a
    folder that cannot be used and `DragstripError` if every run failed.
    """
    settings: dict[str, Any] = {"workers": workers, "watcher": watcher, "command": command}
    settings |= {
        "limits": limits,
        "report": report,
        "figures": figures,
        "measured": lambda _, document: measured(document),
        "counterfactuals": counterfactuals,
    }
    return execute_all({"": planned}, out, **settings)[""]


def execute_all(
    plans: Mapping[str, Plan],
    out: Path,
    *,
    workers: int | None = None,
    watcher: Watcher | None = None,
    command: str = "",
    report: bool = True,
    figures: Paper = NO_FIGURES,
    limits: Limits = UNLIMITED,
    measured: Callable[[str, dict[str, Any]], object] = lambda *_: None,
    counterfactuals: bool = False,
) -> dict[str, dict[str, Any]]:
    """Run all plans at once, each into the folder of its name below `out`; return result documents by name.

    Options and errors are those of `execute`.
    """
    from dragstrip.model.recording import core_build  # with Arrow: not for a command that is refused

    watcher = watcher or Watcher()
    tasks = [task for name, planned in plans.items() for task in tasks_of(planned, out / name, command)]
    prepare(tasks, watcher)
    recordings: dict[Path | None, Recording] = {}
    if report and in_this_process(tasks, limits):
        tasks = [replace(task, keep=partial(recordings.__setitem__, task.folder)) for task in tasks]
    with claimed(out) as made_here:
        for note in core_build.notes():
            watcher.note(note)
        release_memory()  # what checking took: a hundred thousand hosts are hundreds of MB
        try:
            outcomes = run_all(tasks, workers, watcher, limits)
            _remove_partial(out)
            expect_success(outcomes)
            explain = partial(counterfactual.add, workers=workers, limits=limits) if counterfactuals else None
            documents, undrawn = _conclude(
                plans, outcomes, out, watcher, report, figures, measured, explain, recordings
            )
        except KeyboardInterrupt:
            clean_up(out, made_here)
            raise
        except BaseException:
            # Recordings of slow engines stay, marked; others are soon made again and must not fill the disk.
            clean_up(out, made_here, finished=any(engines.named(task.engine).slow for task in tasks))
            raise
        (out / PARTIAL).unlink()
    if undrawn is not None:
        raise NotDrawnError(undrawn, documents)
    return documents


class NotDrawnError(DragstripError):
    """A report could not be written; all runs were made, measured and written."""

    def __init__(self, reason: NotWrittenError, documents: dict[str, dict[str, Any]]) -> None:
        super().__init__(f"{reason} (the result is kept; `dragstrip report` draws it)")
        self.documents = documents


def expect_success(outcomes: Sequence[Outcome]) -> None:
    """Raise the first run's error if no run succeeded, and the errors of `raise_failure`."""
    raise_failure(outcomes)
    if all(outcome.summary is None for outcome in outcomes):
        first = outcomes[0].failure
        raise DragstripError(first if len(outcomes) == 1 else f"every run failed; the first one: {first}")


def write_documents(
    folder: Path, experiment: Mapping[str, Any], document: Mapping[str, Any], extra_files: Sequence[str] = ()
) -> None:
    """Write a result's documents and the checksums of these and of other files in the folder."""
    write_json(folder / "experiment.json", experiment)
    write_json(folder / "result.json", document)
    checksums.write(folder, ("experiment.json", "result.json", *extra_files))


def _conclude(
    plans: Mapping[str, Plan],
    outcomes: Sequence[Outcome],
    out: Path,
    watcher: Watcher,
    report: bool,
    figures: Paper,
    measured: Callable[[str, dict[str, Any]], object],
    explain: Callable[..., list[str]] | None,
    recordings: Mapping[Path | None, Recording],
) -> tuple[dict[str, dict[str, Any]], NotWrittenError | None]:
    """Measure and write.

    Returns the documents, and the error that kept the first report from being written.
    """
    documents = {}
    undrawn: NotWrittenError | None = None
    remaining = iter(outcomes)
    for name, planned in plans.items():
        watcher.concluding(f"measuring {name}".strip())
        folder = out / name
        ended = [(job, next(remaining)) for job in planned.jobs]
        document = document_of(planned, ended, partial(_recording, folder))
        if len(planned.experiment.engines) > 1:
            from dragstrip.studies.validation import both, validate

            document["agreement"] = validate.document(both.of_result(document, folder))
        extra_files = explain(document, planned.experiment, planned.runs, folder) if explain else []
        write_documents(folder, planned.experiment.content(), document, extra_files)
        measured(name, document)
        if report and document["runs"] and undrawn is None:
            watcher.concluding(f"drawing the report {name}".strip())
            release_memory()
            try:
                write_report(folder, figures, _bundle(folder, planned, document, recordings))
            except NotWrittenError as error:
                undrawn = error
        documents[name] = document
    return documents, undrawn


def _bundle(
    folder: Path, planned: Plan, document: dict[str, Any], recordings: Mapping[Path | None, Recording]
) -> Bundle:
    """Return what was just written without reading it again: scenarios, and the `recordings` in memory.

    Reading takes seconds for a hundred thousand flows.
    """
    from dragstrip.report.load import FreshResult, load

    runs_by_recording = {f"runs/{run.slug}": run for run in planned.runs}
    names = [line["recording"] for line in document["runs"]]
    facts = {name: runs_by_recording[name].facts for name in names}
    in_memory = {name: recordings[folder / name] for name in names if folder / name in recordings}
    return load(folder, FreshResult(document, facts, in_memory))


def prepare(tasks: Sequence[Task], watcher: Watcher) -> None:
    """Prepare what the runs of each engine share.

    Raises `BadInputError` if an engine refuses all its runs, before it compiles or starts anything, or if the
    machine lacks something that a run needs, and `DragstripError` if an engine cannot run here.
    """
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(repr((task.engine, dict(task.options))), []).append(task)
    for members in groups.values():
        engine, options = engines.named(members[0].engine), members[0].options
        reasons = []
        for task in members:
            refused = engine.refusals(task.scenario, options)
            if not refused:
                break
            reasons.append(refused[0])
        else:
            raise reasons[0].error(f"engine {engine.name}")
        engine.prepare(options, watcher.preparing)
        engine.expect([task.scenario for task in members], options)


@contextlib.contextmanager
def claimed(out: Path) -> Iterator[bool]:
    """Claim the output folder: a new one (yields True), an empty one, or one with no recordings left.

    `PARTIAL` in it is locked meanwhile. Raises `BadInputError` for any other folder.
    """
    with contextlib.ExitStack() as locks:
        try:
            made_here = not out.exists()
            _expect_free(out)
            locks.enter_context(parents_of(out))
            out.mkdir(exist_ok=True)
        except NotWrittenError as error:
            raise _unwritable(out, error.error) from None
        except OSError as error:
            raise _unwritable(out, error) from None
        try:
            locks.enter_context(only_one(out / PARTIAL, "run"))
            with writing(out / PARTIAL):
                (out / PARTIAL).write_text("This folder is being written, or its run was interrupted.\n")
        except NotWrittenError:
            clean_up(out, made_here)
            raise
        yield made_here


def _expect_free(out: Path) -> None:
    expect_name("--out", out)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    expected = "a folder that is empty or does not exist yet"
    if (out / PARTIAL).exists():
        if is_held(out / PARTIAL):
            expected += "; another run is writing there"
        elif _cleared_alone(out):
            return
        else:
            expected += (
                "; an interrupted run is there, which cannot be resumed: remove it or name another folder"
            )
    raise BadInputError("--out", str(out), expected)


def _cleared(out: Path) -> bool:
    """Remove an interrupted run's drafts, and everything if no recording is left.

    Return whether that was so.
    """
    for folder in [out, *(entry for entry in out.rglob("*") if entry.is_dir())]:
        remove_drafts(folder)
    if any(entry for entry in out.rglob("*") if not entry.is_dir() and entry != out / PARTIAL):
        return False
    for entry in out.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
    (out / PARTIAL).unlink(missing_ok=True)
    return True


def _cleared_alone(out: Path) -> bool:
    """Do the same while no other process can claim the folder."""
    with only_one(out / PARTIAL, "run"):
        return _cleared(out)


@contextlib.contextmanager
def next_folder(parent: Path, stem: str) -> Iterator[Path]:
    """Make `parent/stem-001`, or the first free number; two processes never get the same folder.

    The folder is held until the block ends. Folders that killed runs left without a recording are removed
    first.
    """
    with contextlib.ExitStack() as locks:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            for old_folder in parent.glob("*-[0-9][0-9][0-9]"):
                if (old_folder / PARTIAL).exists() and not is_held(old_folder / PARTIAL):
                    _cleared(old_folder)
                remove_empty(old_folder)
            names = (parent / f"{stem}-{number:03d}" for number in itertools.count(1))
            folder = next(folder for folder in names if locks.enter_context(claimed_folder(folder)))
        except OSError as error:
            raise _unwritable(parent, error) from None
        yield folder


def write_report(out: Path, figures: Paper = NO_FIGURES, bundle: Bundle | None = None) -> Path:
    """Write the report of a folder with a result, and its figures for papers; return the report's file.

    `bundle` is the content of the folder, if the caller has read it. Raises `NotWrittenError`.
    """
    from dragstrip.report.write import write_report as write

    try:
        return write(out, figures, _engine_section, bundle)
    except OSError as error:
        raise NotWrittenError(out / "report.html", error) from error


@contextlib.contextmanager
def completed(out: Path) -> Iterator[None]:
    """Complete a run that was killed behind its result: what the block writes is all that is missing.

    Drafts that dead processes left are removed, and `PARTIAL` once the block succeeds. A run that still
    writes there keeps its mark.
    """
    remove_drafts(out)
    yield
    if (out / PARTIAL).exists() and not is_held(out / PARTIAL):
        with writing(out / PARTIAL):
            (out / PARTIAL).unlink()


def _engine_section(bundle: Bundle) -> Markup | None:
    """Return the section that overlays two engines' runs, or None if all runs are of one engine."""
    if len({run.engine for run in bundle.runs}) < 2:
        return None
    from dragstrip.studies.validation import both, page

    document = {"runs": [run.summary for run in bundle.runs], "failed": bundle.failed}
    return page.section(both.of_result(document, bundle.folder))


def tasks_of(planned: Plan, out: Path, command: str) -> list[Task]:
    """Return a plan's tasks, in the order of its jobs; each recording has a folder below `out`."""
    from dragstrip.model.recording import core_build

    options = {name: planned.experiment.options_of(name) for name in planned.experiment.engines}
    return [
        Task(
            job.run.scenario,
            out / job.folder,
            {
                "experiment": planned.experiment.name,
                "settings": job.run.settings,
                "repeat": job.run.repeat,
                "command": command,
                "build": core_build.provenance(),
            },
            job.run.engine,
            options[job.run.engine],
            recalled=len(planned.experiment.engines) > 1,
            capture=_capture(planned, job),
        )
        for job in planned.jobs
    ]


def _capture(planned: Plan, job: Job) -> dict[str, Any] | None:
    if planned.capture is None or not job.folder.startswith("runs/"):
        return None
    return asdict(planned.capture.of(job.run.scenario))


def captured(planned: Plan, request: CaptureRequest | None) -> Plan:
    """Return the plan with the requested captures; raises `BadInputError` if they are impossible."""
    if request is None:
        return planned
    for name in planned.experiment.engines:
        request.check_engine(engines.named(name))
    for run in planned.runs:
        request.of(run.scenario)
    return replace(planned, capture=request)


def _unwritable(folder: Path, error: OSError) -> DragstripError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):  # no other name would help
        return NotWrittenError(folder, error)
    return BadInputError("--out", str(folder), f"a folder that can be written ({error.strerror})")


def clean_up(out: Path, made_here: bool, *, finished: bool = True) -> None:
    """Remove what was written; with `finished`, recordings that are complete stay, marked as partial."""
    _remove_partial(out)
    if finished and any(out.rglob("scenario.json")):
        return
    if made_here:
        shutil.rmtree(out, ignore_errors=True)
        return
    for entry in out.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _remove_partial(out: Path) -> None:
    """Remove the drafts of recordings whose worker was killed."""
    for draft in out.rglob(".*.partial"):
        shutil.rmtree(draft, ignore_errors=True)


OutcomesByRun = Mapping[str, tuple[str, Outcome]]
"""The folder and outcome of each simulated run, by `Job.simulated`."""


RecordingOf = Callable[[str], "Recording"]
"""Gives the recording of a job by its folder."""


def _recording(out: Path, folder: str) -> Recording:
    from dragstrip.model.recording import read

    return read(out / folder)


def document_of(
    planned: Plan, ended: Sequence[tuple[Job, Outcome]], recording_of: RecordingOf
) -> dict[str, Any]:
    """Return the result document of a plan whose jobs have ended (docs/reference/result-json.md).

    Recordings are read where claims or flow tables need them. A comparison of two engines is not part of it.
    """
    outcomes: dict[str, tuple[str, Outcome]] = {}
    lines = []
    failed = []
    for job, outcome in ended:
        # The same run may be there twice (`compare reno reno`), and one of them may have failed.
        if job.simulated not in outcomes or outcomes[job.simulated][1].summary is None:
            outcomes[job.simulated] = job.folder, outcome
        run = job.run
        if outcome.summary is None:
            failed.append({"scenario": run.name, "seed": run.scenario["seed"], "reason": outcome.failure})
        elif job.folder.startswith("runs/"):
            lines.append(
                {
                    "scenario": run.name,
                    "engine": run.engine,
                    "seed": run.scenario["seed"],
                    "recording": f"runs/{run.slug}",
                    **outcome.summary,
                }
            )
    graded = [run for run in planned.runs if run.engine == planned.experiment.engines[0]]
    needed = planned.experiment.claims or planned.experiment.flow_tables
    finished = _finished(graded, outcomes, recording_of) if needed else []
    return {
        "version": _core.__version__,
        "experiment": planned.experiment.name,
        "runs": lines,
        "claims": _claims(planned, finished, outcomes, recording_of),
        "flow_tables": _flow_tables(planned, finished),
        "failed": failed,
    }


def _flow_tables(planned: Plan, finished: Sequence[Finished]) -> list[dict[str, Any]]:
    if not planned.experiment.flow_tables:
        return []
    from dragstrip.results.claims import flow_table

    return [flow_table(table, finished) for table in planned.experiment.flow_tables]


def _finished(
    runs: Sequence[PlannedRun], outcomes: OutcomesByRun, recording_of: RecordingOf
) -> list[Finished]:
    """Return the runs that left a recording."""
    from dragstrip.results.claims import Finished
    from dragstrip.results.measures import Measured

    ended = ((run, *outcomes[Job(run, "").simulated]) for run in runs)
    return [
        Finished(run, Measured(recording_of(folder)))
        for run, folder, outcome in ended
        if outcome.summary is not None
    ]


def _claims(
    planned: Plan, finished: Sequence[Finished], outcomes: OutcomesByRun, recording_of: RecordingOf
) -> list[dict[str, Any]]:
    if not planned.experiment.claims:
        return []
    from dragstrip.results.claims import grade

    graded = {claim.id: grade(claim, finished) for claim in planned.experiment.claims}
    for part in planned.ablations:
        ablation_runs = _finished(part.runs, outcomes, recording_of)
        for claim in part.claims:
            line = grade(claim, ablation_runs)
            ablation = {"about": part.about, "setting": part.setting}
            ablation.update({key: line[key] for key in ("measured", "grade")})
            graded[claim.id].setdefault("ablations", []).append(ablation)
    return list(graded.values())
