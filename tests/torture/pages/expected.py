"""What should be shown, worked out from `result.json`, the scenarios and the recordings alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as parquet

from .shown import close

Json = dict[str, Any]
TIE, RETRANSMIT_TIE = 0.01, 1e-4
REPEATS_MIN = 3
POOLED_FROM = 11
"""So many kinds of flows in one run share rows by algorithm."""

ASKING = ("request_response", "video")
"""Applications whose answers are the data."""


@dataclass(frozen=True)
class Run:
    """A run with its scenario and its recording."""

    folder: Path
    summary: Json

    @cached_property
    def scenario(self) -> Json:
        found: Json = json.loads((self.folder / "scenario.json").read_text())
        return found

    def table(self, name: str) -> dict[str, Any]:
        columns = parquet.read_table(self.folder / f"{name}.parquet").to_pydict()
        return {key: np.asarray(values, dtype=object) for key, values in columns.items()}

    @cached_property
    def key(self) -> str:
        """Equal for repeats: everything but name and seed."""
        same = {key: value for key, value in self.scenario.items() if key not in ("name", "seed")}
        return json.dumps([self.summary["engine"], same], sort_keys=True)

    @cached_property
    def ways(self) -> list[tuple[list[Json], list[Json]]]:
        """Of each flow the links that its data takes, and those back; who asks gets the data."""
        found = [(flow["sender"], flow["receiver"]) for flow in self.scenario["flows"]]
        asks = [flow["application"]["kind"] in ASKING for flow in self.scenario["flows"]]
        ends = [pair[::-1] if asking else pair for pair, asking in zip(found, asks, strict=True)]
        return [(self._way(near, far), self._way(far, near)) for near, far in ends]

    def _way(self, near: str, far: str) -> list[Json]:
        reached: dict[str, list[Json]] = {near: []}
        edge = [near]
        while far not in reached:
            following = []
            for node in edge:
                for link in self.scenario["links"]:
                    if link["from"] == node and link["to"] not in reached:
                        reached[link["to"]] = [*reached[node], link]
                        following.append(link["to"])
            edge = following
        return reached[far]

    @cached_property
    def competing(self) -> list[set[int]]:
        """Sets of flows whose data crosses the same limited link, and the competitors of their competitors."""
        sets: list[tuple[set[int], set[str]]] = []
        for number, (data, _) in enumerate(self.ways):
            mine = ({number}, {link["name"] for link in data if rate_of(link) or link["medium"]})
            apart = [each for each in sets if not each[1] & mine[1]]
            for each in (each for each in sets if each[1] & mine[1]):
                mine = (mine[0] | each[0], mine[1] | each[1])
            sets = [*apart, mine]
        return sorted((numbers for numbers, _ in sets), key=min)


def rate_of(link: Json) -> float | None:
    """A link's rate, its own or its shaper's."""
    rates = [link.get("rate_bps"), link["qdisc"].get("rate_bps")]
    known = [float(rate) for rate in rates if rate]
    return min(known) if known else None


@dataclass(frozen=True)
class Group:
    """Flows of one run that share a row, by their numbers."""

    algorithm: str
    options: Json
    label: str
    numbers: tuple[int, ...]
    pooled: bool = False


def groups_of(run: Run) -> list[Group]:
    """Flows alike but for a number at the end of their labels."""
    uses = Counter(link["name"] for there, _ in run.ways for link in there)

    def alike(links: Sequence[Json]) -> list[Json]:
        own = ("name", "from", "to")
        shared = [link["name"] if uses[link["name"]] > 1 else "" for link in links]
        return [
            {k: v for k, v in link.items() if k not in own} | {"is": s}
            for link, s in zip(links, shared, strict=True)
        ]

    kinds: dict[str, list[int]] = {}
    known: dict[str, tuple[str, Json, str]] = {}
    for number, flow in enumerate(run.scenario["flows"]):
        transport = flow["transport"]
        algorithm = transport.get("cc") or transport["protocol"]
        options, label = transport.get("cc_options") or {}, re.sub(r"-[0-9]+$", "", flow["label"])
        there, _ = run.ways[number]
        back = sum(
            link["delay_ns"] + (link["netem"] or {}).get("delay_ns", 0) for link in run.ways[number][1]
        )
        apart = [flow["application"], flow["start_ns"], flow["stop_ns"], alike(there), back]
        apart.append(sorted(next(numbers for numbers in run.competing if number in numbers)))
        key = json.dumps([algorithm, options, label, apart], sort_keys=True)
        kinds.setdefault(key, []).append(number)
        known[key] = (algorithm, options, label)
    if len(kinds) < POOLED_FROM:
        return [Group(*known[key], tuple(numbers)) for key, numbers in kinds.items()]
    pooled: dict[str, Group] = {}
    for key, numbers in kinds.items():
        algorithm, options, label = known[key]
        name = json.dumps([algorithm, options], sort_keys=True)
        before = pooled.get(name)
        all_numbers = tuple(sorted((*before.numbers, *numbers))) if before else tuple(numbers)
        pooled[name] = Group(
            algorithm, options, "" if before else label, all_numbers, pooled=before is not None
        )
    return list(pooled.values())


@dataclass(frozen=True)
class Statistic:
    """Values of repeats by seed."""

    values: dict[int, float]

    @property
    def middle(self) -> float:
        return median(self.values.values())

    @property
    def least(self) -> float:
        return min(self.values.values())

    @property
    def greatest(self) -> float:
        return max(self.values.values())


class Row:
    """What one kind of flow got in all repeats of a run."""

    def __init__(self, runs: list[Run], group: Group) -> None:
        self.runs, self.group = runs, group

    def __repr__(self) -> str:
        return f"{self.group} in {[run.summary['recording'] for run in self.runs]}"

    def flows(self, run: Run) -> list[Json]:
        """The result document's entries."""
        return [run.summary["flows"][number] for number in self.group.numbers]

    def over(self, figure: Callable[[Run], float | None]) -> Statistic | None:
        found = {run.summary["seed"]: figure(run) for run in self.runs}
        known = {seed: value for seed, value in found.items() if value is not None}
        return Statistic(known) if known else None

    def rivals(self, run: Run) -> set[int] | None:
        """The competing flows that its own belong to; none if those are of several sets."""
        sets = [numbers for numbers in run.competing if numbers & set(self.group.numbers)]
        return sets[0] if len(sets) == 1 else None

    def goodput(self, run: Run) -> float | None:
        flows = self.flows(run)
        seconds = max(flow["stop_s"] for flow in flows) - min(flow["start_s"] for flow in flows)
        return sum(flow["bytes_received"] for flow in flows) * 8 / seconds if seconds > 0 else 0.0

    def share(self, run: Run) -> float | None:
        rivals = self.rivals(run)
        if rivals is None:
            return None
        parts = [flow["share"] for flow in self.flows(run)]  # held against the recording by `check_document`
        return None if None in parts else sum(parts)

    def jain(self, run: Run) -> float | None:
        rivals = self.rivals(run)
        if rivals is None or len(rivals) < 2:
            return None
        sets = zip(run.competing, run.summary["competing"], strict=True)
        found: float | None = next(entry["jain"] for numbers, entry in sets if numbers == rivals)
        return found

    def rtt(self, part: str) -> Callable[[Run], float | None]:
        return lambda run: _median([flow["rtt_ms"][part] for flow in self.flows(run)])

    def throughput(self, run: Run) -> float | None:
        return _median([flow["throughput_bps_p50"] for flow in self.flows(run)])

    def retransmits(self, run: Run) -> float | None:
        return None if self.group.algorithm == "udp" else sum(flow["retransmits"] for flow in self.flows(run))

    def rate(self, run: Run) -> float | None:
        sent = sum(flow["segments_sent"] for flow in self.flows(run))
        again = self.retransmits(run)
        return again / sent if sent and again is not None else None

    def queue(self, link: str, name: str, part: str = "") -> Callable[[Run], float | None]:
        def figure(run: Run) -> float | None:
            found = [queue for queue in run.summary["queues"] if queue["link"] == link]
            value = found[0][name] if found else None
            return value[part] if part and value is not None else value

        return figure

    def ping(self, run: Run) -> float | None:
        probes = run.summary["probes"]
        return probes[0]["rtt_ms"]["p50"] if probes else None

    def seconds(self, name: str) -> dict[str, float]:
        spent: Counter[str] = Counter()
        for flow in (flow for run in self.runs for flow in self.flows(run)):
            spent.update(flow[name])
        return dict(spent)

    def total(self, name: str) -> Callable[[Run], float | None]:
        def figure(run: Run) -> float | None:
            values = [flow[name] for flow in self.flows(run)]
            return None if None in values else sum(values)

        return figure


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def rows_of(runs: list[Run]) -> list[Row]:
    """A row per kind of run (repeats are alike but for their seeds) and kind of flow in it."""
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(run.key, []).append(run)
    return [Row(alike, group) for alike in kinds.values() for group in groups_of(alike[0])]


def runs_of(out: Path) -> list[Run]:
    document = json.loads((out / "result.json").read_text())
    return [Run(out / line["recording"], line) for line in document["runs"]]


# --- who is ahead ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """Places of the best and of the worst; sure where repeats were judged or nothing is random."""

    best: set[int]
    worst: set[int]
    sure: bool


def judge(
    figures: Sequence[Statistic | None], *, draws: bool, most: bool, relative: bool = True, tie: float = TIE
) -> Judged | None:
    """The order by docs/how-to/report.md: medians, or with three to five repeats the range of paired differences."""
    known = [place for place, figure in enumerate(figures) if figure is not None]
    if len(known) < 2:
        return None
    seeds = min(len(figure.values) for figure in figures if figure is not None)
    paired = draws and seeds >= REPEATS_MIN

    def ends(most: bool) -> set[int]:
        sign = 1 if most else -1
        # The first of equals leads.
        leader = max(known, key=lambda place: (sign * figures[place].middle, -place))  # type: ignore[union-attr]
        first = figures[leader]
        assert first is not None

        def gaps(other: Statistic) -> list[float]:
            if not paired:
                pairs = [(first.middle, other.middle)]
            else:
                pairs = [
                    (first.values[seed], other.values[seed]) for seed in first.values if seed in other.values
                ]
            scale = [abs(own) if relative else 1.0 for own, _ in pairs]
            return [
                sign * (own - theirs) / size if size else (np.inf if own != theirs else 0.0)
                for (own, theirs), size in zip(pairs, scale, strict=True)
            ]

        def behind(place: int) -> bool:
            found = gaps(figures[place])  # type: ignore[arg-type]
            return min(found, default=0.0) > tie and (not paired or len(found) >= REPEATS_MIN)

        return {place for place in known if not behind(place)}

    best = ends(most)
    return Judged(best, ends(not most) - best, not draws or seeds >= REPEATS_MIN)


# --- the document itself, from the recording -------------------------------------------------------


def check_document(run: Run) -> None:
    """Goodput, shares, Jain's index, RTT, retransmissions, losses of pings and drops, from the tables."""
    name, tables = (
        run.summary["recording"],
        {key: run.table(key) for key in ("flows", "rtts", "samples", "received")},
    )
    rows = tables["flows"]
    end_ns = run.scenario["duration_ns"]
    interval_ns = run.scenario["record"]["interval_ns"]
    starts = [int(start) for start in rows["start_ns"]]
    stops = [end_ns if stop is None else int(stop) for stop in rows["stop_ns"]]
    received = [float(size or 0) for size in rows["bytes_received"]]
    lives = [(stop - start) / 1e9 for start, stop in zip(starts, stops, strict=True)]
    rates = [8 * size / life if life > 0 else 0.0 for size, life in zip(received, lives, strict=True)]

    def common(numbers: set[int]) -> tuple[int, int] | None:
        """When all of them live, where lives differ and at least half of the shortest is shared."""
        begin, end = max(starts[number] for number in numbers), min(stops[number] for number in numbers)
        own = [stops[number] - starts[number] for number in numbers]
        apart = 0 < end - begin < 0.9 * max(own) and end - begin >= 0.5 * min(own)
        return (begin, end) if apart else None

    def compared_by(numbers: set[int], whole: Sequence[float]) -> dict[int, float]:
        """What flows that compete are compared by: what arrived while all lived, or else `whole`."""
        if (together := common(numbers)) is None:
            return {number: whole[number] for number in numbers}
        times = tables["received"]["time_ns"]
        inside = (times >= together[0] + interval_ns) & (times <= together[1])
        found = {}
        for number in numbers:
            mine = tables["received"]["new_bytes"][inside & (tables["received"]["flow"] == number)]
            found[number] = 8e9 * float(sum(mine)) / (interval_ns * len(mine)) if len(mine) else 0.0
        return found

    for place, flow in enumerate(run.summary["flows"]):

        def same(what: str, ours: float | None, place: int = place, flow: Json = flow) -> None:
            theirs = flow[what] if not isinstance(flow[what], dict) else None
            assert close(ours, theirs), f"{name}: flow {place} {what}: {theirs}, the recording has {ours}"

        same("goodput_bps", rates[place])
        same("retransmits", rows["retransmits"][place] or 0)
        same("segments_sent", rows["segments_sent"][place] or 0)
        same("reductions", rows["reductions"][place] or 0)
        same("timeouts", rows["rto_count"][place])
        rivals = next(numbers for numbers in run.competing if place in numbers)
        parts = compared_by(rivals, received)
        every = sum(parts.values())
        same("share", parts[place] / every if every else None)
        rtts = _of_flow(tables["rtts"], flow["flow"], starts[place], stops[place], "rtt_ns")
        if not np.any(tables["rtts"]["flow"] == flow["flow"]):
            rtts = _of_intervals(tables["samples"], flow["flow"], starts[place], stops[place])
        for part, share in (("p5", 5), ("p50", 50), ("p95", 95)):
            ours = float(np.percentile(rtts, share)) / 1e6 if len(rtts) else None
            assert close(ours, flow["rtt_ms"][part]), (
                f"{name}: flow {place} RTT {part}: {flow['rtt_ms']}, not {ours}"
            )
        wire = _of_flow(
            tables["received"], flow["flow"], starts[place] + interval_ns, stops[place], "wire_bytes"
        )
        bins = max(1, 1_000_000_000 // interval_ns)
        spans = [wire[at : at + bins] for at in range(0, len(wire) - bins + 1, bins)] or [wire] * bool(
            len(wire)
        )
        bps = [8e9 * float(sum(span)) / (len(span) * interval_ns) for span in spans]
        same("throughput_bps_p50", median(bps) if bps else None)
    for entry, numbers in zip(run.summary["competing"], run.competing, strict=True):
        assert set(entry["flows"]) == numbers, f"{name}: {entry['flows']} compete, expected {sorted(numbers)}"
        compared = compared_by(numbers, rates)
        fair = dict(zip(entry["flows"], entry["max_min_bps"] or [], strict=False))
        own = [rate / fair.get(number, 1.0) for number, rate in compared.items()]
        squares = sum(rate * rate for rate in own)
        ours = sum(own) ** 2 / (len(own) * squares) if squares else None
        assert close(ours, entry["jain"]), f"{name}: Jain {entry['jain']}, expected {ours}"
    queues = run.table("queues")
    for queue in run.summary["queues"]:
        for what in ("dropped", "marked"):
            mine = queues[what][queues["link"] == queue["link"]]
            ours = max((int(count) for count in mine), default=0)
            assert ours == queue[what], f"{name}: {what} at {queue['link']}: {queue[what]}, expected {ours}"


def _of_intervals(samples: dict[str, Any], flow: int, start_ns: int, stop_ns: int) -> Any:
    """Return the RTTs of the intervals in which something was acknowledged."""
    inside = (samples["flow"] == flow) & (samples["time_ns"] >= start_ns) & (samples["time_ns"] <= stop_ns)
    rtts, before = [], None
    for rtt, acked in zip(samples["rtt_ns"][inside], samples["bytes_acked"][inside], strict=True):
        if rtt is not None and (before is None or acked is None or acked > before):
            rtts.append(rtt)
        before = acked
    return np.asarray(rtts, dtype=np.float64)


def _of_flow(table: dict[str, Any], flow: int, start_ns: int, stop_ns: int, column: str) -> Any:
    inside = (table["flow"] == flow) & (table["time_ns"] >= start_ns) & (table["time_ns"] <= stop_ns)
    return np.asarray([value for value in table[column][inside] if value is not None], dtype=np.float64)
