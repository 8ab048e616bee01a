"""A grid file: which recordings, what they were recorded with, what is to come, known disagreements."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

from dragstrip.errors import BadInputError
from dragstrip.outside import parsed_toml
from dragstrip.validation.cells import CELL, FORM, WIDE

DEFAULT = Path(__file__).resolve().parents[3] / "validation" / "linux-6.1" / "grid.toml"
"""In a checkout; an installed package has no recordings."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Floor(_Part):
    """What the kernel against itself gives."""

    what: str
    value: str


class Known(_Part):
    """A disagreement with its cause: shell patterns of cases, quantities (none: all) and words."""

    cases: list[str]
    quantities: list[str] = []
    cause: str

    def concerns(self, case: str, quantity: str) -> bool:
        """Whether it speaks of this figure."""
        return (not self.quantities or quantity in self.quantities) and any(
            fnmatchcase(case, pattern) for pattern in self.cases
        )


class Cells(_Part):
    """Cells of the wider grid: every path with every algorithm, each recorded with so many seeds."""

    what: str
    paths: list[str]
    """A cell's name without `w-` and its algorithms."""
    algorithms: list[str] = ["bbr", "cdg", "cubic", "reno", "vegas"]
    seeds: PositiveInt = 1

    @property
    def names(self) -> list[str]:
        """Path by path."""
        return [f"{WIDE}{path}-{algorithm}" for path in self.paths for algorithm in self.algorithms]

    @model_validator(mode="after")
    def _names_say_what_they_mean(self) -> Self:
        wrong = next((name for name in self.names if not CELL.fullmatch(name)), None)
        if wrong is not None:
            raise ValueError(f"{wrong}: expected {FORM}")
        return self


class Grid(_Part):
    """The file's content."""

    title: str
    kernel: str
    recordings: str
    """Folder, as seen from the file."""
    captures: str | None = None
    """Folder of ACK captures, as seen from the file."""
    sample: list[str] = []
    """Cases that continuous integration holds to their bands."""
    floor: list[Floor] = []
    known: list[Known] = []
    cells: list[Cells] = []
    """The wider grid, in the order in which it is recorded."""
    between_kernels: list[str] = []
    """Of the wider grid, what kernels are compared with one another over (kernels.py)."""

    @model_validator(mode="after")
    def _what_is_compared_is_described(self) -> Self:
        unknown = next((name for name in self.between_kernels if name not in self.described), None)
        if unknown is not None:
            raise ValueError(f"between_kernels has {unknown}: expected a case of cells")
        return self

    @property
    def described(self) -> dict[str, int]:
        """Cases of the wider grid and how many recordings each is to have."""
        return {name: part.seeds for part in self.cells for name in part.names}

    def cause(self, case: str, quantity: str) -> str:
        """The first cause that is known for a figure, or nothing."""
        return next((known.cause for known in self.known if known.concerns(case, quantity)), "")


def read(file: Path | None) -> tuple[Grid, Path]:
    """A grid and its file; without one the grid that comes with Dragstrip."""
    if file is None:
        if not DEFAULT.exists():
            raise BadInputError("--grid", None, "is needed: no recordings are installed here", "command line")
        file = DEFAULT
    try:
        return Grid.model_validate(parsed_toml(file)), file
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInputError(".".join(map(str, first["loc"])), None, first["msg"], str(file)) from None
