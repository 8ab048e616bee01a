"""Facts of congestion controls, from their rows in `crates/cc`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from dragstrip import _core


@cache
def rows() -> Mapping[str, Mapping[str, Any]]:
    """Return each algorithm's row by its name: source, signal, parameters, variables, needs."""
    return {row["name"]: row for row in _core.algorithm_table()}


@cache
def modules() -> tuple[str, ...]:
    """Return the modules of Linux that have congestion controls, sorted."""
    return tuple(sorted(row["module"] for row in rows().values() if row["module"] is not None))


@cache
def random_in_linux() -> tuple[str, ...]:
    """Return Linux's algorithms that draw random numbers, so that a run is one sample of many; sorted.

    CDG backs off with a probability (tcp_cdg_backoff), BBR begins PROBE_BW at a random phase
    (bbr_reset_probe_bw_mode), LP measures delay from the peer's time stamps, which begin at a random number
    (secure_tcp_ts_off, tcp_lp_remote_hz_estimator), and NV looks for a shorter RTT after a random time
    (tcpnv_acked).
    """
    return tuple(
        sorted(name for name, row in rows().items() if row["module"] is not None and row["needs"]["dice"])
    )


def settles(name: str) -> bool:
    """Return whether an algorithm's window stands still on a steady path without a loss.

    `name` may have the kernel's spelling, `_` for `-`.
    """
    row = rows().get(name.replace("_", "-"))
    return row is not None and bool(row["settles"])
