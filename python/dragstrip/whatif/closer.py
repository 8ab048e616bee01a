"""How likely a capture is as a candidate's, by many of its runs: one of them has to fit in everything.

On few paths, each measure may be nearest on another, and the noise is that of the whole interval. Here the
runs nearest in all measures together count, and the noise is how near the candidate's own runs come to each
other when they are looked for in the same way. That tells apart what differs by less than the path is known.
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dragstrip.whatif.shapes import FLOORS, MEASURES

Matrix: TypeAlias = npt.NDArray[np.float64]

DRAWS = 16
"""Paths on which each candidate is run."""
NEAREST = 2
"""Runs whose mean distance counts."""
UNKNOWN = 2.0
"""Mean distance in units of noise beyond which no candidate explains the capture."""
FAR = 12.0
"""Distance in units of noise beyond which a measure counts no further."""
FLOOR: Matrix = np.array([FLOORS[name] for name in MEASURES])


def likelihood(distance: Matrix, noise: Matrix) -> tuple[Matrix, Matrix]:
    """Return each candidate's mean negative log-likelihood and its mean distance in units of noise."""
    apart = np.minimum(distance / noise, FAR)
    return (apart + np.log(noise / FLOOR)).mean(axis=1), apart.mean(axis=1)


def scored(near: Matrix, own: Matrix) -> tuple[Matrix, Matrix]:
    """Return each candidate's score and its mean distance in units of noise; see `identify.scored`."""
    distances, noises = [], []
    for to_capture, among in zip(near, own, strict=True):
        spread = np.maximum(np.median(among, axis=0), FLOOR)
        apart = _square(among, len(to_capture))
        each = [_nearest(np.delete(row, number, axis=0), spread) for number, row in enumerate(apart)]
        distances.append(_nearest(to_capture, spread))
        noises.append(np.maximum(np.median(each, axis=0), FLOOR))
    return likelihood(np.array(distances), np.array(noises))


def _square(pairs: Matrix, count: int) -> Matrix:
    """Return the distances between all runs, from those of each pair."""
    found = np.zeros((count, count, pairs.shape[1]))
    for (one, other), distance in zip(combinations(range(count), 2), pairs, strict=True):
        found[one, other] = found[other, one] = distance
    return found


def _nearest(to_runs: Matrix, spread: Matrix) -> Matrix:
    """Return the mean distance, by each measure, from the runs that are nearest by all together."""
    total = np.minimum(to_runs / spread, FAR).mean(axis=1)
    found: Matrix = to_runs[np.argsort(total, kind="stable")[:NEAREST]].mean(axis=0)
    return found
