"""Which stacks a kernel engine has: its own kernel's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.experiment import Experiment

OWN = "linux-6"


def rebuilt(content: dict[str, Any], changed: Mapping[str, Any]) -> tuple[Experiment, list[str]]:
    """An experiment with what the command line says instead, and the older stacks that gave way.

    Where the command line chooses the kernel, its own stack takes the place of an older Linux: the file
    speaks of an engine of its own. What varies is left alone: its other values can be run.
    Raises `BadInputError`.
    """
    replaced = _as_own(content) if "vm" in changed.get("engine", "") else []
    return Experiment.build({**content, **changed}, "command line"), replaced


def _as_own(content: dict[str, Any]) -> list[str]:
    hosts = [
        host
        for host in content.get("hosts", {}).values()
        if host.get("profile", OWN) != OWN and host["profile"].startswith("linux-")
    ]
    replaced = sorted({host["profile"] for host in hosts})
    for host in hosts:
        host["profile"] = OWN
    return replaced
