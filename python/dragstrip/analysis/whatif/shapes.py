"""Distances between two flows on one path, by the decisions of a congestion control.

Each measure compares one aspect of both flows; none needs their clocks to agree for longer than the beginning
lasts, because a small error of the path shifts every later loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dragstrip.analysis.whatif.flow_trace import FloatArray, FlowTrace
from dragstrip.model.scenario.paths import PAYLOAD_BYTES

SHARES = np.linspace(2, 98, 25)
"""Percentiles at which distributions are compared."""
POINTS = 240
"""Points to which a flow is reduced before its course is compared."""
BAND = 0.12
"""Share of the duration by which the course of one flow may run ahead of the other's."""
BANDS = 14
"""Bands of frequencies, equally wide on a logarithmic scale."""
PHASE_POINTS = 12
"""Points of the mean course between two losses."""
EPOCH_ROUND_TRIPS = 3.0
"""Retransmissions less than so many round trips apart are of one loss event."""
START_ROUND_TRIPS = 60.0
"""Round trips of the beginning, which is compared with both clocks as they are."""


@dataclass(frozen=True)
class Shape:
    """A flow reduced to what is compared."""

    trace: FlowTrace
    base_ms: float
    """The idle round-trip time of the path."""
    full_bytes: int = PAYLOAD_BYTES
    """Data of a full segment."""

    @cached_property
    def queueing(self) -> FloatArray:
        """The logarithm of the RTT over the idle one, in equal steps over the whole duration."""
        return self._course(self.trace.rtt_at_s, np.log(np.maximum(self.trace.rtt_ms, 1e-3) / self.base_ms))

    @cached_property
    def flight(self) -> FloatArray:
        """The logarithm of the bytes in flight, likewise."""
        return self._course(self.trace.at_s, np.log(np.maximum(self.trace.flight_bytes, self.full_bytes)))

    @cached_property
    def queueing_shares(self) -> FloatArray:
        """Percentiles of `queueing`."""
        return np.percentile(self.queueing, SHARES)

    @cached_property
    def flight_shares(self) -> FloatArray:
        """Percentiles of `flight`."""
        return np.percentile(self.flight, SHARES)

    @cached_property
    def start(self) -> FloatArray:
        """The RTT over the idle one in the first round trips, in 80 steps."""
        end = min(self.trace.duration_s, START_ROUND_TRIPS * self.base_ms / 1e3)
        at = np.linspace(0.0, end, 80)
        return np.interp(at, self.trace.rtt_at_s, np.log(np.maximum(self.trace.rtt_ms, 1e-3) / self.base_ms))

    @cached_property
    def epochs_s(self) -> FloatArray:
        """Times at which the repair of each loss event began."""
        rises = np.flatnonzero(np.diff(self.trace.retransmits, prepend=0.0) > 0)
        times = self.trace.at_s[rises]
        gap = max(0.25, EPOCH_ROUND_TRIPS * self.typical_ms / 1e3)
        return times[np.diff(times, prepend=-math.inf) > gap] if len(times) else times

    @cached_property
    def typical_ms(self) -> float:
        """The median RTT."""
        return float(np.median(self.trace.rtt_ms)) if len(self.trace.rtt_ms) else self.base_ms

    @cached_property
    def spectrum(self) -> FloatArray:
        """The share of the RTT's variation in each band of frequencies, counted per idle round trip."""
        step_s = max(self.base_ms / 1e3 / 2, 0.005)
        count = int(self.trace.duration_s / step_s)
        if count < 4 * BANDS or not len(self.trace.rtt_ms):
            return np.zeros(BANDS)
        at = (np.arange(count) + 0.5) * step_s
        at = at[at > min(self.trace.duration_s / 4, START_ROUND_TRIPS * self.base_ms / 1e3)]
        values = np.interp(at, self.trace.rtt_at_s, self.trace.rtt_ms)
        values = (values - values.mean()) * np.hanning(len(values))
        power = np.abs(np.fft.rfft(values)[1:]) ** 2
        frequencies = np.fft.rfftfreq(len(values), 0.5)[1:]  # per idle round trip, at two samples each
        edges = np.geomspace(1 / 400, 1.0, BANDS + 1)
        index = np.clip(np.searchsorted(edges, frequencies) - 1, 0, BANDS - 1)
        sums = np.bincount(index, weights=power, minlength=BANDS)
        total = float(sums.sum())
        return np.sqrt(sums / total) if total > 0 else np.zeros(BANDS)

    @cached_property
    def phases(self) -> FloatArray:
        """The mean course of the RTT between two loss events, relative to its mean there."""
        courses = []
        for begin, end in zip(self.epochs_s[1:], self.epochs_s[2:], strict=False):
            inside = (self.trace.rtt_at_s >= begin + 1.5 * self.typical_ms / 1e3) & (
                self.trace.rtt_at_s < end
            )
            if inside.sum() < PHASE_POINTS:
                continue
            times = self.trace.rtt_at_s[inside]
            at = np.linspace(float(times[0]), float(times[-1]), PHASE_POINTS)
            values = np.interp(at, times, self.trace.rtt_ms[inside])
            courses.append(np.log(values / values.mean()))
        return np.mean(courses, axis=0) if courses else np.zeros(PHASE_POINTS)

    @cached_property
    def backoff(self) -> FloatArray:
        """Quartiles of what is in flight after a loss event over what was before, as logarithms."""
        ratios = []
        for at in self.epochs_s[1:]:
            before = self._flight_between(at - 4 * self.typical_ms / 1e3 - 0.2, at - 0.1)
            after = self._flight_between(
                at + 1.5 * self.typical_ms / 1e3, at + 3.5 * self.typical_ms / 1e3 + 0.2
            )
            if before is not None and after is not None:
                ratios.append(math.log(max(after, self.full_bytes) / max(before, self.full_bytes)))
        return np.percentile(ratios, (25, 50, 75)) if ratios else np.zeros(3)

    def _flight_between(self, begin: float, end: float) -> float | None:
        inside = (self.trace.at_s >= begin) & (self.trace.at_s <= end)
        return float(np.median(self.trace.flight_bytes[inside])) if inside.any() else None

    def _course(self, at: FloatArray, values: FloatArray) -> FloatArray:
        if not len(at):
            return np.zeros(POINTS)
        edges = np.linspace(0.0, self.trace.duration_s, POINTS + 1)
        index = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, POINTS - 1)
        counts = np.bincount(index, minlength=POINTS)
        means = np.bincount(index, weights=values, minlength=POINTS) / np.maximum(counts, 1)
        middles = (edges[:-1] + edges[1:]) / 2
        return np.interp(middles, middles[counts > 0], means[counts > 0])


MEASURES = (
    "rtt_distribution",
    "flight_distribution",
    "rtt_course",
    "flight_course",
    "start",
    "spectrum",
    "phases",
    "backoff",
    "loss_events",
    "retransmissions",
    "goodput",
)
FLOORS: Mapping[str, float] = {
    "rtt_distribution": 0.01,
    "flight_distribution": 0.02,
    "rtt_course": 0.02,
    "flight_course": 0.03,
    "start": 0.03,
    "spectrum": 0.05,
    "phases": 0.015,
    "backoff": 0.03,
    "loss_events": 0.1,
    "retransmissions": 0.15,
    "goodput": 0.005,
}
"""Least noise of each measure: what the accuracy of the capture and of the simulator leaves."""


def distances(pairs: Sequence[tuple[Shape, Shape]]) -> FloatArray:
    """Return how far apart the flows of each pair are by each of `MEASURES`, a row a pair; 0 is equal."""
    table = np.zeros((len(pairs), len(MEASURES)))
    for row, (shape_a, shape_b) in zip(table, pairs, strict=True):
        row[:] = (
            _apart(shape_a.queueing_shares, shape_b.queueing_shares),
            _apart(shape_a.flight_shares, shape_b.flight_shares),
            0.0,
            0.0,
            _apart(shape_a.start, shape_b.start),
            _apart(shape_a.spectrum, shape_b.spectrum),
            _apart(shape_a.phases, shape_b.phases),
            _apart(shape_a.backoff, shape_b.backoff),
            abs(math.log((len(shape_a.epochs_s) + 1) / (len(shape_b.epochs_s) + 1))),
            abs(math.log((shape_a.trace.retransmitted + 3) / (shape_b.trace.retransmitted + 3))),
            abs(math.log(max(shape_a.trace.goodput_bps, 1.0) / max(shape_b.trace.goodput_bps, 1.0))),
        )
    for name, course in (("rtt_course", "queueing"), ("flight_course", "flight")):
        left_courses, right_courses = (
            np.array([getattr(pair[side], course) for pair in pairs]) for side in (0, 1)
        )
        table[:, MEASURES.index(name)] = warped(left_courses, right_courses)
    return table


def _apart(curve_a: FloatArray, curve_b: FloatArray) -> float:
    return float(np.mean(np.abs(curve_a - curve_b)))


def warped(courses_a: FloatArray, courses_b: FloatArray) -> FloatArray:
    """Return the mean distance of courses, a row each, by dynamic time warping within `BAND`.

    Source: Sakoe and Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE
    TASSP 26(1), 1978. The costs of an antidiagonal depend on the two before it, so that each is computed at
    once, for all rows.
    """
    count, n = courses_a.shape
    band = max(1, round(BAND * n))
    before = np.full((count, n), np.inf)
    last = before.copy()
    for total in range(2 * n - 1):
        low, high = max(0, total - n + 1, (total - band + 1) // 2), min(n - 1, total, (total + band) // 2)
        step = np.abs(courses_a[:, low : high + 1] - courses_b[:, total - high : total - low + 1][:, ::-1])
        now = np.full((count, n), np.inf)
        if total == 0:
            now[:, 0] = step[:, 0]
        else:
            up, diagonal = (np.full(step.shape, np.inf) for _ in range(2))
            first = max(low, 1)
            up[:, first - low :] = last[:, first - 1 : high]
            diagonal[:, first - low :] = before[:, first - 1 : high]
            diagonal += step
            now[:, low : high + 1] = np.minimum(np.minimum(up, last[:, low : high + 1]), diagonal) + step
        before, last = last, now
    distance: FloatArray = last[:, n - 1] / (2 * n - 1)
    return distance
