"""Parts of `dragstrip shell` in real and in virtual time alike: the path, the document, a status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.cli.output import command_line, print_json, say
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.race import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragstrip.cli.race import Race
    from dragstrip.experiment.expand import PlannedRun

LONGEST_S = 17_000
"""Longest time of a path: the simulator's clock ends then (4 h 43 min)."""
TIMED_OUT = 124
"""Exit status of a command whose time was over, as timeout(1) has it."""


@dataclass(frozen=True)
class ProgramEnds:
    """Programs at the two ends of a path, and the congestion control of both."""

    cc: str
    command: Sequence[str]
    server: Sequence[str]


def hosts(run: PlannedRun) -> tuple[str, str]:
    """Return the hosts of the server and of the client."""
    (flow,) = run.scenario["flows"]
    return flow["sender"], flow["receiver"]


def say_path(run: PlannedRun, cc: str) -> dict[str, Any]:
    """Print the path on standard error, and return it."""
    path = _path(run)
    for line in (*path["lines"], f"congestion control {cc}, both ends"):
        say(f"path: {line}", err=True)
    return path


def described(ends: ProgramEnds, command: Sequence[str], path: dict[str, Any], engine: str) -> dict[str, Any]:
    """Return the beginning of a document."""
    return {
        "kind": "shell",
        "engine": engine,
        "command_line": command_line(),
        "command": list(command),
        "server": list(ends.server),
        "cc": ends.cc,
        "path": path,
    }


def hand_over(document: dict[str, Any], out: Path | None, *, as_json: bool) -> None:
    """Write and print a document, as asked."""
    from dragstrip.io import files

    if out is not None:
        files.make_folder(out)
        files.write_json(out / "shell.json", document)
    if as_json:
        print_json(document)


def planned(cc: str, race: Race, **engine: Any) -> PlannedRun:
    """Return a run of one flow of this algorithm over the path, on the simulator if no `engine` is named."""
    from dragstrip.experiment.comparison import COMMAND_LINE, compare, reworded
    from dragstrip.experiment.expand import expand

    try:
        experiment = compare([cc], source=COMMAND_LINE, duration=f"{LONGEST_S}s", **engine, **race)
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
