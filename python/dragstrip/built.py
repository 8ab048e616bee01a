"""What the compiled core was built of: somebody who edits Rust and forgets to build races the old code."""

from __future__ import annotations

import hashlib
import os
from functools import cache as once
from pathlib import Path
from typing import Any

from dragstrip import _core

ROOT = Path(__file__).resolve().parents[2]
QUICK = "quick"
"""cargo's profile of `make quick`: as `release`, without optimisation across crates."""


@once
def stale() -> bool:
    """Whether this is a checkout whose Rust sources are others than those that the core was built of."""
    try:
        return (ROOT / "crates/py/Cargo.toml").is_file() and sources(ROOT) != _core.BUILT_OF
    except OSError:  # a file vanished meanwhile: they are being edited
        return True


def sources(root: Path) -> str:
    """A hash of the core's sources, as crates/py/build.rs makes it."""
    files = ["Cargo.toml", "Cargo.lock"]
    for name in _core.BUILT_CRATES.split():
        files.append(f"crates/{name}/Cargo.toml")
        files += _below(f"{root}/crates/{name}/src", f"crates/{name}/src")
    found = hashlib.sha256()
    for name in sorted(files):
        with open(f"{root}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - of 250 files, in 10 ms
            content = file.read()
        found.update(f"{name} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def _below(folder: str, name: str) -> list[str]:
    """The Rust files in a folder; tests that have files of their own are not part of the core."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                found += _below(entry.path, f"{name}/{entry.name}") if entry.name != "tests" else []
            elif entry.name.endswith(".rs") and entry.name != "tests.rs":
                found.append(f"{name}/{entry.name}")
    return found


def provenance() -> dict[str, Any]:
    """For a recording's provenance."""
    return {"profile": _core.BUILT_PROFILE, "sources": _core.BUILT_OF, "sources_changed_since": stale()}


def notes() -> list[str]:
    """What somebody should know who reads figures of this build."""
    found = []
    if stale():
        found.append(
            "note: the Rust sources have changed since the core was built, and the old code runs: "
            "`make python` builds it, `make quick` in seconds"
        )
    if _core.BUILT_PROFILE == QUICK:
        found.append(
            "note: a quick build (make quick): the same figures, but slower; `make python` builds it in full"
        )
    return found
