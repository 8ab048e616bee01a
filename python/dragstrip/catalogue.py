"""The experiments that come with Dragstrip: a shelf (a folder) per publication, a TOML file for each."""

from __future__ import annotations

from pathlib import Path

from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment import Experiment, Part, read_toml

FOLDER = Path(__file__).parent / "catalogue_data"
"""In a checkout a symbolic link to `experiments/`, in an installed package its contents."""

SHELF = "shelf.toml"
"""In each shelf's folder: what its page says beside the figures."""

EVERYTHING = "seeds"
"""All shelves under one name: the publications that the catalogue began with."""


class Shelf(Part):
    """A publication, in words."""

    title: str
    source: str
    question: str
    verdict: str
    """`{experiment/claim}` stands for our figure."""
    distributions: tuple[str, ...] = ()
    """Experiments whose distributions of RTT and throughput are drawn."""


def folder() -> Path | None:
    """Where the catalogue is; none if it is not installed."""
    return FOLDER if FOLDER.is_dir() else None


def files() -> dict[str, Path]:
    """Name → file, in order of the names."""
    root = folder()
    if root is None:
        return {}
    found = sorted(file for file in root.glob("*/*.toml") if file.name != SHELF)
    return {f"{file.parent.name}/{file.stem}": file for file in found}


def members(name: str) -> list[str]:
    """The experiments of a shelf, or of all of them (`seeds`); none if there is no such shelf."""
    return [file for file in files() if name in (EVERYTHING, file.split("/")[0])]


def shelf(name: str) -> Shelf:
    """What is said of a shelf; raises `BadInputError` where its file is missing or wrong."""
    return read_toml((folder() or FOLDER) / name / SHELF, Shelf)


def locate(name: str) -> Path:
    """The file of an experiment given by its name in the catalogue or by its path."""
    known = files()
    if name in known:
        return known[name]
    if Path(name).is_file():
        return Path(name)
    if name.endswith(".toml"):
        raise BadInputError("", None, "is missing", name)
    if members(name):
        raise BadInputError("EXPERIMENT", name, "one experiment, not a whole shelf", "command line")
    shelves = {experiment.split("/")[0] for experiment in known}
    near = nearest(name, [EVERYTHING, *sorted(shelves), *known])
    expected = f"one of the catalogue's experiments (dragstrip list) or a file{near}"
    raise BadInputError("EXPERIMENT", name, expected, "command line")


def load(name: str) -> tuple[Experiment, str]:
    """An experiment and the file it came from."""
    file = locate(name)
    return Experiment.read(file), str(file)
