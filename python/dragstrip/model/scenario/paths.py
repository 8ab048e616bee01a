"""The facts of a scenario's paths, as the core computes them (`crates/scenario/src/path.rs`).

Routes, round trips and rates are computed nowhere else, neither in reports nor in comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw

Json: TypeAlias = Mapping[str, Any]

FRAME_BYTES = 1514
"""Bytes of a full segment's Ethernet frame at an MTU of 1500 bytes, as a queue counts it: without its FCS."""
IP_BYTES = FRAME_BYTES - 14
"""Bytes of such a packet at the IP layer."""
FRAME_OVER_IP = FRAME_BYTES / IP_BYTES
"""Bytes that queues and links count of such a packet, per byte at the IP layer."""
PAYLOAD_BYTES = 1448
"""Bytes of data in such a segment, with timestamps."""
PING_FRAME_BYTES = 98
"""Bytes of a default ping's frame: 64 bytes of ICMP, plus IP and Ethernet headers."""


@dataclass(frozen=True)
class PathFacts:
    """The path between two nodes in both directions; the links are the scenario's own."""

    forward: list[Json]
    back: list[Json]
    bottleneck: Json | None = None
    """The first of the slowest links on the way forward, or the first with a medium if no rate is
    configured."""
    rate_bps: int | None = None
    """The bottleneck's configured rate in bit/s."""
    rtt_ns: int = 0
    """The sum of all delays in both directions, without transmission and queueing, in nanoseconds."""
    ping_ns: int = 0
    """Round-trip time of a ping on the idle path, in nanoseconds."""
    bdp_bytes: int | None = None
    """The bandwidth-delay product: bytes that the bottleneck carries in `rtt_ns`."""
    changes: list[Json] = field(default_factory=list)
    """The scenario's changes of these links."""

    @property
    def links(self) -> list[Json]:
        """The links forward, then the links back."""
        return [*self.forward, *self.back]


def path_of(scenario: Json, near: str, far: str) -> PathFacts:
    """Return the path that packets between two nodes take; raises `BadInputError` if there is none."""
    return paths_of(scenario, [(near, far)])[0]


def paths_of(scenario: Json, pairs: Iterable[tuple[str, str]]) -> list[PathFacts]:
    """Return the paths of several pairs of nodes, in their order; raises `BadInputError` if one has none."""
    try:
        facts = core_of(scenario).path_facts(list(pairs), PING_FRAME_BYTES)
    except _core.InputError as error:
        raise _refused(error) from None
    return _paths(scenario, facts)


def _paths(scenario: Json, rows: list[dict[str, Any]]) -> list[PathFacts]:
    links = {link["name"]: link for link in scenario["links"]}
    changes = scenario.get("changes") or []
    return [
        PathFacts(
            forward=[links[name] for name in facts["forward"]],
            back=[links[name] for name in facts["back"]],
            bottleneck=links.get(facts["bottleneck"]),
            rate_bps=facts["rate_bps"],
            rtt_ns=facts["idle_rtt_ns"],
            ping_ns=facts["base_rtt_ns"],
            bdp_bytes=facts["bdp_bytes"],
            changes=changes and [c for c in changes if c["link"] in (*facts["forward"], *facts["back"])],
        )
        for facts in rows
    ]


def link_facts(scenario: Json) -> list[dict[str, Any]]:
    """Return `rate_bps`, `fastest_bps`, `delay_ns` and `buffer` of each link of a scenario, in order.

    Raises `BadInputError`.
    """
    try:
        return core_of(scenario).link_facts()
    except _core.InputError as error:
        raise _refused(error) from None


def packets(scenario: Json) -> float:
    """Return roughly how many full frames the slowest link can carry in a run.

    Raises `BadInputError` for a scenario that has no such facts.
    """
    links = {  # one of all that are alike: there may be ten thousand
        repr([(key, value) for key, value in link.items() if key not in ("name", "from", "to")]): link
        for link in scenario["links"]
    }
    alone = {"links": list(links.values()), "nodes": [], "flows": [], "routes": [], "probes": []}
    rates = [facts["rate_bps"] for facts in link_facts({**scenario, **alone, "changes": []})]
    slowest = min((rate for rate in rates if rate), default=0)
    return slowest * float(scenario["duration_ns"]) / 1e9 / (8 * FRAME_BYTES) + 1


@dataclass(frozen=True)
class ScenarioFacts:
    """A scenario with its facts, computed once because there may be a hundred thousand hosts."""

    scenario: Json
    """The scenario with each link's facts added, and its medium instead of the medium's name."""
    ways: list[PathFacts]
    """The path of each flow, in the order of the flows."""
    draws: bool
    """True if the run draws random numbers; otherwise every seed gives the same recording."""


def scenario_facts(scenario: Json, core: _core.Scenario | None = None) -> ScenarioFacts:
    """Return all facts of a scenario; raises `BadInputError`.

    `core` is the same scenario as the core holds it, if the caller has it already.
    """
    if all("facts" in link for link in scenario.get("links") or []):
        return add_facts(scenario)
    return add_facts({**scenario, "links": [dict(link) for link in scenario.get("links") or []]}, core)


def with_facts(scenario: Json) -> Json:
    """Return the scenario with each link's facts added, and its medium instead of the medium's name."""
    return scenario_facts(scenario).scenario


def add_facts(scenario: Json, core: _core.Scenario | None = None) -> ScenarioFacts:
    """Add facts to the scenario's own links in place and return all facts; raises `BadInputError`.

    `core` is the same scenario as the core holds it, if the caller has it already.
    """
    try:
        core = core or core_of(scenario)
        paths = core.flow_facts(PING_FRAME_BYTES)
    except _core.InputError as error:
        raise _refused(error) from None
    if not all("facts" in link for link in scenario.get("links") or []):
        _add(scenario, core.link_facts())
    return ScenarioFacts(scenario, _paths(scenario, paths), core.draws)


def _add(scenario: Json, facts: list[dict[str, Any]]) -> None:
    shared_facts: dict[tuple[Any, ...], Json] = {}  # ten thousand links alike share one
    for link, link_fact in zip(scenario.get("links") or [], facts, strict=True):
        name = link.get("medium")
        key = (
            name,
            link_fact["rate_bps"],
            link_fact["fastest_bps"],
            link_fact["delay_ns"],
            *link_fact["buffer"].values(),
        )
        shared = shared_facts.get(key) or shared_facts.setdefault(key, {**link_fact, "medium": name})
        link.update(medium=(scenario.get("media") or {}).get(name), facts=shared)


def bare(scenario: Json) -> dict[str, Any]:
    """Return the scenario without any added facts."""
    links = scenario.get("links") or []
    if any("facts" in link for link in links):
        return {**scenario, "links": [_plain(link) for link in links]}
    return dict(scenario)


def core_of(scenario: Json) -> _core.Scenario:
    """Return the scenario as the core holds it; raises `_core.InputError` for a field of a wrong form."""
    return _core.Scenario(bare(scenario))


def _plain(link: Json) -> Json:
    """Return a link as the scenario's file has it."""
    bare_link = {key: value for key, value in link.items() if key != "facts"}
    return {**bare_link, "medium": link["facts"]["medium"]}


def _refused(error: _core.InputError) -> BadInputError:
    field, value, expected = error.args
    return BadInputError(field, Raw(value) if value else None, expected)
