"""Which build of an engine this is, and the key of a run."""

from __future__ import annotations

import hashlib

from dragstrip import _core
from dragstrip.engines import DEFAULT, Options, named


def version(engine: str = DEFAULT, options: Options | None = None) -> str:
    """`0.1.0+5f3a91c2`: the program's version, and the beginning of the name of the engine's build.

    Asked anew each time: another kernel may be in use than a moment ago.
    """
    return f"{_core.__version__}+{named(engine).build(options or {})[:8]}"


def build_of(version: str) -> str:
    """The beginning of the build's name that a version ends with."""
    return version.partition("+")[2]


def run_key(text: str, engine: str, version: str) -> bytes:
    """The key of a scenario written canonically."""
    return hashlib.sha256(f"dragstrip\n{engine}\n{version}\n{text}".encode()).digest()
