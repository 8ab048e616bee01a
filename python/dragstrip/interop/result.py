"""The result of a race as an object: figures as attributes, tables, pictures."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.errors import BadInputError, nearest, note
from dragstrip.io.files import json_text

if TYPE_CHECKING:
    import pyarrow as pa

    from dragstrip.experiment.expand import PlannedRun
    from dragstrip.experiment.programs import Program
    from dragstrip.experiment.types import Experiment
    from dragstrip.model.recording import Recording
    from dragstrip.model.scenario.paths import ScenarioFacts
    from dragstrip.report.drawing import Drawing
    from dragstrip.report.load import Bundle
    from dragstrip.results.comparison.setups import Setup
    from dragstrip.results.comparison.stats import Row, Statistic
    from dragstrip.results.document import (
        ClaimResult,
        Explanation,
        FailureResult,
        FlowResult,
        ProbeResult,
        QueueResult,
        RunResult,
    )
    from dragstrip.studies.execution.memory import Execution

# What shows and compares results is loaded on first use: a loop over many races asks for figures alone.

FIGURES = "figures"
"""Name of the table with a row per flow."""
REPR_ALTERNATIVES = 4
"""Alternatives that `repr` of a result shows, at most."""


@dataclass(frozen=True)
class AlternativeResult:
    """One of the things compared, an algorithm or a group of flows.

    Its figures are medians over the repeats, None where nothing is measured.
    """

    name: str
    cc: str
    """The congestion control; `udp` for flows without one."""
    setup: str
    """Everything else about its runs, if the result has several set-ups; else empty."""
    repeats: int
    flows: tuple[FlowResult, ...]
    """The flows of all repeats."""
    goodput_bps: float | None
    """New bytes that arrived, of all its flows, over their time, in bit/s."""
    rtt_ms_p5: float | None
    rtt_ms_p50: float | None
    rtt_ms_p95: float | None
    share: float | None
    """Share, from 0 to 1, of the bytes that arrived of all competing flows."""
    jain: float | None
    """Jain's index of the competing flows' goodputs."""
    retransmits: float | None
    """Segments retransmitted."""
    backlog_bytes_p50: float | None
    """Median backlog where it queues, in bytes."""
    dropped: float | None
    """Packets dropped there."""
    marked: float | None
    """Packets marked there."""


def _middle(statistic: Statistic | None) -> float | None:
    return None if statistic is None else statistic.middle


def _alternative(setup: Setup, row: Row, is_only_setup: bool) -> AlternativeResult:
    from dragstrip.results.document import FlowResult

    contender = row.contender
    flows = (entry for bout in contender.bouts for entry in bout.results)
    return AlternativeResult(
        name=contender.title,
        cc=contender.cc,
        setup="" if is_only_setup else setup.short or setup.title,
        repeats=len(contender.bouts),
        flows=tuple(FlowResult.read(entry) for entry in flows),
        goodput_bps=_middle(row.goodput_bps),
        rtt_ms_p5=_middle(row.rtt_p5_ms),
        rtt_ms_p50=_middle(row.rtt_p50_ms),
        rtt_ms_p95=_middle(row.rtt_p95_ms),
        share=_middle(row.share),
        jain=_middle(row.jain),
        retransmits=_middle(row.retransmits),
        backlog_bytes_p50=_middle(row.queue_p50_bytes),
        dropped=_middle(row.dropped),
        marked=_middle(row.marked),
    )


def output_folder(folder: str | Path) -> Path:
    """Return an output folder that a caller names. Raises `BadInputError` for what is no name."""
    if not isinstance(folder, str | Path):
        raise BadInputError("folder", folder, "an output folder's name, as text or as a Path")
    return Path(folder)


class Result:
    """The result of a race or of another experiment, in memory or read from an output folder.

    `result.flows[0].goodput_bps` is a flow's figure, `result["bbr"].rtt_ms_p50` that of an alternative,
    `result.plot("plane")` a figure and `result.table("samples")` a table for Arrow, pandas, polars or duckdb.
    Iteration goes over the runs. Two results are equal if their documents and all their tables are.
    """

    def __init__(
        self, document: Mapping[str, Any], load_bundle: Callable[[], Bundle], command: str = ""
    ) -> None:
        self.document = document
        """The result document, as in `result.json` (docs/reference/result-json.md)."""
        self._load_bundle = load_bundle
        self._command = command
        self._folder: Path | None = None

    @cached_property
    def _bundle(self) -> Bundle:
        return self._load_bundle()

    @classmethod
    def read(cls, folder: str | Path) -> Result:
        """Read the output folder of `run`, `compare` or `race`.

        Raises `BadInputError` for a folder that is none, and for a file in it that is missing, damaged or of
        another format. Tables are read when they are asked for. Warns with a `Note` about a folder that is
        still being written, or whose run was interrupted: of one without a result, the finished runs are read
        from their recordings.
        """
        from dragstrip.io import checksums
        from dragstrip.io.result_shape import RESULT
        from dragstrip.io.shape import expect
        from dragstrip.report.load import FreshResult, load
        from dragstrip.studies.execution import unfinished
        from dragstrip.studies.execution.runner import PARTIAL

        place = output_folder(folder)
        partial = (place / PARTIAL).is_file()
        warning = f"{place}: {PARTIAL}: the folder is being written, or its run was interrupted"
        if (place / "result.json").is_file():
            document = checksums.read_json(place, "result.json")
            expect(document, RESULT, str(place / "result.json"))
        elif partial:
            document = unfinished.document(place)
            count = len(document["runs"])
            warning += f"; {count} finished run{'s are' if count != 1 else ' is'} read, no claim is graded"
        else:
            raise BadInputError("", None, "is not the output folder of a run or a comparison", str(place))
        if partial:
            note(warning)
        bundle = load(place, FreshResult(document, {}))
        replay = f"dragstrip report {shlex.quote(str(place))}"
        result = cls(document, lambda: bundle, replay)
        result._folder = place
        return result

    @classmethod
    def from_execution(
        cls, execution: Execution, experiment: Experiment, runs: list[PlannedRun], command: str = ""
    ) -> Result:
        """Return the result of runs that were made in memory; `command` repeats it."""

        def bundle() -> Bundle:
            from dragstrip.report.load import from_memory

            planned = {f"runs/{run.slug}": run for run in runs}
            folders = [line["recording"] for line in execution.document["runs"]]
            recordings = {folder: (planned[folder].facts, execution.recordings[folder]) for folder in folders}
            return from_memory(execution.document, experiment.content(), recordings)

        return cls(execution.document, bundle, command)

    @property
    def command(self) -> str:
        """The command that repeats the race, or shows the folder that was read; empty if there is none."""
        return self._command

    @property
    def folder(self) -> Path | None:
        """The output folder; None for a result in memory."""
        return self._folder

    def write(self, folder: str | Path) -> None:
        """Write it into `folder`, which is empty or does not exist yet, as the command line does.

        Recordings, `result.json` and `report.html` appear together. Raises `BadInputError` for a folder that
        cannot be used, and for a result that was read from one.
        """
        from dragstrip.studies.execution.memory import write_bundle

        try:
            write_bundle(self._bundle, self.document, Path(folder))
        except BadInputError as error:
            field = "folder" if error.field == "--out" else error.field
            raise error.reworded(field, source=error.source) from None

    @cached_property
    def runs(self) -> tuple[RunResult, ...]:
        """The runs in the order of time: all alternatives, then the next repeat."""
        from dragstrip.results.document import RunResult

        return tuple(RunResult.read(entry) for entry in self.document["runs"])

    @property
    def flows(self) -> tuple[FlowResult, ...]:
        """The flows of all runs."""
        return tuple(flow for run in self.runs for flow in run.flows)

    @property
    def queues(self) -> tuple[QueueResult, ...]:
        """The queues of all runs."""
        return tuple(queue for run in self.runs for queue in run.queues)

    @property
    def probes(self) -> tuple[ProbeResult, ...]:
        """The pings of all runs."""
        return tuple(probe for run in self.runs for probe in run.probes)

    @property
    def why(self) -> tuple[Explanation, ...]:
        """The explanations of all runs, those of a run in order of their weight."""
        return tuple(explanation for run in self.runs for explanation in run.why)

    @cached_property
    def claims(self) -> tuple[ClaimResult, ...]:
        """The graded claims."""
        from dragstrip.results.document import ClaimResult

        return tuple(ClaimResult.read(entry) for entry in self.document["claims"])

    @cached_property
    def failed(self) -> tuple[FailureResult, ...]:
        """The runs that ended without a recording."""
        from dragstrip.results.document import FailureResult

        return tuple(FailureResult.read(entry) for entry in self.document["failed"])

    @property
    def captures(self) -> tuple[Path, ...]:
        """The packet captures of all runs; empty for a result in memory."""
        folder = self._bundle.folder
        runs = (folder / str(run.summary["recording"]) for run in self._bundle.runs)
        return tuple(file for run in runs for file in sorted(run.glob("captures/*.pcapng")))

    @property
    def links(self) -> tuple[Mapping[str, Any], ...]:
        """The links of all runs as their scenarios describe them (docs/reference/scenario.md)."""
        return tuple(link for run in self._bundle.runs for link in run.scenario.get("links") or ())

    @cached_property
    def _setups(self) -> list[tuple[Setup, list[Row]]]:
        from dragstrip.display.colours import assign
        from dragstrip.results.comparison.setups import algorithms_of, setups_of
        from dragstrip.results.comparison.stats import rows_of

        setups = setups_of(self._bundle.runs, assign(algorithms_of(self._bundle.runs)))
        return [(setup, rows_of(setup)) for setup in setups]

    @cached_property
    def alternatives(self) -> tuple[AlternativeResult, ...]:
        """The alternatives in the order of the experiment."""
        is_only_setup = len(self._setups) == 1
        return tuple(_alternative(setup, row, is_only_setup) for setup, rows in self._setups for row in rows)

    @property
    def ranking(self) -> tuple[AlternativeResult, ...]:
        """The alternatives by goodput, the highest first."""
        return tuple(sorted(self.alternatives, key=lambda entry: -(entry.goodput_bps or 0.0)))

    def __getitem__(self, key: str | Program) -> AlternativeResult:
        """Return an alternative by its name or its program.

        Raises `BadInputError` for a name that none or several have.
        """
        name = str(key)
        matches = [entry for entry in self.alternatives if entry.name == name]
        if len(matches) == 1:
            return matches[0]
        if matches:
            setups = "; ".join(entry.setup for entry in matches)
            raise BadInputError(
                "name", name, f"a name in one set-up: `alternatives` has it in {len(matches)} ({setups})"
            )
        names = list(dict.fromkeys(entry.name for entry in self.alternatives))
        raise BadInputError("name", name, f"one of {', '.join(names)}{nearest(name, names)}")

    def __contains__(self, key: object) -> bool:
        return key in self.runs or any(entry.name == str(key) for entry in self.alternatives)

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        from dragstrip.model.recording import TABLES
        from dragstrip.report.load import recording_of

        if json_text(self.document) != json_text(other.document):
            return False
        pairs = zip(self._bundle.runs, other._bundle.runs, strict=True)
        return all(
            recording_of(left).table(name).cast(recording_of(another).table(name).schema)
            == recording_of(another).table(name)
            for left, another in pairs
            for name in TABLES
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if self._folder is not None:
            return Result.read, (self._folder,)
        from dragstrip.report.load import recording_of

        stored = {}
        for run in self._bundle.runs:
            recording = recording_of(run).recording
            assert recording is not None
            tables = {name: recording[name] for name in recording.tables}
            stored[run.summary["recording"]] = (recording.scenario, tables, recording.provenance)
        return _restored, (dict(self.document), dict(self._bundle.experiment), stored, self._command)

    __hash__ = None  # type: ignore[assignment]

    def table(self, name: str = FIGURES) -> pa.Table:
        """Return a table of all runs as Arrow, which pandas, polars and duckdb take as it is.

        `figures` has a row per flow; other names are the recordings' tables (docs/reference/recording.md),
        such as `samples`, preceded by each run's number, name and what varied. Units are in the names of the
        columns. Raises `BadInputError` for an unknown name.
        """
        import pyarrow as pa

        from dragstrip.model.recording import TABLES
        from dragstrip.report.load import recording_of

        names = [FIGURES, *TABLES]
        if name not in names:
            raise BadInputError("table", name, f"one of {', '.join(names)}{nearest(name, names)}")
        if name == FIGURES:
            rows = list(self._rows())
            columns = list(dict.fromkeys(column for row in rows for column in row))
            return pa.table({column: [row.get(column) for row in rows] for column in columns})
        parts = []
        for number, (run, varied) in enumerate(zip(self._bundle.runs, self._varied, strict=True)):
            recorded = recording_of(run).table(name)
            before = {"run": number, "scenario": run.summary["scenario"], **varied}
            columns_before = {
                column: pa.repeat(pa.scalar(value), recorded.num_rows) for column, value in before.items()
            }
            recorded_columns = dict(zip(recorded.column_names, recorded.columns, strict=True))
            parts.append(pa.table({**columns_before, **recorded_columns}))
        if not parts:
            raise BadInputError("", None, "holds no run", str(self._bundle.folder))
        return pa.concat_tables(parts, promote_options="permissive")

    def _rows(self) -> Iterator[dict[str, Any]]:
        for number, (run, varied) in enumerate(zip(self.document["runs"], self._varied, strict=True)):
            scalars = {key: value for key, value in run.items() if not isinstance(value, dict | list)}
            probe = {f"probe_{key}": value for key, value in flat((run["probes"] or [{}])[0]).items()}
            for flow in run["flows"]:
                yield {"run": number, **varied, **scalars, **flat(flow), **probe}

    @cached_property
    def _varied(self) -> list[dict[str, Any]]:
        """For each run its repeat, and what the experiment varied, by column."""
        from dragstrip.report.load import recording_of
        from dragstrip.studies.sweep import dataset

        runs = self._bundle.runs
        settings = [run.settings for run in runs]
        paths = dict.fromkeys(path for run_settings in settings for path in run_settings)
        values = {
            path: [run_settings[path] for run_settings in settings if path in run_settings] for path in paths
        }
        columns = dataset.named_columns(values)
        return [
            {
                "repeat": recording_of(run).provenance.get("repeat", 0),
                **{
                    name: dataset.in_base_units(run.settings[path], suffix) if path in run.settings else None
                    for path, name, suffix in columns
                },
            }
            for run in runs
        ]

    def plot(self, kind: str = "plane", *, setup: int = 0) -> Drawing:
        """Return a figure.

        `plane` is throughput against delay; `rtt`, `throughput`, `window` and `queue` are over time, and
        `timeline` is all of these; `ecdf` is the distribution of round-trip times and `throughput-ecdf` that
        of throughput; `shares` is of flows that compete; `claims` is ours beside the published figures.
        `setup` chooses among several set-ups, such as paths, by number. Raises `BadInputError` for a figure
        that the result cannot show.
        """
        from dragstrip.report.drawing import draw, draw_claims

        if kind == "claims":
            return draw_claims(self.document["claims"], self._bundle.experiment)
        if not self._setups:
            raise BadInputError("kind", kind, "a result with runs: this one has none")
        if not isinstance(setup, int) or not 0 <= setup < len(self._setups):
            raise BadInputError("setup", setup, f"0 to {len(self._setups) - 1}")
        return draw(self._setups[setup][0], kind)

    def summary(self) -> str:
        """Return who is ahead in one or two sentences, for each set-up."""
        from dragstrip.results.comparison.ranking import leading_sentence

        sentences = []
        for setup, rows in self._setups:
            sentence = leading_sentence(setup, rows).striptags()
            sentences.append(f"{setup.short}: {sentence}" if len(self._setups) > 1 else sentence)
        return "\n".join(sentences)

    def __repr__(self) -> str:
        from dragstrip.display import quantity
        from dragstrip.display.document import repr_line

        parts = [
            f"{entry.name} {quantity.rate(entry.goodput_bps)}"
            + ("" if entry.rtt_ms_p50 is None else f" at {quantity.milliseconds(entry.rtt_ms_p50)}")
            for entry in self.alternatives[:REPR_ALTERNATIVES]
        ]
        more = len(self.alternatives) - len(parts)
        parts += [f"{more} more"] if more > 0 else []
        runs = quantity.plural(len(self.runs), "run")
        return repr_line(f"<Result of {self.document['experiment']}: {runs}; {'; '.join(parts)}>")

    def _repr_html_(self) -> str:
        """Return the plane, the sentence and the table of the first set-up, and the first explanation."""
        from dragstrip.display import html
        from dragstrip.report import charts, plane
        from dragstrip.report.figure import Scatter
        from dragstrip.results.comparison.ranking import leading_sentence

        if not self._setups:
            return html.part("display/templates/text_cell.html", text=repr(self))
        setup, rows = self._setups[0]
        figure = charts.delay_throughput(setup, rows)
        has_plane = figure is not None and isinstance(figure.content, Scatter)
        return html.part(
            "interop/result_cell.html",
            picture=plane.svg(figure) if has_plane and figure else "",
            sentence=leading_sentence(setup, rows),
            alternatives=self.alternatives[: len(rows)][:HTML_ROWS_MAX],
            why=self.why[0].sentence if self.why else "",
            others=len(self._setups) - 1,
        )


def _restored(
    document: dict[str, Any],
    experiment: dict[str, Any],
    stored: Mapping[str, tuple[dict[str, Any], dict[str, pa.Table], dict[str, Any]]],
    command: str,
) -> Result:
    """Return a result in memory that another process has sent."""

    def bundle() -> Bundle:
        from dragstrip.model.recording import Recording
        from dragstrip.model.scenario.paths import scenario_facts
        from dragstrip.report.load import from_memory

        recordings: dict[str, tuple[ScenarioFacts, Recording]] = {
            folder: (scenario_facts(parts[0]), Recording(*parts)) for folder, parts in stored.items()
        }
        return from_memory(document, experiment, recordings)

    return Result(document, bundle, command)


HTML_ROWS_MAX = 8
"""Rows of the table that a notebook shows, at most; `alternatives` has all."""


def flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten `{"rtt_ms": {"p50": 1}}` to `{"rtt_ms_p50": 1}`; lists are left out."""
    flattened: dict[str, Any] = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            flattened |= flat(value, f"{prefix}{key}_")
        elif not isinstance(value, list):
            flattened[prefix + key] = value
    return flattened
