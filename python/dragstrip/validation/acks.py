"""ACK for ACK: cumulative acknowledgements of a run against a packet capture of the kernel.

A capture holds, for one of the grid's cases run without pings, by how many segments each ACK that reached the
sender advanced. Everything that decides this must be the kernel's for thousands of ACKs to agree: delayed and
quick ACKs, how writes fill socket buffers, which segments are pushed, every loss, mark and window.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragstrip.engines.sim import simulate
from dragstrip.outside import packed_json
from dragstrip.recording.columns import numbers
from dragstrip.validation.kernel import Json, KernelRun
from dragstrip.validation.translate import scenario


@dataclass(frozen=True)
class Comparison:
    """How many ACKs were compared, and the number of the first that differs, if one does."""

    acks: int
    first: int | None
    until_s: float


def compare(capture: Json, run: KernelRun) -> Comparison:
    """Runs the captured case in the simulator; the last ACKs may fall on either side of the end."""
    spec = scenario(run)
    spec["probes"] = []
    spec["record"]["every_ack"] = True
    spec["duration_ns"] = round(capture["until_s"] * 1e9)
    upto = numbers(simulate(spec)["samples"], "bytes_acked") // capture["segment_bytes"]
    # The first row is the answer to the SYN.
    ours, theirs = np.diff(upto), np.array(capture["steps"])
    both = min(len(theirs), len(ours))
    apart = np.flatnonzero(theirs[:both] != ours[:both])
    return Comparison(both, int(apart[0]) if apart.size else None, capture["until_s"])


def captures(folder: Path) -> list[Json]:
    """The captures in a folder, in the order of their names."""
    return [packed_json(file) for file in sorted(folder.glob("*.json.xz"))]
