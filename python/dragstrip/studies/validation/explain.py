"""One case in words: the first event at which the two time lines diverge."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dragstrip.engines.sim import simulate
from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import numbers, texts
from dragstrip.results.measures import Measured
from dragstrip.studies.validation.kernel import Json
from dragstrip.studies.validation.traces import Floats, FlowSeries, changes
from dragstrip.studies.validation.validate import Case

SEGMENTS_APART = 2.0
PART_APART = 0.05
"""Windows diverge if they differ by more than two segments and by more than this fraction."""
SAMPLES_APART = 3
"""Successive samples that must differ, for a difference that no event explains."""
AROUND = 6
"""Samples shown on each side of the divergence."""


@dataclass(frozen=True)
class FlowEvent:
    """An event of a flow: its time (to the resolution of the samples), its kind, and a figure."""

    t_s: float
    kind: str
    value: float
    words: str


@dataclass(frozen=True)
class Divergence:
    """The point at which two flows diverge."""

    t_s: float
    flow: int
    words: str
    table: list[list[str]]


def events(flow: FlowSeries) -> list[FlowEvent]:
    """Return changes of the threshold and bursts of retransmissions, in order of time."""
    flow_events = []
    for change in changes(flow):
        if change.reduction:
            words = f"reduces ssthresh to {change.ssthresh:.0f} (window {change.cwnd:.0f})"
            flow_events.append(FlowEvent(change.t_s, "reduction", change.ssthresh, words))
        else:
            words = f"leaves slow start at a window of {change.ssthresh:.0f}"
            flow_events.append(FlowEvent(change.t_s, "threshold", change.ssthresh, words))
    flow_events += _bursts(flow)
    return sorted(flow_events, key=lambda event: (event.t_s, event.kind))


def _bursts(flow: FlowSeries) -> Iterator[FlowEvent]:
    """Yield bursts: successive samples in which segments were retransmitted."""
    grown = np.diff(flow.retransmits, prepend=0.0)
    busy = np.flatnonzero(grown > 0)
    for first in (i for i in busy if i == 0 or grown[i - 1] <= 0):
        end = first
        while end < len(grown) and grown[end] > 0:
            end += 1
        number = float(grown[first:end].sum())
        plural = "s" if number != 1 else ""
        yield FlowEvent(float(flow.t_s[first]), "burst", number, f"retransmits {number:.0f} segment{plural}")


def explain(case: Case) -> Divergence | None:
    """Return the first difference, for the first seeds and the first flow that has one, or None."""
    for number, (kernel, simulator) in enumerate(
        zip(case.kernel[0].flows, case.simulator[0].flows, strict=True)
    ):
        first_difference = _first_event(kernel, simulator) or _first_drift(kernel, simulator)
        if first_difference:
            t_s, words = first_difference
            words += _exactly(case, number, t_s)
            return Divergence(t_s, number, words, _around(kernel, simulator, t_s))
    return None


def _first_event(kernel: FlowSeries, simulator: FlowSeries) -> tuple[float, str] | None:
    theirs, ours = events(kernel), events(simulator)
    for k, s in zip(theirs, ours, strict=False):
        if k.kind == s.kind and abs(k.t_s - s.t_s) <= _slack_s(kernel, k.t_s) and _near(k.value, s.value):
            continue
        if k.kind == s.kind:
            return min(k.t_s, s.t_s), (
                f"at {k.t_s:.1f} s the kernel {k.words}; the simulator, at {s.t_s:.1f} s, {s.words}"
            )
        first, second = (k, s) if k.t_s <= s.t_s else (s, k)
        return first.t_s, _lone(first, second, first is k)
    rest = theirs[len(ours) :] or ours[len(theirs) :]
    return (rest[0].t_s, _lone(rest[0], None, len(theirs) > len(ours))) if rest else None


def _lone(event: FlowEvent, counterpart: FlowEvent | None, by_kernel: bool) -> str:
    side, against = ("kernel", "simulator") if by_kernel else ("simulator", "kernel")
    then = (
        f"its next event is at {counterpart.t_s:.1f} s: it {counterpart.words}"
        if counterpart
        else "nothing follows there"
    )
    return f"at {event.t_s:.1f} s the {side} {event.words}, the {against} does not ({then})"


def _slack_s(flow: FlowSeries, t_s: float) -> float:
    """Return one and a half sampling intervals, because an event may fall on either side of a sample."""
    rtts = flow.srtt_ms[np.isfinite(flow.srtt_ms) & (flow.t_s <= t_s + 0.2)]
    return max(0.15, float(rtts[-1]) / 1e3 if rtts.size else 0.0)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= max(SEGMENTS_APART, PART_APART * max(abs(a), abs(b)))


def _first_drift(kernel: FlowSeries, simulator: FlowSeries) -> tuple[float, str] | None:
    """Return the first stretch in which windows or smoothed RTTs differ, where no event does.

    Samples before the first RTT are left out, because there is no connection yet.
    """
    connected = np.isfinite(_aligned(kernel, simulator, "srtt_ms")[0])
    for name, unit, least in (("cwnd", "segments", SEGMENTS_APART), ("srtt_ms", "ms", 0.0)):
        k, s, t = _aligned(kernel, simulator, name)
        apart = np.abs(k - s) > np.maximum(least, PART_APART * np.maximum(np.abs(k), np.abs(s)))
        apart &= connected
        run = 0
        for index, is_apart in enumerate(apart):
            run = run + 1 if is_apart else 0
            if run == SAMPLES_APART:
                at = index - SAMPLES_APART + 1
                quantity = "the window" if name == "cwnd" else "the smoothed RTT"
                sides = f"{k[at]:.4g} {unit} in the kernel, {s[at]:.4g} in the simulator"
                words = f"from {t[at]:.1f} s {quantity} is {sides}, without an event before it that differs"
                return float(t[at]), words
    return None


def _aligned(kernel: FlowSeries, simulator: FlowSeries, name: str) -> tuple[Floats, Floats, Floats]:
    """Return both series at their common samples, and the times; samples are matched to 0.1 s."""
    at_k = {round(float(t) * 10): i for i, t in enumerate(kernel.t_s)}
    at_s = {round(float(t) * 10): i for i, t in enumerate(simulator.t_s)}
    common = sorted(set(at_k) & set(at_s))
    k = getattr(kernel, name)[[at_k[c] for c in common]]
    s = getattr(simulator, name)[[at_s[c] for c in common]]
    return k, s, np.array(common, dtype=np.float64) / 10


def _exactly(case: Case, flow: int, t_s: float) -> str:
    """Return the simulator's changes of state and ssthresh around that time in words, ACK by ACK."""
    recording = _every_ack(case, t_s + 2)
    samples = recording["samples"]
    mine = numbers(samples, "flow") == flow
    time, ssthresh = numbers(samples, "time_ns")[mine] / 1e9, numbers(samples, "ssthresh_bytes")[mine]
    cwnd, state = numbers(samples, "cwnd_bytes")[mine], texts(samples, "state")[mine]
    measured = Measured(recording)
    segment = measured.segment_bytes(measured.flows[flow])
    steps = []
    for index in range(1, len(time)):
        changed = ssthresh[index] != ssthresh[index - 1] and math.isfinite(ssthresh[index])
        if abs(time[index] - t_s) <= 1 and (changed or state[index] != state[index - 1]):
            to = f", ssthresh {ssthresh[index] / segment:.0f}" if math.isfinite(ssthresh[index]) else ""
            words = f"{time[index]:.3f} s {state[index - 1]} → {state[index]}"
            steps.append(f"{words}, window {cwnd[index - 1] / segment:.0f} → {cwnd[index] / segment:.0f}{to}")
    return ("\nthe simulator, ACK by ACK: " + "; ".join(steps[:8])) if steps else ""


def _every_ack(case: Case, until_s: float) -> Recording:
    spec: Json = copy.deepcopy(case.scenario)
    spec["record"]["every_ack"] = True
    started = max((flow["start_ns"] + 1 for flow in spec["flows"]), default=0)
    spec["duration_ns"] = min(spec["duration_ns"], max(started, round(until_s * 1e9)))
    changes = spec.get("changes", [])
    spec["changes"] = [change for change in changes if change["at_ns"] < spec["duration_ns"]]
    for flow in spec["flows"]:
        if flow["stop_ns"] is not None:
            flow["stop_ns"] = min(flow["stop_ns"], spec["duration_ns"])
    return simulate(spec)


HEADINGS = (
    "t s",
    *("cwnd k", "cwnd s", "ssthresh k", "ssthresh s", "srtt k", "srtt s"),
    *("flight k", "flight s", "retransmitted k", "retransmitted s"),
)
"""Headings of the table around the divergence: k for the kernel, s for the simulator."""


def _around(kernel: FlowSeries, simulator: FlowSeries, t_s: float) -> list[list[str]]:
    columns = []
    for name, digits in (("cwnd", 0), ("ssthresh", 0), ("srtt_ms", 2), ("flight", 0), ("retransmits", 0)):
        k, s, t = _aligned(kernel, simulator, name)
        columns += [[_number(value, digits) for value in side] for side in (k, s)]
    middle = int(np.searchsorted(t, t_s - 0.05))
    indices = range(max(0, middle - AROUND), min(len(t), middle + AROUND + 1))
    return [[f"{t[index]:.1f}", *(column[index] for column in columns)] for index in indices]


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"
