"""The path of a flow as a capture shows it: rate, round-trip time, buffer, queue, with intervals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A quantity with an interval; `value` is None where the capture cannot tell, and `reason` says why."""

    value: float | None
    low: float | None
    high: float | None
    reason: str = ""


@dataclass(frozen=True)
class PathEstimate:
    """What a capture shows of the path of one flow."""

    file: str
    flow: str
    place: str
    base_rtt_ms: Estimate
    rate_bps: Estimate
    rate_over_time: tuple[tuple[float, float], ...]
    buffer_bytes: Estimate
    buffer_ms: Estimate
    queue: str
    queue_reason: str
    policer_rate_bps: Estimate
    policer_burst_bytes: Estimate
    random_loss: Estimate
    jitter_ms: Estimate
    ack_aggregation_ms: Estimate
    receiver_window_bytes: Estimate
    notes: tuple[str, ...]
