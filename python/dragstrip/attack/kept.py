"""Kept finds as regression tests: run again, and compared with the figures that were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dragstrip.attack.finds import CLAIM, WORKERS_MAX
from dragstrip.engines import named
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.types import Claim, Experiment
from dragstrip.io.progress import progress
from dragstrip.pool import worker_count
from dragstrip.results import claims
from dragstrip.results.measures import Measured

ALLOWED = 0.05
"""Share by which a figure may be worse than recorded."""
LONGER_IS_WORSE = ("stall_s_longest",)
"""Measures of which more is worse; of all others less is."""
VERSION = 1


def check(folder: Path, workers: int | None = None, quiet: bool = False) -> dict[str, Any]:
    """Run the finds of a folder again and return each with its verdict: `worse`, `same` or `better`.

    Raises `BadInputError` for a folder without finds, and for a file that is none.
    """
    found = [(file, *_read(file)) for file in sorted(folder.glob("*.toml"))] if folder.is_dir() else []
    if not found:
        expected = "a folder with finds (dragstrip attack ALGORITHM --out FOLDER)"
        raise BadInputError("--check", str(folder), expected, "command line")
    with progress(f"running {len(found)} finds ...", quiet):
        threads = ThreadPoolExecutor(worker_count(workers, min(len(found), WORKERS_MAX)))
        try:
            made = list(threads.map(lambda it: _figure(it[1], it[2], it[0]), found))
        finally:
            threads.shutdown(cancel_futures=True)
    told = [_told(file, claim, figure) for (file, _, claim), figure in zip(found, made, strict=True)]
    return {"version": VERSION, "allowed": ALLOWED, "finds": told}


def _read(file: Path) -> tuple[Experiment, Claim]:
    experiment = Experiment.read(file)
    claim = next((claim for claim in experiment.claims if claim.id == CLAIM), None)
    if claim is None or claim.value is None:
        expected = f'a claim with id = "{CLAIM}" and a value, as `dragstrip attack` writes it'
        raise BadInputError("claims", None, expected, str(file))
    claims.check(experiment, expand(experiment, str(file)), str(file))
    return experiment, claim


def _figure(experiment: Experiment, claim: Claim, file: Path) -> float | None:
    """Return what a find's claim measures now, in its unit."""
    finished = [_finished(experiment, run) for run in expand(experiment, str(file))]
    graded = claims.grade(claim, finished)
    return None if graded["measured"] is None else float(graded["measured"])


def _finished(experiment: Experiment, run: PlannedRun) -> claims.Finished:
    engine = named(run.engine)
    return claims.Finished(run, Measured(engine.run(run.scenario, experiment.options_of(run.engine))))


def _told(file: Path, claim: Claim, figure: float | None) -> dict[str, Any]:
    return {
        "name": file.stem,
        "metric": claim.metric,
        "unit": claim.unit,
        "recorded": claim.value,
        "figure": figure,
        "verdict": verdict(claim.metric, claim.value or 0.0, figure),
    }


def verdict(metric: str, recorded: float, figure: float | None) -> str:
    """Return whether a figure is `worse` or `better` than recorded by more than 5 %, else `same`."""
    if figure is None:
        return "worse"
    sign = -1.0 if metric in LONGER_IS_WORSE else 1.0
    gained = sign * (figure - recorded)
    slack = ALLOWED * abs(recorded)
    return "worse" if gained < -slack else "better" if gained > slack else "same"


def is_worse(finds: Sequence[dict[str, Any]]) -> bool:
    """Return whether any find is worse than recorded."""
    return any(find["verdict"] == "worse" for find in finds)
