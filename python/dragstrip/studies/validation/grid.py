"""A grid file: the recordings, their kernel, the cells still to record, and known disagreements."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

from dragstrip.errors import BadInputError
from dragstrip.io.untrusted import parsed_toml
from dragstrip.studies.validation.cells import CELL, FORM, WIDE

DEFAULT = Path(__file__).resolve().parents[4] / "validation" / "linux-6.1" / "grid.toml"
"""The grid of a checkout; an installed package has no recordings."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Floor(_Part):
    """A figure of the kernel against itself."""

    what: str
    value: str


class KnownDisagreement(_Part):
    """A disagreement with its cause: shell patterns of cases, quantities (none means all) and words."""

    cases: list[str]
    quantities: list[str] = []
    cause: str

    def concerns(self, case: str, quantity: str) -> bool:
        """Return True when it applies to this figure."""
        return (not self.quantities or quantity in self.quantities) and any(
            fnmatchcase(case, pattern) for pattern in self.cases
        )


class Cells(_Part):
    """Cells of the wider grid: every path with every algorithm, each recorded with `seeds` seeds."""

    what: str
    paths: list[str]
    """Names of cells without `w-` and without algorithms."""
    algorithms: list[str] = ["bbr", "cdg", "cubic", "reno", "vegas"]
    seeds: PositiveInt = 1

    @property
    def names(self) -> list[str]:
        """The names of all cells, path by path."""
        return [f"{WIDE}{path}-{algorithm}" for path in self.paths for algorithm in self.algorithms]

    @model_validator(mode="after")
    def _names_say_what_they_mean(self) -> Self:
        wrong = next((name for name in self.names if not CELL.fullmatch(name)), None)
        if wrong is not None:
            raise ValueError(f"{wrong}: expected {FORM}")
        return self


class Grid(_Part):
    """The content of a grid file."""

    title: str
    kernel: str
    recordings: str
    """Folder of the recordings, relative to the file."""
    captures: str | None = None
    """Folder of ACK captures, relative to the file."""
    sample: list[str] = []
    """Cases whose errors continuous integration limits to their bands."""
    floor: list[Floor] = []
    known: list[KnownDisagreement] = []
    cells: list[Cells] = []
    """The wider grid, in the order in which it is recorded."""
    between_kernels: list[str] = []
    """Cells of the wider grid on which kernels are compared with one another (kernels.py)."""

    @model_validator(mode="after")
    def _what_is_compared_is_described(self) -> Self:
        unknown = next((name for name in self.between_kernels if name not in self.described), None)
        if unknown is not None:
            raise ValueError(f"between_kernels has {unknown}: expected a case of cells")
        return self

    @property
    def described(self) -> dict[str, int]:
        """The number of recordings wanted for each case of the wider grid."""
        return {name: part.seeds for part in self.cells for name in part.names}

    def cause(self, case: str, quantity: str) -> str:
        """Return the first known cause of a figure's disagreement, or an empty string."""
        return next(
            (disagreement.cause for disagreement in self.known if disagreement.concerns(case, quantity)), ""
        )


def read(file: Path | None) -> tuple[Grid, Path]:
    """Read a grid, by default the project's own, and return it with its file; raises `BadInputError`."""
    if file is None:
        if not DEFAULT.exists():
            raise BadInputError("--grid", None, "is needed: no recordings are installed here", "command line")
        file = DEFAULT
    try:
        return Grid.model_validate(parsed_toml(file)), file
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInputError(".".join(map(str, first["loc"])), None, first["msg"], str(file)) from None
