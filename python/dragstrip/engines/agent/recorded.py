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
from dragstrip.recording import Recording

Answer = tuple[Json, bytes | memoryview]
"""Its head and the columns behind it."""


@dataclass(frozen=True)
class Begun:
    """When a run began: by the calendar, and on a clock that does not jump."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock_s: float = field(default_factory=time.monotonic)


def recorded(engine: str, scenario: Json, answer: Answer, begun: Begun, kernel: Json, own: Json) -> Recording:
    """The recording with its provenance.

    `kernel` is what the engine knows of it beside its release, `own` what only this engine has to say.
    """
    head, raw = answer
    wall_s = time.monotonic() - begun.clock_s
    seen = head["run"]
    provenance = {
        "engine": engine,
        "version": _core.__version__,
        "seed": scenario["seed"],
        "started": begun.at.isoformat(timespec="seconds"),
        "recording_sha256": head["sha256"],
        "kernel": {"release": seen.pop("kernel"), **kernel},
        **own,
        "wall_s": round(wall_s, 3),
        "verified": seen,
    }
    return Recording(scenario, tables_of(head, memoryview(raw)), provenance)


def judged(recording: Recording, whose: str, *, strict: bool) -> Recording:
    """The same with how `whose` time limited it. Raises `DragstripError` if it did and may not."""
    seen = recording.provenance["verified"]
    served = services(recording.scenario, recording.tables["queues"])
    found = limits(served, seen)
    if strict and found:
        engine = recording.provenance["engine"]
        raise DragstripError(f"engine {engine}: {whose} limited this run: {'; '.join(found)}")
    seen.update(service=served, limits=found)
    return recording
