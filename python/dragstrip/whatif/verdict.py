"""What is found of a capture: a flow, what others would do in its place, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip.inference.path import PathEstimate
from dragstrip.scenario.paths import PAYLOAD_BYTES
from dragstrip.whatif.fit import Fit
from dragstrip.whatif.identify import Answer
from dragstrip.whatif.network import Known, Options
from dragstrip.whatif.seen import Seen


@dataclass(frozen=True)
class Flow:
    """A flow of a capture with everything that the capture shows of it."""

    file: Path
    said: Mapping[str, Any]
    """As `inspect` says it."""
    capture: Seen
    path: PathEstimate
    full_bytes: int
    """Data of a full segment."""
    others: int
    """Flows beside it."""
    events: Sequence[Mapping[str, Any]]
    """Retransmissions with their verdicts; times in seconds from the beginning."""


@dataclass(frozen=True)
class Prediction:
    """What an algorithm does on the path: on the path as it was taken, and on those that it may be."""

    algorithm: str
    runs: tuple[Seen, ...]
    """The first is that on the path as it was taken."""

    def of(self, figure: str) -> tuple[float, float, float] | None:
        """Return a figure on the path as it was taken, its least and its greatest; None if it is unknown."""
        values = [value for run in self.runs if (value := figures(run)[figure]) is not None]
        first = figures(self.runs[0])[figure]
        return None if first is None else (first, min(values), max(values))


@dataclass(frozen=True)
class Verdict:
    """Everything that `whatif` found."""

    flow: Flow
    known: Known
    algorithm: str
    answer: Answer | None
    """None where the algorithm was given."""
    capture: Seen
    """What of the capture is explained: all of it, or the beginning of a long one."""
    run: Seen
    fit: Fit
    reasons: tuple[str, ...]
    options: Options
    """The path as options of `compare`."""
    changed: Options
    """What was asked to be otherwise."""
    predictions: tuple[Prediction, ...]
    refused: bool
    """The path does not explain the capture, so that nothing was raced on it."""


def figures(run: Seen) -> dict[str, float | None]:
    """Return what is compared of a run."""
    trips = run.rtt_quantiles_ms or (None, None, None)
    segments = run.delivered_bytes / PAYLOAD_BYTES + run.retransmitted
    return {
        "goodput_bps": run.goodput_bps,
        "rtt_ms_p5": trips[0],
        "rtt_ms_p50": trips[1],
        "rtt_ms_p95": trips[2],
        "retransmitted_share": run.retransmitted / segments if segments else 0.0,
    }


def flow_name(flow: Flow, addresses: bool) -> str:
    """Return a flow's name: its ends, or only its number."""
    return str(flow.said["label"]) if addresses else f"flow {flow.said['flow']}"
