"""Why the runs of a set-up came out as they did: the core's sentences, and the time by limiting factor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragstrip.display import quantity
from dragstrip.display.quantity import MISSING
from dragstrip.display.table import Cell, Table
from dragstrip.results.comparison.causes import Cause, causes
from dragstrip.results.comparison.setups import Contender, Json, Setup
from dragstrip.results.comparison.stats import count_of, idle_of, seconds_of
from dragstrip.results.measures import parts_text


@dataclass(frozen=True)
class Reason:
    """The explanation of a contender's run or, without a contender, of a run that all share.

    `repeats` says in how many repeats the first sentence holds.
    """

    contender: Contender | None
    sentences: list[str]
    repeats: str = ""
    about: tuple[str, ...] = ()
    """The rule of the first sentence, and its flows where several share the run."""
    runs: int = 1
    """Repeats that it is of."""
    without: Json | None = None
    """Results of runs without the first sentence's cause, if they were made."""


def reasons(setup: Setup) -> list[Reason]:
    """Return the sentences of each contender's repeats, or of the runs if contenders share them."""
    if setup.together:
        return _with_sentences([_reason(None, [run.summary for run in setup.runs])])
    by_contender = (_reason(c, [bout.run.summary for bout in c.bouts]) for c in setup.contenders)
    return _with_sentences(by_contender)


COMMON_MAX = 4
"""Largest number of explanations shown for many set-ups: those that hold in most of them."""


@dataclass(frozen=True)
class Common:
    """The first explanation that several set-ups have in common, as the first of them gives it."""

    reason: Reason
    setup: Setup
    count: int
    of: int
    """Set-ups that explain this contender, or of flows that share a run, all that do."""

    @property
    def where(self) -> str:
        """The set-up whose figures are shown, and the number of set-ups alike."""
        few = f"In {self.count} of {self.of} setups, such as {self.setup.short}"
        return self.setup.short if self.count == 1 else few


def common(setups: Sequence[Setup]) -> list[Common]:
    """Group set-ups by the rule and the flows of their first sentence; the largest groups come first."""
    groups: dict[tuple[str, ...], list[tuple[Setup, Reason]]] = {}
    explained: dict[str, int] = {}
    for setup in setups:
        for reason in reasons(setup):
            title = reason.contender.title if reason.contender else ""
            explained[title] = explained.get(title, 0) + 1
            groups.setdefault((title, *reason.about), []).append((setup, reason))
    common_reasons = [
        Common(members[0][1], members[0][0], len(members), explained[title])
        for (title, *_), members in groups.items()
    ]
    return sorted(common_reasons, key=lambda group: -group.count)[:COMMON_MAX]


def _with_sentences(reasons: Iterable[Reason]) -> list[Reason]:
    return [reason for reason in reasons if reason.sentences]


NO_COMMON = "No cause holds in most repeats"


def _reason(contender: Contender | None, runs: list[Json]) -> Reason:
    ranked_causes = causes(runs)
    if not ranked_causes:
        return Reason(contender, [])
    first = ranked_causes[0]
    sentences = [] if first.leads else [NO_COMMON]
    for place, cause in enumerate(ranked_causes):
        lead = place == 0 and first.leads
        sentences += _sentences(cause, "" if lead or cause.holds == cause.repeats else f" ({cause.extent})")
    if not first.leads:
        return Reason(contender, sentences, about=(NO_COMMON,))
    flows = first.flows if contender is None else ()
    return Reason(contender, sentences, first.extent, (first.rule, *flows), len(runs), first.without)


def _sentences(cause: Cause, extent: str) -> Iterator[str]:
    """Yield a cause's sentence, then that of the run without it."""
    yield cause.sentence + extent
    if cause.without:
        again = f"dragstrip run {cause.without['experiment']}, in the output folder"
        yield counterfactual(cause.without, again, cause.repeats)


def counterfactual(without_cause: Json, again: str, repeats: int = 1) -> str:
    """Return the sentence of runs without the cause, marked as runs, with what repeats them.

    Of several repeats its figures are medians, or those of the first repeat if only that was run again.
    """
    sentence = str(without_cause["sentence"])
    number = int(without_cause.get("repeats", 1))
    if number > 1:
        runs = f"medians of {number} runs of their own"
    else:
        runs = "a run of its own beside the first repeat" if repeats > 1 else "a run of its own"
    return f"{sentence[:1].upper()}{sentence[1:]} ({runs}: {again})"


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
    tcp_contenders = [contender for contender in setup.contenders if contender.is_tcp]
    idle = {contender.key: quantity.percent(idle_of(setup, contender)) for contender in tcp_contenders}
    if not setup.together:
        heads.append(("Bottleneck idle", f"Time in which {setup.queue_names} had nothing to send"))
    body = []
    for contender in tcp_contenders:
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
    links = {setup.queue_name(contender): idle[contender.key] for contender in tcp_contenders}
    times = [f"{name}: {time}" for name, time in links.items() if time != MISSING]
    if setup.together and times:
        caption = f"Idle time of {', of '.join(times)} of the run."
    algorithms = [contender.cc for contender in tcp_contenders if seconds_of(contender, "limited_s")]
    deciding = frozenset({heads[0][0], "Limited by", "Timeouts"})
    return Table(heads, body, caption, algorithms, deciding)
