"""Real hosts as an engine. What is heavy is imported when it is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from dragstrip import _core
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
from dragstrip.engines.ssh.lab import Lab
from dragstrip.engines.ssh.nodes import homes
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.recording import Recording

LAB = "lab"
STRICT = "strict"


class Hosts(Engine):
    """Hosts that are reached by ssh, as their kernels and cables are."""

    name = "ssh"
    about = "the hosts of a lab, by ssh and in real time (--lab lab.toml)"
    options = {  # noqa: RUF012 - ClassVar in the contract
        LAB: Option("the file that describes the lab", file=True),
        "load": Option(
            "C files with congestion controls, in the hosts' kernels during a run", file=True, many=True
        ),
        STRICT: Option("`yes`: a run that the hosts limited has failed"),
    }
    own_stack = "linux-6"
    real_time = True

    def algorithms(self, options: Options) -> list[str]:
        """Those that there are and those named in the sources to be loaded.

        What a host's kernel has it says itself, before anything is changed.
        """
        from dragstrip.engines.agent import bpf

        if options.get(STRICT, "no") not in ("yes", "no"):
            raise BadInputError(f"--engine-option {STRICT}", options[STRICT], "yes or no")
        lab, sources = _lab(options), options.get("load", ())
        if sources and not lab.programs:
            expected = f"nothing, or a line programs = true in [allow] of {options[LAB]}"
            raise BadInputError("--load", sources[0], expected)
        return [*_core.algorithms(), *(name for source in sources for name in bpf.names(source))]

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also what no kernel has, and nodes that no host plays."""
        known: Collection[str] = self.algorithms(options)
        _, unplaced = homes(scenario, _lab(options))
        beyond = without_a_kernel(scenario, known, self.own_stack)
        for change in scenario.get("changes", [])[:1]:
            expected = "none: on hosts no link changes during a run yet, the engines sim, vm and netns do it"
            beyond.append(Refusal(f"link {change['link']}: changes", "changes", expected))
        return [*invalid(scenario, known), *beyond, *unplaced]

    def prepare(self, options: Options, say: Say = quietly) -> None:
        """Compiles the agent and what is to be loaded: nothing is written before they will do."""
        from dragstrip.engines.agent import bpf, compiled

        compiled.program(say)
        for source in options.get("load", ()):
            bpf.compiled(source, say)

    def build(self, options: Options) -> str:
        """A hash of the lab's file, the agent and the programs: in real time two runs differ all the same."""
        from dragstrip.engines.agent import bpf, compiled

        parts = [_lab(options).digest, compiled.program().parent.name]
        parts += [bpf.compiled(source).digest for source in options.get("load", ())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario, which takes as long as it says; no two at a time on a host."""
        from dragstrip.engines.agent import bpf
        from dragstrip.engines.ssh.hosts import run

        for refusal in self.refusals(scenario, options):
            raise refusal.error(f"engine {self.name}")
        load = [bpf.compiled(source) for source in options.get("load", ())]
        return run(_lab(options), scenario, progress, load, strict=options.get(STRICT) == "yes")

    def notes(self, recording: Recording) -> list[str]:
        """How the hosts limited the run."""
        name, limits = recording.scenario["name"], recording.provenance["verified"]["limits"]
        return [f"warning: {name}: the hosts limited this run: {limit}" for limit in limits]


def _lab(options: Options) -> Lab:
    file = options.get(LAB)
    if not file:
        raise BadInputError(
            "--lab", None, "is missing: the file that describes the lab's hosts (docs/lab.md)"
        )
    try:
        return Lab.read(file)
    except BadInputError as error:
        raise BadInputError("--lab", None, str(error)) from None


ENGINE = Hosts()
