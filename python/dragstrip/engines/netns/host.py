"""Runs on the machine itself: the agent as a process of its own."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragstrip.engines.agent import binaries
from dragstrip.engines.agent.answers import with_limits
from dragstrip.engines.agent.bpf import Loadable
from dragstrip.engines.agent.client import CHECKED, AgentClient
from dragstrip.engines.agent.flow_programs import on_this_machine
from dragstrip.engines.agent.locking import locked
from dragstrip.engines.agent.packets import Packets
from dragstrip.engines.agent.runs import run_by_agent
from dragstrip.engines.contract import Json, Progress, Refusal, Say, quietly
from dragstrip.io.cache import cache
from dragstrip.model.recording import Recording

NAME = "netns"
REFUSED = 2
"""The agent's exit status where the machine lacks a requirement."""
AGENT = AgentClient(NAME, grant="programs", shape=CHECKED)


def program(say: Say = quietly) -> Path:
    """The agent; raises `DragstripError` where it cannot be compiled."""
    return binaries.program(say)


def about(say: Say = quietly) -> Json:
    """Facts about this machine's kernel.

    Raises `BadInputError` without the rights, `DragstripError` without the agent.
    """
    facts: Json = _query("about", say=say)
    return facts


def missing(scenarios: Sequence[Json], lines: str) -> list[Refusal | None]:
    """Returns why this machine's kernel cannot run each of these, or None; raises as `about` does.

    `lines`: the links that the simulator's code carries.
    """
    reasons = _query("missing", json.dumps(list(scenarios)), more=[f"lines={lines}"])
    return [None if reason is None else Refusal(*reason) for reason in reasons]


def _query(mode: str, content: str = "", say: Say = quietly, more: Sequence[str] = ()) -> Any:
    words: list[str | Path] = [program(say), mode, *more]
    completed = subprocess.run(words, input=content, capture_output=True, text=True, check=False)  # noqa: S603
    if completed.returncode == REFUSED:
        raise Refusal(*completed.stderr.strip().split("\n")).error(f"engine {NAME}")
    if completed.returncode:
        raise AGENT.refused(completed.stderr)
    return json.loads(completed.stdout)


def run(
    scenario: Json,
    progress: Progress | None = None,
    load: Sequence[Loadable] = (),
    *,
    strict: bool = False,
    packets: Packets | None = None,
    lines: str,
) -> Recording:
    """Runs one scenario; if `progress` answers `False` it ends there with an error. `packets` are written.

    The congestion controls of `load` are in the kernel meanwhile. `lines`: as in `missing`.
    Raises `BadInputError` for one that this kernel cannot run, `DragstripError` for anything else.
    """
    with locked(cache() / f"{NAME}.lock"):  # two at a time would share the processors
        recording = run_by_agent(
            NAME,
            scenario,
            lambda request, behind: AGENT.ask(request, progress, behind),
            {"package": platform.version()},
            load=load,
            packets=packets,
            words={"real_time": True, "lines": lines, **on_this_machine(scenario)},
        )
    return with_limits(recording, "the machine", strict=strict)
