"""A sweep over queue disciplines as a page of tables: `python -m tools.queue_guide FOLDER PAGE`.

Everything on the page, docs/how-to/which-queue.md, is computed from the sweep's dataset.

The sweep varies `path.rate`, `path.rtt` and `path.queue`. Its flows are bulk transfers, and one flow that
sends requests and waits for each answer (`requests`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from dragstrip.display import quantity as q
from dragstrip.errors import DragstripError
from dragstrip.io import files
from dragstrip.studies.sweep import dataset
from dragstrip.studies.sweep.claim import read_description
from dragstrip.studies.sweep.plan import Sweep

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
"""Bits of each answer that the flow `requests` waits for."""
ENOUGH = 0.95
"""A queue fills the link if all flows together reach this fraction of the best queue's goodput."""
ALIKE = 0.05
"""Pings that differ by less than this fraction are alike."""


class RateAndRtt(NamedTuple):
    """A bottleneck's rate and its round trip."""

    rate_bps: int
    rtt_ns: int


class Figures(NamedTuple):
    """The figures of one run, or the medians of several."""

    goodput_bps: float
    """Goodput of all flows together, in bit/s."""
    ping_ms: float
    ping_p95_ms: float
    retransmitted: float
    """Retransmitted segments as a share of all segments."""
    answers_per_s: float
    least_share: float
    """The smaller bulk flow's share of the bulk flows' goodput."""
    pings_p95_ms: tuple[float, ...] = ()
    """Each seed's 95th percentile of the pings."""


def read(folder: Path) -> dict[RateAndRtt, dict[str, Figures]]:
    """Return medians over the seeds by path and queue; raises `DragstripError` if a run failed."""
    runs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in dataset.read(folder, COLUMNS).to_pylist():
        if row["status"] != "ok":
            raise DragstripError(f"{folder}: a run failed; the sweep's own command makes it again")
        runs.setdefault(tuple(row[name] for name in PLACE), []).append(row)
    seeds: dict[tuple[RateAndRtt, str], list[Figures]] = {}
    for (rate_bps, rtt_ns, queue, _), rows in runs.items():
        seeds.setdefault((RateAndRtt(rate_bps, rtt_ns), queue), []).append(_figures(rows))
    by_route: dict[RateAndRtt, dict[str, Figures]] = {}
    for (path, queue), figures in seeds.items():
        middle = map(median, zip(*(seed_figures[:-1] for seed_figures in figures), strict=True))
        pings = tuple(run.ping_p95_ms for run in figures)
        by_route.setdefault(path, {})[queue] = Figures(*middle)._replace(pings_p95_ms=pings)
    return by_route


def _figures(rows: Sequence[dict[str, Any]]) -> Figures:
    bulk = [row["goodput_bps"] for row in rows if row["label"] != REQUESTS]
    answers = sum(row["goodput_bps"] for row in rows if row["label"] == REQUESTS) / ANSWER_BITS
    segments_sent = sum(row["segments_sent"] for row in rows)
    return Figures(
        goodput_bps=sum(row["goodput_bps"] for row in rows),
        ping_ms=rows[0]["probe_ms_p50"],
        ping_p95_ms=rows[0]["probe_ms_p95"],
        retransmitted=sum(row["retransmits"] for row in rows) / segments_sent,
        answers_per_s=answers,
        least_share=min(bulk) / sum(bulk),
    )


def best(queues: dict[str, Figures]) -> list[str]:
    """Return the queues that fill the link, ordered by the 95th percentile of their pings."""
    most = max(figures.goodput_bps for figures in queues.values())
    fills = [name for name, figures in queues.items() if figures.goodput_bps >= ENOUGH * most]
    return sorted(fills, key=lambda name: queues[name].ping_p95_ms)


def tied(queues: dict[str, Figures]) -> list[str]:
    """Return the queues that fill the link and whose pings are not certainly longer than the best queue's.

    They are longer if every seed's are, by more than `ALIKE` of the median.
    """
    order = best(queues)
    first = queues[order[0]]

    def longer(name: str) -> bool:
        mine = queues[name]
        apart = mine.ping_p95_ms > (1 + ALIKE) * first.ping_p95_ms
        return apart and min(mine.pings_p95_ms, default=0.0) > max(first.pings_p95_ms, default=0.0)

    return [name for name in order if not longer(name)]


def advice(by_route: dict[RateAndRtt, dict[str, Figures]]) -> str:
    """Return which queue to use, and on which paths another one is better: `Use fq, unless ...`."""
    among = {path: tied(queues) for path, queues in by_route.items()}
    names = dict.fromkeys(name for queues in among.values() for name in queues)

    def merit(name: str) -> tuple[int, float]:
        goodput = [queues[name].goodput_bps for queues in by_route.values()]
        return sum(name in queues for queues in among.values()), sum(goodput)

    use = max(names, key=merit)
    count = sum(use in queues for queues in among.values())
    alike = [name for name in names if name != use and merit(name)[0] == count]
    text = f"**Use `{use}`**"
    if alike:
        text += f" (or {q.listing([f'`{name}`' for name in alike])}, which is as good on as many paths)"
    text += f": on {count} of {len(by_route)} paths no queue that fills the link has certainly shorter pings."
    nearly = [name for name in names if count > 1 and merit(name)[0] == count - 1]
    if nearly:
        text += f" {q.listing([f'`{name}`' for name in nearly])}: on {count - 1}."
    for path, queues in among.items():
        if use not in queues:
            mine, better = by_route[path][use], by_route[path][queues[0]]
            text += (
                f" Unless the path is {_name(path)}: there `{queues[0]}` has "
                f"{q.milliseconds(better.ping_p95_ms)} and `{use}` {q.milliseconds(mine.ping_p95_ms)}."
            )
    return text


def page(sweep: Sweep, by_route: dict[RateAndRtt, dict[str, Figures]]) -> str:
    """Return the page's text."""
    return "\n".join(_lines(sweep, by_route)) + "\n"


def _lines(sweep: Sweep, by_route: dict[RateAndRtt, dict[str, Figures]]) -> Iterator[str]:
    yield f"# {sweep.title or sweep.name}"
    yield ""
    yield advice(by_route)
    yield ""
    count = len(next(iter(by_route.values())))
    yield (
        f"Generated from {sweep.runs} runs by `make guide` ([bench/queues.toml](../../bench/queues.toml), "
        f"dragstrip {sweep.version}): {len(by_route)} paths, {count} queues, {sweep.repeat} seeds. "
        "A CUBIC and a BBR flow load the bottleneck, a client behind it requests 10 kB, waits 200 ms and "
        "requests again, and a ping crosses it ten times a second. Disciplines have their defaults, flows "
        "have no ECN; figures are medians over the seeds."
    )
    yield ""
    yield (
        "These are simulated paths with two bulk flows. The results do not apply to many flows, to Wi-Fi or "
        "cellular links, or to disciplines with other parameters. A discipline manages the queue of *this* "
        "link: if the bottleneck is elsewhere, none of this applies. Many flows, short ones, calls and "
        "changing rates are in [the passports of all disciplines](../reference/queues.md), with which a "
        "choice begins."
    )
    yield ""
    yield "## In short"
    yield ""
    yield (
        f"Pings (95th percentile) with the queues whose total goodput is at least {100 * ENOUGH:.0f} % of "
        "the best. The best are those that no other one beats by more than "
        f"{100 * ALIKE:.0f} % with every seed:"
    )
    yield ""
    yield "| path | best | their pings | the next one |"
    yield "|---|---|---|---|"
    for path, queues in by_route.items():
        first, order = tied(queues), best(queues)
        pings = [queues[name].ping_p95_ms for name in first]
        ends = dict.fromkeys(q.milliseconds(end) for end in (min(pings), max(pings)))
        rest = [name for name in order if name not in first]
        after = f"{rest[0]}, {q.milliseconds(queues[rest[0]].ping_p95_ms)}" if rest else "none"
        yield f"| {_name(path)} | {', '.join(first)} | {' to '.join(ends)} | {after} |"
    for path, queues in by_route.items():
        yield from _table(path, queues)


def _table(path: RateAndRtt, queues: dict[str, Figures]) -> Iterator[str]:
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


def _name(path: RateAndRtt) -> str:
    return f"{q.rate(path.rate_bps)}, {q.duration_ns(path.rtt_ns)}"


if __name__ == "__main__":
    sweep_folder = Path(sys.argv[1])
    files.write_text(Path(sys.argv[2]), page(read_description(sweep_folder), read(sweep_folder)))
