"""Real hosts as an engine. What is heavy is imported when it is needed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from dragstrip import _core
from dragstrip.engines.agent import flow_programs
from dragstrip.engines.agent.engine import STRICT, KernelEngine, load_option
from dragstrip.engines.agent.kernels import without_a_kernel
from dragstrip.engines.contract import Json, Option, Options, Progress, Refusal, Say, invalid
from dragstrip.engines.ssh import media
from dragstrip.engines.ssh.lab import Lab
from dragstrip.engines.ssh.nodes import homes
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.engines.agent.bpf import Loadable
    from dragstrip.engines.agent.packets import Packets
    from dragstrip.model.recording import Recording

LAB = "lab"


class Hosts(KernelEngine):
    """Hosts that are reached by ssh, as their kernels and cables are."""

    name = "ssh"
    options = {  # noqa: RUF012 - ClassVar in the contract
        LAB: Option("the file that describes the lab", file=True),
        "load": load_option("C files with congestion controls, in the hosts' kernels during a run"),
        STRICT: Option("`yes`: a run that the hosts limited fails"),
    }
    real_time = True
    captures = True
    limiter = "the hosts"

    def own_algorithms(self, options: Options) -> list[str]:
        """All known algorithms: a host's kernel reports those that it has before anything is changed."""
        sources = options.get("load", ())
        if sources and not _lab(options).programs:
            expected = f"nothing, or a line programs = true in [allow] of {options[LAB]}"
            raise BadInputError("--load", sources[0], expected)
        return list(_core.ALGORITHMS)

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also what no kernel has, nodes that no host plays, and changes of a real medium."""
        algorithms: Collection[str] = self.algorithms(options)
        lab = _lab(options)
        _, unplaced = homes(scenario, lab)
        beyond = without_a_kernel(
            media.as_they_are(scenario, lab),
            algorithms,
            self.own_stack,
            offloads=False,
            firewall=False,
            lines="",
        )
        programs = flow_programs.refused(scenario)
        return [*invalid(scenario, algorithms), *beyond, *unplaced, *media.refusals(scenario, lab), *programs]

    def ready(self, options: Options, say: Say) -> None:
        """Compiles the agent: nothing is written before it will do."""
        from dragstrip.engines.agent import binaries

        binaries.program(say)

    def missing(self, scenarios: Sequence[Json], options: Options) -> list[Refusal | None]:
        """Probes the hosts for what they lack or would refuse; changes nothing there."""
        from dragstrip.engines.agent.engine import loaded
        from dragstrip.engines.ssh.hosts import missing

        return missing(_lab(options), scenarios, loaded(options))

    def parts(self, options: Options) -> list[str]:
        """The lab's file and the agent: in real time two runs differ all the same."""
        from dragstrip.engines.agent import binaries

        return [_lab(options).digest, binaries.program().parent.name]

    def perform(
        self,
        scenario: Json,
        options: Options,
        progress: Progress | None,
        load: Sequence[Loadable],
        packets: Packets | None,
    ) -> Recording:
        """Takes as long as the scenario says; no two at a time on a host."""
        from dragstrip.engines.ssh.hosts import run

        strict = options.get(STRICT) == "yes"
        return run(_lab(options), scenario, progress, load, strict=strict, packets=packets)

    def notes(self, recording: Recording) -> list[str]:
        """Also which links were real media."""
        real = recording.provenance["verified"].get("real_links", {})
        lines = [f"{recording.scenario['name']}: {about['words']}" for about in real.values()]
        return [*super().notes(recording), *lines]


def _lab(options: Options) -> Lab:
    file = options.get(LAB)
    if not file:
        raise BadInputError(
            "--lab", None, "is missing: the file that describes the lab's hosts (docs/how-to/lab.md)"
        )
    try:
        return Lab.read(file)
    except BadInputError as error:
        raise BadInputError("--lab", None, str(error)) from None


ENGINE = Hosts()
