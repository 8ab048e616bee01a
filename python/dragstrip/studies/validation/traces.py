"""The compared data in one form for both sides: series every 100 ms, totals, pings and the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import matching, numbers, texts
from dragstrip.model.scenario.paths import path_of
from dragstrip.results.measures import Measured
from dragstrip.studies.validation.kernel import Json, KernelRun
from dragstrip.studies.validation.translate import LATE_MS_MAX

Floats = npt.NDArray[np.float64]

DIGITS = 2
"""Decimals of a millisecond; recordings of the kernel have hundredths.

A distribution of one or two values has its steps there, so that more digits on one side alone would count as
a difference.
"""


@dataclass(frozen=True)
class FlowSeries:
    """A flow's series (same length, NaN for missing values) and totals; windows are in segments."""

    cc: str
    t_s: Floats
    cwnd: Floats
    ssthresh: Floats
    srtt_ms: Floats
    flight: Floats
    retransmits: Floats
    goodput_bps: float
    retransmits_total: int


@dataclass(frozen=True)
class TimeLine:
    """A run of either side."""

    flows: list[FlowSeries]
    recoveries: int | None
    """Loss epochs of all flows by the endpoint's own count, or None."""
    ping_ms: Floats
    queue_t_s: Floats
    queue_bytes: Floats
    drops: int
    """Packets dropped by the bottleneck's queue."""
    marks: int | None
    """Packets marked by the bottleneck's queue (ECN); None if the recording does not count them."""

    @property
    def goodput_bps(self) -> float:
        """The sum of all flows' goodputs, in bit/s."""
        return sum(flow.goodput_bps for flow in self.flows)

    @property
    def retransmits(self) -> int:
        """Segments retransmitted, over all flows."""
        return sum(flow.retransmits_total for flow in self.flows)

    @property
    def falls(self) -> int:
        """Falls of all windows that the samples show."""
        return sum(len(falls(flow)) for flow in self.flows)

    @property
    def srtt_ms(self) -> Floats:
        """Smoothed RTTs of all flows in ms, as sampled."""
        return np.concatenate([flow.srtt_ms[np.isfinite(flow.srtt_ms)] for flow in self.flows])


def _floats(values: Sequence[Any]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def of_kernel(run: KernelRun) -> TimeLine:
    """Convert a kernel's recording, in which a window of -1 and a smoothed RTT of 0 mean none yet."""
    flows = []
    for flow in run.flows:
        series = {key: _floats(values) for key, values in flow["series"].items()}
        lived_s = flow["stop_s"] - flow["start_s"]
        flows.append(
            FlowSeries(
                cc=flow["cc"],
                t_s=series["t_s"],
                cwnd=series["cwnd"],
                ssthresh=np.where(series["ssthresh"] < 0, np.nan, series["ssthresh"]),
                srtt_ms=np.where(series["srtt_ms"] > 0, series["srtt_ms"], np.nan),
                flight=series["unacked"],
                retransmits=series["retrans"],
                goodput_bps=flow["rx_bytes"] * 8 / lived_s if lived_s > 0 else 0.0,
                retransmits_total=int(flow["retrans"]),
            )
        )
    pings = _floats(run.content["ping_series"]["rtt_ms"])
    backlog = _floats(run.content["queue_series"]["backlog_bytes"])
    step_s = float(run.content["queue_series"].get("t_s_step", 0.1))
    return TimeLine(
        flows,
        _recoveries(run.content.get("netstat", {}), [flow["src"] for flow in run.flows]),
        pings[np.isfinite(pings)],
        np.arange(len(backlog), dtype=np.float64) * step_s,
        backlog,
        _last(run.content["queue_series"]["drops"]) or 0,
        _last(run.content["queue_series"].get("ecn_marks")),
    )


def _last(counter: Sequence[int] | None) -> int | None:
    """Return the last value of a growing counter."""
    return int(counter[-1]) if counter else None


RECOVERIES = ("TCPSackRecovery", "TCPRenoRecovery", "TCPTimeouts")
"""Counters of a kernel's host (netstat -s) that together count every loss epoch."""


def _recoveries(counters: Json, senders: Iterable[str]) -> int | None:
    """Return these hosts' entries into recovery plus timeouts, or None if one's counters are missing."""
    by_host = {sender: counters.get(sender) for sender in senders}
    if any(host_counters is None for host_counters in by_host.values()):
        return None
    return sum(
        int((host_counters or {}).get(word, 0)) for host_counters in by_host.values() for word in RECOVERIES
    )


def of_recording(recording: Recording, queue_link: str | None) -> TimeLine:
    """Convert a recording of any engine; `queue_link` is the bottleneck."""
    measured = Measured(recording)
    end_ns = recording.scenario["duration_ns"]
    samples = recording["samples"]
    of_flow = numbers(samples, "flow")
    columns = {
        name: numbers(samples, name)
        for name in ("time_ns", "cwnd_bytes", "ssthresh_bytes", "srtt_ns", "bytes_in_flight", "retransmits")
    }
    flows = []
    for row, flow in zip(recording["flows"].to_pylist(), measured.flows, strict=True):
        segment_bytes = measured.segment_bytes(flow)
        mine = {name: values[of_flow == row["flow"]] for name, values in columns.items()}
        start_ns = recording.scenario["flows"][row["flow"]]["start_ns"]
        # One that was late counts from when it should have started, as the kernel's does.
        start_ns = 0 if start_ns <= LATE_MS_MAX * 1e6 else start_ns
        lived_s = ((end_ns if row["stop_ns"] is None else row["stop_ns"]) - start_ns) / 1e9
        flows.append(
            FlowSeries(
                cc=row["cc"],
                t_s=mine["time_ns"] / 1e9,
                cwnd=mine["cwnd_bytes"] / segment_bytes,
                ssthresh=mine["ssthresh_bytes"] / segment_bytes,
                srtt_ms=np.where(mine["srtt_ns"] > 0, np.round(mine["srtt_ns"] / 1e6, DIGITS), np.nan),
                flight=mine["bytes_in_flight"] / segment_bytes,
                retransmits=mine["retransmits"],
                goodput_bps=row["bytes_received"] * 8 / lived_s if lived_s > 0 else 0.0,
                retransmits_total=int(row["retransmits"]),
            )
        )
    queue = matching(recording["queues"], "link", queue_link or "")
    counters = recording.provenance.get("verified", {}).get("netstat")
    if counters is not None:  # a kernel has its own
        recoveries = _recoveries(counters, counters)
    else:
        recoveries = sum(row["reductions"] or 0 for row in recording["flows"].to_pylist())
    return TimeLine(
        flows,
        recoveries,
        _pings_ms(recording, queue_link, min(flow.start_ns for flow in measured.flows)),
        numbers(queue, "time_ns") / 1e9,
        numbers(queue, "backlog_bytes"),
        _last(numbers(queue, "dropped").tolist()) or 0,
        _last(numbers(queue, "marked").tolist()) or 0,
    )


def _pings_ms(recording: Recording, queue_link: str | None, start_ns: int) -> Floats:
    """Return the answered pings that pass the bottleneck, from the first flow's start.

    A flow that started late should have started at 0.
    """
    passing = []
    for probe in recording.scenario["probes"]:
        way = path_of(recording.scenario, probe["from"], probe["target"])
        if queue_link in [link["name"] for link in way.links]:
            passing.append(probe["label"])
    probes = recording["probes"]
    rtt_ns, sent_ns = numbers(probes, "rtt_ns"), numbers(probes, "time_ns")
    mask = np.isfinite(rtt_ns) & (sent_ns >= (0 if start_ns <= LATE_MS_MAX * 1e6 else start_ns))
    mask &= np.isin(texts(probes, "probe").astype(str), passing)
    return np.asarray(np.round(rtt_ns[mask] / 1e6, DIGITS), dtype=np.float64)


# --- reductions ---------------------------------------------------------------------------------

DEPTH = 0.9
"""Factor of the window below which a new threshold counts as a reduction. Every algorithm here goes to 0.85
or less; HyStart's end of slow start, which is no reduction, sets the threshold to the window itself."""


@dataclass(frozen=True)
class ThresholdChange:
    """A new threshold: the sample, the value, and the window before."""

    index: int
    t_s: float
    ssthresh: float
    cwnd: float

    @property
    def reduction(self) -> bool:
        """True when the threshold lies far enough below the window to be a reduction."""
        return self.ssthresh < DEPTH * self.cwnd


def changes(flow: FlowSeries) -> list[ThresholdChange]:
    """Return every change of the slow-start threshold that the samples show.

    Two between samples count as one.
    """
    threshold_changes = []
    before = np.nan
    for index, value in enumerate(flow.ssthresh):
        if np.isfinite(value) and value != before:
            window = float(np.nanmax(flow.cwnd[max(0, index - 2) : index + 1]))
            threshold_changes.append(ThresholdChange(index, float(flow.t_s[index]), float(value), window))
            before = value
    return threshold_changes


def falls(flow: FlowSeries) -> list[int]:
    """Return the samples at which the window had fallen by a tenth or more from a peak, each fall once.

    Checked against the kernel's counters where only losses reduce the window: equal within one or a tenth in
    41 of the 48 recordings with at most 100. The others have 1 % loss, where reductions are closer together
    than samples.
    """
    fall_indices, peak, trough, falling = [], 0.0, 0.0, False
    for index in np.flatnonzero(np.isfinite(flow.cwnd)):
        window = float(flow.cwnd[index])
        if falling and window <= trough:
            trough = window
        elif falling:
            falling, peak = False, window
        elif window < DEPTH * peak:
            fall_indices.append(int(index))
            falling, trough = True, window
        else:
            peak = max(peak, window)
    return fall_indices
