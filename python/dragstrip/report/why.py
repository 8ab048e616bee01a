"""Why the runs of a setup came out as they did: the core's sentences, and what limited whom for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dragstrip.measures import parts_text
from dragstrip.report import quantity
from dragstrip.report.load import Json, median, number
from dragstrip.report.quantity import MISSING
from dragstrip.report.setups import Bout, Contender, Setup
from dragstrip.report.tables import Cell, Table


@dataclass(frozen=True)
class Reason:
    """What explains a contender's run, or (without a contender) one that all share.

    `repeats` says in how many of them the first sentence's rule comes first.
    """

    who: Contender | None
    sentences: list[str]
    repeats: str = ""


def reasons(setup: Setup) -> list[Reason]:
    """The sentences of the first repeat of every contender, or of the first run where contenders share it."""
    if setup.together:
        return _named([_reason(None, [run.summary for run in setup.runs])])
    whose = (_reason(c, [bout.run.summary for bout in c.bouts]) for c in setup.contenders)
    return _named(whose)


def _named(reasons: Iterable[Reason]) -> list[Reason]:
    return [reason for reason in reasons if reason.sentences]


def _reason(who: Contender | None, runs: list[Json]) -> Reason:
    findings = [run.get("why") or [] for run in runs]
    first = findings[0] if findings else []
    sentences = [str(finding.get("sentence", "")) for finding in first]
    repeats = ""
    if first and len(runs) > 1:
        same = sum(bool(other) and other[0].get("rule") == first[0].get("rule") for other in findings)
        repeats = f"the first holds in {same} of {len(runs)} repeats"
    return Reason(who, sentences, repeats)


def limits(setup: Setup) -> Table | None:
    """What limited each contender, its states, reductions, timeouts, idle link; none if it is not known."""
    heads = [
        ("Algorithm" if not setup.together else "Flow", ""),
        ("Limited by", "What limited the sender, as a part of its time"),
        ("State", "TCP state, or the algorithm’s phase, as a part of its time"),
        ("Reductions", "Times that the window was reduced"),
        ("Timeouts", "Expiries of the retransmission timer"),
    ]
    shown = [contender for contender in setup.contenders if contender.is_tcp]
    idle = {contender.key: _idle(setup, contender) for contender in shown}
    if not setup.together:
        heads.append(
            (f"{setup.queue_link or 'Link'} idle", "Time in which the bottleneck had nothing to send")
        )
    body = []
    for contender in shown:
        limited, states = _seconds(contender, "limited_s"), _seconds(contender, "state_s")
        if not limited:
            continue
        row = [
            Cell(contender.title, colour=contender.colour, number=False),
            Cell(parts_text(limited), number=False),
            Cell(parts_text(states), number=False),
            Cell(quantity.count(_sum(contender, "reductions"))),
            Cell(quantity.count(_sum(contender, "timeouts"))),
        ]
        body.append(row if setup.together else [*row, Cell(idle[contender.key])])
    if not body:
        return None
    caption = ""
    if setup.together and shown and idle[shown[0].key] != MISSING:
        caption = f"The bottleneck {setup.queue_link} was idle for {idle[shown[0].key]} of the time."
    algorithms = [contender.cc for contender in shown if _seconds(contender, "limited_s")]
    deciding = frozenset({heads[0][0], "Limited by", "Timeouts"})
    return Table(heads, body, caption, algorithms, deciding)


def _seconds(contender: Contender, field: str) -> dict[str, float]:
    """Seconds by name, over all flows and repeats."""
    spent: dict[str, float] = {}
    for flow in (flow for bout in contender.bouts for flow in bout.results):
        known = flow.get(field)
        for name, seconds in (known if isinstance(known, Mapping) else {}).items():
            spent[name] = spent.get(name, 0.0) + (number(seconds) or 0.0)
    return spent


def _sum(contender: Contender, field: str) -> float | None:
    """The median over repeats of the sum over flows."""

    def of(bout: Bout) -> float | None:
        counts = [number(flow.get(field)) for flow in bout.results]
        return sum(count for count in counts if count is not None) if None not in counts and counts else None

    return median(of(bout) for bout in contender.bouts)


def _idle(setup: Setup, contender: Contender) -> str:
    def of(bout: Bout) -> float | None:
        queues = bout.run.summary.get("queues") or []
        queue: Json = next((queue for queue in queues if queue.get("link") == setup.queue_link), {})
        seconds = number(queue.get("idle_s"))
        flows = bout.run.recording.flows
        busy = max(flow.stop_s for flow in flows) - min(flow.start_s for flow in flows) if flows else 0.0
        return seconds / busy if seconds is not None and busy > 0 else None

    return quantity.percent(median(of(bout) for bout in contender.bouts))
