"""One run made, recorded and measured; errors become its answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragstrip.engines.contract import Json, Progress
from dragstrip.engines.registry import DEFAULT, named
from dragstrip.errors import BadInputError, DragstripError, FaultError, of_system
from dragstrip.io.files import NotWrittenError
from dragstrip.io.untrusted import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from dragstrip.engines.contract import Engine
    from dragstrip.model.recording import Recording

OK, FAILED, MEMORY_LIMIT, TIME_LIMIT = "ok", "failed", "memory limit", "time limit"
"""Values of `status` in an answer: how a run ended."""

FAULT, UNWRITTEN, REBUILT = "fault", "unwritten", "rebuilt"
"""Values of `kind` in an answer without a summary: a fault of the program; a recording that could not be
written; an engine of another build than the order asks for."""

OUTPUT_CHARACTERS = 2000
"""Characters of a run's last output that are kept."""

Answer = dict[str, Any]
"""The answer to an order: `status`, `cpu_s` and `wall_s`.

After success `summary` (measures.summarise), `sha256` and, if the order has any, the values of `claims`; else
`reason`, and `wrong` (the arguments of a `BadInputError`) or `output` if there is one.
"""


@dataclass(frozen=True)
class Order:
    """A run to be made."""

    number: int
    text: str
    """The scenario as one line of JSON; empty if `scenario` is given."""
    engine: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    """The engine's options."""
    folder: str = ""
    """The folder of its recording; empty if none is kept."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Further entries for the recording's provenance."""
    recalled: bool = False
    """True if the stored recording of an earlier run may be used."""
    build: str = ""
    """Prefix of the engine build that must make the run; empty accepts any."""
    watched: bool = False
    """True if its progress is reported."""
    scenario: Json | None = None
    """The scenario itself, instead of its text, for a run in this process."""
    capture: Mapping[str, Any] | None = None
    """A `Capture` that is written beside the recording."""
    cores: int = 1
    """Processor cores that it may use."""
    keep: Callable[[Recording], object] | None = None
    """Receives the recording; only of a run in this process."""
    claims: Sequence[Mapping[str, Any]] = ()
    """Measurements that claims need of it (`results.claims.requests`)."""

    def line(self) -> str:
        """Return the order as one line for a worker process."""
        head = {
            "number": self.number,
            "engine": self.engine,
            "options": dict(self.options),
            "folder": self.folder,
            "provenance": dict(self.provenance),
            "recalled": self.recalled,
            "build": self.build,
            "watched": self.watched,
            "capture": self.capture,
            "cores": self.cores,
            "claims": list(self.claims),
        }
        return f"{json.dumps(head)}\t{self.text}\n"

    @classmethod
    def read(cls, line: str) -> Order:
        """Return the order in a line that `line` made."""
        head, _, text = line.rstrip("\n").partition("\t")
        return cls(text=text, **json.loads(head))


class RebuiltError(DragstripError):
    """The engine here is of another build than the one that was asked for."""

    def __init__(self, engine: str) -> None:
        super().__init__(f"engine {engine}: a different build than at the start (is another kernel in use?)")


def perform(order: Order, progress: Progress | None = None) -> Answer:
    """Make a run and return its answer, whatever happens except a crash or an interrupt."""
    wall, cpu = time.monotonic(), time.process_time()
    try:
        answer = run(order, progress)
    except MemoryError:
        answer = {"status": MEMORY_LIMIT, "reason": "it needed more memory than a run may take"}
    except BadInputError as error:
        answer = {"status": FAILED, "reason": str(error), "wrong": list(error.args)}
    except FaultError as error:
        answer = {"status": FAILED, "reason": str(error), "kind": FAULT}
    except NotWrittenError as error:
        answer = {"status": FAILED, "reason": str(error), "kind": UNWRITTEN}
    except RebuiltError as error:
        answer = {"status": FAILED, "reason": str(error), "kind": REBUILT}
    except DragstripError as error:
        answer = {"status": FAILED, "reason": str(error)}
    except OSError as error:
        answer = {"status": FAILED, "reason": of_system(error)}
    except Exception as error:  # noqa: BLE001 - any other fault is this run's failure, reported in full
        import traceback

        answer = {
            "status": FAILED,
            "reason": f"a fault in dragstrip: {type(error).__name__}: {error} "
            "(DRAGSTRIP_TRACEBACK=1 shows where; please report it)",
            "kind": FAULT,
            "output": traceback.format_exc()[-OUTPUT_CHARACTERS:],
        }
    if "reason" in answer:
        answer["reason"] = one_line(answer["reason"])
    answer["cpu_s"] = time.process_time() - cpu
    answer["wall_s"] = time.monotonic() - wall
    return answer


def run(order: Order, progress: Progress | None) -> Answer:
    """Make a run and return its answer; errors are raised."""
    from dragstrip.engines.recall import recall

    engine = named(order.engine)
    notes: list[str] = []
    scenario = json.loads(order.text) if order.scenario is None else order.scenario
    _expect_build(order)
    if order.capture is not None:
        return _captured(order, engine, scenario, progress)
    if order.recalled:
        recording = recall(engine, scenario, order.options, progress, notes.append)
    else:
        recording = engine.run_on(order.cores, scenario, order.options, progress)
    notes += engine.notes(recording)
    return _concluded(order, recording, notes)


def _captured(order: Order, engine: Engine, scenario: Json, progress: Progress | None) -> Answer:
    """Make a run whose packet captures are written beside its recording and moved into it."""
    from pathlib import Path

    from dragstrip.engines.contract import Capture
    from dragstrip.io.files import aside

    capture = Capture(**(order.capture or {}))
    with aside(Path(order.folder)) as draft:
        captures = draft / "captures"
        (draft / "captures").mkdir()
        recording = engine.run_captured(scenario, order.options, capture, captures, progress)
        return _concluded(order, recording, engine.notes(recording), captures)


def _concluded(order: Order, recording: Recording, notes: list[str], captures: Path | None = None) -> Answer:
    """Write and measure a finished run."""
    _expect_build(order)  # it may have changed while the run was being started
    from pathlib import Path

    from dragstrip.model.recording import write
    from dragstrip.results.measures import summarise

    recording.provenance.update(order.provenance)
    if order.folder:
        write(recording, Path(order.folder), captures)
    if order.keep is not None:
        order.keep(recording)
    answer: Answer = {
        "status": OK,
        "summary": summarise(recording),
        "sha256": recording.provenance["recording_sha256"],
        "notes": notes,
    }
    if order.claims:
        from dragstrip.results.claims import requested_values
        from dragstrip.results.measures import Measured

        scenario = json.loads(order.text) if order.scenario is None else order.scenario
        answer["claims"] = requested_values(order.claims, Measured(recording), scenario)
    return answer


def _expect_build(order: Order) -> None:
    if order.build and not named(order.engine).build(order.options).startswith(order.build):
        raise RebuiltError(order.engine)
