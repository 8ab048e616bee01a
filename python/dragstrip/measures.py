"""Measures: functions from a recording to a figure with a unit (docs/measures.md lists them).

They are computed by the core (crates/measures); this is how Python asks for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.recording import Recording
from dragstrip.recording.columns import Floats, to_core

THROUGHPUT_NS = _core.THROUGHPUT_NS
"""Throughput is counted in spans of a second (of a recording interval, if that is longer)."""


@dataclass(frozen=True)
class Window:
    """Which part of a flow is measured."""

    after_ns: int = 0
    """Left out at the flow's start."""
    until_ns: int | None = None
    """Its end, counted like `after_ns` from the flow's start; none: the flow's own."""
    state: str | None = None
    """Only samples with this state of the algorithm."""


@dataclass(frozen=True)
class FlowMeasures:
    """A row of the table `flows`."""

    flow: int
    label: str
    cc: str
    """The congestion control; `udp` where there is none."""
    sender: str
    receiver: str
    start_ns: int
    stop_ns: int
    """The end of the run where none is recorded."""
    bytes_received: int
    segments_sent: int
    retransmits: int
    rto_count: int | None
    """None where a kernel counts those of several flows together."""
    reductions: int
    ecn_negotiated: bool
    datagrams_lost: int | None
    goodput_bps: float
    """New bytes that reached the receiver, over the flow's duration."""


class Measured:
    """A recording with what the measures need of it at hand.

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
        scenario = json.dumps(self.recording.scenario)
        measured: _core.Measured = _asked(_core.Measured, scenario, to_core(self.recording))
        return measured

    @cached_property
    def flows(self) -> list[FlowMeasures]:
        """The flows in the order of the scenario."""
        return [FlowMeasures(**row) for row in self._run.flows()]

    def segment_bytes(self, flow: FlowMeasures) -> int:
        """The MSS: the smaller MTU of both hosts less IP and TCP headers, timestamps included unless off."""
        return self._run.segment_bytes(flow.flow)

    def queued_links(self) -> list[str]:
        """Links where packets can wait or be lost, the dumbbell's bottleneck first."""
        return self._run.queued_links()

    def series(self, name: str, subject: FlowMeasures | str, window: Window = Window()) -> Floats:
        """The values of a series: of a flow, of the probe with a label, of a link's queue."""
        asked = (name, _subject(subject), window.after_ns, window.until_ns, window.state)
        return np.frombuffer(_asked(self._run.series, *asked), dtype="<f8")

    def throughput_bps(self, flow: FlowMeasures, window: Window) -> Floats:
        """Ethernet frames that arrived, retransmissions included, in each whole second."""
        return self.series("throughput_bps", flow, window)

    def written_bps(self, flow: FlowMeasures, window: Window) -> Floats:
        """What the sending socket took, sent or not, in each whole second: iperf's figure at the sender."""
        return self.series("written_bps", flow, window)

    def figure(
        self, name: str, subject: FlowMeasures | str | None = None, window: Window = Window()
    ) -> float | None:
        """A figure by the name that claims have for it; none where there is nothing to measure."""
        asked = (name, _subject(subject), window.after_ns, window.until_ns, window.state)
        figure: float | None = _asked(self._run.figure, *asked)
        return figure

    def summary(self) -> dict[str, Any]:
        """What the result document says about the run (docs/result-json.md)."""
        summary: dict[str, Any] = json.loads(_asked(self._run.summary))
        return summary


def _subject(subject: FlowMeasures | str | None) -> int | str | None:
    return subject.flow if isinstance(subject, FlowMeasures) else subject


def _asked(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except _core.InputError as error:
        field, value, expected = error.args
        raise BadInputError(field, value or None, expected) from None


def rates_bps(sizes: Floats, interval_ns: int) -> Floats:
    """Bytes of successive intervals as rates of whole seconds (of all there is, if that is less)."""
    values = np.ascontiguousarray(sizes, dtype=np.float64)
    return np.frombuffer(_core.rates_bps(values, interval_ns), dtype="<f8")


def jain(rates: list[float]) -> float | None:
    """(Σx)² / (n·Σx²); none when nothing moved (Jain, Chiu, Hawe, DEC-TR-301, 1984)."""
    return _core.jain(rates)


def summarise(recording: Recording) -> dict[str, Any]:
    """What the result document says about a run (docs/result-json.md)."""
    return Measured(recording).summary()


def parts_text(seconds: Mapping[str, float], separator: str = ", ", most: int = 9) -> str:
    """`pacing 93 %, cwnd 7 %`: what is a hundredth or more of the whole, the longest first."""
    whole = sum(seconds.values())
    longest = sorted(seconds.items(), key=lambda entry: -entry[1])
    shown = [f"{name} {100 * spent / whole:.0f} %" for name, spent in longest if spent >= 0.01 * whole > 0]
    return separator.join(shown[:most])


@dataclass(frozen=True)
class Measure:
    """A measure as a claim names it."""

    level: str
    """What it is taken of: flow, probe, queue or run."""
    unit: str
    about: str
    figure: Callable[[Measured, Any, Window], Any]
    """An array where the name goes on with a statistic (`_p50`), else the figure itself, or none."""


def _measures(series: bool) -> Mapping[str, Measure]:
    ask = Measured.series if series else Measured.figure
    return {
        name: Measure(level, unit, about, partial(_ask, ask, name))
        for name, level, unit, about, is_series in _core.measures()
        if is_series == series
    }


def _ask(ask: Callable[..., Any], name: str, run: Measured, subject: Any, window: Window) -> Any:
    return ask(run, name, subject, window)


SERIES: Mapping[str, Measure] = _measures(series=True)
"""Names that go on with `_p5`, `_p50` (any percentile), `_min`, `_max`, `_mean`, `_first` or `_last`."""

FIGURES: Mapping[str, Measure] = _measures(series=False)
"""Names that are a figure as they stand."""


def find(name: str) -> Measure | None:
    """The measure called `name`, its statistic applied; none if there is no such name."""
    known = _core.measure_of(name)
    if known is None or known in FIGURES:
        return None if known is None else FIGURES[known]
    series = SERIES[known]
    return Measure(series.level, series.unit, series.about, partial(_ask, Measured.figure, name))


def names() -> list[str]:
    """All names, for messages: a series stands with its median."""
    return [*FIGURES, *(f"{name}_p50" for name in SERIES)]
