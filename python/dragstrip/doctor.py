"""What works on this machine."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

from dragstrip import _core, catalogue
from dragstrip.engines.contract import Say, quietly
from dragstrip.machine import memory_bytes
from dragstrip.pool import worker_count

REPORT_NEEDS = ("jinja2", "numpy", "pyarrow", "vl-convert-python")


def examine(say: Say = quietly) -> list[dict[str, Any]]:
    """One finding each: what was looked at, what was found, whether it will do.

    `say` hears of what takes seconds: the agent is compiled where it has not been.
    """
    findings = [
        _finding("Python", platform.python_version(), sys.version_info >= (3, 11)),
        _finding("dragstrip", _core.__version__, True),
        _finding("machine", f"{platform.system()} {platform.machine()}", True),
        _finding("workers", str(worker_count(None, 1_000_000)), True),
        _finding("memory", f"{memory_bytes() / 2**30:.1f} GiB", memory_bytes() > 2**29),
        _finding("congestion controls", ", ".join(_core.algorithms()), True),
        _finding("engine sim", _simulator(), _simulator() == "ready"),
        _finding("engine vm", _emulator(), True),  # it is an extra
        _finding("engine vm --load", _compiler(), True),
        _finding("engine netns", _namespaces(say), True),
    ]
    place = catalogue.folder()
    findings.append(_finding("catalogue", f"{len(catalogue.files())} experiments", place is not None))
    for package in REPORT_NEEDS:
        findings.append(_package(package))
    return findings


def _finding(what: str, found: str, ok: bool) -> dict[str, Any]:
    return {"what": what, "found": found, "ok": ok}


def _package(name: str) -> dict[str, Any]:
    try:
        return _finding(f"package {name}", importlib.metadata.version(name), True)
    except importlib.metadata.PackageNotFoundError:
        return _finding(f"package {name}", "not installed (needed for reports)", False)


def _simulator() -> str:
    """Runs a tenth of a second of traffic."""
    from dragstrip.comparison import compare
    from dragstrip.engines.sim import simulate
    from dragstrip.errors import DragstripError
    from dragstrip.expand import expand

    race = compare(["reno"], rate="10mbit", rtt="10ms", queue="pfifo limit 100", duration="100ms")
    try:
        simulate(expand(race)[0].scenario)
    except DragstripError as error:
        return str(error)
    return "ready"


def _namespaces(say: Say) -> str:
    """What this machine's own kernel has, or what the engine lacks here."""
    from dragstrip.engines.netns import here
    from dragstrip.errors import DragstripError

    try:
        found = here.about(say)
    except DragstripError as error:
        return f"not available ({error})"
    lacks = f", without {', '.join(found['lacks'])}" if found["lacks"] else ""
    return f"Linux {found['kernel']}: {', '.join(found['algorithms'])}{lacks} (rights: {found['rights']})"


def _compiler() -> str:
    """Whether BPF programs can be compiled for it."""
    from dragstrip.engines.agent import bpf

    reason = bpf.missing()
    return f"not available ({reason})" if reason else "clang and libbpf"


def _emulator() -> str:
    """What the vm engine would run, or what it lacks."""
    from dragstrip import kernel
    from dragstrip.engines.vm import machine
    from dragstrip.errors import DragstripError

    try:
        reason = machine.missing()
        return f"not available ({reason})" if reason else f"Linux {kernel.chosen().name}"
    except DragstripError as error:
        return f"not available ({error})"
