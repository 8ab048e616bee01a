"""Hidden scenarios: rates, round trips, buffers, losses and neighbours that a seed draws.

One scenario of each kind in `KINDS`, over and over, so that every judgement has all of them. A kind and its
turn have a stream of random numbers of their own: more scenarios do not change those before them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from dragstrip.model.scenario.paths import FRAME_BYTES
from dragstrip.studies.passport.rows import PLACE, PassportPath, Scenario, several

RATE_MBIT = (2.0, 100.0)
RTT_MS = (5.0, 200.0)
BUFFER_BDP = (0.1, 8.0)
LOSS_PERCENT = (0.01, 2.0)
"""Bounds from which rate, round trip, buffer and random loss are drawn, each by its logarithm."""
BUFFER_PACKETS_MIN = 10
PACKETS = 60_000
"""Full frames that the bottleneck can carry in a run, within the bounds of its duration."""
DURATION_S = (8.0, 30.0)
AQM_SHARE = 0.25
AQMS = ("codel", "fq_codel", "pie", "cake")
"""The other bottlenecks drop at the tail, as RFC 9743 6.1 requires of an evaluation first."""
CHANGES = (0.25, 0.5, 2.0, 4.0)
"""Factors by which the rate changes halfway."""


@dataclass(frozen=True)
class HiddenScenario:
    """A drawn scenario."""

    id: str
    """Its kind and turn, such as `beside-cubic-1`."""
    title: str
    scenario: Scenario


def draw(seed: int, count: int) -> list[HiddenScenario]:
    """Return the first `count` scenarios of a seed; the same seed gives the same ones."""
    return [_drawn(seed, number) for number in range(count)]


def _drawn(seed: int, number: int) -> HiddenScenario:
    turn, at = divmod(number, len(KINDS))
    kind = list(KINDS)[at]
    rng = random.Random(f"judge/{seed}/{kind}/{turn}")  # noqa: S311
    path = _path(rng).with_(seed=str(rng.randrange(1, 2**31)))
    title, scenario = KINDS[kind](path, rng)
    return HiddenScenario(f"{kind}-{turn + 1}", f"{title} at {path.name}", scenario)


def _between(bounds: tuple[float, float], rng: random.Random) -> float:
    """Return a number with three digits, drawn by its logarithm."""
    low, high = bounds
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def _path(rng: random.Random) -> PassportPath:
    mbit, rtt_ms, bdp = _between(RATE_MBIT, rng), _between(RTT_MS, rng), _between(BUFFER_BDP, rng)
    least = BUFFER_PACKETS_MIN * FRAME_BYTES * 8 / (mbit * 1e3 * rtt_ms)
    carried_s = PACKETS * FRAME_BYTES * 8 / (mbit * 1e6)
    duration_s = float(round(min(max(carried_s, DURATION_S[0]), DURATION_S[1])))
    path = PassportPath(mbit, rtt_ms, float(f"{max(bdp, least):.3g}"), duration_s)
    return path.with_(queue=rng.choice(AQMS)) if rng.random() < AQM_SHARE else path


def _alone(path: PassportPath, rng: random.Random) -> tuple[str, Scenario]:
    del rng
    return "alone", path.scenario()


def _lossy(path: PassportPath, rng: random.Random) -> tuple[str, Scenario]:
    loss = _between(LOSS_PERCENT, rng)
    return f"alone with {loss:g} % random loss", path.with_(loss=f"{loss:g}%").scenario()


def _changing(path: PassportPath, rng: random.Random) -> tuple[str, Scenario]:
    rate = path.mbit * rng.choice(CHANGES)
    change = f"{path.duration_s / 2:g}s rate={rate * 1000:.0f}kbit"
    return f"alone, from half time {rate:g} Mbit/s,", path.with_(change=[change]).scenario()


def _crowd(path: PassportPath, rng: random.Random) -> tuple[str, Scenario]:
    count = rng.randint(2, 8)
    return f"{count} flows", path.with_(stagger="100ms").scenario(several(PLACE, count))


def _unequal(path: PassportPath, rng: random.Random) -> tuple[str, Scenario]:
    longer = path.rtt_ms * rng.uniform(1.5, 4)
    return f"its flow and one of {longer:.0f} ms", path.scenario(PLACE, f"{PLACE}@{longer:.0f}ms")


def _beside(neighbour: str) -> Callable[[PassportPath, random.Random], tuple[str, Scenario]]:
    def scenario(path: PassportPath, rng: random.Random) -> tuple[str, Scenario]:
        count = rng.choice((1, 1, 2, 4))
        flows = f"{several(neighbour, count)}+{rng.randint(1, 1000)}ms"
        return f"beside {count} {neighbour}", path.scenario(PLACE, flows, subjects=1)

    return scenario


KINDS: dict[str, Callable[[PassportPath, random.Random], tuple[str, Scenario]]] = {
    "alone": _alone,
    "beside-cubic": _beside("cubic"),
    "lossy": _lossy,
    "crowd": _crowd,
    "beside-reno": _beside("reno"),
    "changing": _changing,
    "unequal": _unequal,
    "beside-bbr": _beside("bbr"),
}
"""Kinds of scenarios in the order in which they are drawn."""
