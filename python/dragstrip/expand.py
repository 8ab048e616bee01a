"""From an experiment to scenarios: every alternative, every repeat, all quantities in base units.

A scenario here is the JSON document of `crates/scenario` as a dictionary; the core makes it
(`crates/experiment`) and checks it. What the core says about `links[2].qdisc` is reported as
`path.queue`, which is what they wrote.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from dragstrip import _core, engines
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import Experiment
from dragstrip.machine import refuse_if_too_large
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

    @property
    def slug(self) -> str:
        """A folder's name: number and name without odd characters."""
        plain = re.sub(r"[^a-z0-9.+-]+", "-", self.name.lower()).strip("-.")
        return f"{self.number:03d}-{plain[:60].rstrip('-.') or 'run'}"


def expand(
    experiment: Experiment, source: str = "", wanted: Callable[[PlannedRun], bool] = lambda _run: True
) -> list[PlannedRun]:
    """All runs in the order of time: every alternative in turn, then all again with the next seed.

    Of two engines the first one's come first, and the second, against which it is held, runs everything once
    more, with one more seed: its distance from itself is the floor of what can be reached.

    Raises `BadInputError` for the first scenario that is wanted and that the core would refuse.
    """
    variants = list(_variants(experiment, source))
    runs: list[PlannedRun] = []
    for number, engine in enumerate(experiment.engines):
        repeats = experiment.repeat + (number > 0)
        for repeat in range(repeats):
            for settings, variant in variants:
                name = _name(settings, variant, repeat, repeats)
                scenario = build(variant, name, variant.seed + repeat)
                run = PlannedRun(len(runs), name, scenario, settings, repeat, engine)
                if not wanted(run):
                    continue
                if repeat == 0:  # repeats differ in the seed alone
                    check(scenario, variant, source)
                runs.append(run)
    return runs


def complete(scenario: Json) -> Json:
    """The scenario with every default written out."""
    filled: Json = json.loads(_core.complete(json.dumps(scenario)))
    return filled


def check(scenario: Json, experiment: Experiment, source: str = "") -> None:
    """Raises `BadInputError` if the core or this machine cannot run the scenario."""
    hosts = [node["name"] for node in scenario["nodes"] if node["kind"] == "host"]
    for pattern in experiment.hosts:
        if not any(fnmatchcase(host, pattern) for host in hosts):
            raise BadInputError("hosts", pattern, f"a host or a pattern: {', '.join(hosts)}", source)
    found = engines.invalid(scenario, experiment.algorithms())
    if found:
        field_path, value, expected = found[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise BadInputError(
            _written_field(field_path, scenario, experiment), Raw(value), expected + more, source
        )
    refuse_if_too_large(scenario, source)


# --- alternatives -----------------------------------------------------------------------------


def _variants(experiment: Experiment, source: str) -> Iterator[tuple[Json, Experiment]]:
    axes: list[list[tuple[str, Json]]] = []
    if experiment.alternatives:
        axes.append([(alternative.name, dict(alternative.set)) for alternative in experiment.alternatives])
    for path, values in varied(experiment.vary, "vary", source).items():
        axes.append([("", {path: value}) for value in values])
    base = experiment.content()
    for part in ("vary", "alternatives", "ablations", "flow_tables"):
        base.pop(part, None)
    for combination in itertools.product(*axes):
        settings: Json = {}
        content = json.loads(json.dumps(base))
        for name, assignments in combination:
            for path, value in assignments.items():
                assign(content, path, deepcopy(value), source)
            settings.update({"alternative": name} if name else assignments)
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
    found = dict(_flat(table))
    for path, values in found.items():
        if not isinstance(values, list) or not values:
            raise BadInputError(f"{field}.{path}", values, "a list of values", source)
    return found


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """TOML makes tables of `flows.cc = [...]`; a quoted key stays as it is."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def path_parts(path: str) -> list[str]:
    """`hosts.*.sysctl."net.ipv4.tcp_ecn"` in its parts."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^."\[\]]+)', path)]


def assign(content: Json, path: str, value: Any, source: str) -> None:
    """Sets the field at a dotted path; a list without an index means each of its entries."""
    places: list[Any] = [content]
    parts = path_parts(path)
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        following: list[Any] = []
        for place in places:
            if isinstance(place, list) and part.isdigit():
                if int(part) >= len(place):
                    raise BadInputError(f"vary.{path}", Raw(part), f"an index below {len(place)}", source)
                if last:
                    place[int(part)] = value
                else:
                    following.append(place[int(part)])
                continue
            for table in place if isinstance(place, list) else [place]:
                if not isinstance(table, dict):
                    raise BadInputError(f"vary.{path}", Raw(part), "the path of a field", source)
                if last:
                    table[part] = value
                else:
                    following.append(table.setdefault(part, {}))
        places = following


def _name(settings: Json, variant: Experiment, repeat: int, repeats: int) -> str:
    if settings:
        values = [_short(value) for value in settings.values()]
    else:
        values = ["+".join(dict.fromkeys(flow.cc or "udp" for flow in variant.flows))]
    number = f" #{repeat + 1}" if repeats > 1 else ""
    return " ".join(values) + number


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# --- scenarios --------------------------------------------------------------------------------


def build(experiment: Experiment, name: str, seed: int) -> Json:
    """The scenario of an experiment without alternatives, every default written out."""
    content = experiment.content()
    for medium in content.get("media", {}).values():
        if medium["kind"] == "trace":
            medium["opportunities_ms"] = opportunities_ms(medium.pop("file"))
    try:
        built: Json = json.loads(_core.build_scenario(json.dumps(content), name, seed))
    except _core.InputError as error:
        field, value, expected = error.args
        raise BadInputError(field, Raw(value) if value else None, expected) from None
    return built


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
    found = re.match(r"(links|nodes|flows|probes)\[(\d+)\]\.?(.*)", field_path)
    if found is None:
        return field_path
    kind, index, rest = found[1], int(found[2]), found[3]
    if kind == "links" and experiment.path is not None:
        return _path_field(scenario["links"][index]["name"], rest)
    if kind == "nodes" and rest.startswith("sysctl"):
        return f"hosts.{scenario['nodes'][index]['name']}.{rest}"
    if kind == "flows":
        positions = [at for at, flow in enumerate(experiment.flows) for _ in range(flow.count)]
        return f"flows[{positions[index]}].{rest.removeprefix('transport.')}"
    return field_path


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
