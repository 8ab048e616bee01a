"""The result of a validation on a terminal, the worst cases first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from dragstrip.display.quantity import digits
from dragstrip.display.terminal import Terminal
from dragstrip.studies.validation.explain import HEADINGS, Divergence
from dragstrip.studies.validation.figures import FigurePair
from dragstrip.studies.validation.kernel import KernelRun
from dragstrip.studies.validation.targets import BY_KEY, QUANTITIES, Quantity
from dragstrip.studies.validation.validate import DETERMINISTIC, STOCHASTIC, Agreement, Case

UNKNOWN = "–"
SIDES = {
    "goodput": " (Mbit/s)",
    "rtt": " (ms)",
    "ping": " (ms)",
    "period": " (s)",
    "share": " (first flow, %)",
}
"""Units of the two sides, where they are not the error's."""


WIDEST = 10_000
"""Width that no table exceeds."""
CASES_LISTED = 12
"""Cases that are printed one by one, at most; more are printed as one table."""


def show(agreement: Agreement, most: int | None = None) -> None:
    """Print the cases, at most `most` of them, then the standings."""
    console = Terminal()
    if len(agreement.cases) <= CASES_LISTED and any(case.floor for case in agreement.cases):
        for case in agreement.cases:
            console.print(_case(case))
    else:
        console.print(_fitting(agreement, most, console))
    for stochastic in (False, True):
        table = _standings(agreement, stochastic)
        if table:
            console.print(table)
    for case in agreement.limited:
        console.print(
            f"counted separately: {case.name}: the kernel's processor was idle for "
            f"{case.idle_share * 100:.0f} % only"
        )
    for name, reason in agreement.failed.items():
        console.print(f"not run: {name}: {reason}", style="red")


def show_lines(lines: Iterable[str]) -> None:
    """Print lines as they are."""
    console = Terminal(highlight=False)
    for line in lines:
        console.print(line, markup=False)


def show_left_out(runs: Sequence[KernelRun], held_out: bool, missing: Mapping[str, tuple[int, int]]) -> None:
    """Print the number of cases left out: the other part of the grid, and those not recorded yet."""
    console = Terminal(highlight=False)
    other_cases = len({run.case for run in runs})
    if other_cases and not held_out:
        console.print(f"{other_cases} more cases are held out: --held-out compares them.", style="dim")
    if missing:
        console.print(
            f"{len(missing)} described cases are not recorded yet, or not all of their seeds.", style="dim"
        )


def _case(case: Case) -> Table:
    """Return a table of one case: both sides, their difference, and the kernel's from itself."""
    table = Table(title=case.name, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("quantity", no_wrap=True)
    for heading in ("kernel", "simulator", "error", "limit", "kernel against itself"):
        table.add_column(heading, justify="right")
    for figure in case.figures:
        quantity = BY_KEY[figure.quantity]
        scale = 1e-6 if figure.quantity == "goodput" else 1.0
        sides = (
            UNKNOWN if side is None else digits(side * scale) for side in (figure.kernel, figure.simulator)
        )
        unit = f" {quantity.unit}" if quantity.unit else ""
        floor = case.floor_error(figure.quantity)
        table.add_row(
            f"{quantity.title}{SIDES.get(figure.quantity, '')}",
            *sides,
            Text(f"{digits(figure.error)}{unit}", style="" if figure.reached else "red"),
            UNKNOWN if figure.limit is None else f"{digits(figure.limit)}{unit}",
            UNKNOWN if floor is None else f"{digits(floor)}{unit}",
        )
    return table


def _fitting(agreement: Agreement, most: int | None, console: Terminal) -> Table:
    """Return a table with as many quantities as fit the terminal, those with a limit first."""
    quantities = [q for q in QUANTITIES if any(case.figure(q.key) for case in agreement.cases)]
    wide = console.options.update(max_width=WIDEST)
    columns = sorted(quantities, key=lambda quantity: not quantity.judged)
    while True:
        left_out = [quantity for quantity in quantities if quantity not in columns]
        table = _cases(
            agreement, most, [quantity for quantity in quantities if quantity in columns], left_out
        )
        if len(columns) == 1 or table.__rich_measure__(console, wide).maximum <= console.width:
            return table
        columns.pop()


def _cases(
    agreement: Agreement, most: int | None, quantities: list[Quantity], left_out: list[Quantity]
) -> Table:
    cases = agreement.cases[:most]
    more = f" ({len(cases)} of {len(agreement.cases)})" if len(cases) < len(agreement.cases) else ""
    table = Table(
        title=f"errors, worst first{more}; red: beyond its limit", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column("case", no_wrap=True)
    for quantity in quantities:
        table.add_column(_heading(quantity), justify="right", no_wrap=True)
    for case in cases:
        table.add_row(case.name, *(_cell(case, quantity) for quantity in quantities))
    notes = (
        ["in brackets: the kernel against itself, with another seed"] if any(c.floor for c in cases) else []
    )
    if left_out:
        titles = ", ".join(quantity.title for quantity in left_out)
        notes.append(f"in a wider terminal, with --out and with --json also: {titles}")
    table.caption = "\n".join(notes) or None
    return table


def _heading(quantity: Quantity) -> str:
    words = {"rtt": "RTT flow\n%", "ping": "RTT ping\n%", "rtt_ks": "KS\nflow", "ping_ks": "KS\nping"}
    titles = {
        "reductions": "reductions\nkern/sim",
        "retransmits": "retransmitted\nkern/sim",
        "share": "share\npoints",
        "rtt_w1": "RTT W1\n%",
        "window": "window\n%",
        "period": "epoch\n%",
    }
    return {**words, **titles}.get(quantity.key, f"{quantity.title}\n{quantity.unit}")


def _cell(case: Case, quantity: Quantity) -> Text:
    figure = case.figure(quantity.key)
    if figure is None:
        return Text(UNKNOWN, style="dim")
    text = Text(cell(figure), style="" if figure.reached else "red")
    floor = case.floor_error(quantity.key)
    return text if floor is None else text.append(f" ({floor_cell(figure, floor)})", style="dim")


def floor_cell(figure: FigurePair, error: float) -> str:
    """Return the kernel's difference from itself as a table shows it: a number of events, or an error."""
    return f"{error:.3g}" if figure.quantity in ("reductions", "retransmits") else f"{error:.2f}"


def cell(figure: FigurePair) -> str:
    """Return an error as a table shows it, with its sign if it has one."""
    k, s = figure.kernel, figure.simulator
    if figure.quantity in ("reductions", "retransmits") and k is not None and s is not None:
        return f"{k:.4g}/{s:.4g}"
    if figure.quantity.endswith("_ks"):
        return f"{figure.error:.2f}"
    sign = "-" if k is not None and s is not None and s < k else "+"
    return f"{sign}{figure.error:.2f}"


def _standings(agreement: Agreement, stochastic: bool) -> Table | None:
    total = list(agreement.standings(stochastic))
    if not total:
        return None
    groups = {
        name: {row.quantity.key: row for row in agreement.standings(stochastic, name)}
        for name in agreement.algorithms
    }
    groups = {name: rows for name, rows in groups.items() if rows}
    table = Table(
        title=STOCHASTIC if stochastic else DETERMINISTIC, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for heading in ("quantity", "wanted", "within", "median", "worst", *groups):
        words = heading in ("quantity", "wanted")
        table.add_column(heading, justify="left" if words else "right", no_wrap=heading != "wanted")
    for row in total:
        style = "green" if row.reached else "red"
        parts = [rows.get(row.quantity.key) for rows in groups.values()]
        table.add_row(
            row.quantity.title,
            row.target,
            Text(f"{row.cases_within}/{row.cases}", style=style) if row.quantity.judged else Text(UNKNOWN),
            digits(row.median),
            digits(row.worst),
            *(
                Text(f"{part.cases_within}/{part.cases}", style="" if part.reached else "red")
                if part and row.quantity.judged
                else Text(UNKNOWN)
                for part in parts
            ),
        )
    return table


def show_divergence(name: str, divergence: Divergence | None) -> None:
    """Print the point at which a case diverges from its recording, and the samples around it."""
    console = Terminal(highlight=False)
    if divergence is None:
        console.print(f"{name}: no event differs, and the windows stay together.")
        return
    console.print(f"{name}, flow {divergence.flow}: {divergence.words}")
    table = Table(*HEADINGS, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row in divergence.table:
        table.add_row(*row)
    console.print(table)
