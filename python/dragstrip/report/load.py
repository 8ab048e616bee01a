"""Reads an output folder: `experiment.json`, `result.json` and the recordings below `runs/`.

Everything that a person may have damaged is checked here and reported as one `BadInputError` that names the
file, the field, the value and what was expected. No module above this one reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dragstrip.errors import BadInputError
from dragstrip.io import checksums
from dragstrip.io.result_shape import RESULT
from dragstrip.io.shape import EXPERIMENT, PROVENANCE, expect
from dragstrip.model.recording import Recording, check_format, read_table
from dragstrip.model.scenario.paths import ScenarioFacts, add_facts
from dragstrip.results.comparison.setups import Bout, Run

FloatArray = npt.NDArray[np.float64]
Json = Mapping[str, Any]


_RESULT = {name: RESULT[name] for name in ("runs", "failed", "claims", "flow_tables")}
"""Fields of the result that a report reads."""


@dataclass(frozen=True)
class RecordedFlow:
    """One row of the table `flows`."""

    flow: Any
    label: str
    cc: str
    protocol: str
    start_s: float
    stop_s: float
    segments_sent: float | None
    retransmits: float | None


@dataclass(frozen=True)
class ColumnTable:
    """Columns of one table, with the rows of each key (`flow`, `link` or `probe`)."""

    columns: Mapping[str, npt.NDArray[Any]]
    rows: Mapping[Any, npt.NDArray[np.intp]]
    # Columns of text hold indexes into these, -1 for null.
    words: Mapping[str, list[str]]

    def column(self, name: str, key: Any) -> FloatArray:
        """Return a column's values in the rows of one key, in order of time, as float64 with NaN for null."""
        values = self.columns[name]
        return cast(FloatArray, values[self.rows.get(key, np.empty(0, dtype=np.intp))].astype(np.float64))

    def tally(self, name: str, key: Any, mask: npt.NDArray[np.bool_]) -> dict[str, int]:
        """Return how often each text of a column occurs in the chosen rows of one key."""
        if name not in self.words:
            return {}
        indexes = self.columns[name][self.rows.get(key, np.empty(0, dtype=np.intp))][mask]
        counts = np.bincount(indexes[indexes >= 0], minlength=len(self.words[name]))
        return {word: int(n) for word, n in zip(self.words[name], counts, strict=True) if n and word}


@dataclass(frozen=True)
class RunRecording:
    """The recording of one run, in a folder or in memory; each table is read on first use."""

    folder: Path
    facts: ScenarioFacts
    provenance: Json
    recording: Recording | None = None
    """The recording, if it is in memory: then `folder` is not read for tables, and need not exist."""

    @property
    def scenario(self) -> Json:
        """The scenario, with the facts of its links."""
        return self.facts.scenario

    def __post_init__(self) -> None:
        """Refuse a recording that was written in another format."""
        check_format(self.provenance, self.folder)

    @property
    def interval_s(self) -> float:
        """The recording interval in seconds, the spacing of tables with a row per interval."""
        return float((self.scenario.get("record") or {}).get("interval_ns") or 100_000_000) / 1e9

    def is_part(self, time_s: FloatArray) -> npt.NDArray[np.bool_]:
        """Return for each end of an interval in seconds whether the interval is shorter than the others.

        Only the last one of a run can be: it ends with the run.
        """
        end_ns = int(self.scenario.get("duration_ns") or 0)
        part = end_ns % round(self.interval_s * 1e9) != 0
        return np.asarray((np.abs(time_s - end_ns / 1e9) < 1e-9) & part, dtype=np.bool_)

    @cached_property
    def flows(self) -> list[RecordedFlow]:
        """All flows, in the order of the table."""
        columns = ["flow", "label", "cc", "start_ns", "stop_ns"]
        optional = ["protocol", "segments_sent", "retransmits"]
        table = self.table("flows", columns, optional)
        end_s = float(self.scenario.get("duration_ns", 0)) / 1e9
        flows = []
        for row in table.to_pylist():
            cc = row["cc"] or ""
            protocol = row.get("protocol") or ("tcp" if cc else "udp")
            flows.append(
                RecordedFlow(
                    flow=row["flow"],
                    label=str(row["label"]),
                    cc=cc if cc and protocol != "udp" else "udp",
                    protocol=protocol,
                    start_s=(row["start_ns"] or 0) / 1e9,
                    stop_s=end_s if row["stop_ns"] is None else row["stop_ns"] / 1e9,
                    segments_sent=row.get("segments_sent"),
                    retransmits=row.get("retransmits"),
                )
            )
        return flows

    @cached_property
    def by_number(self) -> dict[Any, RecordedFlow]:
        """The flows by their numbers."""
        return {flow.flow: flow for flow in self.flows}

    @cached_property
    def samples(self) -> ColumnTable:
        """Window, RTT estimate and state of each flow at each interval."""
        numbers = ["time_ns", "cwnd_bytes", "ssthresh_bytes", "rtt_ns"]
        return self._table("samples", "flow", numbers, optional=["limit", "bytes_acked"])

    @cached_property
    def received(self) -> ColumnTable:
        """Bytes of each flow that arrived in each interval."""
        return self._table("received", "flow", ["time_ns", "wire_bytes", "new_bytes"])

    @cached_property
    def rtts(self) -> ColumnTable:
        """Every RTT sample of each flow."""
        return self._table("rtts", "flow", ["time_ns", "rtt_ns"])

    @cached_property
    def spp(self) -> ColumnTable:
        """Round trips between captures at both ends, if they were recorded (`record.captures`)."""
        return self._table("spp", "flow", ["time_ns", "rtt_ns"])

    @cached_property
    def tcpstat(self) -> ColumnTable:
        """Bytes per second in the receiver's capture, if it was recorded (`record.captures`)."""
        return self._table("tcpstat", "flow", ["time_ns", "ip_bytes"])

    @cached_property
    def cc_state(self) -> ColumnTable:
        """The congestion control's own variables at each sample, if they were recorded."""
        return self._table("cc_state", "flow", ["time_ns", "name", "value"])

    @cached_property
    def video(self) -> ColumnTable:
        """Every segment of a video that has arrived."""
        return self._table("video", "flow", ["time_ns", "asked_ns", "rate_bps", "buffer_ns", "playing"])

    @cached_property
    def frames(self) -> ColumnTable:
        """Every frame of a live video over RTP; one that is not complete has no `arrived_ns`."""
        return self._table("frames", "flow", ["time_ns", "target_bps", "arrived_ns"])

    @cached_property
    def probes(self) -> ColumnTable:
        """The answer to every ping."""
        return self._table("probes", "probe", ["time_ns", "rtt_ns"], optional=["target"])

    @cached_property
    def queues(self) -> ColumnTable:
        """Backlog and counters of each link at each interval."""
        return self._table("queues", "link", ["time_ns", "backlog_bytes"])

    def table(
        self, name: str, columns: Sequence[str] | None = None, optional: Sequence[str] = ()
    ) -> pa.Table:
        """Return a table, as `read_table` reads it from a folder; in memory it is no copy."""
        if self.recording is None:
            return read_table(self.folder, name, columns, optional)
        table = self.recording[name]
        if columns is None:
            return table
        present = set(table.column_names)
        return table.select([column for column in (*columns, *optional) if column in present])

    def limits(self, flow: RecordedFlow) -> Mapping[str, int]:
        """Return the number of samples during a flow's life by limiting factor (`samples.limit`)."""
        time_s = self.samples.column("time_ns", flow.flow) / 1e9
        return self.samples.tally("limit", flow.flow, (time_s >= flow.start_s) & (time_s < flow.stop_s))

    def _table(
        self, name: str, key: str, columns: list[str], optional: list[str] | None = None
    ) -> ColumnTable:
        table = self.table(name, [key, *columns], optional or [])
        arrays: dict[str, npt.NDArray[Any]] = {}
        words: dict[str, list[str]] = {}
        for column in table.column_names:
            values = table.column(column)
            if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type):
                arrays[column], words[column] = _indexed(values)
            elif column != key:
                arrays[column] = _numpy(values)
        return ColumnTable(columns=arrays, rows=_rows_by_key(table.column(key)), words=words)


@dataclass(frozen=True)
class RecordedRun(Run):
    """One run of the result document, with its recording."""

    recording: RunRecording

    @property
    def scenario(self) -> Json:
        """The scenario as it was run."""
        return self.recording.scenario

    @cached_property
    def facts(self) -> ScenarioFacts:
        """The scenario with its facts."""
        return self.recording.facts

    @property
    def settings(self) -> Json:
        """The values by dotted path that distinguish this run, and the name of its `alternative`."""
        return self.recording.provenance.get("settings") or {}


def recording_of(run: Run) -> RunRecording:
    """Return the recording of a run that was read from an output folder."""
    assert isinstance(run, RecordedRun)
    return run.recording


def flows_of(bout: Bout) -> list[RecordedFlow]:
    """Return the recorded flows of a contender in one run."""
    by_number = recording_of(bout.run).by_number
    return [by_number[row["flow"]] for row in bout.results if row.get("flow") in by_number]


@dataclass(frozen=True)
class Bundle:
    """The content of an output folder."""

    folder: Path
    version: str
    title: str
    description: str
    source: str
    experiment: Json
    runs: list[RecordedRun]
    # Runs without a recording: `scenario`, `seed` and `reason`.
    failed: list[Json] = field(default_factory=list)
    claims: list[Json] = field(default_factory=list)


@dataclass(frozen=True)
class FreshResult:
    """Content of an output folder that this process has just written and need not read again."""

    result: Json
    """The content of `result.json`."""
    scenarios: Mapping[str, ScenarioFacts]
    """Each recording's scenario, by the folder that `result` gives for it."""
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    """The recordings that are still in memory, by the same folders."""


def load(folder: Path, fresh: FreshResult | None = None) -> Bundle:
    """Read an output folder of `run` or `compare`; raises `BadInputError` if it is incomplete or damaged."""
    if not folder.is_dir():
        raise BadInputError("", None, "not a folder that `dragstrip run` or `compare` wrote", str(folder))
    result = _result(folder) if fresh is None else fresh.result
    fresh = fresh or FreshResult(result, {})
    experiment_file = folder / "experiment.json"
    experiment = checksums.read_json(folder, experiment_file.name) if experiment_file.exists() else {}
    expect(experiment, EXPERIMENT, str(experiment_file), partly=True)
    runs = [_run(folder, index, run, fresh) for index, run in enumerate(_list(folder, result, "runs"))]
    experiment_entry = result.get("experiment")
    title = experiment_entry.get("name") if isinstance(experiment_entry, Mapping) else experiment_entry
    return Bundle(
        folder=folder,
        version=str(result.get("version") or ""),
        title=str(experiment.get("title") or title or experiment.get("name") or folder.resolve().name),
        description=str(experiment.get("description") or ""),
        source=str(experiment.get("source") or ""),
        experiment=experiment,
        runs=runs,
        failed=_list(folder, result, "failed"),
        claims=_list(folder, result, "claims"),
    )


def from_memory(
    document: Json, experiment: Json, recordings: Mapping[str, tuple[ScenarioFacts, Recording]]
) -> Bundle:
    """Return the content of an output folder that was not written.

    `recordings` has each run's facts and recording by the folder that the document names.
    """
    runs = []
    for summary in document["runs"]:
        facts, recording = recordings[summary["recording"]]
        folder = Path(summary["recording"])
        runs.append(RecordedRun(summary, RunRecording(folder, facts, recording.provenance, recording)))
    return Bundle(
        folder=Path(),
        version=document["version"],
        title=str(experiment.get("title") or document["experiment"]),
        description=str(experiment.get("description") or ""),
        source=str(experiment.get("source") or ""),
        experiment=experiment,
        runs=runs,
        failed=document["failed"],
        claims=document["claims"],
    )


def _result(folder: Path) -> Json:
    result = checksums.read_json(folder, "result.json")
    expect(result, _RESULT, str(folder / "result.json"), partly=True)
    return result


def _list(folder: Path, document: Json, name: str) -> list[Json]:
    value = document.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadInputError(name, value, "a list of objects", str(folder / "result.json"))
    return value


def _run(folder: Path, index: int, summary: Json, fresh: FreshResult) -> RecordedRun:
    where = summary.get("recording")
    if not isinstance(where, str):
        raise BadInputError(
            f"runs[{index}].recording", where or "", "a recording's folder", str(folder / "result.json")
        )
    # The folder may have been moved since, or have been named relative to somewhere else.
    candidates = [folder / where, folder / "runs" / Path(where).name]
    recording = next((path for path in candidates if path.is_dir()), None)
    if recording is None:
        raise BadInputError(
            f"runs[{index}].recording", where, "a folder that exists", str(folder / "result.json")
        )
    provenance = recording / "provenance.json"
    facts = checksums.read_json(recording, provenance.name) if provenance.exists() else {}
    expect(facts, PROVENANCE, str(provenance), partly=True)
    scenario = fresh.scenarios.get(where) or _scenario(recording / "scenario.json")
    return RecordedRun(summary, RunRecording(recording, scenario, facts, fresh.recordings.get(where)))


def _scenario(path: Path) -> ScenarioFacts:
    """Return the scenario of a recording, with its facts."""
    try:
        return add_facts(checksums.read_json(path.parent, path.name))
    except BadInputError as error:
        raise error if error.source else error.at(str(path)) from None


# Arrow's compute functions are not used below: importing them takes longer than all of a small report.


def _numpy(column: pa.ChunkedArray[Any]) -> npt.NDArray[Any]:
    """Return the numbers; a column with nulls as float64, with NaN for null."""
    return column.to_numpy()


def _indexed(column: pa.ChunkedArray[Any]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return text as indexes into the list of its distinct words."""
    if len(column) == 0:
        return np.empty(0, dtype=np.int64), []
    encoded: Any = column.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    places = encoded.indices.to_numpy(zero_copy_only=False)
    indices = np.nan_to_num(places.astype(np.float64), nan=-1).astype(np.int64)
    return indices, [str(word) for word in encoded.dictionary.to_pylist()]


def _rows_by_key(column: pa.ChunkedArray[Any]) -> dict[Any, npt.NDArray[np.intp]]:
    """Return the row numbers of every key, ascending, in one pass for any number of keys."""
    if len(column) == 0:
        return {}
    if pa.types.is_integer(column.type) and not column.null_count:
        values, words = column.to_numpy(), None
    else:
        encoded: Any = column.unify_dictionaries().combine_chunks().dictionary_encode()
        values = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        words = encoded.dictionary.to_pylist()
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    keys = ordered[starts].tolist()
    rows = np.split(order, starts[1:])
    return dict(zip(keys if words is None else [words[key] for key in keys], rows, strict=True))


def middle_of(values: FloatArray | Sequence[float]) -> float:
    """Return the median of one or more numbers; `np.median` would import NumPy's masked arrays."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)
