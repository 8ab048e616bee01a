"""Measures: functions from a recording to a figure with a unit (docs/measures.md lists them).

A flow lives from its start to its stop (the end of the run when none is recorded). Probes are
measured while some flow lives, so that a finished download does not dilute them; `idle` measures take
the rest. Percentiles interpolate linearly between the two nearest values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dragstrip.recording import Recording

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

STEADY_NS_MIN = 5_000_000_000
STEADY_RTTS = 20
"""A flow counts as steady after 5 s or 20 round trips, whichever comes later."""
STALL_S_MIN = 1.0
"""A shorter pause is no stall to somebody who watches."""

THROUGHPUT_NS = 1_000_000_000
"""Throughput is counted in spans of a second (of a recording interval, if that is longer)."""


@dataclass(frozen=True)
class Window:
    """Which part of a flow is measured."""

    after_ns: int = 0
    """Left out at the flow's start."""
    state: str | None = None
    """Only samples with this state of the algorithm."""


@dataclass(frozen=True)
class Flow:
    """A row of the table `flows`."""

    flow: int
    label: str
    cc: str
    sender: str
    receiver: str
    start_ns: int
    stop_ns: int
    bytes_received: int
    segments_sent: int
    retransmits: int
    rto_count: int
    ecn_negotiated: bool
    datagrams_lost: int | None

    @property
    def duration_s(self) -> float:
        """From start to stop."""
        return (self.stop_ns - self.start_ns) / 1e9

    @property
    def goodput_bps(self) -> float:
        """New bytes that reached the receiver, over the flow's duration."""
        return self.bytes_received * 8 / self.duration_s if self.duration_s > 0 else 0.0


class Measured:
    """A recording with what the measures need of it at hand."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.scenario = recording.scenario
        self.interval_ns = int(self.scenario["record"]["interval_ns"])
        self._sorted: dict[str, tuple[npt.NDArray[np.intp], Floats]] = {}

    @cached_property
    def flows(self) -> list[Flow]:
        """The flows in the order of the scenario."""
        end = int(self.scenario["duration_ns"])
        return [
            Flow(
                flow=row["flow"],
                label=row["label"],
                cc=row["cc"] or row["protocol"],
                sender=row["sender"],
                receiver=row["receiver"],
                start_ns=row["start_ns"],
                stop_ns=end if row["stop_ns"] is None else row["stop_ns"],
                bytes_received=row["bytes_received"] or 0,
                segments_sent=row["segments_sent"] or 0,
                retransmits=row["retransmits"] or 0,
                rto_count=row["rto_count"] or 0,
                ecn_negotiated=bool(row["ecn_negotiated"]),
                datagrams_lost=row["datagrams_lost"],
            )
            for row in self.recording["flows"].to_pylist()
        ]

    def rows(self, table: str, flow: Flow, window: Window = Window()) -> pa.Table:
        """A flow's rows in its lifetime, without the part that the window leaves out."""
        order, sorted_flows = self._by_flow(table)
        first, behind = np.searchsorted(sorted_flows, [flow.flow, flow.flow + 1])
        rows = self.recording[table].take(order[first:behind])
        time = numbers(rows, "time_ns")
        # A row of an interval table closes its interval: the interval must begin inside.
        lead = self.interval_ns if table == "received" else 0
        inside = (time - lead >= flow.start_ns + window.after_ns) & (time <= flow.stop_ns)
        if window.state is not None and "state" in rows.column_names:
            inside &= texts(rows, "state") == window.state
        return rows.filter(pa.array(inside))

    def _by_flow(self, table: str) -> tuple[npt.NDArray[np.intp], Floats]:
        """A table's rows sorted by flow, found once: a run may have a thousand flows."""
        if table not in self._sorted:
            flows = numbers(self.recording[table], "flow")
            order = np.argsort(flows, kind="stable")
            self._sorted[table] = (order, flows[order])
        return self._sorted[table]

    def segment_bytes(self, flow: Flow) -> int:
        """The MSS: the smaller MTU of both hosts less IP and TCP headers, timestamps included unless off."""
        hosts = {node["name"]: node for node in self.scenario["nodes"]}
        ends = [hosts[flow.sender], hosts[flow.receiver]]
        mtu = min(int(end["mtu_bytes"]) for end in ends)
        off = any(end["sysctl"].get("net.ipv4.tcp_timestamps") == "0" for end in ends)
        return mtu - (40 if off else 52)

    def steady_after_ns(self, flow: Flow) -> int:
        """What `steady` leaves out at the flow's start."""
        rtts = self.rtts_ms(flow, Window())
        shortest_ns = float(rtts.min()) * 1e6 if rtts.size else 0.0
        return max(STEADY_NS_MIN, round(STEADY_RTTS * shortest_ns))

    def rtts_ms(self, flow: Flow, window: Window) -> Floats:
        """Packet-level RTT samples; the kernel's latest RTT at each interval where none were recorded."""
        if window.state is None:
            rtts = present(self.rows("rtts", flow, window), "rtt_ns") / 1e6
            if rtts.size:
                return rtts
        return present(self.rows("samples", flow, window), "rtt_ns") / 1e6

    def throughput_bps(self, flow: Flow, window: Window) -> Floats:
        """Ethernet frames that arrived, retransmissions included, in each whole second.

        A recording interval holds few packets of a slow link: 12 or 13 in 100 ms at 1.5 Mbit/s, and the
        median would be above the link's rate. A flow that lives less than a second gives one figure.
        """
        received = numbers(self.rows("received", flow, window), "wire_bytes")
        return rates_bps(received, self.interval_ns)

    def written_bps(self, flow: Flow, window: Window) -> Floats:
        """What the sending socket took, sent or not, in each whole second: iperf's figure at the sender."""
        rows = self.rows("samples", flow, Window())
        so_far = np.concatenate(([0.0], numbers(rows, "bytes_written")))
        start = flow.start_ns + window.after_ns
        seconds = np.arange(start, flow.stop_ns + 1, THROUGHPUT_NS)
        behind = np.searchsorted(numbers(rows, "time_ns"), seconds, side="right")
        if window.after_ns == 0 and behind.size:
            behind[0] = 0
        return np.asarray(np.diff(so_far[behind]) * 8e9 / THROUGHPUT_NS, dtype=np.float64)

    def goodput_bps(self, flow: Flow, window: Window) -> float:
        """New bytes over time; over whole recording intervals where a part is left out."""
        if window.after_ns == 0:
            return flow.goodput_bps
        new = numbers(self.rows("received", flow, window), "new_bytes")
        return float(new.sum()) * 8e9 / (self.interval_ns * new.size) if new.size else math.nan

    def stalls_s(self, flow: Flow, window: Window) -> Floats:
        """Each time of a second or more in which no byte was acknowledged: the stream stood still."""
        rows = self.rows("samples", flow, window)
        times, acked = numbers(rows, "time_ns") / 1e9, numbers(rows, "bytes_acked")
        pauses = np.diff(times[1:][np.diff(acked) > 0])
        return np.asarray(pauses[pauses >= STALL_S_MIN], dtype=np.float64)

    def busy(self) -> tuple[int, int]:
        """From the first flow's start to the last one's stop."""
        return min(flow.start_ns for flow in self.flows), max(flow.stop_ns for flow in self.flows)

    def probe_ms(self, label: str, idle: bool = False) -> Floats:
        """Answered pings while some flow lives, or (idle) while none does."""
        return present(self._probe_rows(label, idle), "rtt_ns") / 1e6

    def probes_lost(self, label: str) -> int:
        """Pings of the whole run without an answer."""
        table = self.recording["probes"]
        rows = matching(table, "probe", label)
        return sum(bool(lost) for lost in rows["lost"].to_pylist())

    def _probe_rows(self, label: str, idle: bool) -> pa.Table:
        table = self.recording["probes"]
        rows = matching(table, "probe", label)
        start, stop = self.busy()
        time = numbers(rows, "time_ns")
        inside = (time >= start) & (time <= stop)
        return rows.filter(pa.array(~inside if idle else inside))

    def queue_rows(self, link: str) -> pa.Table:
        """A link direction's rows while some flow lives."""
        table = self.recording["queues"]
        rows = matching(table, "link", link)
        start, stop = self.busy()
        time = numbers(rows, "time_ns")
        return rows.filter(pa.array((time >= start) & (time <= stop)))

    def queue_total(self, link: str, counter: str) -> int:
        """A cumulative counter at the end of the run."""
        table = self.recording["queues"]
        values = numbers(matching(table, "link", link), counter)
        return int(values.max()) if values.size else 0

    def queued_links(self) -> list[str]:
        """Links where packets can wait or be lost, the dumbbell's bottleneck first."""
        names = [
            link["name"]
            for link in self.scenario["links"]
            if link["rate_bps"] or link.get("medium") or link["netem"] or link["qdisc"]["kind"] != "noqueue"
        ]
        return sorted(names, key=lambda name: name not in ("r-d", "r-w"))

    def jain(self) -> float | None:
        """Jain's index of the flows' goodput: 1 when all are equal, 1/n when one has everything."""
        return jain([flow.goodput_bps for flow in self.flows])


# --- arithmetic -------------------------------------------------------------------------------


def numbers(table: pa.Table, column: str) -> Floats:
    """A column as floats, NaN where it has no value."""
    return np.asarray(table[column].to_numpy(), dtype=np.float64)


def matching(table: pa.Table, column: str, value: str) -> pa.Table:
    """The rows where a text column has this value."""
    return table.filter(pa.array(texts(table, column) == value))


def present(table: pa.Table, column: str) -> Floats:
    """A column's values that are there."""
    values = numbers(table, column)
    return values[~np.isnan(values)]


def texts(table: pa.Table, column: str) -> npt.NDArray[np.object_]:
    """A text column."""
    chunks = table[column]
    if chunks.null_count or not pa.types.is_dictionary(chunks.type):
        return np.asarray(chunks.to_pylist(), dtype=object)
    # As the core writes it: few words, many rows. Each word becomes one Python object, not each row.
    parts = [
        np.asarray(chunk.dictionary.to_pylist(), dtype=object)[np.asarray(chunk.indices)]
        for chunk in chunks.chunks
        if isinstance(chunk, pa.DictionaryArray) and len(chunk)
    ]
    return np.concatenate(parts) if parts else np.asarray([], dtype=object)


def rates_bps(sizes: Floats, interval_ns: int) -> Floats:
    """Bytes of successive intervals as rates of whole seconds (of all there is, if that is less)."""
    in_a_second = max(1, min(sizes.size, round(THROUGHPUT_NS / interval_ns)))
    whole = sizes[: sizes.size // in_a_second * in_a_second].reshape(-1, in_a_second)
    return np.asarray(whole.sum(axis=1) * 8e9 / (interval_ns * in_a_second), dtype=np.float64)


def percentile(values: Floats, share: float) -> float | None:
    """The value below which `share` per cent lie; none of no values."""
    return float(np.percentile(values, share)) if values.size else None


def jain(rates: list[float]) -> float | None:
    """(Σx)² / (n·Σx²); none when nothing moved (Jain, Chiu, Hawe, DEC-TR-301, 1984)."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None


# --- the summary of a run -----------------------------------------------------------------------


def summarise(recording: Recording) -> dict[str, Any]:
    """What the result document says about a run (docs/result-json.md)."""
    run = Measured(recording)
    total_bps = sum(flow.goodput_bps for flow in run.flows)
    everything = Window()
    return {
        "duration_s": recording.scenario["duration_ns"] / 1e9,
        "flows": [
            {
                "flow": flow.flow,
                "label": flow.label,
                "cc": flow.cc,
                "goodput_bps": flow.goodput_bps,
                "throughput_bps_p50": percentile(run.throughput_bps(flow, everything), 50),
                "rtt_ms": _three(run.rtts_ms(flow, everything)),
                "retransmits": flow.retransmits,
                "segments_sent": flow.segments_sent,
                "share": flow.goodput_bps / total_bps if total_bps > 0 else None,
            }
            for flow in run.flows
        ],
        "probes": [
            {
                "target": probe["target"],
                "rtt_ms": _three(run.probe_ms(probe["label"])),
                "lost": run.probes_lost(probe["label"]),
            }
            for probe in recording.scenario["probes"]
        ],
        "queues": [_queue(run, link) for link in run.queued_links()],
        "jain": run.jain(),
    }


def _three(values: Floats) -> dict[str, float | None]:
    if not values.size:
        return dict.fromkeys(("p5", "p50", "p95"))
    return dict(zip(("p5", "p50", "p95"), map(float, np.percentile(values, (5, 50, 95))), strict=True))


def _queue(run: Measured, link: str) -> dict[str, Any]:
    backlog = present(run.queue_rows(link), "backlog_bytes")
    return {
        "link": link,
        "backlog_bytes": {
            "p50": percentile(backlog, 50),
            "p95": percentile(backlog, 95),
            "max": float(backlog.max()) if backlog.size else None,
        },
        "dropped": run.queue_total(link, "dropped"),
        "marked": run.queue_total(link, "marked"),
    }


# --- measures by name ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A measure as a claim names it."""

    level: str
    """What it is taken of: flow, probe, queue or run."""
    unit: str
    about: str
    figure: Callable[[Measured, Any, Window], Floats | float | None]
    """An array where the name goes on with a statistic (`_p50`), else the figure itself."""


def _column(table: str, column: str, divide: float = 1.0) -> Callable[[Measured, Any, Window], Floats]:
    return lambda run, flow, window: present(run.rows(table, flow, window), column) / divide


def _per_segment(column: str) -> Callable[[Measured, Any, Window], Floats]:
    return lambda run, flow, window: (
        present(run.rows("samples", flow, window), column) / run.segment_bytes(flow)
    )


def _backlog(run: Measured, link: Any, _window: Window) -> Floats:
    return present(run.queue_rows(link), "backlog_bytes")


SERIES: Mapping[str, Measure] = {
    "throughput_bps": Measure(
        "flow", "bit/s", "Ethernet frames that arrived, in each whole second", Measured.throughput_bps
    ),
    "written_bps": Measure(
        "flow", "bit/s", "what the sending socket took, in each whole second", Measured.written_bps
    ),
    "rtt_ms": Measure("flow", "ms", "round-trip time of packets", Measured.rtts_ms),
    "srtt_ms": Measure("flow", "ms", "smoothed round-trip time", _column("samples", "srtt_ns", 1e6)),
    "cwnd_packets": Measure(
        "flow", "packets", "congestion window in full segments", _per_segment("cwnd_bytes")
    ),
    "cwnd_bytes": Measure("flow", "B", "congestion window", _column("samples", "cwnd_bytes")),
    "flight_packets": Measure(
        "flow", "packets", "bytes in flight in full segments", _per_segment("bytes_in_flight")
    ),
    "probe_ms": Measure(
        "probe", "ms", "pings while some flow lives", lambda run, probe, _: run.probe_ms(probe)
    ),
    "probe_idle_ms": Measure(
        "probe", "ms", "pings while no flow lives", lambda run, probe, _: run.probe_ms(probe, idle=True)
    ),
    "backlog_bytes": Measure("queue", "B", "bytes in the queue, at every recording interval", _backlog),
}
"""Names that go on with `_p5`, `_p50` (any percentile), `_min`, `_max`, `_mean`, `_first` or `_last`."""

FIGURES: Mapping[str, Measure] = {
    "goodput_bps": Measure("flow", "bit/s", "new bytes over the flow's duration", Measured.goodput_bps),
    "datagrams_lost": Measure(
        "flow", "packets", "datagrams that did not arrive", lambda _r, flow, _w: flow.datagrams_lost
    ),
    "goodput_bps_steady": Measure(
        "flow",
        "bit/s",
        "goodput without the first 5 s or 20 round trips, whichever is longer",
        lambda run, flow, _: run.goodput_bps(flow, Window(run.steady_after_ns(flow))),
    ),
    "stalls": Measure(
        "flow",
        "1",
        "how often nothing was acknowledged for a second or more",
        lambda run, flow, window: float(run.stalls_s(flow, window).size),
    ),
    "stall_s_longest": Measure(
        "flow",
        "s",
        "the longest time in which nothing was acknowledged; 0 below a second",
        lambda run, flow, window: float(run.stalls_s(flow, window).max(initial=0.0)),
    ),
    "share": Measure(
        "flow",
        "1",
        "part of the goodput of all flows",
        lambda run, flow, _: flow.goodput_bps / sum(other.goodput_bps for other in run.flows),
    ),
    "retransmits": Measure(
        "flow", "segments", "segments sent again", lambda _r, flow, _w: float(flow.retransmits)
    ),
    "segments_sent": Measure(
        "flow", "segments", "segments sent, again ones too", lambda _r, flow, _w: float(flow.segments_sent)
    ),
    "timeouts": Measure(
        "flow", "1", "retransmission timer expiries", lambda _r, flow, _w: float(flow.rto_count)
    ),
    "completion_s": Measure("flow", "s", "from start to stop", lambda _r, flow, _w: flow.duration_s),
    "ecn_negotiated": Measure(
        "flow", "1", "1 if both ends agreed on ECN", lambda _r, flow, _w: float(flow.ecn_negotiated)
    ),
    "probe_lost": Measure(
        "probe", "1", "pings without an answer", lambda run, probe, _: float(run.probes_lost(probe))
    ),
    "dropped": Measure(
        "queue", "packets", "packets dropped", lambda run, link, _: float(run.queue_total(link, "dropped"))
    ),
    "marked": Measure(
        "queue",
        "packets",
        "packets marked by ECN",
        lambda run, link, _: float(run.queue_total(link, "marked")),
    ),
    "jain": Measure("run", "1", "Jain's index of the flows' goodput", lambda run, _n, _w: run.jain()),
    "carried_bps": Measure(
        "run",
        "bit/s",
        "new bytes of all flows over the run's duration",
        lambda run, _n, _w: (
            sum(flow.bytes_received for flow in run.flows) * 8e9 / run.scenario["duration_ns"]
        ),
    ),
    "goodput_bps_total": Measure(
        "run",
        "bit/s",
        "goodput of all flows together",
        lambda run, _n, _w: sum(flow.goodput_bps for flow in run.flows),
    ),
}
"""Names that are a figure as they stand."""

STATISTICS: Mapping[str, Callable[[Floats], float]] = {
    "min": lambda values: float(values.min()),
    "max": lambda values: float(values.max()),
    "mean": lambda values: float(values.mean()),
    "first": lambda values: float(values[0]),
    "last": lambda values: float(values[-1]),
}


def find(name: str) -> Measure | None:
    """The measure called `name`, its statistic applied; none if there is no such name."""
    if name in FIGURES:
        return FIGURES[name]
    parts = re.fullmatch(r"(\w+)_(?:p(\d{1,2}(?:\.\d+)?)|(min|max|mean|first|last))", name)
    if parts is None or parts[1] not in SERIES:
        return None
    series = SERIES[parts[1]]
    share = parts[2]
    statistic = (
        STATISTICS[parts[3]] if parts[3] else lambda values: float(np.percentile(values, float(share)))
    )

    def figure(run: Measured, of: Any, window: Window) -> float | None:
        values = np.asarray(series.figure(run, of, window))
        return statistic(values) if values.size else None

    return Measure(series.level, series.unit, series.about, figure)


def names() -> list[str]:
    """All names, for messages: a series stands with its median."""
    return [*FIGURES, *(f"{name}_p50" for name in SERIES)]
