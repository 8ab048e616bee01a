"""A lock between processes, for what is made once and then kept."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragstrip.io.files import writing


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Waits for the lock on `file`, which the kernel lets go when its holder dies."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = file.open("w")
    with opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """The lock on an existing file, at once; raises `OSError` if it is taken or there is no such file."""
    with file.open("r+") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
