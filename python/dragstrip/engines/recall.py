"""Recordings of slow engines, kept: what was run before on the same build is read instead of run again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from dragstrip.engines.contract import Engine, Json, Options, Progress, Say, quietly
from dragstrip.io.cache import cache

if TYPE_CHECKING:
    from dragstrip.model.recording import Recording

KEY = "recalled_by"
"""In the provenance of a kept recording: the SHA-256 of engine, build and scenario."""


def recall(
    engine: Engine,
    scenario: Json,
    options: Options,
    progress: Progress | None = None,
    say: Say = quietly,
) -> Recording:
    """As the engine's `run`. Sound because a run's bytes follow from scenario and build.

    A kept recording that is not what was written, or not of this run, is named (`say`) and made again.
    """
    runs_programs = any(flow["application"]["kind"] == "program" for flow in scenario["flows"])
    if not engine.slow or runs_programs:  # whose files may change, and are no part of the scenario
        return engine.run(scenario, options, progress)
    from dragstrip.io.files import DamagedError, NotWrittenError
    from dragstrip.model.recording import write

    identity = json.dumps([engine.name, engine.build(options), scenario], sort_keys=True)
    key = hashlib.sha256(identity.encode()).hexdigest()
    place = cache() / "recordings" / key[:24]
    if place.exists():
        try:
            return _stored(place, key, scenario)
        except DamagedError as error:
            say(f"warning: {DamagedError(error.path, error.reason, 'the run is made again')}")
            shutil.rmtree(place, ignore_errors=True)
    recording = engine.run(scenario, options, progress)
    recording.provenance[KEY] = key
    with contextlib.suppress(NotWrittenError, OSError):  # another worker was faster, or the disk is full
        write(recording, place)
    del recording.provenance[KEY]
    return recording


def _stored(place: Path, key: str, scenario: Json) -> Recording:
    """A kept recording; raises `DamagedError` unless it is all there and of this run."""
    from dragstrip.errors import BadInputError
    from dragstrip.io import checksums
    from dragstrip.io.files import DamagedError
    from dragstrip.model.recording import read

    if checksums.read(place) is None:
        raise DamagedError(place, f"it has no {checksums.NAME}")
    try:
        recording = read(place)
    except BadInputError as error:
        raise DamagedError(place, str(error)) from error
    if recording.provenance.pop(KEY, None) != key or recording.scenario != scenario:
        raise DamagedError(place, "it belongs to another run")
    return recording
