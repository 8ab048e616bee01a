from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dragstrip.display import quantity
from dragstrip.display.colours import PALETTE, assign
from dragstrip.report.series import Curve, cdf, decimate, jain, middle, nice_bin_s, rate_per_bin


def test_a_row_on_the_border_belongs_to_the_bin_that_ends_there() -> None:
    time_ns = np.array([0.5e9, 1.0e9, 1.5e9, 2.0e9])
    curve = rate_per_bin(time_ns, np.array([100.0, 25.0, 50.0, 0.0]), 0.0, 2.0, 1.0)
    assert curve.x.tolist() == [0.5, 1.5]
    assert curve.y.tolist() == [1000.0, 400.0]


def test_bins_start_with_the_flow_and_only_whole_ones_count() -> None:
    time_ns = np.array([1.1e9, 2.1e9, 3.0e9])
    curve = rate_per_bin(time_ns, np.array([1000.0, 125.0, 125.0]), 1.2, 3.4, 1.0)
    assert curve.x.tolist() == pytest.approx([1.7, 2.7])
    assert curve.y.tolist() == [1000.0, 1000.0]
    assert len(rate_per_bin(time_ns, time_ns, 1.0, 1.5, 1.0)) == 0


def test_the_distribution_function_steps_at_each_sample() -> None:
    curve = cdf(np.array([3.0, 1.0, 2.0, np.nan, 2.0]))
    assert curve.x.tolist() == [1, 1, 2, 2, 3]
    assert curve.y.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_a_thinned_distribution_keeps_its_ends_and_quantiles() -> None:
    values = np.random.default_rng(1).exponential(10.0, 100_000)
    curve = cdf(values, points=300)
    assert len(curve) <= 301
    assert (curve.x[0], curve.x[-1]) == (values.min(), values.max())
    for share in (0.05, 0.5, 0.95):
        assert np.interp(share, curve.y, curve.x) == pytest.approx(np.quantile(values, share), rel=0.01)
    assert len(cdf(np.array([np.nan]))) == 0


def test_decimation_keeps_peaks_and_troughs() -> None:
    x = np.linspace(0.0, 60.0, 60_000)
    y = np.sin(x) + 0.001 * np.random.default_rng(2).standard_normal(len(x))
    y[12_345], y[45_678] = 9.0, -9.0
    thin = decimate(Curve(x, y), 1000)
    assert len(thin) <= 1001
    assert (thin.y.max(), thin.y.min()) == (9.0, -9.0)
    assert (thin.x[0], thin.x[-1]) == (0.0, 60.0)
    assert np.all(np.diff(thin.x) > 0)


def test_decimation_leaves_out_what_is_unknown_and_leaves_short_curves_alone() -> None:
    thin = decimate(Curve(np.array([0.0, 1.0, 2.0]), np.array([1.0, np.nan, 3.0])), 100)
    assert (thin.x.tolist(), thin.y.tolist()) == ([0, 2], [1, 3])
    # All samples at one time: there is no stretch to divide.
    assert len(decimate(Curve(np.ones(500), np.arange(500.0)), 40)) <= 41


def test_the_middle_of_curves() -> None:
    curves = [Curve(np.array([0.5, 1.5]), np.array([v, 2 * v])) for v in (1.0, 2.0, 30.0)]
    result = middle(curves, 1.0)
    assert (result.x.tolist(), result.y.tolist()) == ([0.5, 1.5], [2, 4])
    assert len(middle([], 1.0)) == 0


def test_jains_index() -> None:
    shares = np.array([[1.0, 4.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert jain(shares)[:2].tolist() == [1.0, 0.25]
    assert np.isnan(jain(shares)[2])


@pytest.mark.parametrize(("duration_s", "bin_s"), [(60, 0.5), (10, 0.1), (600, 5.0), (1e6, 6667)])
def test_bins_have_names(duration_s: float, bin_s: float) -> None:
    assert nice_bin_s(duration_s, 150) == bin_s


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (quantity.rate(9_566_000.0), "9.57 Mbit/s"),
        (quantity.rate(10_000_000), "10 Mbit/s"),
        (quantity.rate(999_600), "1.00 Mbit/s"),
        (quantity.rate(0), "0 bit/s"),
        (quantity.rate(None), "–"),
        (quantity.milliseconds(492.4), "492 ms"),
        (quantity.milliseconds(2345.6), "2346 ms"),
        (quantity.milliseconds(0.0832), "83.2 µs"),
        (quantity.duration_ns(40_000_000), "40 ms"),
        (quantity.limit(204_800), "200 KiB"),
        (quantity.limit(100_000), "100 kB"),
        (quantity.percent(0.6577), "65.8 %"),
        (quantity.percent(0.00045), "0.045 %"),
        (quantity.percent(1.0), "100 %"),
        (quantity.count(12_345), "12\u2009345"),
        (quantity.listing(["a", "b", "c"]), "a, b and c"),
    ],
)
def test_quantities_read_well(text: str, expected: str) -> None:
    assert text == expected


NUMBERS = json.loads((Path(__file__).parents[1] / "numbers.json").read_text())


@pytest.mark.parametrize(
    ("name", "formatter"),
    [
        ("digits", quantity.digits),
        ("rate", quantity.rate),
        ("size", quantity.size),
        ("milliseconds", quantity.milliseconds),
        ("seconds", quantity.duration_s),
        ("percent", quantity.percent),
        ("count", quantity.count),
    ],
)
def test_texts_are_those_of_rust_and_the_viewer(name: str, formatter: Callable[[float], str]) -> None:
    assert [formatter(value) for value, _ in NUMBERS[name]] == [text for _, text in NUMBERS[name]]


def test_colours_are_an_algorithms_own_and_do_not_repeat_while_there_are_any() -> None:
    both = assign(["mine", "reno"])
    assert both["reno"] == assign(["cubic", "reno", "vegas"])["reno"]
    assert len(set(assign([f"a{i}" for i in range(len(PALETTE))]).values())) == len(PALETTE)
    assert len(assign([f"a{i}" for i in range(20)])) == 20
