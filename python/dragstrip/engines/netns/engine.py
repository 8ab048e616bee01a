"""The machine's own kernel as an engine. What is heavy is imported when it is needed."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragstrip.engines.agent import flow_programs
from dragstrip.engines.agent.engine import (
    ALL,
    LACKING,
    LINES,
    STRICT,
    KernelEngine,
    lines_option,
    load_option,
)
from dragstrip.engines.agent.kernels import loading, without_a_kernel
from dragstrip.engines.contract import Json, Option, Options, Progress, Refusal, Say, invalid
from dragstrip.errors import BadInputError
from dragstrip.io import untrusted

if TYPE_CHECKING:
    from dragstrip.engines.agent.bpf import Loadable
    from dragstrip.engines.agent.packets import Packets
    from dragstrip.model.recording import Recording

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NAMES_BYTES_MAX = 4096
SET_UP_S = 5.0
"""Seconds in which a path is built and checked before the traffic."""


class Namespaces(KernelEngine):
    """A network namespace for each host and router, and real sockets; the machine itself stays as it is."""

    name = "netns"
    options = {  # noqa: RUF012 - ClassVar in the contract
        "load": load_option("C files with congestion controls, in the kernel during a run"),
        STRICT: Option("`yes`: a run that the machine limited fails"),
        LINES: lines_option(LACKING, ALL),
    }
    captures = True
    real_time = True
    limiter = "the machine"
    more_lines = (LACKING, ALL)

    def own_algorithms(self, options: Options) -> list[str]:
        """The algorithms that the machine's kernel has loaded."""
        if not AVAILABLE.exists():
            expected = f"one that runs on {platform.system()}: this one needs Linux"
            raise BadInputError("--engine", self.name, expected)
        return untrusted.text(AVAILABLE, NAMES_BYTES_MAX, "a list of congestion controls").split()

    def lacking(self, algorithm: str) -> str:
        """Advice on loading the algorithm into the machine's kernel."""
        return f", which this kernel ({platform.release()}) has loaded{loading(algorithm)}"

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also what no kernel has, the algorithms that this one has not, and options of any."""
        algorithms = self.algorithms(options)
        release = platform.release()
        lines = self.lines(options)
        beyond = without_a_kernel(
            scenario, algorithms, self.own_stack, release=release, loadable=True, lines=lines
        )
        return [
            *invalid(scenario, algorithms),
            *beyond,
            *_options(scenario),
            *flow_programs.missing(scenario),
        ]

    def ready(self, options: Options, say: Say) -> None:
        """Compiles the agent, and tries whether namespaces can be made here."""
        from dragstrip.engines.netns import host

        host.about(say)

    def missing(self, scenarios: Sequence[Json], options: Options) -> list[Refusal | None]:
        """Disciplines and netem that this kernel lacks, and what else the agent would refuse."""
        from dragstrip.engines.netns import host

        return host.missing(scenarios, self.lines(options))

    def parts(self, options: Options) -> list[str]:
        """The kernel, the machine and the agent. In real time two runs differ all the same."""
        from dragstrip.engines.netns import host

        machine = platform.uname()
        return [machine.release, machine.version, machine.machine, machine.node, host.program().parent.name]

    def kernel(self, options: Options) -> str | None:
        """That of this machine."""
        return platform.release()

    def cost_s(self, scenario: Json) -> float:
        """As long as it says, and the path built and checked before it."""
        return SET_UP_S + float(scenario["duration_ns"]) / 1e9

    def perform(
        self,
        scenario: Json,
        options: Options,
        progress: Progress | None,
        load: Sequence[Loadable],
        packets: Packets | None,
    ) -> Recording:
        """Takes as long as the scenario says; no two at a time on a machine."""
        from dragstrip.engines.netns.host import run

        strict, lines = options.get(STRICT) == "yes", self.lines(options)
        return run(scenario, progress, load, strict=strict, packets=packets, lines=lines)


def _options(scenario: Json) -> list[Refusal]:
    """Congestion controls' options, as the agent says it (crates/agent/src/machine/modules.rs)."""
    expected = "no options: this engine leaves the kernel's modules as they are"
    return [
        Refusal(f"flow {flow['label']}: {flow['transport']['cc']}: {name}", f"{value:g}", expected)
        for flow in scenario["flows"]
        for name, value in flow["transport"].get("cc_options", {}).items()
    ]


ENGINE = Namespaces()
