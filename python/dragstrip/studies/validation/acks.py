"""Comparison ACK by ACK: a run's cumulative acknowledgements against a packet capture of the kernel.

For one of the grid's cases, run without pings, a capture holds by how many segments each ACK that reached the
sender advanced. For thousands of ACKs to agree, everything that affects them must be the kernel's: delayed
and quick ACKs, how writes fill socket buffers, which segments are pushed, every loss, mark and window.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragstrip.engines.sim import simulate
from dragstrip.io.untrusted import packed_json
from dragstrip.model.recording.columns import numbers
from dragstrip.studies.validation.kernel import Json, KernelRun
from dragstrip.studies.validation.translate import scenario


@dataclass(frozen=True)
class Comparison:
    """The number of ACKs compared, and the index of the first that differs, or None."""

    acks: int
    first: int | None
    until_s: float


def compare(capture: Json, run: KernelRun) -> Comparison:
    """Run the captured case in the simulator and compare the ACKs.

    Only ACKs that both sides have are compared, because the last ones may fall on either side of the end.
    """
    spec = scenario(run)
    spec["probes"] = []
    spec["record"]["every_ack"] = True
    spec["duration_ns"] = round(capture["until_s"] * 1e9)
    upto = numbers(simulate(spec)["samples"], "bytes_acked") // capture["segment_bytes"]
    # The first row is the answer to the SYN.
    simulated_steps, kernel_steps = np.diff(upto), np.array(capture["steps"])
    common_count = min(len(kernel_steps), len(simulated_steps))
    apart = np.flatnonzero(kernel_steps[:common_count] != simulated_steps[:common_count])
    return Comparison(common_count, int(apart[0]) if apart.size else None, capture["until_s"])


def captures(folder: Path) -> list[Json]:
    """Return the captures in a folder, in the order of their names."""
    return [packed_json(file) for file in sorted(folder.glob("*.json.xz"))]
