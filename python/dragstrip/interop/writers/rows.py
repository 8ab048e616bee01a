"""Parts of a recording that several formats need: flows, their rows, and the start time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dragstrip.model.recording import Recording

Row: TypeAlias = dict[str, Any]

EPOCH_S = 1_000_000_000
"""Time of second 0 of a run, as in captures: 2001-09-09T01:46:40Z. A recording does not depend on the time of
day."""


def tcp_flows(recording: Recording) -> list[Row]:
    """Return the TCP flows, in the scenario's order."""
    return [row for row in recording["flows"].to_pylist() if row["protocol"] == "tcp"]


def of_flow(recording: Recording, table: str, flow: int) -> list[Row]:
    """Return a table's rows of one flow."""
    table_rows = recording[table]
    rows: list[Row] = table_rows.filter(pc.equal(table_rows["flow"], pa.scalar(flow))).to_pylist()
    return rows


def at_ends(samples: list[Row], step_ns: int) -> Iterator[Row]:
    """Yield the last sample of each interval that has one, with `time_ns` set to the interval's end."""
    last: Row | None = None
    for sample in samples:
        end = -(-sample["time_ns"] // step_ns) * step_ns
        if last is not None and last["time_ns"] != end:
            yield last
        last = {**sample, "time_ns": end}
    if last is not None:
        yield last


def about(recording: Recording) -> str:
    """Return one line that identifies the run."""
    provenance = recording.provenance
    words = ("engine", "version", "seed", "recording_sha256")
    return "Dragstrip: " + ", ".join(f"{word} {provenance[word]}" for word in words if word in provenance)


def word(name: str) -> str:
    """Return a label as part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).lstrip(".") or "flow"
