"""From an experiment to scenarios: every alternative, every repeat, all quantities in base units.

A scenario here is the JSON document of `crates/scenario` as a dictionary; the core multiplies out what
varies, names the runs, makes their scenarios (`crates/experiment`) and checks them. What the core says about
`links[2].qdisc` is reported as `path.queue`, which is what they wrote.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, TypeAlias

from dragstrip import _core, engines, quantities
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import Change, Experiment, Flow
from dragstrip.machine import refuse_if_too_large
from dragstrip.paths import Known, known
from dragstrip.traces import opportunities_ms

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class PlannedRun:
    """One scenario of an experiment, and which one it is."""

    number: int
    name: str
    scenario: Json
    settings: Json = field(default_factory=dict)
    """Which alternative this is: dotted path → value, and `alternative` → name."""
    repeat: int = 0
    engine: str = engines.DEFAULT
    text: str = field(default="", repr=False, compare=False)
    """The scenario as the core wrote it, where it did."""

    @cached_property
    def known(self) -> Known:
        """The scenario with its facts, for all who ask: a hundred thousand flows take a second."""
        return known(self.scenario, self.text)

    @property
    def slug(self) -> str:
        """A folder's name: number and name without odd characters."""
        plain = re.sub(r"[^a-z0-9.+-]+", "-", self.name.lower()).strip("-.")
        return f"{self.number:03d}-{plain[:60].rstrip('-.') or 'run'}"


RUNS_MAX = 10_000
"""Runs of an experiment, which are all planned in memory and all in one report; a sweep may have more."""


def expand(
    experiment: Experiment, source: str = "", wanted: Callable[[PlannedRun], bool] = lambda _run: True
) -> list[PlannedRun]:
    """All runs in the order of time: every alternative in turn, then all again with the next seed.

    Of two engines the first one's come first, and the second, against which it is held, runs everything once
    more, with one more seed: its distance from itself is the floor of what can be reached.

    Raises `BadInputError` for the first scenario that is wanted and that the core would refuse.
    """
    repeats_of_all = sum(experiment.repeat + (number > 0) for number in range(len(experiment.engines)))
    variants = list(_variants(experiment, source, repeats_of_all))
    runs: list[PlannedRun] = []
    for number, engine in enumerate(experiment.engines):
        repeats = experiment.repeat + (number > 0)
        for repeat in range(repeats):
            for settings, variant in variants:
                text = _built(_core.build_run, variant, json.dumps(settings), repeat, repeats)
                scenario = json.loads(text)
                run = PlannedRun(len(runs), scenario["name"], scenario, settings, repeat, engine, text)
                if not wanted(run):
                    continue
                if repeat == 0:  # repeats differ in the seed alone
                    check(scenario, variant, source, text)
                runs.append(run)
    return runs


def draws(run: PlannedRun) -> bool:
    """Whether another seed may give another recording: a kernel has randomness of its own."""
    return run.engine != engines.DEFAULT or _core.draws(run.text or json.dumps(run.scenario))


def complete(scenario: Json) -> Json:
    """The scenario with every default written out."""
    filled: Json = json.loads(_core.complete(json.dumps(scenario)))
    return filled


def check(scenario: Json, experiment: Experiment, source: str, text: str) -> None:
    """Raises `BadInputError` if the core or this machine cannot run the scenario, which is `text` as JSON."""
    hosts = [node["name"] for node in scenario["nodes"] if node["kind"] == "host"]
    for pattern in experiment.hosts:
        if not any(fnmatchcase(host, pattern) for host in hosts):
            raise BadInputError("hosts", pattern, f"a host or a pattern: {', '.join(hosts)}", source)
    found = engines.invalid(text, experiment.algorithms())
    if found:
        field_path, value, expected = found[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        field = _written_field(field_path, scenario, experiment)
        raise BadInputError(_unsuffixed(field), Raw(_written(field_path, value)), expected + more, source)
    refuse_if_too_large(text, scenario["duration_ns"], source)


# --- alternatives -----------------------------------------------------------------------------


def _variants(experiment: Experiment, source: str, repeats: int) -> Iterator[tuple[Json, Experiment]]:
    try:
        variants = _core.Variants(as_json({**experiment.content(), **_as_given(experiment)}))
    except _core.InputError as error:
        raise _unvaried(error, source) from None
    if (planned := len(variants) * repeats) > RUNS_MAX:
        what = f"{len(variants)} combinations, {repeats} times each, are {planned}"
        field = "repeat" if repeats > len(variants) else "vary"
        raise BadInputError(field, Raw(f"{planned} runs"), f"at most {RUNS_MAX} ({what})", source)
    for number in range(len(variants)):
        try:
            settings, content = map(json.loads, variants[number])
        except _core.InputError as error:
            raise _refused(error, source) from None
        try:
            yield settings, Experiment.build(content, source)
        except BadInputError as error:
            if not settings:
                raise
            said = ", ".join(f"{path} = {value!r}" for path, value in settings.items())
            note = f"{error.expected} (where vary sets {said})"
            raise BadInputError(error.field, Raw(error.value), note, source) from None


def varied(table: Mapping[str, Any], field: str, source: str) -> dict[str, list[Any]]:
    """Dotted path → its values; raises `BadInputError` where there is no list of them."""
    try:
        found: dict[str, list[Any]] = json.loads(_core.varied(as_json(table), field))
    except _core.InputError as error:
        raise _unvaried(error, source) from None
    return found


def flat(table: Mapping[str, Any]) -> Json:
    """Dotted path → what is no table: TOML makes tables of `flows.cc = [...]`."""
    found: Json = json.loads(_core.flat(as_json(table)))
    return found


path_parts = _core.path_parts


def assign(content: Mapping[str, Any], assignments: Iterable[tuple[str, Any]], source: str) -> Json:
    """The content with the fields at these dotted paths set.

    A list without an index means each of its entries. Raises `BadInputError`.
    """
    try:
        changed: Json = json.loads(_core.assign(as_json(content), as_json(list(assignments))))
    except _core.InputError as error:
        raise _refused(error, source) from None
    return changed


def as_json(value: object) -> str:
    """What TOML has and JSON has not, dates, times, nan and inf, becomes text."""
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=str)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _as_given(experiment: Experiment) -> Json:
    """What varies, where pydantic's own JSON would have null for nan and inf."""
    alternatives = [{"name": each.name, "set": each.set} for each in experiment.alternatives]
    return {"vary": experiment.vary, "alternatives": alternatives}


def _unvaried(error: _core.InputError, source: str) -> BadInputError:
    field, value, expected = error.args
    try:
        return BadInputError(field, json.loads(value), expected, source)
    except ValueError:
        return _refused(error, source)


def _refused(error: _core.InputError, source: str) -> BadInputError:
    field, value, expected = error.args
    return BadInputError(field, Raw(value) if value else None, expected, source)


# --- scenarios --------------------------------------------------------------------------------


def build(experiment: Experiment, name: str, seed: int) -> Json:
    """The scenario of an experiment without alternatives, every default written out."""
    scenario: Json = json.loads(_built(_core.build_scenario, experiment, name, seed))
    return scenario


def _built(call: Callable[..., str], experiment: Experiment, *which: str | int) -> str:
    content = experiment.content()
    for medium in content.get("media", {}).values():
        if medium["kind"] == "trace":
            medium["opportunities_ms"] = opportunities_ms(medium.pop("file"))
    if any(change.file for change in experiment.changes):
        content["changes"] = [_written_out(change) for change in _changes(experiment)]
    try:
        return call(json.dumps(content), *which)
    except _core.InputError as error:
        raise _refused(error, "") from None


def _changes(experiment: Experiment) -> list[Change]:
    """Those that happen: a file may go on longer than the run."""
    rows = [(change.file, row) for change in experiment.changes for row in change.rows()]
    return [row for file, row in rows if file is None or row.at < experiment.duration]


def _written_out(change: Change) -> Json:
    return {"at": quantities.time_text(change.at), **change.model_dump(mode="json", exclude_none=True)}


# --- what the core says, in the person's words --------------------------------------------------

_MEDIUM_FIELD = {
    "rate_bps": "rate",
    "phy_bps": "phy",
    "interleaving_ns": "interleaving",
    "ring_packets": "ring",
    "aggregate_packets": "aggregate",
    "air_time_ns": "air_time",
    "burst_ns": "burst",
    "beacon_ns": "beacon",
    "beacon_period_ns": "beacon_period",
    "block_bytes": "block",
    "dte_bps": "dte",
    "buffer_bytes": "buffer",
    "processing_ns": "processing",
    "opportunities_ms": "file",
}
_LINK_FIELD = {"rate_bps": "rate", "delay_ns": "delay", "overhead_bytes": "overhead", "qdisc": "queue"}
_PLAIN = {"duration_ns": "duration", "seed": "seed", "record.interval_ns": "record.interval"}


def _written_field(field_path: str, scenario: Json, experiment: Experiment) -> str:
    if field_path in _PLAIN:
        return _PLAIN[field_path]
    if field_path.startswith("media."):
        stem, _, last = field_path.rpartition(".")
        return f"{stem}.{_MEDIUM_FIELD.get(last, last)}"
    found = re.match(r"(links|nodes|flows|probes|changes)\[(\d+)\]\.?(.*)", field_path)
    if found is None:
        return field_path
    kind, index, rest = found[1], int(found[2]), found[3]
    if kind == "links" and experiment.path is not None:
        return _path_field(scenario["links"][index]["name"], rest)
    if kind == "nodes" and rest.startswith("sysctl"):
        return f"hosts.{scenario['nodes'][index]['name']}.{rest}"
    if kind == "changes":
        # One that sets the round trip beside others is two for the core.
        entries = [at for at, change in enumerate(experiment.changes) for _ in range(_parts(change))]
        word = {"limit_bytes": "limit", "limit_packets": "limit", "up": "state"}.get(rest, rest)
        return f"changes[{entries[index]}].{word}" if word else f"changes[{entries[index]}]"
    if kind == "flows":
        positions = [at for at, flow in enumerate(experiment.flows) for _ in range(_count(flow))]
        return f"flows[{positions[index]}].{rest.removeprefix('transport.')}"
    return field_path


def _parts(change: Change) -> int:
    """How many changes of the scenario an entry is."""
    settings = {"rate", "delay", "loss", "limit", "state"}
    rows = change.rows()
    return sum(1 + (row.rtt is not None and bool(row.model_fields_set & settings)) for row in rows)


def _count(flow: Flow) -> int:
    return flow.count * (1 if flow.cc is None else _core.flow_word(flow.cc)[1])


_SUFFIXES = {"_ns": quantities.time_text, "_bps": quantities.rate_text, "_bytes": quantities.size_text}


def _unsuffixed(field: str) -> str:
    """`flows[0].start` for `flows[0].start_ns`: only a scenario's fields carry units."""
    suffix = next((known for known in _SUFFIXES if field.endswith(known)), "")
    return field.removesuffix(suffix)


def _written(field: str, value: str) -> str:
    """`'5s'` for `5000000000` in a field that ends with `_ns`."""
    for suffix, text in _SUFFIXES.items():
        if field.endswith(suffix) and value.isdecimal():
            return repr(text(int(value)))
    return value


def _path_field(link: str, rest: str) -> str:
    head, _, inner = rest.partition(".")
    word = _LINK_FIELD.get(head, head)
    if head == "qdisc" and inner in ("rate_bps", "ceil_bps"):
        word, inner = "rate", ""
    if link in ("r-d", "r-w"):
        return f"path.{word}"
    if link in ("d-r", "w-r"):
        return f"path.up_{word}"
    return f"path.senders.{word} (link {link})"
