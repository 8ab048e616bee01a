"""The path of a flow as text and as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dragstrip.analysis.inference.estimate import Estimate
from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.display.quantity import milliseconds, percent, rate, size
from dragstrip.display.terminal import wrapped
from dragstrip.io.untrusted import one_line

NAME = 18
"""Columns of a property's name."""
PLACES = {"queue": "behind the bottleneck's queue"}
"""Places of captures in words, where the name of `PathEstimate.place` alone does not say it."""


def document(paths: Sequence[PathEstimate]) -> list[dict[str, Any]]:
    """Return paths as JSON has them: the fields of `PathEstimate`."""
    return [asdict(path) for path in paths]


def text(paths: Sequence[PathEstimate]) -> str:
    """Return paths for a terminal of 80 columns: a line for each property, longer ones folded."""
    return "\n\n".join("\n".join(_lines(path)) for path in paths)


def _lines(path: PathEstimate) -> Iterator[str]:
    yield f"path of {one_line(path.flow)} (capture at: {PLACES.get(path.place, path.place)})"
    yield from lines(path)


def lines(path: PathEstimate) -> Iterator[str]:
    """Yield the properties of a path, folded to 80 columns, without the flow's name."""
    for name, value_text in [*properties(path), *(("note", note) for note in path.notes)]:
        yield from wrapped(value_text, f"  {name:<{NAME}}")


def properties(path: PathEstimate) -> Iterator[tuple[str, str]]:
    """Yield each property of a path with what is known of it."""
    yield "base RTT", _estimate_text(path.base_rtt_ms, milliseconds)
    yield "bottleneck (IP)", _estimate_text(path.rate_bps, rate)
    yield "queue", path.queue + (f": {path.queue_reason}" if path.queue_reason else "")
    if path.shaper_burst_bytes.value is not None:
        yield "shaper's bucket", _estimate_text(path.shaper_burst_bytes, size)
    if path.queue != "policer":
        buffer_text = _estimate_text(path.buffer_bytes, size)
        buffer_ms = path.buffer_ms.value
        is_bounded = buffer_ms is not None and path.buffer_ms.high is not None
        yield (
            "buffer",
            f"{buffer_text}, {milliseconds(buffer_ms)} at the bottleneck's rate"
            if is_bounded
            else buffer_text,
        )
    else:
        yield "policer (IP)", _estimate_text(path.policer_rate_bps, rate)
        yield "policer's burst", _estimate_text(path.policer_burst_bytes, size)
    yield "random loss", _estimate_text(path.random_loss, percent)
    yield "jitter", _estimate_text(path.jitter_ms, milliseconds)
    yield "ACK aggregation", _estimate_text(path.ack_aggregation_ms, milliseconds)
    window = path.receiver_window_bytes
    yield (
        "receiver's window",
        _estimate_text(window, size) if window.value is None else f"{size(window.value)}, {window.reason}",
    )


def _estimate_text(estimate: Estimate, to_text: Callable[[float], str]) -> str:
    low = None if estimate.low is None else to_text(estimate.low)
    high = None if estimate.high is None else to_text(estimate.high)
    if estimate.value is None:
        bounds = f" (between {low} and {high})" if low and high else f" (at least {low})" if low else ""
        return f"cannot tell: {estimate.reason}{bounds}"
    if estimate.reason and high and not low:
        return f"at most {high}: {estimate.reason}"
    if estimate.reason and low and not high:
        return f"at least {low}: {estimate.reason}"
    value = to_text(estimate.value)
    if low == value == high:
        return value
    if low is None or high is None:
        return f"{value} (at least {low})" if low else f"{value} (at most {high})" if high else value
    return f"{value} ({low} to {high})"
