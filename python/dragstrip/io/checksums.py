"""`SHA256SUMS`: the checksums of a folder's files, in the format that sha256sum(1) writes and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.io import files, untrusted
from dragstrip.io.files import DamagedError

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")


def write(folder: Path, names: Iterable[str]) -> None:
    """Write `SHA256SUMS` for the files `names`, which are paths relative to `folder`.

    It does not wait for the disk: the listed files are as little synchronised, and a reader finds damage.
    """
    lines = [f"{files.sha256(folder / name)}  {name}\n" for name in sorted(names)]
    files.write_text(folder / NAME, "".join(lines), synced=False)


def read(folder: Path) -> Mapping[str, str] | None:
    """Return the SHA-256 of each listed file by name, or None if the folder has no `SHA256SUMS`.

    A folder without the list is not verified. Raises `DamagedError` if the list cannot be parsed.
    """
    place = folder / NAME
    if not place.exists():
        return None
    text = untrusted.content(place, untrusted.MIB, "a list of checksums").decode("latin-1")
    *lines, rest = text.split("\n")
    matches = [_LINE.fullmatch(line) for line in lines]
    if rest or not all(matches):
        raise DamagedError(place, "a line has no checksum and name")
    return {line[2]: line[1] for line in matches if line}


def check(folder: Path, name: str, advice: str = "") -> None:
    """Check one file of a folder against `SHA256SUMS`; a folder without the list passes unchecked.

    Raises `DamagedError`, with `advice` in its text, if the file is not listed or its SHA-256 differs.
    """
    listed = read(folder)
    if listed is None:
        return
    if name not in listed:
        raise DamagedError(folder / name, f"it is not in {NAME} beside it", advice)
    if files.sha256(folder / name) != listed[name]:
        raise DamagedError(folder / name, f"its SHA-256 is not the one in {NAME} beside it", advice)


def whole(folder: Path, damaged: Callable[[DamagedError], object] = lambda _: None) -> bool:
    """Return whether all files of a folder match its `SHA256SUMS`.

    `damaged` is called with the first mismatch. A folder without the list does
    not count as whole.
    """
    try:
        listed = read(folder)
        for name in listed or ():
            check(folder, name)
    except BadInputError as error:
        damaged(DamagedError(folder, error.explanation))
        return False
    except DamagedError as error:
        damaged(error)
        return False
    return bool(listed)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """Return the JSON object in a file after checking the file against `SHA256SUMS`.

    Raises `DamagedError` if the checksum differs and `BadInputError` if the file holds no JSON object.
    """
    check(folder, name)
    return files.read_json(folder / name)
