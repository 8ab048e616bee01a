"""The measure by which one algorithm's forms are compared (tools/quic_algorithms.py)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tools.quic_algorithms import conformance, envelope_points, hull

SQUARE = [(x / 4, 50 + 10 * y) for x in range(5) for y in range(5)]


def test_equal_envelopes_conform_and_distant_ones_do_not() -> None:
    assert conformance(SQUARE, SQUARE) >= 0.95
    assert conformance(SQUARE, [(rate + 20, rtt) for rate, rtt in SQUARE]) == 0
    halfway = conformance(SQUARE, [(rate, rtt + 20) for rate, rtt in SQUARE])
    assert 0.3 < halfway < 0.9


def test_a_hull_has_the_corners_alone() -> None:
    assert sorted(hull(SQUARE)) == [(0.0, 50.0), (0.0, 90.0), (1.0, 50.0), (1.0, 90.0)]


def test_a_point_is_the_rate_and_the_mean_rtt_of_a_window() -> None:
    times = list(range(0, 7_000_000_000, 100_000_000))
    samples = pa.table({
        "run": [0] * len(times),
        "time_ns": times,
        "bytes_acked": [time // 800 for time in times],
        "srtt_ns": [40_000_000] * len(times),
    })  # fmt: skip
    points = list(envelope_points(samples))
    assert len(points) == 4
    assert points[0] == (pytest.approx(10.0), pytest.approx(40.0))
