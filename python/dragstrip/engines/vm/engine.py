"""The kernel in the emulator as an engine. What is heavy is imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dragstrip.engines.agent import flow_programs
from dragstrip.engines.agent.engine import ALL, LINES, MEDIA, KernelEngine, lines_option, load_option
from dragstrip.engines.agent.kernels import lacks, looks_at_marks, without_a_kernel
from dragstrip.engines.contract import Json, Option, Options, Progress, Refusal, Say, invalid

if TYPE_CHECKING:
    from dragstrip.engines.agent.bpf import Loadable
    from dragstrip.engines.agent.packets import Packets
    from dragstrip.model.recording import Recording

BUILT_IN = ("reno", "cubic")
"""Congestion controls that are no modules in Debian's kernels."""
MARKING = "act_skbedit"
"""The module of the action that gives packets their marks."""
TICK_HZ = 250
"""CONFIG_HZ of Debian's kernels."""
NODES_MAX = 256
"""Hosts and routers: each is a network namespace, and the machine is silent while they are built."""
FLOWS_MAX = 1000
"""Flows: each has sockets with buffers of their own in the machine's memory."""
START_S = 1.0
"""Seconds from the start of a run to its first sample."""
IDLE_COST = 0.04
"""Seconds per virtual second without traffic."""
PACKET_COST_S = 300e-6
"""Seconds per full frame at the bottleneck: 0.4 s for each second of 10 Mbit/s, 2.5 s for one of 100."""
IDLE_MIN = 0.3
"""The least idle share of the guest's processor: below it, packets wait for the processor too."""


class VirtualMachine(KernelEngine):
    """One emulator per run; the same scenario, kernel, agent and emulator give the same bytes."""

    name = "vm"
    options = {  # noqa: RUF012 - ClassVar in the contract
        "load": load_option("C files with congestion controls to compile and put into the kernel"),
        "kernel": Option("which of `dragstrip kernel list`, instead of the one in use"),
        LINES: lines_option(ALL),
    }
    captures = True
    slow = True
    more_lines = (ALL,)

    def own_algorithms(self, options: Options) -> list[str]:
        """Algorithms built into the kernel or in its modules; without a kernel yet, those of Debian's."""
        from dragstrip.engines.kernels import kernel

        if kernel.kernels():
            modules = [file.stem for file in kernel.find_kernel(options.get("kernel")).modules]
        else:
            modules = list(kernel.MODULES)
        in_modules = (name.removeprefix("tcp_") for name in modules if name.startswith("tcp_"))
        return list(dict.fromkeys([*BUILT_IN, *in_modules]))

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also what this kernel has not: other stacks, other ticks, media, some algorithms."""
        algorithms = self.algorithms(options)
        lines = self.lines(options)
        beyond = without_a_kernel(
            scenario, algorithms, self.own_stack, TICK_HZ, _release(options), lines=lines
        )
        unmarked, lacking = _unmarked(scenario, options), flow_programs.missing(scenario)
        return [*invalid(scenario, algorithms), *_too_many(scenario), *beyond, *unmarked, *lacking]

    def ready(self, options: Options, say: Say) -> None:
        """Compiles the agent, and boots the machine, once."""
        from dragstrip.engines.vm.emulate import prepare

        prepare(options.get("kernel"), say)

    def parts(self, options: Options) -> list[str]:
        """Kernel, modules, emulator, agent."""
        from dragstrip.engines.agent import binaries
        from dragstrip.engines.kernels import kernel
        from dragstrip.engines.vm import machine

        key = machine.key(kernel.find_kernel(options.get("kernel")), binaries.program(machine=machine.GUEST))
        return [key, binaries.lockstep().parent.name]

    def kernel(self, options: Options) -> str | None:
        """That of the kernel that boots."""
        return _release(options)

    def cost_s(self, scenario: Json) -> float:
        """By the figures of docs/how-to/vm.md: a start, little while nothing moves, and each packet."""
        from dragstrip.model.scenario.paths import packets

        return START_S + IDLE_COST * float(scenario["duration_ns"]) / 1e9 + PACKET_COST_S * packets(scenario)

    def perform(
        self,
        scenario: Json,
        options: Options,
        progress: Progress | None,
        load: Sequence[Loadable],
        packets: Packets | None,
    ) -> Recording:
        """Has an emulator of its own."""
        from dragstrip.engines.vm.emulate import emulate

        lines = self.lines(options)
        words = {} if lines == MEDIA else {LINES: lines}
        return emulate(scenario, progress, options.get("kernel"), load, packets, words)

    def notes(self, recording: Recording) -> list[str]:
        """Also that the guest's processor was too busy."""
        from dragstrip.engines.agent.limits import late_lines

        verified, name = recording.provenance["verified"], recording.scenario["name"]
        lines, idle = super().notes(recording), verified["cpu_idle_share"]
        lines += [
            f"warning: {name}: the emulated processor limited this run: {at}" for at in late_lines(verified)
        ]
        if idle < IDLE_MIN:
            lines.append(
                f"note: {name}: the emulated processor was idle for only "
                f"{idle * 100:.0f} % of the run: its own delays are in the figures; "
                "fewer flows or a lower rate need less of it"
            )
        return lines

    def lacks(self) -> Mapping[str, str]:
        """Features that the kernel in use is too old for."""
        return lacks(_release({}))

    def play(self, scripts: Mapping[str, str]) -> list[Json]:
        """Plays them all in one machine."""
        from dragstrip.engines.agent import binaries
        from dragstrip.engines.kernels import kernel
        from dragstrip.engines.vm import machine
        from dragstrip.engines.vm.emulate import wait

        request = {"conform": [{"name": name, "text": text} for name, text in scripts.items()]}
        parts = (binaries.program(machine=machine.GUEST), binaries.lockstep())
        with machine.resumed(kernel.find_kernel(), *parts, request) as (guest, window):
            wait(guest, window)
            head, _ = window.answer()
        played: list[Json] = head["played"]
        return played


def _release(options: Options) -> str:
    """Return the release of the kernel that runs; before there is one, that of Debian 12."""
    from dragstrip.engines.kernels import kernel

    return kernel.find_kernel(options.get("kernel")).name if kernel.kernels() else "6.1"


def _unmarked(scenario: Json, options: Options) -> list[Refusal]:
    """Refusals of filters by mark: the kernel was taken from the archive without the action that marks."""
    from dragstrip.engines.kernels import kernel

    if not kernel.kernels():
        return []
    booted = kernel.find_kernel(options.get("kernel"))
    if not booted.package or MARKING in {file.stem for file in booted.modules}:
        return []
    expected = f"a kernel with {MARKING}: `dragstrip kernel fetch` takes {booted.name} in again"
    marked = [link["name"] for link in scenario["links"] if looks_at_marks(link.get("qdisc") or {})]
    return [Refusal(f"link {name}: queue", "a filter by mark", expected) for name in marked]


def _too_many(scenario: Json) -> list[Refusal]:
    """Refusal of a scenario too large, in the agent's words (crates/agent/src/plan.rs), before a boot."""
    refusals = []
    for field, most in (("nodes", NODES_MAX), ("flows", FLOWS_MAX)):
        count = len(scenario[field])
        if count > most:
            refusals.append(Refusal(field, str(count), f"at most {most} on this engine"))
    return refusals


ENGINE = VirtualMachine()
