"""A grid file: which recordings, what they were recorded with, and what is known about disagreements."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dragstrip.errors import BadInputError
from dragstrip.outside import parsed_toml

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
