"""Race TCP congestion controls over one described path, and see what each costs.

A first run:

    import dragstrip

    result = dragstrip.race("cubic", "bbr", rate="10mbit", rtt="40ms", queue="bfifo limit 200kb")
    print(result.summary())
    result.plot("plane").save("plane.svg")

Races and experiments:

    race            race congestion controls over one path
    compare         describe a race as an experiment, without running it
    run             run an experiment
    sweep           run an experiment over many values of many fields
    program         make an algorithm of one's own from a text
    simulate        run one scenario, without an experiment
    play            show the playground in a notebook's cell
    load            read a table of an output folder

Algorithms:

    passport        tell what one is good at, where it fails and whom it harms
    evidence        answer what RFC 9743 asks of one
    judge           score several on paths that they have not seen
    search          look for one that scores better
    attack          look for conditions under which one fails
    conform         play conformance scripts

Networks:

    diagnose        tell what is wrong on a path, and what helps
    inspect         show the flows, and the path, of captures and other programs' files
    identify        tell which congestion control a capture shows
    whatif          tell what others would have done in its place
    tc_import       read the queues that a script of tc commands sets up
    shell           run programs behind a path

Lists:

    algorithms, queues, paths, media, workloads, measures, publications
    publication     load the experiment of a publication

`help(dragstrip.race)` has the options of a path; docs/how-to/python.md has examples.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # as little as possible is imported before dragstrip.__main__ can answer Ctrl-C
    from typing import Any


def _load(file: str) -> None:
    """Load the core in this file in place of the installed one."""
    import importlib.util
    from importlib.machinery import ExtensionFileLoader

    loader = ExtensionFileLoader("dragstrip._core", file)
    spec = importlib.util.spec_from_file_location("dragstrip._core", file, loader=loader)
    assert spec is not None
    sys.modules["dragstrip._core"] = core = importlib.util.module_from_spec(spec)
    loader.exec_module(core)


if os.path.isfile(_core_file := os.environ.get("DRAGSTRIP_CORE", "")):  # noqa: PTH113 - pathlib loads slowly
    _load(_core_file)

from dragstrip._core import __version__  # noqa: E402 - of the core that was chosen

if TYPE_CHECKING:
    from dragstrip.engines.sim import simulate
    from dragstrip.errors import BadInputError, DragstripError
    from dragstrip.experiment.comparison import compare
    from dragstrip.experiment.programs import program
    from dragstrip.experiment.types import Claim, Experiment, Flow, HostSettings, Link, Node, Path, Probe
    from dragstrip.interop.frames import load
    from dragstrip.interop.path_shell.shell import Shell, ShellRun
    from dragstrip.interop.race import race, run
    from dragstrip.interop.result import Result
    from dragstrip.verbs import (
        algorithms,
        attack,
        conform,
        diagnose,
        evidence,
        identify,
        inspect,
        judge,
        measures,
        media,
        passport,
        paths,
        play,
        publication,
        publications,
        queues,
        search,
        shell,
        sweep,
        tc_import,
        whatif,
        workloads,
    )

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
    "Result",
    "Shell",
    "ShellRun",
    "__version__",
    "algorithms",
    "attack",
    "compare",
    "conform",
    "diagnose",
    "evidence",
    "identify",
    "inspect",
    "judge",
    "load",
    "measures",
    "media",
    "passport",
    "paths",
    "play",
    "program",
    "publication",
    "publications",
    "queues",
    "race",
    "run",
    "search",
    "shell",
    "simulate",
    "sweep",
    "tc_import",
    "whatif",
    "workloads",
]

_EXPERIMENT = ("Claim", "Experiment", "Flow", "HostSettings", "Link", "Node", "Path", "Probe")
_VERBS = (
    "algorithms",
    "attack",
    "conform",
    "diagnose",
    "evidence",
    "identify",
    "inspect",
    "judge",
    "measures",
    "media",
    "passport",
    "paths",
    "play",
    "publication",
    "publications",
    "queues",
    "search",
    "shell",
    "sweep",
    "tc_import",
    "whatif",
    "workloads",
)
_HOMES = {
    "BadInputError": "dragstrip.errors",
    "DragstripError": "dragstrip.errors",
    **dict.fromkeys(_EXPERIMENT, "dragstrip.experiment.types"),
    **dict.fromkeys(_VERBS, "dragstrip.verbs"),
    "compare": "dragstrip.experiment.comparison",
    "load": "dragstrip.interop.frames",
    "Result": "dragstrip.interop.result",
    **dict.fromkeys(("Shell", "ShellRun"), "dragstrip.interop.path_shell.shell"),
    "program": "dragstrip.experiment.programs",
    "race": "dragstrip.interop.race",
    "run": "dragstrip.interop.race",
    "simulate": "dragstrip.engines.sim",
}


def __dir__() -> list[str]:
    """Return the public names, also those that no use has imported yet."""
    return [*__all__, "__doc__", "__file__", "__name__", "__path__", "gym", "testing"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because `dragstrip --help` needs none of them."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dragstrip' has no attribute {name!r}")
