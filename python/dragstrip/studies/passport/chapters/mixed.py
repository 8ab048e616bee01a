"""Chapter mixed: some of ten senders have the algorithm, and the others CUBIC.

One row's runs are those of every number of senders from 0 to 10, each with six sets of starts; together the
runs of a set give one figure. A test that gives the algorithm to some users alone (an A/B test) sees the
difference within a run; what a deployment brings is the difference between the first and the last.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dragstrip.experiment.types import Experiment
from dragstrip.studies.passport.rows import (
    PLACE,
    SEEDS,
    PassportPath,
    PassportRow,
    RowFigure,
    RowRule,
    Scenario,
    Subject,
    Summary,
    rated,
)

NAME = "mixed"
TITLE = "mixed deployment"
SENDERS = 10
OTHER = "cubic"
MIX, REST = f"0 to {SENDERS} of {SENDERS} senders at ", f", the others {OTHER}"
"""Words before and after the path in the title of a row."""
SPANG = "Spang et al., IMC 2021: bias of A/B tests on a shared link"
NASH = "Mishra, Tiu, Leong, IMC 2022: the mix from which no sender gains by a change"


@dataclass(frozen=True)
class MixedScenario(Scenario):
    """Ten senders of which 0 to 10 have the algorithm, over six sets of starts within a second."""

    def experiment(self, subject: Subject, repeats: int | None = None) -> Experiment:
        """All of its runs as one experiment, an alternative each; raises `BadInputError`."""
        content = super().experiment(subject, repeats).content()
        flows = [
            {"cc": OTHER, "start": "0s"} if at else {"cc": subject.word, "start": "0s"}
            for at in range(SENDERS)
        ]
        alternatives = [
            {"name": f"{count} of {SENDERS}, starts {number}", "set": _flows(subject.word, count, starts)}
            for number, starts in enumerate(_starts(), 1)
            for count in range(SENDERS + 1)
        ]
        return Experiment.build({**content, "flows": flows, "alternatives": alternatives})


def _starts() -> list[list[float]]:
    """Six sets of starts in s, the same for every algorithm."""
    rng = random.Random(NAME)  # noqa: S311
    return [[round(rng.random(), 3) for _ in range(SENDERS)] for _ in range(SEEDS)]


def _flows(word: str, count: int, starts: Sequence[float]) -> dict[str, Any]:
    cells = enumerate(starts)
    return {
        field: value
        for at, start in cells
        for field, value in (
            (f"flows[{at}].cc", word if at < count else OTHER),
            (f"flows[{at}].start", f"{start:g}s"),
        )
    }


@dataclass(frozen=True)
class DeploymentCurve:
    """Mean goodput in Mbit/s of a sender with the algorithm, and of one without, by the number with it."""

    own: tuple[float, ...]
    """By number with it; nothing stands for 0."""
    other: tuple[float, ...]
    """By number with it; nothing stands for all."""

    @property
    def effect(self) -> float:
        """The total treatment effect: all with it over all without, less 1."""
        return self.own[SENDERS] / self.other[0] - 1

    def test(self, count: int) -> float:
        """The estimate of an A/B test that gives the algorithm to `count` senders."""
        return (self.own[count] - self.other[count]) / self.other[0]

    def spillover(self, count: int) -> float:
        """Goodput of the others over what they had before, less 1."""
        return self.other[count] / self.other[0] - 1

    def equilibrium(self) -> float:
        """The share of senders with it from which none gains by a change; the mean if there are several."""
        stable = [
            count
            for count in range(SENDERS + 1)
            if (count == 0 or self.own[count] >= self.other[count - 1])
            and (count == SENDERS or self.other[count] >= self.own[count + 1])
        ]
        return sum(stable) / len(stable) / SENDERS


def curve(summary: Summary) -> DeploymentCurve:
    """Return the goodputs of the runs of one set of starts, in the order of the number with the algorithm."""
    own, other = [], []
    for count, run in enumerate(summary["runs"]):
        goodputs = [flow["goodput_bps"] / 1e6 for flow in run["flows"]]
        own.append(sum(goodputs[:count]) / count if count else 0.0)
        other.append(sum(goodputs[count:]) / (SENDERS - count) if count < SENDERS else 0.0)
    return DeploymentCurve(tuple(own), tuple(other))


def _figure(
    name: str,
    unit: str,
    better: bool | None,
    of: Callable[[DeploymentCurve], float],
    formula: str,
    floor: float = 0.0,
) -> RowFigure:
    return RowFigure(
        name,
        unit,
        better,
        lambda summary, _: of(curve(summary)),
        f"runs by number k with it, T_B(k) and T_A(k) the mean goodput with and without: {formula}",
        floor,
        no_measure="computed from several runs",
    )


EQUILIBRIUM = _figure(
    "equilibrium",
    "of the senders",
    None,
    DeploymentCurve.equilibrium,
    "k / 10 with T_B(k) >= T_A(k-1) and T_A(k) >= T_B(k+1)",
)
EFFECT = _figure("effect", "of CUBIC's", None, lambda of: of.effect, "T_B(10) / T_A(0) - 1")
BIAS_10, BIAS_50 = (
    _figure(
        f"bias {10 * count}",
        "of CUBIC's",
        None,
        lambda of, count=count: of.test(count) - of.effect,  # type: ignore[misc]
        f"(T_B({count}) - T_A({count})) / T_A(0) less the effect",
    )
    for count in (1, 5)
)
SPILLOVER = _figure(
    "spillover 50", "of CUBIC's", True, lambda of: of.spillover(5), "T_A(5) / T_A(0) - 1", 0.01
)


def path_name(row: PassportRow) -> str:
    """Return the path of a row of this chapter, such as `20 Mbit/s, 40 ms, 1 BDP`."""
    return row.title.removeprefix(MIX).removesuffix(REST)


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for bdp in (1, 5):
        path = PassportPath(20, 40, bdp, 30)
        scenario = MixedScenario(({"cc": PLACE},), path.options, repeats=1, runs_per_figure=SENDERS + 1)
        yield from rated(
            NAME,
            f"{bdp}bdp",
            f"{MIX}{path.name}{REST}",
            scenario,
            (EQUILIBRIUM, RowRule("R", NASH)),
            (EFFECT, RowRule("R", f"{SPANG}: the total treatment effect")),
            (BIAS_10, RowRule("R", SPANG)),
            (BIAS_50, RowRule("R", SPANG)),
            (SPILLOVER, RowRule("K", f"RFC 9743 5.3.2; {SPANG}: spillover on the others")),
            quick=bdp == 1,
        )
