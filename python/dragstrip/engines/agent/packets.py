"""Captures by the agent (crates/agent/src/side/capture.rs): asked for, taken from its answer, written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dragstrip import _core
from dragstrip.engines.agent.answers import Answer
from dragstrip.engines.capture import comment, names
from dragstrip.engines.contract import Capture, Json

if TYPE_CHECKING:
    from dragstrip.model.recording import Recording


@dataclass(frozen=True)
class Packets:
    """Captures requested of one run, and the folder for the files."""

    engine: str
    scenario: Json
    capture: Capture
    folder: Path

    def request(self) -> Json:
        """The request as the agent takes it."""
        return {
            "points": list(self.capture.points),
            "snaplen": self.capture.snaplen,
            "program": f"dragstrip {_core.__version__}",
            "comment": comment(self.engine, self.scenario),
        }

    def files(self) -> dict[str, Path]:
        """The files by their hosts and links."""
        return {point: self.folder / name for point, name in names(self.capture.points).items()}

    def write(self, answer: Answer) -> Json:
        """Writes the files; for provenance, how many packets of each are missing, if any are."""
        head, raw = answer
        files = self.files()
        for file in head["captures"]:
            content = bytes(raw[file["offset"] : file["offset"] + file["bytes"]])
            files[file["point"]].write_bytes(content)
        lacking = {file["point"]: file["missing"] for file in head["captures"] if file["missing"]}
        return {"captures_missing": lacking} if lacking else {}


def missing(recording: Recording) -> list[str]:
    """A line for each capture that lacks packets."""
    name = recording.scenario["name"]
    return [
        f"warning: {name}: the capture at {point} lacks {count} packets: no room for them "
        "(docs/how-to/captures.md)"
        for point, count in recording.provenance.get("captures_missing", {}).items()
    ]
