"""From a plan to a folder: makes the missing runs in a place, then writes dataset and report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragstrip.engines import named
from dragstrip.errors import DragstripError
from dragstrip.io import files
from dragstrip.model.recording import core_build
from dragstrip.report.paper import NO_FIGURES, Paper
from dragstrip.runs.local import LostPlaceError, Place
from dragstrip.runs.work import OK
from dragstrip.studies.sweep import dataset
from dragstrip.studies.sweep.claim import LOCK, STORE, WHO, claimed, read_description, reported
from dragstrip.studies.sweep.coordinate import Coordinator, missing
from dragstrip.studies.sweep.grading import grade_claims
from dragstrip.studies.sweep.options import Options
from dragstrip.studies.sweep.plan import Index, Sweep
from dragstrip.studies.sweep.progress import SweepProgress, Tally
from dragstrip.studies.sweep.store import Store


def make(
    sweep: Sweep, index: Index, out: Path, options: Options, progress: SweepProgress, place: Place
) -> dict[str, Any]:
    """Make the missing runs in a place, write dataset and report, and return the summary document."""
    with claimed(out, sweep, index, options.shard, options.replace, options.confirm):
        store = Store(out / STORE)
        store.open()
        finished_keys = store.keys([OK] if options.retry_failed else None, store.set_aside)
        numbers, mine = missing(index, finished_keys, options.shard)
        tally = Tally(total=mine, reused=mine - len(numbers))
        del finished_keys
        if numbers:
            recordings = out / "recordings" if options.keep_recordings else None
            if recordings is not None:
                files.make_folder(recordings)
            for note in core_build.notes():
                progress.note(note)
            named(sweep.engine).prepare(sweep.options, progress.note)
            coordinator = Coordinator(sweep, index, store, place, progress, recordings, options.capture)
            try:
                coordinator.work(numbers, tally)
            except LostPlaceError as error:
                raise DragstripError(f"{error}. To resume: {options.command}") from error
        store.compact()
        if tally.interrupted:
            return _summary(sweep, out, tally, None, options)
        with reported(out):
            claims = grade_claims(sweep, index, store) if options.shard[1] == 1 else []
            data = dataset.write(
                sweep, index, store, out / dataset.FOLDER, options.shard, least=mine, claims=claims
            )
            entries = [claim.document() for claim in claims]
            report, ranked = None, None
            if options.shard[1] == 1:
                report, ranked = _report(sweep, out, entries, options.report, options.figures)
        return _summary(sweep, out, tally, data, options, report, ranked, entries)


def _report(
    sweep: Sweep, out: Path, claims: list[dict[str, Any]], draw: bool = True, figures: Paper = NO_FIGURES
) -> tuple[Path | None, dict[str, Any] | None]:
    """Write the page and return it, with who is best on how many paths."""
    from dragstrip.studies.sweep.map import COLUMNS, write_map
    from dragstrip.studies.sweep.stats import judge, ranked

    data = dataset.read(out, COLUMNS)
    findings = judge(sweep, data)
    page = write_map(sweep, out, data, findings, claims, figures) if draw else None
    return page, ranked(findings)


def _summary(
    sweep: Sweep,
    out: Path,
    tally: Tally,
    data: Path | None,
    options: Options,
    report: Path | None = None,
    ranked: dict[str, Any] | None = None,
    claims: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    return {
        "version": sweep.version,
        "experiment": sweep.name,
        "runs": tally.total,
        "reused": tally.reused,
        "made": tally.executed,
        "failed": tally.failed,
        "tried_again": tally.retried,
        "interrupted": tally.interrupted,
        "wall_s": round(tally.wall_s, 3),
        "cpu_s": round(tally.cpu_s, 3),
        "dataset": None if data is None else str(data.parent / "*.parquet"),
        "report": None if report is None else str(report),
        "ranking": ranked,
        "claims": list(claims),
        "resume": options.command or None,
    }


def rewrite_report(folder: Path, figures: Paper = NO_FIGURES) -> Path:
    """Write dataset and report of a sweep's folder again from its store, and return the report.

    With `figures`, pictures and tables for papers are written too.

    Raises `DragstripError` if a part of the store is damaged, or if the existing dataset has more runs of
    this sweep than the store.
    """

    def settled(_alone: bool) -> None:
        """Do nothing, because a report changes no description."""

    with files.shared(folder / LOCK, WHO, settled), reported(folder):
        sweep = read_description(folder)
        index = Index(sweep)
        least = max(1, dataset.runs_in(folder))
        store = Store(folder / STORE)
        claims = grade_claims(sweep, index, store)
        data = dataset.write(sweep, index, store, folder / dataset.FOLDER, least=least, claims=claims)
        report_file, _ = _report(sweep, folder, [claim.document() for claim in claims], figures=figures)
        assert report_file is not None
        if (runs := dataset.runs_in(folder)) < len(index):
            sys.stderr.write(f"warning: {data}: {runs:,} of {len(index):,} runs: the sweep is not finished\n")
    return report_file
