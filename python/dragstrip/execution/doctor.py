"""What works on this machine, for `dragstrip doctor`."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

from dragstrip import _core
from dragstrip.engines.contract import Say, quietly
from dragstrip.experiment import catalogue
from dragstrip.pool import worker_count
from dragstrip.scenario.memory import memory_bytes

REPORT_NEEDS = ("jinja2", "numpy", "pyarrow", "vl-convert-python")


def examine(say: Say = quietly) -> list[dict[str, Any]]:
    """Return one finding per part: `what` was examined, what was `found`, and whether that is `ok`.

    `say` is told of steps that take seconds, such as compiling the agent for the first time.
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
    """Simulate a tenth of a second of traffic."""
    from dragstrip.engines.sim import simulate
    from dragstrip.errors import DragstripError
    from dragstrip.experiment.comparison import compare
    from dragstrip.experiment.expand import expand

    race = compare(["reno"], rate="10mbit", rtt="10ms", queue="pfifo limit 100", duration="100ms")
    try:
        simulate(expand(race)[0].scenario)
    except DragstripError as error:
        return str(error)
    return "ready"


def _namespaces(say: Say) -> str:
    """Return what this machine's kernel offers, or why the engine cannot run here."""
    from dragstrip.engines.netns import here
    from dragstrip.errors import DragstripError

    try:
        found = here.about(say)
    except DragstripError as error:
        return f"not available ({error})"
    lacks = f", without {', '.join(found['lacks'])}" if found["lacks"] else ""
    return f"Linux {found['kernel']}: {', '.join(found['algorithms'])}{lacks} (rights: {found['rights']})"


def _compiler() -> str:
    """Return whether BPF programs can be compiled for this machine's kernel."""
    from dragstrip.engines.agent import bpf

    reason = bpf.missing()
    return f"not available ({reason})" if reason else "clang and libbpf"


def _emulator() -> str:
    """Return the kernel that the vm engine would boot, or why it cannot."""
    from dragstrip.engines.kernels import kernel
    from dragstrip.engines.vm import emulate, machine
    from dragstrip.errors import DragstripError

    try:
        emulate.expect_parts()
        reason = machine.missing()
        return f"not available ({reason})" if reason else f"Linux {kernel.chosen().name}"
    except DragstripError as error:
        return f"not available ({error})"
