"""`dragstrip shell` in real time: a line at the bottom of the terminal about the path, once a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.display import quantity


def line(state: Mapping[str, Any]) -> str:
    """Return how things stand in a line: rates, queues, drops and marks of the last second, and an RTT."""
    parts = [_way(name, way) for name, way in zip(("down", "up"), state["ways"], strict=True)]
    if state["rtt_ns"] is not None:
        parts.append(f"RTT {state['rtt_ns'] / 1e6:.1f} ms")
    return " | ".join([f"{state['time_ns'] / 1e9:.0f} s", *parts])


def _way(name: str, way: Mapping[str, Any]) -> str:
    words = [f"{name} {quantity.rate(way['rate_bps'])}", f"queue {quantity.size(way['backlog_bytes'])}"]
    words += [f"{verb} {way[key]}" for key, verb in (("drops", "dropped"), ("marks", "marked")) if way[key]]
    return ", ".join(words)
