"""docs/reference/fidelity.md: targets reached and missed, with causes, written from the runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragstrip.io.files import write_text
from dragstrip.model.scenario import algorithms, disciplines
from dragstrip.studies.validation.acks import Comparison
from dragstrip.studies.validation.cells import LONGER_MS
from dragstrip.studies.validation.console import cell, floor_cell
from dragstrip.studies.validation.figures import FigurePair, figures
from dragstrip.studies.validation.grid import Grid
from dragstrip.studies.validation.targets import BY_KEY, QUANTITIES, Quantity, Standing
from dragstrip.studies.validation.validate import (
    COMPETING,
    DETERMINISTIC,
    FEWER,
    IDLE_SHARE_MIN,
    LONGER_NS,
    SEEDS,
    STOCHASTIC,
    Agreement,
    Case,
)

HEAD = """\
<!-- Written by `make fidelity`: do not edit. -->
# How far the simulator is from Linux

Every case below was recorded with {kernel},
with its own TCP, congestion controls and queue disciplines, and runs again in the simulator from the same
description. No parameter was fitted to a case: if the two differ, either a mechanism is missing or
microseconds decide the case; the list below gives the likely cause.

    make fidelity                       this page, from the stored recordings (some minutes)
    dragstrip validate --out agreement  the same as a table, heat maps and overlaid traces
    dragstrip validate explain CASE     the first event at which the two diverge

{cases} cases ({files} recordings), and {held} more ({held_files} recordings) that are held out.
[Recordings of a real kernel](../../validation/README.md) describes the format of a recording and how its path
is translated. Published experiments, which run on both engines, are compared by the same figures:
[bu-cs655-2022](agreement-bu-cs655-2022.md), [geni-tcp](agreement-geni-tcp.md).
[Known gaps](../explanation/known-gaps.md#found-by-both-engines-side-by-side) lists the targets missed there.
"""


COLUMNS_MAX = 8
"""Columns of algorithms, at most; more algorithms get a table of their own with a line each."""


FIFO = "drop-tail"
"""Name of the row for FIFOs in the tables by discipline."""


@dataclass(frozen=True)
class Page:
    """Source data of the page."""

    agreement: Agreement
    """The agreement of the open part."""
    held_out: Agreement
    """The agreement of the held-out third."""
    nominal: Agreement
    """The agreement of the open part on the path as configured."""
    grid: Grid
    missing: Mapping[str, tuple[int, int]]
    """Numbers of recordings present and wanted, by case, for described cases that are incomplete."""
    captured: list[tuple[str, Comparison]]


def write(page: Page, file: Path) -> None:
    """Write the page."""
    agreement, held_out = page.agreement, page.held_out
    lines = [
        HEAD.format(
            kernel=page.grid.kernel,
            cases=len(agreement.cases),
            files=sum(len(case.seeds) for case in agreement.cases),
            held=len(held_out.cases),
            held_files=sum(len(case.seeds) for case in held_out.cases),
        ),
        *_held_out(page),
        *standings(agreement, held_out),
        *_disciplines(agreement, held_out),
        *_random(agreement),
        *_limited(agreement, held_out),
        *_missing(page.missing),
        *definitions(),
        *_acks(page.captured),
        *_floor(agreement, page.grid),
        *_nominal(page.nominal),
        *_missed(agreement, page.grid),
        *every_case(agreement),
    ]
    write_text(file, "\n".join(lines) + "\n")


def _held_out(page: Page) -> Iterator[str]:
    yield (
        "The open cases may have influenced the model. A third of the wider grid is held out: cases "
        "whose name's SHA-256 begins with a byte divisible by three. They are recorded like the others, "
        "are not listed here, and count in separate columns (`dragstrip validate --held-out`).\n"
    )
    for part, agreement in (("open", page.agreement), ("held out", page.held_out)):
        if agreement.failed:
            failures = ", ".join(f"{name}: {why}" for name, why in agreement.failed.items())
            yield f"Not run ({part}): {failures}\n"


def _limited(agreement: Agreement, held_out: Agreement) -> Iterator[str]:
    cases = agreement.limited
    if not cases and not held_out.limited:
        return
    yield "## Where the kernel's processor limits\n"
    yield (
        f"The emulator's one processor was idle for less than {IDLE_SHARE_MIN * 100:.0f} % of the time in "
        f"{len(cases)} open and {len(held_out.limited)} held-out cases. They show that "
        "machine as much as the path, and are in no count above.\n"
    )
    yield "| case | idle | goodput % | median RTT, ping % | retransmissions | figures within |"
    yield "|---|---|---|---|---|---|"
    for case in cases:
        judged = [figure for figure in case.figures if figure.limit is not None]
        summary_figures = (case.figure(key) for key in ("goodput", "ping", "retransmits"))
        entries = [cell(figure) if figure else "–" for figure in summary_figures]
        within_limit = f"{sum(figure.reached for figure in judged)} of {len(judged)}"
        yield f"| {case.name} | {case.idle_share:.2f} | {' | '.join(entries)} | {within_limit} |"
    yield ""


def _missing(missing: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    if not missing:
        return
    yield "## Described and not yet recorded\n"
    yield (
        f"{len(missing)} cases of the wider grid have not all their recordings and are in no count above; "
        "`dragstrip validate record FOLDER --described` goes on with them:\n"
    )
    for name, (have, seeds) in missing.items():
        yield f"- {name}: {have} of {seeds}"
    yield ""


def standings(agreement: Agreement, held_out: Agreement | None = None) -> Iterator[str]:
    """Yield the tables of standings; with a held-out part, that part and the whole have columns beside it."""
    whole = Agreement([*agreement.cases, *held_out.cases], {}) if held_out else agreement
    for stochastic in (False, True):
        rows = list(agreement.standings(stochastic))
        if not rows:
            continue
        names = [name for name in agreement.algorithms if list(agreement.standings(stochastic, name))]
        yield f"## {(STOCHASTIC if stochastic else DETERMINISTIC).capitalize()}\n"
        if stochastic:
            yield f"Means over {_seeds(agreement)}.\n"
        apart = len(names) > COLUMNS_MAX
        columns = [] if apart else names
        extra_parts = [] if held_out is None else [("held out", held_out), ("whole", whole)]
        more = "".join(f" {title} | median | worst | |" for title, _ in extra_parts)
        algorithm_heads = "".join(f"{name} | " for name in columns)
        yield f"| quantity | target | within | median error | worst | {algorithm_heads}|{more}"
        yield "|---|---|---|---|---|" + "---|" * (len(columns) + 1 + 4 * len(extra_parts))
        rest = [
            {part.quantity.key: part for part in subset.standings(stochastic)} for _, subset in extra_parts
        ]
        parts = {
            name: {part.quantity.key: part for part in agreement.standings(stochastic, name)}
            for name in names
        }
        for row in rows:
            unit = f" {row.quantity.unit}" if row.quantity.unit else ""
            algorithm_cells = "".join(f"{_part(parts[name], row.quantity)} | " for name in columns)
            extra_cells = "".join(_extra_columns(part.get(row.quantity.key)) for part in rest)
            yield (
                f"| {row.quantity.title} | {row.target} | {row.count_text} "
                f"| {row.median:.2g}{unit} "
                f"| {row.worst:.3g}{unit} | {algorithm_cells}{_verdict(row)} |{extra_cells}"
            )
        yield ""
        if apart:
            judged = [row.quantity for row in rows if row.quantity.judged]
            yield "Within the limit, by algorithm:\n"
            yield f"| | {' | '.join(quantity.title for quantity in judged)} |"
            yield "|---|" + "---|" * len(judged)
            for name in names:
                yield f"| {name} | {' | '.join(_part(parts[name], quantity) for quantity in judged)} |"
            yield ""


def _disciplines(agreement: Agreement, held_out: Agreement) -> Iterator[str]:
    """Yield the standings behind each discipline, without random loss; all FIFOs share a row."""
    yield "## By queue discipline\n"
    yield (
        "Cases without random loss behind a discipline that decides who is dropped or marked, and all FIFOs "
        "beside them. In brackets: of the cases that are held out.\n"
    )
    sides = [_by_discipline(subset) for subset in (agreement, held_out)]
    judged = [quantity for quantity in QUANTITIES if quantity.judged]
    yield f"| | {' | '.join(quantity.title for quantity in judged)} |"
    yield "|---|" + "---|" * len(judged)
    for name in sorted(set(sides[0]) | set(sides[1]), key=lambda name: (name == FIFO, name)):
        parts = [side.get(name, {}) for side in sides]
        entries = [" ".join(_open_and_held_out(parts, quantity)) for quantity in judged]
        yield f"| {name} | {' | '.join(entries)} |"
    yield ""


def _open_and_held_out(parts: Sequence[Mapping[str, Standing]], quantity: Quantity) -> Iterator[str]:
    yield _part(parts[0], quantity)
    if quantity.key in parts[1]:
        yield f"({_part(parts[1], quantity)})"


def _by_discipline(agreement: Agreement) -> dict[str, dict[str, Standing]]:
    groups: dict[str, list[Case]] = {}
    for case in agreement.cases:
        name = case.conditions.discipline if case.conditions.managed else FIFO
        groups.setdefault(name, []).append(case)
    return {
        name: {row.quantity.key: row for row in Agreement(cases, {}).standings(stochastic=False)}
        for name, cases in groups.items()
    }


def _part(of_algorithm: Mapping[str, Standing], quantity: Quantity) -> str:
    """Return the number of an algorithm's cases within the limit."""
    part = of_algorithm.get(quantity.key)
    return f"{part.cases_within}/{part.cases}" if part and quantity.judged else "–"


def _verdict(row: Standing) -> str:
    if not row.quantity.judged:
        return ""
    return "reached" if row.reached else "**not reached**"


def _extra_columns(row: Standing | None) -> str:
    if row is None:
        return " – | – | – | |"
    return f" {row.count_text} | {row.median:.2g} | {row.worst:.3g} | {_verdict(row)} |"


def _seeds(agreement: Agreement) -> str:
    """Return the number of seeds of both sides, where impairments are random."""
    cases = [case for case in agreement.cases if case.stochastic]
    sides = {"the kernel": [len(c.seeds) for c in cases], "the simulator": [len(c.simulator) for c in cases]}
    return " and ".join(f"{_span(counts)} seeds of {side}" for side, counts in sides.items())


def _span(counts: Iterable[int]) -> str:
    """Return a range such as `3 to 100`, or `3` if all counts are the same."""
    counts = list(counts)
    return " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))


def _random(agreement: Agreement) -> Iterator[str]:
    """Yield the number of kernel runs of cases that are random without netem."""
    plain = [case for case in agreement.cases if not case.stochastic]
    competing = [case for case in plain if case.group == COMPETING]
    names = algorithms.random_in_linux()
    drawing = {f"of {name.upper()} alone": [c for c in plain if c.group == name] for name in names}
    behind = [c for c in plain if disciplines.is_probabilistic(c.conditions.discipline)]
    queues = [kind for kind in disciplines.rows() if any(c.conditions.discipline == kind for c in behind)]
    drawing[f"behind {', '.join(queues)}"] = behind
    drawing["where they compete"] = [case for case in competing if case.conditions.random]
    kernel = [f"{_runs(cases)} {condition}" for condition, cases in drawing.items() if cases]
    if kernel:
        yield (
            f"{', '.join(map(str.upper, names))} draw random numbers of their own, and so do the "
            f"disciplines {', '.join(queues)}: the simulator's figures for them are means over at "
            f"least {len(SEEDS)} runs here too ({len(FEWER)} in the wider grid and on the path as "
            f"configured), the kernel's over {', '.join(kernel)}.\n"
        )
    without = [case for case in competing if not case.conditions.random]
    if without:
        yield (
            "Where two flows compete and nothing is random, microseconds decide which of them loses the "
            "packet at a full queue, so that a single run is arbitrary as well: these figures are means over "
            f"{_runs(without)} paths, each {round(LONGER_MS * 1000)} µs longer than the one before, the same "
            "for the kernel and the simulator.\n"
        )


def _runs(cases: Iterable[Case]) -> str:
    return _span(len(case.seeds) for case in cases)


def definitions() -> Iterator[str]:
    """Yield the definition of each quantity."""
    yield "What is measured, the same on both sides:\n"
    for quantity in QUANTITIES:
        yield f"- **{quantity.title}**: {quantity.meaning}"
    yield ""


def _acks(captured: list[tuple[str, Comparison]]) -> Iterator[str]:
    if not captured:
        return
    yield "## ACK for ACK\n"
    yield (
        "Packet captures of the same kernel hold every ACK that reached the sender. By "
        "how many segments each of them advances, in the simulator:\n"
    )
    yield "| case | ACKs compared | |"
    yield "|---|---|---|"
    for name, comparison in captured:
        verdict = "all the same" if comparison.first is None else f"the same up to ACK {comparison.first}"
        yield f"| {name} | {comparison.acks} ({comparison.until_s:g} s) | {verdict} |"
    yield ""


def _floor(agreement: Agreement, grid: Grid) -> Iterator[str]:
    yield "## The floor\n"
    yield "No model can be nearer to a recording than the kernel is to itself:\n"
    yield "| the kernel against itself | differs by |"
    yield "|---|---|"
    for floor in grid.floor:
        yield f"| {floor.what} | {floor.value} |"
    for quantity, errors in _between_seeds(agreement).items():
        unit = f" {quantity.unit}" if quantity.unit else ""
        span = f"{min(errors):.2g} to {max(errors):.2g}{unit}"
        yield f"| random loss, one seed against the mean of the others, {quantity.title} | {span} |"
    yield ""
    yield (
        f"And the simulator against itself, with another seed and a path {LONGER_NS / 1e3:g} µs longer; "
        "where this is as large as the error, the case turns on microseconds:\n"
    )
    yield "| quantity | median | 95 % of cases below | cases beyond the limit |"
    yield "|---|---|---|---|"
    for quantity in QUANTITIES:
        spread_figures = sorted(
            (figure for case in agreement.cases for figure in case.spread if figure.quantity == quantity.key),
            key=lambda figure: figure.error,
        )
        if spread_figures:
            middle = spread_figures[len(spread_figures) // 2]
            high = spread_figures[min(len(spread_figures) - 1, round(0.95 * len(spread_figures)))]
            beyond = (
                f"{sum(not figure.reached for figure in spread_figures)} of {len(spread_figures)}"
                if quantity.judged
                else "–"
            )
            unit = f" {quantity.unit}" if quantity.unit else ""
            yield f"| {quantity.title} | {middle.error:.2g}{unit} | {high.error:.2g}{unit} | {beyond} |"
    yield ""


def _between_seeds(agreement: Agreement) -> dict[Quantity, list[float]]:
    """Return each recorded seed's errors against the others of its case, where impairments are random."""
    errors: dict[Quantity, list[float]] = {}
    for case in agreement.cases:
        for number, time_line in enumerate(case.kernel):
            remaining = case.kernel[:number] + case.kernel[number + 1 :]
            if case.stochastic and remaining:
                for figure in figures(case.conditions, remaining, [time_line]):
                    errors.setdefault(BY_KEY[figure.quantity], []).append(figure.error)
    return errors


def _nominal(nominal: Agreement) -> Iterator[str]:
    yield "## On the path as configured\n"
    yield (
        "The recordings show two things of the machine that made them which no description says: what "
        "starts at 0 starts 6 ms late, and the hosts' own work adds 50 to 70 µs to a round trip. Above, both "
        "are taken from each recording's pings. Without them (`dragstrip validate --nominal`):\n"
    )
    yield "| quantity | " + " | ".join((DETERMINISTIC, STOCHASTIC)) + " |"
    yield "|---|---|---|"
    sides = [{row.quantity.key: row for row in nominal.standings(side)} for side in (False, True)]
    for quantity in (quantity for quantity in QUANTITIES if quantity.judged):
        rows = [side.get(quantity.key) for side in sides]
        if any(rows):
            counts = [f"{row.count_text} within" if row else "–" for row in rows]
            yield f"| {quantity.title} | {' | '.join(counts)} |"
    yield ""


def _missed(agreement: Agreement, grid: Grid) -> Iterator[str]:
    cases = [case for case in agreement.cases if not case.limited]
    missed = [(case, figure) for case in cases for figure in case.figures if not figure.reached]
    yield "## Known disagreements\n"
    total = sum(figure.limit is not None for case in cases for figure in case.figures)
    yield f"{len(missed)} of {total} figures lie beyond their limit.\n"
    by_cause: dict[str, list[tuple[Case, FigurePair]]] = {}
    for case, figure in missed:
        by_cause.setdefault(grid.cause(case.name, figure.quantity), []).append((case, figure))
    for cause, entries in sorted(by_cause.items(), key=lambda entry: (not entry[0], -len(entry[1]))):
        yield f"**{cause or 'Cause unknown.'}**\n"
        yield "| case | quantity | error | limit | the simulator against itself |"
        yield "|---|---|---|---|---|"
        for case, figure in entries:
            yield (
                f"| {case.name} | {BY_KEY[figure.quantity].title} | {_error(figure)} "
                f"| {_number(figure.limit or 0)} | {_spread(case, figure)} |"
            )
        yield ""


def _error(figure: FigurePair) -> str:
    if figure.kernel is None or figure.simulator is None:
        return _number(figure.error)
    sides = f"kernel {_value(figure, figure.kernel)}, simulator {_value(figure, figure.simulator)}"
    return f"{_number(figure.error)} ({sides})"


def _value(figure: FigurePair, value: float) -> str:
    return f"{value / 1e6:.4g} Mbit/s" if figure.quantity == "goodput" else f"{value:.4g}"


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _spread(case: Case, figure: FigurePair) -> str:
    error = case.spread_error(figure.quantity)
    return "–" if error is None else _number(error)


def every_case(agreement: Agreement) -> Iterator[str]:
    """Yield the table of all figures, with the kernel's difference from itself where it is known."""
    quantities = [q for q in QUANTITIES if any(case.figure(q.key) for case in agreement.cases)]
    yield "## All cases, worst first\n"
    floor_note = " In brackets: the kernel against itself, with another seed."
    yield (
        "Bold: beyond its limit. Counts are kernel/simulator."
        f"{floor_note if any(case.floor for case in agreement.cases) else ''}\n"
    )
    yield f"| case | {' | '.join(q.title + (f' {q.unit}' if q.unit else '') for q in quantities)} |"
    yield "|---|" + "---|" * len(quantities)
    for case in agreement.cases:
        entries = []
        for quantity in quantities:
            figure = case.figure(quantity.key)
            text = cell(figure) if figure else "–"
            floor = case.floor_error(quantity.key)
            floor_text = f" ({floor_cell(figure, floor)})" if figure and floor is not None else ""
            entries.append((text if figure is None or figure.reached else f"**{text}**") + floor_text)
        yield f"| {case.name} | {' | '.join(entries)} |"
