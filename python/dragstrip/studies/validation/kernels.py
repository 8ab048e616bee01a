"""Kernels compared with one another over cells of the grid, to find changes between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from dragstrip import _core
from dragstrip.engines.kernels import kernel
from dragstrip.errors import BadInputError, DragstripError, nearest
from dragstrip.io.cache import cache
from dragstrip.io.files import write_text
from dragstrip.studies.validation import commits
from dragstrip.studies.validation.commits import CommitAnswer
from dragstrip.studies.validation.conditions import conditions
from dragstrip.studies.validation.figures import FigurePair, figures
from dragstrip.studies.validation.grid import Grid, read
from dragstrip.studies.validation.kernel import Json, KernelRun, load
from dragstrip.studies.validation.record import record
from dragstrip.studies.validation.targets import BY_KEY, QUANTITIES
from dragstrip.studies.validation.traces import of_kernel
from dragstrip.studies.validation.translate import scenario
from dragstrip.studies.validation.validate import validate

SEEDS_MAX = 3
"""Seeds of a cell on each kernel, at most."""


@dataclass(frozen=True)
class CellComparison:
    """A cell's figures on two kernels.

    `kernel` of each figure is the first one's, `simulator` the other's.
    """

    name: str
    figures: list[FigurePair]

    @property
    def beyond(self) -> list[FigurePair]:
        """The figures that differ by more than a simulated one may differ from a kernel's."""
        return [figure for figure in self.figures if figure.limit is not None and not figure.reached]


@dataclass(frozen=True)
class KernelComparison:
    """One kernel compared with others."""

    first: str
    comparisons: dict[str, list[CellComparison]]
    simulator: dict[str, list[CellComparison]]
    """The simulator compared with each kernel, with the stack profile nearest to it."""
    commits: Sequence[CommitAnswer] = ()
    """Commits, and the kernels between which they came."""

    @property
    def columns(self) -> list[tuple[str, list[CellComparison]]]:
        """The other kernels beside the first, then each profile beside its kernel: a title each."""
        return [
            *((f"{name} from {self.first}", cells) for name, cells in self.comparisons.items()),
            *((f"`{profile(name)}` from {name}", cells) for name, cells in self.simulator.items()),
        ]

    @staticmethod
    def standings(cells: Sequence[CellComparison]) -> Iterator[tuple[str, int, int]]:
        """Yield quantity, cells within its limit and cells that have it."""
        for quantity in QUANTITIES:
            quantity_figures = [f for cell in cells for f in cell.figures if f.quantity == quantity.key]
            judged = [figure for figure in quantity_figures if figure.limit is not None]
            if judged:
                yield quantity.title, sum(figure.reached for figure in judged), len(judged)


def compare_kernels(
    grid: Grid,
    source: Path,
    first: str,
    other_kernels: Sequence[str],
    only: str | None,
    workers: int | None,
    notify: Callable[[str], object],
    *,
    with_simulator: bool = True,
) -> KernelComparison:
    """Compare a kernel with each of the others over the grid's cells `between_kernels`.

    Recordings that no grid beside this one has are made first, and kept in the cache. Raises
    `BadInputError` for a kernel that is in neither, or if no cell fits.
    """
    pattern = f"*{only or ''}*" if not only or not set("*?[") & set(only) else only
    cells = [cell for cell in grid.between_kernels if fnmatchcase(cell, pattern)]
    if not cells:
        raise BadInputError("--only", only, "a part of the name of a cell in between_kernels", str(source))
    seeds = {cell: min(grid.described[cell], SEEDS_MAX) for cell in cells}
    folders = _folders(source)
    for option, name in (
        ("--kernel", first),
        *(("--against-kernel", kernel_name) for kernel_name in other_kernels),
    ):
        kernel_names = _available(folders)
        if name not in kernel_names:
            raise BadInputError(
                option, name, f"one of {', '.join(kernel_names)}{nearest(name, kernel_names)}", "command line"
            )

    def recorded(name: str) -> dict[str, list[KernelRun]]:
        return _stored(folders[name], seeds) if name in folders else _recorded(name, seeds, workers, notify)

    runs_by_kernel = {name: recorded(name) for name in (first, *other_kernels)}

    def cell_runs(name: str, cell: str) -> Sequence[KernelRun]:
        return runs_by_kernel[name].get(cell) or commits.recordings(source.parent.parent, name, cell)

    listed = [
        commit
        for commit in commits.read(source.parent.parent / commits.FILE)
        if only is None or fnmatchcase(commit.cell, pattern)
    ]
    return KernelComparison(
        first,
        {
            name: [compared(cell, runs_by_kernel[first][cell], runs_by_kernel[name][cell]) for cell in cells]
            for name in other_kernels
        },
        {name: _simulated(runs, workers) for name, runs in runs_by_kernel.items()} if with_simulator else {},
        commits.answers(
            listed,
            list(runs_by_kernel),
            cell_runs,
            lambda cell, before, after: compared(cell, before, after).figures,
        ),
    )


def _available(folders: Mapping[str, Path]) -> list[str]:
    """Return the kernels that are in the cache or have stored recordings."""
    return sorted({cached_kernel.name for cached_kernel in kernel.kernels()} | set(folders))


def releases(source: Path, beginnings: Sequence[str]) -> list[str]:
    """Return the kernels whose names begin so, such as 6.12.

    Of several it is the one with stored recordings, else the newest.
    Raises `BadInputError` where there is none, or several with stored recordings, and for one that is named
    twice.
    """
    folders = _folders(source)
    available = _available(folders)
    names: list[str] = []
    for beginning in beginnings:
        fitting = [name for name in available if re.match(rf"{re.escape(beginning)}(?!\d)", name)]
        if not fitting:
            expected = (
                f"the beginning of one of {', '.join(available)}, not cut within a number, or another "
                "after `kernel fetch`"
            )
            raise BadInputError("KERNEL", beginning, expected, "command line")
        stored = sorted((name for name in fitting if name in folders), key=_order)
        if len(stored) > 1:
            expected = f"the beginning of one kernel, not of {' and '.join(stored)}"
            raise BadInputError("KERNEL", beginning, expected, "command line")
        name = stored[0] if stored else max(fitting, key=_order)
        if name in names:
            raise BadInputError(
                "KERNEL", beginning, f"another kernel than {name}, named before", "command line"
            )
        names.append(name)
    return names


def _order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def profile(kernel_name: str) -> str:
    """Return the stack profile nearest to a kernel."""
    return _core.stack_of_release(kernel_name)


def _simulated(runs: Mapping[str, Sequence[KernelRun]], workers: int | None) -> list[CellComparison]:
    agreement = validate([run for repeats in runs.values() for run in repeats], workers)
    for name, reason in agreement.failed.items():
        raise DragstripError(f"{name}: {reason}")
    return [CellComparison(case.name, case.figures) for case in agreement.cases]


def compared(cell: str, first: Sequence[KernelRun], second: Sequence[KernelRun]) -> CellComparison:
    """Compare two kernels' recordings of one cell."""
    cell_conditions = conditions(scenario(first[0], nominal=True))
    return CellComparison(
        cell, figures(cell_conditions, [of_kernel(run) for run in first], [of_kernel(run) for run in second])
    )


def _folders(source: Path) -> dict[str, Path]:
    """Return the folders of recordings of this grid and those beside it, by the name of their kernel."""
    folders = {}
    for file in sorted(source.parent.parent.glob(f"*/{source.name}")):
        folder = (file.parent / read(file)[0].recordings).resolve()
        recording = next(iter(sorted(folder.glob("*.json.xz"))), None)
        if recording is not None:
            package, _, _ = load(recording).kernel.partition("_")
            folders[package.removeprefix("linux-image-")] = folder
    return folders


def _stored(folder: Path, seeds: Mapping[str, int]) -> dict[str, list[KernelRun]]:
    """Return a grid's recordings of these cells, the given number of each."""
    names = {cell: [cell, *(f"{cell}-seed{n}" for n in range(2, count + 1))] for cell, count in seeds.items()}
    return {
        cell: [load(folder / f"{name}.json.xz") for name in run_names] for cell, run_names in names.items()
    }


def _recorded(
    name: str, seeds: Mapping[str, int], workers: int | None, notify: Callable[[str], object]
) -> dict[str, list[KernelRun]]:
    folder = cache() / "grid" / name
    runs_by_cell: dict[str, list[KernelRun]] = {}
    for cell, count in seeds.items():
        files = record([cell], count, folder, workers, lambda file: notify(f"{name}: {file}"), name)
        runs_by_cell[cell] = [load(file) for file in files]
    return runs_by_cell


def document(comparison: KernelComparison) -> Json:
    """Return the result as JSON."""
    return {
        "kernel": comparison.first,
        "against": {name: _cells(cells) for name, cells in comparison.comparisons.items()},
        "simulator": {
            name: {"profile": profile(name), **_cells(cells)} for name, cells in comparison.simulator.items()
        },
        "commits": commits.document(comparison.commits),
    }


def _cells(cells: Sequence[CellComparison]) -> Json:
    return {
        "standings": [
            {"quantity": title, "within": within_limit, "cells": count}
            for title, within_limit, count in KernelComparison.standings(cells)
        ],
        "cells": [
            {
                "name": cell.name,
                "figures": {
                    figure.quantity: {
                        "first": figure.kernel,
                        "other": figure.simulator,
                        "difference": figure.error,
                        "limit": figure.limit,
                        "within": figure.reached,
                    }
                    for figure in cell.figures
                },
            }
            for cell in cells
        ],
    }


def lines(comparison: KernelComparison) -> Iterator[str]:
    """Yield the result as lines for a terminal."""
    for kernel_name, cells in comparison.simulator.items():
        yield f"{profile(kernel_name)} against {kernel_name}: {len(cells)} cells"
        for title, within_limit, count in comparison.standings(cells):
            yield f"  {title:24} {within_limit:4} of {count} within the limit"
    for kernel_name, cells in comparison.comparisons.items():
        changed = _changed(cells)
        yield f"{comparison.first} -> {kernel_name}: {len(changed)} of {len(cells)} cells differ"
        for title, within_limit, count in comparison.standings(cells):
            yield f"  {title:24} {within_limit:4} of {count} within the limit"
        for cell in changed:
            yield f"  {cell.name}: {'; '.join(map(in_words, cell.beyond))}"
    if comparison.commits:
        yield from commits.lines(comparison.commits)


def _changed(cells: Sequence[CellComparison]) -> list[CellComparison]:
    """Return the cells that differ, those furthest beyond a limit first."""
    changed = [cell for cell in cells if cell.beyond]
    return sorted(changed, key=lambda cell: -max(figure.severity for figure in cell.beyond))


def in_words(figure: FigurePair) -> str:
    """Return a figure on both kernels in words."""
    title = BY_KEY[figure.quantity].title
    if figure.kernel is None or figure.simulator is None:
        return f"{title} {figure.error:.2f} apart"
    if figure.quantity == "goodput":
        return f"{title} {figure.kernel / 1e6:.4g} -> {figure.simulator / 1e6:.4g} Mbit/s"
    unit = {"rtt": " ms", "ping": " ms", "share": " %"}.get(figure.quantity, "")
    return f"{title} {figure.kernel:.4g} -> {figure.simulator:.4g}{unit}"


HEAD = """\
<!-- Written from the recordings of these kernels by the command below: do not edit. -->
# Changes from kernel to kernel

{cells} cells of the [grid](fidelity.md), recorded on each kernel in the same emulator: one flow or several,
drop-tail and every discipline, loss, without SACK, RACK or timestamps. A figure counts as changed if the two
kernels are further apart than the [targets](fidelity.md#no-random-loss) allow the simulator to be from a
kernel. The last columns give the simulator's own distance over the same cells: each [stack
profile](profiles.md) from the kernel that it stands for ([what a profile
changes](../explanation/known-gaps.md#the-profiles-linux-612-and-linux-7)).

If nothing is random, a kernel repeats itself to the byte. But microseconds can decide a case, and another
kernel takes a slightly different time per packet: a change in a single distribution or count is seldom more
than that. Look at goodput and median RTT first.

    dragstrip kernel fetch 6.12 --suite trixie
    dragstrip kernel fetch 7.3 --suite trixie-backports
    dragstrip validate --kernel {first} --against-kernel {others} --write-docs docs/reference/{file}

"""


def page(comparison: KernelComparison, file: Path) -> None:
    """Write the page of documentation."""
    columns = comparison.columns
    cells_count = len(columns[0][1])
    names = ",".join(comparison.comparisons)
    parts = [HEAD.format(first=comparison.first, others=names, file=file.name, cells=cells_count)]
    parts.append(f"| within the limit | {' | '.join(title for title, _ in columns)} |")
    parts.append("|---|" + "---|" * len(columns))
    tables = [{title: f"{k} of {n}" for title, k, n in comparison.standings(cells)} for _, cells in columns]
    for title in tables[0]:
        parts.append(f"| {title} | {' | '.join(table.get(title, '–') for table in tables)} |")
    if comparison.commits:
        parts += commits.section(comparison.commits)
    for name, cells in comparison.comparisons.items():
        parts += _section(f"{comparison.first} to {name}", "kernel to kernel", cells)
    for name, cells in comparison.simulator.items():
        parts += _section(f"{name} to the profile {profile(name)}", "kernel to simulator", cells)
    write_text(file, "\n".join(parts) + "\n")


def _section(title: str, direction: str, cells: Sequence[CellComparison]) -> Iterator[str]:
    """Yield a section: the cells that differ, worst first."""
    changed = _changed(cells)
    yield from ("", f"## {title}", "")
    yield from (f"{len(changed)} of {len(cells)} cells differ in some figure ({direction}).", "")
    yield from ("| cell | what differs |", "|---|---|")
    for cell in changed:
        worst = sorted(cell.beyond, key=lambda figure: -figure.severity)
        yield f"| {cell.name} | {'; '.join(map(in_words, worst)).replace('->', '→')} |"
