"""Programs behind a path on a kernel in virtual time."""

from __future__ import annotations

import calendar
import datetime
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.engines.contract import Json, Say, quietly
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.interop.path_shell.path import (
    FLOODED,
    TIMED_OUT,
    VIRTUAL,
    Ending,
    ProgramEnds,
    described,
    hosts,
    planned,
    say_path,
    summary,
)

if TYPE_CHECKING:
    from dragstrip.engines.agent.packets import Packets
    from dragstrip.engines.capture import CaptureRequest
    from dragstrip.engines.vm.programs import GuestOutcome, GuestPrograms
    from dragstrip.experiment.expand import PlannedRun

FIRST_YEAR, LAST_YEAR = 1971, 2037
"""Dates that every program can hold (time_t of 32 bits ends in 2038)."""
BRIEF_NS = 1_000_000_000
"""A command that is shorter is busy with its start."""


@dataclass(frozen=True)
class GuestOptions:
    """Options for programs in a guest."""

    options: Mapping[str, Any]
    """The engine's own."""
    load: Sequence[str]
    """C files with congestion controls."""
    files: Sequence[str]
    """Files and folders for the guest, `PATH` or `PATH:PLACE`."""
    fetched: Sequence[str]
    """Files that the command writes."""
    date: str | None
    capture: CaptureRequest | None
    folder: Path
    """Folder in which both programs start."""

    def engine_options(self) -> dict[str, Any]:
        """Return the engine's options with what is to be loaded."""
        return {**self.options, **({"load": list(self.load)} if self.load else {})}

    def checked(self, ends: ProgramEnds, race: Mapping[str, Any]) -> PlannedRun:
        """Return the path as a run. Raises `BadInputError` for what this engine cannot run."""
        from dragstrip.engines import registry

        options = self.engine_options()
        registry.check_options((VIRTUAL,), options)
        run = planned(ends.cc, race, engine=VIRTUAL, engine_options=self.options, load=self.load)
        for refusal in registry.named(VIRTUAL).refusals(run.scenario, options):
            raise refusal.error(f"engine {VIRTUAL}")
        return run

    def run(
        self,
        ends: ProgramEnds,
        race: Mapping[str, Any],
        limit_s: float,
        given: Callable[[], bytes],
        out: Path | None,
        *,
        say: Say = quietly,
        progress: Callable[[int], object] | None = None,
    ) -> Ending:
        """Run programs; packets of a capture are written into `out`.

        `given` returns the command's standard input, and is asked once everything else is right. `say` gets
        lines about the path and the files; `progress` gets nanoseconds of virtual time. Raises
        `BadInputError` for what cannot be, `DragstripError` for what this machine lacks.
        """
        from dragstrip.engines.agent.engine import loaded
        from dragstrip.engines.vm import programs

        if not ends.command:
            raise BadInputError("COMMAND", None, "is missing: nobody types in virtual time", "command line")
        if self.capture is not None and out is None:
            raise BadInputError("--capture", None, "--out FOLDER with it, for the files", "command line")
        run = self.checked(ends, race)
        scenario, options, date_s = run.scenario, self.engine_options(), self._date_s()
        inside = self._programs(ends, given)
        packets = self._packets(scenario, out)
        path = say_path(run, ends.cc, say)
        programs.prepare(options.get("kernel"), say)
        size = inside.closure.about()
        say(f"guest: {size['files']} files, {size['bytes'] / 1e6:.1f} MB; {_estimate(run, limit_s)}")
        start_s = time.monotonic()
        outcome = programs.run(
            scenario,
            hosts(run),
            ends.cc,
            inside,
            limit_s,
            date_s=date_s,
            kernel_name=options.get("kernel"),
            load=loaded(options),
            packets=packets,
            progress=progress,
        )
        took_s = time.monotonic() - start_s
        duration_s = outcome.run["duration_ns"] / 1e9
        document = {
            **described(ends, ends.command, path, VIRTUAL),
            "marked": [],
            **outcome.run,
            **outcome.provenance,
            "scenario": scenario,
        }
        last = f"virtual time {duration_s:.3f} s, took {took_s:.1f} s"
        notes = [*summary(outcome.run), *_notes(outcome), last]
        return Ending(document, _status(outcome.run), notes, outcome.streams, outcome.outputs)

    def _packets(self, scenario: Json, out: Path | None) -> Packets | None:
        """Return what writes the capture's packets, if one is asked for."""
        from dragstrip.engines.agent.packets import Packets
        from dragstrip.io.files import make_folder

        if self.capture is None or out is None:
            return None
        points = self.capture.of(scenario)
        make_folder(out)
        return Packets(VIRTUAL, scenario, points, out)

    def _date_s(self) -> int:
        """Return the guest's date, in seconds since 1970."""
        from dragstrip.engines.vm.programs import DATE_S

        if self.date is None:
            return DATE_S
        try:
            day = datetime.date.fromisoformat(self.date)
        except ValueError:
            day = None
        if day is None or not FIRST_YEAR <= day.year <= LAST_YEAR:
            expected = f"a date from {FIRST_YEAR} to {LAST_YEAR}, such as 2026-01-01"
            raise BadInputError("--date", self.date, expected, "command line")
        return calendar.timegm(day.timetuple())

    def _programs(self, ends: ProgramEnds, given: Callable[[], bytes]) -> GuestPrograms:
        """Return the programs with their files and their input."""
        from dragstrip.engines.vm.closure import Closure, expressible
        from dragstrip.engines.vm.programs import GuestPrograms

        for option, words in (
            ("COMMAND", ends.command),
            ("--server", ends.server),
            ("--fetch", self.fetched),
        ):
            for word in words:
                if not expressible(word):
                    raise BadInputError(option, word, "text in UTF-8", "command line")
        closure = Closure(self.folder.resolve(), os.environ.get("PATH", "").split(":"), self.fetched)
        if ends.server:
            closure.command("--server", ends.server)
        closure.command("COMMAND", ends.command)
        for text in self.files:
            closure.file(text)
        for name in self.fetched:
            if name.endswith("/") or ".." in Path(name).parts:
                raise BadInputError("--fetch", name, "a file's name, without ..", "command line")
        return GuestPrograms(closure, ends.command, ends.server, given(), self.fetched)


def _estimate(run: PlannedRun, limit_s: float) -> str:
    """Return how long a second of the path takes, full and idle."""
    from dragstrip.engines.vm.engine import IDLE_COST, PACKET_COST_S
    from dragstrip.model.scenario.paths import packets

    full = IDLE_COST + PACKET_COST_S * packets(run.scenario) / (run.scenario["duration_ns"] / 1e9)
    return (
        f"a second at the path's full rate takes about {full:.1f} s, an idle one {IDLE_COST} s; "
        f"the command has {limit_s:g} s (--timeout)"
    )


def _notes(outcome: GuestOutcome) -> list[str]:
    from dragstrip.engines.vm.engine import IDLE_MIN

    run = outcome.run
    lines = []
    if run["flooded"] is not None:
        lines.append(
            f"the command was ended: {run['flooded']} has more than 16 MiB; write it to a file for --fetch, "
            "or to /dev/null"
        )
    status = run["status"]
    if status is not None and not run["timed_out"] and (signalled := _signal(status - 128)):
        lines.append(f"status {status} is that of a command ended by {signalled}")
    lines += [f"--fetch {name}: the command wrote no such file" for name in run["missing_outputs"]]
    if run["cpu_idle_share"] < IDLE_MIN and run["duration_ns"] > BRIEF_NS:
        share = run["cpu_idle_share"] * 100
        lines.append(
            f"note: the emulated processor was idle for only {share:.0f} % of the time: the programs' own "
            "work is in the figures; it does a thousand million instructions a second"
        )
    return lines


def _signal(number: int) -> str:
    """Return a signal's name and what helps, or an empty string for no signal's number."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return ""
    if name == "SIGILL":
        return f"{name}: it needs instructions beyond x86-64-v2, which the guest has"
    return name


def _status(run: Json) -> int:
    """Return the exit status of the command."""
    if run["flooded"] is not None:
        return FLOODED
    if run["timed_out"]:
        return TIMED_OUT
    if run["status"] is None:
        raise DragstripError(f"engine {VIRTUAL}: the command has no status")
    return int(run["status"])
