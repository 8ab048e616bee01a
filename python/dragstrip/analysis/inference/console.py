"""The path of a flow as text and as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dragstrip.analysis.inference.estimate import Estimate
from dragstrip.analysis.inference.path import PathEstimate
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
    yield "base RTT", _estimate_text(path.base_rtt_ms, _ms)
    yield "bottleneck (IP)", _estimate_text(path.rate_bps, _rate)
    yield "queue", path.queue + (f": {path.queue_reason}" if path.queue_reason else "")
    if path.shaper_burst_bytes.value is not None:
        yield "shaper's bucket", _estimate_text(path.shaper_burst_bytes, _size)
    if path.queue != "policer":
        size = _estimate_text(path.buffer_bytes, _size)
        buffer_ms = path.buffer_ms.value
        is_bounded = buffer_ms is not None and path.buffer_ms.high is not None
        yield "buffer", f"{size}, {_ms(buffer_ms or 0.0)} at the bottleneck's rate" if is_bounded else size
    else:
        yield "policer (IP)", _estimate_text(path.policer_rate_bps, _rate)
        yield "policer's burst", _estimate_text(path.policer_burst_bytes, _size)
    yield "random loss", _estimate_text(path.random_loss, _share)
    yield "jitter", _estimate_text(path.jitter_ms, _ms)
    yield "ACK aggregation", _estimate_text(path.ack_aggregation_ms, _ms)
    window = path.receiver_window_bytes
    yield (
        "receiver's window",
        _estimate_text(window, _size) if window.value is None else f"{_size(window.value)}, {window.reason}",
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


def _ms(value: float) -> str:
    return f"{value:.4g} ms" if value >= 0.001 else "0 ms"


def _rate(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.4g} {unit}bit/s"
    return f"{value:.4g} bit/s"


def _size(value: float) -> str:
    return (
        f"{value / 1e6:.4g} MB"
        if value >= 1e6
        else f"{value / 1e3:.4g} kB"
        if value >= 1e3
        else f"{value:.0f} B"
    )


def _share(value: float) -> str:
    return f"{value * 100:.2g} %"
