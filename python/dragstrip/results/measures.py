"""Measures: functions from a recording to a figure with a unit (listed in docs/reference/measures.md).

The core computes them (crates/measures); this module calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from dragstrip import _core
from dragstrip.display import quantity
from dragstrip.errors import BadInputError
from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import Floats, to_core

THROUGHPUT_NS = _core.THROUGHPUT_NS
"""Span over which throughput is counted, in nanoseconds: a second, or a recording interval if that is
longer."""


@dataclass(frozen=True)
class Window:
    """The part of a flow that is measured."""

    after_ns: int = 0
    """Nanoseconds after the flow's start that are left out."""
    until_ns: int | None = None
    """The window's end, in nanoseconds after the flow's start; None means the flow's end."""
    state: str | None = None
    """Only samples in this state of the algorithm; None means all."""


@dataclass(frozen=True)
class FlowMeasures:
    """A row of the table `flows`."""

    flow: int
    label: str
    cc: str
    """The congestion control; `udp` for a flow without one."""
    sender: str
    receiver: str
    start_ns: int
    stop_ns: int
    """The flow's end in nanoseconds; the end of the run if none is recorded."""
    bytes_received: int
    segments_sent: int
    retransmits: int
    rto_count: int | None
    """Number of retransmission timeouts; None where a kernel counts several flows together."""
    reductions: int
    ecn_negotiated: bool
    datagrams_lost: int | None
    goodput_bps: float
    """New bytes that reached the receiver, over the flow's duration, in bit/s."""


Subject: TypeAlias = FlowMeasures | Sequence[FlowMeasures] | str | None
"""A flow, several flows of which the transfers count, a probe's label, a link's name, or the run (None)."""


class Measured:
    """A recording with cached data for its measures.

    Every method raises `BadInputError` for a column that the recording lacks.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @cached_property
    def _run(self) -> _core.Measured:
        if not self.recording.scenario.get("nodes"):
            expected = (
                "the recording has none, being of a capture or of another program's file; `dragstrip report` "
                "says what it holds"
            )
            raise BadInputError("scenario", None, expected)
        core = self.recording.core or _checked_call(_core.Scenario, self.recording.scenario)
        measured: _core.Measured = _checked_call(core.measured, to_core(self.recording))
        return measured

    @cached_property
    def flows(self) -> list[FlowMeasures]:
        """The flows in the order of the scenario."""
        return [FlowMeasures(**row) for row in self._run.flows()]

    def segment_bytes(self, flow: FlowMeasures) -> int:
        """Return the flow's MSS in bytes.

        It is the smaller MTU of both hosts less the IP and TCP headers, and less timestamps unless they are
        off.
        """
        return self._run.segment_bytes(flow.flow)

    def queued_links(self) -> list[str]:
        """Return the links where packets can wait or be lost, the dumbbell's bottleneck first."""
        return self._run.queued_links()

    def series(self, name: str, subject: Subject, window: Window = Window()) -> Floats:
        """Return the values of a series: of a flow, a probe's label, a link's queue, or transfers.

        The array is one-dimensional, in the measure's unit (docs/reference/measures.md).
        """
        arguments = (name, _subject(subject), window.after_ns, window.until_ns, window.state)
        return np.frombuffer(_checked_call(self._run.series, *arguments), dtype="<f8")

    def throughput_bps(self, flow: FlowMeasures, window: Window) -> Floats:
        """Return the arrival rate of Ethernet frames, retransmissions included, in bit/s per whole second."""
        return self.series("throughput_bps", flow, window)

    def written_bps(self, flow: FlowMeasures, window: Window) -> Floats:
        """Return the rate at which the socket accepted data, in bit/s per whole second.

        The data need not have been sent; this is the figure that iperf prints at the sender.
        """
        return self.series("written_bps", flow, window)

    def figure(self, name: str, subject: Subject = None, window: Window = Window()) -> float | None:
        """Return a figure by the name that claims use, or None if there is nothing to measure."""
        arguments = (name, _subject(subject), window.after_ns, window.until_ns, window.state)
        figure: float | None = _checked_call(self._run.figure, *arguments)
        return figure

    def summary(self) -> dict[str, Any]:
        """Return the run's entry of the result document (docs/reference/result-json.md)."""
        summary: dict[str, Any] = _checked_call(self._run.summary)
        return summary


def _subject(subject: Subject) -> int | list[int] | str | None:
    if subject is None or isinstance(subject, str):
        return subject
    return subject.flow if isinstance(subject, FlowMeasures) else [flow.flow for flow in subject]


def _checked_call(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except _core.InputError as error:
        field, value, expected = error.args
        raise BadInputError(field, value or None, expected) from None


def rates_bps(sizes: Floats, interval_ns: int) -> Floats:
    """Convert the bytes of successive intervals to rates in bit/s, one per whole second.

    If the intervals cover less than a second, there is one rate over all of them.
    """
    values = np.ascontiguousarray(sizes, dtype=np.float64)
    return np.frombuffer(_core.rates_bps(values, interval_ns), dtype="<f8")


def jain(rates: list[float]) -> float | None:
    """Return Jain's fairness index (Σx)² / (n·Σx²), or None if all rates are zero.

    Source: Jain, Chiu, Hawe, DEC-TR-301, 1984.
    """
    return _core.jain(rates)


def summarise(recording: Recording) -> dict[str, Any]:
    """Return a recording's entry of the result document (docs/reference/result-json.md)."""
    from dragstrip.results import phases

    summary = Measured(recording).summary()
    if phases.recorded(recording):
        for flow, stays in zip(summary["flows"], phases.phases(recording), strict=True):
            flow["phases"] = stays
    return summary


FLOW_COLUMNS: Mapping[str, Sequence[str]] = {
    "flows": (
        *("flow", "label", "protocol", "cc", "start_ns", "stop_ns", "bytes_received", "segments_sent"),
        *("retransmits", "ecn_negotiated"),
    ),
    "samples": (
        *("time_ns", "flow", "rtt_ns", "srtt_ns", "bytes_acked", "bytes_written", "retransmits", "limit"),
    ),
    "received": ("time_ns", "flow", "new_bytes"),
    "rtts": ("flow", "rtt_ns"),
}
"""Columns of `flow_figures`, by table."""

PROBE_COLUMNS: Mapping[str, Sequence[str]] = {"probes": ("time_ns", "probe", "target", "rtt_ns", "lost")}
"""Columns of `probe_figures`."""


def flow_figures(recording: Recording) -> list[dict[str, Any]]:
    """Return the figures of each flow as `inspect --json` has them, None for what the recording lacks.

    The recording needs no scenario: it may be of captures or of another program's file. The figures that this
    program computed itself (`interop.readers.measurements`) take precedence.
    """
    scenario, reported = recording.scenario, recording.provenance.get("reported")
    rows: list[dict[str, Any]] = _checked_call(
        _core.flow_figures,
        to_core(recording, FLOW_COLUMNS),
        reported if isinstance(reported, dict) else {},
        scenario.get("duration_ns") if scenario.get("nodes") else None,
        bool((scenario.get("record") or {}).get("every_ack")),
    )
    # Columns of flags cross to the core without null.
    for row, flag in zip(rows, recording["flows"]["ecn_negotiated"].to_pylist(), strict=True):
        row["ecn"] = flag
    return rows


def probe_figures(recording: Recording) -> list[dict[str, Any]]:
    """Return, for each probe, the requests sent and lost, and the round trips of the answered ones.

    Of requests that another program's file sums up instead of listing them, these are its own figures, and
    None for those that it lacks.
    """
    summaries = recording.provenance.get("summaries")
    rows: list[dict[str, Any]] = _checked_call(
        _core.probe_figures,
        to_core(recording, PROBE_COLUMNS),
        summaries if isinstance(summaries, list) else [],
    )
    return rows


def round_trips(values_ns: Floats) -> dict[str, Any]:
    """Return the percentiles, extremes and mean of answered requests' round trips, in milliseconds.

    Fewer than `_core.TAIL_SAMPLES` have no 5th and 95th percentile.
    """
    return _core.round_trips(np.ascontiguousarray(values_ns, dtype=np.float64))


def parts_text(seconds: Mapping[str, float], separator: str = ", ", most: int = 9) -> str:
    """Return shares in words, such as `pacing 93 %, cwnd 7 %`, the largest first.

    Shares below one per cent, and all after the first `most`, are left out.
    """
    whole = sum(seconds.values())
    longest = sorted(seconds.items(), key=lambda entry: -entry[1])
    parts = [
        f"{name} {quantity.percent(part_s / whole)}" for name, part_s in longest if part_s >= 0.01 * whole > 0
    ]
    return separator.join(parts[:most])


@dataclass(frozen=True)
class Measure:
    """A measure as a claim names it."""

    level: str
    """The subject of the measure: flow, probe, queue, run or transfers."""
    unit: str
    about: str
    figure: Callable[[Measured, Any, Window], Any]
    """Gives an array if the name takes a statistic (`_p50`), else the figure or None."""


def _measures(series: bool) -> Mapping[str, Measure]:
    ask = Measured.series if series else Measured.figure
    return {
        name: Measure(level, unit, about, partial(_ask, ask, name))
        for name, level, unit, about, is_series in _core.MEASURES
        if is_series == series
    }


def _ask(ask: Callable[..., Any], name: str, run: Measured, subject: Any, window: Window) -> Any:
    return ask(run, name, subject, window)


SERIES: Mapping[str, Measure] = _measures(series=True)
"""Measures by names that take `_p5`, `_p50` (any percentile), `_min`, `_max`, `_mean`, `_first` or
`_last`."""

FIGURES: Mapping[str, Measure] = _measures(series=False)
"""Measures by names that take no statistic."""


def find(name: str) -> Measure | None:
    """Return the measure called `name`, with its statistic applied, or None if there is no such name."""
    base_name = _core.measure_of(name)
    if base_name is None or base_name in FIGURES:
        return None if base_name is None else FIGURES[base_name]
    series = SERIES[base_name]
    return Measure(series.level, series.unit, series.about, partial(_ask, Measured.figure, name))


def names() -> list[str]:
    """Return all names for messages, each series with its median."""
    return [*FIGURES, *(f"{name}_p50" for name in SERIES)]
