"""Which build of an engine this is, for the keys of runs."""

from __future__ import annotations

from functools import cache

from dragstrip import _core
from dragstrip.engines import DEFAULT, named


@cache
def version(engine: str = DEFAULT) -> str:
    """`0.1.0+5f3a91c2`: the program's version, and the beginning of the name of the engine's build."""
    return f"{_core.__version__}+{named(engine).build({})[:8]}"
