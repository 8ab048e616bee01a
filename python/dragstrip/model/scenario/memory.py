"""The memory of this machine, and whether a scenario's recording fits into it."""

from __future__ import annotations

import contextlib
import ctypes
import os

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


REPORT_COLUMNS = {"samples": 6, "rtts": 3}
"""Columns that a report reads together, of the tables that may have a row for every ACK."""


def refuse_if_too_large(scenario: _core.Scenario, duration_ns: int, source: str = "") -> None:
    """Raise `BadInputError` about the duration if the recording fits into no memory or no report."""
    needed, available = COPIES * scenario.recording_bytes, memory_bytes()
    if needed > available:
        need = f"{needed / 2**30:.3g} GiB of memory, this machine has {available / 2**30:.3g} GiB"
        raise _too_long(duration_ns, available / needed, f"the recording would need {need}", source)
    for (table, columns), rows in zip(REPORT_COLUMNS.items(), scenario.rows_per_ack, strict=True):
        rows_max = rows_within(columns)
        if rows > rows_max:
            need = f"{rows / 1e6:.0f} million rows, a report reads at most {rows_max / 1e6:.0f} million"
            raise _too_long(duration_ns, rows_max / rows, f"its table `{table}` would have {need}", source)


def _too_long(duration_ns: int, share: float, reason: str, source: str) -> BadInputError:
    """Return the error for a duration of which only this share would do."""
    seconds = duration_ns / 1e9
    expected = f"at most about {seconds * share:.3g}s: {reason} ({_ADVICE})"
    return BadInputError("duration", Raw(f"{seconds:g}s"), expected, source)


_ADVICE = (
    "record.every_ack = false, record.rtts = false (`--no-rtts`) or a longer record.interval makes it smaller"
)
