"""What is run: the cases, the programs, and each program's command line for a case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Case:
    """Bulk flows through one bottleneck with a FIFO of one bandwidth-delay product."""

    flows: int
    cc: str
    mbps: int
    rtt_ms: int
    seconds: int
    layout: Literal["hub", "lump"] = "hub"

    @property
    def name(self) -> str:
        """Short, for `--cases` and the tables."""
        return f"{self.flows}-{self.cc}" + ("" if self.flows < 1000 else f"-{self.layout}")

    @property
    def title(self) -> str:
        """For people."""
        return (
            f"{self.flows} {self.cc}, {self.mbps} Mbit/s, {self.rtt_ms} ms, {self.seconds} s, {self.layout}"
        )

    @property
    def packets_per_flow(self) -> float:
        """Packets in flight per flow when pipe and queue (one BDP each) are full."""
        return 2 * self.mbps * 1e3 * self.rtt_ms / 8 / 1500 / self.flows


class Program(StrEnum):
    """Who runs."""

    DRAGSTRIP = "dragstrip"
    NS3 = "ns-3"
    NS2 = "ns-2"
    FLOOR_LAZY = "floor, lazy"
    FLOOR_FUSED = "floor, fused"


class Record(StrEnum):
    """What this simulator records; `dragstrip-bench sim --record`."""

    NONE = "none"
    INTERVAL = "100ms"
    DEFAULT = "default"
    EVERY_ACK = "every-ack"


CASES = (
    Case(1, "cubic", 100, 20, 60),
    Case(10, "cubic", 100, 20, 60),
    Case(30, "reno", 100, 300, 60),
    Case(100, "cubic", 1000, 20, 10),
    # Between two hosts: the layout that costs ns-3 and ns-2 least.
    Case(1000, "cubic", 1000, 50, 5, "lump"),
    Case(1000, "cubic", 1000, 50, 5, "hub"),
)

# With 1000 sending hosts ns-3 and ns-2 spend their time on searching nodes and on routes.
LUMP_ONLY = frozenset({Program.NS3, Program.NS2})

# Case 10,000 has nobody to race: it is there for memory, and to show that it runs.
CROWD = Case(10_000, "cubic", 10_000, 50, 2)

# A fast program runs a case several times in one process, so that the clock has something to measure.
REPEAT = {Program.DRAGSTRIP: 5, Program.FLOOR_LAZY: 10, Program.FLOOR_FUSED: 20}


def runs_case(program: Program, case: Case) -> bool:
    """Whether `program` is raced on `case`."""
    return program not in LUMP_ONLY or case.flows < 1000 or case.layout == "lump"


def shortened(case: Case) -> Case:
    """A case for ns-3 in a hurry: the first sixth, but no less than a second or 40 round trips."""
    seconds = max(1, case.seconds // 6, -(-40 * case.rtt_ms // 1000))
    return replace(case, seconds=min(case.seconds, seconds))


@dataclass(frozen=True)
class Binaries:
    """Where the programs are; None: not available."""

    dragstrip: Path
    ns3: Path | None
    ns2: Path | None
    ns2_script: Path

    def available(self, program: Program) -> bool:
        """Whether `program` can be run here."""
        if program is Program.NS3:
            return self.ns3 is not None
        return program is not Program.NS2 or self.ns2 is not None

    def command(self, program: Program, case: Case, repeat: int = 1, record: str = Record.NONE) -> list[str]:
        """The command line."""
        size = [str(n) for n in (case.flows, case.mbps, case.rtt_ms, case.seconds)]
        flows, mbps, rtt_ms, seconds = size
        if program is Program.NS3:
            options = {"flows": flows, "cc": case.cc, "mbps": mbps, "rtt": rtt_ms, "seconds": seconds}
            return [
                str(self.ns3),
                *(f"--{key}={value}" for key, value in options.items()),
                f"--layout={case.layout}",
            ]
        if program is Program.NS2:
            return [
                str(self.ns2),
                str(self.ns2_script),
                flows,
                case.cc,
                mbps,
                rtt_ms,
                seconds,
                case.layout,
            ]
        path = ["--flows", flows, "--mbps", mbps, "--rtt-ms", rtt_ms, "--seconds", seconds]
        path += ["--repeat", str(repeat)]
        if program is Program.DRAGSTRIP:
            sim = ["--cc", case.cc, "--layout", case.layout, "--record", record]
            return [str(self.dragstrip), "sim", *path, *sim]
        variant = "lazy" if program is Program.FLOOR_LAZY else "fused"
        return [str(self.dragstrip), "floor", *path, "--variant", variant]
