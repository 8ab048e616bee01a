"""What is done for a run: it is run, recorded and measured; what goes wrong is its answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragstrip.engines.contract import Json, Progress
from dragstrip.engines.registry import DEFAULT, named
from dragstrip.errors import BadInputError, DragstripError, FaultError, of_system
from dragstrip.files import NotWrittenError
from dragstrip.outside import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from dragstrip.engines.contract import Engine
    from dragstrip.recording import Recording

OK, FAILED, MEMORY_LIMIT, TIME_LIMIT = "ok", "failed", "memory limit", "time limit"
"""How a run ends: `status` of its answer."""

FAULT, UNWRITTEN, REBUILT = "fault", "unwritten", "rebuilt"
"""`kind` of an answer without a summary: a fault of ours; a recording that the disk did not take; the engine
is another build than the one that was asked for."""

OUTPUT_CHARACTERS = 2000
"""Of a run's last output that is kept."""

Answer = dict[str, Any]
"""`status`, `cpu_s`, `wall_s`; of a run that ended well `summary` (measures.summarise) and `sha256`; else
`reason`, and `wrong` (what a `BadInputError` is made of) or `output` where there is one."""


@dataclass(frozen=True)
class Order:
    """A run to be made."""

    number: int
    text: str
    """The scenario as JSON, in one line; empty where there is `scenario`."""
    engine: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    """The engine's."""
    folder: str = ""
    """Where its recording goes, if it is kept."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What else the recording says of where it comes from."""
    recalled: bool = False
    """The recording of an earlier run will do."""
    build: str = ""
    """How the name of the engine's build begins, which answers for no other one; empty: whichever is here."""
    watched: bool = False
    """Its progress is reported."""
    scenario: Json | None = None
    """Instead of its text, for a run in this process."""
    capture: Mapping[str, Any] | None = None
    """A `Capture`, written beside the recording."""

    def line(self) -> str:
        """The order on its way to a process."""
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
        }
        return f"{json.dumps(head)}\t{self.text}\n"

    @classmethod
    def read(cls, line: str) -> Order:
        """The order in a line."""
        head, _, text = line.rstrip("\n").partition("\t")
        return cls(text=text, **json.loads(head))


class RebuiltError(DragstripError):
    """The engine here is another build than the one that was asked for."""

    def __init__(self, engine: str) -> None:
        super().__init__(f"engine {engine}: another build than at the beginning (another kernel is in use?)")


def perform(order: Order, progress: Progress | None = None) -> Answer:
    """Makes a run; gives its answer, whatever happens but a crash or an interrupt."""
    wall, cpu = time.monotonic(), time.process_time()
    try:
        made = run(order, progress)
    except MemoryError:
        made = {"status": MEMORY_LIMIT, "reason": "it needed more memory than a run may take"}
    except BadInputError as error:
        made = {"status": FAILED, "reason": str(error), "wrong": list(error.args)}
    except FaultError as error:
        made = {"status": FAILED, "reason": str(error), "kind": FAULT}
    except NotWrittenError as error:
        made = {"status": FAILED, "reason": str(error), "kind": UNWRITTEN}
    except RebuiltError as error:
        made = {"status": FAILED, "reason": str(error), "kind": REBUILT}
    except DragstripError as error:
        made = {"status": FAILED, "reason": str(error)}
    except OSError as error:
        made = {"status": FAILED, "reason": of_system(error)}
    except Exception as error:  # noqa: BLE001 - any other fault is this run's failure, reported in full
        import traceback

        made = {
            "status": FAILED,
            "reason": f"a fault in dragstrip: {type(error).__name__}: {error} "
            "(DRAGSTRIP_TRACEBACK=1 shows where; please report it)",
            "kind": FAULT,
            "output": traceback.format_exc()[-OUTPUT_CHARACTERS:],
        }
    if "reason" in made:
        made["reason"] = one_line(made["reason"])
    made["cpu_s"] = time.process_time() - cpu
    made["wall_s"] = time.monotonic() - wall
    return made


def run(order: Order, progress: Progress | None) -> Answer:
    """Makes a run; what goes wrong is raised."""
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
        recording = engine.run(scenario, order.options, progress)
    notes += engine.notes(recording)
    return _concluded(order, recording, notes)


def _captured(order: Order, engine: Engine, scenario: Json, progress: Progress | None) -> Answer:
    """Makes a run whose packets are written beside its recording, and land with it."""
    from pathlib import Path

    from dragstrip.engines.contract import Capture
    from dragstrip.files import aside

    capture = Capture(**(order.capture or {}))
    with aside(Path(order.folder)) as beside:
        made = beside / "captures"
        made.mkdir()
        recording = engine.run_captured(scenario, order.options, capture, made, progress)
        return _concluded(order, recording, engine.notes(recording), made)


def _concluded(order: Order, recording: Recording, notes: list[str], captures: Path | None = None) -> Answer:
    """Writes and measures what was run."""
    _expect_build(order)  # it may have changed while the run was being started
    from pathlib import Path

    from dragstrip.measures import summarise
    from dragstrip.recording import write

    recording.provenance.update(order.provenance)
    if order.folder:
        write(recording, Path(order.folder), captures)
    return {
        "status": OK,
        "summary": summarise(recording),
        "sha256": recording.provenance["recording_sha256"],
        "notes": notes,
    }


def _expect_build(order: Order) -> None:
    if order.build and not named(order.engine).build(order.options).startswith(order.build):
        raise RebuiltError(order.engine)
