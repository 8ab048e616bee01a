"""The clone that is written into: where it is, its lists, and files that appear all together or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dragstrip.authoring.skeletons.names import Names
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import untrusted
from dragstrip.io.files import aside, writing

MARK = "crates/cc/src/registry.rs"
"""A file that a clone has."""


@dataclass(frozen=True)
class WrittenFiles:
    """Files written, relative to the clone, and the commands that come next."""

    files: list[str]
    next: str


def clone(command: str, otherwise: str = "") -> Path:
    """Return the clone around the current folder, or else the one that this package runs from.

    Raises `BadInputError` where there is neither; `otherwise` says how `command` can be done without.
    """
    current_folder = Path.cwd()
    for folder in (current_folder, *current_folder.parents, Path(__file__).resolve().parents[4]):
        if (folder / MARK).is_file():
            return folder
    expected = "it writes into a clone of the sources, and there is none here: call it in one"
    raise BadInputError(command, None, expected + (f"; {otherwise}" if otherwise else ""), "command line")


def read(clone: Path, path: str) -> str:
    """Return a source of the clone; raises `BadInputError` if it cannot be read."""
    return untrusted.text(clone / path, untrusted.SOURCE_MAX, "a source")


def changed(path: str, subject: str) -> DragstripError:
    """Return the error of sources in which something is not where these commands look for it."""
    return DragstripError(f"{path}: {subject} is not where this command expects it")


def with_module(path: str, text: str, names: Names) -> str:
    """Return a module's first file with one `pub mod` line more, in rustfmt's order."""
    lines = text.splitlines()
    listed = [(number, match[1]) for number, line in enumerate(lines) if (match := _MODULE.fullmatch(line))]
    if not listed:
        raise changed(path, "the list of modules")
    later = (number for number, module in listed if module > names.module)
    lines.insert(next(later, listed[-1][0] + 1), f"pub mod {names.module};")
    return "\n".join(lines) + "\n"


_MODULE = re.compile(r"(?:pub )?mod ([a-z0-9_]+);")


def with_line(path: str, text: str, macro: str, line: str) -> str:
    """Return a registry with a line more at the end of `macro! { ... }`."""
    before, begin, table = text.partition(f"\n{macro}! {{\n")
    rows, end, after = table.partition("\n}")
    if not begin or not end:
        raise changed(path, f"`{macro}! {{ ... }}`")
    return f"{before}{begin}{rows}\n    {line}{end}{after}"


def write(clone: Path, files: Mapping[str, str]) -> list[str]:
    """Write all of these files below the clone, or none, and return their paths.

    Raises `NotWrittenError`; what was there is then as it was.
    """
    with ExitStack() as drafts:
        moves = []
        for path, text in files.items():
            place = clone / path
            draft = drafts.enter_context(aside(place)) / place.name
            with writing(place):
                draft.write_text(text, encoding="utf-8")
            moves.append((draft, place))
        for draft, place in moves:
            with writing(place):
                draft.replace(place)
    return list(files)
