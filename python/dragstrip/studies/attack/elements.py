"""Elements of an attack, each a kind with a few whole numbers.

Every number has a range, chosen so that no element takes the link away by itself: cross traffic carries at
most `CROSS_MAX_PCT` of the rate, loss stays within `LOSS_MAX_PCT`, and an outage is short. What a range still
allows is compared with a reference sender in the same conditions (`goals`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragstrip.studies.attack.scene import Scene

CROSS_MAX_PCT = 25.0
"""Largest share of the bottleneck's rate, in per cent, that cross traffic offers on average."""
LOSS_MAX_PCT = 5.0
"""Largest share of packets, in per cent, that loss episodes take on average."""
ELEMENTS_MAX = 5
"""Elements of one attack, at most."""


@dataclass(frozen=True)
class Gene:
    """One whole number of an element, with its range; `log` draws it evenly on a logarithmic scale."""

    name: str
    low: int
    high: int
    log: bool = True

    def draw(self, rng: random.Random) -> int:
        """Return a number of the range at random."""
        if not self.log:
            return rng.randint(self.low, self.high)
        return self.tidy(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))

    def changed(self, value: int, rng: random.Random) -> int:
        """Return a number near `value`."""
        if not self.log:
            return self.draw(rng)
        return self.tidy(value * math.exp(rng.gauss(0.0, 0.3)))

    def tidy(self, value: float) -> int:
        """Return the nearest number of the range that has two significant digits."""
        value = min(max(value, self.low), self.high)
        step: int = 10 ** max(0, math.floor(math.log10(value)) - 1)
        return min(max(round(value / step) * step, self.low), self.high)


WHOM = ("", ", victim alone", ", other flow alone")
"""Whom an element hits, in words, by the number of its gene `whom`."""

Values: TypeAlias = Mapping[str, int]
"""The numbers of an element by the names of its genes."""


@dataclass(frozen=True)
class Kind:
    """A kind of element: its vector, its numbers, what it adds to a scene, and how it is told."""

    name: str
    vector: str
    genes: tuple[Gene, ...]
    apply: Callable[[Scene, Values], None]
    words: Callable[[Values], str]
    two_flows: bool = False
    """True when it needs two flows."""
    sets_rtt: bool = False
    """True when it sets the other flow's round-trip time."""


@dataclass(frozen=True)
class Element:
    """One element of an attack."""

    kind: Kind
    numbers: tuple[int, ...]

    @property
    def values(self) -> dict[str, int]:
        """The numbers by name."""
        return {gene.name: number for gene, number in zip(self.kind.genes, self.numbers, strict=True)}

    def apply(self, scene: Scene) -> None:
        """Add the element to a scene."""
        self.kind.apply(scene, self.values)

    def words(self, two_flows: bool) -> str:
        """Return the element in a few words; whom it hits is said where there are two flows."""
        words = self.kind.words(self.values)
        return f"{words}{WHOM[self.values.get('whom', 0)]}" if two_flows else words

    def document(self, two_flows: bool) -> dict[str, object]:
        """Return the element as JSON."""
        return {"kind": self.kind.name, **self.values, "words": self.words(two_flows)}


Attack: TypeAlias = tuple[Element, ...]
"""The elements that act together."""


def cross_pct(attack: Attack) -> float:
    """Return the mean rate that periodic cross traffic offers, in per cent of the bottleneck's."""
    total = 0.0
    for element in attack:
        values = element.values
        if element.kind.name == "pulses":
            total += values["rate_pct"] * values["length_ms"] / values["period_ms"]
        elif element.kind.name == "steady":
            total += values["rate_pct"]
    return total


def loss_pct(attack: Attack) -> float:
    """Return the mean share of packets, in per cent, that loss episodes take."""
    episodes = [element.values for element in attack if element.kind.name == "loss_episodes"]
    return sum(
        episode["share_pct"] * min(1.0, episode["length_ms"] / episode["period_ms"]) for episode in episodes
    )


def admissible(attack: Attack) -> bool:
    """Return whether the attack is small enough, and has no two elements that set the same thing."""
    names = [element.kind.name for element in attack if element.kind.name != "pulses"]
    if len(attack) > ELEMENTS_MAX or len(set(names)) < len(names):
        return False
    return cross_pct(attack) <= CROSS_MAX_PCT and loss_pct(attack) <= LOSS_MAX_PCT


# --- kinds ------------------------------------------------------------------------------------


def _pulses(scene: Scene, values: Values) -> None:
    at = values["phase_pct"] * values["period_ms"] // 100
    while at < scene.duration_ms:
        scene.cross(values["rate_pct"], at, min(at + values["length_ms"], scene.duration_ms))
        at += values["period_ms"]


def _steady(scene: Scene, values: Values) -> None:
    scene.cross(values["rate_pct"], 0, scene.duration_ms)


def _early(scene: Scene, values: Values) -> None:
    scene.impair_acks(values["whom"], f"delay {values['by_us']}us reorder {values['share_permille'] / 10:g}%")


def _jitter(values: Values) -> str:
    return f"delay {values['mean_us']}us {values['mean_us']}us"


def _rate_steps(scene: Scene, values: Values) -> None:
    for start, end in _cycles(scene, values):
        scene.change(start, rate_pct=values["low_pct"])
        scene.change(end, rate_pct=100)


def _delay_steps(scene: Scene, values: Values) -> None:
    for start, end in _cycles(scene, values):
        scene.change(start, delay_ms=values["extra_ms"])
        scene.change(end, delay_ms=0)


def _losses(scene: Scene, values: Values) -> None:
    for start, end in _cycles(scene, values):
        scene.change(start, loss_pct=values["share_pct"])
        scene.change(end, loss_pct=0)


def _outages(scene: Scene, values: Values) -> None:
    for start, end in _cycles(scene, values):
        scene.change(start, up=False)
        scene.change(end, up=True)


def _cycles(scene: Scene, values: Values) -> list[tuple[int, int]]:
    """Return the times in ms at which each repetition begins and ends, after the first period."""
    period = values["period_ms"]
    length = values.get("length_ms", period * values.get("of_period_pct", 0) // 100)
    length = max(1, min(length, period - 1))
    return [(at, at + length) for at in range(period, scene.duration_ms, period)]


def _ms(us: int) -> str:
    return f"{us / 1000:g} ms"


WHOM_GENE = Gene("whom", 0, 2, log=False)
"""Target of the impairment: the packets of every TCP flow (0), of the victim (1) or of the other flow (2)."""
PERIOD = Gene("period_ms", 200, 5000)

KINDS = (
    Kind(
        "pulses",
        "cross",
        (
            Gene("period_ms", 200, 3000),
            Gene("length_ms", 10, 400),
            Gene("rate_pct", 20, 400),
            Gene("phase_pct", 0, 99, log=False),
        ),
        _pulses,
        lambda v: f"UDP at {v['rate_pct']} % of the rate for {v['length_ms']} ms every {v['period_ms']} ms",
    ),
    Kind(
        "steady",
        "cross",
        (Gene("rate_pct", 1, 25),),
        _steady,
        lambda v: f"UDP at {v['rate_pct']} % of the rate",
    ),
    Kind(
        "random_loss",
        "loss",
        (Gene("share_1e4", 1, 300), WHOM_GENE),
        lambda scene, v: scene.lose_data(v["whom"], v["share_1e4"] / 100),
        lambda v: f"{v['share_1e4'] / 100:g} % random loss of data",
    ),
    Kind(
        "loss_episodes",
        "loss",
        (PERIOD, Gene("length_ms", 5, 200), Gene("share_pct", 5, 100)),
        _losses,
        lambda v: f"{v['share_pct']} % loss for {v['length_ms']} ms every {v['period_ms']} ms",
    ),
    Kind(
        "jitter",
        "jitter",
        (Gene("mean_us", 100, 20_000), WHOM_GENE),
        lambda scene, v: scene.impair_data(v["whom"], _jitter(v)),
        lambda v: f"data delayed by 0 to {_ms(2 * v['mean_us'])}, reordered",
    ),
    Kind(
        "ack_jitter",
        "jitter",
        (Gene("mean_us", 100, 20_000), WHOM_GENE),
        lambda scene, v: scene.impair_acks(v["whom"], _jitter(v)),
        lambda v: f"ACKs delayed by 0 to {_ms(2 * v['mean_us'])}, reordered",
    ),
    Kind(
        "early_acks",
        "jitter",
        (Gene("by_us", 100, 20_000), Gene("share_permille", 1, 100), WHOM_GENE),
        _early,
        lambda v: f"{v['share_permille'] / 10:g} % of ACKs {_ms(v['by_us'])} early",
    ),
    Kind(
        "aggregation",
        "acks",
        (Gene("every_ms", 2, 200), WHOM_GENE),
        lambda scene, v: scene.aggregate(v["whom"], v["every_ms"]),
        lambda v: f"ACKs held until multiples of {v['every_ms']} ms",
    ),
    Kind(
        "ack_loss",
        "acks",
        (Gene("share_pct", 1, 30), WHOM_GENE),
        lambda scene, v: scene.lose_acks(v["whom"], v["share_pct"]),
        lambda v: f"{v['share_pct']} % random loss of ACKs",
    ),
    Kind(
        "rate_steps",
        "changes",
        (PERIOD, Gene("low_pct", 25, 90), Gene("of_period_pct", 10, 90)),
        _rate_steps,
        lambda v: f"rate falls to {v['low_pct']} % for {v['of_period_pct']} % of each {v['period_ms']} ms",
    ),
    Kind(
        "delay_steps",
        "changes",
        (PERIOD, Gene("extra_ms", 1, 200), Gene("of_period_pct", 10, 90)),
        _delay_steps,
        lambda v: f"{v['extra_ms']} ms more delay for {v['of_period_pct']} % of each {v['period_ms']} ms",
    ),
    Kind(
        "outages",
        "changes",
        (Gene("period_ms", 2000, 8000), Gene("length_ms", 20, 500)),
        _outages,
        lambda v: f"an outage of {v['length_ms']} ms every {v['period_ms']} ms",
    ),
    Kind(
        "other_rtt",
        "rtt",
        (Gene("pct", 25, 800),),
        lambda scene, v: scene.second_rtt(v["pct"]),
        lambda v: f"the other flow's RTT is {v['pct'] / 100:g} times the victim's",
        two_flows=True,
        sets_rtt=True,
    ),
    Kind(
        "late",
        "rtt",
        (Gene("by_ms", 100, 5000),),
        lambda scene, v: scene.late(v["by_ms"]),
        lambda v: f"the victim starts {v['by_ms']} ms after the other",
        two_flows=True,
    ),
)
"""Every kind of element."""

VECTORS = ("cross", "loss", "jitter", "acks", "changes", "rtt")
"""Families of elements, each searched by itself; then `MIXED`, which starts from what these found."""
MIXED = "mixed"


def kinds(vectors: Collection[str], two_flows: bool, fixed_rtt: bool = False) -> list[Kind]:
    """Return the kinds of these vectors that a scene with so many flows can have.

    With `fixed_rtt` none of them sets the other flow's round-trip time.
    """
    fit = (kind for kind in KINDS if kind.vector in vectors and (two_flows or not kind.two_flows))
    return [kind for kind in fit if not (fixed_rtt and kind.sets_rtt)]


def draw_element(pool: Sequence[Kind], rng: random.Random) -> Element:
    """Return an element of one of these kinds at random."""
    kind = rng.choice(list(pool))
    return Element(kind, tuple(gene.draw(rng) for gene in kind.genes))


def changed(element: Element, rng: random.Random) -> Element:
    """Return the element with one or two numbers changed a little."""
    numbers = list(element.numbers)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(numbers))
        numbers[at] = element.kind.genes[at].changed(numbers[at], rng)
    return Element(element.kind, tuple(numbers))
