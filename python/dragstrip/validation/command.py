"""What `dragstrip validate` does with its options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dragstrip.errors import BadInputError
from dragstrip.validation import bands, console, document, page
from dragstrip.validation.acks import captures, compare
from dragstrip.validation.explain import explain
from dragstrip.validation.grid import Grid, read
from dragstrip.validation.kernel import KernelRun, grouped, load_all
from dragstrip.validation.record import FORM, record
from dragstrip.validation.validate import Agreement, measure, validate


def chosen(grid_file: Path | None, recordings: Path | None, only: str | None) -> tuple[Grid, list[KernelRun]]:
    """The grid and its recordings (those of `recordings` instead, if given)."""
    grid, file = read(grid_file)
    folder = recordings or (file.parent / grid.recordings).resolve()
    return grid, load_all(folder, only)


def explain_one(found: Agreement, name: str) -> None:
    """Says where the one case whose name has this in it parts."""
    fitting = [case for case in found.cases if name in case.name]
    exact = [case for case in fitting if case.name == name] or fitting
    if len(exact) != 1:
        known = ", ".join(case.name for case in fitting or found.cases)
        raise BadInputError("CASE", name, f"one case of {known}", "command line")
    console.show_parting(exact[0].name, explain(exact[0]))


def record_cells(
    cells: list[str], seeds: int, folder: Path, workers: int | None, notify: Callable[[str], object]
) -> None:
    """Records cells by their names."""
    if not cells:
        raise BadInputError("CELL", None, f"is needed: {FORM}", "command line")
    record(cells, seeds, folder, workers, notify)


def explain_case(grid_file: Path | None, recordings: Path | None, name: str, nominal: bool) -> None:
    """Says where the case with this name (or part of it) parts from its recording."""
    _, runs = chosen(grid_file, recordings, name)
    groups = grouped(runs)
    exact = {key: group for key, group in groups.items() if key == name}
    if not exact and len(groups) > 1:
        known = ", ".join(list(groups)[:6])
        raise BadInputError("CASE", name, f"one case; it fits {len(groups)}: {known} ...", "command line")
    for key, group in (exact or groups).items():
        console.show_parting(key, explain(measure(key, group, nominal=nominal)))


def write_docs(
    agreement: Agreement, grid_file: Path | None, runs: list[KernelRun], workers: int | None, file: Path
) -> None:
    """docs/fidelity.md, with the same grid on the path as configured, and the ACK captures, beside it."""
    grid, source = read(grid_file)
    known = {run.name: run for run in runs}
    stored = captures(source.parent / grid.captures) if grid.captures else []
    captured = [(one["case"], compare(one, known[one["case"]])) for one in stored if one["case"] in known]
    document.write(agreement, validate(runs, workers, nominal=True), grid, captured, file)


def write_bands(agreement: Agreement, grid: Grid, file: Path) -> None:
    """The sample's bands."""
    sample = [case for case in agreement.cases if case.name in grid.sample]
    missing = sorted(set(grid.sample) - {case.name for case in sample})
    if missing:
        raise BadInputError("FILE", missing[0], "a case of the recordings", "command line")
    bands.write(sample, file)


def write_page(agreement: Agreement, grid: Grid, out: Path) -> Path:
    """The page with heat maps and traces."""
    return page.write(agreement, grid, out)
