"""Engines: each takes a scenario and gives a recording; nothing above them knows which one ran.

`contract.py` says what an engine is, `registry.py` which there are; each has a folder.
"""

from __future__ import annotations

from dragstrip.engines.contract import Capture, Engine, Option, Options, Progress, Refusal, alike, invalid
from dragstrip.engines.registry import (
    DEFAULT,
    PAIR,
    SIMULATOR,
    about,
    check_options,
    file_options,
    named,
    options_of,
    parse,
)

__all__ = [
    "DEFAULT",
    "PAIR",
    "SIMULATOR",
    "Capture",
    "Engine",
    "Option",
    "Options",
    "Progress",
    "Refusal",
    "about",
    "alike",
    "check_options",
    "file_options",
    "invalid",
    "named",
    "options_of",
    "parse",
]
