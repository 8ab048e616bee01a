"""What is compared with what: setups, contenders and repeats.

A **setup** is a path and the shape of the traffic on it. Runs of the same setup differ in the
algorithm and in the seed, so their figures may stand side by side. Within a setup a **contender** is
what a curve and a row stand for: an algorithm (with its options), or a flow by its label where the
flows of one algorithm differ from each other; on each engine, where there are two. A **bout** is one
contender in one run; several bouts of the same contender are repeats.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from dragstrip.paths import PathFacts, path_of, paths_of
from dragstrip.report import path as paths
from dragstrip.report import quantity
from dragstrip.report.colours import DASHES
from dragstrip.report.load import Json, RecordedFlow, RecordedRun

T = TypeVar("T")

# Beyond this, flows of one algorithm share a curve even where they differ: nobody tells 30 colours apart.
LABELS_MAX = 10
# Of more flows than this in one run, curves and distributions are taken from some, evenly spaced.
FLOWS_DRAWN_MAX = 1000
# The kernel's default algorithm is what is compared, not part of the path.
NOT_PATH_SYSCTLS = ("net.ipv4.tcp_congestion_control",)


@dataclass(frozen=True)
class Bout:
    """One contender in one run: its flows, and the rows of the result document about them."""

    run: RecordedRun
    flows: list[RecordedFlow]
    results: list[Json]


def drawn(flows: Sequence[T]) -> Sequence[T]:
    """Those whose curves are looked at one by one: all, or evenly spaced ones of a crowd."""
    return flows if len(flows) <= FLOWS_DRAWN_MAX else flows[:: -(-len(flows) // FLOWS_DRAWN_MAX)]


@dataclass
class Contender:
    """A curve in every figure and a row in every table."""

    key: str
    title: str
    cc: str
    colour: str
    dash: tuple[int, ...] = DASHES[0]
    bouts: list[Bout] = field(default_factory=list)

    @property
    def is_tcp(self) -> bool:
        """Whether there are windows and round-trip times."""
        return self.cc != "udp"


@dataclass
class Setup:
    """Runs over the same path with the same traffic."""

    key: str
    title: str
    runs: list[RecordedRun]
    contenders: list[Contender]

    @property
    def scenario(self) -> Json:
        """The scenario of the first run; all others differ in algorithm and seed only."""
        return self.runs[0].scenario

    @property
    def scenarios(self) -> list[Json]:
        """Those of all runs."""
        return [run.scenario for run in self.runs]

    @property
    def together(self) -> bool:
        """Whether contenders share a run, so that shares and fairness mean something between them."""
        return any(sum(run is bout.run for c in self.contenders for bout in c.bouts) > 1 for run in self.runs)

    @property
    def shared(self) -> bool:
        """Whether any run has several flows."""
        return any(len(run.recording.flows) > 1 for run in self.runs)

    @property
    def repeats(self) -> int:
        """The most runs that one contender took part in."""
        return max((len(contender.bouts) for contender in self.contenders), default=0)

    @property
    def duration_s(self) -> float:
        """The longest run's."""
        return max(run.duration_s for run in self.runs)

    @property
    def end_s(self) -> float:
        """When the last flow stops, in whole seconds; the end of the runs where flows do not stop before."""
        stops = [flow.stop_s for run in self.runs for flow in run.recording.flows]
        return min(self.duration_s, math.ceil(max(stops, default=self.duration_s)) or self.duration_s)

    @cached_property
    def path(self) -> PathFacts:
        """The way of the first flow."""
        flows = self.scenario.get("flows") or []
        if not flows:
            return PathFacts([], [])
        return path_of(self.scenario, flows[0]["sender"], flows[0]["receiver"])

    @property
    def queue_link(self) -> str | None:
        """The name of the link at whose queue the flows meet."""
        link = self.path.bottleneck or (self.path.forward[0] if self.path.forward else None)
        return str(link["name"]) if link else None


def setups_of(runs: Iterable[RecordedRun], colours: dict[str, str]) -> list[Setup]:
    """All runs, grouped; in the order of first appearance."""
    groups: dict[str, list[RecordedRun]] = {}
    for run in runs:
        groups.setdefault(_setup_key(run.scenario), []).append(run)
    setups = [Setup(key, "", members, _contenders(members, colours)) for key, members in groups.items()]
    _name(setups)
    return setups


def algorithms_of(runs: Iterable[RecordedRun]) -> list[str]:
    """Every algorithm once, in the order of first appearance."""
    return list(dict.fromkeys(flow.cc for run in runs for flow in run.recording.flows))


def _setup_key(scenario: Json) -> str:
    nodes = []
    for node in scenario.get("nodes") or []:
        sysctl = {k: v for k, v in (node.get("sysctl") or {}).items() if k not in NOT_PATH_SYSCTLS}
        nodes.append({**node, "sysctl": sysctl} if "sysctl" in node else node)
    traffic = [
        {k: v for k, v in flow.items() if k not in ("label", "transport")}
        | {"protocol": (flow.get("transport") or {}).get("protocol")}
        for flow in scenario.get("flows") or []
    ]
    shape = [
        nodes,
        scenario.get("links"),
        scenario.get("routes") or [],
        traffic,
        scenario.get("duration_ns"),
    ]
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()


def _name(setups: list[Setup]) -> None:
    """A title for each setup from its path; where that does not tell two apart, from the scenario's name."""
    for setup in setups:
        flows = len(setup.scenario.get("flows") or [])
        setup.title = paths.summary(setup.path) + (f", {flows} flows" if flows > 1 else "")
        settings = [run.recording.provenance.get("settings") or {} for run in setup.runs]
        alternatives = {str(each.get("alternative") or "") for each in settings}
        if len(alternatives) == 1 and (alternative := alternatives.pop()):
            setup.title = f"{alternative}: {setup.title}"
    for setup in setups:
        twins = [other for other in setups if other.title == setup.title]
        if len(twins) > 1:
            for twin in twins:
                twin.title = f"{twin.title} ({twin.runs[0].name})"


def _contenders(runs: list[RecordedRun], colours: dict[str, str]) -> list[Contender]:
    by_label = _tell_by_label(runs)
    several = len({run.engine for run in runs}) > 1
    contenders: dict[str, Contender] = {}
    for run in runs:
        engine = f" · {run.engine}" if several else ""
        specs = {str(spec.get("label")): spec for spec in run.scenario.get("flows") or []}
        members: dict[str, list[RecordedFlow]] = {}
        for flow in run.recording.flows:
            key = flow.label if by_label else flow.cc + _options(specs.get(flow.label, {}))
            key += engine
            members.setdefault(key, []).append(flow)
        for key, flows in members.items():
            cc = flows[0].cc
            contender = contenders.setdefault(key, Contender(key, key, cc, colours[cc]))
            contender.bouts.append(Bout(run, flows, _results(run, flows)))
    return _dashed(list(contenders.values()))


def _dashed(contenders: list[Contender]) -> list[Contender]:
    seen: dict[str, int] = {}
    for contender in contenders:
        index = seen.get(contender.colour, 0)
        contender.dash = DASHES[index % len(DASHES)]
        seen[contender.colour] = index + 1
    return contenders


def _results(run: RecordedRun, flows: list[RecordedFlow]) -> list[Json]:
    rows = {str(row.get("label")): row for row in run.summary.get("flows") or []}
    return [rows[flow.label] for flow in flows if flow.label in rows]


def _options(spec: Json) -> str:
    options = (spec.get("transport") or {}).get("cc_options") or {}
    return "".join(f" {name}={quantity.digits(float(value))}" for name, value in sorted(options.items()))


def _tell_by_label(runs: list[RecordedRun]) -> bool:
    """Whether flows of one algorithm in one run differ in path, application or time."""
    labels = {str(flow.get("label")) for run in runs for flow in run.scenario.get("flows") or []}
    if len(labels) > LABELS_MAX:
        return False
    for run in runs:
        signatures: dict[str, str] = {}
        specs = run.scenario.get("flows") or []
        ways = paths_of(run.scenario, [(spec["sender"], spec["receiver"]) for spec in specs])
        for spec, way in zip(specs, ways, strict=True):
            signature = json.dumps(
                [
                    [spec.get("application"), spec.get("start_ns"), spec.get("stop_ns")],
                    [way.rtt_ns, way.rate_bps, len(way.forward)],
                ],
                sort_keys=True,
            )
            algorithm = str((spec.get("transport") or {}).get("cc", "udp")) + _options(spec)
            if signatures.setdefault(algorithm, signature) != signature:
                return True
    return False
