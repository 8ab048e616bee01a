"""Race TCP congestion controls over one described path, and see what each costs.

import dragstrip

race = dragstrip.compare(["cubic", "bbr"], rate="10mbit", rtt="40ms",
queue="bfifo limit 200kb", duration="30s")
result = dragstrip.run(race, "out")
print(dragstrip.load("out"))
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from dragstrip._core import __version__

if TYPE_CHECKING:
    from dragstrip.comparison import compare
    from dragstrip.engines.sim import simulate
    from dragstrip.errors import BadInputError, DragstripError
    from dragstrip.experiment import Claim, Experiment, Flow, HostSettings, Link, Node, Path, Probe
    from dragstrip.frames import load

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
    **dict.fromkeys(_EXPERIMENT, "dragstrip.experiment"),
    "compare": "dragstrip.comparison",
    "load": "dragstrip.frames",
    "simulate": "dragstrip.engines.sim",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `dragstrip --help` needs none of it."""
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
    """Run an experiment into the folder `out`; the answer is the document of docs/result-json.md.

    `figures`, some of `svg`, `png`, `pdf` and `csv`, are written with the report, for papers; `width` is that
    of each picture, such as `84mm`. Raises `BadInputError` for input that cannot be right; nothing is written
    then.
    """
    from dragstrip.paper import paper
    from dragstrip.runner import execute, plan

    settings: dict[str, Any] = {"workers": workers, "report": report, "figures": paper(figures, width)}
    return execute(plan(experiment), FilePath(out), **settings, command="dragstrip.run")
