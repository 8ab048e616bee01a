"""Ranks contenders by what separates them from the one with the highest goodput, and by how much."""

from __future__ import annotations

from markupsafe import Markup

from dragstrip.display import quantity
from dragstrip.results.comparison.setups import Setup
from dragstrip.results.comparison.stats import Row
from dragstrip.results.comparison.verdict import headline, lowest_delay, order, reach
from dragstrip.results.intervals import TIE

CONTENDERS_MAX = 8
"""Largest number of contenders that fit one sentence."""


def leading_sentence(setup: Setup, rows: list[Row], brief: bool = False) -> Markup:
    """Return the sentence on a set-up that comes first: the ranking where there is one, else the verdict."""
    return ranking(setup, rows) or headline(setup, rows, brief)


def ranking(setup: Setup, rows: list[Row]) -> Markup | None:
    """Return one sentence that ranks contenders by goodput and delay.

    Such as `cubic: 9.5 Mbit/s at a median RTT of 128 ms; bbr: 18 % less, at 53 ms instead of 128 ms.` A
    goodput without a clear difference is `as much`. None for flows that share a path, a single contender, and
    more contenders than fit one sentence. A caution about a low delay without data ends it.
    """
    measured = [row for row in rows if row.contender.is_tcp and row.goodput_bps and row.rtt_p50_ms]
    if setup.together or len(measured) != len(rows) or not 2 <= len(rows) <= CONTENDERS_MAX:
        return None
    places = order(setup, [(row, row.goodput_bps) for row in rows], quantity.rate, most=True)
    if places is None:
        return None
    tied = set(places.best)
    ranked = sorted(range(len(rows)), key=lambda place: (place not in tied, -_goodput(rows[place])))
    first = rows[ranked[0]]
    parts = [
        Markup("<strong>{}</strong>: {} at a median RTT of {}").format(
            first.contender.title, quantity.rate(_goodput(first)), quantity.milliseconds(_rtt(first))
        )
    ]
    pair = len(rows) == 2
    for place in ranked[1:]:
        row = rows[place]
        goodput = "as much" if place in tied else _less(_goodput(row), _goodput(first))
        parts.append(
            Markup("<strong>{}</strong>: {}, at {}").format(
                row.contender.title, goodput, _delay(row, first, pair)
            )
        )
    delay = lowest_delay(setup, rows)
    if delay is not None and delay.note:
        parts.append(Markup("but {}").format(delay.note))
    sentence = Markup("; ").join(parts) + "."
    words = reach(setup)
    return Markup("{}: {}").format(words, sentence) if words else sentence


def _goodput(row: Row) -> float:
    return row.goodput_bps.middle if row.goodput_bps else 0.0


def _rtt(row: Row) -> float:
    return row.rtt_p50_ms.middle if row.rtt_p50_ms else 0.0


def _less(goodput: float, highest: float) -> str:
    return f"{quantity.percent(1 - goodput / highest)} less" if highest > 0 else "no data"


def _delay(row: Row, first: Row, pair: bool) -> str:
    """Return a median RTT; beside a single other contender with that one's."""
    rtt, reference = _rtt(row), _rtt(first)
    if abs(rtt - reference) <= TIE * max(rtt, reference):
        return "the same median RTT"
    instead = f" instead of {quantity.milliseconds(reference)}" if pair else ""
    return f"{quantity.milliseconds(rtt)}{instead}"
