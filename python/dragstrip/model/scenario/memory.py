"""The memory of this machine, and whether a scenario's recording fits into it."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from collections.abc import Mapping
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw
from dragstrip.io.untrusted import rows_within

COPIES = 4
"""Peak memory of a run or its report over the estimate of the recording's columns.

Columns are held as the simulator wrote them, as the figures read them, as Arrow tables and as the file's
buffers. Measured: 78 bytes a row of `rtts` in a run and 96 in its report, for an estimate of 24; 406 bytes a
row of `samples`, for 112.
"""


def memory_bytes() -> int:
    """Return the machine's physical memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def release_memory() -> None:
    """Return freed memory to the system, which glibc does not do by itself if it is fragmented."""
    with contextlib.suppress(OSError, AttributeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


REPORT_COLUMNS = {"samples": 7, "rtts": 3}
"""Columns that a report reads together, of the tables that may have a row for every ACK."""


ROWS_MARGIN = 1.25
"""Rows that a table may have over their estimate: after a loss every packet is acknowledged."""


def refuse_if_too_large(scenario: _core.Scenario, duration_ns: int, source: str = "") -> None:
    """Raise `BadInputError` about the duration if the recording fits into no memory or no report.

    The duration that the error offers passes if the recording grows in proportion to it.
    """
    reasons: list[tuple[float, str]] = []
    recording_bytes, *rows_of_tables = scenario.recording_size
    needed, available = COPIES * recording_bytes, memory_bytes()
    if needed > available:
        reason = f"the recording would need {_gib(needed)} of memory, this machine has {_gib(available)}"
        reasons.append((available / needed, reason))
    for (table, columns), rows in zip(REPORT_COLUMNS.items(), rows_of_tables, strict=True):
        rows_max = rows_within(columns) / ROWS_MARGIN
        if rows > rows_max:
            millions = f"{rows / 1e6:,.0f} million rows, a report reads at most {rows_max / 1e6:,.0f} million"
            reasons.append((rows_max / rows, f"its table `{table}` would have about {millions}"))
    if reasons:
        share, reason = min(reasons)
        seconds = duration_ns / 1e9
        offer = f"at most about {_rounded_down(seconds * share)}s: {reason}"
        advice = _advice(scenario.document()["record"])
        raise BadInputError("duration", Raw(f"{seconds:g}s"), f"{offer}{advice}", source)


def _gib(size_bytes: float) -> str:
    gib = size_bytes / 2**30
    return f"{gib:.3g} GiB" if gib < 1000 else f"{gib:,.0f} GiB"


def _rounded_down(seconds: float) -> str:
    """Return a time with three digits that is no longer."""
    places = 2 - math.floor(math.log10(seconds))
    return f"{math.floor(seconds * 10**places) / 10**places:.{max(0, places)}f}"


def _advice(record: Mapping[str, Any]) -> str:
    """Return which settings of `record` make this recording smaller."""
    settings = [
        ("every_ack", "record.every_ack = false"),
        ("rtts", "record.rtts = false (`--no-rtts`)"),
        ("cc_state", "record.cc_state = false"),
        ("captures", "record.captures = false"),
    ]
    helpful = [text for field, text in settings if record.get(field)] or ["a longer record.interval"]
    return f"; {' or '.join(helpful)} makes it smaller"
