"""The work of `dragstrip validate`, without the parsing of its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragstrip.errors import BadInputError
from dragstrip.validation import bands, console, document, page
from dragstrip.validation.acks import captures, compare
from dragstrip.validation.cells import FORM, held_out
from dragstrip.validation.explain import explain
from dragstrip.validation.grid import Grid, read
from dragstrip.validation.kernel import KernelRun, grouped, load_all
from dragstrip.validation.record import record
from dragstrip.validation.validate import Agreement, measure, validate


@dataclass(frozen=True)
class Stored:
    """A grid and its recordings."""

    grid: Grid
    open: list[KernelRun]
    """Recordings of the cases that may be looked at while the model is made."""
    held_out: list[KernelRun]
    """Recordings of the third that may not (cells.py)."""
    missing: dict[str, tuple[int, int]]
    """Numbers of recordings present and wanted, by case, for described cases that are incomplete."""

    def part(self, held: bool) -> list[KernelRun]:
        """Return the recordings of either part; raises `BadInputError` if there are none."""
        runs, other = (self.held_out, self.open) if held else (self.open, self.held_out)
        if not runs:
            expected = "cases that are not held out (--held-out compares those)" if other else "a whole case"
            raise BadInputError("--only", None, "held-out cases" if held else expected, "command line")
        return runs


def stored(grid_file: Path | None, recordings: Path | None, only: str | None = None) -> Stored:
    """Return the grid and its recordings, or those in `recordings` instead, if given."""
    grid, file = read(grid_file)
    runs = load_all(recordings or (file.parent / grid.recordings).resolve(), only)
    have = {case: len(group) for case, group in grouped(runs).items()}
    wanted = {} if recordings else grid.described
    missing = {
        name: (have.get(name, 0), seeds)
        for name, seeds in wanted.items()
        if have.get(name, 0) < seeds and (only is None or name in have)
    }
    whole = [run for run in runs if run.case not in missing]
    return Stored(
        grid,
        [run for run in whole if not held_out(run.case)],
        [run for run in whole if held_out(run.case)],
        missing,
    )


def explain_one(found: Agreement, name: str) -> None:
    """Print where the one case whose name contains `name` diverges.

    Raises `BadInputError` if not one does.
    """
    fitting = [case for case in found.cases if name in case.name]
    exact = [case for case in fitting if case.name == name] or fitting
    if len(exact) != 1:
        known = ", ".join(case.name for case in fitting or found.cases)
        raise BadInputError("CASE", name, f"one case of {known}", "command line")
    console.show_divergence(exact[0].name, explain(exact[0]))


def record_cells(
    cells: list[str], seeds: int, folder: Path, workers: int | None, notify: Callable[[str], object]
) -> None:
    """Record cells by their names; raises `BadInputError` if none is given or a name is no cell's."""
    if not cells:
        raise BadInputError("CELL", None, f"is needed: {FORM}", "command line")
    record(cells, seeds, folder, workers, notify)


def record_described(
    grid_file: Path | None, folder: Path, workers: int | None, notify: Callable[[str], object]
) -> None:
    """Record what the grid describes and the folder lacks, in the order of the description."""
    grid, _ = read(grid_file)
    for part in grid.cells:
        record(part.names, part.seeds, folder, workers, notify)


def explain_case(grid_file: Path | None, recordings: Path | None, name: str, nominal: bool) -> None:
    """Print where the case whose name contains `name` diverges from its recording; raises `BadInputError`."""
    groups = grouped(stored(grid_file, recordings, name).part(held=False))
    exact = {key: group for key, group in groups.items() if key == name}
    if not exact and len(groups) > 1:
        known = ", ".join(list(groups)[:6])
        raise BadInputError("CASE", name, f"one case; it fits {len(groups)}: {known} ...", "command line")
    for key, group in (exact or groups).items():
        console.show_divergence(key, explain(measure(key, group, nominal=nominal)))


def write_docs(
    agreement: Agreement, grid_file: Path | None, its: Stored, workers: int | None, file: Path
) -> None:
    """Write docs/reference/fidelity.md: `agreement`, held-out third, path as configured, and ACK captures."""
    grid, source = read(grid_file)
    known = {run.name: run for run in its.open}
    kept = captures(source.parent / grid.captures) if grid.captures else []
    captured = [(one["case"], compare(one, known[one["case"]])) for one in kept if one["case"] in known]
    held = validate(its.held_out, workers)
    nominal = validate(its.open, workers, nominal=True)
    document.write(document.Page(agreement, held, nominal, grid, its.missing, captured), file)


def write_bands(agreement: Agreement, grid: Grid, file: Path) -> None:
    """Write the bands of the grid's sample; raises `BadInputError` if one of its cases is missing."""
    sample = [case for case in agreement.cases if case.name in grid.sample]
    missing = sorted(set(grid.sample) - {case.name for case in sample})
    if missing:
        raise BadInputError("FILE", missing[0], "a case of the recordings", "command line")
    bands.write(sample, file)


def write_page(agreement: Agreement, grid: Grid, out: Path) -> Path:
    """Write the page with heat maps and traces, and return its file."""
    return page.write(agreement, grid, out)
