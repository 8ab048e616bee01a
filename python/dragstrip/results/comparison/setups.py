"""Set-ups, contenders and repeats: the units of a comparison.

A **set-up** is everything about a run except its seed and what it compares: engine, path, hosts, and the
traffic without its labels and algorithms. A **contender** is what a curve and a row stand for: a label, an
algorithm and its options. Flows whose labels differ only in a number are one contender if they are alike
(same application, times and path). Contenders that share a run are compared only with each other; the same
flows with other algorithms are another set-up. A **bout** is one contender in one run; several bouts of the
same contender are repeats.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from dragstrip import engines
from dragstrip.display import quantity
from dragstrip.display.look import DASHES
from dragstrip.model.scenario.paths import PathFacts, ScenarioFacts, scenario_facts
from dragstrip.results.comparison import path as paths

T = TypeVar("T")
Json: TypeAlias = Mapping[str, Any]

LABELS_MAX = 10
"""Curves per algorithm, at most; with more, its flows share one curve, because nobody can tell 30 colours
apart."""
FLOWS_DRAWN_MAX = 1000
"""Flows of one run whose curves are read, at most; of more, an evenly spaced selection is read."""
COMPARED_SYSCTLS = ("net.ipv4.tcp_congestion_control",)
"""Sysctls that are compared and therefore not part of the set-up: the kernel's default algorithm."""


@dataclass(frozen=True)
class Run:
    """A run of the result document with its scenario."""

    summary: Json
    """The run's entry in `runs` of the result document."""

    @property
    def scenario(self) -> Json:
        """The scenario as it was run."""
        raise NotImplementedError

    @cached_property
    def facts(self) -> ScenarioFacts:
        """The scenario with its facts."""
        return scenario_facts(self.scenario)

    @property
    def settings(self) -> Json:
        """The values by dotted path that distinguish this run, and the name of its `alternative`."""
        raise NotImplementedError

    @property
    def flows(self) -> list[Json]:
        """The rows of the run's flows in the result document."""
        return list(self.summary.get("flows") or [])

    @property
    def engine(self) -> str:
        """The name of the engine that made the run."""
        return str(self.summary.get("engine") or "unknown")

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.scenario.get("name") or self.summary.get("scenario") or "")

    @property
    def seed(self) -> Any:
        """The run's seed; repeats of different contenders with the same seed are a pair."""
        return self.summary.get("seed", self.scenario.get("seed"))

    @property
    def duration_s(self) -> float:
        """The run's duration in seconds."""
        return float(self.scenario.get("duration_ns", 0)) / 1e9 or float(self.summary.get("duration_s") or 0)


@dataclass(frozen=True)
class UnmeasuredRun(Run):
    """A run as planned."""

    planned_facts: ScenarioFacts
    varied: Json

    @property
    def scenario(self) -> Json:
        """The scenario as planned, with the facts of its links."""
        return self.planned_facts.scenario

    @cached_property
    def facts(self) -> ScenarioFacts:
        """The scenario with its facts."""
        return self.planned_facts

    @property
    def settings(self) -> Json:
        """The values by dotted path that distinguish this run, and the name of its `alternative`."""
        return self.varied


@dataclass(frozen=True)
class Bout:
    """One contender in one run: the rows of the result document about its flows."""

    run: Run
    results: list[Json]


def sampled_flows(flows: Sequence[T]) -> Sequence[T]:
    """Return the flows whose curves are read: all, or an evenly spaced selection of `FLOWS_DRAWN_MAX`."""
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
    unlike: bool = False
    """Its flows differ in application, times or path, and are too many to be shown separately."""

    @property
    def is_tcp(self) -> bool:
        """True for TCP flows, which have windows and round-trip times."""
        return self.cc != "udp"


@dataclass
class Setup:
    """Runs over the same path with the same traffic."""

    key: str
    title: str
    runs: list[Run]
    contenders: list[Contender]
    short: str = ""
    """The part of the title that other set-ups do not share, for lists of them."""

    @property
    def scenario(self) -> Json:
        """The scenario of the first run; the others differ only in algorithm and seed."""
        return self.runs[0].scenario

    @property
    def scenarios(self) -> list[Json]:
        """The scenarios of all runs."""
        return [run.scenario for run in self.runs]

    @property
    def together(self) -> bool:
        """True when contenders share a run, so that shares and fairness between them have a meaning."""
        return any(sum(run is bout.run for c in self.contenders for bout in c.bouts) > 1 for run in self.runs)

    @property
    def shared(self) -> bool:
        """True when any run has several flows."""
        return any(len(run.flows) > 1 for run in self.runs)

    @property
    def repeats(self) -> int:
        """The largest number of runs of one contender."""
        return max((len(contender.bouts) for contender in self.contenders), default=0)

    @property
    def duration_s(self) -> float:
        """The duration of the longest run in seconds."""
        return max(run.duration_s for run in self.runs)

    @property
    def end_s(self) -> float:
        """The stop time of the last flow, rounded up to whole seconds, at most the duration of the runs."""
        stops = [
            quantity.number(flow.get("stop_s")) or self.duration_s for run in self.runs for flow in run.flows
        ]
        return min(self.duration_s, math.ceil(max(stops, default=self.duration_s)) or self.duration_s)

    @cached_property
    def path(self) -> PathFacts:
        """The path of the first flow."""
        ways = self.runs[0].facts.ways
        return ways[0] if ways else PathFacts([], [])

    def way(self, contender: Contender) -> PathFacts:
        """Return the path of a contender's first flow, whose bottleneck is where its flows queue.

        The recordings say where (in most runs, if they differ); without that, the slowest link is meant.
        """
        if contender.key not in self._ways:
            self._ways[contender.key] = self._way(contender)
        return self._ways[contender.key]

    @cached_property
    def _ways(self) -> dict[str, PathFacts]:
        return {}

    def _way(self, contender: Contender) -> PathFacts:
        bout = contender.bouts[0]
        labels = [flow["label"] for flow in bout.run.scenario.get("flows") or []]
        first = str(bout.results[0].get("label")) if bout.results else ""
        ways = bout.run.facts.ways
        way = ways[labels.index(first)] if first in labels and len(ways) == len(labels) else self.path
        rows = (row for repeat in contender.bouts for row in repeat.results)
        bottlenecks = Counter(str(row["bottleneck"]) for row in rows if row.get("bottleneck"))
        links = {str(link["name"]): link for link in bout.run.facts.scenario.get("links") or []}
        link = next((links[name] for name, _ in bottlenecks.most_common() if name in links), None)
        if link is None or (way.bottleneck is not None and link["name"] == way.bottleneck["name"]):
            return way
        bps = link["facts"]["rate_bps"]
        bdp = None if bps is None else int(bps * way.rtt_ns / 8e9)
        return replace(way, bottleneck=link, rate_bps=bps, bdp_bytes=bdp)

    def queue_link(self, contender: Contender) -> str | None:
        """Return the name of the link where a contender's flows queue, or None."""
        way = self.way(contender)
        link = way.bottleneck or (way.forward[0] if way.forward else None)
        return str(link["name"]) if link else None

    @cached_property
    def several(self) -> bool:
        """True when flows queue at several links, or not at the slowest: links then need names."""
        slowest = self.path.bottleneck and self.path.bottleneck["name"]
        links = [self.way(contender).bottleneck for contender in self.contenders]
        return any(link is not None and link["name"] != slowest for link in links)

    @cached_property
    def bottlenecks(self) -> dict[str, list[str]]:
        """The links where contenders queue, each with their titles."""
        links: dict[str, list[str]] = {}
        for contender in self.contenders:
            if (link := self.way(contender).bottleneck) is not None:
                links.setdefault(str(link["name"]), []).append(contender.title)
        return links

    def queue_name(self, contender: Contender) -> str:
        """Return the name of that link in text: the bottleneck, its name or, if none is known, its ends."""
        way = self.way(contender)
        if self.several and way.bottleneck is not None:
            return str(way.bottleneck["name"])
        if way.bottleneck or not way.forward:
            return "the bottleneck"
        first = way.forward[0]
        return f"{first['from']} → {first['to']}"

    @property
    def queue_names(self) -> str:
        """The name in text of the links where all contenders queue, each in a run of its own."""
        names = list(dict.fromkeys(self.queue_name(contender) for contender in self.contenders))
        return names[0] if len(names) == 1 else "the link where the flow queues"

    @cached_property
    def draws(self) -> bool:
        """True when another seed may give other figures."""
        return any(run.engine != engines.SIMULATOR or run.facts.draws for run in self.runs)


def setups_of(runs: Iterable[Run], colours: Mapping[str, str] | None = None) -> list[Setup]:
    """Group all runs into set-ups, in the order of first appearance.

    `colours` maps algorithms to colours, for callers that draw.
    """
    groups: dict[str, list[tuple[Run, list[_Group]]]] = {}
    runs = list(runs)
    for run in runs:
        members = _groups(run)
        key = (
            _setup_key(run, members) if len(runs) > 1 else ""
        )  # of a hundred thousand flows it takes a second
        groups.setdefault(key, []).append((run, members))
    setups = []
    for key, entries in groups.items():
        setups.append(Setup(key, "", [run for run, _ in entries], _contenders(entries, colours or {})))
    _name(setups)
    return setups


def algorithms_of(runs: Iterable[Run]) -> list[str]:
    """Return every algorithm once, in the order of first appearance."""
    return list(dict.fromkeys(str(flow.get("cc")) for run in runs for flow in run.flows))


# --- contenders -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Flows of one run that are one contender."""

    label: str
    """The flows' label without its number."""
    algorithm: str
    """The algorithm with its options."""
    alike: str
    """Other properties that the flows of one contender have in common, as text."""
    rows: list[Json]
    unlike: bool = False

    @property
    def key(self) -> str:
        return "\x00".join([self.label, self.algorithm, self.alike])


def _groups(run: Run) -> list[_Group]:
    """Group a run's flows by label, algorithm with options, and signature.

    By algorithm if they are too many.
    """
    specs = {str(spec.get("label")): spec for spec in run.scenario.get("flows") or []}
    alike = _signatures(run)
    groups: dict[tuple[str, str, str], list[Json]] = {}
    for row in run.flows:
        label = str(row.get("label"))
        key = (_plain(label), _algorithm(row, specs.get(label, {})), alike.get(label, ""))
        groups.setdefault(key, []).append(row)
    flow_groups = [_Group(*key, rows) for key, rows in groups.items()]
    if len(flow_groups) <= LABELS_MAX:
        return flow_groups
    pooled: dict[str, list[_Group]] = {}
    for group in flow_groups:
        pooled.setdefault(group.algorithm, []).append(group)
    return [
        members[0] if len(members) == 1 else _Group("", algorithm, "", _in_order(run, members), unlike=True)
        for algorithm, members in pooled.items()
    ]


def _in_order(run: Run, members: Sequence[_Group]) -> list[Json]:
    numbers = {row.get("flow") for group in members for row in group.rows}
    return [row for row in run.flows if row.get("flow") in numbers]


def _plain(label: str) -> str:
    """Return the label without the number that flows of one entry get."""
    return re.sub(r"-\d+$", "", label)


def _algorithm(row: Json, spec: Json) -> str:
    options = (spec.get("transport") or {}).get("cc_options") or {}
    words = [f"{name}={quantity.digits(float(value))}" for name, value in sorted(options.items())]
    return " ".join([str(row.get("cc")), *words])


def _signatures(run: Run) -> dict[str, str]:
    """Return the application, times, path and competitors of each flow as text, by label."""
    specs = run.scenario.get("flows") or []
    if len(specs) < 2:
        return {}
    ways = run.facts.ways
    links = [[str(link["name"]) for link in way.forward] for way in ways]
    flows_per_link = Counter(name for names in links for name in names)
    competing = run.summary.get("competing") or []
    sets = {
        number: place for place, competing_set in enumerate(competing) for number in competing_set["flows"]
    }
    numbers = {str(row.get("label")): row.get("flow") for row in run.flows}
    signatures = {}
    shared_texts: dict[str, str] = {}  # a hundred thousand flows alike share one text
    for spec, way, names in zip(specs, ways, links, strict=True):
        label = str(spec.get("label"))
        shared = [name for name in names if flows_per_link[name] > 1]
        times = [spec.get("application"), spec.get("start_ns"), spec.get("stop_ns")]
        if "source" in spec:  # its flows differ in size and start
            times = ["arrives", spec["source"]]
        path = [way.rtt_ns, way.rate_bps, len(names), shared, sets.get(numbers.get(label))]
        alike = repr((times, path))
        signatures[label] = shared_texts.get(alike) or shared_texts.setdefault(
            alike, json.dumps([times, path], sort_keys=True)
        )
    return signatures


def _contenders(entries: Sequence[tuple[Run, list[_Group]]], colours: Mapping[str, str]) -> list[Contender]:
    groups: dict[str, _Group] = {}
    contenders: dict[str, Contender] = {}
    for run, members in entries:
        for group in members:
            cc = str(group.rows[0].get("cc"))
            groups.setdefault(group.key, group)
            contender = contenders.setdefault(
                group.key, Contender(group.key, "", cc, colours.get(cc, ""), unlike=group.unlike)
            )
            contender.bouts.append(Bout(run, group.rows))
    for key, title in _titles(groups).items():
        contenders[key].title = title
    return _dashed(list(contenders.values()))


def _titles(groups: Mapping[str, _Group]) -> dict[str, str]:
    """Title each contender by what distinguishes it: its algorithm, with its label if labels differ."""
    several = len({group.label for group in groups.values()}) > 1
    titles = {}
    for key, group in groups.items():
        with_label = several and group.label and group.label != group.algorithm.split()[0]
        cc = group.algorithm.split()[0]
        # cubic:beta=0.8, bbr*4@80ms, cubic-reverse
        typed = re.match(rf"{re.escape(cc)}[:*@+]", group.label)
        label_alone = with_label and (typed or group.label == f"{group.algorithm}-reverse")
        # A live video has no congestion control of TCP's: `scream` says more than `udp`.
        is_video = group.label and group.rows[0].get("rtp")
        titles[key] = (
            group.label
            if label_alone or is_video
            else f"{group.label} · {group.algorithm}"
            if with_label
            else group.algorithm
        )
    for title, count in Counter(titles.values()).items():
        for key in [key for key, other_title in titles.items() if other_title == title] if count > 1 else []:
            titles[key] = _numbered(groups[key], title)
    return titles


def _numbered(group: _Group, title: str) -> str:
    """Return the title with the flows' full labels, which are unique in a run."""
    labels = [str(row.get("label")) for row in group.rows]
    words = labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"
    return title.replace(group.label, words, 1) if title.startswith(group.label) else f"{words} · {title}"


def _dashed(contenders: list[Contender]) -> list[Contender]:
    """Give each contender the next dash pattern of its colour, as crates/display does for the playground."""
    drawn: Counter[str] = Counter()
    for contender in contenders:
        colour = contender.colour or contender.cc
        contender.dash = DASHES[drawn[colour] % len(DASHES)]
        drawn[colour] += 1
    return contenders


# --- set-ups --------------------------------------------------------------------------------------


def _setup_key(run: Run, members: Sequence[_Group]) -> str:
    scenario = run.scenario
    nodes = []
    for node in scenario.get("nodes") or []:
        sysctl = {k: v for k, v in (node.get("sysctl") or {}).items() if k not in COMPARED_SYSCTLS}
        nodes.append({**node, "sysctl": sysctl} if "sysctl" in node else node)
    traffic: list[Json] = []
    for flow in scenario.get("flows") or []:
        # Every seed draws other flows from a source.
        arrives = "source" in flow
        kept_keys = {"source"} if arrives else set(flow) - {"label", "transport"}
        flow_spec = {k: v for k, v in flow.items() if k in kept_keys}
        flow_spec["protocol"] = (flow.get("transport") or {}).get("protocol")
        if not arrives or flow_spec not in traffic[-1:]:
            traffic.append(flow_spec)
    compared = ("name", "seed", "nodes", "flows")
    rest = {key: value for key, value in scenario.items() if key not in compared}
    together = [group.key for group in members] if len(members) > 1 else []
    shape = [run.engine, nodes, traffic, rest, together]
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()


def _name(setups: list[Setup]) -> None:
    """Title each set-up by its path and by what else distinguishes it."""
    engines = {run.engine for setup in setups for run in setup.runs}
    flows = {setup.key: len(setup.scenario.get("flows") or []) for setup in setups}
    for setup in setups:
        count = flows[setup.key]
        words = [
            paths.summary(setup.path, setup.runs[0].facts.ways),
            *([f"{count} flows"] if count > 1 else []),
        ]
        if setup.together:
            words.append("together")
        setup.title = ", ".join(words)
        if len(engines) > 1:
            setup.title += f" · {setup.runs[0].engine}"
        alternatives = {str(run.settings.get("alternative") or "") for run in setup.runs}
        if len(alternatives) == 1 and (alternative := alternatives.pop()):
            setup.title = f"{alternative}: {setup.title}"
    _tell_apart(setups, _algorithms)
    _tell_apart(setups, _settings)
    _tell_apart(setups, _profiles)
    _tell_apart(setups, lambda twins: [re.sub(r" #\d+$", "", twin.runs[0].name) for twin in twins])
    alike = shared_words(setups)
    distinct_words = [
        ", ".join(word for word in setup.title.split(", ") if word not in alike) for setup in setups
    ]
    distinct = all(distinct_words) and len(set(distinct_words)) == len(distinct_words)
    for setup, short_title in zip(setups, distinct_words, strict=True):
        setup.short = short_title if distinct else setup.title


def shared_words(setups: Sequence[Setup]) -> list[str]:
    """Return the parts of titles that several set-ups share, such as `10 Mbit/s` and `40 ms`."""
    parts = [setup.title.split(", ") for setup in setups]
    return (
        [word for word in parts[0] if all(word in title_parts for title_parts in parts)]
        if len(parts) > 1
        else []
    )


def _tell_apart(setups: list[Setup], words: Any) -> None:
    """Prefix equal titles with words that differ between their set-ups."""
    for title, count in Counter(setup.title for setup in setups).items():
        twins = [setup for setup in setups if setup.title == title] if count > 1 else []
        prefixes = words(twins) if twins else []
        if len(set(prefixes)) > 1:
            for twin, word in zip(twins, prefixes, strict=True):
                twin.title = f"{word}: {title}" if word else title


def _algorithms(twins: Sequence[Setup]) -> list[str]:
    """Return the algorithms that share the path in each set-up."""
    return [
        quantity.listing(list(dict.fromkeys(c.cc for c in twin.contenders))) if twin.together else ""
        for twin in twins
    ]


def _profiles(twins: Sequence[Setup]) -> list[str]:
    """Return the stack profiles of the hosts in each set-up."""
    profiles_by_setup = [
        dict.fromkeys(node["profile"] for node in twin.scenario.get("nodes") or [] if node.get("profile"))
        for twin in twins
    ]
    return [quantity.listing(list(profiles)) for profiles in profiles_by_setup]


def _settings(twins: Sequence[Setup]) -> list[str]:
    """Return the settings that differ between the set-ups, except those of the algorithms."""
    setting_sets = [dict(twin.runs[0].settings) for twin in twins]
    keys = dict.fromkeys(key for settings in setting_sets for key in settings)
    differ = [
        key
        for key in keys
        if not re.fullmatch(r"flows(\..+)?\.(cc|label)|alternative", key)
        and len({json.dumps(settings.get(key), sort_keys=True, default=str) for settings in setting_sets}) > 1
    ]
    return [
        ", ".join(f"{key} = {settings[key]}" for key in differ if key in settings)
        for settings in setting_sets
    ]
