"""Race TCP congestion controls over one described path, and see what each costs.

A first run:

    import dragstrip

    race = dragstrip.compare(["cubic", "bbr"], rate="10mbit", rtt="40ms",
                             queue="bfifo limit 200kb", duration="30s")
    result = dragstrip.run(race, "out")
    print(dragstrip.load("out"))
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any


def _load(file: str) -> None:
    """Load the core in this file in place of the installed one."""
    loader = ExtensionFileLoader("dragstrip._core", file)
    spec = importlib.util.spec_from_file_location("dragstrip._core", file, loader=loader)
    assert spec is not None
    sys.modules["dragstrip._core"] = core = importlib.util.module_from_spec(spec)
    loader.exec_module(core)


if FilePath(_core_file := os.environ.get("DRAGSTRIP_CORE", "")).is_file():
    _load(_core_file)

from dragstrip._core import __version__  # noqa: E402 - of the core that was chosen

if TYPE_CHECKING:
    from dragstrip.engines.sim import simulate
    from dragstrip.errors import BadInputError, DragstripError
    from dragstrip.experiment.comparison import compare
    from dragstrip.experiment.types import Claim, Experiment, Flow, HostSettings, Link, Node, Path, Probe
    from dragstrip.interop.frames import load

__all__ = [
    "BadInputError",
    "Claim",
    "DragstripError",
    "Experiment",
    "Flow",
    "HostSettings",
    "Link",
    "Node",
    "Path",
    "Probe",
    "__version__",
    "compare",
    "load",
    "run",
    "simulate",
]

_EXPERIMENT = ("Claim", "Experiment", "Flow", "HostSettings", "Link", "Node", "Path", "Probe")
_HOMES = {
    "BadInputError": "dragstrip.errors",
    "DragstripError": "dragstrip.errors",
    **dict.fromkeys(_EXPERIMENT, "dragstrip.experiment.types"),
    "compare": "dragstrip.experiment.comparison",
    "load": "dragstrip.interop.frames",
    "simulate": "dragstrip.engines.sim",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because `dragstrip --help` needs none of them."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dragstrip' has no attribute {name!r}")


def run(
    experiment: Experiment,
    out: str | FilePath,
    *,
    workers: int | None = None,
    report: bool = True,
    figures: Sequence[str] = (),
    width: str | None = None,
) -> dict[str, Any]:
    """Run an experiment into the folder `out` and return the result document (docs/reference/result-json.md).

    `figures` is a selection of `svg`, `png`, `pdf` and `csv`, which are written with the report, for papers;
    `width` is the width of each picture, such as `84mm`. Raises `BadInputError` for input that cannot be
    right; nothing is written then. Raises `DragstripError` if every run failed.
    """
    from dragstrip.report.paper import paper
    from dragstrip.studies.execution.runner import execute, plan

    settings: dict[str, Any] = {"workers": workers, "report": report, "figures": paper(figures, width)}
    return execute(plan(experiment), FilePath(out), **settings, command="dragstrip.run")
