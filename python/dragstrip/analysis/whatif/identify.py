"""Identification of the congestion control: every candidate is run on the inferred path and compared.

The noise of each measure is how far a candidate's runs on slightly different paths are from each other, so
that an algorithm whose course depends on chance is not taken for others, nor others for it. Where the capture
leaves several paths open (`hypotheses`), a candidate counts on the one that suits it best. The confidence is
the share of such answers that were right in trials with a known truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dragstrip.analysis.whatif.bench import Bench, FlowRun
from dragstrip.analysis.whatif.draws import draws
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.network import CandidatePaths
from dragstrip.analysis.whatif.shapes import FLOORS, MEASURES, Shape, distances

Matrix: TypeAlias = npt.NDArray[np.float64]

CANDIDATES = (
    "reno",
    "cubic",
    "bbr",
    "bbr3",
    "bic",
    "cdg",
    "copa",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "ledbat",
    "ledbatpp",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
)
"""Congestion controls that the simulator models; without ECN, `dctcp` and `prague` are Reno."""
WITH_ECN = ("dctcp", "prague")
SAME = (frozenset(("reno", "lp")),)
"""Algorithms that do the same on most paths: TCP-LP is Reno in seven of eight connections."""
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
DRAWS = 4
"""Paths within the intervals of each inferred one on which each candidate is run."""
PATHS = 2
"""Paths that are looked at closely where the capture leaves more of them open."""
NEAREST = 2
"""Runs whose mean distance counts."""
FAR = 12.0
"""Distance in units of noise beyond which a measure counts no further."""
FAR_ALONE = 40.0
"""Likewise of a single run, in units of the least noise."""
FLOOR: Matrix = np.array([FLOORS[name] for name in MEASURES])
ALIKE = 0.02
"""Two runs whose distances from one capture agree within this share are the same."""
LEAD_MAX = 2.0
"""Lead over the next candidate's score beyond which confidence stays."""
APART_MAX = 4.0
"""Distance in units of noise beyond which confidence stays, and nothing is an answer."""
CONFIDENCE = {
    "constant": 2.33,
    "lead": 1.85,
    "apart": -0.96,
    "noise": -1.68,
    "rate open": -0.20,
    "lead per apart": 1.07,
}
"""Weights of the confidence by logistic regression over 244 captures of tests/blind_captures.py: the first 95
of the development half and of the other those among its first 180 that were tried."""
ANSWERED = 0.79
"""Confidence from which a name is an answer."""
UNKNOWN = 1.5
"""Mean distance in units of noise beyond which a capture that gets no name is no candidate's."""
WIDER = 0.1
"""Mean logarithm of a candidate's noise over the best's from which on its runs' spread is called wider."""
CLOSE, CLOSEST = 0.5, 5
"""Score behind the best up to which candidates are named where there is no answer, and how many at most."""
PLACES = {
    "sender": "at the sender",
    "receiver": "at the receiver",
    "between": "between the ends",
    "queue": "behind the bottleneck's queue",
    "sender or queue": "at the sender or behind the bottleneck's queue",
}
"""Where a capture was taken, in words; "sender or queue" where the capture does not tell these apart."""
GIVEN, UNCERTAIN, NONE, IMPOSSIBLE = "given", "uncertain", "unknown", "cannot tell"


@dataclass(frozen=True)
class Answer:
    """The congestion control: how sure, and how near each candidate is."""

    kind: str
    """`GIVEN`; `UNCERTAIN`: several fit; `NONE`: no candidate fits; `IMPOSSIBLE`: the capture cannot show."""
    names: tuple[str, ...]
    """The best candidate and those that are indistinguishable from it."""
    confidence: float
    """Share of answers like this that are right."""
    reason: str
    scores: tuple[tuple[str, float, float], ...] = ()
    """All candidates, the best first: name, score, and mean distance in units of noise."""
    alike: tuple[str, ...] = ()
    """Candidates that do the same on this path as the first."""
    path: int = 0
    """Place of the best candidate's path among those that were tried."""

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


def impossible(flow: dict[str, Any], capture: FlowTrace, idle_ms: float) -> str:
    """Return why a capture cannot show its congestion control, or an empty text."""
    if flow["place"] != "sender":
        return f"the capture was taken {PLACES[flow['place']]}; round trips and flight are seen at the sender"
    least = max(DURATION_MIN_S, ROUND_TRIPS_MIN * idle_ms / 1e3)
    if capture.duration_s < 0.99 * least:
        # A transfer of so many seconds ends some milliseconds earlier.
        return f"{capture.duration_s:.3g} s are too short; {least:.3g} s at least"
    limits = flow["limited_s"]
    limited_s_total = sum(limits.values()) or 1.0
    for limiter, most in LIMITED_MAX.items():
        if limits[limiter] > most * limited_s_total:
            percentage = 100 * limits[limiter] / limited_s_total
            return f"the {limiter} limited the sender for {percentage:.0f} % of the time"
    trips = capture.rtt_quantiles_ms
    if trips is None:
        return "no round trip can be measured"
    if capture.retransmitted == 0 and trips[2] < idle_ms * (1 + RTT_RISE_MIN):
        return "nothing was lost and nothing waited: the window was never felt"
    return ""


def window_s(capture: FlowTrace, rate_bps: float) -> float:
    """Return how much of a capture is looked at."""
    return min(capture.duration_s, DURATION_MAX_S, max(DURATION_MIN_S, BITS_MAX / rate_bps))


def identify(
    capture: FlowTrace,
    paths: Sequence[CandidatePaths],
    rate_open: bool,
    flow: dict[str, Any],
    bench: Bench,
    candidates: Sequence[str] = (),
) -> Answer:
    """Return the congestion control of a flow, from what it did and the paths that it may have been on.

    `rate_open` says that the capture does not show the bottleneck's rate, as beside another flow.
    """
    middle = paths[0].middle
    reason = impossible(flow, capture, middle.idle_ms)
    if reason:
        return Answer(IMPOSSIBLE, (), 0.0, reason)
    names = list(candidates) or [*CANDIDATES, *(WITH_ECN if middle.ecn else ())]
    path_indices = _promising(names, capture, paths, bench)
    answer = judged(
        names, [measured(names, capture, paths[at], DRAWS, bench) for at in path_indices], rate_open
    )
    return replace(answer, path=path_indices[answer.path])


def _promising(
    names: Sequence[str], capture: FlowTrace, paths: Sequence[CandidatePaths], bench: Bench
) -> list[int]:
    """Return the places of the paths on which some candidate's run is nearest to the capture."""
    if len(paths) <= PATHS:
        return list(range(len(paths)))
    nearest = []
    for path in paths:
        near, _ = measured(names, capture, path, 1, bench)
        nearest.append(float(np.minimum(near[:, 0] / FLOOR, FAR_ALONE).mean(axis=1).min()))
    return [int(at) for at in np.argsort(nearest, kind="stable")[:PATHS]]


def measured(
    names: Sequence[str], capture: FlowTrace, path: CandidatePaths, count: int, bench: Bench
) -> tuple[Matrix, Matrix]:
    """Return how far the capture is from each candidate's runs, and these from each other, on `count` paths.

    The axes are the candidates, their runs (or pairs of them, as `combinations` has them), and `MEASURES`.
    """
    idle = path.middle.idle_ms
    duration = window_s(capture, path.middle.rate_bps)
    paths = draws(path, count)
    runs = [
        FlowRun(name, network.options(duration, seed=number + 1), network.ip_bytes)
        for name in names
        for number, network in enumerate(paths)
    ]
    full = path.middle.full_bytes
    shapes = [Shape(trace, idle, full) for trace in bench.flow_traces(runs)]
    mine = Shape(capture.first(duration), idle, full)
    by_candidate = [shapes[at : at + len(paths)] for at in range(0, len(shapes), len(paths))]
    near = distances([(mine, shape) for shape in shapes])
    pairs = [pair for shapes in by_candidate for pair in combinations(shapes, 2)]
    spreads = distances(pairs) if pairs else np.zeros((0, len(MEASURES)))
    rows = count * (count - 1) // 2
    return near.reshape(len(names), count, -1), spreads.reshape(len(names), rows, len(MEASURES))


def scored(near: Matrix, spread: Matrix) -> tuple[Matrix, Matrix]:
    """Return each candidate's score and its mean distance in units of noise.

    `near` has the distances of the capture from each candidate's runs by each measure, `spread` those of the
    candidate's runs from each other. The score is the mean negative log-likelihood of the distances, if each
    has Laplace's distribution with the candidate's noise as its scale.
    """
    noise = np.maximum(np.median(spread, axis=1), FLOOR)
    apart = np.minimum(np.sort(near, axis=1)[:, :NEAREST].mean(axis=1) / noise, FAR)
    return (apart + np.log(noise / FLOOR)).mean(axis=1), apart.mean(axis=1)


def confidence(lead: float, apart: float, noise: float, rate_open: bool) -> float:
    """Return the share of answers like this that are right.

    `lead` is that over the next candidate's score, `apart` the distance in units of noise, `noise` the mean
    logarithm of the candidate's noise over the least there is: what varies much is near to anything.
    """
    lead, apart = min(lead, LEAD_MAX), min(apart, APART_MAX)
    weighed = {"constant": 1.0, "lead": lead, "apart": apart, "noise": noise, "rate open": float(rate_open)}
    weighed["lead per apart"] = lead / max(1.0, apart)
    return 1 / (1 + math.exp(-sum(CONFIDENCE[name] * value for name, value in weighed.items())))


def judged(names: Sequence[str], by_path: Sequence[tuple[Matrix, Matrix]], rate_open: bool) -> Answer:
    """Return the answer that distances give; `by_path` has what `measured` returns for each path."""
    by_path_scores = [scored(near, spread) for near, spread in by_path]
    scores, aparts = (np.array([pair[side] for pair in by_path_scores]) for side in (0, 1))
    suited = np.argmin(scores, axis=0)
    columns = np.arange(len(names))
    score, apart = scores[suited, columns], aparts[suited, columns]
    order = [int(at) for at in np.argsort(score, kind="stable")]
    best = order[0]
    listed = tuple((names[at], float(score[at]), float(apart[at])) for at in order)
    near = by_path[int(suited[best])][0]
    alike = [
        at
        for at in order[1:]
        if {names[at], names[best]} in SAME or (suited[at] == suited[best] and _alike(near[at], near[best]))
    ]
    rest = [at for at in order[1:] if at not in alike]
    lead = float(score[rest[0]] - score[best]) if rest else LEAD_MAX
    noise = float(score[best] - apart[best])
    sure = confidence(lead, float(apart[best]), noise, rate_open)
    # An equivalent candidate is named only where its run is as near.
    equivalents = tuple(names[at] for at in alike if score[at] - score[best] < CLOSE)
    reason = f"{names[best]}'s runs are at {apart[best]:.2f} of their own spread from the capture"
    if rest:
        reason += f", those of the next, {names[rest[0]]}, at {apart[rest[0]]:.2f}"
        if score[rest[0]] - apart[rest[0]] - noise > WIDER:
            reason += " of a wider spread"
    path = int(suited[best])
    if sure >= ANSWERED and apart[best] <= APART_MAX:
        return Answer(GIVEN, (names[best], *equivalents), sure, reason, listed, equivalents, path)
    if apart[best] > UNKNOWN:
        return Answer(
            NONE, (), sure, f"no candidate's runs are near enough: {reason}", listed, equivalents, path
        )
    close = [at for at in rest if score[at] - score[best] < CLOSE or at == rest[0]][:CLOSEST]
    several = tuple(dict.fromkeys((names[best], *equivalents, *(names[at] for at in close))))
    return Answer(UNCERTAIN, several, sure, "several fit about equally well", listed, equivalents, path)


def _alike(run: Matrix, other_run: Matrix) -> bool:
    """Return whether the run nearest to the capture is the same for both candidates."""
    nearest = int(np.argmin(other_run.mean(axis=1)))
    return bool(np.allclose(run[nearest], other_run[nearest], rtol=ALIKE, atol=1e-4))
