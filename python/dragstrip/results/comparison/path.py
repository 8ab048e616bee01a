"""A path in words: the bottleneck, the idle round trip and each link's settings.

The facts come from `model/scenario/paths.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dragstrip.display import quantity
from dragstrip.model.scenario.paths import FRAME_BYTES, Json, PathFacts

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


def qdisc(link: Json) -> Json:
    """Return the link's queue discipline, `noqueue` if it has none."""
    spec = link.get("qdisc")
    return spec if isinstance(spec, Mapping) else {"kind": "noqueue"}


def limit_bytes(spec: Json) -> float | None:
    """Return what a discipline holds at most, packets counted as full frames; None if nothing limits it."""
    size, packets = spec.get("limit_bytes"), spec.get("limit_packets")
    return size if packets is None else packets * FRAME_BYTES


def queue_text(spec: Json) -> str:
    """Return kind and limits, such as `bfifo 200 KiB` or `codel 100 packets, target 10 ms, ecn`.

    Empty if the queue is unlimited.
    """
    kind = str(spec.get("kind", "noqueue"))
    if isinstance(spec.get("leaf"), Mapping):
        behind = queue_text(spec["leaf"])
        if kind != "police":
            return behind
        bucket = quantity.limit(spec["burst_bytes"])
        return f"police {quantity.rate(spec['rate_bps'])}, {bucket}, then {behind}"
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
    return " ".join([kind, ", ".join(parts)]).strip()


def shaper_text(link: Json) -> str:
    """Return the link's shaper, `htb` or `tbf`, or an empty string."""
    kind = str(qdisc(link).get("kind"))
    return kind if kind in ("htb", "tbf") else ""


def medium_text(link: Json) -> str:
    """Return the medium and its nominal rate, such as `ADSL 1.54 Mbit/s`; empty for a wire."""
    spec = link.get("medium")
    if not isinstance(spec, Mapping):
        return ""
    name = MEDIA[spec["kind"]]
    if spec.get("mcs") is not None:
        return f"{name} MCS {spec['mcs']}, {spec.get('width_mhz')} MHz"
    bps = spec.get("rate_bps") or spec.get("phy_bps")
    return f"{name} {quantity.rate(bps)}" if bps else name


def rate_text(link: Json) -> str:
    """Return the medium and the rate, such as `10 Mbit/s (htb)`; empty for a wire without a rate limit."""
    bps = link["facts"]["rate_bps"]
    shaper = shaper_text(link)
    rate = "" if bps is None else quantity.rate(bps) + (f" ({shaper})" if shaper else "")
    return ", ".join(word for word in (medium_text(link), rate) if word)


def impairments(link: Json) -> list[str]:
    """Return what netem does to packets besides a constant delay, each as a phrase."""
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
    """Return a link's settings as short phrases.

    Empty for a wire without rate limit, delay and impairments.
    """
    words = []
    if rate_text(link):
        words.append(rate_text(link))
    if link["facts"]["delay_ns"]:
        words.append(quantity.duration_ns(link["facts"]["delay_ns"]))
    if queue_text(qdisc(link)) and qdisc(link).get("kind") != "netem":
        words.append(queue_text(qdisc(link)))
    return words + impairments(link)


def idle(path: PathFacts) -> tuple[float, str]:
    """Return the round-trip time of a ping on the idle path in ms, and its text, such as `idle 40.8 ms`.

    A medium's transmission time is not known beforehand, so a path with one gives the sum of delays, and its
    text says `delays`.
    """
    if any(link.get("medium") for link in path.links):
        return path.rtt_ns / 1e6, f"delays {quantity.milliseconds(path.rtt_ns / 1e6)}"
    return path.ping_ns / 1e6, f"idle {quantity.milliseconds(path.ping_ns / 1e6)}"


def changes(scenario: Json) -> list[tuple[float, str]]:
    """Return the link changes as time in seconds and text, such as `(20.0, "2 Mbit/s, delay 80 ms")`.

    The text names the ends of the link if several links change.
    """
    entries = sorted(scenario.get("changes") or [], key=lambda change: change["at_ns"])
    links = {link["name"]: link for link in scenario.get("links") or []}
    several = len({change["link"] for change in entries}) > 1
    words_by_time: dict[int, list[str]] = {}
    for change in entries:
        link = links[change["link"]]
        words = ", ".join(_changed(change))
        words_by_time.setdefault(change["at_ns"], []).append(
            f"{link['from']} → {link['to']} {words}" if several else words
        )
    return [(at_ns / 1e9, "; ".join(words)) for at_ns, words in words_by_time.items()]


def _changed(change: Json) -> list[str]:
    words = []
    if (up := change.get("up")) is not None:
        words.append("up" if up else "down")
    if (bps := change.get("rate_bps")) is not None:
        words.append(quantity.rate(bps))
    if (delay_ns := change.get("delay_ns")) is not None:
        words.append(f"delay {quantity.duration_ns(delay_ns)}")
    if (loss := change.get("loss")) is not None:
        words.append(f"loss {quantity.percent(loss)}")
    if (size := change.get("limit_bytes")) is not None:
        words.append(f"limit {quantity.limit(size)}")
    if (packets := change.get("limit_packets")) is not None:
        words.append(f"limit {quantity.count(packets)} packets")
    return words


def rate_changes(path: PathFacts) -> bool:
    """Return whether the bottleneck changes its rate or is down for a time."""
    name = path.bottleneck and path.bottleneck["name"]
    changed = [change for change in path.changes if change["link"] == name]
    return any(change.get("rate_bps") is not None or change.get("up") is not None for change in changed)


OTHERS_MAX = 2
"""Further links with a rate that a title names."""
NARROW = 10
"""A link so many times as fast as the bottleneck is none."""


def summary(path: PathFacts, ways: Sequence[PathFacts] = ()) -> str:
    """Return the path at the start of the run in words, such as `10 Mbit/s, 40 ms, bfifo 200 KiB`.

    `ways` are the paths of all flows: their round trips and what else limits them are named too.
    """
    words = []
    if path.rate_bps is not None:
        words.append(quantity.rate(path.rate_bps))
    elif path.bottleneck is not None:
        words.append(medium_text(path.bottleneck))
    words.append(_round_trips(ways or [path]))
    if path.bottleneck is not None and queue_text(qdisc(path.bottleneck)):
        words.append(queue_text(qdisc(path.bottleneck)))
    words += _further(path, ways or [path])
    for link in path.links:
        words.extend(word for word in impairments(link) if word not in words)
    times = len({change["at_ns"] for change in path.changes})
    if times:
        words.append("at first (1 change)" if times == 1 else f"at first ({times} changes)")
    return ", ".join(words)


def _round_trips(ways: Sequence[PathFacts]) -> str:
    """Return the round trips of flows, such as `40 ms`, `40 ms and 80 ms` or `20 ms to 200 ms`."""
    times = sorted({way.rtt_ns for way in ways})
    texts = list(dict.fromkeys(quantity.milliseconds(time / 1e6) for time in times))
    return f"{texts[0]} to {texts[-1]}" if len(texts) > 2 else " and ".join(texts)


def _further(path: PathFacts, ways: Sequence[PathFacts]) -> list[str]:
    """Return the other links on the flows' ways that may limit them, each as a phrase."""
    phrases_by_link: dict[str, str] = {}
    first = path.bottleneck and path.bottleneck["name"]
    most = math.inf if path.rate_bps is None else NARROW * path.rate_bps
    for link in (link for way in ways for link in way.links):
        bps = link["facts"]["rate_bps"]
        if link["name"] == first or link["name"] in phrases_by_link or bps is None or bps >= most:
            continue
        behind = queue_text(qdisc(link))
        words = " ".join([quantity.rate(bps), *([behind] if behind else [])])
        phrases_by_link[str(link["name"])] = f"{link['from']} → {link['to']} {words}"
    phrases = list(phrases_by_link.values())
    more = len(phrases) - OTHERS_MAX
    return [*phrases[:OTHERS_MAX], *([f"{more} more links with a rate"] if more > 0 else [])]
