"""Runs of the simulator on an inferred path, several at once; no recording is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from dragstrip.analysis.whatif import flow_trace, network
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.network import Options
from dragstrip.display.progress import ProgressMessages
from dragstrip.engines.registry import DEFAULT, named
from dragstrip.experiment.comparison import COMMAND_LINE, reworded
from dragstrip.experiment.expand import expand
from dragstrip.runs.local import cores

BITS_MAX = 20e9
"""Bits that one run may carry: half a second or so of processor time."""


@dataclass(frozen=True)
class FlowRun:
    """One flow on a path."""

    algorithm: str
    options: Options


class Bench:
    """Threads on which runs are made; the core releases the interpreter's lock while it simulates."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self.runs_done = 0

    def flow_traces(self, runs: Sequence[FlowRun]) -> list[FlowTrace]:
        """Return what the flow of each run did, in order; raises `BadInputError` for one that cannot be."""
        scenarios = []
        for run in runs:
            described = network.experiment(run.options, [run.algorithm])
            scenarios.append(reworded(lambda race=described: expand(race)[0].scenario, COMMAND_LINE))  # type: ignore[misc]
        return list(self._threads.map(self._flow_trace, scenarios))

    def _flow_trace(self, scenario: dict[str, object]) -> FlowTrace:
        trace = flow_trace.of_recording(named(DEFAULT).run(scenario, {}))
        self.runs_done += 1
        return trace


@contextmanager
def bench(task: str, quiet: bool) -> Iterator[Bench]:
    """Provide threads; if they work for longer than two seconds, say what for and how many runs are done."""
    messages = ProgressMessages()
    with ThreadPoolExecutor(cores(), thread_name_prefix="whatif") as threads:
        workers = Bench(threads)
        try:
            if not quiet:
                messages.doing(lambda: f"{task}: {workers.runs_done} runs done")
            yield workers
        finally:
            messages.close()
