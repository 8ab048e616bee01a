"""`dragstrip shell` in real time: the run, its recording, and what is said and written."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dragstrip.cli.output import print_json, say
from dragstrip.cli.race import Race
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.interop.path_shell.path import (
    REAL,
    ProgramEnds,
    hosts,
    planned,
    say_path,
    summary,
)

if TYPE_CHECKING:
    from dragstrip.engines.capture import CaptureRequest
    from dragstrip.engines.contract import Json
    from dragstrip.engines.netns.shell import Programs, ShellRecorder
    from dragstrip.studies.execution.programs_run import RunFolder


@dataclass(frozen=True)
class RealTime:
    """Options of a run in real time."""

    limit_s: float
    out: Path | None
    capture: CaptureRequest | None
    live: bool | None
    """Show a line at the bottom of the terminal; None: if there is one and the command is no shell."""
    offline: bool = False
    as_json: bool = False

    def perform(self, ends: ProgramEnds, race: Race, programs: Programs) -> int:
        """Run programs, say and write what there is to it, and return the command's status."""
        from dragstrip.engines.netns import shell as engine
        from dragstrip.interop.path_shell.real_time import document_of, status_of
        from dragstrip.studies.execution import programs_run

        run = planned(ends.cc, race)
        scenario = programs_run.with_pings(run.scenario, self.out is not None)
        with self._folder() as folder:
            path = say_path(run, ends.cc, _say)
            with self._line(programs) as show:
                recorder = self._recorder(scenario, hosts(run), folder, show)
                outcome = engine.run(scenario, hosts(run), ends.cc, programs, self.limit_s, _say, recorder)
            marks = engine.reasons(outcome)
            recorded = outcome["recorded"] or {}
            missing = programs_run.notes(recorded)
            for line in (*summary(outcome), *(f"MARKED {mark}" for mark in marks), *missing):
                _say(line)
            if "failed" in recorded:
                raise DragstripError(f"the run was not recorded: {recorded['failed']}")
            document = document_of(ends, programs, path, outcome, run.scenario)
            if folder is not None and recorder is not None and recorder.answer is not None:
                about = {"command": document["command_line"], "verified": {"limits": marks}}
                folder.write(recorder.answer, scenario, document, about, shlex.join(programs.command))
        if self.out is not None:
            _say(f"Report: {self.out / 'report.html'}")
        if self.as_json:
            print_json(document)
        return status_of(outcome)

    @contextlib.contextmanager
    def _folder(self) -> Iterator[RunFolder | None]:
        """The output folder while it is filled, if there is one."""
        from dragstrip.studies.execution import programs_run

        if self.out is None:
            yield None
            return
        with programs_run.filling(self.out) as folder:
            yield folder

    @contextlib.contextmanager
    def _line(self, programs: Programs) -> Iterator[Callable[[Json], object] | None]:
        """The live line, if there is one."""
        from dragstrip.cli.shell_live import line
        from dragstrip.display.status_line import StatusLine

        is_live = not (programs.interactive or self.as_json) if self.live is None else self.live
        if not is_live or not StatusLine.possible():
            yield None
            return
        status = StatusLine()
        try:
            yield lambda state: status.show(line(state))
        finally:
            status.close()

    def _recorder(
        self,
        scenario: Json,
        ends: tuple[str, str],
        folder: RunFolder | None,
        show: Callable[[Json], object] | None,
    ) -> ShellRecorder | None:
        """The request of a recording or a live line, if there is one."""
        from dragstrip.engines.agent.packets import Packets
        from dragstrip.engines.contract import Capture
        from dragstrip.engines.netns.shell import ShellRecorder

        if folder is None:
            return None if show is None else ShellRecorder(live=show)
        if self.capture is None:
            return ShellRecorder(live=show)
        points = self.capture.points or ends
        for point in points:
            if point not in ends:
                expected = f"{ends[0]} (the server's host) or {ends[1]} (the command's)"
                raise BadInputError("--capture", point, expected, "command line")
        capture = Capture(points, *self.capture.snaplens())
        return ShellRecorder(Packets(REAL, scenario, capture, folder.captures), show)


def _say(line: str) -> None:
    say(line, err=True)
