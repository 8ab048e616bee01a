"""Trace of a flow over time, in the same terms for a capture and for a run of the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dragstrip.model.recording import Recording

FloatArray: TypeAlias = npt.NDArray[np.float64]

QUANTILES = (5, 50, 95)
STATES_S = 0.1
"""Seconds between two states of a flow."""


@dataclass(frozen=True)
class FlowTrace:
    """A flow over time; times are in seconds from the beginning of the flow."""

    duration_s: float
    rtt_at_s: FloatArray
    rtt_ms: FloatArray
    """A sample per acknowledgement; empty unless the sender's side is known."""
    at_s: FloatArray
    """Times of the states below, each 100 ms."""
    flight_bytes: FloatArray
    acked_bytes: FloatArray
    retransmits: FloatArray
    """So far."""
    delivered_bytes: float
    retransmitted: int

    @property
    def goodput_bps(self) -> float:
        """New bytes over the duration."""
        return self.delivered_bytes * 8 / self.duration_s if self.duration_s > 0 else 0.0

    @cached_property
    def rtt_quantiles_ms(self) -> tuple[float, float, float] | None:
        """The 5th, 50th and 95th percentile, or None without samples."""
        if not len(self.rtt_ms):
            return None
        low, middle, high = np.percentile(self.rtt_ms, QUANTILES)
        return float(low), float(middle), float(high)

    def delivered_at(self, times_s: FloatArray) -> FloatArray:
        """Return how many bytes had been delivered at these times."""
        at = np.concatenate(([0.0], self.at_s))
        delivered = np.concatenate(([0.0], self.acked_bytes))
        return np.interp(times_s, at, delivered)

    def first(self, duration_s: float) -> FlowTrace:
        """Return the flow as if it had ended after so many seconds."""
        if duration_s >= self.duration_s - STATES_S:
            return self
        trips, states = self.rtt_at_s <= duration_s, self.at_s <= duration_s
        acked, again = self.acked_bytes[states], self.retransmits[states]
        return FlowTrace(
            duration_s,
            self.rtt_at_s[trips],
            self.rtt_ms[trips],
            self.at_s[states],
            self.flight_bytes[states],
            acked,
            again,
            float(acked[-1]) if len(acked) else 0.0,
            int(again[-1]) if len(again) else 0,
        )


def of_recording(recording: Recording, flow: int = 0, delivered: str = "bytes_acked") -> FlowTrace:
    """Return a flow of a recording, be it a run's or that of a capture (`captures.inspect`)."""
    (row,) = (row for row in recording["flows"].to_pylist() if row["flow"] == flow)
    begin = row["start_ns"]
    trips, states = (_columns(recording, table, flow) for table in ("rtts", "samples"))
    total = float(row[delivered] if row[delivered] is not None else row["bytes_acked"])
    return FlowTrace(
        (row["stop_ns"] - begin) / 1e9,
        (trips["time_ns"] - begin) / 1e9,
        trips["rtt_ns"] / 1e6,
        (states["time_ns"] - begin) / 1e9,
        states["bytes_in_flight"],
        np.maximum.accumulate(states["bytes_acked"]) if len(states["bytes_acked"]) else states["bytes_acked"],
        states["retransmits"],
        total,
        int(row["retransmits"] or 0),
    )


def _columns(recording: Recording, name: str, flow: int) -> Mapping[str, Any]:
    table = recording[name]
    mine = table["flow"].to_numpy() == flow
    columns = ("time_ns", "rtt_ns", "bytes_in_flight", "bytes_acked", "retransmits")
    return {
        column: np.nan_to_num(table[column].to_numpy()[mine].astype(np.float64))
        for column in columns
        if column in table.column_names and column != ("rtt_ns" if name == "samples" else "")
    }
