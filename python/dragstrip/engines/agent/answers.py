"""The recording of a run, made from the agent's answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dragstrip import _core
from dragstrip.engines.agent.limits import limits, services
from dragstrip.engines.agent.tables import tables_of
from dragstrip.engines.contract import Json
from dragstrip.errors import DragstripError
from dragstrip.model.recording import Recording

Answer = tuple[Json, bytes | memoryview]
"""Head of the agent's answer, and the columns behind it."""


@dataclass(frozen=True)
class RunStart:
    """Start of a run: by the calendar, and on a clock that does not jump."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock_s: float = field(default_factory=time.monotonic)


def recording_of(
    engine: str, scenario: Json, answer: Answer, start: RunStart, kernel: Json, engine_facts: Json
) -> Recording:
    """The recording with its provenance.

    `kernel` is what the engine knows of it beside its release, `engine_facts` the engine's own entries.
    """
    head, raw = answer
    wall_s = time.monotonic() - start.clock_s
    run_report = head["run"]
    provenance = {
        "engine": engine,
        "version": _core.__version__,
        "seed": scenario["seed"],
        "started": start.at.isoformat(timespec="seconds"),
        "recording_sha256": head["sha256"],
        "kernel": {"release": run_report.pop("kernel"), **kernel},
        **engine_facts,
        "wall_s": round(wall_s, 3),
        "verified": run_report,
    }
    return Recording(scenario, tables_of(head, memoryview(raw)), provenance)


def with_limits(recording: Recording, limiter: str, *, strict: bool) -> Recording:
    """Adds the limits that the `limiter` set to a run. Raises `DragstripError` for any if `strict`."""
    run_report = recording.provenance["verified"]
    served = services(recording.scenario, recording.tables["queues"])
    causes = limits(served, run_report)
    if strict and causes:
        engine = recording.provenance["engine"]
        raise DragstripError(f"engine {engine}: {limiter} limited this run: {'; '.join(causes)}")
    run_report.update(service=served, limits=causes)
    return recording
