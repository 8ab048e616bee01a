"""Holds a page and a terminal against what they should show; `AssertionError` says what differs."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from . import shown, summed
from .expected import (
    RETRANSMIT_TIE,
    TIE,
    Group,
    Judged,
    Row,
    Run,
    Statistic,
    check_document,
    judge,
    rate_of,
    rows_of,
    runs_of,
)
from .shown import Cell, Node, Table, close, says, span_says

Figure = Callable[[Row], Statistic | None]


def check(out: Path, terminal: str) -> str:
    """Everything that page and terminal show of the folder `out`."""
    runs = runs_of(out)
    for run in runs:
        check_document(run)
    page = shown.read((out / "report.html").read_text(encoding="utf-8"))
    rows = rows_of(runs)
    sections = [
        node for node in page.all("section") if re.fullmatch(r"setup-\d+", node.attributes.get("id", ""))
    ]
    left = list(rows)
    found = [_section(page, node, left, len(sections)) for node in sections]
    assert not left, f"rows that no table has: {left}"
    heads = [section.title for section in found]
    assert len(set(heads)) == len(heads), f"two set-ups of the same name: {heads}"
    count = f"{len(runs)} run{'s' if len(runs) != 1 else ''} on sim"
    _is(page.all("p", "kicker")[0].text, f"Dragstrip · {count}", "the page's first line")
    if len(found) > 1:
        _overview(page, found)
        _across(page, found)
    if len(found) >= summed.SETUPS_MIN:
        summed.check(_summing(page), [_summed(section) for section in found])
    _terminal(terminal, found, _summing(page))
    return (
        "repeats"
        if any(len(row.runs) > 1 for row in rows)
        else "together"
        if len(rows) > len(runs)
        else "alone"
    )


def _is(shown: str, expected: str, what: str) -> None:
    assert shown == expected, f"{what}: {shown!r}, expected {expected!r}"


@dataclass
class Section:
    """A set-up as the page has it: its rows in the page's order, with the names that they have there."""

    title: str
    short: str
    """What it is called where several are listed."""
    headline: str
    names: list[str]
    rows: list[Row]
    link: str
    """What the page calls the link whose queue it shows."""
    together: bool
    draws: bool


def _columns(link: str) -> dict[str, tuple[Figure, bool | None]]:
    """Of each column of the comparison its figure, and whether the most is best; none where nothing is."""

    def queue(name: str, part: str = "") -> Figure:
        return lambda row: row.over(row.queue(_watched(row) if link else "", name, part))

    return {
        "Goodput": (lambda row: row.over(row.goodput), True),
        "Throughput p50": (lambda row: row.over(row.throughput), None),
        "RTT p5": (lambda row: row.over(row.rtt("p5")), None),
        "RTT p50": (lambda row: row.over(row.rtt("p50")), False),
        "RTT p95": (lambda row: row.over(row.rtt("p95")), False),
        "Retransmitted": (lambda row: row.over(row.retransmits), None),
        "… of sent": (lambda row: row.over(row.rate), False),
        "Share": (lambda row: row.over(row.share), None),
        "Queue p50": (queue("backlog_bytes", "p50"), False),
        "Queue p95": (queue("backlog_bytes", "p95"), False),
        "Dropped": (queue("dropped"), None),
        "Marked": (queue("marked"), None),
        "Jain": (lambda row: row.over(row.jain), True),
    }


def _section(page: Node, node: Node, left: list[Row], sections: int) -> Section:
    table = shown.table(node.all("table", "comparison")[0])
    first = table.heads[0]
    together = first == "Flow"
    captions = [part.text for part in node.all("p", "note")]
    link = _link(table, " ".join(captions))
    columns = _columns(link)
    chosen = []
    for cells in table.rows:
        fits = [row for row in left if _fits(cells, row, columns, first)]
        names = [row for row in left if _named(cells[first].text, row.group)]
        assert fits, f"no repeats have this row:\n{_text(cells)}\n{_nearest(names, cells, columns)}"
        chosen.append(fits[0])
        left.remove(fits[0])
    names = [cells[first].text for cells in table.rows]
    assert len(set(names)) == len(names), f"two rows of the same name: {names}"
    setup = Section(
        title=page.all("a")[0].text if sections == 1 and page.all("a") else "",
        short="",
        headline="",
        names=names,
        rows=chosen,
        link=link,
        together=together,
        draws=False,
    )
    setup.title = _title_of(captions)
    setup.short, setup.headline = _headline(page, node, setup.title, sections)
    # Where several set-ups are listed, each is called by what sets it apart.
    unknown = set(setup.short.split(", ")) - set(setup.title.split(", "))
    assert not unknown, f"{setup.short}: its path is called {setup.title}"
    _check_setup(setup, node, table)
    return setup


def _headline(page: Node, node: Node, title: str, sections: int) -> tuple[str, str]:
    """What a set-up is called where several are listed, and its sentence: folded with it if there are many."""
    answers = page.all("section", "answer")[0].all("p")
    if sections == 1:
        return title, answers[0].text
    if sections >= summed.SETUPS_MIN:
        overview = shown.table(page.all("table", "overview")[0])
        names = [cells["Setup"].text for cells in overview.rows if cells["Setup"].text]
        number = int(node.attributes["id"].removeprefix("setup-"))
        return names[number - 1], node.all("span", "headline")[0].text
    link = f"#{node.attributes['id']}"
    here = next(it for it in answers for a in it.all("a") if a.attributes["href"] == link)
    short = here.all("a")[0].text
    return short, here.text.removeprefix(f"{short}: ")


def _title_of(captions: Sequence[str]) -> str:
    return next(text for text in captions if " a run" in text and "; " in text).split("; ")[0]


def _link(table: Table, captions: str) -> str:
    for meaning in table.meanings.values():
        if found := re.fullmatch(r"Median backlog at (.+)", meaning):
            return found[1]
    queue = re.search(r"\bAt (the bottleneck|\S+ → \S+|[\w-]+)(?: \(|: )", captions)
    return queue[1] if queue else ""


def _fits(cells: dict[str, Cell], row: Row, columns: Any, first: str) -> bool:
    if not _named(cells[first].text, row.group):
        return False
    count = len(row.group.numbers)
    if cells[first].note != (f"{count} flows" if count > 1 else ""):
        return False
    return all(_cell_fits(cell, columns[head][0](row)) for head, cell in cells.items() if head != first)


def _cell_fits(cell: Cell, figure: Statistic | None) -> bool:
    if figure is None:
        return cell.text == shown.MISSING
    if cell.text == shown.MISSING:
        return figure.greatest == 0  # a column of marks where there are none
    if not says(cell.text, figure.middle):
        return False
    if not cell.note:
        return figure.greatest - figure.least <= TIE * abs(figure.middle) * (1 + 1e-9)
    return span_says(cell.note, cell.text, figure.least, figure.greatest)


def _named(title: str, group: Group) -> bool:
    if group.label and re.sub(r"-[0-9]+$", "", title) == group.label:
        return group.algorithm in title  # as the command line has it, options included
    words = [group.algorithm, *(f"{name}={float(value):g}" for name, value in group.options.items())]
    return all(word in title.replace("\u2009", "") for word in words)


def _text(cells: dict[str, Cell]) -> str:
    return ", ".join(f"{head} {cell.text} {cell.note}".strip() for head, cell in cells.items())


def _nearest(rows: list[Row], cells: dict[str, Cell], columns: Any) -> str:
    said = []
    for row in rows:
        wrong = [
            head
            for head, cell in cells.items()
            if head in columns and not _cell_fits(cell, columns[head][0](row))
        ]
        figures = {head: figure.middle if (figure := columns[head][0](row)) else None for head in wrong}
        said.append(f"{row}: differs in {figures or 'its name or number of flows'}")
    return "\n".join(said)


def _check_setup(setup: Section, node: Node, table: Table) -> None:
    runs = [run for row in setup.rows for run in row.runs]
    repeats = max(len(row.runs) for row in setup.rows)
    captions = " ".join(part.text for part in node.all("p", "note"))
    cautions = " ".join(part.text for part in node.all("p", "caution"))
    several = len(setup.rows) > 1
    assert setup.together == (len({run.summary["recording"] for run in runs}) < len(runs)), "together"
    said = re.search(r"(Medians over|draws random numbers: the) (\d+) runs", captions)
    assert (int(said[2]) if said else 1) == repeats, f"{setup.title}: {captions}, of {repeats} repeats"
    duration = max(run.summary["duration_s"] for run in runs)
    words = f"{setup.title}; {duration:g} s a run"
    words += f", {repeats} repeats" if repeats > 1 else ""
    words += (
        "; all at once" if setup.together else "; each algorithm had the path to itself" if several else ""
    )
    assert f"{words}." in captions, f"{captions}: expected {words}"
    unsure = "something here draws random numbers" in cautions
    setup.draws = unsure or not _same_anyhow(runs)
    assert not unsure or (repeats < 3 and several), f"{setup.title}: {cautions}"
    known_random = any(
        (link["netem"] or {}).get("loss", {}).get("model", "none") == "random"
        for run in runs
        for link in run.scenario["links"]
    )
    assert not (known_random and several and repeats < 3) or unsure, (
        f"{setup.title}: losses are random, and it says nothing"
    )
    if setup.link:
        _check_link(setup)
    _check_marks(setup, table)
    _check_verdicts(setup, node)
    _check_headline(setup)
    _check_shared(setup, captions)
    _check_limits(setup, node)
    _check_pings(setup, node)
    _check_figures(setup, node)


def _same_anyhow(runs: list[Run]) -> bool:
    """Whether nothing is known to be random: no impairment, no hashing queue, and algorithms without dice."""
    text = " ".join(json.dumps([run.scenario["links"], run.scenario["flows"]]) for run in runs)
    return not re.search(r'"model": "random"|"jitter_ns": [1-9]|fq_codel|"sfq"|"cc": "(bbr|cdg)"', text)


def _check_link(setup: Section) -> None:
    """What the columns call the link of the queues; a run that flows share names each link below its table."""
    names = list(dict.fromkeys(_link_names(setup)))
    if not setup.together:
        expected = names[0] if len(names) == 1 else "the link where the flow queues"
        _is(setup.link, expected, f"{setup.title}: the queue that is looked at")


def _link_names(setup: Section) -> list[str]:
    """The name of each row's link: its own where rows wait at several, or at another than the first flow's slowest."""
    watched = [_watched(row) for row in setup.rows]
    if any(name and name != _slowest(setup.rows[0].runs[0].ways[0][0]) for name in _bottlenecks(setup)):
        return watched
    there = setup.rows[0].runs[0].ways[0][0]
    rated = any(rate_of(link) for link in there)
    return ["the bottleneck" if rated else f"{there[0]['from']} → {there[0]['to']}"] * len(watched)


def _bottlenecks(setup: Section) -> list[str]:
    """The links at which rows wait, or that are the slowest of their ways; empty for ways without a rate."""
    return [_watched(row) if _named_link(row) or _slowest(_way(row)) else "" for row in setup.rows]


def _slowest(there: Sequence[Any]) -> str:
    """The slowest link of a way; empty if none has a rate."""
    rated = [link for link in there if rate_of(link)]
    return str(min(rated, key=lambda link: rate_of(link) or 0.0)["name"]) if rated else ""


def _way(row: Row) -> list[Any]:
    way: list[Any] = row.runs[0].ways[min(row.group.numbers)][0]
    return way


def _named_link(row: Row) -> str | None:
    """The link that most of a row's flows and runs have as the one where they wait; the first of equals."""
    names = Counter(
        str(link)
        for run in row.runs
        for number in sorted(row.group.numbers)
        if (link := run.summary["flows"][number]["bottleneck"])
    )
    return next((name for name, _ in names.most_common()), None)


def _watched(row: Row) -> str:
    """The link whose queue a row shows: where its flows wait in most runs, else the slowest of their way.

    Where a flow waits is the recording's, which crates/measures/tests/queueing.rs holds against an observer.
    """
    return _named_link(row) or _slowest(_way(row)) or str(_way(row)[0]["name"])


def _judged(setup: Section, head: str) -> tuple[Judged | None, list[Statistic | None]]:
    figure, most = _columns(setup.link)[head]
    figures = [figure(row) for row in setup.rows]
    # Nobody is ahead of those in another direction, or on another link.
    known = (row for row, found in zip(setup.rows, figures, strict=True) if found is not None)
    sets = {frozenset(row.rivals(row.runs[0]) or ()) for row in known}
    if setup.together and len(sets) > 1:
        return None, figures
    share = head == "… of sent"
    tie = {"relative": False, "tie": RETRANSMIT_TIE} if share else {}
    return judge(figures, draws=setup.draws, most=bool(most), **tie), figures  # type: ignore[arg-type]


def _check_marks(setup: Section, table: Table) -> None:
    for head in table.heads[1:]:
        most = _columns(setup.link)[head][1]
        order = None if most is None or (setup.together and "RTT" in head) else _judged(setup, head)[0]
        best = order.best if order and order.sure and order.worst else set()
        marked = {place for place, cells in enumerate(table.rows) if cells[head].best}
        assert marked == best, f"{setup.title}: best {head}: {marked}, expected {best}"


VERDICTS = {
    "Highest goodput": ("Goodput", False),
    "Lowest median RTT": ("RTT p50", True),
    "Lowest 95th-percentile RTT": ("RTT p95", True),
    "Lowest retransmission rate": ("… of sent", False),
}
"""What it is of, and whether it means nothing where all share a queue."""


def _check_verdicts(setup: Section, node: Node) -> None:
    tables = node.all("table", "verdicts")
    body = [row for body in (tables[0].all("tbody") if tables else []) for row in body.all("tr")]
    said = {
        cells[0].text: [shown.cell(cell) for cell in cells[1:]]
        for cells in ([c for c in row.inside if isinstance(c, Node)] for row in body)
    }
    goodputs = [figure.middle if (figure := row.over(row.goodput)) else 0.0 for row in setup.rows]
    for what, (head, alone) in VERDICTS.items():
        order, figures = _judged(setup, head)
        if order is None or (alone and setup.together):
            assert what not in said, f"{setup.title}: {what} among {said}"
            continue
        (best, value, worst, worst_value), note = (cell.text for cell in said[what]), said[what][0].note
        hardly = {setup.names[place] for place in order.best if goodputs[place] < 0.1 * max(goodputs)}
        noted = set(
            re.findall(r"(?:^|; )(?!of the others)(.*?) gets only [\d.]+ % of the highest goodput", note)
        )
        assert noted == (hardly if order.worst and alone else set()), (
            f"{setup.title}: {what}: {note}: {hardly}"
        )
        middles = [figure.middle for figure in figures if figure is not None]
        ends = (max(middles), min(middles)) if head == "Goodput" else (min(middles), max(middles))
        assert says(value, ends[0]), f"{setup.title}: {what}: {value}, expected {ends[0]}"
        if not order.worst:
            assert best in ("no clear difference", "all alike"), (
                f"{setup.title}: {what}: {best}, expected no winner"
            )
            continue
        names = [{setup.names[place] for place in places} for places in (order.best, order.worst)]
        assert [_names(best), _names(worst)] == names, (
            f"{setup.title}: {what}: {best}; {worst}, expected {names}"
        )
        assert says(worst_value, ends[1]), f"{setup.title}: {what}: {worst_value}, expected {ends[1]}"


def _names(text: str) -> set[str]:
    return set(re.split(r", | and ", text))


def _check_headline(setup: Section) -> None:
    text = setup.headline
    if setup.together:
        _check_shares(setup, text)
        return
    if len(setup.rows) == 1:
        goodput, rtt = setup.rows[0].over(setup.rows[0].goodput), setup.rows[0].over(setup.rows[0].rtt("p50"))
        found = re.search(r"(?:carry|carries) ([\d.]+ \S*bit/s|–)", text)
        assert found, text
        assert says(found[1], goodput.middle if goodput else None), f"{text}: {goodput}"
        found = re.search(r"median RTT of ([\d.\u2009]+ \S+)[;.]", text)
        assert bool(found) == (rtt is not None), text
        assert not (found and rtt) or says(found[1], rtt.middle), f"{text}: {rtt}"
        return
    if " at a median RTT of " in text:
        _check_ranking(setup, text)
        return
    for head, pattern in (
        ("Goodput", r"(.*?) ha(?:s|ve) the highest goodput \((\S+ \S+); (.*) the lowest, (\S+ \S+)\)"),
        (
            "RTT p50",
            r"(?:.*; )?(.*?) keeps? the delay lowest \(median RTT (\S+ \S+) against (\S+ \S+) with (.*?)\)",
        ),
    ):
        order, figures = _judged(setup, head)
        found = re.search(pattern, text.split("runs: ")[-1].removeprefix("In this run: "))
        assert bool(found) == bool(order and order.worst), f"{text}: {head} {order}"
        if found and order:
            best, one, worst, other = (
                found.groups() if head == "Goodput" else (found[1], found[2], found[4], found[3])
            )
            names = [{setup.names[place] for place in places} for places in (order.best, order.worst)]
            assert [_names(best), _names(worst)] == names, f"{text}: expected {names}"
            middles = [figure.middle for figure in figures if figure is not None]
            ends = (max(middles), min(middles)) if head == "Goodput" else (min(middles), max(middles))
            assert says(one, ends[0]), f"{text}: {middles}"
            assert says(other, ends[1]), f"{text}: {middles}"


def _check_ranking(setup: Section, text: str) -> None:
    """Each contender once, with its share below the highest goodput and its median RTT."""
    text, _, _ = text.partition("; but ")  # what the table of verdicts says, too
    clauses = text.split("runs: ")[-1].removeprefix("In this run: ").removesuffix(".").split("; ")
    figures = {}
    for contender, measured_row in zip(setup.names, setup.rows, strict=True):
        carried, median = measured_row.over(measured_row.goodput), measured_row.over(measured_row.rtt("p50"))
        assert carried is not None
        assert median is not None
        figures[contender] = carried, median
    assert sorted(clause.rpartition(": ")[0] for clause in clauses) == sorted(figures), text
    leader, _, leading = clauses[0].rpartition(": ")
    goodput, rtt = leading.split(" at a median RTT of ")
    highest, first_rtt = figures[leader]
    assert says(goodput, highest.middle), f"{text}: {highest}"
    assert highest.middle == max(figure.middle for figure, _ in figures.values()), text
    assert says(rtt, first_rtt.middle), f"{text}: {first_rtt}"
    order, _ = _judged(setup, "Goodput")
    assert order is not None
    best = {setup.names[place] for place in order.best}
    for clause in clauses[1:]:
        name, _, words = clause.rpartition(": ")
        separation, delay = words.split(", at ")
        carried, median = figures[name]
        assert separation.endswith(" less") == (name not in best), f"{text}: {order}"
        if name not in best:
            share = 100 * (1 - carried.middle / highest.middle)
            assert abs(float(separation.split(" %")[0]) - share) <= 0.006 * share + 0.001, f"{text}: {share}"
        if delay != "the same median RTT":
            row_rtt, _, reference = delay.partition(" instead of ")
            assert says(row_rtt, median.middle), f"{text}: {median}"
            assert bool(reference) == (len(clauses) == 2), text
            assert not reference or says(reference, first_rtt.middle), f"{text}: {first_rtt}"


def _check_shares(setup: Section, text: str) -> None:
    """Of each set of competitors who got the most and who the least, or that one is alone in its direction."""
    sets: dict[frozenset[int], list[tuple[str, Row]]] = {}
    for name, row in zip(setup.names, setup.rows, strict=True):
        sets.setdefault(frozenset(row.rivals(row.runs[0]) or ()), []).append((name, row))
    name = r"((?:(?! got the same ).)*?)"
    when = r"(?: from \S+ s to \S+ s, while all of them lived)?"
    pattern = rf"f the bytes that arrived{when}, {name} got ([\d.]+ %) and (.*?) ([\d.]+ %)(?=[;.])"
    said = re.findall(pattern, text)
    equal = re.findall(r"(?:A|a)ll (\d+) got the same part \(([\d.]+ %)\)", text)
    expected = 0
    for members in sets.values():
        shares = {name: share.middle for name, row in members if (share := row.over(row.share))}
        if len(shares) < 2:
            continue
        most, least = max(shares.values()), min(shares.values())
        if most == least:
            assert any(int(count) == len(shares) and says(part, most) for count, part in equal), (
                f"{text}: {shares}"
            )
            continue
        expected += 1
        fits = [
            one in shares
            and other in shares
            and shares[one] == most
            and shares[other] == least
            and says(part, most)
            and says(rest, least)
            for one, part, other, rest in said
        ]
        assert any(fits), f"{text}: shares are {shares}"
    for name in re.findall(r"(?:^|; |: )([^;:]*?) carries \S+ \S+ in its direction", text):
        row = setup.rows[setup.names.index(name)]
        assert row.rivals(row.runs[0]) == set(row.group.numbers), f"{text}: {row} has rivals"
    assert len(said) == expected, f"{text}: {len(said)} comparisons, expected {expected}"


def _check_shared(setup: Section, captions: str) -> None:
    """The queue, the drops and the fairness under a table of flows that share a run."""
    if not setup.together:
        return
    columns = _columns(setup.link)
    links = _link_names(setup)
    several = links == [_watched(row) for row in setup.rows]
    for link in dict.fromkeys(links) if setup.link else ():
        here = [place for place, name in enumerate(links) if name == link]
        names = [setup.names[place] for place in here]
        listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        head = f"At {link} ({listed}): " if several else f"At {link}: "
        queue = re.search(
            rf"{re.escape(head)}(?:queue (.*?) \(median\), (.*?) \(95th percentile\), )?(\S+(?:\s\d\d\d)*) packets dropped",
            captions,
        )
        figures = [
            columns[column][0](setup.rows[here[0]]) for column in ("Queue p50", "Queue p95", "Dropped")
        ]
        assert queue or not several or not any(figures), f"{captions}: expected {head}"
        for text, figure in zip(queue.groups() if queue else (), figures, strict=False):
            assert text is None or says(text, figure.middle if figure else None), (
                f"{captions}: {link}: {figure}"
            )
    idle = re.search(r"Idle time of (.*?) of the run\.", captions)
    for name, text in (part.split(": ") for part in idle[1].split(", of ")) if idle else ():
        assert name in links, f"{captions}: idle time of {name}, expected {links}"
        row = setup.rows[links.index(name)]
        time = row.over(partial(_idle, _watched(row)))
        assert says(text, time.middle if time else None), f"{captions}: idle time of {name}: {time}"
    expected = {tuple(sorted(row.rivals(row.runs[0]) or ())): row.over(row.jain) for row in setup.rows}
    known = [figure.middle for figure in expected.values() if figure is not None]
    said = [
        float(number)
        for number in re.findall(
            r"Jain’s index(?: of (?:(?!Jain).)*?)?(?: \(of the ratio to the max–min fair rates\))? ([01]\.\d{3})\.",
            captions,
        )
    ]
    assert len(said) == len(known), f"{captions}: Jain's index is {known}"
    assert all(abs(a - b) < 6e-4 for a, b in zip(said, known, strict=True)), f"{captions}: Jain is {known}"


def _check_limits(setup: Section, node: Node) -> None:
    tables = node.all("table", "limits")
    rows = shown.table(tables[0]).rows if tables else []
    for cells in rows:
        values = list(cells.values())
        row = setup.rows[setup.names.index(values[0].text)]
        for place, field in ((1, "limited_s"), (2, "state_s")):
            _check_parts(values[place].text, row.seconds(field))
        for place, field in ((3, "reductions"), (4, "timeouts")):
            figure = row.over(row.total(field))
            assert says(values[place].text, figure.middle if figure else None), (
                f"{field}: {_text(cells)}, {figure}"
            )
        idle = row.over(partial(_idle, _watched(row)))
        if len(values) > 5:
            assert says(values[5].text, idle.middle if idle else None), (
                f"{setup.title}: {_text(cells)}: idle {idle}"
            )


def _check_parts(text: str, seconds: dict[str, float]) -> None:
    whole = sum(seconds.values())
    said = {name: float(part) for name, part in re.findall(r"(\S+) ([\d.]+) %", text)}
    for name, spent in seconds.items():
        part = 100 * spent / whole if whole else 0
        assert name in said or part < 1.001, f"{text}: {name} is {part} %"
        assert name not in said or abs(said[name] - part) <= 0.0051 * max(part, 1), (
            f"{text}: {name} is {part} %"
        )


def _idle(link: str, run: Run) -> float | None:
    found = [queue["idle_s"] for queue in run.summary["queues"] if queue["link"] == link]
    flows = run.summary["flows"]
    busy = max(flow["stop_s"] for flow in flows) - min(flow["start_s"] for flow in flows)
    return found[0] / busy if found and found[0] is not None and busy > 0 else None


def _check_pings(setup: Section, node: Node) -> None:
    tables = [shown.table(each) for each in node.all("table") if each.all("th")[0].text == "Ping"]
    rows = tables[0].rows if tables else []
    of = setup.rows[:1] if setup.together else setup.rows
    expected = [(row, place) for row in of for place in range(len(row.runs[0].summary["probes"]))]
    assert len(rows) == len(expected), f"{setup.title}: {len(rows)} rows of pings, expected {len(expected)}"
    for cells, (row, place) in zip(rows, expected, strict=True):
        probes = [run.summary["probes"][place] for run in row.runs]
        _is(cells["to"].text, probes[0]["target"], "a ping's target")
        for part in ("p5", "p50", "p95"):
            known = [probe["rtt_ms"][part] for probe in probes if probe["rtt_ms"][part] is not None]
            assert says(cells[part].text, median(known) if known else None), f"{_text(cells)}: {known}"
        lost = [probe["lost"] for probe in probes]
        assert says(cells["Lost"].text, median(lost)), f"{_text(cells)}: {lost}"


def _check_figures(setup: Section, node: Node) -> None:
    """Of a set-up that is one too many there are tables only, and its section says so."""
    figures = shown.figures(node)
    said = any("there are only the tables" in part.text for part in node.all("p", "caution"))
    assert said is not bool(figures), f"{setup.title}: figures {list(figures)}, left out: {said}"
    if said:
        return
    scales = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "% of sent": 0.01, "ms": 1.0}
    for name, head in (("goodput", "Goodput"), ("rtt", "RTT p50"), ("retransmissions", "… of sent")):
        if name not in figures:
            continue
        unit = scales[figures[name]["axis"]["unit"]]
        bars = {bar[0]: bar for bar in figures[name]["bars"]}
        of = _columns(setup.link)[head][0]
        known = {
            title: figure for title, row in zip(setup.names, setup.rows, strict=True) if (figure := of(row))
        }
        assert bars.keys() == known.keys(), f"{setup.title}: bars {list(bars)}, expected {list(known)}"
        for title, figure in known.items():
            _, _, value, least, greatest, text = bars[title]
            assert says(text, figure.middle), (
                f"{setup.title}: {name} of {title}: {text}, expected {figure.middle}"
            )
            drawn = [value * unit, least * unit, greatest * unit]
            row = setup.rows[setup.names.index(title)]
            ends = [figure.least, figure.greatest]
            if name == "rtt":
                ends = [s.middle if (s := row.over(row.rtt(part))) else 0.0 for part in ("p5", "p95")]
            for one, other in zip(drawn, [figure.middle, *ends], strict=True):
                assert close(one, other), f"{setup.title}: {name} of {title} is drawn as {drawn}"
    _check_pies(setup, figures)
    _check_distributions(setup, figures)


def _check_pies(setup: Section, figures: dict[str, Any]) -> None:
    pies = [figure for name, figure in figures.items() if name.startswith("pie")]
    run = next((run for row in setup.rows for run in row.runs if len(run.summary["flows"]) > 1), None)
    sets = [numbers for numbers in run.competing if len(numbers) > 1] if run else []
    flows = run.summary["flows"] if run else []
    sets = [numbers for numbers in sets if any(flows[number]["bytes_received"] for number in numbers)]
    shares = []
    for numbers in sets:
        found: dict[str, float] = {}
        for name, row in zip(setup.names, setup.rows, strict=True):
            for number in numbers & set(row.group.numbers) if run in row.runs else []:
                title = name if setup.together else flows[number]["label"]
                found[title] = found.get(title, 0.0) + flows[number]["bytes_received"]
        shares += [found] if len(found) > 1 else []  # one alone has all of it
    assert len(pies) == len(shares), f"{setup.title}: {len(pies)} pies of {len(shares)} sets of flows"
    for pie, expected in zip(pies, shares, strict=True):
        parts = {part["label"]: part for part in pie["parts"]}
        assert parts.keys() == expected.keys(), (
            f"{setup.title}: pie of {list(parts)}, expected {list(expected)}"
        )
        for title, size in expected.items():
            assert close(parts[title]["total"], size), (
                f"{setup.title}: pie: {title} {parts[title]}, expected {size}"
            )
            share = size / sum(expected.values())
            assert says(parts[title]["note"], share), f"{setup.title}: pie: {parts[title]}, expected {share}"


def _check_distributions(setup: Section, figures: dict[str, Any]) -> None:
    """The medians in the legend are of the samples of all flows and repeats."""
    lines = {line["label"]: line["note"] for line in figures.get("cdf-rtt", {"lines": []})["lines"]}
    for name, row in zip(setup.names, setup.rows, strict=True):
        samples = [value for run in row.runs for number in row.group.numbers for value in _rtts(run, number)]
        middle = float(np.median(samples)) / 1e6 if samples else None
        assert (name in lines) == (middle is not None), f"{setup.title}: a distribution of {name}: {lines}"
        assert middle is None or says(lines[name], middle), (
            f"{setup.title}: {name}: {lines[name]}, expected {middle}"
        )


def _rtts(run: Run, number: int) -> list[float]:
    flow = run.summary["flows"][number]
    for name in ("rtts", "samples"):
        table = run.table(name)
        own = table["flow"] == flow["flow"]
        if own.any():
            times = table["time_ns"] / 1e9
            inside = own & (times >= flow["start_s"]) & (times <= flow["stop_s"])
            values = table["rtt_ns"][inside]
            if name == "samples":  # of intervals in which something was acknowledged
                acked = table["bytes_acked"][inside]
                grows = [True] + [b is None or b > a for a, b in itertools.pairwise(acked)]
                values = [value for value, fresh in zip(values, grows, strict=False) if fresh]
            return [float(value) for value in values if value is not None]
    return []


# --- several set-ups ------------------------------------------------------------------------------


def _overview(page: Node, found: list[Section]) -> None:
    table = shown.table(page.all("table", "overview")[0])
    rows = [
        (section, name, row)
        for section in found
        for name, row in zip(section.names, section.rows, strict=True)
    ]
    assert len(table.rows) == len(rows), f"at a glance: {len(table.rows)} rows, expected {len(rows)}"
    for cells, (section, name, row) in zip(table.rows, rows, strict=True):
        _is(cells["Algorithm"].text, name, "at a glance")
        _is(cells["Setup"].text, section.short if row is section.rows[0] else "", "at a glance")
        columns = _columns(section.link)
        for head, column in (
            ("Goodput", "Goodput"),
            ("RTT p50", "RTT p50"),
            ("RTT p95", "RTT p95"),
            ("Retransmitted", "… of sent"),
        ):
            assert _cell_fits(cells[head], columns[column][0](row)), f"at a glance: {_text(cells)}: {head}"


def _across(page: Node, found: list[Section]) -> None:
    tables = page.all("table", "across")
    if not tables:
        return
    table = shown.table(tables[0])
    columns = {"Goodput": "Goodput", "Median RTT": "RTT p50", "Retransmitted": "… of sent"}
    name = ""
    for cells in table.rows:
        name = cells["Algorithm"].text or name
        if "Measure" in cells:
            title = cells["Measure"].text
            figures = [_of_name(section, name, columns[title]) for section in found]
            _across_says(cells, "A", name, figures[0])
            _across_says(cells, "B", name, figures[1])
            _across_says(cells, "B − A", name, _apart(*figures))
            continue
        at = "ABCDEF".index(cells["Setup"].text[0])
        _is(cells["Setup"].text, f"{'ABCDEF'[at]}: {found[at].short}", f"across: {name}")
        for title, head in columns.items():
            first, here = (_of_name(section, name, head) for section in (found[0], found[at]))
            _across_says(cells, title, name, here.middle if here else None)
            if at:
                _across_says(cells, f"{title} − A", name, _apart(first, here))


def _across_says(cells: dict[str, Cell], head: str, name: str, figure: Statistic | float | None) -> None:
    value = figure.middle if isinstance(figure, Statistic) else figure
    assert says(cells[head].text, value), f"across: {name}: {_text(cells)}: {head} {figure}"


def _apart(first: Statistic | None, other: Statistic | None) -> float | None:
    """The median difference of the same seeds."""
    if first is None or other is None:
        return None
    apart = [other.values[seed] - value for seed, value in first.values.items() if seed in other.values]
    return median(apart) if apart else None


def _summing(page: Node) -> list[str]:
    """The sentences of the answer that sum up set-ups: neither what all share, nor explanations, nor grades.

    None where every set-up has its own.
    """
    answers = page.all("section", "answer")[0].all("p")
    if any(a.attributes["href"].startswith("#setup-") for p in answers for a in p.all("a")):
        return []
    return [
        p.text for p in answers if not {"because", "tally"} & set(p.kinds) and not p.text.startswith("All ")
    ]


def _summed(section: Section) -> summed.Summed:
    entries = {
        name: summed.Entry(
            row.over(row.share),
            row.over(row.goodput),
            row.over(row.rtt("p50")),
            row.group.algorithm != "udp",
        )
        for name, row in zip(section.names, section.rows, strict=True)
    }
    return summed.Summed(section.short, entries, _judged(section, "Goodput")[0])


def _of_name(section: Section, name: str, head: str) -> Statistic | None:
    if name not in section.names:
        return None
    return _columns(section.link)[head][0](section.rows[section.names.index(name)])


# --- the terminal ---------------------------------------------------------------------------------

DIGITS = {
    "goodput": 3,
    "share": 1,
    "median": 1,
    "95": 1,
    "ping": 1,
    "retransmitted": 0,
    "queue": 1,
    "Jain": 3,
}


def _terminal(text: str, found: list[Section], sums: list[str]) -> None:
    lines = text.splitlines()
    rule = next(number for number, line in enumerate(lines) if line.strip().startswith("──"))
    heads = " ".join(lines[rule - 2 : rule])
    rows = [(section, row) for section in found for row in section.rows]
    body = lines[rule + 1 : rule + 1 + len(rows)]
    shared = any(len(run.summary["flows"]) > 1 for _, row in rows for run in row.runs)
    several = any(len(row.group.numbers) > 1 for _, row in rows)
    assert (" flows " in heads, " share " in heads, "Jain" in heads) == (several, shared, shared), heads
    for line, (section, row) in zip(body, rows, strict=True):
        columns = _columns(section.link)
        wanted: list[tuple[Statistic | None, float, int]] = []
        for head, factor, decimals in (
            ("Goodput", 1e-6, 3),
            ("Share", 100, 1),
            ("RTT p50", 1, 1),
            ("RTT p95", 1, 1),
            ("", 1, 1),
            ("Retransmitted", 1, 0),
            ("Queue p50", 1e-3, 1),
            ("Jain", 1, 3),
        ):
            if shared or head not in ("Share", "Jain"):
                figure = row.over(row.ping) if not head else columns[head][0](row)
                wanted.append((figure, factor, decimals))
        words = line.split()[-len(wanted) :]
        for word, (figure, factor, decimals) in zip(words, wanted, strict=True):
            right = (
                word == "–"
                if figure is None
                else word != "–" and (abs(float(word) - figure.middle * factor) <= 0.5 * 10**-decimals + 1e-9)
            )
            assert right, f"terminal: {line.strip()}: {word}, expected {figure}"
        assert not several or int(line.split()[-len(wanted) - 1]) == len(row.group.numbers), line
        assert row.group.algorithm in line, f"terminal: {line}: of {row.group.algorithm}"
    flat = re.sub(r"\s+", " ", text)
    compared = [section.headline for section in found if len(section.rows) > 1]
    each = compared if len(compared) <= 4 else []
    for said in each if len(found) < summed.SETUPS_MIN else sums or each:
        assert re.sub(r"\s+", " ", said) in flat, f"terminal: not {said}"
