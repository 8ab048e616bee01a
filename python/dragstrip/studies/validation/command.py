"""The work of `dragstrip validate`, without the parsing of its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragstrip.errors import BadInputError
from dragstrip.studies.validation import bands, console, document, page
from dragstrip.studies.validation.acks import captures, compare
from dragstrip.studies.validation.cells import FORM, held_out
from dragstrip.studies.validation.explain import explain
from dragstrip.studies.validation.grid import Grid, read
from dragstrip.studies.validation.kernel import KernelRun, grouped, load_all
from dragstrip.studies.validation.record import record
from dragstrip.studies.validation.validate import Agreement, measure, validate


@dataclass(frozen=True)
class StoredGrid:
    """A grid and its recordings."""

    grid: Grid
    open: list[KernelRun]
    """Recordings of the cases that may be looked at while the model is made."""
    held_out: list[KernelRun]
    """Recordings of the third that may not (cells.py)."""
    missing: dict[str, tuple[int, int]]
    """Numbers of recordings present and wanted, by case, for described cases that are incomplete."""

    def part(self, is_held_out: bool) -> list[KernelRun]:
        """Return the recordings of either part; raises `BadInputError` if there are none."""
        runs, remainder = (self.held_out, self.open) if is_held_out else (self.open, self.held_out)
        if not runs:
            expected = (
                "cases that are not held out (--held-out compares those)" if remainder else "a whole case"
            )
            raise BadInputError("--only", None, "held-out cases" if is_held_out else expected, "command line")
        return runs


def stored(grid_file: Path | None, recordings: Path | None, only: str | None = None) -> StoredGrid:
    """Return the grid and its recordings, or those in `recordings` instead, if given."""
    grid, file = read(grid_file)
    runs = load_all(recordings or (file.parent / grid.recordings).resolve(), only)
    have = {case: len(group) for case, group in grouped(runs).items()}
    seeds_by_case = {} if recordings else grid.described
    missing = {
        name: (have.get(name, 0), seeds)
        for name, seeds in seeds_by_case.items()
        if have.get(name, 0) < seeds and (only is None or name in have)
    }
    whole = [run for run in runs if run.case not in missing]
    return StoredGrid(
        grid,
        [run for run in whole if not held_out(run.case)],
        [run for run in whole if held_out(run.case)],
        missing,
    )


def explain_one(agreement: Agreement, name: str) -> None:
    """Print the first divergence of the one case whose name contains `name`.

    Raises `BadInputError` for no such case or several.
    """
    fitting = [case for case in agreement.cases if name in case.name]
    exact = [case for case in fitting if case.name == name] or fitting
    if len(exact) != 1:
        names = ", ".join(case.name for case in fitting or agreement.cases)
        raise BadInputError("CASE", name, f"one case of {names}", "command line")
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
    """Record the described cases that the folder lacks, in the order of the description."""
    grid, _ = read(grid_file)
    for part in grid.cells:
        record(part.names, part.seeds, folder, workers, notify)


def explain_case(grid_file: Path | None, recordings: Path | None, name: str, nominal: bool) -> None:
    """Print the first divergence of the case whose name contains `name`; raises `BadInputError`."""
    groups = grouped(stored(grid_file, recordings, name).part(is_held_out=False))
    exact = {key: group for key, group in groups.items() if key == name}
    if not exact and len(groups) > 1:
        names = ", ".join(list(groups)[:6])
        raise BadInputError("CASE", name, f"one case; it fits {len(groups)}: {names} ...", "command line")
    for key, group in (exact or groups).items():
        console.show_divergence(key, explain(measure(key, group, nominal=nominal)))


def write_docs(
    agreement: Agreement, grid_file: Path | None, recordings: StoredGrid, workers: int | None, file: Path
) -> None:
    """Write docs/reference/fidelity.md: `agreement`, held-out third, path as configured, and ACK captures."""
    grid, source = read(grid_file)
    open_runs = {run.name: run for run in recordings.open}
    ack_captures = captures(source.parent / grid.captures) if grid.captures else []
    captured = [
        (capture["case"], compare(capture, open_runs[capture["case"]]))
        for capture in ack_captures
        if capture["case"] in open_runs
    ]
    held_out_agreement = validate(recordings.held_out, workers)
    nominal = validate(recordings.open, workers, nominal=True)
    document.write(
        document.Page(agreement, held_out_agreement, nominal, grid, recordings.missing, captured), file
    )


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
