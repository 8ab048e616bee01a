"""Examination of this machine, for `dragstrip doctor`."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Callable
from typing import Any

from dragstrip import _core
from dragstrip.engines.contract import Say, quietly
from dragstrip.experiment import catalogue
from dragstrip.model.scenario.memory import memory_bytes
from dragstrip.runs import worker_count

REPORT_NEEDS = ("jinja2", "numpy", "pyarrow")


def examine(say: Say = quietly) -> list[dict[str, Any]]:
    """Return one finding per part: `what` was examined, what was `found`, whether it is `available` and `ok`.

    What is not available is not ok, unless it is an extra: an engine with a kernel, what compiles
    for one, or the library that draws figures.
    `say` is told of steps that take seconds, such as compiling the agent for the first time.
    """
    findings = [
        _finding("Python", platform.python_version(), sys.version_info >= (3, 11)),
        _finding("dragstrip", _core.__version__, True),
        _finding("machine", f"{platform.system()} {platform.machine()}", True),
        _finding("workers", str(worker_count(None, 1_000_000)), True),
        _finding("memory", f"{memory_bytes() / 2**30:.1f} GiB", memory_bytes() > 2**29),
        _finding("congestion controls", ", ".join(_core.ALGORITHMS), True),
        _finding("engine sim", _simulator(), _simulator() == "ready"),
        _extra("engine vm", _emulator),
        _namespaces(say),
        _extra("engine ssh", lambda: _ssh(say)),
        _extra("--load", _compiler),
        _extra("kernel run", _guest),
        _extra("--figures svg,png,pdf", _drawing),
    ]
    place = catalogue.folder()
    findings.append(_finding("catalogue", f"{len(catalogue.files())} experiments", place is not None))
    for package in REPORT_NEEDS:
        findings.append(_package(package))
    return findings


def _finding(part: str, result: str, ok: bool) -> dict[str, Any]:
    return {"what": part, "found": result, "ok": ok, "available": ok}


def _extra(part: str, examined: Callable[[], str]) -> dict[str, Any]:
    """A finding about what `sim` does not need: `examined` raises `DragstripError` where that is missing."""
    from dragstrip.errors import DragstripError

    try:
        return _finding(part, examined(), True)
    except DragstripError as error:
        return _finding(part, f"not available ({error})", True) | {"available": False}


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


def _namespaces(say: Say) -> dict[str, Any]:
    """Return what this machine's kernel offers, and what it lacks."""
    from dragstrip.engines.netns import host

    lacks: list[str] = []

    def examined() -> str:
        host_facts = host.about(say)
        lacks.extend(host_facts["lacks"])
        without = f", without {', '.join(lacks)}" if lacks else ""
        if "netem" in lacks:
            without += "; without netem no run has a delay, jitter or loss"
        algorithms = ", ".join(host_facts["algorithms"])
        return f"Linux {host_facts['kernel']}: {algorithms}{without} (rights: {host_facts['rights']})"

    return _extra("engine netns", examined) | {"lacks": lacks}


def _ssh(say: Say) -> str:
    """Return the program that connects; what a lab's hosts have, `lab check` says."""
    from dragstrip.engines.ssh import hosts

    program = hosts.program()
    hosts.prepare(say)
    return f"{program}; `dragstrip lab check lab.toml` asks the hosts"


def _compiler() -> str:
    """Return what compiles BPF programs."""
    from dragstrip.engines.agent import bpf
    from dragstrip.errors import DragstripError

    if reason := bpf.missing():
        raise DragstripError(reason)
    return "clang and libbpf"


def _drawing() -> str:
    """Return the library that draws figures."""
    from dragstrip.errors import DragstripError
    from dragstrip.report import paper

    if not paper.draws():
        raise DragstripError(f"needs {paper.LIBRARY}")
    return f"vl-convert-python {importlib.metadata.version('vl-convert-python')}"


def _emulator() -> str:
    """Return the kernel that the vm engine would boot."""
    from dragstrip.engines.kernels import kernel
    from dragstrip.engines.vm import emulate, machine
    from dragstrip.errors import DragstripError

    emulate.expect_parts()
    if reason := machine.missing():
        raise DragstripError(reason)
    return f"Linux {kernel.find_kernel().name}"


def _guest() -> str:
    """Return the kernel that a guest would have, and what would run it."""
    from dragstrip.engines.kernels import kernel
    from dragstrip.engines.vm import guest

    name = _emulator()
    _ = kernel.find_kernel().guest_modules
    return f"{name}, by {'KVM' if guest.accelerated() else 'an emulator, slowly: there is no /dev/kvm here'}"
