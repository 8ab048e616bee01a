"""The memory of this machine, and whether a scenario's recording fits into it."""

from __future__ import annotations

import contextlib
import ctypes
import os

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw

COPIES = 2
"""Copies of a recording in memory at once: the simulator's columns, and Arrow's with the files' buffers."""


def memory_bytes() -> int:
    """Return the machine's physical memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def release_memory() -> None:
    """Return freed memory to the system, which glibc does not do by itself if it is fragmented."""
    with contextlib.suppress(OSError, AttributeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


def refuse_if_too_large(scenario: _core.Scenario, duration_ns: int, source: str = "") -> None:
    """Raise `BadInputError` about the duration if the scenario's recording would not fit into memory."""
    needed, available = COPIES * scenario.recording_bytes, memory_bytes()
    if needed > available:
        seconds = duration_ns / 1e9
        raise BadInputError(
            "duration",
            Raw(f"{seconds:g}s"),
            f"at most about {seconds * available / needed:.3g}s: the recording would need "
            f"{needed / 2**30:.3g} GiB of memory, this machine has {available / 2**30:.3g} GiB "
            "(a longer record.interval, or record.rtts = false, needs less)",
            source,
        )
