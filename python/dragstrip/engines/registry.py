"""The engines by name. A new one is a folder beside this file, with an `ENGINE` in it, and two lines here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip.engines.contract import Engine
from dragstrip.errors import BadInputError, nearest

SIMULATOR = "sim"
"""The engine whose runs depend on the scenario alone; a kernel has randomness of its own."""
HOMES = {
    SIMULATOR: "dragstrip.engines.sim",
    "vm": "dragstrip.engines.vm",
    "netns": "dragstrip.engines.netns",
    "ssh": "dragstrip.engines.ssh",
}
"""Name → package; imported on first use. From the model to the real thing: of two engines side by
side, the later one is the reference for the earlier one."""

ABOUT = {
    SIMULATOR: "the built-in simulator",
    "vm": "a stock Linux kernel in an emulator with virtual time",
    "netns": "this machine's own kernel, in network namespaces and in real time",
    "ssh": "the hosts of a lab, by ssh and in real time (--lab lab.toml)",
}
"""Name → clause for `--help`, which imports no engine."""

DEFAULT = SIMULATOR
SEPARATOR = ","
"""Separator of the names of two engines."""
PAIR = SEPARATOR.join(list(HOMES)[:2])
"""The two that are compared where none are named."""


def named(name: str) -> Engine:
    """The engine of this name; raises `BadInputError` if there is none."""
    if name not in HOMES:
        raise BadInputError("engine", name, f"one of {', '.join(HOMES)}{nearest(name, HOMES)}")
    engine: Engine = importlib.import_module(HOMES[name]).ENGINE
    return engine


def parse(text: str) -> tuple[str, ...]:
    """The names in `sim` or `sim,vm`; raises `BadInputError`."""
    names = tuple(text.split(SEPARATOR))
    for name in names:
        named(name)
    if len(names) > 2 or list(names) != sorted(set(names), key=list(HOMES).index):
        raise BadInputError("engine", text, f"one engine, or two in this order: {', '.join(HOMES)}")
    return names


def options_of(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The subset of an experiment's engine options that this engine takes."""
    return {key: value for key, value in options.items() if value and key in named(name).options}


def file_options() -> set[str]:
    """Options of any engine that are files."""
    return {key for name in HOMES for key, option in named(name).options.items() if option.file}


def check_options(names: Sequence[str], options: Mapping[str, Any]) -> None:
    """Raises `BadInputError` for an option that none of these engines takes, or of a wrong kind."""
    for key, value in options.items():
        if not value:
            continue
        value_text = ", ".join(map(str, value)) if isinstance(value, list) else value
        takers = [named(name).options[key] for name in names if key in named(name).options]
        other_engines = [name for name in HOMES if key in named(name).options]
        if not takers and other_engines:
            either = " or ".join(
                [", ".join(other_engines[:-1])] * (len(other_engines) > 1) + other_engines[-1:]
            )
            raise BadInputError(key, value_text, f"engine {either} with it")
        if not takers:
            known_options = sorted({option for name in names for option in named(name).options})
            engine = SEPARATOR.join(names)
            near = nearest(key, known_options)
            expected = f"an option of engine {engine} ({', '.join(known_options) or 'it has none'}){near}"
            raise BadInputError(key, value_text, expected)
        texts = value if takers[0].many and isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise BadInputError(key, value_text, "a list of texts" if takers[0].many else "a text")


def about() -> str:
    """One line for `--help`."""
    return "; ".join(f"{name}: {clause}" for name, clause in ABOUT.items()) + "."
