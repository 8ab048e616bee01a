"""The path that options of the command line describe, as facts and, where nothing was measured, simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragstrip import _core
from dragstrip.analysis.diagnosis.evidence import chosen_queue
from dragstrip.analysis.diagnosis.listing import kind_of
from dragstrip.analysis.diagnosis.observations import (
    COMMAND_LINE,
    SIMULATION,
    Fact,
    Observations,
    ObservedFlow,
    ObservedQueue,
    PingSeries,
)
from dragstrip.analysis.diagnosis.trials import RunFigures
from dragstrip.errors import BadInputError
from dragstrip.experiment import comparison
from dragstrip.experiment.expand import expand
from dragstrip.experiment.saved_paths import CARRIERS
from dragstrip.model.scenario.paths import PathFacts, link_facts, path_of

UP = "return path loaded"
STAND_INS = {"rate": "10mbit", "rtt": "40ms"}
"""Stand-ins for options that files answer, while the others are checked."""


def is_whole(race: Mapping[str, Any]) -> bool:
    """Return whether the options describe a path without any file."""
    return "path" in race or ("rtt" in race and any(name in race for name in CARRIERS))


@dataclass(frozen=True)
class DescribedPath:
    """A path as the options of the command line state it."""

    observed: Observations
    path: PathFacts
    up_bps: float | None
    """The rate of a return path with a queue of its own."""
    up_queue: str | None
    """The discipline of that queue."""
    upward: dict[str, Any] | None
    """Options of a run with uploads, which load it."""
    medium: bool
    """True when a medium carries one of the directions."""


def from_options(race: Mapping[str, Any], algorithm: str) -> DescribedPath:
    """Return what options state of a path; raises `BadInputError` for a wrong option."""
    if "rtt" in race and _is_zero(str(race["rtt"])):
        raise BadInputError("--rtt", str(race["rtt"]), "a time above 0, such as 20ms", "command line")
    whole = dict(race)
    if not any(name in whole for name in CARRIERS):
        whole["rate"] = STAND_INS["rate"]
    if "path" not in whole:
        whole.setdefault("rtt", STAND_INS["rtt"])
    described = comparison.compare([algorithm], source=comparison.COMMAND_LINE, **whole)
    (run,) = comparison.reworded(lambda: expand(described), comparison.COMMAND_LINE)
    flow = run.scenario["flows"][0]
    path = path_of(run.scenario, flow["sender"], flow["receiver"])
    facts: list[Fact] = []
    queues: list[ObservedQueue] = []
    link = path.bottleneck or {}
    if path.rate_bps is not None and not link.get("medium") and any(name in race for name in CARRIERS):
        facts.append(Fact("rate_bps", path.rate_bps, "exact", COMMAND_LINE))
    if ("rtt" in race or "path" in race) and not any(link.get("medium") for link in path.links):
        facts.append(Fact("idle_rtt_ms", path.ping_ns / 1e6, "exact", COMMAND_LINE))
    if "queue" in race or "path" in race:
        words = race["queue"] if "queue" in race else described.content()["path"].get("queue", "")
        queues.append(_queue(str(words), link))
    content = described.content()["path"]
    rates = {link["name"]: facts["fastest_bps"] for link, facts in _rates(run.scenario)}
    up = min((rates[link["name"]] for link in path.back if rates[link["name"]]), default=None)
    upward = {**race, "workload": "tcp_upload"} if "up_queue" in content else None
    medium = "rate" not in content or "up_medium" in content
    observations = Observations(facts=facts, queues=queues)
    up_queue = None if upward is None else str(content["up_queue"])
    return DescribedPath(observations, path, None if upward is None else up, up_queue, upward, medium)


def of_uploads(options: DescribedPath, flows: Sequence[ObservedFlow]) -> Observations:
    """Return what options state of the direction of the flows: of uploads that of the return path."""
    busy = [flow for flow in flows if flow.busy]
    if options.up_bps is None or not busy or not all(flow.upload for flow in busy):
        return options.observed
    facts = [fact for fact in options.observed.facts if fact.name != "rate_bps"]
    facts.append(Fact("rate_bps", options.up_bps, "exact", COMMAND_LINE))
    words = options.up_queue or ""
    link = next((link for link in options.path.back if link.get("medium")), {})
    return replace(options.observed, facts=facts, queues=[_queue(words, link)] if words else [])


def _is_zero(text: str) -> bool:
    """Return whether a time is 0, which no path has."""
    try:
        return _core.parse_time(text) == 0
    except _core.InputError:
        return False  # the options' own check says what is wrong with it


def _rates(scenario: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return zip(scenario["links"], link_facts(scenario), strict=True)


def uploaded(measured: RunFigures, up_bps: float) -> Observations:
    """Return what a run with uploads showed."""
    pings = measured.summary["probes"][0]["rtt_ms"]
    figures = {"up_rtt_p50_ms": pings["p50"], "up_rtt_p95_ms": pings["p95"], "up_rate_bps": up_bps}
    figures_present = {name: value for name, value in figures.items() if value is not None}
    return Observations(
        facts=[Fact(name, value, "simulated", SIMULATION, UP) for name, value in figures_present.items()]
    )


def _queue(words: str, link: Mapping[str, Any]) -> ObservedQueue:
    model = link.get("qdisc") or {}
    name = kind_of(words)
    kind = name if name.isalpha() or "_" in name else str(model.get("kind", "bfifo"))
    return ObservedQueue(
        COMMAND_LINE,
        "",
        "",
        words,
        words,
        kind if kind in ("noqueue",) or name == kind else "bfifo",
        limit_bytes=model.get("limit_bytes") if link.get("medium") else None,
    )


def to_simulate(race: Mapping[str, Any], observed: Observations) -> dict[str, Any]:
    """Return the options of a run of the path: those that were given, with a queue that files have."""
    queue = chosen_queue(observed.queues)
    line = next((float(fact.value) for fact in observed.facts if fact.name == "rate_bps"), None)
    if "queue" in race or queue is None or queue.queue is None:
        return dict(race)
    if queue.shaped_bps is not None and line is not None and queue.shaped_bps > line:
        return dict(race)  # the queue is in front of the line, whose own is not known
    return {**race, "queue": queue.queue}


def simulated(measured: RunFigures) -> Observations:
    """Return what a run of the path showed, in place of measurements."""
    flows = []
    for flow in measured.summary["flows"]:
        limited_s_total = sum(flow["limited_s"].values()) or 1.0
        limited: dict[str, float] = {}
        for word, seconds in flow["limited_s"].items():
            name = "send_buffer" if word == "sndbuf" else _core.limiting_factor(word)
            limited[name] = limited.get(name, 0.0) + seconds / limited_s_total
        middle = flow["rtt_ms"]["p50"]
        flows.append(
            ObservedFlow(
                source=SIMULATION,
                label=flow["label"],
                sender="",
                bytes=flow["bytes_received"],
                duration_s=flow["stop_s"] - flow["start_s"],
                goodput_bps=flow["goodput_bps"],
                segments=flow["segments_sent"],
                retransmitted=flow["retransmits"],
                rtt_p50_ms=middle,
                rtt_p95_ms=flow["rtt_ms"]["p95"],
                limited=limited,
                cc=flow["cc"],
            )
        )
    pings = [
        PingSeries(
            SIMULATION,
            probe["target"],
            1,
            0,
            None,
            probe["rtt_ms"]["p50"],
            probe["rtt_ms"]["p95"],
            True,
        )
        for probe in measured.summary["probes"]
    ]
    queue = measured.summary["queues"][0]
    facts = [Fact("dropped", queue["dropped"], "simulated", SIMULATION, queue["link"])]
    if measured.least_rtt_ms is not None:
        facts.append(Fact("idle_rtt_ms", measured.least_rtt_ms, "simulated", SIMULATION))
    facts.append(Fact("goodput_bps", measured.goodput_bps, "simulated", SIMULATION, "all flows"))
    return Observations(flows=flows, probes=pings, facts=facts)
