"""What a person sees in the terminal: tables on standard output, progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dragstrip.engines.pool import Outcome, Watcher
from dragstrip.expand import Run
from dragstrip.experiment import Experiment

UNKNOWN = "–"


@contextmanager
def watching(runs: Sequence[Run], quiet: bool = False) -> Iterator[Watcher]:
    """A progress bar on a terminal, a line per finished run elsewhere, nothing if quiet."""
    if quiet:
        yield Watcher()
    elif sys.stderr.isatty():
        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with progress:
            yield _Bar(runs, progress)
    else:
        yield _Lines(runs)


class _Bar(Watcher):
    """One bar over simulated seconds of all runs."""

    def __init__(self, runs: Sequence[Run], progress: Progress) -> None:
        self.runs = runs
        self.progress = progress
        self.reached = [0.0] * len(runs)
        total = sum(run.scenario["duration_ns"] for run in runs) / 1e9
        self.bar = progress.add_task("simulated seconds", total=round(total))

    def advanced(self, index: int, now_ns: int) -> None:
        self._reach(index, now_ns / 1e9)

    def finished(self, index: int, outcome: Outcome) -> None:
        self._reach(index, self.runs[index].scenario["duration_ns"] / 1e9)
        if outcome.summary is None:
            self.progress.console.print(f"{self.runs[index].name}: {outcome.failure}", markup=False)

    def _reach(self, index: int, seconds: float) -> None:
        self.reached[index] = seconds
        self.progress.update(self.bar, completed=round(sum(self.reached)))


class _Lines(Watcher):
    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.done = 0

    def finished(self, index: int, outcome: Outcome) -> None:
        self.done += 1
        ending = "done" if outcome.summary is not None else outcome.failure
        print(f"[{self.done}/{len(self.runs)}] {self.runs[index].name}: {ending}", file=sys.stderr)  # noqa: T201


def show_result(document: dict[str, Any], runs: Sequence[Run]) -> None:
    """The runs, medians over repeats, and the claims."""
    console = Console()
    console.print(_runs_table(document, runs))
    if document["claims"]:
        console.print(_claims_table(document["claims"]))
    for failure in document["failed"]:
        console.print(f"failed: {failure['scenario']}: {failure['reason']}", markup=False)


def _runs_table(document: dict[str, Any], runs: Sequence[Run]) -> Table:
    repeats = 1 + max((run.repeat for run in runs), default=0)
    note = f", medians of {repeats} repeats" if repeats > 1 else ""
    table = Table(title=f"{document['experiment']}{note}")
    for heading in ("run", "flows"):
        table.add_column(heading, justify="right" if heading == "flows" else "left")
    for heading in ("goodput\nMbit/s", "share\n%", "RTT ms\nmedian", "RTT ms\n95 %"):
        table.add_column(heading, justify="right")
    for heading in ("ping ms\nmedian", "again\nsent", "queue kB\nmedian", "Jain"):
        table.add_column(heading, justify="right")
    for (name, cc), group in _groups(document, runs).items():
        table.add_row(name if name == cc or not name else f"{name} · {cc}", *_cells(group))
    return table


def _groups(document: dict[str, Any], runs: Sequence[Run]) -> dict[tuple[str, str], list[Any]]:
    """(name without the repeat's number, algorithm) → [(run, its flows of that algorithm)]."""
    plain = {f"runs/{run.slug}": run.name.rsplit(" #", 1)[0] for run in runs}
    groups: dict[tuple[str, str], list[Any]] = {}
    for line in document["runs"]:
        algorithms = list(dict.fromkeys(flow["cc"] for flow in line["flows"]))
        name = plain[line["recording"]]
        name = "" if name == "+".join(algorithms) else name
        for cc in algorithms:
            flows = [flow for flow in line["flows"] if flow["cc"] == cc]
            groups.setdefault((name, cc), []).append((line, flows))
    return groups


def _cells(group: list[Any]) -> list[str]:
    lines = [line for line, _ in group]
    flows = [flow for _, own in group for flow in own]
    pings = [line["probes"][0]["rtt_ms"]["p50"] for line in lines if line["probes"]]
    queues = [line["queues"][0]["backlog_bytes"]["p50"] for line in lines if line["queues"]]
    return [
        str(max(len(own) for _, own in group)),
        _middle([sum(flow["goodput_bps"] for flow in own) for _, own in group], 1e-6, 3),
        _middle([sum(flow["share"] or 0.0 for flow in own) for _, own in group], 100, 1),
        _middle([flow["rtt_ms"]["p50"] for flow in flows], 1, 1),
        _middle([flow["rtt_ms"]["p95"] for flow in flows], 1, 1),
        _middle(pings, 1, 1),
        _middle([sum(flow["retransmits"] for flow in own) for _, own in group], 1, 0),
        _middle(queues, 1e-3, 1),
        _middle([line["jain"] for line in lines], 1, 3),
    ]


def _middle(values: Sequence[float | None], factor: float, digits: int) -> str:
    there = [value for value in values if value is not None]
    return f"{median(there) * factor:.{digits}f}" if there else UNKNOWN


def _claims_table(claims: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="claims")
    for heading in ("claim", "published", "measured", "unit", "grade"):
        table.add_column(heading)
    colours = {"reproduced": "green", "contradicted": "red"}
    for claim in claims:
        colour = colours.get(claim["grade"], "yellow")
        table.add_row(
            claim["id"],
            _figure(claim["published"]),
            _figure(claim["measured"]),
            claim["unit"],
            f"[{colour}]{claim['grade']}[/]",
        )
    return table


def _figure(value: Any) -> str:
    match value:
        case None:
            return UNKNOWN
        case [float() | int(), float() | int()]:
            return f"{value[0]:g} to {value[1]:g}"
        case list():
            return " < ".join(value)
        case float():
            return f"{value:.4g}"
        case _:
            return str(value)


def show_plan(experiment: Experiment, runs: Sequence[Run]) -> None:
    """What an experiment would run, and its claims."""
    console = Console(highlight=False)
    scenario = runs[0].scenario
    console.print(f"{experiment.name}: {experiment.title}", style="bold", markup=False)
    for text in (experiment.source, experiment.description.strip()):
        if text:
            console.print(text, markup=False)
    console.print(f"{len(runs)} runs of {scenario['duration_ns'] / 1e9:g} s, seeds from {experiment.seed}:")
    console.print("  " + ", ".join(dict.fromkeys(run.name.rsplit(" #", 1)[0] for run in runs)), markup=False)
    links = Table("link", "rate", "delay ms", "queue", title="path of the first run")
    for link in scenario["links"]:
        rate = link["rate_bps"] or link["qdisc"].get("rate_bps")
        queue = link["qdisc"].get("leaf", link["qdisc"])
        words = " ".join(f"{value}" if key == "kind" else f"{key} {value}" for key, value in queue.items())
        shown_rate = f"{rate / 1e6:g} Mbit/s" if rate else "unlimited"
        links.add_row(link["name"], shown_rate, f"{link['delay_ns'] / 1e6:g}", words)
    console.print(links)
    for claim in experiment.claims:
        published = claim.value if claim.value is not None else claim.range or claim.order
        listed = list(published) if isinstance(published, tuple) else published
        slack = "" if claim.tolerance is None else f" ± {claim.tolerance}"
        where = ", ".join(f"{key} = {value}" for key, value in claim.where.items())
        console.print(f"claim {claim.id}: {claim.metric}{f' of {where}' if where else ''}", markup=False)
        console.print(f"    {_figure(listed)}{slack} {claim.unit}; {claim.source}", markup=False)
        if claim.not_testable:
            console.print(f"    not testable here: {claim.not_testable}", markup=False)
