"""Limits on experiment files: the command line alone chooses the engine and what a running kernel loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip import engines
from dragstrip.engines.registry import HOMES, SEPARATOR
from dragstrip.errors import BadInputError, note

OF_ENGINES = ("engine", "engine_options", "load")
"""Fields that say what runs an experiment, not what it is."""


def bound(
    content: Mapping[str, Any], source: str, engine: str | None, load: Sequence[str] | None
) -> dict[str, Any]:
    """Return an experiment's content without what its file may not decide.

    It runs on the simulator unless the command line has an `engine`; a `Note` says so where the file names
    another one. A congestion control in C that the file loads is not put into a running kernel unless the
    command line names it (`load`). Raises `BadInputError` for that.
    """
    allowed = dict(content)
    if engine is None or engine == engines.DEFAULT:
        engine_name = allowed.get("engine", engines.DEFAULT)
        if engine is None and engine_name != engines.DEFAULT and not _is_wrong("engine", engine_name):
            option = f"--engine {engine_name}"
            note(f"{source}: asks for engine {engine_name}; it runs on the simulator without {option}")
        return {
            name: value for name, value in allowed.items() if name not in OF_ENGINES or _is_wrong(name, value)
        }
    running = [name for name in engines.parse(engine) if engines.named(name).real_time]
    if allowed.get("load") and load is None and running:
        reason = f"engine {running[0]} puts it into a running kernel"
        expected = f"--load FILE on the command line (`load` in Python): {reason}"
        raise BadInputError("load", str(allowed["load"]), expected, source)
    return allowed


def _is_wrong(name: str, value: object) -> bool:
    """Return whether a field is no engine's at all, which is still to be refused."""
    return name == "engine" and not (isinstance(value, str) and set(value.split(SEPARATOR)) <= HOMES.keys())
