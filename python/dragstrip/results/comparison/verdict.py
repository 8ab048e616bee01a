"""The verdict: who wins on what, as a small table and as one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from dragstrip.display import quantity
from dragstrip.results.comparison.setups import Setup
from dragstrip.results.comparison.stats import Ranking, Row, Statistic, order_of
from dragstrip.results.intervals import REPEATS_MIN, TIE

# A share of segments; below it a difference is a handful of packets.
RETRANSMIT_TIE = 1e-4
# Fraction of the greatest goodput; below it, a contender keeps a queue empty by not using the path.
STARVED_BELOW = 0.1

Text = Callable[[float | None], str]
Figures = Sequence[tuple[Row, Statistic | None]]


@dataclass(frozen=True)
class QuantityVerdict:
    """The best and the worst contenders on one quantity; `worst` is empty if they do not differ."""

    quantity_name: str
    best: list[str]
    value: str
    worst: list[str]
    worst_value: str
    judged: bool = True
    """True when the order should hold for other seeds, as far as the repeats show; else it is of these runs
    alone."""
    note: str = ""
    """A caution about the best one: it sent hardly any data."""


def verdicts(setup: Setup, rows: list[Row]) -> list[QuantityVerdict]:
    """Return who is ahead on data moved, delay and retransmissions."""
    return [verdict for verdict in _all(setup, rows) if verdict is not None]


def _all(setup: Setup, rows: list[Row]) -> list[QuantityVerdict | None]:
    tcp = [row for row in rows if row.contender.is_tcp]
    judged = [highest_goodput(setup, rows)]
    if not setup.together:  # Who shares a queue, shares its delay.
        p95 = [(row, row.rtt_p95_ms) for row in tcp]
        judged += [
            lowest_delay(setup, rows),
            _lowest(setup, "Lowest 95th-percentile RTT", p95, rows),
        ]
    again = [(row, row.retransmit_rate) for row in tcp]
    return [*judged, _verdict(setup, "Lowest retransmission rate", again, quantity.percent)]


def highest_goodput(setup: Setup, rows: list[Row]) -> QuantityVerdict | None:
    """Return who has the highest goodput and who the lowest, or None if the rows are not to be compared."""
    figures = [(row, row.goodput_bps) for row in rows]
    return _verdict(setup, "Highest goodput", figures, quantity.rate, most=True)


def lowest_delay(setup: Setup, rows: list[Row]) -> QuantityVerdict | None:
    """Return who has the lowest median RTT and who the highest, or None if rows are not to be compared."""
    figures = [(row, row.rtt_p50_ms) for row in rows if row.contender.is_tcp]
    return _lowest(setup, "Lowest median RTT", figures, rows)


def _lowest(setup: Setup, quantity_name: str, figures: Figures, rows: list[Row]) -> QuantityVerdict | None:
    """Return the verdict on a delay.

    If one of the best hardly sent, a note says so and names the best of the rest.
    """
    verdict = _verdict(setup, quantity_name, figures, quantity.milliseconds)
    parts = _parts_of_greatest(rows)
    idle = [title for title in verdict.best if parts.get(title, 1.0) < STARVED_BELOW] if verdict else []
    if verdict is None or not verdict.worst or not idle:
        return verdict
    notes = [f"{title} gets only {quantity.percent(parts[title])} of the highest goodput" for title in idle]
    rivals = [
        (figure.middle, row.contender.title)
        for row, figure in figures
        if figure is not None and parts.get(row.contender.title, 1.0) >= STARVED_BELOW
    ]
    if rivals:
        least, title = min(rivals)
        notes.append(f"of the others, {title} has the lowest ({quantity.milliseconds(least)})")
    return replace(verdict, note="; ".join(notes))


def _parts_of_greatest(rows: list[Row]) -> dict[str, float]:
    """Return each contender's goodput as a fraction of the greatest; 0 for one without data."""
    goodputs = {row.contender.title: row.goodput_bps.middle if row.goodput_bps else 0.0 for row in rows}
    most = max(goodputs.values(), default=0.0)
    return {title: goodput / most for title, goodput in goodputs.items()} if most > 0 else {}


def order(setup: Setup, figures: Figures, text: Text, *, most: bool) -> Ranking | None:
    """Return the order of rows, by index, with the tie that the quantity has.

    None if a run's contenders do not all compete: rows of other directions or links are not compared.
    """
    if setup.together and len({row.competitors for row, figure in figures if figure is not None}) > 1:
        return None
    values = [figure for _, figure in figures]
    if text is quantity.percent and not most:
        return order_of(setup, values, most=most, relative=False, tie=RETRANSMIT_TIE)
    return order_of(setup, values, most=most)


def _verdict(
    setup: Setup, quantity_name: str, figures: Figures, text: Text, *, most: bool = False
) -> QuantityVerdict | None:
    ranking = order(setup, figures, text, most=most)
    if ranking is None:
        return None
    title_figures = [(row.contender.title, figure.middle) for row, figure in figures if figure is not None]
    middles = [middle for _, middle in title_figures]
    ends = (max(middles), min(middles)) if most else (min(middles), max(middles))
    best, worst = (
        [figures[place][0].contender.title for place in places] for places in (ranking.best, ranking.worst)
    )
    return QuantityVerdict(
        quantity_name, best, text(ends[0]), worst, text(ends[1]) if worst else "", ranking.judged
    )


def reach(setup: Setup) -> str:
    """Return the scope of the figures, such as `In this run`.

    Empty if there are enough repeats, or if no seed changes anything.
    """
    if not setup.draws or setup.repeats >= REPEATS_MIN or len(setup.contenders) < 2:
        return ""
    return "In this run" if setup.repeats == 1 else f"In these {setup.repeats} runs"


def headline(setup: Setup, rows: list[Row], brief: bool = False) -> Markup:
    """Return one or two sentences, with the contenders in bold; if `brief`, without what a measure means."""
    if not rows:
        return Markup("Nothing was carried.")
    if setup.together:
        sentence = _together(rows, brief)
    elif len(rows) == 1:
        sentence = _alone(rows[0], brief)
    else:
        sentence = _apart(setup, rows)
    words = reach(setup)
    return Markup("{}: {}").format(words, sentence) if words else sentence


def _apart(setup: Setup, rows: list[Row]) -> Markup:
    """Return the sentence for contenders that each had the path to themselves."""
    sentences = []
    data = highest_goodput(setup, rows)
    if data is not None and not data.worst:
        tie_text = "{} in goodput ({})" if setup.draws else "{} have the same goodput ({})"
        tied = _no_difference(data.best) if setup.draws else _everybody(data.best)
        sentences.append(Markup(tie_text).format(tied, data.value))  # noqa: S704 - our own words
    elif data is not None:
        verb = "has" if len(data.best) == 1 else "have"
        sentences.append(
            Markup("{} {} the highest goodput ({}; {} the lowest, {})").format(
                _bold(data.best), verb, data.value, _plain(data.worst), data.worst_value
            )
        )
    delay = lowest_delay(setup, rows)
    if delay is not None and not delay.worst:
        sentences.append(Markup("the median RTT is the same ({})").format(delay.value))
    elif delay is not None:
        sentences.append(_delay_sentence(delay, rows))
    sentence = Markup("; ").join(sentences) + "."
    return sentence if reach(setup) or not sentence.startswith("no ") else Markup("N") + sentence[1:]


def _delay_sentence(delay: QuantityVerdict, rows: list[Row]) -> Markup:
    verb = "keeps" if len(delay.best) == 1 else "keep"
    sentence = Markup("{} {} the delay lowest (median RTT {} against {} with {})").format(
        _bold(delay.best), verb, delay.value, delay.worst_value, _plain(delay.worst)
    )
    share = _parts_of_greatest(rows).get(delay.best[0], 1.0)
    if delay.note:
        sentence += Markup(", but {}").format(delay.note)
    elif len(delay.best) == 1 and share < 1 - TIE:
        sentence += Markup(" at {:.0f} % of the highest goodput").format(share * 100)
    return sentence


def _together(rows: list[Row], brief: bool) -> Markup:
    """Return the sentence for contenders on one path at once.

    Shares and fairness of each set of competitors.
    """
    parts = []
    sets: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        sets.setdefault(row.competitors, []).append(row)
    for members in sets.values():
        shares = [(row.share.middle, row) for row in members if row.share is not None]
        if len(shares) > 1:
            most, least = max(shares, key=lambda p: p[0]), min(shares, key=lambda p: p[0])
            arrived = _arrived(members[0])
            equal_text = Markup("of the bytes that arrived{}, all {} got the same part ({})")
            parts.append(
                equal_text.format(arrived, len(shares), quantity.percent(most[0]))
                if most[0] == least[0]
                else Markup("of the bytes that arrived{}, {} got {} and {} {}").format(
                    arrived,
                    _bold([most[1].contender.title]),
                    quantity.percent(most[0]),
                    _bold([least[1].contender.title]),
                    quantity.percent(least[0]),
                )
            )
        elif members[0].competitors:
            parts += _without_rival_rows(members[0])
        fairness = _fairness(members[0], brief)
        parts += [fairness] if fairness else []
    sentence = Markup("; ").join(parts) + "."
    return Markup(sentence[:1].upper() + sentence[1:])  # noqa: S704 - escaped before


def _arrived(row: Row) -> str:
    """Return when the shares of its set are of: nothing where they are of the whole run."""
    if row.together_s is None:
        return ""
    begins, ends = (quantity.seconds(at) for at in row.together_s)
    return f" from {begins} to {ends}, while all of them lived"


def _without_rival_rows(row: Row) -> list[Markup]:
    """Return the sentence for a row that is alone in its set, or whose rivals' rows span several sets."""
    name = _bold([row.contender.title])
    if row.flows < len(row.competitors):
        if row.share is None:
            return []
        part = Markup("of the bytes that arrived in its direction{}, {} got {}")
        return [part.format(_arrived(row), name, quantity.percent(row.share.middle))]
    if row.goodput_bps is None:
        return []
    sentence = Markup("{} carries {} in its direction").format(name, quantity.rate(row.goodput_bps.middle))
    if row.rtt_p50_ms is not None:
        sentence += Markup(" at a median RTT of {}").format(quantity.milliseconds(row.rtt_p50_ms.middle))
    return [sentence]


def _alone(row: Row, brief: bool) -> Markup:
    """Return the sentence for a single contender, with any number of flows."""
    name = _bold([row.contender.title])
    goodput = quantity.rate(row.goodput_bps.middle if row.goodput_bps else None)
    subject = Markup("{} flows of {} carry {} together") if row.flows > 1 else Markup("{1} carries {2}")
    sentence = subject.format(row.flows, name, goodput)
    if row.rtt_p50_ms is not None:
        sentence += Markup(" at a median RTT of {}").format(quantity.milliseconds(row.rtt_p50_ms.middle))
    fairness = _fairness(row, brief)
    return sentence + (Markup("; ") + fairness if fairness else Markup("")) + "."


def _fairness(row: Row, brief: bool) -> Markup | None:
    if row.jain is None:
        return None
    flows = len(row.competitors)
    if brief:
        return Markup("Jain’s index is {:.2f}").format(row.jain.middle)
    if row.max_min:
        return Markup(
            "Jain’s index of the ratio to the max–min fair rates is {:.2f} over {} flows (1 is that share)"
        ).format(row.jain.middle, flows)
    return Markup(
        "Jain’s index is {:.2f} over {} flows (1 is an equal split, {:.2f} is one taking all)"
    ).format(row.jain.middle, flows, 1 / flows)


def _bold(titles: list[str]) -> Markup:
    return Markup(quantity.listing([f"<strong>{escape(title)}</strong>" for title in titles]))  # noqa: S704 - escaped


def _plain(titles: list[str]) -> str:
    return quantity.listing(titles)


def _no_difference(titles: list[str]) -> Markup:
    """Return words for a difference that the repeats do not support."""
    if len(titles) > 2:
        return Markup("no clear difference among all {}").format(len(titles))
    return Markup("no clear difference between {}").format(_bold(titles))


def _everybody(titles: list[str]) -> Markup:
    return _bold(titles) if len(titles) <= 2 else Markup("<strong>All {}</strong>").format(len(titles))
