"""What a comparison with other simulators measures: times, sizes of recordings, memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from cases import Program, Record
from measure import Summary


@dataclass(frozen=True)
class Memory:
    """One measurement of memory with many flows, and the one-flow figure it is held against."""

    flows: int
    packets_per_flow: float
    peak_rss_kib: int
    base_rss_kib: int
    data_packets: int
    user_s: float

    @property
    def bytes_per_flow(self) -> float:
        """Packets in flight included."""
        return (self.peak_rss_kib - self.base_rss_kib) * 1024 / self.flows


@dataclass
class Results:
    """All that was measured."""

    machine: str
    load_at_start: float
    quick: bool
    races: dict[str, dict[Program, Summary]] = field(default_factory=dict)
    """Case name, then program."""
    recording: dict[str, dict[Record, Summary]] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
