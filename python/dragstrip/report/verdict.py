"""The answer: who wins on what, as a small table and as one sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup, escape

from dragstrip.report import quantity
from dragstrip.report.setups import FLOWS_DRAWN_MAX, Setup, drawn
from dragstrip.report.stats import TIE, Row, Statistic

# A share of segments; below it a difference is a handful of packets.
RETRANSMIT_TIE = 1e-4
# A sender that something else than its window held back for longer says little about its algorithm.
LIMITED_SHARE_MAX = 0.2

Text = Callable[[float | None], str]


@dataclass(frozen=True)
class Verdict:
    """Who is best and who is worst at one thing; `worst` is empty when there is nothing between them."""

    what: str
    best: list[str]
    value: str
    worst: list[str]
    worst_value: str


def verdicts(setup: Setup, rows: list[Row]) -> list[Verdict]:
    """Who wins on data moved, delay and retransmissions."""
    tcp = [row for row in rows if row.contender.is_tcp]
    judged = [
        _verdict("Most data", [(row, row.goodput_bps) for row in rows], quantity.rate, most=True),
        _verdict("Fewest retransmissions", [(row, row.retransmit_rate) for row in tcp], quantity.percent),
    ]
    if not setup.together:  # Who shares a queue, shares its delay.
        judged[1:1] = [
            _verdict("Lowest median RTT", [(row, row.rtt_p50_ms) for row in tcp], quantity.milliseconds),
            _verdict(
                "Lowest 95th-percentile RTT", [(row, row.rtt_p95_ms) for row in tcp], quantity.milliseconds
            ),
        ]
    return [verdict for verdict in judged if verdict is not None]


def _verdict(
    what: str, figures: list[tuple[Row, Statistic | None]], text: Text, *, most: bool = False
) -> Verdict | None:
    known = [(figure.middle, row.contender.title) for row, figure in figures if figure is not None]
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda pair: -pair[0] if most else pair[0])
    (best, _), (worst, _) = ordered[0], ordered[-1]
    winners = [title for value, title in known if _tied(value, best, text)]
    losers = [title for value, title in known if _tied(value, worst, text) and title not in winners]
    if len(winners) == len(known):
        return Verdict(what, winners, text(best), [], "")
    return Verdict(what, winners, text(best), losers, text(worst))


def _tied(value: float, other: float, text: Text) -> bool:
    if text is quantity.percent:
        return abs(value - other) <= RETRANSMIT_TIE
    return abs(value - other) <= TIE * max(abs(value), abs(other))


def headline(setup: Setup, rows: list[Row]) -> Markup:
    """One or two sentences, the contenders in bold."""
    if not rows:
        return Markup("Nothing was carried.")
    if setup.together:
        return _together(setup, rows)
    if len(rows) == 1:
        return _alone(setup, rows[0])
    return _apart(rows)


def _apart(rows: list[Row]) -> Markup:
    """Each contender had the path to itself."""
    sentences = []
    tcp = [row for row in rows if row.contender.is_tcp]
    data = _verdict("", [(row, row.goodput_bps) for row in rows], quantity.rate, most=True)
    if data is not None and not data.worst:
        sentences.append(
            Markup("{} move the same amount of data ({})").format(_everybody(data.best), data.value)
        )
    elif data is not None:
        verb = "moves" if len(data.best) == 1 else "move"
        sentences.append(
            Markup("{} {} the most data ({}; {} the least, {})").format(
                _bold(data.best), verb, data.value, _plain(data.worst), data.worst_value
            )
        )
    delay = _verdict("", [(row, row.rtt_p50_ms) for row in tcp], quantity.milliseconds)
    if delay is not None and not delay.worst:
        sentences.append(Markup("all see the same delay (median RTT {})").format(delay.value))
    elif delay is not None:
        sentences.append(_delay_sentence(delay, rows))
    return Markup("; ").join(sentences) + "."


def _delay_sentence(delay: Verdict, rows: list[Row]) -> Markup:
    verb = "keeps" if len(delay.best) == 1 else "keep"
    sentence = Markup("{} {} the delay lowest (median RTT {} against {} with {})").format(
        _bold(delay.best), verb, delay.value, delay.worst_value, _plain(delay.worst)
    )
    goodputs = {row.contender.title: row.goodput_bps.middle for row in rows if row.goodput_bps is not None}
    most = max(goodputs.values(), default=0.0)
    if len(delay.best) == 1 and most > 0:
        share = goodputs.get(delay.best[0], 0.0) / most
        if share < 1 - TIE:
            sentence += Markup(" at {:.0f} % of the greatest goodput").format(share * 100)
    return sentence


def _together(setup: Setup, rows: list[Row]) -> Markup:
    """All contenders were on the path at once."""
    known = [(row.share.middle, row) for row in rows if row.share is not None]
    parts = []
    if known:
        most, least = max(known, key=lambda p: p[0]), min(known, key=lambda p: p[0])
        parts.append(
            Markup("On one path at once, {} gets {} of the goodput and {} {}").format(
                _bold([most[1].contender.title]),
                quantity.percent(most[0]),
                _bold([least[1].contender.title]),
                quantity.percent(least[0]),
            )
        )
    fairness = _fairness(setup, rows)
    return Markup("; ").join([*parts, *([fairness] if fairness else [])]) + "."


def _alone(setup: Setup, row: Row) -> Markup:
    """One contender, however many flows."""
    who = _bold([row.contender.title])
    goodput = quantity.rate(row.goodput_bps.middle if row.goodput_bps else None)
    subject = Markup("{} flows of {} carry {} together") if row.flows > 1 else Markup("{1} carries {2}")
    sentence = subject.format(row.flows, who, goodput)
    if row.rtt_p50_ms is not None:
        sentence += Markup(" at a median RTT of {}").format(quantity.milliseconds(row.rtt_p50_ms.middle))
    fairness = _fairness(setup, [row])
    return sentence + (Markup("; ") + fairness if fairness else Markup("")) + "."


def _fairness(setup: Setup, rows: list[Row]) -> Markup | None:
    flows = len(setup.scenario.get("flows") or [])
    jain = next((row.jain for row in rows if row.jain is not None), None)
    if jain is None or flows < 2:
        return None
    return Markup(
        "Jain’s index is {:.2f} over {} flows (1 is an equal split, {:.2f} is one taking all)"
    ).format(jain.middle, flows, 1 / flows)


def cautions(rows: list[Row]) -> list[Markup]:
    """Senders that something else than their window held back: receive window, send buffer, application."""
    notes = []
    for reason, name in (
        ("rwnd", "the receive window"),
        ("sndbuf", "the send buffer"),
        ("app", "the application"),
    ):
        held = [(row.contender.title, row.limits.get(reason, 0.0)) for row in rows]
        held = [(title, share) for title, share in held if share > LIMITED_SHARE_MAX]
        if held:
            least, most = min(share for _, share in held), max(share for _, share in held)
            span = f"{least * 100:.0f}" + (
                f" to {most * 100:.0f}" if round(most, 2) > round(least, 2) else ""
            )
            notes.append(
                Markup("{} {} held back by {} for {} % of the time: that is not congestion control.").format(
                    _bold([title for title, _ in held]), "was" if len(held) == 1 else "were", name, span
                )
            )
    crowd = max((row.flows for row in rows), default=0)
    if crowd > FLOWS_DRAWN_MAX:
        notes.append(
            Markup("Curves and distributions are those of {} of its {} flows, evenly spaced.").format(
                len(drawn(range(crowd))), crowd
            )
        )
    return notes


def _bold(titles: list[str]) -> Markup:
    return Markup(quantity.listing([f"<strong>{escape(title)}</strong>" for title in titles]))  # noqa: S704 - escaped


def _plain(titles: list[str]) -> str:
    return quantity.listing(titles)


def _everybody(titles: list[str]) -> Markup:
    return _bold(titles) if len(titles) <= 2 else Markup("<strong>All {}</strong>").format(len(titles))
