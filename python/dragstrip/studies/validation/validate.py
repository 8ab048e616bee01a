"""A whole grid: every case is run in the simulator and compared with its recordings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dragstrip.engines.contract import Progress
from dragstrip.engines.sim import simulate
from dragstrip.errors import DragstripError
from dragstrip.runs import run_parallel
from dragstrip.studies.validation.cells import WIDE
from dragstrip.studies.validation.conditions import Conditions, conditions
from dragstrip.studies.validation.figures import FigurePair, figures
from dragstrip.studies.validation.kernel import Json, KernelRun, grouped
from dragstrip.studies.validation.targets import QUANTITIES, Standing, standing
from dragstrip.studies.validation.traces import TimeLine, falls, of_kernel, of_recording
from dragstrip.studies.validation.translate import scenario

SEEDS = tuple(range(1, 41))
"""Seeds of the simulator where a case is random."""
FEWER = SEEDS[:10]
"""Seeds where only an algorithm of the wider grid is random, and for the simulator against itself, so that
the page takes minutes."""

IDLE_SHARE_MIN = 0.3
"""Idle share of the emulator's processor below which the machine itself, and not the path, limits the
flows."""

LONGER_NS = 37_000
"""Nanoseconds added to the round trip to see how sensitive a case is to it.

The round trip differs by as much on a slightly slower or faster machine: with 37 µs the median RTT of the
kernel itself moved by up to 3.4 %.
"""

COMPETING = "competing"
"""The group of cases with several flows."""
DETERMINISTIC, STOCHASTIC = "no random loss", "random loss or jitter"


@dataclass(frozen=True)
class Case:
    """A case with its figures."""

    name: str
    scenario: Json
    """The scenario as the simulator ran it with its first seed."""
    release: str
    """The kernel's release."""
    seeds: list[int]
    """Seeds of the kernel's runs."""
    kernel: list[TimeLine]
    simulator: list[TimeLine]
    figures: list[FigurePair]
    spread: list[FigurePair] = field(default_factory=list)
    """The simulator against itself with a path 37 µs longer and another seed."""
    floor: list[FigurePair] = field(default_factory=list)
    """The kernel against itself: one half of its seeds against the other."""
    idle_share: float = 1.0
    """Idle share of the kernel's processor in its busiest run."""
    limits: list[str] = field(default_factory=list)
    """Limits that the machine put on the kernel's runs, in real time."""
    idle_shares: list[float] = field(default_factory=list)
    """Idle share of the machine's processors in each of the kernel's runs, in real time."""

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions that decide how its figures are measured."""
        return conditions(self.scenario)

    @property
    def stochastic(self) -> bool:
        """True when netem impairs at random."""
        return self.conditions.stochastic

    @property
    def limited(self) -> bool:
        """True when the machine that recorded it was a bottleneck besides the path's."""
        return self.idle_share < IDLE_SHARE_MIN

    @property
    def algorithm(self) -> str:
        """The algorithms of its flows, in order."""
        return "+".join(self.conditions.algorithms)

    @property
    def group(self) -> str:
        """The column of a table in which it counts: its algorithm, or `COMPETING`."""
        return self.algorithm if len(self.scenario["flows"]) == 1 else COMPETING

    @cached_property
    def condition(self) -> str:
        """The name without the algorithm, which cases of different algorithms have in common."""
        parts = self.name.removeprefix("a-").removeprefix("b-").split("-")
        algorithms = set(self.algorithm.split("+"))
        return "-".join(part for part in parts if part not in algorithms) or self.name

    @property
    def severity(self) -> float:
        """The worst error in units of its limit."""
        return max(figure.severity for figure in self.figures)

    def figure(self, quantity: str) -> FigurePair | None:
        """Return one of its figures, or None if the case lacks it."""
        return next((figure for figure in self.figures if figure.quantity == quantity), None)

    def spread_error(self, quantity: str) -> float | None:
        """Return the simulator's difference from itself, or None."""
        return next((figure.error for figure in self.spread if figure.quantity == quantity), None)

    def floor_error(self, quantity: str) -> float | None:
        """Return the kernel's difference from itself, or None."""
        return next((figure.error for figure in self.floor if figure.quantity == quantity), None)


@dataclass(frozen=True)
class Agreement:
    """All cases, the worst first, and the reasons of those that could not be run."""

    cases: list[Case]
    failed: dict[str, str]

    @property
    def kernels(self) -> list[str]:
        """The kernels that were recorded."""
        return sorted({case.release for case in self.cases})

    @property
    def algorithms(self) -> list[str]:
        """The groups in order of their names, competing flows last."""
        return sorted({case.group for case in self.cases}, key=lambda name: (name == COMPETING, name))

    @property
    def limited(self) -> list[Case]:
        """Cases in which the recording machine limited the flows; they are counted separately."""
        return [case for case in self.cases if case.limited]

    def standings(self, stochastic: bool, algorithm: str | None = None) -> Iterator[Standing]:
        """Yield every quantity of a class of cases, for all or one algorithm, without limited cases."""
        cases = [
            case
            for case in self.cases
            if case.stochastic == stochastic and algorithm in (None, case.group) and not case.limited
        ]
        for quantity in QUANTITIES:
            class_standing = standing(
                quantity, algorithm or "all", stochastic, (case.figure(quantity.key) for case in cases)
            )
            if class_standing:
                yield class_standing


def validate(
    runs: Sequence[KernelRun],
    workers: int | None = None,
    spread: bool = False,
    nominal: bool = False,
    notify: Callable[[str], object] = lambda _: None,
) -> Agreement:
    """Run and compare every case, calling `notify` with its name.

    `spread` also measures the simulator against itself; `nominal` uses the path as configured, without what
    the recordings show of their machine.
    """
    groups = list(grouped(runs).items())

    def case_or_reason(group: tuple[str, list[KernelRun]], progress: Progress) -> Case | str:
        try:
            return measure(*group, spread, nominal, progress)
        except DragstripError as error:
            return str(error)

    outcomes = run_parallel(
        case_or_reason, groups, workers, finished=lambda index, _: notify(groups[index][0])
    )
    cases = [case for case in outcomes if isinstance(case, Case)]
    failed = {
        name: reason for (name, _), reason in zip(groups, outcomes, strict=True) if isinstance(reason, str)
    }
    return Agreement(sorted(cases, key=lambda case: -case.severity), failed)


def measure(
    name: str,
    runs: list[KernelRun],
    spread: bool = False,
    nominal: bool = False,
    progress: Progress | None = None,
) -> Case:
    """Run and compare one case, with one simulation for each draw of `_draws`."""
    kernel = [of_kernel(run) for run in runs]
    spec = scenario(runs[0], nominal=nominal)
    case_conditions = conditions(spec)
    few = nominal or (name.startswith(WIDE) and not case_conditions.stochastic)
    draws = _draws(runs, case_conditions.random, FEWER if few else SEEDS)
    simulator = [simulated(run, seed, nominal=nominal, progress=progress) for run, seed in draws]
    spread_figures: list[FigurePair] = []
    if spread:
        again = _draws(runs, case_conditions.random, FEWER)
        longer = [simulated(run, seed + len(draws), LONGER_NS, nominal, progress) for run, seed in again]
        spread_figures = figures(case_conditions, simulator, longer)
    return Case(
        name,
        spec,
        runs[0].kernel,
        [run.seed for run in runs],
        kernel,
        simulator,
        figures(case_conditions, kernel, simulator),
        spread_figures,
        idle_share=min(run.idle_share for run in runs),
    )


def _draws(runs: list[KernelRun], random: bool, seeds: Sequence[int]) -> list[tuple[KernelRun, int]]:
    """Return the kernel's runs to simulate, each with its seed.

    Each run uses its own seed. If a case is random, all runs take turns (they may come from different
    machines) until there are as many as `seeds`.
    """
    if not random:
        return [(run, run.seed) for run in runs]
    turns = math.ceil(len(seeds) / len(runs))
    return [(run, seed) for seed, run in enumerate(runs * turns, start=1)]


def simulated(
    run: KernelRun,
    seed: int,
    longer_ns: int = 0,
    nominal: bool = False,
    progress: Progress | None = None,
) -> TimeLine:
    """Return the simulator's time line of a kernel's scenario."""
    spec = scenario(run, seed, longer_ns, nominal)
    return of_recording(simulate(spec, progress), conditions(spec).bottleneck)


def document(agreement: Agreement) -> Json:
    """Return the result as JSON."""
    return {
        "kernels": agreement.kernels,
        "standings": [
            {
                "quantity": row.quantity.key,
                "class": STOCHASTIC if row.stochastic else DETERMINISTIC,
                "algorithm": row.group,
                "wanted": row.target,
                "cases": row.cases,
                "within": row.cases_within if row.quantity.judged else None,
                "error_median": row.median,
                "error_max": row.worst,
                "reached": row.reached if row.quantity.judged else None,
            }
            for stochastic in (False, True)
            for algorithm in (None, *agreement.algorithms)
            for row in agreement.standings(stochastic, algorithm)
        ],
        "cases": [
            {
                "name": case.name,
                "algorithm": case.algorithm,
                "condition": case.condition,
                "class": STOCHASTIC if case.stochastic else DETERMINISTIC,
                "kernel_seeds": case.seeds,
                "simulator_seeds": len(case.simulator),
                "idle_share": case.idle_share,
                "first_seed": {
                    side: [
                        {
                            "cc": flow.cc,
                            "goodput_bps": flow.goodput_bps,
                            "retransmits": flow.retransmits_total,
                            "reductions_s": [float(flow.t_s[at]) for at in falls(flow)],
                        }
                        for flow in trace.flows
                    ]
                    for side, trace in (("kernel", case.kernel[0]), ("simulator", case.simulator[0]))
                },
                "figures": {
                    figure.quantity: {
                        "kernel": figure.kernel,
                        "simulator": figure.simulator,
                        "error": figure.error,
                        "limit": figure.limit,
                        "reached": figure.reached,
                        "own_spread": case.spread_error(figure.quantity),
                        "floor": case.floor_error(figure.quantity),
                    }
                    for figure in case.figures
                },
            }
            for case in agreement.cases
        ],
        "failed": agreement.failed,
    }
