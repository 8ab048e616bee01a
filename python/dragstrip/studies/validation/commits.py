"""Commits of the kernel, named by the figures that they move: between which two kernels each came.

validation/commits.toml names for each commit a cell, a figure and the direction in which the commit moves it
in the simulator. Only figures of kernels decide; a commit's release is compared with them afterwards.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from dragstrip.errors import BadInputError
from dragstrip.io.untrusted import parsed_toml
from dragstrip.studies.validation.cells import CELL
from dragstrip.studies.validation.figures import FigurePair
from dragstrip.studies.validation.kernel import Json, KernelRun, load
from dragstrip.studies.validation.targets import BY_KEY

FILE = "commits.toml"
"""The list, beside the grids' folders."""
FOLDER = "commits"
"""Recordings of cells that no grid has: a folder for each release, such as 6.12."""


class KernelCommit(BaseModel):
    """A commit, and the figure that shows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    release: str
    """The mainline release that it came with, such as 6.17."""
    change: str
    cell: str = ""
    """The cell that shows it; empty if none does."""
    quantity: str = ""
    """The figure's key (targets.py)."""
    direction: Literal["more", "less"] = "more"
    reason: str
    """Why the figure shows this commit and no other, or why nothing shows it."""

    @model_validator(mode="after")
    def _a_cell_has_a_figure(self) -> Self:
        if self.cell and not CELL.fullmatch(self.cell):
            raise ValueError(f"cell is {self.cell}: expected the name of a cell")
        if self.cell and self.quantity not in BY_KEY:
            raise ValueError(f"quantity is {self.quantity!r}: expected one of {', '.join(BY_KEY)}")
        return self


class _List(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    commits: list[KernelCommit]


@dataclass(frozen=True)
class CommitAnswer:
    """The two kernels between which a commit came, by its figure alone."""

    commit: KernelCommit
    values: Mapping[str, float]
    """The figure by kernel; empty without recordings of each."""
    steps: tuple[tuple[str, str], ...]
    """Successive kernels between which the figure moves in the commit's direction, beyond its limit."""

    @property
    def between(self) -> tuple[str, str] | None:
        """The one pair of kernels; None if there is none or more than one."""
        return self.steps[0] if len(self.steps) == 1 else None

    @property
    def is_right(self) -> bool:
        """True when the commit's release lies between the two."""
        if self.between is None:
            return False
        before, after = map(_release, self.between)
        return before < _release(self.commit.release) <= after


def read(file: Path) -> list[KernelCommit]:
    """Return the commits of a list; none where there is no file. Raises `BadInputError`."""
    if not file.exists():
        return []
    try:
        return _List.model_validate(parsed_toml(file)).commits
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInputError(".".join(map(str, first["loc"])), None, first["msg"], str(file)) from None


def answers(
    commits: Sequence[KernelCommit],
    kernels: Sequence[str],
    runs: Callable[[str, str], Sequence[KernelRun]],
    figures: Callable[[str, Sequence[KernelRun], Sequence[KernelRun]], Sequence[FigurePair]],
) -> list[CommitAnswer]:
    """Return for each commit the successive kernels between which its figure moves.

    `runs` gives the recordings of a kernel and a cell, and `figures` those of a cell on two kernels.
    """
    ordered = sorted(kernels, key=_release)
    answered = []
    for commit in commits:
        by_kernel = {name: runs(name, commit.cell) for name in ordered} if commit.cell else {}
        values: dict[str, float] = {}
        steps = []
        if by_kernel and all(by_kernel.values()):
            for before, after in pairwise(ordered):
                pairs = figures(commit.cell, by_kernel[before], by_kernel[after])
                figure = next((entry for entry in pairs if entry.quantity == commit.quantity), None)
                if figure is None or figure.kernel is None or figure.simulator is None:
                    continue
                values |= {before: figure.kernel, after: figure.simulator}
                rises = figure.simulator > figure.kernel
                if not figure.reached and rises == (commit.direction == "more"):
                    steps.append((before, after))
        answered.append(CommitAnswer(commit, values, tuple(steps)))
    return answered


def recordings(folder: Path, kernel: str, cell: str) -> list[KernelRun]:
    """Return a cell's recordings of this kernel's release that no grid has; none where there are none."""
    place = folder / FOLDER / ".".join(map(str, _release(kernel)))
    files = (*place.glob(f"{cell}.json.xz"), *place.glob(f"{cell}-seed*.json.xz"))
    return [load(file) for file in sorted(files)]


def lines(answered: Sequence[CommitAnswer]) -> Iterator[str]:
    """Yield the answers as lines for a terminal."""
    count = sum(answer.between is not None for answer in answered)
    yield f"commits named by their figures: {count} of {len(answered)}"
    for answer in answered:
        commit = answer.commit
        yield f"  {commit.commit} ({commit.release}), {commit.change}: {_verdict(answer)}"


def section(answered: Sequence[CommitAnswer]) -> Iterator[str]:
    """Yield the section of the documentation's page."""
    count = sum(answer.between is not None for answer in answered)
    right = sum(answer.is_right for answer in answered)
    yield from ("", "## Commits by their figures", "")
    about = (
        f"Of {len(answered)} commits, figures alone name the kernels between which {count} came; {right} of "
        "these intervals hold the commit's release. A commit is named where its figure moves beyond the "
        "limit, in the direction in which the change moves it in the simulator, between one pair of kernels. "
        "The grid's cells were chosen with their recordings at hand, so that they are no blind test; cells "
        "of `validation/commits` were chosen by the simulator and recorded afterwards."
    )
    yield from (*textwrap.wrap(about, 110), "")
    yield "| commit | release | change | figure | by kernel | came | why |"
    yield "|---|---|---|---|---|---|---|"
    for answer in answered:
        commit = answer.commit
        figure = f"{commit.cell}: {BY_KEY[commit.quantity].title}" if commit.cell else "–"
        values = " → ".join(_measured(commit.quantity, value) for value in answer.values.values()) or "–"
        cells = (
            commit.commit,
            commit.release,
            commit.change,
            figure,
            values,
            _verdict(answer),
            commit.reason,
        )
        yield f"| {' | '.join(cells)} |"


def document(answered: Sequence[CommitAnswer]) -> list[Json]:
    """Return the answers as JSON."""
    return [
        {
            "commit": answer.commit.commit,
            "release": answer.commit.release,
            "change": answer.commit.change,
            "cell": answer.commit.cell or None,
            "quantity": answer.commit.quantity or None,
            "values": dict(answer.values),
            "between": None if answer.between is None else list(answer.between),
            "right": answer.is_right,
            "reason": answer.commit.reason,
        }
        for answer in answered
    ]


def _measured(quantity: str, value: float) -> str:
    """Return a figure in words; goodput in Mbit/s."""
    return f"{value / 1e6:.4g} Mbit/s" if quantity == "goodput" else f"{value:.4g}"


def _verdict(answer: CommitAnswer) -> str:
    if answer.between is not None:
        return " to ".join(answer.between) + ("" if answer.is_right else ", which is wrong")
    if not answer.commit.cell:
        return "not seen"
    if not answer.values:
        return "not recorded"
    return "not seen" if not answer.steps else "moves more than once"


def _release(name: str) -> tuple[int, ...]:
    """Return major and minor of a kernel's name or a release."""
    return tuple(int(number) for number in re.findall(r"\d+", name)[:2])
