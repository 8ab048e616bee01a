"""From columns to curves: rates per bin, distributions, and decimation that keeps the shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragstrip.report.load import FloatArray
from dragstrip.results import measures

# Bins a reader can name, in seconds.
NICE_BINS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True)
class Curve:
    """Points in order of `x`; both arrays have the same length."""

    x: FloatArray
    y: FloatArray

    def __len__(self) -> int:
        return len(self.x)


EMPTY = Curve(np.empty(0), np.empty(0))


def nice_bin_s(duration_s: float, bins: int, finest_s: float = 0.1) -> float:
    """Return the shortest round bin in seconds of which at most `bins` fill the duration."""
    least = max(duration_s / bins, finest_s) * (1 - 1e-9)
    return next((bin_s for bin_s in NICE_BINS_S if bin_s >= least), math.ceil(least))


def rate_per_bin(
    time_ns: FloatArray, size_bytes: FloatArray, start_s: float, stop_s: float, bin_s: float
) -> Curve:
    """Return the rate in bit/s in each whole bin from `start_s` to `stop_s`.

    `x` is the middle of the bin in seconds. A row at `time_ns` counts what arrived in the interval that ends
    there, so a row on a bin's border belongs to the bin before it.
    """
    bins = int((stop_s - start_s) / bin_s + 1e-6)
    if bins < 1:
        return EMPTY
    index = np.ceil((time_ns / 1e9 - start_s) / bin_s - 1e-6).astype(np.int64) - 1
    inside = (index >= 0) & (index < bins)
    sums = np.bincount(index[inside], weights=size_bytes[inside], minlength=bins)
    middles = start_s + (np.arange(bins, dtype=np.float64) + 0.5) * bin_s
    return Curve(middles, np.asarray(sums * 8.0 / bin_s, dtype=np.float64))


def cdf(values: FloatArray, points: int = 400) -> Curve:
    """Return the empirical distribution function as steps: the share of samples (0 to 1) at or below `x`.

    With more samples than `points`, it has evenly spaced quantiles that include both ends.
    """
    ordered = np.sort(values[np.isfinite(values)])
    n = len(ordered)
    if n == 0:
        return EMPTY
    ranks = np.arange(n) if n <= points else _rising(np.linspace(0, n - 1, points).round().astype(np.int64))
    x = np.concatenate(([ordered[0]], ordered[ranks]))
    return Curve(x, np.concatenate(([0.0], (ranks + 1) / n)))


def _rising(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ascending numbers without repetitions; `np.unique` would import NumPy's masked arrays."""
    return values[np.diff(values, prepend=values[0] - 1) > 0]


def decimate(curve: Curve, points: int) -> Curve:
    """Return at most about `points` points: the first, least, greatest and last of every stretch of time.

    Peaks and troughs survive, unlike with averaging or with every nth point.
    """
    finite = np.isfinite(curve.y)
    x, y = curve.x[finite], curve.y[finite]
    if len(x) <= points:
        return Curve(x, y)
    buckets = max(1, points // 4)
    edges = np.searchsorted(x, np.linspace(x[0], x[-1], buckets + 1)[1:-1])
    starts = _rising(np.concatenate(([0], edges)))
    starts = starts[starts < len(x)]
    keep = {len(x) - 1}
    for begin, end in zip(starts, [*starts[1:], len(x)], strict=True):
        piece = y[begin:end]
        keep.update((begin, begin + int(piece.argmin()), begin + int(piece.argmax()), end - 1))
    indexes = np.fromiter(sorted(keep), dtype=np.int64)
    return Curve(x[indexes], y[indexes])


def middle(curves: list[Curve], bin_s: float) -> Curve:
    """Return the median over several curves of their means in each bin of `bin_s` seconds."""
    filled = [curve for curve in curves if len(curve)]
    if not filled:
        return EMPTY
    bins = int(max(curve.x[-1] for curve in filled) / bin_s) + 1
    means = np.full((len(filled), bins), np.nan)
    for row, curve in enumerate(filled):
        finite = np.isfinite(curve.y)
        index = np.minimum((curve.x[finite] / bin_s).astype(np.int64), bins - 1)
        counts = np.bincount(index, minlength=bins)
        sums = np.bincount(index, weights=curve.y[finite], minlength=bins)
        means[row, counts > 0] = sums[counts > 0] / counts[counts > 0]
    known_bins = np.isfinite(means).any(axis=0)
    return Curve((np.arange(bins)[known_bins] + 0.5) * bin_s, np.nanmedian(means[:, known_bins], axis=0))


def jain(shares: FloatArray) -> FloatArray:
    """Return Jain's index of each column: 1 if all rows are equal, 1/n if one row has everything.

    NaN entries are left out; a column in which nothing moved gives NaN. Source: Jain, Chiu, Hawe: "A
    quantitative measure of fairness ...", DEC-TR-301, 1984.
    """
    present = ~np.isnan(shares)
    jain_indexes = [
        measures.jain(column[mask].tolist()) for column, mask in zip(shares.T, present.T, strict=True)
    ]
    return np.array([np.nan if index is None else index for index in jain_indexes])
