"""Base class of the engines with a kernel. Heavy modules are imported when they are needed."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from dragstrip.engines.contract import Capture, Engine, Json, Option, Options, Progress, Say, quietly
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path

    from dragstrip.engines.agent.bpf import Loadable
    from dragstrip.engines.agent.packets import Packets
    from dragstrip.model.recording import Recording

STRICT = "strict"
"""The option of engines in real time by which a run that the machine limited has failed."""

LINES = "lines"
"""The option that says which links the simulator's code carries for a kernel (crates/agent/src/kernel.rs)."""
MEDIA, LACKING, ALL = "media", "lacking", "all"


def lines_option(*names: str) -> Option:
    """The option `lines` of an engine that takes these values beside `media`."""
    meanings = {
        LACKING: "also those that this kernel lacks a part of",
        ALL: "all that have a queue or a delay",
    }
    others = "; ".join(f"`{name}`: {meanings[name]}" for name in names)
    return Option(
        f"links in the simulator's code: `{MEDIA}`, the default, those that no kernel has; {others}"
    )


def load_option(meaning: str) -> Option:
    """The option `load`: C files with congestion controls."""
    return Option(meaning, file=True, many=True)


class KernelEngine(Engine):
    """Hosts run a kernel, which the agent drives and loads congestion controls of one's own into."""

    own_stack = "linux-6"
    limiter: ClassVar[str] = ""
    """The party whose processor time may limit a run in real time, in words."""
    more_lines: ClassVar[tuple[str, ...]] = ()
    """Values of the option `lines` beside `media`."""

    @abstractmethod
    def own_algorithms(self, options: Options) -> list[str]:
        """The congestion controls that the kernel has itself."""

    @abstractmethod
    def ready(self, options: Options, say: Say) -> None:
        """Compiles the agent, and makes what else all runs share."""

    @abstractmethod
    def parts(self, options: Options) -> list[str]:
        """Inputs that decide a run's figures beside the scenario and what is loaded, a text each."""

    @abstractmethod
    def perform(
        self,
        scenario: Json,
        options: Options,
        progress: Progress | None,
        load: Sequence[Loadable],
        packets: Packets | None,
    ) -> Recording:
        """One run of a scenario that is not refused, with `load` in the kernel; `packets` are written too."""

    def algorithms(self, options: Options) -> list[str]:
        """The kernel's own, and those named in the sources to be loaded."""
        from dragstrip.engines.agent import bpf

        strict = options.get(STRICT, "no")
        if strict not in ("yes", "no"):
            raise BadInputError(f"--engine-option {STRICT}", strict, "yes or no")
        self.lines(options)
        kernel_algorithms = self.own_algorithms(options)
        return [
            *kernel_algorithms,
            *(name for source in options.get("load", ()) for name in bpf.names(source)),
        ]

    def lines(self, options: Options) -> str:
        """The links that the simulator's code carries; raises `BadInputError` for an unknown value."""
        value: str = options.get(LINES, MEDIA)
        if value not in (MEDIA, *self.more_lines):
            expected = " or ".join((MEDIA, *self.more_lines))
            raise BadInputError(f"--engine-option {LINES}", value, expected)
        return value

    def prepare(self, options: Options, say: Say = quietly) -> None:
        """Compiles what is to be loaded and the agent, and makes what else all runs share."""
        from dragstrip.engines.agent import bpf

        for source in options.get("load", ()):
            bpf.compiled(source, say)
        self.ready(options, say)

    def build(self, options: Options) -> str:
        """A hash of the engine's parts, of what is loaded, and of the options `strict` and `lines`."""
        parts = self.parts(options) + [loadable.digest for loadable in loaded(options)]
        parts += [STRICT] if options.get(STRICT) == "yes" else []
        parts += [lines] if (lines := self.lines(options)) != MEDIA else []
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario."""
        return self._run(scenario, options, progress)

    def run_captured(
        self, scenario: Json, options: Options, capture: Capture, folder: Path, progress: Progress | None
    ) -> Recording:
        """Likewise; the agent has taps of its own for it."""
        from dragstrip.engines.agent.packets import Packets

        if not self.captures:
            return super().run_captured(scenario, options, capture, folder, progress)
        return self._run(scenario, options, progress, Packets(self.name, scenario, capture, folder))

    def _run(
        self, scenario: Json, options: Options, progress: Progress | None, packets: Packets | None = None
    ) -> Recording:
        for refusal in self.refusals(scenario, options):
            raise refusal.error(f"engine {self.name}")
        return self.perform(scenario, options, progress, loaded(options), packets)

    def notes(self, recording: Recording) -> list[str]:
        """Notes on packets missing in captures, programs that failed, and a machine that limited a run."""
        from dragstrip.engines.agent.flow_programs import outcomes
        from dragstrip.engines.agent.packets import missing

        name, verified = recording.scenario["name"], recording.provenance["verified"]
        lines = [f"{self.limiter} limited this run: {limit}" for limit in verified.get("limits", ())]
        lines += outcomes(verified)
        return missing(recording) + [f"warning: {name}: {line}" for line in lines]


def loaded(options: Options) -> list[Loadable]:
    """The congestion controls that `load` names, compiled."""
    from dragstrip.engines.agent import bpf

    return [bpf.compiled(source) for source in options.get("load", ())]
