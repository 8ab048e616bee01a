"""Comparison across set-ups: a contender's figures in each set-up, with differences seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragstrip.display import quantity
from dragstrip.display.quantity import RATES, TIMES_MS, Unit, median, unit_for
from dragstrip.display.table import Cell, Table
from dragstrip.report.figure import Axis, Bar, Bars, Figure
from dragstrip.report.load import middle_of
from dragstrip.results.comparison.setups import Bout, Contender, Setup
from dragstrip.results.comparison.stats import goodput_bps, retransmit_rate, rtt_ms

# Bars that can be read; more setups are a sweep's business.
SETUPS_MAX = 6
LETTERS = "ABCDEF"
DIFFERENCES = "Differences between runs with one seed: the median and, in small type, the range."


@dataclass(frozen=True)
class SetupMeasure:
    """A figure of a contender in one run, and how it is written."""

    name: str
    title: str
    figure: Callable[[Bout], float | None]
    text: Callable[[float | None], str]
    units: tuple[Unit, ...]


PER_CENT = Unit(0.01, "%")
MEASURES = (
    SetupMeasure("goodput", "Goodput", lambda bout: goodput_bps(bout.results), quantity.rate, RATES),
    SetupMeasure(
        "rtt", "Median RTT", lambda bout: rtt_ms(bout, "p50"), quantity.milliseconds, (TIMES_MS[1],)
    ),
    SetupMeasure("retransmitted", "Retransmitted", retransmit_rate, quantity.percent, (PER_CENT,)),
)


def figures(setups: Sequence[Setup]) -> list[Figure]:
    """Return one figure per measure, with a bar per contender and set-up.

    Empty unless there are two to six set-ups and a TCP contender takes part in more than one.
    """
    shared = _shared(setups)
    bar_charts = []
    for measure in MEASURES if shared else ():
        labelled_values = []
        for name in shared:
            for letter, setup in zip(LETTERS, setups, strict=False):
                contender = contender_of(setup, name)
                values = values_of(contender, measure)
                if contender and values:
                    labelled_values.append((f"{name} · {letter}", contender.colour, list(values.values())))
        if not labelled_values:
            continue
        unit = unit_for(max(max(values) for _, _, values in labelled_values), measure.units)
        rates = measure.units is RATES
        text = quantity.rates(max(max(values) for _, _, values in labelled_values)) if rates else measure.text
        bars = [
            Bar(
                label,
                colour,
                unit.scale(middle_of(values)),
                unit.scale(min(values)),
                unit.scale(max(values)),
                text(middle_of(values)),
            )
            for label, colour, values in labelled_values
        ]
        top = max(bar.greatest for bar in bars) * 1.3 or 1.0
        listed = quantity.listing([f"{bar.label} {bar.text}" for bar in bars])
        content = Bars(Axis(f"{measure.title} ({unit.name})", 0, top, unit.name), bars, ranged=True)
        words = f"{measure.title} in each setup: {listed}."
        bar_charts.append(Figure(f"across-{measure.name}", f"{measure.title} by setup", words, content))
    return bar_charts


def table(setups: Sequence[Setup]) -> Table | None:
    """Return medians in every set-up, with differences from the first seed by seed, or None as `figures`.

    Two set-ups stand in columns, with a row per contender and measure; more stand in rows.
    """
    shared = _shared(setups)
    if not shared:
        return None
    return _in_columns(setups, shared) if len(setups) == 2 else _in_rows(setups, shared)


def _in_columns(setups: Sequence[Setup], shared: Sequence[str]) -> Table:
    heads = [("Algorithm", ""), ("Measure", "")]
    heads += [(letter, setup.title) for letter, setup in zip(LETTERS, setups, strict=False)]
    heads.append(("B − A", "Median difference of the same seeds"))
    rows, algorithms = [], []
    for name in shared:
        first, measured = _measured(setups, name)
        for measure, text, values in measured:
            first_measure = measure is measured[0][0]
            name_cell = (
                Cell(name, colour=first.colour, number=False) if first_measure else Cell("", number=False)
            )
            middles = [Cell(text(median(by_seed.values()))) for by_seed in values]
            apart = _difference(values[0], values[1], measure)
            rows.append([name_cell, Cell(measure.title, number=False), *middles, apart])
            algorithms.append(first.cc)
    caption = f"A: {setups[0].short}; B: {setups[1].short}. {DIFFERENCES}"
    return Table(heads, rows, caption, algorithms, frozenset(["Algorithm", "Measure", "A", "B − A"]))


def _in_rows(setups: Sequence[Setup], shared: Sequence[str]) -> Table:
    heads = [("Algorithm", ""), ("Setup", "")]
    for measure in MEASURES:
        heads += [(measure.title, ""), (f"{measure.title} − A", "Median difference of the same seeds")]
    rows, algorithms = [], []
    for name in shared:
        first, measured = _measured(setups, name)
        by_measure = {measure.name: (text, values) for measure, text, values in measured}
        for at, setup in enumerate(setups):
            name_cell = Cell("", number=False) if at else Cell(name, colour=first.colour, number=False)
            cells = [name_cell, Cell(f"{LETTERS[at]}: {setup.short}", number=False)]
            for measure in MEASURES:
                text, values = by_measure.get(measure.name, (measure.text, [{}] * len(setups)))
                cells += [
                    Cell(text(median(values[at].values()))),
                    _difference(values[0], values[at], measure) if at else Cell(""),
                ]
            rows.append(cells)
            algorithms.append(first.cc)
    deciding = frozenset(["Algorithm", "Setup", *(measure.title for measure in MEASURES[:2])])
    return Table(heads, rows, DIFFERENCES, algorithms, deciding)


Measured: TypeAlias = tuple[SetupMeasure, Callable[[float | None], str], list[dict[object, float]]]


def _measured(setups: Sequence[Setup], name: str) -> tuple[Contender, list[Measured]]:
    """Return that contender, and each measure of it with its words and its values in every set-up."""
    contenders = [contender_of(setup, name) for setup in setups]
    measured: list[Measured] = []
    for measure in MEASURES:
        values = [values_of(contender, measure) for contender in contenders]
        if any(values):
            most = max(max(by_seed.values(), default=0.0) for by_seed in values)
            text = quantity.rates(most) if measure.units is RATES else measure.text
            measured.append((measure, text, values))
    return next(contender for contender in contenders if contender is not None), measured


def _shared(setups: Sequence[Setup]) -> list[str]:
    """Return the titles of TCP contenders in two or more set-ups, if there are two to six set-ups."""
    if not 2 <= len(setups) <= SETUPS_MAX:
        return []
    names = [contender.title for setup in setups for contender in setup.contenders if contender.is_tcp]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def contender_of(setup: Setup, name: str) -> Contender | None:
    """Return the contender of that title, if the set-up has it."""
    return next((contender for contender in setup.contenders if contender.title == name), None)


def values_of(contender: Contender | None, measure: SetupMeasure) -> dict[object, float]:
    """Return a contender's values of a measure by seed."""
    by_seed: dict[object, float] = {}
    for bout in contender.bouts if contender else []:
        value = measure.figure(bout)
        if value is not None:
            by_seed[bout.run.scenario.get("seed")] = value
    return by_seed


def _difference(first: dict[object, float], second: dict[object, float], measure: SetupMeasure) -> Cell:
    apart = [second[seed] - first[seed] for seed in first if seed in second]
    if not apart:
        return Cell(quantity.MISSING)

    def signed(value: float) -> str:
        return measure.text(0.0) if value == 0 else f"{'+' if value > 0 else '−'}{measure.text(abs(value))}"

    spread = f"{signed(min(apart))} to {signed(max(apart))}" if len(apart) > 1 else ""
    return Cell(signed(middle_of(apart)), spread)
