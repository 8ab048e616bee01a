"""Runs of the same scenarios on two engines: a model, usually the simulator, beside a reference."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dragstrip.engines import named
from dragstrip.engines.contract import Progress
from dragstrip.model.recording import read
from dragstrip.model.scenario.paths import path_of
from dragstrip.runs import run_parallel
from dragstrip.studies.validation.conditions import Conditions, conditions
from dragstrip.studies.validation.figures import figures
from dragstrip.studies.validation.kernel import Json
from dragstrip.studies.validation.traces import TimeLine, of_recording
from dragstrip.studies.validation.translate import IDLE_MS_MAX
from dragstrip.studies.validation.validate import LONGER_NS, SEEDS, Agreement, Case


@dataclass
class _Pair:
    """Both engines' runs of one scenario, in the order of their seeds."""

    name: str
    scenario: Json
    release: str = ""
    seeds: list[int] = field(default_factory=list)
    """Seeds of the kernel's runs."""
    idle_rtt_ns: Mapping[str, int] = field(default_factory=dict)
    """Round-trip times of the kernel's pings on the idle path in nanoseconds, by path such as `s1 to d`."""
    traces: dict[str, list[TimeLine]] = field(default_factory=dict)
    """Time lines by engine."""
    limits: dict[str, None] = field(default_factory=dict)
    """Limits that the machine put on the kernel's runs, each limit once."""
    idle_shares: list[float] = field(default_factory=list)
    """Idle share of the machine's processors in each of the kernel's runs, in real time."""

    def model(self) -> str:
        """Return the engine that is compared with the reference."""
        return next(iter(self.traces))


def of_result(document: Mapping[str, Any], folder: Path, prefix: str = "") -> Agreement:
    """Return the agreement in a result document with runs of both engines, on the path as configured.

    Recordings are looked up in `folder`; `prefix` is put before the names of the cases.
    """
    return _agreement(document, folder, prefix, _as_recorded)


def with_hosts(
    document: Mapping[str, Any], folder: Path, prefix: str = "", spread: bool = False
) -> Agreement:
    """Return the agreement with the simulator run again, its path including the kernel hosts' own work.

    A random case runs with all of `SEEDS`; `spread` also measures the simulator against itself.
    """
    return _agreement(document, folder, prefix, partial(_with_hosts, spread=spread))


def with_model(document: Mapping[str, Any], folder: Path, prefix: str, model: str) -> Agreement:
    """Return the agreement of the reference's recordings with another model, which is run now."""
    return _agreement(document, folder, prefix, partial(_with_model, model=model))


def worst_first(cases: Iterable[Case]) -> list[Case]:
    """Return the cases in the order of tables."""
    return sorted(cases, key=lambda case: -case.severity)


def _agreement(document: Mapping[str, Any], folder: Path, prefix: str, case: Any) -> Agreement:
    pairs = [pair for pair in _pairs(document, folder, prefix) if len(pair.traces) > 1]
    failed = {prefix + _plain(line["scenario"]): line["reason"] for line in document["failed"]}
    return Agreement(worst_first(run_parallel(case, pairs)), failed)


def _pairs(document: Mapping[str, Any], folder: Path, prefix: str) -> Iterable[_Pair]:
    pairs: dict[str, _Pair] = {}
    engines = list(dict.fromkeys(line["engine"] for line in document["runs"]))  # the model's runs come first
    for line in document["runs"]:
        recording = read(folder / line["recording"])
        spec = recording.scenario
        shape = json.dumps({**spec, "seed": 0, "name": ""}, sort_keys=True)
        pair = pairs.setdefault(shape, _Pair(prefix + _plain(line["scenario"]), spec))
        pair.traces.setdefault(line["engine"], []).append(
            of_recording(recording, conditions(spec).bottleneck)
        )
        if line["engine"] != engines[0]:
            pair.release = _release(recording.provenance)
            pair.seeds.append(line["seed"])
            verified = recording.provenance.get("verified", {})
            pair.idle_rtt_ns = verified.get("idle_rtt_ns", {})
            if named(line["engine"]).real_time:
                pair.limits.update(dict.fromkeys(verified["limits"]))
                pair.idle_shares.append(verified["cpu_idle_share"])
    return pairs.values()


def _release(provenance: Mapping[str, Any]) -> str:
    """Return the producer of a recording: a kernel, if the engine has one, else engine and version."""
    about = provenance.get("kernel")
    if about is None:
        return f"{provenance['engine']} {provenance['version']}"
    return f"Linux {about['release']}" + (f" ({about['package']})" if about["package"] else "")


def _plain(name: str) -> str:
    """Return a run's name without the number of its repeat."""
    return name.rsplit(" #", 1)[0]


def _as_recorded(pair: _Pair, _progress: Progress) -> Case:
    return _case(pair, conditions(pair.scenario), pair.scenario, pair.traces[pair.model()])


def _with_model(pair: _Pair, progress: Progress, model: str) -> Case:
    reference = {engine: traces for engine, traces in pair.traces.items() if engine != pair.model()}
    return _with_hosts(replace(pair, traces={model: [], **reference}), progress, spread=False)


def _with_hosts(pair: _Pair, progress: Progress, spread: bool) -> Case:
    if not named(pair.model()).model:
        return _as_recorded(pair, progress)  # its hosts work too
    case_conditions, spec = conditions(pair.scenario), lengthened(pair.scenario, pair.idle_rtt_ns)
    seeds = SEEDS if case_conditions.random else (spec["seed"],)
    engine = named(pair.model())

    def run(seed: int, scenario: Json) -> TimeLine:
        recording = engine.run({**scenario, "seed": seed}, {}, progress)
        return of_recording(recording, case_conditions.bottleneck)

    simulator = [run(seed, spec) for seed in seeds]
    case = _case(pair, case_conditions, spec, simulator)
    if spread:
        longer = lengthened(pair.scenario, {way: ns + LONGER_NS for way, ns in pair.idle_rtt_ns.items()})
        case.spread.extend(
            figures(case_conditions, simulator, [run(seed + len(SEEDS), longer) for seed in seeds])
        )
    return case


def _case(pair: _Pair, case_conditions: Conditions, scenario: Json, simulator: list[TimeLine]) -> Case:
    kernel = next(traces for engine, traces in pair.traces.items() if engine != pair.model())
    floor = figures(case_conditions, kernel[::2], kernel[1::2]) if len(kernel) > 1 else []
    return Case(
        pair.name,
        scenario,
        pair.release,
        pair.seeds,
        kernel,
        simulator,
        figures(case_conditions, kernel, simulator),
        floor=floor,
        limits=list(pair.limits),
        idle_shares=pair.idle_shares,
    )


def lengthened(scenario: Json, idle_rtt_ns: Mapping[str, int]) -> Json:
    """Return the scenario with the hosts' own share of a round trip added to the path from each receiver.

    CUBIC counts a round trip in whole ticks, rounded up: 40.02 ms are 11 ticks of 4 ms, 40.00 are 10.
    """
    spec = copy.deepcopy(scenario)
    links = {link["name"]: link for link in spec["links"]}
    lengthened_links: set[str] = set()
    for flow in scenario["flows"]:
        way = path_of(scenario, flow["sender"], flow["receiver"])
        measured_ns = idle_rtt_ns.get(f"{flow['sender']} to {flow['receiver']}")
        if measured_ns is None or not way.back or way.back[0]["name"] in lengthened_links:
            continue
        extra_ns = measured_ns - way.ping_ns
        if 0 < extra_ns <= IDLE_MS_MAX * 1e6:  # else pings met other traffic, or chance
            links[way.back[0]["name"]]["delay_ns"] += extra_ns
            lengthened_links.add(way.back[0]["name"])
    return spec
