"""From a plan to a folder: what is missing is made in a place, dataset and report are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragstrip import files
from dragstrip.engines import named
from dragstrip.errors import BadInputError
from dragstrip.files import read_json
from dragstrip.pool.local import Place
from dragstrip.pool.work import OK
from dragstrip.sweep import dataset
from dragstrip.sweep.command import DESCRIPTION, STORE, Options
from dragstrip.sweep.coordinate import Coordinator, missing
from dragstrip.sweep.plan import Index, Sweep
from dragstrip.sweep.progress import Progress, Tally
from dragstrip.sweep.store import Store


def make(
    sweep: Sweep, index: Index, out: Path, options: Options, progress: Progress, place: Place
) -> dict[str, Any]:
    """Makes what is missing in a place, writes dataset and report; gives the summary document."""
    _claim(out, sweep)
    with files.only_one(out / f".lock-{options.shard[0]}-of-{options.shard[1]}", "sweep"):
        store = Store(out / STORE)
        store.open()
        done = store.keys([OK] if options.retry_failed else None)
        numbers, mine = missing(index, done, options.shard)
        tally = Tally(total=mine, reused=mine - len(numbers))
        del done
        if numbers:
            recordings = out / "recordings" if options.keep_recordings else None
            if recordings is not None:
                files.make_folder(recordings)
            named(sweep.engine).prepare({})
            Coordinator(sweep, index, store, place, progress, recordings).work(numbers, tally)
        store.compact()
        if tally.interrupted:
            return _summary(sweep, out, tally, None, options)
        data = dataset.write(sweep, index, store, out / dataset.FOLDER, options.shard)
        report = _report(sweep, out) if options.report and options.shard[1] == 1 else None
        return _summary(sweep, out, tally, data, options, report)


def _claim(out: Path, sweep: Sweep) -> None:
    """Takes the folder: a new or empty one, or that of an earlier sweep."""
    if out.exists() and not out.is_dir():
        raise BadInputError("--out", str(out), "a folder", "command line")
    files.remove_drafts(out)  # all that is there if a sweep was killed at once
    known = (out / DESCRIPTION).exists() or (out / STORE).exists()
    if out.exists() and not known and any(out.iterdir()):
        raise BadInputError(
            "--out", str(out), "a folder that is empty, does not exist yet, or holds a sweep", "command line"
        )
    files.make_folder(out)
    files.write_json(out / DESCRIPTION, sweep.document())


def _report(sweep: Sweep, out: Path) -> Path | None:
    from dragstrip.sweep.map import write_map

    return write_map(sweep, out)


def _summary(
    sweep: Sweep,
    out: Path,
    tally: Tally,
    data: Path | None,
    options: Options,
    report: Path | None = None,
) -> dict[str, Any]:
    return {
        "version": sweep.version,
        "experiment": sweep.name,
        "runs": tally.total,
        "reused": tally.reused,
        "made": tally.made,
        "failed": tally.failed,
        "tried_again": tally.retried,
        "interrupted": tally.interrupted,
        "wall_s": round(tally.wall_s, 3),
        "cpu_s": round(tally.cpu_s, 3),
        "dataset": None if data is None else str(data.parent / "*.parquet"),
        "report": None if report is None else str(report),
        "resume": options.command or None,
    }


def rewrite_report(folder: Path) -> Path:
    """Writes dataset and report of a sweep's folder again, from what its store has."""
    sweep = Sweep.read(read_json(folder / DESCRIPTION), str(folder / DESCRIPTION))
    dataset.write(sweep, Index(sweep), Store(folder / STORE), folder / dataset.FOLDER)
    written = _report(sweep, folder)
    assert written is not None
    return written
