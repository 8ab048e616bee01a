"""Results in the terminal: tables and sentences on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rich import box
from rich.table import Table
from rich.text import Text

from dragstrip.display import quantity
from dragstrip.display.terminal import Terminal
from dragstrip.engines.contract import alike
from dragstrip.experiment.expand import PlannedRun
from dragstrip.experiment.types import Experiment
from dragstrip.io.untrusted import printable
from dragstrip.model.scenario.paths import link_facts
from dragstrip.report import transfers as sized
from dragstrip.report import why
from dragstrip.report.cautions import rtt_interval_ns
from dragstrip.results.comparison import span, transfers, video
from dragstrip.results.comparison.path import qdisc, queue_text
from dragstrip.results.comparison.ranking import leading_sentence
from dragstrip.results.comparison.setups import Contender, Setup, UnmeasuredRun, setups_of
from dragstrip.results.comparison.stats import Row, Statistic, count_of, idle_of, rows_of, seconds_of
from dragstrip.results.comparison.verdict import reach
from dragstrip.results.measures import parts_text

UNKNOWN = "–"
REPEATS_TYPICAL = 5
"""Repeats that the terminal recommends where another seed may give other figures."""
SENTENCES_MAX = 4
"""Set-ups whose verdict is printed as a sentence where nothing sums them up, at most; the page has all."""


def show_result(
    document: dict[str, Any],
    runs: Sequence[PlannedRun],
    heading: str = "",
    folder: Path | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Print the runs, medians over repeats, and the claims; `heading` follows the experiment's name.

    `folder` is the output folder, for commands that name files in it. Unless `verbose`, the output of a race
    fits one screen: the columns that hold a figure, who is ahead, one sentence of why and what to do next.
    """
    console = Terminal()
    planned = {f"runs/{run.slug}": run for run in runs}
    lines = [(line, planned[line["recording"]]) for line in document["runs"]]
    setups = setups_of([UnmeasuredRun(line, run.facts, run.settings) for line, run in lines])
    entries = [(setup, rows_of(setup)) for setup in setups]
    table = _runs_table(document, entries, console.width, verbose)
    table.title = ", ".join(filter(None, (str(table.title), heading)))
    console.print(table)
    for sentence in _rtt_notes(entries):
        console.print(sentence)
    if verbose or sum(map(_workload_rows, setups)) <= WORKLOAD_ROWS_MAX:
        show_videos(console, setups)
        show_videos(console, setups, "live videos", video.LIVE)
        show_transfers(console, setups)
    if verbose:
        show_reasons(console, setups, folder)
        for sentence in (*_answers(entries), *_hosts(runs)):
            console.print(sentence)
    else:
        reasons = _by_delay(_labelled_reasons(setups), entries)
        next_step = _next_step(reasons, setups, folder or Path())
        for sentence in (*_ranks(entries), *_first_reason(reasons), next_step):
            console.print(sentence)
    if document["claims"]:
        console.print(_claims_table(document["claims"]))
        if (ablations := _ablations_table(document["claims"])) is not None:
            console.print(ablations)
    for failure in document["failed"]:
        console.print(f"failed: {failure['scenario']}: {failure['reason']}")


def _rtt_notes(entries: span.Entries) -> Iterator[str]:
    """Yield a sentence for each interval at which RTTs were recorded in place of every sample."""
    intervals = {rtt_interval_ns(setup, rows) for setup, rows in entries}
    for interval_ns in sorted(filter(None, intervals)):
        yield f"RTTs are of one sample each {quantity.duration_ns(interval_ns)} (--no-rtts)."


def _hosts(runs: Sequence[PlannedRun]) -> Iterator[str]:
    """Yield one sentence on the hosts of a race, where all its runs have the same."""
    kinds = {_burst_treatment(run.scenario) for run in runs}
    if len(kinds) == 1 and (treatment := kinds.pop()):
        yield f"Hosts: {treatment} (docs/how-to/hosts.md); --hosts all races on the other kinds too."


def _burst_treatment(scenario: Mapping[str, Any]) -> str:
    """Return what becomes of TCP's bursts at all hosts of a scenario; empty where the hosts differ."""
    treatments = set()
    for host in (node for node in scenario["nodes"] if node["kind"] == "host"):
        words = [_BURSTS[host["gso"]]]
        if any(link["from"] == host["name"] and link["qdisc"]["kind"] == "fq" for link in scenario["links"]):
            words.append("fq paces every connection")
        if interrupts := host.get("interrupts"):
            merged = ", with GRO" if interrupts["gro"] else ""
            words.append(f"an interrupt at most every {quantity.duration_ns(interrupts['gap_ns'])}{merged}")
        treatments.add("; ".join(words))
    return treatments.pop() if len(treatments) == 1 else ""


_BURSTS = {
    "off": "TCP sends one segment at a time",
    "auto": "TCP's bursts leave as single frames",
    "whole": "TCP's bursts stay whole to the receiver, as in containers and Mininet",
}
"""By mode of GSO: what happens to bursts."""


WORKLOAD_ROWS_MAX = 4
"""Rows on videos and transfers that are printed below the runs, at most; --verbose prints all."""


def _workload_rows(setup: Setup) -> int:
    return sum(
        len(transfers.classes(contender)) + video.plays(contender) + video.plays(contender, "rtp")
        for contender in setup.contenders
    )


def _ranks(entries: span.Entries) -> list[str]:
    """Return who is ahead and by how much, in a sentence for each of a few set-ups, or one for many."""
    if summed := span.sentences(entries):
        return [summed[0].striptags()]
    if len(entries) > 1:
        return list(_answers(entries))[:2]
    return [
        leading_sentence(setup, list(rows), brief=True).striptags()
        for setup, rows in entries
        if len(rows) > 1
    ]


LabelledReasons: TypeAlias = list[tuple[str, why.Reason]]
"""Explanations, each after the words that say where it holds."""


def _labelled_reasons(setups: Sequence[Setup], most: int | None = None) -> LabelledReasons:
    """Return the explanations of each set-up, `most` of each, or of many set-ups those that most share."""
    if len(setups) >= span.SETUPS_MIN:
        return [(f"{group.where}: ", group.reason) for group in why.common(setups)]
    return [
        (f"{setup.short}: " if len(setups) > 1 else "", reason)
        for setup in setups
        for reason in why.reasons(setup)[:most]
    ]


def _by_delay(reasons: LabelledReasons, entries: span.Entries) -> LabelledReasons:
    """Return explanations, the contender with the largest median RTT first; many set-ups keep their order."""
    if len(entries) >= span.SETUPS_MIN:
        return reasons
    delays = {
        row.contender.key: row.rtt_p50_ms.middle for _, rows in entries for row in rows if row.rtt_p50_ms
    }
    return sorted(
        reasons, key=lambda entry: -delays.get(entry[1].contender.key, 0) if entry[1].contender else 0
    )


def _in_words(where: str, reason: why.Reason) -> str:
    """Return the first sentence of an explanation, with where it holds and in how many repeats."""
    return f"{where}{reason.sentences[0]}" + (f" ({reason.repeats})." if reason.repeats else ".")


def _without(reason: why.Reason, folder: Path) -> str:
    """Return the sentence on the run without the cause, with its command; empty if there is no such run."""
    if not reason.without:
        return ""
    again = f"dragstrip run {folder / reason.without['experiment']}"
    return why.counterfactual(reason.without, again, reason.runs)


def _first_reason(reasons: LabelledReasons) -> list[str]:
    """Return one sentence of why, or none where nothing is explained."""
    return [f"Why: {_in_words(where, reason)}" for where, reason in reasons[:1]]


def _next_step(reasons: LabelledReasons, setups: Sequence[Setup], folder: Path) -> str:
    """Return one sentence of what to do next: run without the cause, run more seeds, or read on."""
    for _, reason in reasons:
        if reason.without and reason.without["confirms"]:
            return f"Next: {_without(reason, folder)}."
    if any(reach(setup) for setup in setups):
        repeats = f"--repeat {REPEATS_TYPICAL} shows what differs by chance"
        return f"Next: {repeats}; --verbose prints every limit and reason."
    return "Next: --verbose prints what limited each flow and every reason; the report draws them."


def _answers(entries: span.Entries) -> Iterator[str]:
    """Yield who is ahead: a sentence for each set-up that compares something; many set-ups are summed up."""
    if summed := span.sentences(entries):
        yield from (sentence.striptags() for sentence in summed)
        return
    compared = [(setup, rows) for setup, rows in entries if len(setup.contenders) > 1]
    for place, (setup, rows) in enumerate(compared if len(compared) <= SENTENCES_MAX else []):
        sentence = leading_sentence(setup, list(rows), brief=place > 0).striptags()
        yield f"{setup.short}: {sentence}" if len(entries) > 1 else sentence


def show_videos(
    console: Terminal,
    setups: Sequence[Setup],
    title: str = "videos",
    columns: Sequence[video.VideoColumn] = video.SEEN,
) -> None:
    """Print the figures of videos, a row per contender that has some."""
    rows = [
        (setup, contender)
        for setup in setups
        for contender in setup.contenders
        if video.plays(contender, columns[0].entry)
    ]
    if not rows:
        return
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("run", min_width=7, overflow="fold")
    for metric in columns:
        table.add_column(metric.head.lower(), justify="right", no_wrap=True)
    for setup, contender in rows:
        table.add_row(
            _row_name(setups, setup, contender), *(metric.text(metric.of(contender)) for metric in columns)
        )
    console.print(table)


def show_transfers(console: Terminal, setups: Sequence[Setup]) -> None:
    """Print times and slowdowns of transfers, a row per contender and class of size."""
    rows = [
        (setup, contender, size_class)
        for setup in setups
        for contender in setup.contenders
        for size_class in transfers.classes(contender)
    ]
    if not rows:
        return
    table = Table(title="transfers", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("run", min_width=7, overflow="fold")
    for head, _ in sized.HEADS:
        table.add_column(head.lower(), justify="right", no_wrap=True)
    for setup, contender, size_class in rows:
        table.add_row(_row_name(setups, setup, contender), *sized.words(size_class))
    console.print(table)


REASONS_MAX = 12
"""Rows whose reasons are printed, at most; the page has all."""


WIDE = 60
"""Columns of a terminal that is wide enough for the time by state."""


def show_reasons(console: Terminal, setups: Sequence[Setup], folder: Path | None = None) -> None:
    """Print what limited the flows, and a sentence per run (for repeats, what most of them show).

    After it comes what a run without the cause shows, with the command that repeats that run.
    """
    rows = [(setup, contender) for setup in setups for contender in setup.contenders]
    listed_rows = rows[:REASONS_MAX]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("run", min_width=7, overflow="fold")
    wide = console.width >= WIDE
    for heading in ("limited by", "state") if wide else ("limited by",):
        table.add_column(heading, overflow="fold")
    for heading in ("reduc-\ntions", "time-\nouts", "link\nidle"):
        table.add_column(heading, justify="right", no_wrap=True)
    for setup, contender in listed_rows:
        limited, states = seconds_of(contender, "limited_s"), seconds_of(contender, "state_s")
        if not limited:
            continue
        counts = [quantity.count(count_of(contender, field)) for field in ("reductions", "timeouts")]
        idle = quantity.percent(idle_of(setup, contender))
        name = _row_name(setups, setup, contender)
        time_cells = [parts_text(part, "\n", 3) for part in ((limited, states) if wide else (limited,))]
        table.add_row(name, *time_cells, *counts, idle)
    if table.row_count:
        console.print(table)
    for sentence in _explanations(setups, folder or Path()):
        console.print(sentence)
    if len(rows) > len(listed_rows):
        console.print(
            f"(explanations for the first {len(listed_rows)} of {len(rows)} rows; the report has them all)"
        )


def _explanations(setups: Sequence[Setup], folder: Path) -> Iterator[str]:
    """Yield the first sentence of every explanation, or of many set-ups those that hold in most of them."""
    for where, reason in _labelled_reasons(setups, REASONS_MAX):
        yield _in_words(where, reason)
        if reason.without:
            yield _without(reason, folder)


@dataclass(frozen=True)
class _TerminalColumn:
    """A column of the table of runs: its heading, and the figure in each row."""

    heading: str
    figure: Callable[[Row], Statistic | None]
    factor: float = 1
    digits: int = 1
    together: bool = False
    """True for a column that is shown only if flows share a path."""

    def cell(self, row: Row) -> str:
        figure = self.figure(row)
        return UNKNOWN if figure is None else f"{figure.middle * self.factor:.{self.digits}f}"

    def informs(self, rows: Sequence[Row]) -> bool:
        """Report whether a row has a figure here; the share of flows that are alone is none."""
        figures = [figure for row in rows if (figure := self.figure(row)) is not None]
        alone = self.heading.startswith("share") and all(figure.middle == 1 for figure in figures)
        return bool(figures) and not alone


_COLUMNS = (
    _TerminalColumn("goodput\nMbit/s", lambda row: row.goodput_bps, 1e-6, 3),
    _TerminalColumn("share\n%", lambda row: row.share, 100, together=True),
    _TerminalColumn("RTT ms\nmedian", lambda row: row.rtt_p50_ms),
    _TerminalColumn("RTT ms\n95 %", lambda row: row.rtt_p95_ms),
    _TerminalColumn("ping ms\nmedian", lambda row: row.ping_p50_ms),
    _TerminalColumn("retrans-\nmitted", lambda row: row.retransmits, digits=0),
    _TerminalColumn("queue\nkB", lambda row: row.queue_p50_bytes, 1e-3),
    _TerminalColumn("Jain", lambda row: row.jain, digits=3, together=True),
)


_DECIDING = ("goodput", "RTT ms", "share", "retrans-", "ping ms", "queue", "Jain")
"""Columns by the first line of their headings, in order of importance; a narrow terminal drops the last
first."""
USUAL = 80
NAME_MIN, NARROW_NAME_MIN = 7, 12
"""Characters of a run's name on one line, at least: on a usual terminal, and on a narrower one, where columns
are dropped instead."""


def _runs_table(document: dict[str, Any], entries: span.Entries, width: int, verbose: bool) -> Table:
    setups = [setup for setup, _ in entries]
    rows = [row for _, members in entries for row in members]
    table = Table(title=_title(document, setups), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shared = any(setup.shared for setup in setups)
    several = any(row.flows > 1 for row in rows)
    columns = [
        column
        for column in _COLUMNS
        if (shared or not column.together) and (verbose or column.informs(rows) or column in _COLUMNS[:1])
    ]
    names = [_row_name(setups, setup, row.contender) for setup, members in entries for row in members]
    least = NAME_MIN if width >= USUAL else NARROW_NAME_MIN
    room = width - 1 - min(max(map(len, names), default=0), least) - 7 * several
    columns, left_out = _fitting(columns, rows, room)
    if left_out:
        table.caption = f"a wider terminal also shows: {', '.join(left_out)}"
    table.add_column("run", min_width=NAME_MIN, overflow="fold")
    if several:
        table.add_column("flows", justify="right", no_wrap=True)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for name, row in zip(names, rows, strict=True):
        flows = [str(row.flows)] if several else []
        table.add_row(name, *flows, *(column.cell(row) for column in columns))
    return table


def _fitting(
    columns: list[_TerminalColumn], rows: Sequence[Row], room: int
) -> tuple[list[_TerminalColumn], list[str]]:
    """Return the columns that fit into `room`, the most important first, and the headings of the others."""
    fitting = set()
    for column in sorted(columns, key=lambda column: _DECIDING.index(column.heading.split("\n")[0])):
        lines = [*column.heading.split("\n"), *(column.cell(row) for row in rows)]
        room -= max(map(len, lines)) + 2
        if room < 0:
            break
        fitting.add(column)
    left_out = [
        column.heading.replace("-\n", "").replace("\n", " ") for column in columns if column not in fitting
    ]
    return [column for column in columns if column in fitting], left_out


def _title(document: dict[str, Any], setups: Sequence[Setup]) -> str:
    repeats = max((setup.repeats for setup in setups), default=1)
    if repeats < 2:
        return str(document["experiment"])
    if not any(setup.draws for setup in setups):
        return f"{document['experiment']}, {repeats} repeats, all the same: nothing draws random numbers"
    return f"{document['experiment']}, medians of {repeats} repeats"


def _engine_words(setups: Sequence[Setup], setup: Setup) -> str:
    """Return the engine's name as a suffix if there are several engines."""
    engines = {run.engine for compared_setup in setups for run in compared_setup.runs}
    return f" · {setup.runs[0].engine}" if len(engines) > 1 else ""


def _row_name(setups: Sequence[Setup], setup: Setup, contender: Contender) -> str:
    """Return the contender's title, after the run's name (without its repeat) if that adds something."""
    engine = _engine_words(setups, setup)
    run, name = contender.bouts[0].run, _run_name(contender)
    if (
        len(
            {
                _run_name(compared_contender)
                for compared_setup in setups
                for compared_contender in compared_setup.contenders
            }
        )
        == 1
    ):
        return contender.title + engine
    if alike(name) == alike(contender.title) or name.startswith(tuple(contender.title + c for c in ":*@+")):
        return name + engine  # bbr*4@80ms says its algorithm; a kernel spells my-exp my_exp
    algorithms = list(dict.fromkeys(str(flow["cc"]) for flow in run.flows))
    distinct_name = name not in ("+".join(algorithms), algorithms[0], contender.title)
    return (f"{name} · {contender.title}" if distinct_name else contender.title) + engine


def _run_name(contender: Contender) -> str:
    return contender.bouts[0].run.name.rsplit(" #", 1)[0]


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
    """Return a table of the settings, each with the claims whose grades it changes, or None."""
    moved: dict[str, list[Text]] = {}
    for claim in claims:
        for ablation in claim.get("ablations", []):
            setting = ", ".join(f"{path} = {value}" for path, value in ablation["setting"].items())
            changed = moved.setdefault(setting, [])
            if ablation["grade"] != claim["grade"]:
                figure = _with_unit(ablation["measured"], claim["unit"])
                grade = grade_text(ablation["grade"])
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


def _with_unit(value: Any, unit: str, slack: str = "") -> str:
    return _figure(value) + slack + ("" if value is None or unit in ("1", "order") else f" {unit}")


def grade_text(grade: str) -> Text:
    """Return a grade in its colour."""
    colours = {"reproduced": "green", "contradicted": "red"}
    return Text(printable(grade), colours.get(grade, "yellow"))


def _figure(value: Any) -> str:
    match value:
        case None:
            return UNKNOWN
        case [float() | int(), float() | int()]:
            return f"{quantity.digits(value[0])} to {quantity.digits(value[1])}"
        case list():
            return " < ".join(value)
        case float():
            return quantity.digits(value)
        case _:
            return str(value)


def show_plan(experiment: Experiment, runs: Sequence[PlannedRun], ablation_runs: int) -> None:
    """Print what an experiment would run, and its claims; `ablation_runs` counts the runs beside `runs`."""
    console = Terminal(highlight=False)
    scenario = runs[0].scenario
    console.print(": ".join(filter(None, (experiment.name, experiment.title))), style="bold")
    for text in (experiment.source, experiment.description.strip()):
        if text:
            console.print(text)
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    beside = f", and {ablation_runs} of ablations" if ablation_runs else ""
    console.print(f"{count} of {scenario['duration_ns'] / 1e9:g} s, seeds from {experiment.seed}{beside}:")
    console.print("  " + ", ".join(dict.fromkeys(run.name.rsplit(" #", 1)[0] for run in runs)))
    links = Table("link", "rate", "delay ms", "queue", title="path of the first run")
    for link, facts in zip(scenario["links"], link_facts(scenario), strict=True):
        rate = facts["rate_bps"]
        shown_rate = f"{rate / 1e6:g} Mbit/s" if rate else link["medium"] or "unlimited"
        links.add_row(
            link["name"], shown_rate, f"{facts['delay_ns'] / 1e6:g}", queue_text(qdisc(link)) or "none"
        )
    console.print(links)
    for claim in experiment.claims:
        published = claim.value if claim.value is not None else claim.range or claim.order
        listed = list(published) if isinstance(published, tuple) else published
        slack = "" if claim.tolerance is None else f" ± {claim.tolerance}"
        where = ", ".join(f"{key} = {value}" for key, value in claim.where.items())
        console.print(f"claim {claim.id}: {claim.metric}{f' of {where}' if where else ''}")
        unit = "order" if claim.order is not None else claim.unit
        console.print(f"    {_with_unit(listed, unit, slack)}; {claim.source}")
        if claim.not_testable:
            console.print(f"    not testable here: {claim.not_testable}")
