"""`dragstrip shell`: a shell or a command behind a path."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragstrip.cli import completion, words
from dragstrip.cli.output import command_line, print_json, say
from dragstrip.cli.race import Race, takes_race
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.race import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragstrip.experiment.expand import PlannedRun

PATH_OPTIONS = (
    *("path", "rate", "medium", "trace", "rtt", "queue", "loss", "jitter", "netem"),
    *("up_rate", "up_medium", "up_trace", "up_queue", "up_netem", "link"),
    *("ecn", "sysctl", "seed", "change"),
)
"""Options of a race that describe its path and its hosts."""
LONGEST_S = 17_000
"""Longest time of a path: the simulator's clock ends then (4 h 43 min)."""


@takes_race(PATH_OPTIONS)
def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="The command and its arguments; none: $SHELL.", show_default=False
        ),
    ] = None,
    *,
    race: Race,
    cc: Annotated[
        str,
        typer.Option(
            "--cc",
            metavar="ALGORITHM",
            help="Congestion control of both ends, one that this kernel has loaded.",
            autocompletion=completion.algorithms,
        ),
    ] = "cubic",
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="COMMAND",
            help="Start this first at the other end, and wait until it listens; its address is in "
            "$DRAGSTRIP_SERVER, its name is server.",
            show_default=False,
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="The command reaches the server's end and no other network.")
    ] = False,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout",
            metavar="TIME",
            help="End the command after this time, such as 60s, with status 124.",
            show_default="17000s",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Write shell.json there: the path, the scenario, lateness, bytes, drops and marks. It "
            "must be empty or not exist.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON document afterwards; what the command prints goes to standard error.",
        ),
    ] = False,
) -> None:
    """Run a shell or a command behind a path, in real time, and end with its exit status.

    Packets pass the simulator's own queues and links. Behind them are a host, `server`, and the network of this machine,
    relayed by sockets of yours.

    Example: dragstrip shell --path "home DSL" --queue fq_codel --server "python3 -m http.server 80" --
    curl -o /dev/null http://server/

    Example: dragstrip shell --path LTE -- curl -O https://example.org/

    Example: dragstrip shell --rate 10mbit --rtt 40ms
    """
    from dragstrip.engines.netns import shell as engine
    from dragstrip.io import files

    limit_s = words.time_limit(timeout, "--timeout").time_s if timeout else LONGEST_S
    if limit_s > LONGEST_S:
        raise BadInputError("--timeout", timeout, f"at most {LONGEST_S}s (4 h 43 min)", "command line")
    if out is not None:
        files.expect_folder("--out", out)
        if out.is_dir() and any(out.iterdir()):
            raise BadInputError("--out", str(out), "a folder that is empty or does not exist", "command line")
    run = _planned(cc, race)
    scenario = run.scenario
    ends = (scenario["flows"][0]["sender"], scenario["flows"][0]["receiver"])
    path = _path(run)
    programs = engine.Programs(
        command=command or [os.environ.get("SHELL") or "/bin/sh"],
        server=_words(server),
        interactive=not command,
        environment={} if command else _prompt(race),
        output_to_errors=as_json,
        network=not offline,
    )
    for line in (*path["lines"], f"congestion control {cc}, both ends"):
        say(f"path: {line}", err=True)
    outcome = engine.run(scenario, ends, cc, programs, limit_s, lambda step: say(step, err=True))
    marks = engine.reasons(outcome)
    document = {
        "kind": "shell",
        "command_line": command_line(),
        "command": list(programs.command),
        "server": list(programs.server),
        "cc": cc,
        "path": path,
        "marked": marks,
        **outcome,
        "scenario": scenario,
    }
    for line in _summary(outcome, marks):
        say(line, err=True)
    if out is not None:
        files.make_folder(out)
        files.write_json(out / "shell.json", document)
    if as_json:
        print_json(document)
    raise typer.Exit(engine.status(outcome))


def _planned(cc: str, race: Race) -> PlannedRun:
    """Return a run of one flow of this algorithm over the path."""
    from dragstrip.experiment.comparison import COMMAND_LINE, compare, reworded
    from dragstrip.experiment.expand import expand

    try:
        described = compare([cc], source=COMMAND_LINE, duration=f"{LONGEST_S}s", **race)
        (run,) = reworded(lambda: expand(described), COMMAND_LINE)
    except BadInputError as error:
        if error.field != ALGORITHMS.word:
            raise
        raise BadInputError("--cc", Raw(error.value), error.expected, "command line") from None
    return run


def _words(server: str | None) -> list[str]:
    if server is None:
        return []
    try:
        parts = shlex.split(server)
    except ValueError as error:
        raise BadInputError("--server", server, f"a command: {error}", "command line") from None
    if not parts:
        raise BadInputError("--server", server, "a command", "command line")
    return parts


def _prompt(race: Race) -> dict[str, str]:
    """Variables that mark the prompt of an interactive shell: bash's, and those of simpler ones."""
    name = str(race.get("path") or race.get("rate") or race.get("medium") or "path")
    mark = "[" + "".join(letter for letter in name if letter.isalnum() or letter in " .-_") + "] "
    return {
        "DRAGSTRIP_PATH": name,
        "PS1": f"{mark}$ ",
        "PROMPT_COMMAND": f'case $PS1 in "{mark}"*) ;; *) PS1="{mark}$PS1" ;; esac',
    }


def _path(run: PlannedRun) -> dict[str, Any]:
    """Return the path: its links in both directions, and its idle round trip."""
    from dragstrip.results.comparison.path import idle, link_words

    (facts,) = run.facts.ways
    lines = []
    for name, links in (("down", facts.forward), ("up", facts.back)):
        parts = [", ".join(words) for link in links if (words := link_words(link))]
        lines.append(f"{name}: {'; '.join(parts) or 'no limit'}")
    return {"lines": [*lines, idle(facts)[1]], "rate_bps": facts.rate_bps, "ping_ns": facts.ping_ns}


def _summary(outcome: Mapping[str, Any], marks: list[str]) -> list[str]:
    duration_s = max(outcome["duration_ns"] / 1e9, 1e-9)
    lines = []
    for direction in outcome["directions"]:
        lateness, size = direction["lateness"], direction["bytes_out"]
        rate_mbps = size * 8 / duration_s / 1e6
        late = ", ".join(
            f"{name} {lateness[key] / 1e3:.0f}"
            for name, key in (("median", "median_ns"), ("p99", "p99_ns"), ("worst", "worst_ns"))
        )
        drops = ", ".join(f"{reason} {count}" for reason, count in direction["drops"].items()) or "none"
        lines.append(
            f"{direction['direction']}: {size} bytes ({rate_mbps:.2f} Mbit/s over {duration_s:.1f} s), "
            f"dropped {drops}, marked {direction['marks']}; lateness us: {late}"
        )
    outside = outcome["outside"]
    if outside and any(outside.values()):
        lines.append(
            f"outside: {outside['connections']} connections, {outside['refused']} refused, "
            f"{outside['datagram_flows']} flows of datagrams, {outside['not_relayed']} packets not relayed"
        )
    if outcome["timed_out"]:
        lines.append("the command was ended: its time was over")
    if outcome["server_status"] is not None:
        lines.append(f"the server ended before the command, with status {outcome['server_status']}")
    return [*lines, *(f"MARKED {mark}" for mark in marks)]
