"""The tables of the page, as rows of cells; the template does not interpret them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dragstrip.display import quantity
from dragstrip.display.quantity import MISSING, median, number
from dragstrip.display.table import Cell, Table
from dragstrip.report.picture import settings_text
from dragstrip.results.comparison import path as paths
from dragstrip.results.comparison import verdict
from dragstrip.results.comparison.setups import Contender, Json, Setup
from dragstrip.results.comparison.stats import Row, Statistic

DECIDING = frozenset({"Algorithm", "Flow", "Setup", "Share", "Goodput", "RTT p50", "… of sent"})
"""The columns of a comparison that are read first."""


@dataclass(frozen=True)
class _Column:
    head: str
    meaning: str
    figure: Callable[[Row], Statistic | None]
    text: Callable[[float | None], str]
    most: bool | None = None
    """True if the largest figure is best, False if the smallest is, None if neither is."""


def comparison(setup: Setup, rows: list[Row]) -> Table:
    """Return what each contender got and what it cost, with the best of each column marked."""
    columns = [column for column in _columns(setup) if any(column.figure(row) is not None for row in rows)]
    columns = _in_one_unit(columns, rows)
    heads = [("Algorithm" if not setup.together else "Flow", "")]
    heads += [(column.head, column.meaning) for column in columns]
    best = _best(setup, columns, rows)
    body = []
    for row in rows:
        name = _name(row.contender, f"{row.flows} flows" if row.flows > 1 else "")
        body.append(
            [
                name,
                *(_cell(column, row, row in winners) for column, winners in zip(columns, best, strict=True)),
            ]
        )
    caption = _repeats_words(setup)
    if setup.together:
        caption += _shared_words(setup, rows)
    return Table(heads, body, caption, [row.contender.cc for row in rows], DECIDING)


def _best(setup: Setup, columns: list[_Column], rows: list[Row]) -> list[list[Row]]:
    """Return, for each column, the rows that are ahead of others as far as the repeats show."""
    best_rows = []
    for column in columns:
        figures = [(row, column.figure(row)) for row in rows]
        order = None if column.most is None else verdict.order(setup, figures, column.text, most=column.most)
        certain = order is not None and order.judged and order.worst
        best_rows.append([rows[place] for place in order.best] if order is not None and certain else [])
    return best_rows


def _in_one_unit(columns: list[_Column], rows: list[Row]) -> list[_Column]:
    """Return the columns, with rates in the unit of the largest of theirs."""
    converted = []
    for column in columns:
        if column.text is quantity.rate:
            figures = [figure.middle for row in rows if (figure := column.figure(row)) is not None]
            column = replace(column, text=quantity.rates(max(figures, default=None)))
        converted.append(column)
    return converted


def _repeats_words(setup: Setup) -> str:
    if setup.repeats < 2:
        return ""
    if not setup.draws:
        return f"Nothing here draws random numbers: the {setup.repeats} runs are the same. "
    return f"Medians over {setup.repeats} runs, in small type minimum and maximum. "


def _columns(setup: Setup) -> list[_Column]:
    """Return the columns; queue, loss and fairness of contenders in one run stand below the table instead."""
    columns = _flow_columns()
    if setup.together:
        # Contenders that share a queue share its delay: none is ahead on it.
        columns = [
            replace(column, most=None) if column.head.startswith("RTT") else column for column in columns
        ]
        return [
            _Column(
                "Share",
                "Share of the new bytes of all flows that it competes with",
                lambda r: r.share,
                quantity.percent,
            ),
            *columns,
        ]
    columns += _queue_columns(setup)
    if setup.shared:
        columns.append(
            _Column(
                "Jain",
                "Fairness between its flows: 1 is an equal split (of several bottlenecks, the max–min one)",
                lambda r: r.jain,
                lambda v: MISSING if v is None else f"{v:.3f}",
                True,
            )
        )
    return columns


def _flow_columns() -> list[_Column]:
    """Return the columns of goodput, round-trip times and retransmissions."""
    return [
        _Column(
            "Goodput",
            "New data at the receiver per second, from the first flow’s start to the last one’s stop",
            lambda r: r.goodput_bps,
            quantity.rate,
            True,
        ),
        _Column(
            "Throughput p50",
            "Median throughput per second, including headers and retransmissions",
            lambda r: r.throughput_p50_bps,
            quantity.rate,
        ),
        _Column("RTT p5", "5th percentile of round-trip times", lambda r: r.rtt_p5_ms, quantity.milliseconds),
        _Column(
            "RTT p50", "Median of round-trip times", lambda r: r.rtt_p50_ms, quantity.milliseconds, False
        ),
        _Column(
            "RTT p95",
            "95th percentile of round-trip times",
            lambda r: r.rtt_p95_ms,
            quantity.milliseconds,
            False,
        ),
        _Column("Retransmitted", "Segments retransmitted", lambda r: r.retransmits, quantity.count),
        _Column(
            "… of sent",
            "Segments retransmitted as a share of all sent",
            lambda r: r.retransmit_rate,
            quantity.percent,
            False,
        ),
    ]


def _queue_columns(setup: Setup) -> list[_Column]:
    """Return the columns of the bottlenecks' queues."""
    return [
        _Column(
            "Queue p50",
            f"Median backlog at {setup.queue_names}",
            lambda r: r.queue_p50_bytes,
            quantity.size,
            False,
        ),
        _Column(
            "Queue p95",
            f"95th percentile of the backlog at {setup.queue_names}",
            lambda r: r.queue_p95_bytes,
            quantity.size,
            False,
        ),
        _Column("Dropped", f"Packets dropped at {setup.queue_names}", lambda r: r.dropped, quantity.count),
        _Column(
            "Marked",
            f"Packets marked at {setup.queue_names}",
            lambda r: r.marked if r.marked and r.marked.greatest else None,
            quantity.count,
        ),
    ]


def _shared_words(setup: Setup, rows: list[Row]) -> str:
    """Return the figures of the run as a whole: the queue, and how evenly its competitors share."""
    at: dict[str, list[Row]] = {}
    for row in rows:
        at.setdefault(setup.queue_name(row.contender), []).append(row)
    caption = ""
    for name, queue_rows in at.items():
        words = _queue_words(queue_rows[0])
        sharers = (
            f" ({quantity.listing([row.contender.title for row in queue_rows])})" if setup.several else ""
        )
        caption += f"At {name}{sharers}: {', '.join(words)}. " if words else ""
    sets = {row.competitors: (row.jain, row.max_min) for row in rows if row.jain is not None}
    for labels, (jain, max_min) in sets.items():
        flows_suffix = f" of {quantity.listing(list(labels))}" if len(sets) > 1 else ""
        flows_suffix += " (of the ratio to the max–min fair rates)" if max_min else ""
        caption += f"Jain’s index{flows_suffix} {jain.middle:.3f}. "
    return caption.strip()


def _queue_words(row: Row) -> list[str]:
    """Return the figures of the queue that a row's flows stand in."""
    words = []
    if row.queue_p50_bytes is not None and row.queue_p95_bytes is not None:
        half, most = quantity.size(row.queue_p50_bytes.middle), quantity.size(row.queue_p95_bytes.middle)
        words.append(f"queue {half} (median), {most} (95th percentile)")
    if row.dropped is not None:
        words.append(f"{quantity.count(row.dropped.middle)} packets dropped")
    if row.marked is not None and row.marked.greatest > 0:
        words.append(f"{quantity.count(row.marked.middle)} marked")
    return words


def _cell(column: _Column, row: Row, best: bool) -> Cell:
    figure = column.figure(row)
    if figure is None:
        return Cell(MISSING)
    note = _span(column.text(figure.least), column.text(figure.greatest)) if figure.varies else ""
    return Cell(column.text(figure.middle), note, best=best)


def _span(least: str, greatest: str) -> str:
    """Return a range such as `48.1–49.7`, without the unit if both ends share it."""
    (low, _, low_unit), (high, _, high_unit) = least.partition(" "), greatest.partition(" ")
    return f"{low}–{high}" if low_unit == high_unit else f"{least} – {greatest}"


def _name(contender: Contender, note: str = "") -> Cell:
    return Cell(contender.title, note, colour=contender.colour, number=False)


def overview(entries: list[tuple[Setup, list[Row]]]) -> Table:
    """Return all set-ups below each other with the most important figures, for pages with several."""
    columns = [
        _Column("Goodput", "", lambda r: r.goodput_bps, quantity.rate, True),
        _Column("RTT p50", "", lambda r: r.rtt_p50_ms, quantity.milliseconds, False),
        _Column("RTT p95", "", lambda r: r.rtt_p95_ms, quantity.milliseconds, False),
        _Column("Retransmitted", "", lambda r: r.retransmit_rate, quantity.percent, False),
    ]
    columns = _in_one_unit(columns, [row for _, rows in entries for row in rows])
    heads = [("Setup", ""), ("Algorithm", ""), *((column.head, "") for column in columns)]
    body = []
    algorithms = []
    for setup, rows in entries:
        best = _best(
            setup, [replace(c, most=None) if setup.together and "RTT" in c.head else c for c in columns], rows
        )
        for row in rows:
            name = Cell(setup.short if row is rows[0] else "", number=False)
            cells = [
                _cell(column, row, row in winners) for column, winners in zip(columns, best, strict=True)
            ]
            body.append([name, _name(row.contender), *cells])
            algorithms.append(row.contender.cc)
    marked = any(cell.best for cells in body for cell in cells)
    caption = "The best of each setup is marked." if marked else ""
    return Table(heads, body, caption, algorithms, frozenset({"Setup", "Algorithm", "Goodput", "RTT p50"}))


def pings(setup: Setup) -> Table | None:
    """Return every probe of every contender with round-trip times and losses, or None without probes."""
    heads = [
        ("Ping", ""),
        ("to", ""),
        ("p5", ""),
        ("p50", ""),
        ("p95", ""),
        ("Lost", "Requests without an answer"),
    ]
    body = []
    algorithms = []
    for contender in setup.contenders[:1] if setup.together else setup.contenders:
        runs = [bout.run.summary.get("probes") or [] for bout in contender.bouts]
        for position in range(max(map(len, runs), default=0)):
            probes = [probes[position] for probes in runs if position < len(probes)]
            first = Cell("all together", number=False) if setup.together else _name(contender)
            times = [
                quantity.milliseconds(median(_ping(p, part) for p in probes)) for part in ("p5", "p50", "p95")
            ]
            lost_count = median(number(probe.get("lost")) for probe in probes)
            target = Cell(str(probes[0].get("target", "")), number=False)
            body.append([first, target, *map(Cell, times), Cell(quantity.count(lost_count))])
            algorithms.append(contender.cc)
    if not body:
        return None
    deciding = frozenset({"Ping", "to", "p50", "Lost"})
    return Table(heads, body, algorithms=[] if setup.together else algorithms, deciding=deciding)


def _ping(probe: Json, part: str) -> float | None:
    return number((probe.get("rtt_ms") or {}).get(part))


def links(setup: Setup) -> Table:
    """Return each link's settings; links that differ only in their ends share a row."""
    heads = [("Link", ""), ("Rate", ""), ("Delay", ""), ("Queue", ""), ("Impairments", "")]
    alike: dict[tuple[str, ...], list[str]] = {}
    texts_by_settings: dict[str, tuple[str, ...]] = {}  # a hundred thousand links have few settings
    for link in setup.scenario.get("links") or []:
        key = settings_text(link)
        if key not in texts_by_settings:
            texts_by_settings[key] = (
                paths.rate_text(link) or "unlimited",
                quantity.duration_ns(link["facts"]["delay_ns"]),
                paths.queue_text(paths.qdisc(link)) or "none",
                ", ".join(paths.impairments(link)) or "none",
            )
        alike.setdefault(texts_by_settings[key], []).append(f"{link['from']} → {link['to']}")
    rows = []
    for texts, ends in alike.items():
        names = ", ".join(ends) if len(ends) <= 4 else f"{ends[0]}, {ends[1]} … {ends[-1]} ({len(ends)})"
        rows.append([Cell(text, number=False) for text in (names, *texts)])
    return Table(heads, rows)
