"""Claims: published figures compared with ours and graded.

`reproduced`: ours lies in the published range, widened by the claim's tolerance. `contradicted`: it does not.
`not testable here`: the claim says why, or nothing could be measured. `limited`: in real time, the machine
or the hosts limited a run that the claim needs, so that the figure says nothing about it. `open question`:
nothing was published, and the figure is ours alone. A claim over several runs or flows is compared with their
median.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.experiment.expand import PlannedRun
from dragstrip.experiment.types import Claim, Experiment, FlowTable, Selector
from dragstrip.results.measures import FlowMeasures, Measured, Window, find, names

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
NOT_TESTABLE = "not testable here"
LIMITED = "limited"
OPEN = "open question"
GRADES = (REPRODUCED, CONTRADICTED, NOT_TESTABLE, OPEN)
"""Those of runs in virtual time; only runs in real time can be `LIMITED`."""

UNITS: dict[str, tuple[str, float]] = {
    "bit/s": ("bit/s", 1.0),
    "kbit/s": ("bit/s", 1e3),
    "Mbit/s": ("bit/s", 1e6),
    "Gbit/s": ("bit/s", 1e9),
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "B": ("B", 1.0),
    "kB": ("B", 1e3),
    "KB": ("B", 1024.0),
    "MB": ("B", 1e6),
    "packets": ("1", 1.0),
    "segments": ("1", 1.0),
    "1": ("1", 1.0),
    "%": ("1", 1e-2),
}
"""The quantity that each unit measures, and the unit's size in base units of that quantity."""

FLOW_KEYS = ("cc", "label", "sender", "receiver", "flow")
PROBE_KEYS = ("probe", "target")
QUEUE_KEYS = ("link",)
RUN_KEYS = ("alternative", "repeat")
SIZE_KEYS = ("size_up_to", "size_above")
"""Bounds of a flow's size: the bytes of its transfer, the upper bound included and the lower one not."""
SUBJECT_KEYS = frozenset((*FLOW_KEYS, *SIZE_KEYS, *PROBE_KEYS, *QUEUE_KEYS))
"""Keys that select within a run; all others select runs."""


@dataclass(frozen=True)
class Finished:
    """A run whose recording can be measured."""

    run: PlannedRun
    measured: Measured


def conversion(measure_unit: str, claim_unit: str) -> float | None:
    """Return the factor from a measure's unit to a claim's, or None if their quantities differ."""
    if measure_unit not in UNITS or claim_unit not in UNITS:
        return None
    (kind, factor), (claimed_kind, claimed_factor) = UNITS[measure_unit], UNITS[claim_unit]
    return factor / claimed_factor if kind == claimed_kind else None


def check(experiment: Experiment, runs: Sequence[PlannedRun], source: str = "") -> None:
    """Raise `BadInputError`, before anything runs, for a claim that could never be measured."""
    for at, claim in enumerate(experiment.claims):
        where = f"claims[{at}] ({claim.id})"
        measure = find(claim.metric)
        if measure is None:
            expected = f"a measure, such as {', '.join(names())}{nearest(claim.metric, names())}"
            raise BadInputError(f"{where}.metric", claim.metric, expected, source)
        if claim.until is not None and not _core.has_window(claim.metric):
            expected = "none: this measure covers a whole flow, queue or run"
            raise BadInputError(f"{where}.until", claim.until, expected, source)
        unit = "1" if claim.over is not None else measure.unit
        if claim.order is None and conversion(unit, claim.unit) is None:
            raise BadInputError(f"{where}.unit", claim.unit, f"a unit for what is in {unit}", source)
        for part, selector in (("where", claim.where), ("over", claim.over or {})):
            _check_selector(f"{where}.{part}", selector, runs, source)
        if claim.order is not None:
            _check_selector(f"{where}.order", {claim.by: claim.order}, runs, source)
    for at, table in enumerate(experiment.flow_tables):
        _check_selector(f"flow_tables[{at}].where", table.where, runs, source)


def _check_selector(where: str, selector: Selector, runs: Sequence[PlannedRun], source: str) -> None:
    _check_sizes(where, selector, runs, source)
    for key, accepted in selector.items():
        if key in SIZE_KEYS:
            continue
        values: set[Any] = set()
        for run in runs:
            values.update(_values(run, key))
        if not values:
            keys = [*FLOW_KEYS, *SIZE_KEYS, *PROBE_KEYS, *QUEUE_KEYS, *RUN_KEYS, *runs[0].settings]
            raise BadInputError(f"{where}.{key}", accepted, f"one of the keys {', '.join(keys)}", source)
        for value in listed(accepted):
            if value not in values:
                allowed = ", ".join(str(candidate) for candidate in sorted(values, key=str))
                raise BadInputError(f"{where}.{key}", value, f"one of {allowed}", source)


def _check_sizes(where: str, selector: Selector, runs: Sequence[PlannedRun], source: str) -> None:
    """Raise `BadInputError` for bounds of size that are none, or between which no flow of any run lies."""
    keys = [key for key in SIZE_KEYS if key in selector]
    for key in keys:
        try:
            _core.parse_size(selector[key])
        except (_core.InputError, TypeError, ValueError):
            expected = "a size such as 10000b (10 kB) or 10kb (10,240 bytes)"
            raise BadInputError(f"{where}.{key}", selector[key], expected, source) from None
    if not keys or any(_has_size(selector, flow) for run in runs for flow in run.scenario["flows"]):
        return
    sizes = [size for run in runs for flow in run.scenario["flows"] if (size := _size(flow)) is not None]
    limit = f"flows carry {min(sizes)} to {max(sizes)} bytes" if sizes else "no flow has a size"
    bounds = Raw(", ".join(f"{key} = {selector[key]}" for key in keys))
    raise BadInputError(where, bounds, f"bounds between which some flow lies: {limit}", source)


def _size(flow: Mapping[str, Any]) -> int | None:
    """Return the bytes that a flow of a scenario transfers, or None for a flow without a size."""
    application = flow["application"]
    size: int | None = application.get("bytes") if application["kind"] == "bulk" else None
    return size


def _bounds_size(where: Selector) -> bool:
    return any(key in where for key in SIZE_KEYS)


def _has_size(where: Selector, flow: Mapping[str, Any]) -> bool:
    """Return whether a flow of a scenario lies within a selector's bounds of size."""
    if not _bounds_size(where):
        return True
    size = _size(flow)
    above = _core.parse_size(where["size_above"]) if "size_above" in where else -1
    up_to = _core.parse_size(where["size_up_to"]) if "size_up_to" in where else math.inf
    return size is not None and above < size <= up_to


def _values(run: PlannedRun, key: str) -> list[Any]:
    """Return the values that a selector's key has in a run."""
    scenario = run.scenario
    match key:
        case "cc":
            return [flow["transport"].get("cc", "udp") for flow in scenario["flows"]]
        case "flow":
            return list(range(len(scenario["flows"])))
        case "label" | "sender" | "receiver":
            return [flow[key] for flow in scenario["flows"]]
        case "probe":
            return [probe["label"] for probe in scenario["probes"]]
        case "target":
            return [probe["target"] for probe in scenario["probes"]]
        case "link":
            return [link["name"] for link in scenario["links"]]
        case "repeat":
            return [run.repeat]
        case _:
            value = run.settings.get(key)
            return [] if value is None or isinstance(value, dict | list) else [value]


def selectors(claim: Claim) -> list[Selector]:
    """All selectors of a claim: of what it looks at, and of what that is divided by."""
    ordered = {} if claim.order is None else {claim.by: claim.order}
    return [{**claim.where, **ordered}, *([] if claim.over is None else [claim.over])]


def slack_of(claim: Claim) -> float:
    """Half the width that a claim allows, in its unit; of an order, the margin as a share."""
    published = (1.0,) if claim.order is not None else claim.range or (claim.value or 0.0,)
    return slack(claim.tolerance, published)


def slack(tolerance: str | float | None, published: Sequence[float]) -> float:
    """Return the width by which a tolerance extends a published figure or range on each side.

    A tolerance is in the figures' unit, or a share such as `5%` of the largest of them.
    """
    if tolerance is None:
        return 0.0
    if isinstance(tolerance, float | int):
        return float(tolerance)
    share = float(tolerance.strip().removesuffix("%")) / 100
    return share * max(abs(figure) for figure in published)


def listed(accepted: Any) -> list[Any]:
    """Return a selector's value as a list; any entry of it matches."""
    return accepted if isinstance(accepted, list) else [accepted]


def figure_selectors(claim: Claim) -> list[Selector]:
    """Return a selector per figure that a grade needs: one per value of an order, or `where` and `over`."""
    if claim.order is not None:
        return [{**claim.where, claim.by: value} for value in claim.order]
    return [claim.where, *([] if claim.over is None else [claim.over])]


def grade(claim: Claim, finished: Sequence[Finished]) -> dict[str, Any]:
    """Return the graded claim as an entry of the result document."""
    figures = [figure(claim, where, finished) for where in figure_selectors(claim)]
    return grade_figures(claim, figures, _limits(claim, finished))


def grade_figures(claim: Claim, figures: Sequence[float | None], limits: str = "") -> dict[str, Any]:
    """Return the claim graded by a figure for each of its `figure_selectors`, in the measure's unit.

    `limits` says how the machine limited runs in real time; empty if it did not.
    """
    line: dict[str, Any] = {"id": claim.id, "source": claim.source, "metric": claim.metric}
    reason = ""
    if claim.order is not None:
        by_value = dict(zip(claim.order, figures, strict=True))
        measured: Any = sorted(
            (value for value, number in by_value.items() if number is not None),
            key=lambda value: by_value[value] or 0.0,
        )
        published: Any = claim.order
        holds, reason = _ordered(claim.order, by_value, slack_of(claim))
        unit = "order"
    else:
        low, high = _published(claim)
        published = claim.value if claim.range is None else [low, high]
        measured = _in_unit(claim, *figures)
        slack = slack_of(claim)
        holds = None if measured is None else low - slack <= measured <= high + slack
        unit = claim.unit
    line.update(published=published, measured=measured, unit=unit)
    if claim.asked is not None:
        return {**line, "grade": OPEN, "reason": claim.asked}
    if claim.not_testable is not None:
        return {**line, "grade": NOT_TESTABLE, "reason": claim.not_testable}
    if holds is None:
        return {**line, "grade": NOT_TESTABLE, "reason": "nothing was measured"}
    if limits:
        return {**line, "grade": LIMITED, "agrees": holds, "reason": limits}
    graded = {**line, "grade": REPRODUCED if holds else CONTRADICTED}
    return {**graded, "reason": reason} if reason else graded


def _limits(claim: Claim, finished: Sequence[Finished]) -> str:
    """Return how the machine limited runs of a claim by their own checks, or nothing."""
    needed = [item.measured.recording.provenance for item in finished if concerns(claim, item.run)]
    limits = [
        host_limits for provenance in needed if (host_limits := provenance.get("verified", {}).get("limits"))
    ]
    if not limits:
        return ""
    runs = f"{len(limits)} of {len(needed)} runs" if len(needed) > 1 else "the run"
    return f"{runs}: {limits[0][0]}"


def flow_table(table: FlowTable, finished: Sequence[Finished]) -> dict[str, Any]:
    """Return goodputs in Mbit/s from the fastest flow to the slowest, published and of each run.

    With repeats, each rank shows its median.
    """
    runs: dict[str, list[list[float]]] = {}
    for item in finished:
        if not run_selected(table.where, item.run):
            continue
        rates = [
            flow.goodput_bps / 1e6 for flow in _selected_flows(table.where, item.measured, item.run.scenario)
        ]
        if rates:
            name = item.run.name.rsplit(" #", 1)[0]
            runs.setdefault(name, []).append(sorted(rates, reverse=True))
    ours = {name: [median(place) for place in zip(*repeats, strict=True)] for name, repeats in runs.items()}
    return {"source": table.source, "published": sorted(table.published, reverse=True), "ours": ours}


def _ordered(order: list[str], figures: dict[str, float | None], margin: float) -> tuple[bool | None, str]:
    """Return whether each figure exceeds the one before by more than the margin, else which does not."""
    for before, after in itertools.pairwise(order):
        low, high = figures[before], figures[after]
        if low is None or high is None:
            return None, ""
        if not high > low * (1 + margin):
            needed = f" by more than {margin * 100:.0f} %" if margin else ""
            return False, f"{after} ({high:.4g}) does not exceed {before} ({low:.4g}){needed}"
    return True, ""


def _published(claim: Claim) -> tuple[float, float]:
    if claim.range is not None:
        low, high = claim.range
        return low, high
    value = claim.value if claim.value is not None else math.nan
    return value, value


def _in_unit(claim: Claim, measured: float | None, denominator: float | None = None) -> float | None:
    if measured is None:
        return None
    measure = find(claim.metric)
    unit = measure.unit if measure else "1"
    if claim.over is not None:
        unit = "1"
        if not denominator:
            return None
        measured /= denominator
    return measured * (conversion(unit, claim.unit) or math.nan)


def figure(claim: Claim, where: Selector, finished: Sequence[Finished]) -> float | None:
    """Return the median of the claim's metric over everything selected, or None if nothing is."""
    measurement = Measurement.of(claim)
    values: list[float] = []
    for item in finished:
        if run_selected(where, item.run):
            values += run_values(measurement, where, item.measured, item.run.scenario)
    return median(values) if values else None


@dataclass(frozen=True)
class Measurement:
    """The part of a claim that decides its figures in one run."""

    metric: str
    after: str
    until: str | None
    state: str | None
    across: str | None

    @classmethod
    def of(cls, claim: Claim) -> Measurement:
        """Return the measurement of a claim."""
        return cls(claim.metric, claim.after, claim.until, claim.state, claim.across)


def run_values(
    measurement: Measurement, where: Selector, measured: Measured, scenario: Mapping[str, Any]
) -> list[float]:
    """Return one run's values of everything selected in it; its own settings are not looked at."""
    values = [
        value
        for value in _figures(measurement, where, measured, scenario)
        if value is not None and math.isfinite(value)
    ]
    return [_ACROSS[measurement.across](values)] if measurement.across and values else values


def requests(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Return for each claim, as JSON, what has to be measured in every run: see `requested_values`."""
    return [
        {
            **asdict(Measurement.of(claim)),
            "selectors": [subject_part(where) for where in figure_selectors(claim)],
        }
        for claim in claims
    ]


def requested_values(
    requested: Sequence[Mapping[str, Any]], measured: Measured, scenario: Mapping[str, Any]
) -> list[list[list[float]]]:
    """Return the `run_values` of one run for each of `requests` and each of its selectors."""
    return [
        [
            run_values(
                Measurement(**{key: value for key, value in request.items() if key != "selectors"}),
                where,
                measured,
                scenario,
            )
            for where in request["selectors"]
        ]
        for request in requested
    ]


def subject_part(where: Selector) -> Selector:
    """Return the part of a selector that selects within a run, without what selects runs."""
    return {key: value for key, value in where.items() if key in SUBJECT_KEYS}


_ACROSS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max, "sum": math.fsum}


def _figures(
    measurement: Measurement, where: Selector, measured: Measured, scenario: Mapping[str, Any]
) -> Iterator[float | None]:
    measure = find(measurement.metric)
    if measure is None:
        return
    flows = _selected_flows(where, measured, scenario)
    if not flows:
        return
    until = None if measurement.until is None else _core.parse_time(measurement.until)
    window = Window(_core.parse_time(measurement.after), until, measurement.state)
    subjects: list[Any]
    match measure.level:
        case "flow":
            subjects = list(flows)
        case "probe":
            subjects = [probe["label"] for probe in scenario["probes"] if _probe_selected(where, probe)]
        case "queue":
            link_names = listed(where["link"]) if "link" in where else measured.queued_links()[:1]
            subjects = [link["name"] for link in scenario["links"] if link["name"] in link_names]
        case "transfers":
            subjects = [flows]
        case _:
            subjects = [None]
    for subject in subjects:
        value = measure.figure(measured, subject, window)
        yield None if value is None else float(value)


def run_selected(where: Selector, run: PlannedRun) -> bool:
    """Return whether a selector selects a run by its settings."""
    return all(
        any(value in listed(accepted) for value in _values(run, key))
        for key, accepted in where.items()
        if key not in SUBJECT_KEYS
    )


def concerns(claim: Claim, run: PlannedRun) -> bool:
    """Return whether a claim needs this run."""
    return any(
        all(
            any(value in listed(accepted) for value in _values(run, key))
            for key, accepted in selector.items()
            if key not in SIZE_KEYS
        )
        and (not _bounds_size(selector) or any(_has_size(selector, flow) for flow in run.scenario["flows"]))
        for selector in selectors(claim)
    )


def _selected_flows(where: Selector, measured: Measured, scenario: Mapping[str, Any]) -> list[FlowMeasures]:
    scenario_flows = scenario["flows"]
    return [
        flow
        for flow in measured.flows
        if all(getattr(flow, key) in listed(where[key]) for key in FLOW_KEYS if key in where)
        and _has_size(where, scenario_flows[flow.flow])
    ]


def _probe_selected(where: Selector, probe: dict[str, Any]) -> bool:
    names_of = {"probe": probe["label"], "target": probe["target"]}
    return all(names_of[key] in listed(where[key]) for key in PROBE_KEYS if key in where)
