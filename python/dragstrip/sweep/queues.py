"""A sweep over queue disciplines as a page of tables: `python -m dragstrip.sweep.queues FOLDER PAGE`.

Everything on the page is computed from the sweep's dataset; docs/which-queue.md is made so. The sweep varies
`path.rate`, `path.rtt` and `path.queue`; its flows are bulk transfers, and one that asks and waits
(`requests`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from dragstrip import files
from dragstrip.errors import DragstripError
from dragstrip.standings import quantity as q
from dragstrip.sweep import dataset
from dragstrip.sweep.claim import read_description
from dragstrip.sweep.plan import Sweep

PLACE = ["path_rate_bps", "path_rtt_ns", "path_queue", "repeat"]
COLUMNS = [
    *PLACE,
    "status",
    "label",
    "goodput_bps",
    "retransmits",
    "segments_sent",
    "probe_ms_p50",
    "probe_ms_p95",
]
REQUESTS = "requests"
ANSWER_BITS = 8 * 10_240
"""Of each answer that the flow `requests` waits for."""
ENOUGH = 0.95
"""A queue fills the link where all flows together have so much of what they have with the best one."""


class Route(NamedTuple):
    """A bottleneck and its round trip."""

    rate_bps: int
    rtt_ns: int


class Figures(NamedTuple):
    """Of one run, or the medians of several."""

    goodput_bps: float
    """Of all flows together."""
    ping_ms: float
    ping_p95_ms: float
    retransmitted: float
    """Of all segments."""
    answers_per_s: float
    least_share: float
    """Of the bulk flows' goodput: the smaller one's part."""


def read(folder: Path) -> dict[Route, dict[str, Figures]]:
    """Medians over the seeds by path and queue. Raises `DragstripError` where a run has failed."""
    runs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in dataset.read(folder, COLUMNS).to_pylist():
        if row["status"] != "ok":
            raise DragstripError(f"{folder}: a run failed; the sweep's own command makes it again")
        runs.setdefault(tuple(row[name] for name in PLACE), []).append(row)
    seeds: dict[tuple[Route, str], list[Figures]] = {}
    for (rate_bps, rtt_ns, queue, _), rows in runs.items():
        seeds.setdefault((Route(rate_bps, rtt_ns), queue), []).append(_figures(rows))
    found: dict[Route, dict[str, Figures]] = {}
    for (path, queue), figures in seeds.items():
        found.setdefault(path, {})[queue] = Figures(*map(median, zip(*figures, strict=True)))
    return found


def _figures(rows: Sequence[dict[str, Any]]) -> Figures:
    bulk = [row["goodput_bps"] for row in rows if row["label"] != REQUESTS]
    answers = sum(row["goodput_bps"] for row in rows if row["label"] == REQUESTS) / ANSWER_BITS
    sent = sum(row["segments_sent"] for row in rows)
    return Figures(
        goodput_bps=sum(row["goodput_bps"] for row in rows),
        ping_ms=rows[0]["probe_ms_p50"],
        ping_p95_ms=rows[0]["probe_ms_p95"],
        retransmitted=sum(row["retransmits"] for row in rows) / sent,
        answers_per_s=answers,
        least_share=min(bulk) / sum(bulk),
    )


def best(queues: dict[str, Figures]) -> list[str]:
    """The queues that fill the link, those with the shortest pings (95th percentile) first."""
    most = max(figures.goodput_bps for figures in queues.values())
    fills = [name for name, figures in queues.items() if figures.goodput_bps >= ENOUGH * most]
    return sorted(fills, key=lambda name: queues[name].ping_p95_ms)


def page(sweep: Sweep, found: dict[Route, dict[str, Figures]]) -> str:
    """The page's text."""
    return "\n".join(_lines(sweep, found)) + "\n"


def _lines(sweep: Sweep, found: dict[Route, dict[str, Figures]]) -> Iterator[str]:
    yield f"# {sweep.title or sweep.name}"
    yield ""
    count = len(next(iter(found.values())))
    yield (
        f"Generated from {sweep.runs} runs by `make guide` ([bench/queues.toml](../bench/queues.toml), "
        f"dragstrip {sweep.version}): {len(found)} paths, {count} queues, {sweep.repeat} seeds. "
        "A CUBIC and a BBR flow load the bottleneck, a client behind it asks for 10 kB, waits 200 ms and "
        "asks again, and a ping crosses it ten times a second. Disciplines have their defaults, flows no "
        "ECN; figures are medians over the seeds."
    )
    yield ""
    yield (
        "These are simulated paths with two bulk flows; they say nothing about many flows, about Wi-Fi or "
        "cellular links, or about disciplines with other parameters. A discipline decides what waits at "
        "*this* link: where the bottleneck is elsewhere, none of this applies."
    )
    yield ""
    yield "## In short"
    yield ""
    yield (
        f"Of the queues with which the flows together have at least {100 * ENOUGH:.0f} % of the best one's "
        "goodput, those with the shortest pings (95th percentile):"
    )
    yield ""
    yield "| path | first | second | third |"
    yield "|---|---|---|---|"
    for path, queues in found.items():
        first = [f"{name}, {q.milliseconds(queues[name].ping_p95_ms)}" for name in best(queues)[:3]]
        yield f"| {_name(path)} | " + " | ".join(first + [""] * (3 - len(first))) + " |"
    for path, queues in found.items():
        yield from _table(path, queues)


def _table(path: Route, queues: dict[str, Figures]) -> Iterator[str]:
    fills = set(best(queues))
    yield ""
    yield f"## {_name(path)}"
    yield ""
    yield (
        "| queue | goodput, all flows | ping, median | ping, 95 % | answers/s "
        "| smaller bulk flow's share | retransmitted |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name, figures in sorted(queues.items(), key=lambda item: item[1].ping_p95_ms):
        goodput = q.rate(figures.goodput_bps) + ("" if name in fills else " (not full)")
        pings = f"{q.milliseconds(figures.ping_ms)} | {q.milliseconds(figures.ping_p95_ms)}"
        parts = f"{q.percent(figures.least_share)} | {q.percent(figures.retransmitted)}"
        yield f"| {name} | {goodput} | {pings} | {figures.answers_per_s:.2f} | {parts} |"


def _name(path: Route) -> str:
    return f"{q.rate(path.rate_bps)}, {q.duration_ns(path.rtt_ns)}"


if __name__ == "__main__":
    made = Path(sys.argv[1])
    files.write_text(Path(sys.argv[2]), page(read_description(made), read(made)))
