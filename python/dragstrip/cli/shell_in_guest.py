"""`dragstrip shell --engine vm`: programs behind a path on a kernel in virtual time."""

from __future__ import annotations

import calendar
import datetime
import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.cli.capture import capture_request
from dragstrip.cli.output import say
from dragstrip.cli.shell_parts import (
    TIMED_OUT,
    ProgramEnds,
    described,
    hand_over,
    hosts,
    planned,
    say_path,
    summary,
)
from dragstrip.errors import BadInputError, DragstripError

if TYPE_CHECKING:
    from dragstrip.cli.race import Race
    from dragstrip.engines.contract import Json
    from dragstrip.engines.vm.programs import GuestOutcome
    from dragstrip.experiment.expand import PlannedRun

VIRTUAL = "vm"
"""The engine."""
FLOODED = 125
"""Exit status of a command that was ended because it printed too much: env(1)'s for its own failures."""
FIRST_YEAR, LAST_YEAR = 1971, 2037
"""Dates that every program can hold (time_t of 32 bits ends in 2038)."""
BRIEF_NS = 1_000_000_000
"""A command that is shorter is busy with its start."""


@dataclass(frozen=True)
class InGuest:
    """Options of a command line for the guest."""

    options: Mapping[str, Any]
    load: Sequence[str]
    files: Sequence[str]
    fetched: Sequence[str]
    date: str | None
    capture: Sequence[str] | None
    snaplen: int | None

    def run(self, ends: ProgramEnds, race: Race, limit_s: float, out: Path | None, *, as_json: bool) -> int:
        """Run programs, write what they leave, and return the command's status."""
        from dragstrip.display.progress import ProgressMessages
        from dragstrip.engines import registry
        from dragstrip.engines.agent.engine import loaded
        from dragstrip.engines.agent.packets import Packets
        from dragstrip.engines.vm import programs
        from dragstrip.io.files import make_folder

        if not ends.command:
            raise BadInputError("COMMAND", None, "is missing: nobody types in virtual time", "command line")
        request = capture_request(self.capture, self.snaplen)
        if request is not None and out is None:
            raise BadInputError("--capture", None, "--out FOLDER with it, for the files", "command line")
        options = {**self.options, **({"load": list(self.load)} if self.load else {})}
        registry.check_options((VIRTUAL,), options)
        engine = registry.named(VIRTUAL)
        run = planned(ends.cc, race, engine=VIRTUAL, engine_options=self.options, load=self.load)
        scenario = run.scenario
        for refusal in engine.refusals(scenario, options):
            raise refusal.error(f"engine {VIRTUAL}")
        date_s = self._date_s()
        inside = self._programs(ends)
        points = None if request is None else request.of(scenario)
        path = say_path(run, ends.cc)
        programs.prepare(options.get("kernel"), lambda step: say(step, err=True))
        load = loaded(options)
        size = inside.closure.about()
        say(
            f"guest: {size['files']} files, {size['bytes'] / 1e6:.1f} MB; {_estimate(run, limit_s)}", err=True
        )
        packets = None
        if points is not None and out is not None:
            make_folder(out)
            packets = Packets(VIRTUAL, scenario, points, out)
        reached = [0]
        messages = ProgressMessages()
        messages.doing(lambda: f"running: {reached[0] / 1e9:.1f} s of virtual time ...")
        start_s = time.monotonic()
        try:
            outcome = programs.run(
                scenario,
                hosts(run),
                ends.cc,
                inside,
                limit_s,
                date_s=date_s,
                kernel_name=options.get("kernel"),
                load=load,
                packets=packets,
                progress=lambda now_ns: reached.__setitem__(0, now_ns),
            )
        finally:
            messages.close()
        _print(outcome, output_to_errors=as_json)
        programs.write_outputs(outcome, Path.cwd())
        for line in (*summary(outcome.run), *_notes(outcome)):
            say(line, err=True)
        say(
            f"virtual time {outcome.run['duration_ns'] / 1e9:.3f} s, took {time.monotonic() - start_s:.1f} s",
            err=True,
        )
        document = {
            **described(ends, ends.command, path, VIRTUAL),
            "marked": [],
            **outcome.run,
            **outcome.provenance,
            "scenario": scenario,
        }
        hand_over(document, out, as_json=as_json)
        return _status(outcome.run)

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

    def _programs(self, ends: ProgramEnds) -> Any:
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
        closure = Closure(Path.cwd().resolve(), os.environ.get("PATH", "").split(":"), self.fetched)
        if ends.server:
            closure.command("--server", ends.server)
        closure.command("COMMAND", ends.command)
        for text in self.files:
            closure.file(text)
        for name in self.fetched:
            if name.endswith("/") or ".." in Path(name).parts:
                raise BadInputError("--fetch", name, "a file's name, without ..", "command line")
        return GuestPrograms(closure, ends.command, ends.server, _input(), self.fetched)


def _input() -> bytes:
    """Return standard input, where it is a file or a pipe."""
    from dragstrip.engines.vm.programs import INPUT_BYTES_MAX

    try:
        mode = os.fstat(0).st_mode
    except OSError:  # closed
        return b""
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        say("guest: reading standard input to its end (</dev/null: none)", err=True)
    elif not stat.S_ISREG(mode):
        return b""
    content = sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
    if len(content) > INPUT_BYTES_MAX:
        expected = f"at most {INPUT_BYTES_MAX >> 20} MiB: take a file into the guest by --file"
        raise BadInputError("standard input", None, expected, "command line")
    return content


def _estimate(run: PlannedRun, limit_s: float) -> str:
    """Return how long a second of the path takes, full and idle."""
    from dragstrip.engines.vm.engine import IDLE_COST, PACKET_COST_S
    from dragstrip.model.scenario.paths import packets

    full = IDLE_COST + PACKET_COST_S * packets(run.scenario) / (run.scenario["duration_ns"] / 1e9)
    return (
        f"a second at the path's full rate takes about {full:.1f} s, an idle one {IDLE_COST} s; "
        f"the command has {limit_s:g} s (--timeout)"
    )


def _print(outcome: GuestOutcome, *, output_to_errors: bool) -> None:
    """Write what programs printed, byte for byte, to where it belongs."""
    errors = sys.stderr.buffer
    sys.stderr.flush()
    for name, sink in (
        ("the server's output", errors),
        ("standard error", errors),
        ("standard output", errors if output_to_errors else sys.stdout.buffer),
    ):
        sink.write(outcome.streams.get(name, b""))
        sink.flush()


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
    import signal

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
