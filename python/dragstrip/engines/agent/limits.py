"""Limits that the machine, and not the path, set to a run.

A shaper that is served late loses rate without a drop, and no counter says so: only the bytes that it lets go
while packets wait in it tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from dragstrip.engines.contract import Json

if TYPE_CHECKING:
    import pyarrow as pa

SERVICE_MIN, SERVICE_MAX = 0.98, 1.01
"""Bytes served while packets wait, as a share of the rate."""
INTERVALS_MIN = 10
"""The least number of intervals with a backlog from which a share is computed."""
LATE_SHARE_MAX = 0.01
"""The share of late samples above which the machine limited the run."""
STEAL_SHARE_MAX = 0.01
IDLE_SHARE_MIN = 0.3
LATENESS_P99_MAX_NS = 1_000_000
"""The 99th percentile of a line's lateness above which the machine limited the run, as in a shell."""


def services(scenario: Json, queues: pa.Table) -> dict[str, float]:
    """Return, by link with a rate and a lasting backlog, the share of its rate that it served."""
    shares = {}
    links = queues.column("link").to_numpy(zero_copy_only=False)
    for link in scenario["links"]:
        qdisc = link.get("qdisc") or {}
        rate_bps = link.get("rate_bps") or qdisc.get("rate_bps")
        if not rate_bps or (link.get("rate_bps") and _shapes(qdisc)):
            continue
        overhead_bytes = (link if link.get("rate_bps") else qdisc).get("overhead_bytes", 0)
        rows = queues.filter(links == link["name"])
        time_ns, backlog, packets, enqueued, served = (
            rows.column(name).to_numpy().astype(float)
            for name in ("time_ns", "backlog_bytes", "backlog_packets", "enqueued", "sent_bytes")
        )
        if len(time_ns) < 2:
            continue
        # A queue with a backlog at both ends of an interval had one in between, unless it is very short.
        waits = backlog >= max(backlog.max() / 2, 1)
        busy = waits[1:] & waits[:-1]
        rates_bps = np.full(len(busy), float(rate_bps))
        for change in sorted(scenario.get("changes", []), key=lambda change: change["at_ns"]):
            if change["link"] == link["name"]:
                busy &= (time_ns[1:] <= change["at_ns"]) | (time_ns[:-1] >= change["at_ns"])
                rates_bps[time_ns[:-1] >= change["at_ns"]] = change.get("rate_bps") or rates_bps[-1]
        if busy.sum() < INTERVALS_MIN:
            continue
        sent_bytes = np.diff(served) + overhead_bytes * np.diff(enqueued - packets)
        shares[link["name"]] = round(
            float(8e9 * sent_bytes[busy].sum() / (rates_bps * np.diff(time_ns))[busy].sum()), 4
        )
    return shares


def _shapes(qdisc: Json) -> bool:
    """Return whether packets may wait in a queue for its own rate, or a class's, while its line is idle."""
    return qdisc.get("kind") == "tc" or any(qdisc.get(name) for name in ("rate_bps", "bandwidth_bps"))


def limits(services: Mapping[str, float], report: Json) -> list[str]:
    """Returns how the machine limited a run, a clause each; none if it did not. `report` is the agent's."""
    return list(_limits(services, report))


def _limits(services: Mapping[str, float], report: Json) -> Iterator[str]:
    for link, share in services.items():
        if not SERVICE_MIN <= share <= SERVICE_MAX:
            yield f"link {link} served {share * 100:.1f} % of its rate while packets waited"
    for check in report.get("checks", ()):
        if not check["least"] <= check["measured"] <= check["most"]:
            check_text = f"{check['path']}, before the traffic: {check['what']}"
            measured, expected = (f"{check[side]:.0f}" for side in ("measured", "asked"))
            yield f"{check_text} {measured} {check['unit']}, not {expected}"
    yield from late_lines(report)
    samples = report["samples"]
    if samples["late"] > LATE_SHARE_MAX * samples["taken"]:
        worst_ms = samples["worst_ns"] / 1e6
        yield f"{samples['late']} of {samples['taken']} samples were late, one by {worst_ms:.0f} ms"
    if report["softnet"]["dropped"]:
        yield f"the kernel dropped {report['softnet']['dropped']} packets before any queue saw them"
    if report["cpu_steal_share"] > STEAL_SHARE_MAX:
        yield f"a hypervisor took {report['cpu_steal_share'] * 100:.1f} % of the processors' time"
    if report["cpu_idle_share"] < IDLE_SHARE_MIN:
        yield f"the processors were idle for {report['cpu_idle_share'] * 100:.0f} % of the time only"


def late_lines(report: Json) -> Iterator[str]:
    """The lines in the simulator's code that forwarded packets too late, a clause each."""
    for line in report.get("lines", ()):
        for link, direction in zip(line["links"], line["directions"], strict=False):
            p99_ns = direction["lateness"]["p99_ns"]
            if p99_ns > LATENESS_P99_MAX_NS:
                yield f"packets left link {link} up to {p99_ns / 1e6:.1f} ms late (99th percentile)"
            if missing := direction["device_drops"] + direction["refused"]:
                yield f"link {link} lost {missing} packets that no queue saw"
