"""The checksums of a frozen machine: two files, of which `ram` is large and for the most part empty."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from dragstrip.errors import BadInputError
from dragstrip.io import untrusted
from dragstrip.io.files import DamagedError, read_json, sha256, write_json

SUMS = "checksums.json"
BLOCK = 64 << 10
_EMPTY = bytes(BLOCK)

_sound: dict[Path, tuple[int, ...]] = {}
"""Machines that this process has checked, and how their files stood then."""


def write(folder: Path) -> None:
    """Writes down what the machine's files are."""
    write_json(folder / SUMS, _sums(folder))


def check(folder: Path) -> bool:
    """Raises `DamagedError` for a machine that is not what was written; looks once while it stays so."""
    try:
        state = tuple(
            number
            for name in ("ram", "state", SUMS)
            for stands in [(folder / name).stat()]
            for number in (stands.st_size, stands.st_mtime_ns, stands.st_ctime_ns)
        )
        if _sound.get(folder) == state:
            return True
        recorded_sums, now = read_json(folder / SUMS), _sums(folder)
    except (BadInputError, OSError) as error:
        raise DamagedError(folder, untrusted.first_line(error)) from error
    for name, digest in now.items():
        if recorded_sums.get(name) != digest:
            raise DamagedError(folder / name, f"its SHA-256 is not the one in {SUMS}")
    if recorded_sums.keys() != now.keys():
        raise DamagedError(folder / SUMS, "it does not consist of ram and state")
    _sound[folder] = state
    return True


def _sums(folder: Path) -> dict[str, str]:
    return {"ram": _sparse_sha256(folder / "ram"), "state": sha256(folder / "state")}


def _sparse_sha256(path: Path) -> str:
    """Return the SHA-256 of the size and of the non-empty blocks with their places; holes are not read."""
    with untrusted.opened(path, untrusted.TABLE_MAX, "a frozen machine") as file:
        opened = file.fileno()
        size = os.fstat(opened).st_size
        hashed, at = hashlib.sha256(size.to_bytes(8, "little")), 0
        while at < size:
            try:
                data = os.lseek(opened, at, os.SEEK_DATA)
                end = os.lseek(opened, data, os.SEEK_HOLE)
            except OSError:  # ENXIO: no data from here on
                break
            at = max(at, data // BLOCK * BLOCK)
            while at < end:
                block = os.pread(opened, BLOCK, at)
                if block != _EMPTY[: len(block)]:
                    hashed.update(at.to_bytes(8, "little") + block)
                at += BLOCK
    return hashed.hexdigest()
