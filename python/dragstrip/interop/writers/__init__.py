"""Writers of recordings as other programs' files, without anything that was not recorded.

Belongs here: a module per format, with a function from a recording and the stem of a file's name to files:
name → bytes. Does not belong here: writing to the disk, except in `export`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.interop.writers import flent, iperf3, ns3, perfetto, qlog, tables
from dragstrip.io import files
from dragstrip.io.untrusted import json_object
from dragstrip.model.recording import CAPTURES, Recording, read

Files: TypeAlias = dict[str, bytes]
FORMATS: Mapping[str, Callable[[Recording, str], Files]] = {
    "csv": tables.write,
    "flent": flent.write,
    "iperf3": iperf3.write,
}
PACKETS: Mapping[str, Callable[[Recording, str, Path], Files]] = {
    "ns3": ns3.write,
    "perfetto": perfetto.write,
    "qlog": qlog.write,
}
"""Formats that show packets, which are read from the captures of a run; only ns-3's needs them."""
NAMES = sorted([*FORMATS, *PACKETS])


def export(run: Path, to: str, out: Path) -> list[Path]:
    """Write a recording, or all of an output folder, in the format `to` into `out`, and return the files.

    Raises `BadInputError` for an unknown format, a folder without recordings, and an existing file, and
    `DragstripError` if the format can show no flow of the run.
    """
    if to not in NAMES:
        raise BadInputError("--to", to, f"one of {' '.join(NAMES)}", "command line")
    outputs: Files = {}
    for folder in _recordings(run):
        recording, stem = read(folder), folder.resolve().name
        if to in PACKETS:
            outputs |= PACKETS[to](recording, stem, folder / CAPTURES)
        else:
            outputs |= FORMATS[to](recording, stem)
    if not outputs:
        raise DragstripError(f"{run}: no flow that {to} could show")
    for name in outputs:
        if (out / name).exists():
            raise BadInputError("--out", str(out / name), "a file that does not exist yet", "command line")
    with files.adding(out) as draft:
        for name, content in outputs.items():
            (draft / name).write_bytes(content)
    return [out / name for name in outputs]


def _recordings(run: Path) -> list[Path]:
    """Return the folder itself, or those that its `result.json` names."""
    if (run / "provenance.json").exists():
        return [run]
    result = run / "result.json"
    if not result.exists():
        raise BadInputError(
            "RUN", str(run), "the folder of a recording, or the output folder of a run", "command line"
        )
    lines = json_object(result).get("runs")
    recordings_by_name = (
        [line.get("recording") for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []
    )
    folders = [run / "runs" / Path(name).name for name in recordings_by_name if isinstance(name, str)]
    if not folders:
        raise BadInputError("runs", None, "names no recording", str(result))
    return folders
