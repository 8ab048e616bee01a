"""What a person sees in the terminal: tables on standard output, progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from dragstrip.expand import PlannedRun
from dragstrip.experiment import Experiment
from dragstrip.measures import parts_text
from dragstrip.outside import printable
from dragstrip.paths import link_facts
from dragstrip.pool import Outcome, Watcher
from dragstrip.spoken import Spoken, say
from dragstrip.terminal import Terminal

UNKNOWN = "–"


@contextmanager
def watching(runs: Sequence[PlannedRun], quiet: bool = False) -> Iterator[Watcher]:
    """A progress bar on a terminal, a line per finished run elsewhere, nothing if quiet."""
    if quiet:
        yield Watcher()
        return
    watcher = _Bar(runs) if sys.stderr.isatty() else _Lines(runs)
    try:
        yield watcher
    finally:
        watcher.close()


class _Lines(Watcher):
    """A line per finished run, and others while nothing else is said."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self.runs = runs
        self.several = len({run.engine for run in runs}) > 1
        self.done = 0
        self.reached = [0.0] * len(runs)
        self.total = sum(run.scenario["duration_ns"] for run in runs) / 1e9
        self.spoken = Spoken()
        self.spoken.doing(lambda: "checking what is to run ...")

    def preparing(self, what: str) -> None:
        say(what)

    def started(self, index: int) -> None:
        if not any(self.reached):
            self.spoken.doing(self._running)

    def _running(self) -> str:
        reached, runs = sum(self.reached), len(self.runs)
        return f"[{self.done}/{runs}] {reached:.3g} of {self.total:.3g} simulated seconds ..."

    def advanced(self, index: int, now_ns: int) -> None:
        self.reached[index] = now_ns / 1e9

    def finished(self, index: int, outcome: Outcome) -> None:
        self.done += 1
        self.reached[index] = self.runs[index].scenario["duration_ns"] / 1e9
        # Why it failed is said once, at the end.
        ending = "done" if outcome.summary is not None else "failed"
        run = self.runs[index]
        name = f"{run.name} ({run.engine})" if self.several else run.name
        self.tell(f"[{self.done}/{len(self.runs)}] {name}: {ending}", outcome)

    def tell(self, line: str, outcome: Outcome) -> None:
        say(line)

    def concluding(self, what: str) -> None:
        self.spoken.doing(lambda: f"{what} ...")

    def close(self) -> None:
        self.spoken.close()


class _Bar(_Lines):
    """One bar over simulated seconds of all runs; lines once it has gone."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        super().__init__(runs)
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Terminal(stderr=True),
            transient=True,
        )
        self.bar = self.progress.add_task("simulated seconds", total=round(self.total))
        self.progress.start()

    def preparing(self, what: str) -> None:
        self.progress.console.print(what, highlight=False)

    def started(self, index: int) -> None:
        self.spoken.doing(None)

    def advanced(self, index: int, now_ns: int) -> None:
        super().advanced(index, now_ns)
        self._show()

    def finished(self, index: int, outcome: Outcome) -> None:
        super().finished(index, outcome)
        self._show()

    def tell(self, line: str, outcome: Outcome) -> None:
        if outcome.summary is None:
            self.progress.console.print(line, highlight=False)

    def aside(self) -> None:
        self.progress.stop()

    def concluding(self, what: str) -> None:
        if self.progress.live.is_started:
            self.progress.update(self.bar, description=what)
        else:
            say(f"{what} ...")

    def close(self) -> None:
        super().close()
        self.progress.stop()

    def _show(self) -> None:
        self.progress.update(self.bar, completed=round(sum(self.reached)))


def show_result(document: dict[str, Any], runs: Sequence[PlannedRun]) -> None:
    """The runs, medians over repeats, and the claims."""
    console = Terminal()
    console.print(_runs_table(document, runs))
    show_reasons(console, document, runs)
    if document["claims"]:
        console.print(_claims_table(document["claims"]))
        if (ablations := _ablations_table(document["claims"])) is not None:
            console.print(ablations)
    for failure in document["failed"]:
        console.print(f"failed: {failure['scenario']}: {failure['reason']}")


REASONS_MAX = 12
"""Of more rows than this the terminal says why of the first ones only; the page has all."""


def show_reasons(console: Terminal, document: dict[str, Any], runs: Sequence[PlannedRun]) -> None:
    """What limited the flows, and a sentence per run (of repeats the first one's)."""
    groups = list(_groups(document, runs).items())
    shown = groups[:REASONS_MAX]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("run", min_width=7)
    for heading in ("limited by", "state"):
        table.add_column(heading, overflow="fold")
    for heading in ("reduc-\ntions", "time-\nouts", "link\nidle"):
        table.add_column(heading, justify="right", no_wrap=True)
    sentences: dict[str, str] = {}
    for (name, cc), group in shown:
        label = cc if name in ("", cc) else f"{name} · {cc}"
        limited, states = _spent(group, "limited_s"), _spent(group, "state_s")
        if not limited:
            continue
        counts = [_middle(_sums(group, field), 1, 0) for field in ("reductions", "timeouts")]
        table.add_row(label, parts_text(limited, "\n", 3), parts_text(states, "\n", 3), *counts, _idle(group))
        first = group[0][0]
        if first["why"]:
            sentences.setdefault(first["recording"], first["why"][0]["sentence"])
    if table.row_count:
        console.print(table)
    for sentence in sentences.values():
        console.print(f"{sentence}.")
    if len(groups) > len(shown):
        console.print(f"(why of the first {len(shown)} of {len(groups)} rows; the report has all)")


def _spent(group: Group, field: str) -> dict[str, float]:
    """Seconds by name, over all flows and repeats."""
    spent: dict[str, float] = {}
    for flow in (flow for _, own in group for flow in own):
        for name, seconds in flow[field].items():
            spent[name] = spent.get(name, 0.0) + seconds
    return spent


def _idle(group: Group) -> str:
    """The first queue's part of the run, which is the bottleneck's of `compare`."""
    runs = [(run["queues"][0]["idle_s"], run["duration_s"]) for run, _ in group if run["queues"]]
    known = [idle / duration for idle, duration in runs if idle is not None]
    return f"{100 * median(known):.0f} %" if known else UNKNOWN


@dataclass(frozen=True)
class _Column:
    """A column of the table of runs: its heading, and a figure from (run, its flows) pairs."""

    heading: str
    cell: Callable[[Group], str]
    together: bool = False
    """Says something only where flows share a path."""


Group = list[tuple[dict[str, Any], list[dict[str, Any]]]]
"""Repeats of one run, each with its flows of one algorithm."""

_COLUMNS = (
    _Column("flows", lambda group: str(max(len(own) for _, own in group)), together=True),
    _Column("goodput\nMbit/s", lambda group: _middle(_sums(group, "goodput_bps"), 1e-6, 3)),
    _Column("share\n%", lambda group: _middle(_sums(group, "share"), 100, 1), together=True),
    _Column("RTT ms\nmedian", lambda group: _middle(_rtts(group, "p50"), 1, 1)),
    _Column("RTT ms\n95 %", lambda group: _middle(_rtts(group, "p95"), 1, 1)),
    _Column("ping ms\nmedian", lambda group: _middle(_pings(group), 1, 1)),
    _Column("retrans-\nmitted", lambda group: _middle(_sums(group, "retransmits"), 1, 0)),
    _Column("queue\nkB", lambda group: _middle(_queues(group), 1e-3, 1)),
    _Column("Jain", lambda group: _middle([run["jain"] for run, _ in group], 1, 3), together=True),
)


def _sums(group: Group, figure: str) -> list[float | None]:
    return [sum(flow[figure] or 0.0 for flow in own) for _, own in group]


def _rtts(group: Group, percentile: str) -> list[float | None]:
    return [flow["rtt_ms"][percentile] for _, own in group for flow in own]


def _pings(group: Group) -> list[float | None]:
    return [run["probes"][0]["rtt_ms"]["p50"] for run, _ in group if run["probes"]]


def _queues(group: Group) -> list[float | None]:
    """The median of each run's fullest queue: a path may have one in each direction."""
    known = [[queue["backlog_bytes"]["p50"] for queue in run["queues"]] for run, _ in group]
    return [max((one for one in medians if one is not None), default=None) for medians in known if medians]


def _runs_table(document: dict[str, Any], runs: Sequence[PlannedRun]) -> Table:
    repeats = 1 + max((run.repeat for run in runs), default=0)
    note = f", medians of {repeats} repeats" if repeats > 1 else ""
    table = Table(title=f"{document['experiment']}{note}", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shared = any(len(run["flows"]) > 1 for run in document["runs"])
    columns = [column for column in _COLUMNS if shared or not column.together]
    table.add_column("run", min_width=7)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for (name, cc), group in _groups(document, runs).items():
        label = cc if name in ("", cc) else f"{name} · {cc}"
        table.add_row(label, *(column.cell(group) for column in columns))
    return table


def _groups(document: dict[str, Any], runs: Sequence[PlannedRun]) -> dict[tuple[str, str], Group]:
    """(name without the repeat's number, algorithm) → [(run, its flows of that algorithm)]."""
    plain = {f"runs/{run.slug}": run.name.rsplit(" #", 1)[0] for run in runs}
    several = len({run.engine for run in runs}) > 1
    groups: dict[tuple[str, str], Group] = {}
    for line in document["runs"]:
        algorithms = list(dict.fromkeys(flow["cc"] for flow in line["flows"]))
        name = plain[line["recording"]]
        name = "" if name in ("+".join(algorithms), algorithms[0]) else name
        engine = f" · {line['engine']}" if several else ""
        for cc in algorithms:
            flows = [flow for flow in line["flows"] if flow["cc"] == cc]
            groups.setdefault((name, cc + engine), []).append((line, flows))
    return groups


def _middle(values: Sequence[float | None], factor: float, digits: int) -> str:
    there = [value for value in values if value is not None]
    return f"{median(there) * factor:.{digits}f}" if there else UNKNOWN


def _claims_table(claims: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="claims", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("claim", "published", "measured", "grade"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("claim", "grade"))
    for claim in claims:
        same_order = claim["unit"] == "order" and claim["published"] == claim["measured"]
        measured = "the same" if same_order else _with_unit(claim["measured"], claim["unit"])
        published = _with_unit(claim["published"], claim["unit"])
        table.add_row(claim["id"], published, measured, grade_text(claim["grade"]))
    return table


def _ablations_table(claims: Sequence[dict[str, Any]]) -> Table | None:
    """A row per setting: the claims that it grades otherwise."""
    moved: dict[str, list[Text]] = {}
    for claim in claims:
        for other in claim.get("ablations", []):
            setting = ", ".join(f"{path} = {value}" for path, value in other["setting"].items())
            changed = moved.setdefault(setting, [])
            if other["grade"] != claim["grade"]:
                figure = _with_unit(other["measured"], claim["unit"])
                grade = grade_text(other["grade"])
                rest = "" if claim["unit"] == "order" else f" ({figure})"
                changed.append(Text.assemble(f"{printable(claim['id'])} ", grade, printable(rest)))
    if not moved:
        return None
    table = Table(title="ablations", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("with", overflow="fold", max_width=34)
    table.add_column("grades that change", overflow="fold")
    for setting, changed in moved.items():
        table.add_row(setting, Text("\n").join(changed) if changed else "none")
    return table


def _with_unit(value: Any, unit: str) -> str:
    return _figure(value) + ("" if value is None or unit in ("1", "order") else f" {unit}")


def grade_text(grade: str) -> Text:
    """A grade in its colour."""
    colours = {"reproduced": "green", "contradicted": "red"}
    return Text(printable(grade), colours.get(grade, "yellow"))


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


def show_plan(experiment: Experiment, runs: Sequence[PlannedRun]) -> None:
    """What an experiment would run, and its claims."""
    console = Terminal(highlight=False)
    scenario = runs[0].scenario
    console.print(f"{experiment.name}: {experiment.title}", style="bold")
    for text in (experiment.source, experiment.description.strip()):
        if text:
            console.print(text)
    console.print(f"{len(runs)} runs of {scenario['duration_ns'] / 1e9:g} s, seeds from {experiment.seed}:")
    console.print("  " + ", ".join(dict.fromkeys(run.name.rsplit(" #", 1)[0] for run in runs)))
    links = Table("link", "rate", "delay ms", "queue", title="path of the first run")
    for link, facts in zip(scenario["links"], link_facts(scenario), strict=True):
        rate = facts["rate_bps"]
        queue = link["qdisc"].get("leaf", link["qdisc"])
        words = " ".join(f"{value}" if key == "kind" else f"{key} {value}" for key, value in queue.items())
        shown_rate = f"{rate / 1e6:g} Mbit/s" if rate else link["medium"] or "unlimited"
        links.add_row(link["name"], shown_rate, f"{facts['delay_ns'] / 1e6:g}", words)
    console.print(links)
    for claim in experiment.claims:
        published = claim.value if claim.value is not None else claim.range or claim.order
        listed = list(published) if isinstance(published, tuple) else published
        slack = "" if claim.tolerance is None else f" ± {claim.tolerance}"
        where = ", ".join(f"{key} = {value}" for key, value in claim.where.items())
        console.print(f"claim {claim.id}: {claim.metric}{f' of {where}' if where else ''}")
        console.print(f"    {_figure(listed)}{slack} {claim.unit}; {claim.source}")
        if claim.not_testable:
            console.print(f"    not testable here: {claim.not_testable}")
