"""Which congestion control a capture shows: every candidate is run on the inferred path and compared.

The noise of each measure is how far a candidate's runs on slightly different paths are from each other, so
that an algorithm whose course depends on chance is not taken for others, nor others for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dragstrip.whatif import closer
from dragstrip.whatif.bench import Bench, Run
from dragstrip.whatif.draws import draws
from dragstrip.whatif.network import Known
from dragstrip.whatif.seen import Seen
from dragstrip.whatif.shapes import MEASURES, Shape, distances

Matrix: TypeAlias = npt.NDArray[np.float64]
Scoring: TypeAlias = Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]

CANDIDATES = (
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
)
"""Congestion controls of Linux that the simulator models; without ECN, `dctcp` is Reno."""
WITH_ECN = ("dctcp",)
DURATION_MIN_S = 8.0
ROUND_TRIPS_MIN = 60.0
DURATION_MAX_S = 60.0
"""Longest beginning of a capture that is looked at."""
BITS_MAX = 1.5e9
"""Likewise: a run has as many bits at most."""
LIMITED_MAX = {"application": 0.1, "receiver": 0.2}
"""Share of the time in which application or receiver limited the sender, at most."""
RTT_RISE_MIN = 0.04
"""The 95th percentile of the RTT over the idle one, below which without losses no window was ever felt."""
DRAWS = 3
"""Paths within the inferred one's intervals on which each candidate is run."""
CLOSE, CLOSEST = 1.0, 6
"""Score behind the best up to which candidates are looked at closely, and how many at most."""
ALIKE = 0.02
"""Two runs whose distances from one capture agree within this share are the same."""
MARGIN = 0.2
"""Score by which the best must be ahead of the others; as many times more as it is further than its noise."""
UNKNOWN = 3.0
"""Mean distance in units of noise beyond which no candidate explains the capture."""
SHARPNESS = 6.0
"""Weight of a difference of scores in the confidence."""
GIVEN, UNCERTAIN, NONE, IMPOSSIBLE = "given", "uncertain", "unknown", "cannot tell"


@dataclass(frozen=True)
class Answer:
    """What was found: how sure, and how near each candidate is."""

    kind: str
    """`GIVEN`; `UNCERTAIN`: several fit; `NONE`: no candidate fits; `IMPOSSIBLE`: the capture cannot show."""
    names: tuple[str, ...]
    """The best candidate and those that are not told from it."""
    confidence: float
    reason: str
    scores: tuple[tuple[str, float, float], ...] = ()
    """All candidates, the best first: name, score, and mean distance in units of noise."""
    alike: tuple[str, ...] = ()
    """Candidates that do the same on this path as the first."""

    @property
    def name(self) -> str | None:
        """The answer, or None where none is given."""
        return self.names[0] if self.kind == GIVEN else None

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        return {
            "answer": self.name,
            "kind": self.kind,
            "among": list(self.names),
            "alike": list(self.alike),
            "confidence": self.confidence,
            "reason": self.reason,
            "candidates": [
                {"name": name, "score": score, "distance": apart} for name, score, apart in self.scores
            ],
        }


def impossible(flow: dict[str, Any], capture: Seen, idle_ms: float) -> str:
    """Return why a capture cannot show its congestion control, or an empty text."""
    if flow["place"] != "sender":
        return f"the capture was taken {_where(flow['place'])}; round trips and flight are seen at the sender"
    least = max(DURATION_MIN_S, ROUND_TRIPS_MIN * idle_ms / 1e3)
    if capture.duration_s < 0.99 * least:
        # A transfer of so many seconds ends some milliseconds earlier.
        return f"{capture.duration_s:.3g} s are too short; {least:.3g} s at least"
    limits = flow["limited_s"]
    spent = sum(limits.values()) or 1.0
    for who, most in LIMITED_MAX.items():
        if limits[who] > most * spent:
            return f"the {who} limited the sender for {100 * limits[who] / spent:.0f} % of the time"
    trips = capture.rtt_quantiles_ms
    if trips is None:
        return "no round trip can be measured"
    if capture.retransmitted == 0 and trips[2] < idle_ms * (1 + RTT_RISE_MIN):
        return "nothing was lost and nothing waited: the window was never felt"
    return ""


def _where(place: str) -> str:
    return "at the receiver" if place == "receiver" else "between the ends"


def window_s(capture: Seen, rate_bps: float) -> float:
    """Return how much of a capture is looked at."""
    return min(capture.duration_s, DURATION_MAX_S, max(DURATION_MIN_S, BITS_MAX / rate_bps))


def identify(
    capture: Seen, path: Known, flow: dict[str, Any], bench: Bench, candidates: Sequence[str] = ()
) -> Answer:
    """Return the congestion control of a flow, from what it did and the path that it was on."""
    idle = path.middle.idle_ms
    reason = impossible(flow, capture, idle)
    if reason:
        return Answer(IMPOSSIBLE, (), 0.0, reason)
    names = list(candidates) or [*CANDIDATES, *(WITH_ECN if path.middle.ecn else ())]
    found = judged(names, *measured(names, capture, path, DRAWS, bench))
    best = found.scores[0][1]
    names = [name for name, score, _ in found.scores if score - best < CLOSE][:CLOSEST]
    if found.kind == NONE or not set(names) - set(found.names[:1] + found.alike):
        return found
    found = judged(names, *measured(names, capture, path, closer.DRAWS, bench), closer.scored)
    return found if found.scores[0][2] <= closer.UNKNOWN else _unknown(found, closer.UNKNOWN)


def measured(
    names: Sequence[str], capture: Seen, path: Known, count: int, bench: Bench
) -> tuple[Matrix, Matrix]:
    """Return how far the capture is from each candidate's runs, and these from each other, on `count` paths.

    The axes are the candidates, their runs (or pairs of them, as `combinations` has them), and `MEASURES`.
    """
    idle = path.middle.idle_ms
    duration = window_s(capture, path.middle.rate_bps)
    paths = draws(path, count)
    runs = [
        Run(name, one.options(duration, seed=number + 1))
        for name in names
        for number, one in enumerate(paths)
    ]
    shapes = [Shape(seen, idle) for seen in bench.seen(runs)]
    mine = Shape(capture.first(duration), idle)
    each = [shapes[at : at + len(paths)] for at in range(0, len(shapes), len(paths))]
    near = distances([(mine, shape) for shape in shapes])
    own = distances([pair for one in each for pair in combinations(one, 2)])
    of_near, of_own = (found.reshape(len(names), -1, len(MEASURES)) for found in (near, own))
    return of_near, of_own


def scored(near: Matrix, own: Matrix) -> tuple[Matrix, Matrix]:
    """Return each candidate's score and its mean distance in units of noise.

    `near` has the distances of the capture from each candidate's runs by each measure, `own` those of the
    candidate's runs from each other. The score is the mean negative log-likelihood of the distances, if each
    has Laplace's distribution with the candidate's noise as its scale.
    """
    noise = np.maximum(np.median(own, axis=1), closer.FLOOR)
    return closer.likelihood(np.sort(near, axis=1)[:, :2].mean(axis=1), noise)


def judged(names: Sequence[str], near: Matrix, own: Matrix, by: Scoring = scored) -> Answer:
    """Return the answer that distances give; `measured` says what they are."""
    scores, apart = by(near, own)
    order = [int(at) for at in np.argsort(scores, kind="stable")]
    best = order[0]
    listed = tuple((names[at], float(scores[at]), float(apart[at])) for at in order)
    alike = [at for at in order[1:] if _alike(near[at], near[best])]
    rest = [at for at in order[1:] if at not in alike]
    weights = np.exp(-SHARPNESS * (scores - scores[best]))
    confidence = float((1 + len(alike)) / (weights[rest].sum() + 1 + len(alike)))
    same = tuple(names[at] for at in alike)
    if apart[best] > UNKNOWN:
        return _unknown(Answer(NONE, (), confidence, "", listed, same), UNKNOWN)
    margin = MARGIN * max(1.0, float(apart[best]))
    close = [at for at in rest if scores[at] - scores[best] < margin]
    if close:
        several = tuple(names[at] for at in (best, *alike, *close))
        return Answer(UNCERTAIN, several, confidence, "several fit about equally well", listed, same)
    reason = f"its runs are {apart[best]:.1f} times their own noise away"
    if rest:
        reason += f", those of {names[rest[0]]} {apart[rest[0]]:.1f} times"
    return Answer(GIVEN, (names[best], *same), confidence, reason, listed, same)


def _unknown(found: Answer, most: float) -> Answer:
    """Return that no candidate fits, because the best is more than `most` times its own noise away."""
    name, _, apart = found.scores[0]
    reason = f"the nearest, {name}, is {apart:.1f} times its own noise away; {most:g} at most"
    return replace(found, kind=NONE, names=(), reason=reason)


def _alike(one: Matrix, other: Matrix) -> bool:
    """Return whether the run nearest to the capture is the same for both candidates.

    TCP-LP, for one, is Reno in seven of eight connections (`secure_tcp_ts_off`).
    """
    nearest = int(np.argmin(other.mean(axis=1)))
    return bool(np.allclose(one[nearest], other[nearest], rtol=ALIKE, atol=1e-4))
