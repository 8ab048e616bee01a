"""A stock Linux kernel in virtual time as an engine.

The kernel boots once per kernel, agent and emulator, and is frozen just before it would read a request;
every run starts from there. Request and answer travel through a file that is the guest's memory too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragstrip.engines.agent import binaries
from dragstrip.engines.agent.answers import Answer
from dragstrip.engines.agent.bpf import Loadable
from dragstrip.engines.agent.packets import Packets
from dragstrip.engines.agent.runs import run_by_agent
from dragstrip.engines.contract import Json, Say, invalid, quietly
from dragstrip.engines.kernels import kernel
from dragstrip.engines.vm import machine
from dragstrip.engines.vm.closure import for_flows
from dragstrip.engines.vm.window import SharedWindow
from dragstrip.errors import DragstripError
from dragstrip.io.files import sha256
from dragstrip.model.recording import Recording

LOOK_S = 0.005
"""Interval between two polls of a run."""

SILENCE = 12_000
"""Looks (a minute at least) after which a run that has not moved hangs; while we are stopped none counts."""


def prepare(kernel_name: str | None = None, say: Say = quietly) -> None:
    """Compiles the agent and boots the machine, once; raises `DragstripError` with what is missing."""
    machine.version()
    expect_parts()
    kernel_image = kernel.find_kernel(kernel_name)
    binaries.lockstep(say)
    machine.snapshot(kernel_image, binaries.program(say, machine.GUEST), say)


def expect_parts() -> None:
    """Raise `DragstripError` if the agent or the library is neither at hand nor can be compiled here."""
    binaries.expect(binaries.agent(machine.GUEST))
    binaries.expect(binaries.LOCKSTEP)


def emulate(
    scenario: dict[str, Any],
    progress: Callable[[int], object] | None = None,
    kernel_name: str | None = None,
    load: Sequence[Loadable] = (),
    packets: Packets | None = None,
    words: Mapping[str, str] | None = None,
) -> Recording:
    """Runs one scenario in an emulator of its own; `packets` are written too.

    `words` are what the agent is asked beside the scenario (`Request` in crates/agent/src/conductor.rs).
    `progress` gets the virtual nanoseconds; if it answers `False` the run ends there with an error.
    Raises `BadInputError` for a scenario that cannot be run, `DragstripError` for anything else.
    """
    ends = [flow["transport"].get(field) for flow in scenario["flows"] for field in ("cc", "receiver_cc")]
    algorithms = [cc for cc in ends if cc is not None]
    for refusal in invalid(scenario, algorithms):  # which algorithms there are, the kernel says
        raise refusal.error()
    kernel_image = kernel.find_kernel(kernel_name)
    parts = (binaries.program(machine=machine.GUEST), binaries.lockstep())

    commands, files = for_flows(scenario)
    processor = machine.FOR_PROGRAMS if commands else machine.PLAIN

    def ask(request: Json, behind: bytes) -> Answer:
        with machine.resumed(kernel_image, *parts, request, behind, processor) as (guest, window):
            wait(guest, window, progress)
            return window.answer()

    about = {"package": kernel_image.package, "image_sha256": sha256(kernel_image.image)}
    facts: Json = {"emulator": machine.version()}
    if files is not None:
        facts |= {"processor": processor, "files": files.about()}
    return run_by_agent(
        *("vm", scenario, ask, about, facts),
        load=load,
        packets=packets,
        words={**(words or {}), **commands},
        attached=b"" if files is None else files.contents(),
    )


def wait(
    guest: machine.Machine, window: SharedWindow, progress: Callable[[int], object] | None = None
) -> None:
    """Returns when the answer is there; raises `DragstripError` with the guest's last lines if none comes."""
    last_ns = -1
    silent = 0
    while not window.answered():
        if not guest.alive():
            if window.answered():
                return
            raise DragstripError(f"the guest ended: {guest.last_lines()}")
        now_ns = window.progress()
        if now_ns != last_ns:
            last_ns, silent = now_ns, 0
            if progress is not None and progress(now_ns) is False:
                raise DragstripError("stopped")
        elif silent > SILENCE:
            raise DragstripError(f"the guest hangs: {guest.last_lines()}")
        silent += 1
        time.sleep(LOOK_S)
