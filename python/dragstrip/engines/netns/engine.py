"""The machine's own kernel as an engine. What is heavy is imported when it is needed."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from dragstrip import outside
from dragstrip.engines.contract import (
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
    from dragstrip.recording import Recording

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NAMES_BYTES_MAX = 4096
STRICT = "strict"


class Namespaces(Engine):
    """A network namespace for each host and router, and real sockets; the machine itself stays as it is."""

    name = "netns"
    about = "this machine's own kernel, in network namespaces and in real time"
    options = {  # noqa: RUF012 - ClassVar in the contract
        STRICT: Option("`yes`: a run that the machine limited has failed"),
    }
    own_stack = "linux-6"
    real_time = True

    def algorithms(self, options: Options) -> list[str]:
        """Those that the machine's kernel has loaded."""
        strict = options.get(STRICT, "no")
        if strict not in ("yes", "no"):
            raise BadInputError(f"--engine-option {STRICT}", strict, "yes or no")
        if not AVAILABLE.exists():
            expected = f"one that runs on {platform.system()}: this one needs Linux"
            raise BadInputError("--engine", self.name, expected)
        return outside.text(AVAILABLE, NAMES_BYTES_MAX, "a list of congestion controls").split()

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also what no kernel has, and the algorithms that this one has not."""
        known = self.algorithms(options)
        return [*invalid(scenario, known), *without_a_kernel(scenario, known, self.own_stack)]

    def prepare(self, options: Options, say: Say = quietly) -> None:
        """Compiles the agent, and tries whether namespaces can be made here."""
        from dragstrip.engines.netns import here

        here.about(say)

    def build(self, options: Options) -> str:
        """A hash of the kernel, the machine and the agent: in real time two runs differ all the same."""
        from dragstrip.engines.netns import here

        machine = platform.uname()
        parts = [machine.release, machine.version, machine.machine, machine.node, here.program().parent.name]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario, which takes as long as it says; no two at a time on a machine."""
        from dragstrip.engines.netns.here import run

        for refusal in self.refusals(scenario, options):
            raise refusal.error(f"engine {self.name}")
        return run(scenario, progress, strict=options.get(STRICT) == "yes")


ENGINE = Namespaces()
