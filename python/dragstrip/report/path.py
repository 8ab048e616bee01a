"""What a scenario's path is, in words: routes, the bottleneck, the idle round trip, each link's settings."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragstrip.report import quantity
from dragstrip.report.load import Json

MEDIA = {
    "adsl": "ADSL",
    "wifi_g": "802.11g",
    "wifi_n": "802.11n",
    "homeplug_av": "HomePlug AV",
    "modem": "modem",
    "ethernet_hub": "Ethernet hub",
    "trace": "trace",
    "tunnel": "IP over TCP",
}


@dataclass(frozen=True)
class Path:
    """The way of one flow: links there and back."""

    forward: list[Json]
    back: list[Json]

    @property
    def bottleneck(self) -> Json | None:
        """The first of the slowest links on the way there; if none has a rate, the first that is no wire."""
        limited = [(link_rate_bps(link), link) for link in self.forward]
        known = [(bps, link) for bps, link in limited if bps is not None]
        if known:
            return min(known, key=lambda pair: pair[0])[1]
        return next((link for link in self.forward if link.get("medium")), None)

    @property
    def rate_bps(self) -> float | None:
        """The bottleneck's rate."""
        return link_rate_bps(self.bottleneck) if self.bottleneck is not None else None

    @property
    def rtt_ns(self) -> float:
        """The delays of all links there and back; transmission times not counted."""
        return sum(link_delay_ns(link) for link in [*self.forward, *self.back])


def path_of(scenario: Json, sender: str, receiver: str) -> Path:
    """The links that packets between two hosts take: fewest hops, unless a route says otherwise."""
    return Path(_route(scenario, sender, receiver), _route(scenario, receiver, sender))


def _route(scenario: Json, source: str, destination: str) -> list[Json]:
    links: list[Json] = list(scenario.get("links", []))
    static = {(route["node"], route["destination"]): route["link"] for route in scenario.get("routes") or []}
    hops = _hops_to(links, destination)
    way: list[Json] = []
    node = source
    while node != destination and len(way) <= len(links):
        out = [link for link in links if link["from"] == node]
        named = static.get((node, destination))
        chosen = next((link for link in out if link["name"] == named), None)
        if chosen is None:
            nearer = [link for link in out if link["to"] in hops]
            if not nearer:
                return []
            chosen = min(nearer, key=lambda link: hops[link["to"]])
        way.append(chosen)
        node = chosen["to"]
    return way


def _hops_to(links: list[Json], destination: str) -> dict[str, int]:
    before: dict[str, list[str]] = {}
    for link in links:
        before.setdefault(link["to"], []).append(link["from"])
    hops = {destination: 0}
    waiting = deque([destination])
    while waiting:
        node = waiting.popleft()
        for neighbour in before.get(node, []):
            if neighbour not in hops:
                hops[neighbour] = hops[node] + 1
                waiting.append(neighbour)
    return hops


def link_rate_bps(link: Json) -> float | None:
    """The least rate that the transmitter, the queue discipline or netem sets."""
    rates = [link.get("rate_bps"), (link.get("netem") or {}).get("rate_bps"), *_qdisc_rates(qdisc(link))]
    known = [float(value) for value in rates if value is not None]
    return min(known) if known else None


def _qdisc_rates(spec: Json) -> list[Any]:
    inner = _qdisc_rates(spec["leaf"]) if isinstance(spec.get("leaf"), Mapping) else []
    own = spec.get("ceil_bps") or spec.get("rate_bps")
    return [own, spec.get("peakrate_bps"), *inner]


def link_delay_ns(link: Json) -> float:
    """Propagation delay, netem's delay and that of a netem queue discipline."""
    netem = link.get("netem") or {}
    spec = qdisc(link)
    inner = float(spec.get("delay_ns") or 0) if spec.get("kind") == "netem" else 0.0
    return float(link.get("delay_ns") or 0) + float(netem.get("delay_ns") or 0) + inner


def qdisc(link: Json) -> Json:
    """The link's queue discipline."""
    spec = link.get("qdisc")
    return spec if isinstance(spec, Mapping) else {"kind": "noqueue"}


def queue_text(spec: Json) -> str:
    """Kind and limit: `bfifo 200 KiB`, `codel 100 packets, target 10 ms, ecn`; empty if unlimited."""
    kind = str(spec.get("kind", "noqueue"))
    if isinstance(spec.get("leaf"), Mapping):
        return queue_text(spec["leaf"])
    if kind == "noqueue":
        return ""
    parts = []
    if spec.get("limit_bytes") is not None:
        parts.append(quantity.limit(spec["limit_bytes"]))
    if spec.get("limit_packets") is not None:
        parts.append(f"{quantity.count(spec['limit_packets'])} packets")
    if spec.get("target_ns") is not None:
        parts.append(f"target {quantity.duration_ns(spec['target_ns'])}")
    if spec.get("ecn"):
        parts.append("ecn")
    return " ".join([kind.replace("_codel", "-codel"), ", ".join(parts)]).strip()


def shaper_text(link: Json) -> str:
    """`htb`, `tbf`, or nothing for a plain wire."""
    kind = str(qdisc(link).get("kind"))
    return kind if kind in ("htb", "tbf") else ""


def medium_text(link: Json) -> str:
    """`ADSL 1.54 Mbit/s`: the medium and the rate that it is named by; empty for a wire."""
    spec = link.get("medium")
    if not isinstance(spec, Mapping):
        return ""
    name = MEDIA[spec["kind"]]
    if spec.get("mcs") is not None:
        return f"{name} MCS {spec['mcs']}, {spec.get('width_mhz')} MHz"
    bps = spec.get("rate_bps") or spec.get("phy_bps")
    return f"{name} {quantity.rate(bps)}" if bps else name


def rate_text(link: Json) -> str:
    """`10 Mbit/s (htb)`, or the medium; empty for a wire without a limit."""
    bps = link_rate_bps(link)
    shaper = shaper_text(link)
    rate = "" if bps is None else quantity.rate(bps) + (f" ({shaper})" if shaper else "")
    return ", ".join(word for word in (medium_text(link), rate) if word)


def impairments(link: Json) -> list[str]:
    """What netem does to the packets, besides a constant delay."""
    netem = link.get("netem") or (qdisc(link) if qdisc(link).get("kind") == "netem" else {})
    words = []
    if netem.get("jitter_ns"):
        words.append(f"jitter {quantity.duration_ns(netem['jitter_ns'])}")
    loss = netem.get("loss") or {}
    if loss.get("model") == "random":
        words.append(f"loss {quantity.percent(loss.get('probability'))}")
    elif loss.get("model") == "gemodel":
        words.append("bursts of loss (Gilbert–Elliott)")
    for name, verb in (("duplicate", "duplicates"), ("corrupt", "corrupts"), ("reorder", "reorders")):
        if netem.get(name):
            words.append(f"{verb} {quantity.percent(netem[name])}")
    return words


def link_words(link: Json) -> list[str]:
    """All that a reader should know of a link, each a short phrase; empty for a plain fast wire."""
    words = []
    if rate_text(link):
        words.append(rate_text(link))
    if link_delay_ns(link):
        words.append(quantity.duration_ns(link_delay_ns(link)))
    if queue_text(qdisc(link)) and qdisc(link).get("kind") != "netem":
        words.append(queue_text(qdisc(link)))
    return words + impairments(link)


def summary(path: Path) -> str:
    """`10 Mbit/s, 40 ms, bfifo 200 KiB`."""
    words = []
    if path.rate_bps is not None:
        words.append(quantity.rate(path.rate_bps))
    elif path.bottleneck is not None:
        words.append(medium_text(path.bottleneck))
    words.append(quantity.milliseconds(path.rtt_ns / 1e6))
    if path.bottleneck is not None and queue_text(qdisc(path.bottleneck)):
        words.append(queue_text(qdisc(path.bottleneck)))
    for link in [*path.forward, *path.back]:
        words.extend(word for word in impairments(link) if word not in words)
    return ", ".join(words)
