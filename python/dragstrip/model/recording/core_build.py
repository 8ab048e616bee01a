"""Sources that the compiled core was built from, to warn a developer of Rust edits not compiled yet."""

from __future__ import annotations

import hashlib
import os
from functools import cache as once
from os import getenv
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.errors import DragstripError
from dragstrip.io.files import read_json

ROOT = Path(__file__).resolve().parents[4]
QUICK = "quick"
"""The cargo profile of `make quick`: `release` without optimisation across crates."""
VARIABLE = "DRAGSTRIP_CORE"
"""Environment variable: a core to load in place of the installed one."""
FILES = "algorithm-files.json"
"""File beside a core with algorithms of Rust files: hashes of the checkout's sources and of each file."""


@once
def _core_description() -> dict[str, Any]:
    file = getenv(VARIABLE)
    description_file = Path(file).with_name(FILES) if file else None
    return read_json(description_file) if description_file is not None and description_file.is_file() else {}


def algorithm_files() -> dict[str, str]:
    """Return the SHA-256 of the Rust file of each algorithm that is in the core for this command alone."""
    hashes: dict[str, str] = _core_description().get("files", {})
    return hashes


def own_algorithms() -> list[str]:
    """Return the names of the core's algorithms without those of Rust files."""
    return [name for name in _core.ALGORITHMS if name not in algorithm_files()]


def built_of() -> str:
    """Return the hash of the sources that the core was built from, without those of Rust files."""
    return str(_core_description().get("base", _core.BUILT_OF))


def blamed(fault: str) -> DragstripError | None:
    """Return the error of a Rust file's algorithm that panicked, if this fault of the core names it."""
    for name in algorithm_files():
        _, module_mark, location = fault.partition(f"/{name.replace('-', '_')}.rs:")
        if module_mark:
            line, _, panic_message = location.partition(": ")
            panic_message = panic_message.removesuffix("; please report it")
            return DragstripError(f"{name} panicked in line {line.partition(':')[0]}: {panic_message}")
    return None


@once
def stale() -> bool:
    """Return whether this is a checkout whose Rust sources differ from those the core was built from."""
    try:
        return (ROOT / "crates/py/Cargo.toml").is_file() and sources(ROOT) != built_of()
    except OSError:  # a file vanished meanwhile: they are being edited
        return True


def sources(root: Path) -> str:
    """Return a hash of the core's sources below `root`, computed as crates/py/build.rs does."""
    files = ["Cargo.toml", "Cargo.lock"]
    for name in _core.BUILT_CRATES.split():
        files.append(f"crates/{name}/Cargo.toml")
        files += _below(f"{root}/crates/{name}/src", f"crates/{name}/src")
    digest = hashlib.sha256()
    for name in sorted(files):
        with open(f"{root}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - of 250 files, in 10 ms
            content = file.read()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _below(folder: str, name: str) -> list[str]:
    """Return the Rust files in a folder, except test files, which are not part of the core."""
    rust_sources = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                rust_sources += _below(entry.path, f"{name}/{entry.name}") if entry.name != "tests" else []
            elif entry.name.endswith(".rs") and entry.name != "tests.rs":
                rust_sources.append(f"{name}/{entry.name}")
    return rust_sources


def provenance() -> dict[str, Any]:
    """Return the entry that describes the core's build in a recording's provenance."""
    extras = {"algorithm_files": algorithm_files()} if algorithm_files() else {}
    return {
        "profile": _core.BUILT_PROFILE,
        "sources": built_of(),
        "sources_changed_since": stale(),
        **extras,
    }


def notes() -> list[str]:
    """Return warnings for a reader of figures that this build computed."""
    warnings = []
    if stale():
        warnings.append(
            "note: the Rust sources have changed since the core was built; the old code is running: "
            "`make python` builds it, `make quick` in seconds"
        )
    if _core.BUILT_PROFILE == QUICK and not algorithm_files():
        warnings.append(
            "note: a quick build (make quick): the same figures, but slower; `make python` builds it in full"
        )
    return warnings
