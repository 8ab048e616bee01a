"""The recordings of a run that was interrupted, as a result document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.model.recording import read


def document(out: Path) -> dict[str, Any]:
    """Return the result document of an output folder without one, from the recordings in it.

    Its runs are in the order of their numbers; claims are not graded, and runs that failed are not known.
    Raises `BadInputError` for a folder without a recording, and for a recording that is damaged.
    """
    from dragstrip.results.measures import summarise

    folders = sorted((file.parent for file in out.glob("runs/[0-9]*/provenance.json")), key=_number)
    if not folders:
        raise BadInputError("", None, "is the folder of a run without a finished recording", str(out))
    recordings = [(folder, read(folder)) for folder in folders]
    lines = [
        {
            "scenario": recording.scenario["name"],
            "engine": recording.provenance["engine"],
            "seed": recording.scenario["seed"],
            "recording": str(folder.relative_to(out)),
            **summarise(recording),
        }
        for folder, recording in recordings
    ]
    return {
        "version": _core.__version__,
        "experiment": str(recordings[0][1].provenance.get("experiment", "")),
        "runs": lines,
        "claims": [],
        "flow_tables": [],
        "failed": [],
    }


def _number(folder: Path) -> tuple[int, str]:
    digits, _, name = folder.name.partition("-")
    return int(digits) if digits.isdecimal() else 0, name
