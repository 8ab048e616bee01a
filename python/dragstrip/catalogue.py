"""The experiments that come with Dragstrip: one folder per publication, one TOML file per experiment."""

from __future__ import annotations

from pathlib import Path

from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment import Experiment

FOLDER = Path(__file__).parent / "catalogue_data"
"""In a checkout a symbolic link to `experiments/`, in an installed package its contents."""


def folder() -> Path | None:
    """Where the catalogue is; none if it is not installed."""
    return FOLDER if FOLDER.is_dir() else None


def files() -> dict[str, Path]:
    """Name → file, in order of the names."""
    root = folder()
    if root is None:
        return {}
    found = sorted(root.glob("*/*.toml"))
    return {f"{file.parent.name}/{file.stem}": file for file in found}


def locate(name: str) -> Path:
    """The file of an experiment given by its name in the catalogue or by its path."""
    known = files()
    if name in known:
        return known[name]
    if Path(name).is_file():
        return Path(name)
    if name.endswith(".toml"):
        raise BadInputError("", None, "is missing", name)
    expected = f"one of the catalogue's experiments (dragstrip list) or a file{nearest(name, known)}"
    raise BadInputError("EXPERIMENT", name, expected, "command line")


def load(name: str) -> tuple[Experiment, str]:
    """An experiment and the file it came from."""
    file = locate(name)
    return Experiment.read(file), str(file)
