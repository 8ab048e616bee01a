"""Runs of the simulator on an inferred path, several at once; no recording is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dragstrip.analysis.whatif import flow_trace, network
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.network import Options
from dragstrip.display.progress import ProgressMessages
from dragstrip.engines.contract import Progress
from dragstrip.engines.registry import DEFAULT, named
from dragstrip.experiment.comparison import COMMAND_LINE, reworded
from dragstrip.experiment.expand import expand
from dragstrip.model.scenario.paths import IP_BYTES
from dragstrip.runs import run_parallel

BITS_MAX = 20e9
"""Bits that one run may carry: half a second or so of processor time."""


@dataclass(frozen=True)
class FlowRun:
    """One flow on a path."""

    algorithm: str
    options: Options
    mtu_bytes: int = IP_BYTES


class Bench:
    """Makes runs on all cores and counts them."""

    def __init__(self) -> None:
        self.runs_done = 0

    def flow_traces(self, runs: Sequence[FlowRun]) -> list[FlowTrace]:
        """Return the trace of each run's flow, in order; raises `BadInputError` for an impossible run."""
        scenarios = []
        for run in runs:
            described = network.experiment(run.options, [run.algorithm], mtu_bytes=run.mtu_bytes)
            scenarios.append(reworded(lambda race=described: expand(race)[0].scenario, COMMAND_LINE))  # type: ignore[misc]
        return run_parallel(_flow_trace, scenarios, finished=self._count)

    def _count(self, _index: int, _trace: FlowTrace) -> None:
        self.runs_done += 1


def _flow_trace(scenario: dict[str, object], progress: Progress) -> FlowTrace:
    return flow_trace.of_recording(named(DEFAULT).run(scenario, {}, progress))


@contextmanager
def bench(task: str, quiet: bool) -> Iterator[Bench]:
    """Yield a bench; if it is in use for longer than two seconds, report its task and the runs done."""
    messages = ProgressMessages()
    workers = Bench()
    try:
        if not quiet:
            messages.doing(lambda: f"{task}: {workers.runs_done} runs done")
        yield workers
    finally:
        messages.close()
