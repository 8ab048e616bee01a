"""What the tests of faults have in common."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

FULL = os.environ.get("DRAGSTRIP_FAULTS") == "full"
"""All the moments that `make test-faults` tries; a sample of them otherwise."""


def digest(folder: Path) -> str:
    """Of the dataset's bytes."""
    (file,) = (folder / "dataset").glob("*.parquet")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def once_each(folder: Path) -> int:
    """How many runs the dataset has; none of them twice."""
    table = pq.read_table(folder / "dataset", columns=["run", "flow"])
    runs = list(zip(table["run"].to_pylist(), table["flow"].to_pylist(), strict=True))
    assert len(runs) == len(set(runs))
    return len(runs)


def children(parent: int) -> list[int]:
    """Processes that this one has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(folder.name))
    return found


def kill(process: int) -> bool:
    """SIGKILL; whether it was still there."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def alive(process: int) -> bool:
    """Whether it runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def all_gone(processes: Iterable[int], within_s: float = 60.0) -> bool:
    """Whether they have all ended in this time."""
    until = time.monotonic() + within_s
    left = list(processes)
    while left and time.monotonic() < until:
        left = [process for process in left if alive(process)]
        time.sleep(0.01)
    return not left
