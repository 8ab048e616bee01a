"""The simulator as an engine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dragstrip import _core
from dragstrip.engines.capture import comment, names
from dragstrip.engines.contract import Capture, Engine, Json, Options, Progress, Refusal
from dragstrip.errors import BadInputError, FaultError

if TYPE_CHECKING:
    from dragstrip.model.recording import Recording

Files: TypeAlias = tuple[list[tuple[str, str]], tuple[int, int], str]
"""Captures: (host or link, its file), bytes kept of each frame, what each file says of the run."""


class Simulator(Engine):
    """Deterministic: the same scenario and build give the same bytes on every machine."""

    name = "sim"
    model = True
    in_process = True
    captures = True

    def algorithms(self, options: Options) -> list[str]:
        """The algorithms of `crates/cc`, and those of the QUIC stacks that this machine can run."""
        from dragstrip.engines.sim import quic

        return [*_core.ALGORITHMS, *quic.runnable_words()]

    def absence(self, algorithm: str) -> str | None:
        """Return the library that a QUIC stack needs, with the package that has it."""
        from dragstrip.engines.sim import quic

        return quic.absence(algorithm)

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Also programs of the user's own, which need a kernel, and QUIC stacks whose library is missing."""
        from dragstrip.engines.agent.flow_programs import refused
        from dragstrip.engines.sim import quic

        return [*super().refusals(scenario, options), *refused(scenario), *quic.refused(scenario)]

    def build(self, options: Options) -> str:
        """A fingerprint of what it does."""
        from dragstrip.engines.sim.fingerprint import fingerprint

        return fingerprint()

    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario in this process; other threads go on meanwhile."""
        return simulate(scenario, progress)

    def run_on(
        self, cores: int, scenario: Json, options: Options, progress: Progress | None = None
    ) -> Recording:
        """Likewise; a large network is simulated in parts, a thread each."""
        return simulate(scenario, progress, cores=cores)

    def run_captured(
        self, scenario: Json, options: Options, capture: Capture, folder: Path, progress: Progress | None
    ) -> Recording:
        """Likewise; each file has a host's or a link's name."""
        files = [(point, str(folder / name)) for point, name in names(capture.points).items()]
        snaplens = (capture.snaplen, capture.datagram_snaplen)
        return simulate(scenario, progress, (files, snaplens, comment(self.name, scenario)))

    def play(self, scripts: Mapping[str, str]) -> list[Json]:
        """Plays them on the simulator's endpoint."""
        try:
            return [{"name": name, **_core.conform(name, text)} for name, text in scripts.items()]
        except _core.InputError as error:
            script, _, fault = error.args
            raise BadInputError("", None, fault, script) from None
        except _core.PanicError as error:
            raise FaultError(str(error)) from None


def simulate(
    scenario: Json, progress: Progress | None = None, capture: Files | None = None, cores: int = 1
) -> Recording:
    """Runs one scenario in this process.

    `progress` gets the simulated nanoseconds about once a simulated second; if it answers `False` the
    run ends there. `capture` is what `_core.Scenario.run` takes. Other threads go on meanwhile. A scenario of
    a thousand flows and more runs on at most `cores` processor cores; the recording does not depend on it.

    Raises `BadInputError` for a scenario that cannot run, and
    `FaultError` with scenario and seed for a fault of the core.
    """
    started = datetime.now(UTC)
    try:
        core = _core.Scenario(scenario)
        outcome = core.run(progress, capture, cores)
    except _core.InputError as error:
        field, value, expected = error.args
        raise BadInputError(field, value or None, expected) from None
    except _core.PanicError as error:
        from dragstrip.model.recording.core_build import blamed

        raise blamed(str(error)) or FaultError(f"{error} with its scenario.json") from None
    from dragstrip.engines.sim import quic
    from dragstrip.model.recording import (  # Arrow: not before there is something to hold
        CoreTables,
        Recording,
    )

    provenance = {
        "engine": Simulator.name,
        "version": _core.__version__,
        "seed": scenario["seed"],
        "started": started.isoformat(timespec="seconds"),
        "recording_sha256": outcome["sha256"],
    }
    if stacks := quic.releases(scenario):
        provenance["stacks"] = stacks
    return Recording(scenario, CoreTables(outcome["tables"]), provenance, core)


ENGINE = Simulator()
