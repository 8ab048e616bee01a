"""SHA256SUMS: what a folder's files were when they were written, as sha256sum(1) writes and checks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dragstrip import files, outside
from dragstrip.errors import BadInputError
from dragstrip.files import DamagedError

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")


def write(folder: Path, names: Iterable[str]) -> None:
    """Writes down these files (paths below `folder`)."""
    lines = [f"{files.sha256(folder / name)}  {name}\n" for name in sorted(names)]
    files.write_text(folder / NAME, "".join(lines))


def read(folder: Path) -> Mapping[str, str] | None:
    """Name → SHA-256; none where nothing was written down, as by earlier versions.

    Raises `DamagedError` for a list that is none.
    """
    place = folder / NAME
    if not place.exists():
        return None
    text = outside.content(place, outside.MIB, "a list of checksums").decode("latin-1")
    *lines, rest = text.split("\n")
    found = [_LINE.fullmatch(line) for line in lines]
    if rest or not all(found):
        raise DamagedError(place, "a line of it is no checksum and name")
    return {line[2]: line[1] for line in found if line}


def check(folder: Path, name: str, advice: str = "") -> None:
    """Raises `DamagedError` for a file that is not what was written down; what never was is not checked."""
    listed = read(folder)
    if listed is None:
        return
    if name not in listed:
        raise DamagedError(folder / name, f"it is not in {NAME} beside it", advice)
    if files.sha256(folder / name) != listed[name]:
        raise DamagedError(folder / name, f"its SHA-256 is not the one in {NAME} beside it", advice)


def whole(folder: Path, damaged: Callable[[DamagedError], object] = lambda _: None) -> bool:
    """Whether a folder's files are what was written down; `damaged` is called with the first that is not.

    A folder without the list (an earlier version wrote none) is not whole.
    """
    try:
        listed = read(folder)
        for name in listed or ():
            check(folder, name)
    except BadInputError as error:
        damaged(DamagedError(folder, error.said))
        return False
    except DamagedError as error:
        damaged(error)
        return False
    return bool(listed)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object from a file that is checked first."""
    check(folder, name)
    return files.read_json(folder / name)
