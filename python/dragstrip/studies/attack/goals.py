"""Goals of an attack: a victim's figure, compared with a reference in the same conditions.

A sender that gets little where nobody could get more has not failed. So each figure is divided by a
reference: the capacity that cross traffic leaves, or what another sender reaches under the same attack,
whichever is less. The other sender is one with a fixed window, the best of several sizes; for a CUBIC
neighbour it is CUBIC beside CUBIC, as in harm (Ware et al., HotNets 2019). The ratio is the value of an
attack: 1 is harmless, 0 is total.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dragstrip import _core
from dragstrip.engines.contract import Progress
from dragstrip.errors import FaultError
from dragstrip.experiment.types import refused
from dragstrip.model.recording import CoreTables
from dragstrip.model.recording.core_build import blamed
from dragstrip.studies.attack.elements import Attack
from dragstrip.studies.attack.scene import CROSS, PAYLOAD, AttackPath, Scene

NEIGHBOUR = "cubic"
"""Congestion control of the neighbour."""
STARVED = 0.1
"""Share of the reference below which a flow is starved."""
MBIT_PER_BIT = 1 / 1e6
"""A factor, as a claim converts its figure: a find replays to the last digit."""
WINDOWS = (1.0, 1.5, 2.0, 4.0)
"""Windows of the reference sender, in multiples of the flow's bandwidth-delay product."""


@dataclass(frozen=True)
class Goal:
    """A way to fail."""

    name: str
    two_flows: bool
    path: AttackPath
    """The path on which it is searched unless the caller says otherwise."""
    metric: str
    unit: str
    after_share: float
    """Share of the run, from its beginning, that does not count."""
    about: str
    reference: str
    """Reference of the comparison, in words."""
    find_max: float = 0.8
    """Largest value of an attack that is reported."""


UTILISATION = Goal(
    "utilisation",
    False,
    AttackPath("12mbit", "40ms", "1bdp", "10s"),
    "goodput_bps",
    "Mbit/s",
    0.25,
    "lowest goodput of one flow",
    "the best fixed window, or the capacity left over",
)
STARVATION = Goal(
    "starvation",
    True,
    AttackPath("24mbit", "40ms", "4bdp", "20s"),
    "goodput_bps",
    "Mbit/s",
    0.5,
    "lowest share of one of two flows of the algorithm",
    "the fair share, the other flow, or the best fixed window",
)
HARM = Goal(
    "neighbour",
    True,
    AttackPath("24mbit", "40ms", "1bdp", "20s"),
    "goodput_bps",
    "Mbit/s",
    0.5,
    "lowest goodput of a CUBIC flow beside one of the algorithm",
    "CUBIC beside CUBIC, or the fair share",
)
STALL = Goal(
    "stall",
    False,
    AttackPath("12mbit", "40ms", "1bdp", "10s"),
    "stall_s_longest",
    "s",
    0.0,
    "longest time without an acknowledgement",
    "the longest stall of the best fixed window",
    0.5,  # a second longer
)
GOALS = (UTILISATION, STARVATION, HARM, STALL)


@dataclass(frozen=True)
class Score:
    """Score of one attack."""

    value: float
    """From 0, a total failure, to 1."""
    figure: float
    """The victim's figure, in the goal's unit."""
    reference: float
    """Reference figure, in the goal's unit."""
    available: float
    """The capacity that cross traffic leaves, in Mbit/s of payload."""
    other_flow: float | None
    """The other flow's goodput in Mbit/s."""
    whole: bool = True
    """True when the reference sender has run; if not, `value` is a lower bound."""


class _Run:
    """One simulated run and the figures that are asked of it."""

    def __init__(self, scene: Scene, progress: Progress | None) -> None:
        scenario = planned(scene)
        try:
            outcome = scenario.run(progress)
        except _core.InputError as error:
            raise refused(error) from None
        except _core.PanicError as error:
            raise blamed(str(error)) or FaultError(f"{error} (an attack's scenario)") from None
        tables = CoreTables(outcome["tables"])
        self._columns = {name: tables.core_columns(name) for name in tables}
        self._measured = scenario.measured(self._columns)

    def goodput(self, flow: int, after_ms: float) -> float:
        """Return a flow's goodput in Mbit/s, without the first `after_ms` of its life."""
        return (self._figure("goodput_bps", flow, after_ms) or 0.0) * MBIT_PER_BIT

    def stall_s(self) -> float:
        """Return the victim's longest stall in seconds.

        It is the measure `stall_s_longest` from a second on. Below, where the measure is 0, it is the longest
        gap between samples with progress: the search needs a gradient there.
        """
        measured = self._figure("stall_s_longest", 0, 0) or 0.0
        return measured or min(self._gap_s, 0.9)

    @cached_property
    def _gap_s(self) -> float:
        table = self._columns["samples"]
        mine = table["flow"][1] == 0
        acked, at = table["bytes_acked"][1][mine], table["time_ns"][1][mine]
        if len(at) < 2:
            return 0.0
        moved = at[1:][np.diff(acked) > 0]
        return float(np.diff(np.concatenate([at[:1], moved, at[-1:]])).max()) / 1e9

    def _figure(self, name: str, flow: int, after_ms: float) -> float | None:
        return self._measured.figure(name, flow, round(after_ms * 1e6), None, None)

    def cross_bps(self, after_ms: float, until_ms: float) -> float:
        """Return the rate at which cross traffic arrived, in bit/s of Ethernet frames.

        No measure: it is counted from an instant of the run, and measures of flows from each flow's start.
        """
        names, index = self._columns["flows"]["label"][1]
        numbers = self._columns["flows"]["flow"][1]
        cross_flows = [at for at, name in enumerate(names) if name == CROSS or name.startswith(f"{CROSS}-")]
        table = self._columns["received"]
        hit = np.isin(table["flow"][1], numbers[np.isin(index, cross_flows)])
        hit &= table["time_ns"][1] > after_ms * 1e6
        return float(table["wire_bytes"][1][hit].sum()) * 8e3 / (until_ms - after_ms)


def planned(scene: Scene) -> _core.Scenario:
    """Return the scenario of an experiment that Dragstrip itself wrote."""
    content = scene.content()
    times = scene.traces()
    for medium in content.get("media", {}).values():
        medium["opportunities_ms"] = times[medium["file"]]
    algorithm_names = [*_core.ALGORITHMS, *_core.QUIC, *scene.programs]
    try:
        return _core.planned(content, algorithm_names, True)
    except _core.InputError as error:
        raise refused(error) from None


@dataclass(frozen=True)
class Trial:
    """A goal for one algorithm on one path: attacks are scored by it."""

    goal: Goal
    algorithm: str
    path: AttackPath
    seed: int
    programs: Mapping[str, str] = field(default_factory=dict)

    @property
    def after_ms(self) -> int:
        """Initial interval that does not count, in ms."""
        return round(self.path.duration_ms * self.goal.after_share)

    @property
    def senders(self) -> tuple[str, ...]:
        """Congestion controls of the victim and the other flow."""
        if self.goal is HARM:
            return NEIGHBOUR, self.algorithm
        return (self.algorithm,) * (2 if self.goal.two_flows else 1)

    def doubled(self) -> Trial:
        """Return the same with runs of twice the duration."""
        path = replace(self.path, duration=f"{2 * self.path.duration_ms}ms")
        return replace(self, path=path)

    def scene(self, attack: Attack, senders: tuple[str, ...] | None = None) -> Scene:
        """Return the scene of an attack, with these senders in place of its own."""
        scene = Scene(
            self.path, senders or self.senders, self.path.duration_ms, self.seed, dict(self.programs)
        )
        for element in attack:
            element.apply(scene)
        return scene

    def score(self, attack: Attack, below: float = 1.0, progress: Progress | None = None) -> Score:
        """Return the score of an attack; `progress` may end its runs by an exception.

        References are simulated only if the attack may have a value below `below`.
        """
        scene = self.scene(attack)
        run = _Run(scene, progress)
        until = self.path.duration_ms
        available_mbps = (
            (scene.capacity_bps(self.after_ms) - run.cross_bps(self.after_ms, until)) * PAYLOAD / 1e6
        )
        if self.goal is STALL:
            return self._stalled(attack, run, available_mbps, below, progress)
        figure = run.goodput(0, self._after(scene))
        other_mbps = run.goodput(1, self.after_ms) if self.goal.two_flows else None
        most = available_mbps / len(scene.senders)
        if self.goal is STARVATION and other_mbps is not None:
            most = min(most, other_mbps)
        reference = 0.0
        whole = _ratio(figure, most) < below
        if whole:
            for senders in self._references(scene):
                compared = self.scene(attack, senders)
                reference = max(reference, _Run(compared, progress).goodput(0, self._after(compared)))
                if reference >= most:
                    break
        else:
            reference = most
        reference = min(reference, most)
        return Score(_ratio(figure, reference), figure, reference, available_mbps, other_mbps, whole)

    def _stalled(
        self, attack: Attack, run: _Run, available_mbps: float, below: float, progress: Progress | None
    ) -> Score:
        stall = run.stall_s()
        whole = 1 / (1 + stall) < below
        reference = 0.0
        if whole:
            reference = stall
            for senders in self._references(self.scene(attack)):
                compared = self.scene(attack, senders)
                reference = min(reference, _Run(compared, progress).stall_s())
        return Score(1 / (1 + stall - reference), stall, reference, available_mbps, None, whole)

    def _after(self, scene: Scene) -> float:
        """Return what the victim's beginning leaves out, in ms of its own life."""
        return max(0, self.after_ms - scene.late_ms)

    def claim_after_ms(self, attack: Attack) -> float:
        """Return the beginning of the victim's life, in ms, that its figure leaves out."""
        return self._after(self.scene(attack))

    def _references(self, scene: Scene) -> Iterable[tuple[str, ...]]:
        if self.goal is HARM:
            yield (NEIGHBOUR, NEIGHBOUR)
            return
        flows = len(scene.senders)
        for times in WINDOWS:
            sizes = (
                scene.rtt_ms(at) / self.path.rtt_ms * self.path.bdp_packets / flows for at in range(flows)
            )
            yield tuple(f"fixed:window={max(2, round(times * size))}" for size in sizes)


def _ratio(figure: float, reference: float) -> float:
    """Return figure over reference, at most 1; where nobody gets anything, nobody has failed."""
    return min(1.0, figure / reference) if reference > 0.01 else 1.0


def goal_named(name: str) -> Goal:
    """Return a goal by its name, which exists."""
    return next(goal for goal in GOALS if goal.name == name)


def score_text(goal: Goal, score: Score) -> str:
    """Return the figure and what it is compared with, such as `1.2 of 9.8 Mbit/s`."""
    if goal is STALL:
        return f"{score.figure:.1f} s, not {score.reference:.1f}"
    return f"{score.figure:.2f} of {score.reference:.1f} Mbit/s"
