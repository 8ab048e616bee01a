"""The machine's own kernel as an engine. What is heavy is imported when it is needed."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from dragstrip import outside
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
)
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.engines.agent.packets import Packets
    from dragstrip.recording import Recording

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NAMES_BYTES_MAX = 4096
STRICT = "strict"


class Namespaces(Engine):
    """A network namespace for each host and router, and real sockets; the machine itself stays as it is."""

    name = "netns"
    about = "this machine's own kernel, in network namespaces and in real time"
    options = {  # noqa: RUF012 - ClassVar in the contract
        "load": Option(
            "C files with congestion controls that are in the kernel during a run", file=True, many=True
        ),
        STRICT: Option("`yes`: a run that the machine limited has failed"),
    }
    own_stack = "linux-6"
    captures = True
    real_time = True

    def algorithms(self, options: Options) -> list[str]:
        """Those that the machine's kernel has loaded, and those named in the sources to be loaded."""
        from dragstrip.engines.agent import bpf

        strict = options.get(STRICT, "no")
        if strict not in ("yes", "no"):
            raise BadInputError(f"--engine-option {STRICT}", strict, "yes or no")
        if not AVAILABLE.exists():
            expected = f"one that runs on {platform.system()}: this one needs Linux"
            raise BadInputError("--engine", self.name, expected)
        own = outside.text(AVAILABLE, NAMES_BYTES_MAX, "a list of congestion controls").split()
        return [*own, *(name for source in options.get("load", ()) for name in bpf.names(source))]

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also what no kernel has, the algorithms that this one has not, and options of any."""
        known = self.algorithms(options)
        beyond = without_a_kernel(scenario, known, self.own_stack, release=platform.release())
        return [*invalid(scenario, known), *beyond, *_options(scenario)]

    def prepare(self, options: Options, say: Say = quietly) -> None:
        """Compiles the agent and what is to be loaded, and tries whether namespaces can be made here."""
        from dragstrip.engines.agent import bpf
        from dragstrip.engines.netns import here

        for source in options.get("load", ()):
            bpf.compiled(source, say)
        here.about(say)

    def build(self, options: Options) -> str:
        """A hash of the kernel, the machine, the agent, what is loaded, and what becomes of a limited run.

        In real time two runs differ all the same.
        """
        from dragstrip.engines.agent import bpf
        from dragstrip.engines.netns import here

        machine = platform.uname()
        parts = [machine.release, machine.version, machine.machine, machine.node, here.program().parent.name]
        parts += [bpf.compiled(source).digest for source in options.get("load", ())]
        parts += [STRICT] if options.get(STRICT) == "yes" else []
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario, which takes as long as it says; no two at a time on a machine."""
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
        from dragstrip.engines.netns.here import run

        for refusal in self.refusals(scenario, options):
            raise refusal.error(f"engine {self.name}")
        load = [bpf.compiled(source) for source in options.get("load", ())]
        return run(scenario, progress, load, strict=options.get(STRICT) == "yes", packets=packets)

    def notes(self, recording: Recording) -> list[str]:
        """How the machine limited the run, and what captures lack."""
        from dragstrip.engines.agent.packets import missing

        name, limits = recording.scenario["name"], recording.provenance["verified"]["limits"]
        return missing(recording) + [
            f"warning: {name}: the machine limited this run: {limit}" for limit in limits
        ]


def _options(scenario: Json) -> list[Refusal]:
    """Congestion controls' options, as the agent says it (crates/agent/src/machine/modules.rs)."""
    expected = "no options: this engine leaves the kernel's modules as they are"
    return [
        Refusal(f"flow {flow['label']}: {flow['transport']['cc']}: {name}", f"{value:g}", expected)
        for flow in scenario["flows"]
        for name, value in flow["transport"].get("cc_options", {}).items()
    ]


ENGINE = Namespaces()
