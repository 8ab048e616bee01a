"""Runs on the machine itself: the agent as a process of its own."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragstrip.engines.agent import compiled
from dragstrip.engines.agent.asked import CHECKED, Asked
from dragstrip.engines.agent.bpf import Loadable
from dragstrip.engines.agent.locking import locked
from dragstrip.engines.agent.packets import Packets
from dragstrip.engines.agent.recorded import judged
from dragstrip.engines.agent.runs import performed
from dragstrip.engines.contract import Json, Progress, Refusal, Say, quietly
from dragstrip.io.cache import cache
from dragstrip.recording import Recording

NAME = "netns"
REFUSED = 2
"""The agent's exit status where the machine has not what it takes."""
AGENT = Asked(NAME, grant="programs", shape=CHECKED)


def program(say: Say = quietly) -> Path:
    """The agent; raises `DragstripError` where it cannot be compiled."""
    return compiled.program(say)


def about(say: Say = quietly) -> Json:
    """What this machine's kernel has.

    Raises `BadInputError` without the rights, `DragstripError` without the agent.
    """
    found: Json = _asked("about", say=say)
    return found


def missing(scenarios: Sequence[Json]) -> list[Refusal | None]:
    """What keeps this machine's kernel from running each of these; raises as `about` does."""
    found = _asked("missing", json.dumps(list(scenarios)))
    return [None if reason is None else Refusal(*reason) for reason in found]


def _asked(mode: str, content: str = "", say: Say = quietly) -> Any:
    words: list[str | Path] = [program(say), mode]
    asked = subprocess.run(words, input=content, capture_output=True, text=True, check=False)  # noqa: S603
    if asked.returncode == REFUSED:
        raise Refusal(*asked.stderr.strip().split("\n")).error(f"engine {NAME}")
    if asked.returncode:
        raise AGENT.refused(asked.stderr)
    return json.loads(asked.stdout)


def run(
    scenario: Json,
    progress: Progress | None = None,
    load: Sequence[Loadable] = (),
    *,
    strict: bool = False,
    packets: Packets | None = None,
) -> Recording:
    """Runs one scenario; if `progress` answers `False` it ends there with an error. `packets` are written.

    The congestion controls of `load` are in the kernel meanwhile.
    Raises `BadInputError` for one that this kernel cannot run, `DragstripError` for anything else.
    """
    with locked(cache() / f"{NAME}.lock"):  # two at a time would share the processors
        recording = performed(
            NAME,
            scenario,
            lambda request, behind: AGENT.ask(request, progress, behind),
            {"package": platform.version()},
            load=load,
            packets=packets,
            words={"real_time": True},
        )
    return judged(recording, "the machine", strict=strict)
