"""What this machine can hold."""

from __future__ import annotations

import os
from typing import Any

from dragstrip.errors import BadInputError, Raw

FRAME_BITS = 1514 * 8
UNSHAPED_BPS = 10_000_000_000
"""Where nothing limits a path, the memory estimate takes this rate."""
BYTES_PER_SAMPLE = 15 * 8
BYTES_PER_RTT = 3 * 8


def memory_bytes() -> int:
    """The machine's physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def recording_bytes(scenario: dict[str, Any]) -> int:
    """An upper estimate of a scenario's recording in memory.

    A row per flow and interval in `samples` and `received`, per link and interval in `queues`, and per
    full-sized packet that the path can carry in `rtts` (and in `samples` when every ACK is recorded).
    """
    seconds = scenario["duration_ns"] / 1e9
    intervals = scenario["duration_ns"] / max(1, scenario["record"]["interval_ns"])
    rows = intervals * (2 * len(scenario["flows"]) + len(scenario["links"]))
    packets = seconds * _rate_bps(scenario["links"]) / FRAME_BITS
    per_packet = BYTES_PER_RTT if scenario["record"]["rtts"] else 0
    per_packet += BYTES_PER_SAMPLE if scenario["record"]["every_ack"] else 0
    probes = sum(scenario["duration_ns"] / max(1, probe["interval_ns"]) for probe in scenario["probes"])
    return int(rows * BYTES_PER_SAMPLE + packets * per_packet + probes * 5 * 8)


def refuse_if_too_large(scenario: dict[str, Any], source: str = "") -> None:
    """Raises `BadInputError` naming the duration if the recording would not fit into memory."""
    # Half: Arrow's copy and the file's buffers stand beside the simulator's columns.
    needed, available = 2 * recording_bytes(scenario), memory_bytes()
    if needed > available:
        seconds = scenario["duration_ns"] / 1e9
        fitting = seconds * available / needed
        raise BadInputError(
            "duration",
            Raw(f"{seconds:.0f}s"),
            f"at most about {fitting:.3g}s: the recording would need {needed / 2**30:.3g} GiB of memory, "
            f"this machine has {available / 2**30:.3g} GiB"
            " (a longer record.interval, or record.rtts = false, needs less)",
            source,
        )


def _rate_bps(links: list[dict[str, Any]]) -> float:
    """The fastest of the links that have a rate: no flow's packets pass more often than that for long."""
    rates = [rate for link in links for rate in (link["rate_bps"], link["qdisc"].get("rate_bps")) if rate]
    return float(max(rates, default=UNSHAPED_BPS))
