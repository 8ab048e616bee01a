"""The kernel in the emulator as an engine. What is heavy is imported when it is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dragstrip.engines.contract import (
    Capture,
    Engine,
    Json,
    Option,
    Options,
    Progress,
    Refusal,
    Say,
    invalid,
    quietly,
    without_a_kernel,
    without_accurate_ecn,
)

if TYPE_CHECKING:
    from pathlib import Path

    from dragstrip.engines.agent.packets import Packets
    from dragstrip.recording import Recording

BUILT_IN = ("reno", "cubic")
"""Congestion controls that are no modules in Debian's kernels."""
TICK_HZ = 250
"""CONFIG_HZ of Debian's kernels."""
NODES_MAX = 256
"""Hosts and routers: each is a network namespace, and the machine is silent while they are built."""
FLOWS_MAX = 1000
"""Flows: each has sockets with buffers of their own in the machine's memory."""
IDLE_MIN = 0.3
"""Of the guest's processor: below, packets wait for it as they wait for the path."""


class VirtualMachine(Engine):
    """One emulator per run; the same scenario, kernel, agent and emulator give the same bytes."""

    name = "vm"
    about = "a stock Linux kernel in an emulator with virtual time"
    options = {  # noqa: RUF012 - ClassVar in the contract
        "load": Option(
            "C files with congestion controls to compile and put into the kernel", file=True, many=True
        ),
        "kernel": Option("which of `dragstrip kernel list`, instead of the one in use"),
    }
    own_stack = "linux-6"
    captures = True
    slow = True

    def algorithms(self, options: Options) -> list[str]:
        """The kernel's, and those named in the sources to be loaded."""
        from dragstrip.engines.agent import bpf

        return [*_own(options), *(name for source in options.get("load", ()) for name in bpf.names(source))]

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also what this kernel has not: other stacks, other ticks, media, some algorithms."""
        known = self.algorithms(options)
        beyond = without_a_kernel(scenario, known, self.own_stack, TICK_HZ, _release(options))
        return [*invalid(scenario, known), *_too_many(scenario), *beyond]

    def prepare(self, options: Options, say: Say = quietly) -> None:
        """Compiles the agent and what is to be loaded, and boots the machine, once."""
        from dragstrip.engines.agent import bpf
        from dragstrip.engines.vm.emulate import prepare

        for source in options.get("load", ()):
            bpf.compiled(source, say)
        prepare(options.get("kernel"), say)

    def build(self, options: Options) -> str:
        """A hash of kernel, modules, emulator, agent, and what is loaded."""
        from dragstrip import kernel
        from dragstrip.engines.agent import bpf, compiled
        from dragstrip.engines.vm import machine

        parts = [machine.key(kernel.chosen(options.get("kernel")), compiled.program())]
        parts.append(compiled.lockstep().parent.name)
        parts += [bpf.compiled(source).digest for source in options.get("load", ())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario in an emulator of its own."""
        return self._run(scenario, options, progress)

    def run_captured(
        self, scenario: Json, options: Options, capture: Capture, folder: Path, progress: Progress | None
    ) -> Recording:
        """Likewise; the agent has taps of their own for it."""
        from dragstrip.engines.agent.packets import Packets

        return self._run(scenario, options, progress, Packets(self.name, scenario, capture, folder))

    def _run(
        self, scenario: Json, options: Options, progress: Progress | None, packets: Packets | None = None
    ) -> Recording:
        from dragstrip.engines.agent import bpf
        from dragstrip.engines.vm.emulate import emulate

        for refusal in self.refusals(scenario, options):
            raise refusal.error(f"engine {self.name}")
        load = [bpf.compiled(source) for source in options.get("load", ())]
        return emulate(scenario, progress, options.get("kernel"), load, packets)

    def notes(self, recording: Recording) -> list[str]:
        """That the guest's processor was too busy, and what captures lack."""
        from dragstrip.engines.agent.packets import missing

        idle = recording.provenance["verified"]["cpu_idle_share"]
        if idle >= IDLE_MIN:
            return missing(recording)
        return [
            *missing(recording),
            f"note: {recording.scenario['name']}: the emulated processor was idle for only "
            f"{idle * 100:.0f} % of the run: its own delays are in the figures; "
            "fewer flows or a lower rate need less of it",
        ]

    def without_accurate_ecn(self) -> str | None:
        """Debian 12's kernel has none."""
        return without_accurate_ecn(_release({}))

    def play(self, scripts: Mapping[str, str]) -> list[Json]:
        """Plays them all in one machine."""
        from dragstrip import kernel
        from dragstrip.engines.agent import compiled
        from dragstrip.engines.vm import machine
        from dragstrip.engines.vm.emulate import wait

        request = {"conform": [{"name": name, "text": text} for name, text in scripts.items()]}
        parts = (compiled.program(), compiled.lockstep())
        with machine.resumed(kernel.chosen(), *parts, request) as (guest, window):
            wait(guest, window)
            head, _ = window.answer()
        played: list[Json] = head["played"]
        return played


def _release(options: Options) -> str:
    """Of the kernel that runs; where there is none yet, what Debian 12 has."""
    from dragstrip import kernel

    return kernel.chosen(options.get("kernel")).name if kernel.kernels() else "6.1"


def _own(options: Options) -> list[str]:
    """What the kernel has built in or as a module; where there is no kernel yet, what Debian's has."""
    from dragstrip import kernel

    if kernel.kernels():
        modules = [file.stem for file in kernel.chosen(options.get("kernel")).modules]
    else:
        modules = list(kernel.MODULES)
    return [*BUILT_IN, *(name.removeprefix("tcp_") for name in modules if name.startswith("tcp_"))]


def _too_many(scenario: Json) -> list[Refusal]:
    """As the agent says it (crates/agent/src/plan.rs), before a machine is started."""
    found = []
    for field, most in (("nodes", NODES_MAX), ("flows", FLOWS_MAX)):
        count = len(scenario[field])
        if count > most:
            found.append(Refusal(field, str(count), f"at most {most} on this engine"))
    return found


ENGINE = VirtualMachine()
