"""Parts of programs behind a path in real and in virtual time alike: the path, the document, a status."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.race import ALGORITHMS

if TYPE_CHECKING:
    from dragstrip.engines.contract import Json, Say
    from dragstrip.experiment.expand import PlannedRun

LONGEST_S = 17_000
"""Longest time of a path: the simulator's clock ends then (4 h 43 min)."""
TIMED_OUT = 124
"""Exit status of a command whose time was over, as timeout(1) has it."""
FLOODED = 125
"""Exit status of a command that was ended because it printed too much: env(1)'s for its own failures."""
KILLED = 137
"""Exit status of a command that ended with its process namespace, as a shell has it for SIGKILL."""
PATH_OPTIONS = (
    *("path", "rate", "medium", "trace", "rtt", "queue", "loss", "jitter", "netem"),
    *("up_rate", "up_medium", "up_trace", "up_queue", "up_netem", "link"),
    *("ecn", "sysctl", "seed", "change"),
)
"""Options of a race that describe its path and its hosts."""
REAL, VIRTUAL = "netns", "vm"
"""Engines that run programs, in real time and in virtual time."""
VIRTUAL_S = 300.0
"""Time that a command has in virtual time where none is given: a busy minute takes minutes."""


@dataclass(frozen=True)
class ProgramEnds:
    """Programs at the two ends of a path, and the congestion control of both."""

    cc: str
    command: Sequence[str]
    server: Sequence[str]
    line: str
    """The command line that repeats it, for the document."""


@dataclass(frozen=True)
class Ending:
    """The result of programs behind a path."""

    document: Json
    """`shell.json`."""
    status: int
    """The command's exit status, as a shell has it, or the one of what ended it."""
    notes: Sequence[str]
    """Lines about both directions, and about what ended early."""
    streams: Mapping[str, bytes] = field(default_factory=dict)
    """Output of programs, by the stream's name, unless it went to this process's own streams."""
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    """Files that were asked for, by name."""


def server_words(server: str | None) -> list[str]:
    """Return the words of a server's command. Raises `BadInputError` for none."""
    if server is None:
        return []
    try:
        parts = shlex.split(server)
    except ValueError as error:
        raise BadInputError("--server", server, f"a command: {error}", "command line") from None
    if not parts:
        raise BadInputError("--server", server, "a command", "command line")
    return parts


def limit_s(timeout: str | None, engine: str) -> float:
    """Return the seconds that a command has. Raises `BadInputError` for none and for too many."""
    from dragstrip import _core

    if timeout is None:
        return VIRTUAL_S if engine == VIRTUAL else LONGEST_S
    try:
        limit_ns = _core.parse_time(timeout)
    except _core.InputError as error:
        raise BadInputError("--timeout", timeout, error.args[2], "command line") from None
    if limit_ns <= 0:
        raise BadInputError("--timeout", timeout, "a time above zero, such as 60s", "command line")
    if limit_ns > LONGEST_S * 1e9:
        raise BadInputError("--timeout", timeout, f"at most {LONGEST_S}s (4 h 43 min)", "command line")
    return limit_ns / 1e9


def hosts(run: PlannedRun) -> tuple[str, str]:
    """Return the hosts of the server and of the client."""
    (flow,) = run.scenario["flows"]
    return flow["sender"], flow["receiver"]


def say_path(run: PlannedRun, cc: str, say: Say) -> dict[str, Any]:
    """Say the path line by line, and return it."""
    path = _path(run)
    for line in (*path["lines"], f"congestion control {cc}, both ends"):
        say(f"path: {line}")
    return path


def described(ends: ProgramEnds, command: Sequence[str], path: dict[str, Any], engine: str) -> dict[str, Any]:
    """Return the beginning of a document."""
    return {
        "kind": "shell",
        "engine": engine,
        "command_line": ends.line,
        "command": list(command),
        "server": list(ends.server),
        "cc": ends.cc,
        "path": path,
    }


def write(ending: Ending, folder: Path) -> None:
    """Write the document into a folder, which is made if need be."""
    from dragstrip.io import files

    files.make_folder(folder)
    files.write_json(folder / "shell.json", ending.document)


def planned(cc: str, race: Mapping[str, Any], **engine: Any) -> PlannedRun:
    """Return a run of one flow of this algorithm over the path, on the simulator if no `engine` is named."""
    from dragstrip.experiment.comparison import COMMAND_LINE, compare, reworded
    from dragstrip.experiment.expand import expand

    try:
        experiment = compare([cc], source=COMMAND_LINE, duration=f"{LONGEST_S}s", **engine, **race)
        experiment = experiment.changed(
            record={"rtts": False}
        )  # whose memory hours of a fast path would need
        (run,) = reworded(lambda: expand(experiment), COMMAND_LINE)
    except BadInputError as error:
        if error.field != ALGORITHMS.word:
            raise
        raise BadInputError("--cc", Raw(error.value), error.expected, "command line") from None
    return run


def _path(run: PlannedRun) -> dict[str, Any]:
    """Return the path: its links in both directions, and its idle round trip."""
    from dragstrip.results.comparison.path import idle, link_words

    (facts,) = run.facts.ways
    lines = []
    for name, links in (("down", facts.forward), ("up", facts.back)):
        parts = [", ".join(words) for link in links if (words := link_words(link))]
        lines.append(f"{name}: {'; '.join(parts) or 'no limit'}")
    return {"lines": [*lines, idle(facts)[1]], "rate_bps": facts.rate_bps, "ping_ns": facts.ping_ns}


def summary(outcome: Mapping[str, Any]) -> list[str]:
    """Return a line about each direction, and what ended early."""
    duration_s = max(outcome["duration_ns"] / 1e9, 1e-9)
    lines = []
    for direction in outcome["directions"]:
        size = direction["bytes_out"]
        rate_mbps = size * 8 / duration_s / 1e6
        drops = ", ".join(f"{reason} {count}" for reason, count in direction["drops"].items()) or "none"
        lines.append(
            f"{direction['direction']}: {size} bytes ({rate_mbps:.2f} Mbit/s over {duration_s:.1f} s), "
            f"dropped {drops}, marked {direction['marks']}{_lateness(direction)}"
        )
    outside = outcome.get("outside") or {}
    if any(outside.values()):
        lines.append(
            f"outside: {outside['connections']} connections, {outside['refused']} refused, "
            f"{outside['datagram_flows']} flows of datagrams, {outside['not_relayed']} packets not relayed"
        )
    if outcome["timed_out"]:
        lines.append("the command was ended: its time was over")
    if outcome["server_status"] is not None:
        lines.append(f"the server ended before the command, with status {outcome['server_status']}")
    return lines


def _lateness(direction: Mapping[str, Any]) -> str:
    """In real time: how late packets left."""
    lateness = direction.get("lateness")
    if lateness is None:
        return ""
    figures = (
        f"{name} {lateness[key] / 1e3:.0f}"
        for name, key in (("median", "median_ns"), ("p99", "p99_ns"), ("worst", "worst_ns"))
    )
    return f"; lateness us: {', '.join(figures)}"
