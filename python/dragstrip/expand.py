"""From an experiment to scenarios: every alternative, every repeat, all quantities in base units.

A scenario here is the JSON document of `crates/scenario` as a dictionary; the core checks it. What the
core says about `links[2].qdisc` is told to the person as `path.queue`, which is what they wrote.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from dragstrip import _core, engines
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import (
    Access,
    Adsl,
    Application,
    Bulk,
    ConstantRate,
    Experiment,
    Flow,
    History,
    HostSettings,
    Link,
    Medium,
    Modem,
    OnOff,
    Path,
    RequestResponse,
    Trace,
    Tunnel,
)
from dragstrip.machine import refuse_if_too_large
from dragstrip.scenario import Scenario
from dragstrip.traces import opportunities_ms

Json: TypeAlias = dict[str, Any]

TICK_HZ = {"linux-2.6.27": 1000, "linux-2.2": 100}
"""Ticks per second of a profile whose distribution (Fedora 10, Red Hat 6) had not 250."""


@dataclass(frozen=True)
class Run:
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
    experiment: Experiment, source: str = "", wanted: Callable[[Run], bool] = lambda _run: True
) -> list[Run]:
    """All runs in the order of time: every alternative in turn, then all again with the next seed.

    Of two engines the first one's come first, and the second, against which it is held, runs everything once
    more, with one more seed: its distance from itself is the floor of what can be reached.

    Raises `BadInputError` for the first scenario that is wanted and that the core would refuse.
    """
    variants = list(_variants(experiment, source))
    runs: list[Run] = []
    for number, engine in enumerate(experiment.engines):
        repeats = experiment.repeat + (number > 0)
        for repeat in range(repeats):
            for settings, variant in variants:
                name = _name(settings, variant, repeat, repeats)
                scenario = build(variant, name, variant.seed + repeat)
                run = Run(len(runs), name, scenario, settings, repeat, engine)
                if not wanted(run):
                    continue
                if repeat == 0:  # repeats differ in the seed alone
                    check(scenario, variant, source)
                runs.append(replace(run, scenario=complete(scenario)))
    return runs


def complete(scenario: Json) -> Json:
    """The scenario with every default written out."""
    filled: Json = json.loads(Scenario.model_validate(scenario).to_json())
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
        raise BadInputError(_told(field_path, scenario, experiment), Raw(value), expected + more, source)
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
    """The scenario of an experiment without alternatives."""
    flow_count = sum(flow.count for flow in experiment.flows)
    if experiment.path is not None:
        nodes, links = _dumbbell(experiment.path, flow_count, experiment.media)
        routes: list[Json] = []
    else:
        nodes = [{"kind": node.kind, "name": node.name} for node in experiment.nodes]
        links = [made for link in experiment.links for made in _links(link)]
        routes = [route.model_dump() for route in experiment.routes]
    nodes = [_with_settings(node, experiment.hosts) for node in nodes]
    hosts = [node["name"] for node in nodes if node["kind"] == "host"]
    return {
        "name": name,
        "seed": seed,
        "cold_arp": experiment.cold_arp,
        "duration_ns": experiment.duration,
        "nodes": nodes,
        "links": links,
        "media": {key: _medium(medium) for key, medium in experiment.media.items()},
        "routes": routes,
        "flows": _flows(experiment, hosts),
        "probes": [
            {
                "label": probe.label or f"{probe.from_}-{probe.target}",
                "from": probe.from_,
                "target": probe.target,
                "interval_ns": probe.interval,
                "size_bytes": probe.size,
                "start_ns": probe.start,
            }
            for probe in experiment.probes
        ],
        "record": {
            "interval_ns": experiment.record.interval,
            "every_ack": experiment.record.every_ack,
            "rtts": experiment.record.rtts,
            "cc_state": experiment.record.cc_state,
        },
    }


def _dumbbell(path: Path, flow_count: int, media: Mapping[str, Medium]) -> tuple[list[Json], list[Json]]:
    access = path.senders
    if not isinstance(access, list):
        access = [Access()] * (flow_count if access is None else access)
    senders = [f"s{number}" for number in range(1, len(access) + 1)]
    receivers = ["d"] if path.receivers == 1 else [f"d{n}" for n in range(1, path.receivers + 1)]
    far = "d" if path.receivers == 1 else "w"
    nodes = [{"kind": "host", "name": name} for name in senders]
    nodes += [{"kind": "router", "name": "r"}]
    nodes += [{"kind": "router", "name": "w"}] if far == "w" else []
    nodes += [{"kind": "host", "name": name} for name in receivers]
    links: list[Json] = []
    for sender, own in zip(senders, access, strict=True):
        queue = _core_qdisc(own.queue) if own.queue else {"kind": "noqueue"}
        links.append(_link(sender, "r", rate_bps=own.rate, delay_ns=own.delay, qdisc=queue))
        links.append(_link("r", sender, rate_bps=own.rate, delay_ns=own.delay))
    links += _bottleneck(path, far, media)
    if far == "w":
        for receiver in receivers:
            links += [_link("w", receiver), _link(receiver, "w")]
    return nodes, links


def _bottleneck(path: Path, far: str, media: Mapping[str, Medium]) -> list[Json]:
    down = _link("r", far, delay_ns=path.delay, netem=_impairment(path))
    if path.rate is not None:
        down.update(_transmitter(path.link, path.rate, path.queue, path.overhead, path.atm))
    else:
        down.update(medium=path.medium, qdisc=_core_qdisc(path.queue))
    back_delay = path.up_delay if path.rtt is None else path.rtt
    up = _link(far, "r", delay_ns=back_delay, netem=_netem(path.up_netem))
    if path.up_rate is not None:
        queue = path.up_queue or "pfifo limit 1000"
        up.update(_transmitter(path.link, path.up_rate, queue, path.overhead, path.atm))
    elif back := path.up_medium or _both_ways(path.medium, media):
        up.update(medium=back, qdisc=_core_qdisc(path.up_queue or "pfifo limit 1000"))
    elif path.up_queue is not None:
        up["qdisc"] = _core_qdisc(path.up_queue)
    return [down, up]


def _both_ways(name: str | None, media: Mapping[str, Medium]) -> str | None:
    """The medium if stations share it."""
    found = media.get(name) if name else None
    return None if found is None or isinstance(found, OneWay) else name


OneWay = Adsl | Modem | Trace
"""Media of which each link has its own."""

_MEDIUM_FIELD = {
    "rate": "rate_bps",
    "phy": "phy_bps",
    "interleaving": "interleaving_ns",
    "ring": "ring_packets",
    "aggregate": "aggregate_packets",
    "air_time": "air_time_ns",
    "burst": "burst_ns",
    "beacon": "beacon_ns",
    "beacon_period": "beacon_period_ns",
    "block": "block_bytes",
    "dte": "dte_bps",
    "buffer": "buffer_bytes",
    "processing": "processing_ns",
    "file": "opportunities_ms",
}


def _medium(medium: Medium) -> Json:
    """What is not said has the core's default."""
    if isinstance(medium, Trace):
        return {"kind": medium.kind, "opportunities_ms": opportunities_ms(medium.file)}
    said = {field: getattr(medium, field) for field in type(medium).model_fields}
    return {_MEDIUM_FIELD.get(field, field): value for field, value in said.items() if value is not None}


def _impairment(path: Path) -> Json | None:
    """netem's own words for loss and jitter; its queue is long enough never to drop by itself."""
    if path.netem is not None:
        return _netem(path.netem)
    words = [f"delay {path.jitter}ns {path.jitter}ns"] if path.jitter else []
    words += [f"loss {path.loss * 100:.12g}%"] if path.loss else []
    return _netem(" ".join([*words, "limit 1000000"])) if words else None


def _transmitter(kind: str, rate_bps: int, queue: str, overhead_bytes: int, atm: bool) -> Json:
    """The queue and rate of a link: an htb class, its burst as tc and the kernel fill it in, or a wire."""
    if kind == "wire":
        return {"rate_bps": rate_bps, "overhead_bytes": overhead_bytes, "qdisc": _core_qdisc(queue)}
    words = f"htb rate {rate_bps}bit"
    words += f" overhead {overhead_bytes}" if overhead_bytes else ""
    words += " linklayer atm" if atm else ""
    return {"qdisc": _core_qdisc(f"{words} leaf {queue}")}


def _links(link: Link) -> list[Json]:
    def one(start: str, end: str, name: str) -> Json:
        made = _link(start, end, name=name, delay_ns=link.delay, netem=_netem(link.netem))
        if link.rate is not None:
            queue = link.queue or "pfifo limit 1000"
            made.update(_transmitter(link.link, link.rate, queue, link.overhead, link.atm))
        elif link.medium is not None:
            made.update(medium=link.medium, qdisc=_core_qdisc(link.queue or "pfifo limit 1000"))
        elif link.queue is not None:
            made["qdisc"] = _core_qdisc(link.queue)
        return made

    name = link.name or f"{link.from_}-{link.to}"
    back = f"{link.name}-back" if link.name else f"{link.to}-{link.from_}"
    both = [one(link.from_, link.to, name), one(link.to, link.from_, back)]
    return both if link.both_ways else both[:1]


def _link(start: str, end: str, name: str = "", **given: Any) -> Json:
    made: Json = {
        "name": name or f"{start}-{end}",
        "from": start,
        "to": end,
        "rate_bps": None,
        "delay_ns": 0,
        "overhead_bytes": 0,
        "medium": None,
        "qdisc": {"kind": "noqueue"},
        "netem": None,
    }
    made.update(given)
    return made


def _core_qdisc(words: str) -> Json:
    parsed: Json = json.loads(_core.parse_qdisc(words))
    return parsed


def _netem(words: str | None) -> Json | None:
    if words is None:
        return None
    parsed = _core_qdisc(f"netem {words}")
    del parsed["kind"]
    return parsed


def _with_settings(node: Json, patterns: Mapping[str, HostSettings]) -> Json:
    if node["kind"] != "host":
        return node
    sysctl: dict[str, str] = {}
    host: Json = {**node, "sysctl": sysctl}
    for pattern, settings in patterns.items():
        if not fnmatchcase(node["name"], pattern):
            continue
        sysctl.update(settings.sysctl)
        plain = {
            "profile": settings.profile,
            "gso": settings.gso,
            "mtu_bytes": settings.mtu,
            "tick_hz": settings.tick_hz,
        }
        host.update({key: value for key, value in plain.items() if value is not None})
        if settings.history is not None:
            host["history"] = _history(settings.history)
    if host.get("profile") in TICK_HZ:
        host.setdefault("tick_hz", TICK_HZ[host["profile"]])
    return host


def _history(known: History) -> Json:
    return {
        "ssthresh_packets": known.ssthresh,
        "reordering_packets": known.reordering,
        "rtt_ns": known.rtt,
        "rtt_deviation_ns": known.deviation,
    }


def _flows(experiment: Experiment, hosts: list[str]) -> list[Json]:
    """Where the short form says nothing, flow i goes from sender i to receiver i, in turn."""
    senders: list[str] = []
    receivers: list[str] = []
    if experiment.path is not None:
        senders = [host for host in hosts if host.startswith("s")]
        receivers = [host for host in hosts if host.startswith("d")]
    labels = _labels(experiment.flows)
    made: list[Json] = []
    for position, flow in enumerate(experiment.flows):
        for copy in range(flow.count):
            index = len(made)
            made.append(
                {
                    "label": labels[index],
                    "sender": flow.sender or _in_turn(senders, index, f"flows[{position}].sender"),
                    "receiver": flow.receiver or _in_turn(receivers, index, f"flows[{position}].receiver"),
                    "transport": {"protocol": "udp"}
                    if flow.cc is None
                    else {"protocol": "tcp", "cc": flow.cc, "cc_options": dict(flow.cc_options)},
                    "application": _application(flow.application, flow.bytes),
                    "start_ns": flow.start + copy * flow.stagger,
                    "stop_ns": flow.stop,
                }
            )
    return made


def _in_turn(hosts: list[str], index: int, where: str) -> str:
    if not hosts:
        raise BadInputError(where, None, "is missing: without [path] a flow names both its hosts")
    return hosts[index % len(hosts)]


def _labels(flows: list[Flow]) -> list[str]:
    """The given label or the algorithm, numbered where several flows would share it."""
    plain = [flow.label or flow.cc or "udp" for flow in flows for _ in range(flow.count)]
    seen: dict[str, int] = {}
    labels: list[str] = []
    for label in plain:
        seen[label] = seen.get(label, 0) + 1
        labels.append(f"{label}-{seen[label]}" if plain.count(label) > 1 else label)
    return labels


def _application(application: Application, size: int | None) -> Json:
    match application:
        case Bulk():
            return {"kind": "bulk", "bytes": size}
        case OnOff():
            return {"kind": "on_off", "on_ns": application.on, "off_ns": application.off}
        case RequestResponse():
            return {
                "kind": "request_response",
                "request_bytes": application.request,
                "response_bytes": application.response,
                "think_ns": application.think,
            }
        case ConstantRate():
            return {
                "kind": "constant_rate",
                "rate_bps": application.rate,
                "datagram_bytes": application.datagram,
            }
        case Tunnel():
            return {"kind": "tunnel", "header_bytes": application.header}


# --- what the core says, in the person's words --------------------------------------------------

_LINK_FIELD = {"rate_bps": "rate", "delay_ns": "delay", "overhead_bytes": "overhead", "qdisc": "queue"}
_PLAIN = {"duration_ns": "duration", "seed": "seed", "record.interval_ns": "record.interval"}


def _told(field_path: str, scenario: Json, experiment: Experiment) -> str:
    if field_path in _PLAIN:
        return _PLAIN[field_path]
    if field_path.startswith("media."):
        plain = {core: field for field, core in _MEDIUM_FIELD.items()}
        stem, _, last = field_path.rpartition(".")
        return f"{stem}.{plain.get(last, last)}"
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
