"""What is compared, in one form for both sides: series every 100 ms, totals, pings, the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dragstrip.fidelity.kernel import KernelRun
from dragstrip.fidelity.translate import LATE_MS_MAX, QUEUE
from dragstrip.measures import matching, numbers, present
from dragstrip.recording import Recording

Floats = npt.NDArray[np.float64]

DIGITS = 2
"""Of a millisecond: recordings of the kernel hold hundredths.

A distribution of one or two values has its steps there, and more digits on one side alone would count
as a difference.
"""


@dataclass(frozen=True)
class FlowTrace:
    """A flow's series (same length, NaN where there is no value) and totals. Windows are in segments."""

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
class Trace:
    """A run of either side."""

    flows: list[FlowTrace]
    recoveries: int | None
    """Loss epochs of all flows by the endpoint's own count, where it has one."""
    ping_ms: Floats
    queue_t_s: Floats
    queue_bytes: Floats

    @property
    def goodput_bps(self) -> float:
        """Of all flows together."""
        return sum(flow.goodput_bps for flow in self.flows)

    @property
    def srtt_ms(self) -> Floats:
        """Smoothed RTTs of all flows, as sampled."""
        return np.concatenate([flow.srtt_ms[np.isfinite(flow.srtt_ms)] for flow in self.flows])


def _floats(values: Sequence[Any]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def of_kernel(run: KernelRun) -> Trace:
    """A kernel's recording. A window of -1 and a smoothed RTT of 0 are the kernel's words for none yet."""
    flows = []
    for flow in run.flows:
        series = {key: _floats(values) for key, values in flow["series"].items()}
        lived_s = flow["stop_s"] - flow["start_s"]
        flows.append(
            FlowTrace(
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
    return Trace(
        flows,
        _recoveries(run),
        pings[np.isfinite(pings)],
        np.arange(len(backlog), dtype=np.float64) * step_s,
        backlog,
    )


def _recoveries(run: KernelRun) -> int | None:
    """Entries into recovery and timeouts, from the senders' own counters (netstat -s)."""
    counters = [run.content.get("netstat", {}).get(flow["src"]) for flow in run.flows]
    if not all(counters):
        return None
    by_host = {flow["src"]: counter for flow, counter in zip(run.flows, counters, strict=True)}
    words = ("TCPSackRecovery", "TCPRenoRecovery", "TCPTimeouts")
    return sum(int(counter.get(word, 0)) for counter in by_host.values() for word in words)


def of_simulator(recording: Recording, segment_bytes: int) -> Trace:
    """Our recording of the same scenario."""
    end_ns = recording.scenario["duration_ns"]
    samples = recording["samples"]
    of_flow = numbers(samples, "flow")
    columns = {
        name: numbers(samples, name)
        for name in ("time_ns", "cwnd_bytes", "ssthresh_bytes", "srtt_ns", "bytes_in_flight", "retransmits")
    }
    flows = []
    for row in recording["flows"].to_pylist():
        mine = {name: values[of_flow == row["flow"]] for name, values in columns.items()}
        start_ns = recording.scenario["flows"][row["flow"]]["start_ns"]
        # One that was late counts from when it should have started, as the kernel's does.
        start_ns = 0 if start_ns <= LATE_MS_MAX * 1e6 else start_ns
        lived_s = ((end_ns if row["stop_ns"] is None else row["stop_ns"]) - start_ns) / 1e9
        flows.append(
            FlowTrace(
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
    queue = matching(recording["queues"], "link", QUEUE)
    return Trace(
        flows,
        sum(row["reductions"] or 0 for row in recording["flows"].to_pylist()),
        np.round(present(recording["probes"], "rtt_ns") / 1e6, DIGITS),
        numbers(queue, "time_ns") / 1e9,
        numbers(queue, "backlog_bytes"),
    )


# --- reductions ---------------------------------------------------------------------------------

DEPTH = 0.9
"""A reduction takes the threshold below this part of the window: every algorithm here goes to 0.85 or less.
HyStart's end of slow start, no reduction, sets it to the window itself."""


@dataclass(frozen=True)
class Change:
    """A threshold that was newly set: at which sample, to what, and the window before."""

    index: int
    t_s: float
    ssthresh: float
    cwnd: float

    @property
    def reduction(self) -> bool:
        """Whether it lies far enough below the window."""
        return self.ssthresh < DEPTH * self.cwnd


def changes(flow: FlowTrace) -> list[Change]:
    """Every change of the slow-start threshold that the samples show; two between samples are seen as one."""
    found = []
    before = np.nan
    for index, value in enumerate(flow.ssthresh):
        if np.isfinite(value) and value != before:
            window = float(np.nanmax(flow.cwnd[max(0, index - 2) : index + 1]))
            found.append(Change(index, float(flow.t_s[index]), float(value), window))
            before = value
    return found


def falls(flow: FlowTrace) -> int:
    """How often the window fell by a tenth or more from a peak, as far as the samples show.

    Held against the kernel's counters where only losses reduce the window: within one or a tenth in 41 of
    the 48 recordings with at most 100; the rest are those with 1 % loss, where reductions come closer
    together than samples.
    """
    count, peak, trough, falling = 0, 0.0, 0.0, False
    for window in flow.cwnd[np.isfinite(flow.cwnd)]:
        if falling and window <= trough:
            trough = window
        elif falling:
            falling, peak = False, window
        elif window < DEPTH * peak:
            count, falling, trough = count + 1, True, window
        else:
            peak = max(peak, window)
    return count
