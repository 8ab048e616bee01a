"""Results for a capture: a flow, predictions for other algorithms in its place, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.analysis.whatif.fit import Fit
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.identify import Answer
from dragstrip.analysis.whatif.network import CandidatePaths, Options
from dragstrip.model.scenario.paths import PAYLOAD_BYTES


@dataclass(frozen=True)
class FlowEvidence:
    """A flow of a capture with everything that the capture shows of it."""

    file: Path
    inspect_row: Mapping[str, Any]
    """As `inspect` says it."""
    capture: FlowTrace
    path: PathEstimate
    full_bytes: int
    """Data of a full segment."""
    other_flows: int
    """Flows beside it."""
    events: Sequence[Mapping[str, Any]]
    """Retransmissions with their verdicts; times in seconds from the beginning."""
    place: str
    """Where the capture was taken: a key of `identify.PLACES`."""
    is_moved: bool = False
    """The capture was taken elsewhere than at the sender, and the rest is what the sender would have seen."""


@dataclass(frozen=True)
class Prediction:
    """Runs of an algorithm on the path: on the path as it was taken, and on those that it may be."""

    algorithm: str
    runs: tuple[FlowTrace, ...]
    """The first is that on the path as it was taken."""

    def of(self, figure: str) -> tuple[float, float, float] | None:
        """Return a figure on the path as it was taken, its least and its greatest; None if it is unknown."""
        values = [value for run in self.runs if (value := figures(run)[figure]) is not None]
        first = figures(self.runs[0])[figure]
        return None if first is None else (first, min(values), max(values))


@dataclass(frozen=True)
class Verdict:
    """Everything that `whatif` found."""

    flow: FlowEvidence
    network: CandidatePaths
    algorithm: str
    answer: Answer | None
    """None where the algorithm was given."""
    capture: FlowTrace
    """Part of the capture that is explained: all of it, or the beginning of a long one."""
    run: FlowTrace
    fit: Fit
    reasons: tuple[str, ...]
    options: Options
    """The path as options of `compare`."""
    changed: Options
    """Options by which the user changes the path."""
    predictions: tuple[Prediction, ...]
    refused: bool
    """The path does not explain the capture, so that nothing was raced on it."""


def figures(run: FlowTrace) -> dict[str, float | None]:
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


def flow_name(flow: FlowEvidence, addresses: bool) -> str:
    """Return a flow's name: its ends, or only its number."""
    return str(flow.inspect_row["label"]) if addresses else f"flow {flow.inspect_row['flow']}"
