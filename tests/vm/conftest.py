"""Scenarios for the tests with a real kernel."""

from __future__ import annotations

from typing import Any

from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand


def race(*algorithms: str, duration: str = "3s", **options: Any) -> dict[str, Any]:
    """A scenario: 10 Mbit/s, 40 ms, one flow per algorithm."""
    given = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 100000", "together": True, **options}
    made: dict[str, Any] = expand(compare(algorithms, duration=duration, **given))[0].scenario
    return made
