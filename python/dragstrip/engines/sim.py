"""The built-in simulator as an engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.recording import Recording, from_core


def simulate(scenario: dict[str, Any], progress: Callable[[int], object] | None = None) -> Recording:
    """Runs one scenario in this process.

    `progress` is told the simulated nanoseconds about once a simulated second; if it answers `False` the
    run ends there. Raises `BadInputError` for a scenario that cannot be run. Other threads go on meanwhile.
    """
    started = datetime.now(UTC)
    try:
        outcome = _core.run(json.dumps(scenario), progress)
    except _core.InputError as error:
        field, value, expected = error.args
        raise BadInputError(field, value or None, expected) from None
    provenance = {
        "engine": "sim",
        "version": _core.__version__,
        "seed": scenario["seed"],
        "started": started.isoformat(timespec="seconds"),
        "recording_sha256": outcome["sha256"],
    }
    return Recording(scenario, from_core(outcome["tables"]), provenance)
