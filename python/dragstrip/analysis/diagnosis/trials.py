"""Short runs on the simulator: a path as it was found, and with one change, with the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from dragstrip.display.progress import ProgressMessages
from dragstrip.errors import DragstripError
from dragstrip.experiment.comparison import COMMAND_LINE, command, compare, reworded
from dragstrip.experiment.race import OPTIONS
from dragstrip.io.files import scratch
from dragstrip.model.recording import read
from dragstrip.runs import Outcome, Watcher
from dragstrip.studies.execution.runner import execute_all, plan

BITS = 3e9
"""Bits that a run may carry, so that a diagnosis takes seconds."""
BITS_MAX = 30e9
"""Bits that a run may carry at most, however long its round trips are."""
DURATION_MAX_S = 20.0
DURATION_MIN_S = 1.0
ROUND_TRIPS_MIN = 150
"""Idle round trips of the shortest run, unless that is longer than `DURATION_MAX_S`."""
SEED = "1"


@dataclass(frozen=True)
class TrialSetup:
    """Setup of one run: options of `compare`, and its flows."""

    options: tuple[tuple[str, Any], ...]
    algorithm: str
    flows: int

    @classmethod
    def of(cls, options: Mapping[str, Any], algorithm: str, flows: int) -> TrialSetup:
        """Return a set-up that can be compared and hashed."""
        fixed = {
            name: tuple(sorted(value.items())) if isinstance(value, Mapping) else _fixed(value)
            for name, value in options.items()
        }
        return cls(tuple(sorted(fixed.items())), algorithm, flows)

    @property
    def race(self) -> dict[str, Any]:
        """The options of `compare`, by name."""
        kinds = {option.name: option.takes for option in OPTIONS}
        return {
            name: dict(value)
            if kinds[name] == "pairs"
            else list(value)
            if isinstance(value, tuple)
            else value
            for name, value in self.options
        }

    @property
    def word(self) -> str:
        """The flows, as `compare` takes them."""
        return self.algorithm if self.flows == 1 else f"{self.algorithm}*{self.flows}"

    @property
    def command(self) -> str:
        """The command line that repeats the run."""
        return command([self.word], self.race)


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class RunFigures:
    """Results of a run: of all flows together, and of pings through the bottleneck."""

    goodput_bps: float
    ping_p50_ms: float | None
    ping_p95_ms: float | None
    retransmitted_share: float
    least_rtt_ms: float | None
    """The least round trip of flows and pings."""
    summary: Mapping[str, Any]

    def document(self) -> dict[str, float | None]:
        """Return the figures as JSON."""
        return {
            "goodput_bps": self.goodput_bps,
            "ping_p50_ms": self.ping_p50_ms,
            "ping_p95_ms": self.ping_p95_ms,
            "retransmitted_share": self.retransmitted_share,
        }


def duration(rate_bps: float, rtt_ms: float, measured_s: float | None = None) -> str:
    """Return how long a run lasts, as `compare` takes it: as long as what was measured, if that is short."""
    least = min(DURATION_MAX_S, max(DURATION_MIN_S, ROUND_TRIPS_MIN * rtt_ms / 1e3))
    least = min(least, max(DURATION_MIN_S, BITS_MAX / rate_bps))
    seconds = min(DURATION_MAX_S, max(least, BITS / rate_bps))
    if measured_s is not None:
        seconds = min(seconds, max(DURATION_MIN_S, measured_s))
    return f"{round(seconds)}s"


def check(setup: TrialSetup) -> None:
    """Raise `BadInputError`, in words of the command line, for a set-up that cannot be run."""
    compare([setup.word], source=COMMAND_LINE, **setup.race)


def run(
    setups: Mapping[str, TrialSetup], out: Path | None, quiet: bool, report: bool = False
) -> dict[str, RunFigures]:
    """Run every set-up, each into the folder of its name below `out`, and return what they showed.

    Raises `BadInputError` for a set-up that cannot be run, and `DragstripError` if a run fails.
    """
    if not setups:
        return {}
    plans = {}
    for name, setup in setups.items():
        described = compare([setup.word], source=COMMAND_LINE, **setup.race)
        plans[name] = reworded(partial(plan, described), COMMAND_LINE)
    with ExitStack() as stack:
        folder = out or stack.enter_context(scratch("diagnosis")) / "runs"
        watcher = stack.enter_context(_Watching(len(setups), quiet))
        documents = execute_all(plans, folder, watcher=watcher, command="dragstrip diagnose", report=report)
        for name, document in documents.items():
            if not document["runs"]:
                raise DragstripError(f"{name}: {document['failed'][0]['reason']}")
        return {name: _measured(document["runs"][0], folder / name) for name, document in documents.items()}


def _measured(summary: Mapping[str, Any], folder: Path) -> RunFigures:
    recording = read(folder / summary["recording"])
    trips = [pc.min(recording[table]["rtt_ns"]).as_py() for table in ("rtts", "probes")]
    least = min((trip for trip in trips if trip is not None), default=None)
    flows: Sequence[Mapping[str, Any]] = summary["flows"]
    pings = summary["probes"][0]["rtt_ms"] if summary["probes"] else {}
    segments_sent = sum(flow["segments_sent"] or 0 for flow in flows)
    again = sum(flow["retransmits"] or 0 for flow in flows)
    return RunFigures(
        goodput_bps=sum(flow["goodput_bps"] or 0.0 for flow in flows),
        ping_p50_ms=pings.get("p50"),
        ping_p95_ms=pings.get("p95"),
        retransmitted_share=again / segments_sent if segments_sent else 0.0,
        least_rtt_ms=None if least is None else least / 1e6,
        summary=summary,
    )


class _Watching(Watcher):
    """Prints how many runs have ended, once that takes longer than two seconds."""

    def __init__(self, runs: int, quiet: bool) -> None:
        self.runs_done = 0
        self.messages = ProgressMessages()
        if not quiet:
            self.messages.doing(lambda: f"simulating: {self.runs_done} of {runs} runs done")

    def finished(self, index: int, outcome: Outcome) -> None:
        """Count a run that has ended."""
        del index, outcome
        self.runs_done += 1

    def __enter__(self) -> _Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self.messages.close()
