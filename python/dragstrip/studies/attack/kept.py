"""Kept finds as regression tests: run again, and compared with the figures that were recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip.display.progress import progress
from dragstrip.engines import named
from dragstrip.engines.contract import Progress
from dragstrip.errors import BadInputError
from dragstrip.experiment import permissions
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.types import Claim, Experiment
from dragstrip.io import untrusted
from dragstrip.io.shape import NUMBER, TEXT, expect
from dragstrip.results import claims
from dragstrip.results.measures import Measured
from dragstrip.runs import run_parallel, worker_count
from dragstrip.studies.attack.finds import CLAIM, DOCUMENT, WORKERS_MAX

ALLOWED = 0.05
"""Share by which a figure may be worse than recorded."""
LONGER_IS_WORSE = ("stall_s_longest",)
"""Measures of which more is worse; of all others less is."""
SAME = 1e-6
"""Share by which a claim may differ from the figure in `attack.json`: a file has fewer digits."""
VERSION = 1


def check(folder: Path, workers: int | None = None, quiet: bool = False) -> dict[str, Any]:
    """Run the finds of a folder again and return each with its verdict: `worse`, `same` or `better`.

    Finds run on the simulator, whatever their files say. Raises `BadInputError` for a folder without finds,
    for a file that is none, and where the folder's `attack.json` has another figure for a find or a find
    more. A claim of 0 that no `attack.json` confirms is refused: nothing is worse.
    """
    stored_finds = [(file, *_read(file)) for file in sorted(folder.glob("*.toml"))] if folder.is_dir() else []
    if not stored_finds:
        expected = "a folder with finds (dragstrip attack ALGORITHM --out FOLDER)"
        raise BadInputError("--rerun", str(folder), expected, "command line")
    _expect_recorded(folder / DOCUMENT, {file: claim for file, _, claim in stored_finds})
    with progress(f"running {len(stored_finds)} finds ...", quiet):
        figures = run_parallel(_figure, stored_finds, worker_count(workers, WORKERS_MAX))
    verdicts = [
        _entry(file, claim, figure) for (file, _, claim), figure in zip(stored_finds, figures, strict=True)
    ]
    return {"version": VERSION, "allowed": ALLOWED, "finds": verdicts}


def _read(file: Path) -> tuple[Experiment, Claim]:
    experiment = Experiment.read(file, lambda content: permissions.bound(content, str(file), None, None))
    claim = next((claim for claim in experiment.claims if claim.id == CLAIM), None)
    if claim is None or claim.value is None:
        expected = f'a claim with id = "{CLAIM}" and a value, as `dragstrip attack` writes it'
        raise BadInputError("claims", None, expected, str(file))
    claims.check(experiment, expand(experiment, str(file)), str(file))
    return experiment, claim


def _expect_recorded(document: Path, claims_of: Mapping[Path, Claim]) -> None:
    """Raise `BadInputError` for what would let the check pass whatever the finds do.

    That is a claim weaker than the figure in `attack.json`, where that is beside it, a find of that document
    without a file, and a claim of 0 that the document does not have: no goodput is worse.
    """
    recorded: dict[str, float] = {}
    if document.exists():
        content = untrusted.json_object(document)
        expect(content, {"finds": [{"name": TEXT, "figure": NUMBER}]}, str(document))
        recorded = {find["name"]: find["figure"] for find in content["finds"]}
    for name in sorted(recorded.keys() - {file.stem for file in claims_of}):
        raise BadInputError("finds", name, f"a file {name}.toml beside it", str(document))
    for file, claim in claims_of.items():
        value, figure = claim.value or 0.0, recorded.get(file.stem)
        field = f"claims.{CLAIM}.value"
        sign = _sign(claim.metric)
        if figure is not None and sign * (value - figure) < -SAME * abs(figure):
            expected = f"{figure:g}, as {document.name} has it, or a stricter one"
            raise BadInputError(field, value, expected, str(file))
        if figure is None and value == 0 and sign > 0:
            expected = f"above 0, for nothing is worse; or a {document.name} beside it with this figure"
            raise BadInputError(field, value, expected, str(file))


def _sign(metric: str) -> float:
    """Return 1 for a measure of which less is worse, -1 for one of which more is."""
    return -1.0 if metric in LONGER_IS_WORSE else 1.0


def _figure(stored: tuple[Path, Experiment, Claim], progress: Progress) -> float | None:
    """Return the present figure of a find's claim, in its unit, or None if its runs do not have it."""
    file, experiment, claim = stored
    finished = [_finished(experiment, run, progress) for run in expand(experiment, str(file))]
    graded = claims.grade(claim, finished)
    return None if graded["measured"] is None else float(graded["measured"])


def _finished(experiment: Experiment, run: PlannedRun, progress: Progress) -> claims.Finished:
    recording = named(run.engine).run(run.scenario, experiment.options_of(run.engine), progress)
    return claims.Finished(run, Measured(recording))


def _entry(file: Path, claim: Claim, figure: float | None) -> dict[str, Any]:
    return {
        "name": file.stem,
        "metric": claim.metric,
        "unit": claim.unit,
        "recorded": claim.value,
        "figure": figure,
        "verdict": verdict(claim.metric, claim.value or 0.0, figure),
    }


def verdict(metric: str, recorded: float, figure: float | None) -> str:
    """Return whether a figure is `worse` or `better` than recorded by more than 5 %, else `same`.

    A figure that is still 0, of which nothing is worse, is `worst`: it cannot fail a check.
    """
    if figure is None:
        return "worse"
    sign = _sign(metric)
    if recorded == figure == 0 and sign > 0:
        return "worst"
    gained = sign * (figure - recorded)
    slack = ALLOWED * abs(recorded)
    return "worse" if gained < -slack else "better" if gained > slack else "same"


def is_worse(finds: Sequence[dict[str, Any]]) -> bool:
    """Return whether any find is worse than recorded."""
    return any(find["verdict"] == "worse" for find in finds)
