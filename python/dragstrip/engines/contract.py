"""Interface of an engine: it takes a scenario, returns a recording, and says beforehand what it cannot run.

Out of scope, here and anywhere above this package: the name of a particular engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw

if TYPE_CHECKING:
    from pathlib import Path

    from dragstrip.model.recording import Recording

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


@dataclass(frozen=True)
class Option:
    """An option of an engine, beside the scenario."""

    meaning: str
    file: bool = False
    """A path: relative to the experiment's file."""
    many: bool = False


class Refusal(NamedTuple):
    """An input that an engine cannot run: its place, its value, and what would be right."""

    field: str
    value: str
    expected: str

    def error(self, source: str = "") -> BadInputError:
        """The same as an error."""
        return BadInputError(self.field, Raw(self.value) or None, self.expected, source)


@dataclass(frozen=True)
class Capture:
    """Packet captures written beside a run's recording, a pcapng file for each vantage point."""

    points: Sequence[str]
    """Hosts and links of the scenario."""
    snaplen: int
    """Bytes kept of each frame."""
    datagram_snaplen: int = 0
    """Bytes kept of each frame with a QUIC datagram; 0: as of others, with zeros for a payload."""


class Engine(ABC):
    """Runs scenarios, one at a time. It has no state: any process may ask any instance."""

    name: ClassVar[str]
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
    """It writes captures (`run_captured`)."""

    def lacks(self) -> Mapping[str, str]:
        """Features that scripts may need (`needs NAME`) and it does not have: name and reason."""
        return {}

    @abstractmethod
    def algorithms(self, options: Options) -> list[str]:
        """The congestion controls that a flow may name, without compiling or starting anything.

        Raises `BadInputError` for an option that cannot be right.
        """

    def lacking(self, algorithm: str) -> str:
        """Advice behind the list of names that a flow may use, where it names another existing algorithm."""
        return ""

    def absence(self, algorithm: str) -> str | None:
        """Return what this machine lacks for an algorithm of the engine, such as a library, or None."""
        return None

    def refusals(self, scenario: Json, options: Options) -> list[Refusal]:
        """Why this engine cannot run the scenario, as far as is known without starting anything."""
        return invalid(scenario, self.algorithms(options))

    def prepare(self, options: Options, say: Say = quietly) -> None:  # noqa: B027 - it may need nothing
        """Makes what all runs share (compiles, boots); raises `DragstripError` where it cannot run."""

    def missing(self, scenarios: Sequence[Json], options: Options) -> list[Refusal | None]:
        """Returns why the machine, once prepared, cannot run each of these scenarios, or None."""
        return [None] * len(scenarios)

    def expect(self, scenarios: Sequence[Json], options: Options) -> None:
        """Raise `BadInputError` for the first scenario that the prepared machine lacks something for."""
        for refusal in self.missing(scenarios, options):
            if refusal is not None:
                raise refusal.error(f"engine {self.name}")

    @abstractmethod
    def build(self, options: Options) -> str:
        """Names what decides a run's figures beside the scenario, in hexadecimal digits.

        Two builds with the same name give the same recordings, so that a stored one may stand for a run.
        """

    def kernel(self, options: Options) -> str | None:
        """The release of the kernel that its hosts run, if it is one kernel and known beforehand."""
        return None

    def cost_s(self, scenario: Json) -> float:
        """Roughly the seconds of one core that a run takes; 0 where that is not worth asking."""
        return 0.0

    @abstractmethod
    def run(self, scenario: Json, options: Options, progress: Progress | None = None) -> Recording:
        """Runs one scenario. Raises `BadInputError` where it cannot be run, else `DragstripError`."""

    def run_on(
        self, cores: int, scenario: Json, options: Options, progress: Progress | None = None
    ) -> Recording:
        """As `run`, for a run that has `cores` processor cores for itself; the recording is the same."""
        return self.run(scenario, options, progress)

    def run_captured(
        self, scenario: Json, options: Options, capture: Capture, folder: Path, progress: Progress | None
    ) -> Recording:
        """As `run`, with its captures written into `folder`. Raises `BadInputError` where it writes none."""
        raise BadInputError("--capture", None, f"engine {self.name} writes no captures", "command line")

    def notes(self, recording: Recording) -> list[str]:
        """Notes to read before a run's figures are believed, a line each."""
        return []

    def play(self, scripts: Mapping[str, str]) -> list[Json]:
        """Plays conformance scripts (text by name) on its endpoint; gives what came of each.

        Raises `BadInputError` for one that cannot be read, and where the engine plays none.
        """
        raise BadInputError("--engine", self.name, f"one that plays scripts such as {next(iter(scripts))}")


def invalid(scenario: Json | str, algorithms: Collection[str] = ()) -> list[Refusal]:
    """Return what is wrong with a scenario, a dict or its JSON text, on any engine.

    It may name these congestion controls and the core's.
    """
    beyond = {alike(name) for name in set(algorithms) - set(_core.ALGORITHMS)}
    return [
        Refusal(field, value, expected)
        for field, value, expected in _core.problems_of(scenario)
        if not (field.endswith(".transport.cc") and alike(value.strip('"')) in beyond)
    ]


def alike(name: str) -> str:
    """Equal for names of congestion controls that are one: `my-exp`, which a kernel has as `my_exp`."""
    return name.replace("-", "_")
