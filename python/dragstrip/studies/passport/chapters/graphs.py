"""Paths that are no dumbbell of one kind of sender, as fields of an experiment: nodes, links, probes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HOPS = 3
"""Bottlenecks of the parking lot."""


def parking_lot(rate: str, queue: str, one_way: str) -> Mapping[str, Any]:
    """Three bottlenecks in a row: s0 sends over all of them to d0, s1 to s3 over one each.

    The propagation delay, one way, is on the receivers' links, so that all have the same round trip.
    """
    routers = [{"name": f"r{at}", "kind": "router"} for at in range(HOPS + 1)]
    hosts = [{"name": f"{side}{at}", "kind": "host"} for side in "sd" for at in range(HOPS + 1)]
    links: list[dict[str, Any]] = []
    for at in range(HOPS):
        forward = {"from": f"r{at}", "to": f"r{at + 1}", "rate": rate, "queue": queue, "both_ways": False}
        links += [forward, {"from": f"r{at + 1}", "to": f"r{at}", "both_ways": False}]
    for at in range(HOPS + 1):
        first, last = (0, HOPS) if at == 0 else (at - 1, at)
        links.append({"from": f"s{at}", "to": f"r{first}"})
        links.append({"from": f"r{last}", "to": f"d{at}", "delay": one_way})
    probes = [{"from": "d0", "target": "s0"}]
    return {"path": None, "nodes": routers + hosts, "links": links, "probes": probes}


def parked(cc: str) -> list[dict[str, Any]]:
    """The flows of the parking lot, the long one first."""
    return [{"cc": cc, "sender": f"s{at}", "receiver": f"d{at}"} for at in range(HOPS + 1)]


def unequal(
    rate: str, queue: str, one_way: str, netem: str | None = None, back: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """One bottleneck from r to d, whose first sender's own link is not like the second one's.

    It has an impairment in netem's words, or its ACKs come back over a medium, an entry of `[media]`.
    """
    nodes = [{"name": name, "kind": "host"} for name in ("s1", "s2", "d")]
    links = [
        {"from": "s1", "to": "r", "both_ways": False, **({} if netem is None else {"netem": netem})},
        {"from": "r", "to": "s1", "both_ways": False, **({} if back is None else {"medium": "back"})},
        {"from": "s2", "to": "r"},
        {"from": "r", "to": "d", "rate": rate, "queue": queue, "both_ways": False},
        {"from": "d", "to": "r", "delay": one_way, "both_ways": False},
    ]
    routers = [{"name": "r", "kind": "router"}]
    media = {} if back is None else {"media": {"back": back}}
    return {"path": None, "nodes": nodes + routers, "links": links, **media}
