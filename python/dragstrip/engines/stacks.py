"""Which stacks a kernel engine has: its own kernel's."""

from __future__ import annotations

from typing import Any

OWN = "linux-6"


def run_as_own(content: dict[str, Any]) -> list[str]:
    """Puts the kernel's own stack in the place of an older Linux in an experiment's hosts; tells of which.

    For a command line that chose the engine: the file speaks of its own. What varies is left alone: its other
    values can be run.
    """
    hosts = [
        host
        for host in content.get("hosts", {}).values()
        if host.get("profile", OWN) != OWN and host["profile"].startswith("linux-")
    ]
    replaced = sorted({host["profile"] for host in hosts})
    for host in hosts:
        host["profile"] = OWN
    return replaced
