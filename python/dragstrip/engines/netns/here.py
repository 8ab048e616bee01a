"""Runs on the machine itself: the agent as a process of its own."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dragstrip.cache import cache
from dragstrip.engines.agent import bpf, compiled
from dragstrip.engines.agent.asked import CHECKED, Asked
from dragstrip.engines.agent.bpf import Loadable
from dragstrip.engines.agent.locking import locked
from dragstrip.engines.agent.packets import Packets
from dragstrip.engines.agent.recorded import Begun, judged, recorded
from dragstrip.engines.contract import Json, Progress, Say, quietly
from dragstrip.errors import BadInputError
from dragstrip.recording import Recording

NAME = "netns"
AGENT = Asked(NAME, grant="programs", shape=CHECKED)


def program(say: Say = quietly) -> Path:
    """The agent; raises `DragstripError` where it cannot be compiled."""
    return compiled.program(say)


def about(say: Say = quietly) -> Json:
    """What this machine's kernel has; raises `DragstripError` without the rights, or without the agent."""
    asked = subprocess.run([program(say), "about"], capture_output=True, text=True, check=False)  # noqa: S603
    if asked.returncode:
        raise AGENT.refused(asked.stderr)
    found: Json = json.loads(asked.stdout)
    return found


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
        begun = Begun()
        words = {} if packets is None else {"capture": packets.wanted()}
        request, behind = bpf.request(scenario, load, real_time=True, **words)
        try:
            answer = AGENT.ask(request, progress, behind)
        except BadInputError as error:
            raise bpf.at_source(error, load) from None
    own: Json = {"loaded": {one.name: one.digest for one in load}}
    if packets is not None:
        own |= packets.write(answer)
    recording = recorded(NAME, scenario, answer, begun, {"package": platform.version()}, own)
    return judged(recording, "the machine", strict=strict)
