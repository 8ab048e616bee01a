"""The experiments that come with Dragstrip: a folder per publication, a TOML file per experiment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment import permissions
from dragstrip.experiment.types import Experiment
from dragstrip.io.untrusted import parsed_toml

FOLDER = Path(__file__).parents[1] / "catalogue_data"
"""In a checkout a symbolic link to `experiments/`, in an installed package its contents."""

PUBLICATION = "publication.toml"
"""In each publication's folder: what its page says beside the figures."""

EVERYTHING = "all"
"""All publications under one name."""

FORMER = {"seeds": EVERYTHING}
"""Former names of publications, and their current ones."""


class Publication(BaseModel):
    """A publication, in words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    source: str
    question: str
    hosts: str = ""
    """Hosts of the publication, and the kind of hosts that stands for them here."""
    verdict: str
    """`{experiment/claim}` stands for our figure."""
    distributions: tuple[str, ...] = ()
    """Experiments whose distributions of RTT and throughput are drawn."""
    sums: bool = False
    """Its claims are cells of a grid: the page sums up grades by kind, the id up to its first number."""


def folder() -> Path | None:
    """The catalogue's folder; None if it is not installed."""
    return FOLDER if FOLDER.is_dir() else None


def files() -> dict[str, Path]:
    """Name → file, in order of the names."""
    root = folder()
    if root is None:
        return {}
    catalogue_files = sorted(file for file in root.glob("*/*.toml") if file.name != PUBLICATION)
    return {f"{file.parent.name}/{file.stem}": file for file in catalogue_files}


def members(name: str) -> list[str]:
    """The experiments of a publication, or of all of them (`all`); none if there is no such publication."""
    current_name = FORMER.get(name, name)
    return [file for file in files() if current_name in (EVERYTHING, file.split("/")[0])]


def publication(name: str) -> Publication:
    """The description of a publication; raises `BadInputError` where its file is missing or wrong."""
    file = (folder() or FOLDER) / name / PUBLICATION
    try:
        return Publication.model_validate(parsed_toml(file))
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"][0].lower() + first["msg"][1:]
        raise BadInputError(".".join(map(str, first["loc"])), None, reason, str(file)) from None


def locate(name: str) -> Path:
    """The file of an experiment given by its name in the catalogue or by its path."""
    paths = files()
    if name in paths:
        return paths[name]
    if os.path.exists(name) and not os.path.isdir(name):  # noqa: PTH110, PTH112 - Path raises for odd names
        return Path(name)
    if name.endswith(".toml"):
        raise BadInputError("", None, "no such file", name)
    if members(name):
        raise BadInputError("EXPERIMENT", name, "one experiment, not a whole publication", "command line")
    publications = {experiment.split("/")[0] for experiment in paths}
    near = nearest(name, [EVERYTHING, *sorted(publications), *paths])
    expected = f"one of the catalogue's experiments (dragstrip list) or a file{near}"
    raise BadInputError("EXPERIMENT", name, expected, "command line")


def load(
    name: str, engine: str | None = None, programs: Sequence[str] | None = None
) -> tuple[Experiment, str]:
    """An experiment and the file it came from.

    `engine` and `programs` (`--load`) are those of the command line, which has the say (`permissions.bound`).
    """
    file = locate(name)
    read = Experiment.read(file, lambda content: permissions.bound(content, str(file), engine, programs))
    return read, str(file)
