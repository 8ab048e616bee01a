"""The kind of a file or a folder that a command is given, decided in one place.

Scope: telling captures, other programs' files, scripts of tc and this program's folders apart, with the
content of a text, which is read once. Out of scope: parsing (`readers`, `scripts`, the core), and the guess
at a file that none of them reads (`guess`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from dragstrip.errors import BadInputError
from dragstrip.interop import readers, scripts
from dragstrip.io import untrusted
from dragstrip.model.recording import Recording

Kind: TypeAlias = Literal[
    "capture", "measurements", "script", "sweep", "run", "recording", "recordings", "folder"
]
"""`measurements`: a file that `readers` reads; `script`: tc commands; `sweep`, `run`, `recording`: output
folders; `recordings`: a folder of recordings; `folder`: any other; `capture`: everything else."""

_OUTPUT: tuple[tuple[str, Kind], ...] = (
    ("sweep.json", "sweep"),
    ("result.json", "run"),
    ("provenance.json", "recording"),
)
"""The file by which an output folder is recognised."""


@dataclass(frozen=True)
class Input:
    """A file or a folder, its kind, and the bytes of a text."""

    path: Path
    kind: Kind
    packed: bytes = b""
    """The bytes as stored; empty of a capture and a folder."""
    content: bytes = b""
    """The same, decompressed."""

    @property
    def is_folder(self) -> bool:
        """True for a folder of any kind."""
        return self.kind in ("sweep", "run", "recording", "recordings", "folder")

    def expect_file(self) -> None:
        """Raise `BadInputError` for a folder, with the command that reads it."""
        if self.is_folder:
            expected = "is a folder of results: dragstrip report shows it"
            if self.kind == "folder":
                expected = "is a folder, expected files in it"
            raise BadInputError("", None, expected, str(self.path))

    def recording(self) -> Recording:
        """Return the recording of `measurements`; raises `BadInputError` for a damaged file."""
        return readers.recording(self.packed, self.content, self.path)

    @property
    def text(self) -> str:
        """The text of a `script`; raises `BadInputError` if it is no UTF-8."""
        return untrusted.decoded(self.content, str(self.path))


def input_of(path: Path) -> Input:
    """Return a file or a folder with its kind, and a text with its content.

    Of a capture only the first piece is read. Raises `BadInputError` for what cannot be read or is too long.
    """
    if path.is_dir():
        return Input(path, _folder_kind(path))
    with untrusted.unknown_file(path) as file:
        begin = file.begin[: readers.LOOKED_AT]
        if readers.recognises(begin):
            return Input(path, "measurements", *file.content(untrusted.JSON_MAX, readers.KNOWN))
        if b"\0" not in begin and scripts.is_script(begin.decode("utf-8", "replace")):
            content = file.content(untrusted.DESCRIPTION_MAX, "a script of tc commands")
            return Input(path, "script", *content)
    return Input(path, "capture")


def _folder_kind(path: Path) -> Kind:
    for name, kind in _OUTPUT:
        if (path / name).is_file():
            return kind
    return "recordings" if recordings(path) else "folder"


def recordings(folder: Path) -> list[Path]:
    """Return the folders of recordings directly below a folder."""
    return [below for below in sorted(folder.iterdir()) if (below / "provenance.json").is_file()]
