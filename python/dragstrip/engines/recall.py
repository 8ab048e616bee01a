"""Recordings of slow engines, kept: what was run before on the same build is read instead of run again."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING

from dragstrip.cache import cache
from dragstrip.engines.contract import Engine, Json, Options, Progress

if TYPE_CHECKING:
    from dragstrip.recording import Recording


def recall(engine: Engine, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
    """As the engine's `run`. Sound because a run's bytes follow from scenario and build."""
    if not engine.slow:
        return engine.run(scenario, options, progress)
    from dragstrip.recording import read, write

    asked = json.dumps([engine.name, engine.build(options), scenario], sort_keys=True)
    place = cache() / "recordings" / hashlib.sha256(asked.encode()).hexdigest()[:24]
    if place.exists():
        return read(place)
    recording = engine.run(scenario, options, progress)
    with contextlib.suppress(FileExistsError, OSError):  # another worker was faster, or the disk is full
        write(recording, place)
    return recording
