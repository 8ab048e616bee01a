"""What an engine is: it takes a scenario and gives a recording, and says beforehand what it cannot run.

What must not be here, nor anywhere above this package: the name of a particular engine.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw

if TYPE_CHECKING:
    from pathlib import Path

    from dragstrip.recording import Recording

Json: TypeAlias = dict[str, Any]
Options: TypeAlias = Mapping[str, Any]
"""An engine's options by name: texts, or lists of texts for an option that may be given several times."""
Say: TypeAlias = Callable[[str], object]
"""Called with a line about what is done now, where that takes seconds."""


class Progress(Protocol):
    """Called from time to time; returning `False` ends the run."""

    def __call__(self, now_ns: int, arrived_bytes: int = 0, /) -> object:
        """With the run's own nanoseconds, and in real time the bytes of all frames that have arrived."""


def quietly(_: str) -> None:
    """Says nothing."""


ACCURATE_ECN_SINCE = (6, 18)
"""The Linux that brought it."""


@dataclass(frozen=True)
class Option:
    """What an engine takes beside the scenario."""

    meaning: str
    file: bool = False
    """A path: relative to the experiment's file."""
    many: bool = False


class Refusal(NamedTuple):
    """What an engine cannot run: where it stands, what it is, what would be right."""

    field: str
    value: str
    expected: str

    def error(self, source: str = "") -> BadInputError:
        """The same as an error."""
        return BadInputError(self.field, Raw(self.value) or None, self.expected, source)


@dataclass(frozen=True)
class Capture:
    """What is written of a run's packets beside its recording, a pcapng file for each vantage point."""

    points: Sequence[str]
    """Hosts and links of the scenario."""
    snaplen: int
    """Bytes kept of each frame."""


class Engine(ABC):
    """Runs scenarios, one at a time. It has no state: any process may ask any instance."""

    name: ClassVar[str]
    about: ClassVar[str]
    """For `--help`: a clause without a full stop."""
    options: ClassVar[Mapping[str, Option]] = {}
    own_stack: ClassVar[str | None] = None
    """The one stack profile that it has, if its hosts run a kernel of their own."""
    model: ClassVar[bool] = False
    """It models a kernel: conformance scripts tell its known gaps."""
    in_process: ClassVar[bool] = False
    """A run may share the caller's process, on a thread; otherwise it gets a worker process."""
    slow: ClassVar[bool] = False
    """Runs take long: a recording is kept for reuse."""
    real_time: ClassVar[bool] = False
    """A run takes as long as it says, one at a time, and no two are the same."""

    captures: ClassVar[bool] = False
    """It writes captures."""

    def without_accurate_ecn(self) -> str | None:
        """Why scripts about accurate ECN cannot be played; none if they can."""
        return None

    @abstractmethod
    def algorithms(self, options: Options) -> list[str]:
        """The congestion controls that a flow may name, without compiling or starting anything.

        Raises `BadInputError` for an option that cannot be right.
        """

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Why this engine cannot run the scenario, as far as is known without starting anything."""
        return invalid(scenario, self.algorithms(options))

    def prepare(self, options: Options, say: Say = quietly) -> None:  # noqa: B027 - it may need nothing
        """Makes what all runs share (compiles, boots); raises `DragstripError` where it cannot run."""

    @abstractmethod
    def build(self, options: Options) -> str:
        """Names what decides a run's figures beside the scenario, in hexadecimal digits.

        Two builds with the same name give the same recordings, so that a stored one may stand for a run.
        """

    @abstractmethod
    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario. Raises `BadInputError` where it cannot be run, else `DragstripError`."""

    def run_captured(
        self, scenario: Json, options: Options, capture: Capture, folder: Path, progress: Progress | None
    ) -> Recording:
        """As `run`, with its captures written into `folder`. Raises `BadInputError` where it writes none."""
        raise BadInputError("--capture", None, f"engine {self.name} writes no captures", "command line")

    def notes(self, recording: Recording) -> list[str]:
        """What is to be known before a run's figures are believed, a line each."""
        return []

    def play(self, scripts: Mapping[str, str]) -> list[Json]:
        """Plays conformance scripts (text by name) on its endpoint; gives what came of each.

        Raises `BadInputError` for one that cannot be read, and where the engine plays none.
        """
        raise BadInputError("--engine", self.name, f"one that plays scripts such as {next(iter(scripts))}")


def invalid(scenario: Json | str, algorithms: Collection[str] = ()) -> list[Refusal]:
    """What is wrong with a scenario on any engine: it may name these congestion controls and the core's.

    The scenario may be its JSON text.
    """
    beyond = {alike(name) for name in set(algorithms) - set(_core.algorithms())}
    return [
        Refusal(*found)
        for found in _core.validate(scenario if isinstance(scenario, str) else json.dumps(scenario))
        if not (found[0].endswith(".transport.cc") and alike(json.loads(found[1])) in beyond)
    ]


def without_accurate_ecn(release: str) -> str | None:
    """Why a kernel of this release has no accurate ECN (RFC 9768), as the agent says it; none if it has."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) >= ACCURATE_ECN_SINCE:
        return None
    return (
        f"accurate ECN (RFC 9768) is in Linux since 6.18, and this kernel is {release}; the engine sim has it"
    )


def without_a_kernel(
    scenario: Json,
    known: Collection[str],
    stack: str | None,
    tick_hz: int | None = None,
    release: str | None = None,
) -> list[Refusal]:
    """What a kernel cannot run that has one stack, so many ticks per second and these congestion controls.

    As the agent says it (crates/agent/src/plan.rs, network.rs, machine/modules.rs), before anything starts.
    `release`: as `uname -r` says; none: not known yet.
    """
    inaccurate = None if release is None else without_accurate_ecn(release)
    expected = "none: a program runs in the simulator alone (docs/new-algorithm.md has the way into a kernel)"
    found = [Refusal("programs", name, expected) for name in scenario.get("programs", {})]
    for host in (node for node in scenario["nodes"] if node["kind"] == "host"):
        where = f"host {host['name']}"
        profile, hz = host.get("profile", stack), host.get("tick_hz")
        if profile != stack:
            found.append(Refusal(f"{where}: profile", str(profile), f"{stack}, the kernel's own stack"))
        elif tick_hz is not None and hz not in (None, tick_hz):
            found.append(Refusal(f"{where}: tick_hz", str(hz), f"{tick_hz}, as the kernel was built"))
        ecn = host.get("sysctl", {}).get("net.ipv4.tcp_ecn", "").strip()
        if inaccurate and ecn in ("3", "4", "5"):
            found.append(Refusal(f"{where}: net.ipv4.tcp_ecn", ecn, f"from 0 to 2: {inaccurate}"))
        if host.get("gso") == "whole":
            expected = "off or auto: offloads are off on its interfaces"
            found.append(Refusal(f"{where}: gso", "whole", expected))
        if (cpu := host.get("cpu")) is not None:
            expected = "none: a kernel takes the time that it takes"
            found.append(Refusal(f"{where}: cpu", json.dumps(cpu), expected))
    if scenario["record"].get("captures"):
        expected = "false: --capture and `dragstrip inspect` do it on a kernel, the engine sim while it runs"
        found.append(Refusal("record: captures", "true", expected))
    for link in scenario["links"]:
        where, medium, qdisc = f"link {link['name']}", link.get("medium"), link.get("qdisc") or {}
        if qdisc["kind"] == "htb" and qdisc["leaf"]["kind"] == "noqueue":
            expected = "a queue, such as pfifo limit 1000: the kernel's htb holds packets in one"
            found.append(Refusal(f"{where}: queue", "noqueue", expected))
        netem = (link.get("netem"), qdisc, qdisc.get("leaf"))
        if any((spec or {}).get("loss", {}).get("model") == "every" for spec in netem):
            expected = "random or gemodel: a kernel's netem loses no packet by its number"
            found.append(Refusal(f"{where}: loss", "every", expected))
        if medium is not None:
            kind = scenario.get("media", {}).get(medium, {}).get("kind", "unknown")
            expected = "none: a kernel has only links of its own"
            found.append(Refusal(f"{where}: medium", f"{medium} ({kind})", expected))
    for flow in scenario["flows"]:
        cc = flow["transport"].get("cc")
        if cc is not None and alike(cc) not in map(alike, known) and cc in _core.algorithms():
            expected = f"one that this kernel has: {' '.join(known)}"
            found.append(Refusal(f"flow {flow['label']}: cc", cc, expected))
    return found


def alike(name: str) -> str:
    """Equal for names of congestion controls that are one: `my-exp`, which a kernel has as `my_exp`."""
    return name.replace("-", "_")
