"""What the compiled core was built from, to warn a developer whose Rust edits are not compiled yet."""

from __future__ import annotations

import hashlib
import os
from functools import cache as once
from pathlib import Path
from typing import Any

from dragstrip import _core

ROOT = Path(__file__).resolve().parents[3]
QUICK = "quick"
"""The cargo profile of `make quick`: `release` without optimisation across crates."""


@once
def stale() -> bool:
    """Return whether this is a checkout whose Rust sources differ from those the core was built from."""
    try:
        return (ROOT / "crates/py/Cargo.toml").is_file() and sources(ROOT) != _core.BUILT_OF
    except OSError:  # a file vanished meanwhile: they are being edited
        return True


def sources(root: Path) -> str:
    """Return a hash of the core's sources below `root`, computed as crates/py/build.rs does."""
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
    """Return the Rust files in a folder, except test files, which are not part of the core."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                found += _below(entry.path, f"{name}/{entry.name}") if entry.name != "tests" else []
            elif entry.name.endswith(".rs") and entry.name != "tests.rs":
                found.append(f"{name}/{entry.name}")
    return found


def provenance() -> dict[str, Any]:
    """Return the entry that describes the core's build in a recording's provenance."""
    return {"profile": _core.BUILT_PROFILE, "sources": _core.BUILT_OF, "sources_changed_since": stale()}


def notes() -> list[str]:
    """Return warnings for a reader of figures that this build computed."""
    found = []
    if stale():
        found.append(
            "note: the Rust sources have changed since the core was built; the old code is running: "
            "`make python` builds it, `make quick` in seconds"
        )
    if _core.BUILT_PROFILE == QUICK:
        found.append(
            "note: a quick build (make quick): the same figures, but slower; `make python` builds it in full"
        )
    return found
