"""Recordings as the files of other programs, with what those can say and nothing that was not recorded.

A format is a function from a recording and a stem to files: name → bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from dragstrip import files
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.exports import flent, iperf3, ns3, qlog, tables
from dragstrip.outside import json_object
from dragstrip.recording import CAPTURES, Recording, read

Files: TypeAlias = dict[str, bytes]
FORMATS: Mapping[str, Callable[[Recording, str], Files]] = {
    "csv": tables.write,
    "flent": flent.write,
    "iperf3": iperf3.write,
    "qlog": qlog.write,
}
PACKETS: Mapping[str, Callable[[Recording, str, Path], Files]] = {"ns3": ns3.write}
"""Of packets, which are in the captures of a run."""
NAMES = sorted([*FORMATS, *PACKETS])


def export(run: Path, to: str, out: Path) -> list[Path]:
    """Writes a recording, or all of an output folder, in another format into `out`; gives the files.

    Raises `BadInputError` for a format that is none, a folder without recordings, and a file that is there.
    """
    if to not in NAMES:
        raise BadInputError("--to", to, f"one of {' '.join(NAMES)}", "command line")
    made: Files = {}
    for folder in _recordings(run):
        recording, stem = read(folder), folder.resolve().name
        if to in PACKETS:
            made |= PACKETS[to](recording, stem, folder / CAPTURES)
        else:
            made |= FORMATS[to](recording, stem)
    if not made:
        raise DragstripError(f"{run}: no flow that {to} could show")
    for name in made:
        if (out / name).exists():
            raise BadInputError("--out", str(out / name), "a file that does not exist yet", "command line")
    files.make_folder(out)
    for name, content in made.items():
        files.write_whole(out / name, lambda draft, content=content: draft.write_bytes(content))  # type: ignore[misc]
    return [out / name for name in made]


def _recordings(run: Path) -> list[Path]:
    """The folder itself, or those that its `result.json` names."""
    if (run / "provenance.json").exists():
        return [run]
    result = run / "result.json"
    if not result.exists():
        raise BadInputError(
            "RUN", str(run), "the folder of a recording, or the output folder of a run", "command line"
        )
    lines = json_object(result).get("runs")
    named = (
        [line.get("recording") for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []
    )
    folders = [run / "runs" / Path(name).name for name in named if isinstance(name, str)]
    if not folders:
        raise BadInputError("runs", None, "names no recording", str(result))
    return folders
