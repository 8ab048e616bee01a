"""The build of an engine, and the key of a run."""

from __future__ import annotations

import hashlib

from dragstrip import _core
from dragstrip.engines import DEFAULT, Options, named


def version(engine: str = DEFAULT, options: Options | None = None) -> str:
    """Return the program's version and the prefix of the engine build's name, such as `0.1.0+5f3a91c2`.

    It is determined anew at each call, because the kernel in use may have changed.
    """
    return f"{_core.__version__}+{named(engine).build(options or {})[:8]}"


def build_of(version: str) -> str:
    """Return the prefix of the build's name in a version."""
    return version.partition("+")[2]


def run_key(text: str, engine: str, version: str, claims: str = "") -> bytes:
    """Return the key of a run (SHA-256, 32 bytes) from its canonical scenario, engine and version.

    `claims` is the JSON of what claims measure in it, which a run without them lacks.
    """
    lines = ["dragstrip", engine, version, text, *([claims] if claims else [])]
    return hashlib.sha256("\n".join(lines).encode()).digest()
