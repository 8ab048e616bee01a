"""Why the runs of a set-up came out as they did: the core's sentences, and the time by limiting factor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragstrip.report.tables import Cell, Table
from dragstrip.results.measures import parts_text
from dragstrip.results.standings import quantity
from dragstrip.results.standings.quantity import MISSING
from dragstrip.results.standings.setups import Contender, Json, Setup
from dragstrip.results.standings.stats import count_of, idle_of, seconds_of


@dataclass(frozen=True)
class Reason:
    """What explains a contender's run or, without a contender, a run that all share.

    `repeats` says in how many repeats the first sentence's rule comes first.
    """

    who: Contender | None
    sentences: list[str]
    repeats: str = ""
    about: tuple[str, ...] = ()
    """The rule of the first sentence, and its flows where several share the run."""
    without: Json | None = None
    """What a run without the first sentence's cause shows, if one was made."""


def reasons(setup: Setup) -> list[Reason]:
    """Return the sentences of each contender's first repeat, or of the first run if contenders share it."""
    if setup.together:
        return _named([_reason(None, [run.summary for run in setup.runs])])
    whose = (_reason(c, [bout.run.summary for bout in c.bouts]) for c in setup.contenders)
    return _named(whose)


COMMON_MAX = 4
"""Explanations told of many set-ups, at most: those that hold in most of them."""


@dataclass(frozen=True)
class Common:
    """What comes first in the explanations of several set-ups, as the first of them has it."""

    reason: Reason
    setup: Setup
    count: int
    of: int
    """Set-ups that explain this contender, or of flows that share a run, all that do."""

    @property
    def where(self) -> str:
        """The set-up whose figures are told, and how many are alike."""
        few = f"In {self.count} of {self.of} setups, such as {self.setup.short}"
        return self.setup.short if self.count == 1 else few


def common(setups: Sequence[Setup]) -> list[Common]:
    """Group set-ups by the rule and the flows of their first sentence; the largest groups come first."""
    groups: dict[tuple[str, ...], list[tuple[Setup, Reason]]] = {}
    explained: dict[str, int] = {}
    for setup in setups:
        for reason in reasons(setup):
            who = reason.who.title if reason.who else ""
            explained[who] = explained.get(who, 0) + 1
            groups.setdefault((who, *reason.about), []).append((setup, reason))
    found = [
        Common(members[0][1], members[0][0], len(members), explained[who])
        for (who, *_), members in groups.items()
    ]
    return sorted(found, key=lambda group: -group.count)[:COMMON_MAX]


def _named(reasons: Iterable[Reason]) -> list[Reason]:
    return [reason for reason in reasons if reason.sentences]


def _reason(who: Contender | None, runs: list[Json]) -> Reason:
    findings = [run.get("why") or [] for run in runs]
    first = findings[0] if findings else []
    sentences = [text for finding in first for text in _told(finding)]
    repeats = ""
    if first and len(runs) > 1:
        same = sum(bool(other) and other[0].get("rule") == first[0].get("rule") for other in findings)
        repeats = f"the first holds in {same} of {len(runs)} repeats"
    if not first:
        return Reason(who, sentences)
    flows = first[0].get("flows") or [] if who is None else []
    about = (str(first[0].get("rule")), *map(str, flows))
    return Reason(who, sentences, repeats, about, first[0].get("without"))


def _told(finding: Json) -> Iterator[str]:
    """Yield a finding's sentence, then that of the run without its cause."""
    yield str(finding.get("sentence", ""))
    if other := finding.get("without"):
        yield counterfactual(other, f"dragstrip run {other['experiment']}, in the output folder")


def counterfactual(other: Json, again: str) -> str:
    """Return the sentence of a run without the cause, marked as a run, with what repeats it."""
    sentence = str(other["sentence"])
    return f"{sentence[:1].upper()}{sentence[1:]} (a run of its own: {again})"


def limits(setup: Setup) -> Table | None:
    """Return a table of what limited each contender, or None if that is unknown.

    It also has the states, reductions and timeouts, and how long the link was idle.
    """
    heads = [
        ("Algorithm" if not setup.together else "Flow", ""),
        ("Limited by", "What limited the sender, as a share of its time"),
        ("State", "TCP state, or the algorithm’s phase, as a share of its time"),
        ("Reductions", "Number of window reductions"),
        ("Timeouts", "Expiries of the retransmission timer"),
    ]
    shown = [contender for contender in setup.contenders if contender.is_tcp]
    idle = {contender.key: quantity.percent(idle_of(setup, contender)) for contender in shown}
    if not setup.together:
        heads.append(("Bottleneck idle", f"Time in which {setup.queue_name} had nothing to send"))
    body = []
    for contender in shown:
        limited, states = seconds_of(contender, "limited_s"), seconds_of(contender, "state_s")
        if not limited:
            continue
        row = [
            Cell(contender.title, colour=contender.colour, number=False),
            Cell(parts_text(limited), number=False),
            Cell(parts_text(states), number=False),
            Cell(quantity.count(count_of(contender, "reductions"))),
            Cell(quantity.count(count_of(contender, "timeouts"))),
        ]
        body.append(row if setup.together else [*row, Cell(idle[contender.key])])
    if not body:
        return None
    caption = ""
    if setup.together and shown and idle[shown[0].key] != MISSING:
        caption = f"Idle time of {setup.queue_name}: {idle[shown[0].key]} of the run."
    algorithms = [contender.cc for contender in shown if seconds_of(contender, "limited_s")]
    deciding = frozenset({heads[0][0], "Limited by", "Timeouts"})
    return Table(heads, body, caption, algorithms, deciding)
