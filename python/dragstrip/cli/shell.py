"""`dragstrip shell`: a shell or a command behind a path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli import completion, words
from dragstrip.cli.capture import capture_request
from dragstrip.cli.options import CaptureAt, EngineOption, Load, Snaplen
from dragstrip.cli.output import command_line, print_json, say
from dragstrip.cli.race import Race, takes_race
from dragstrip.cli.shell_recorded import RealTime
from dragstrip.errors import BadInputError
from dragstrip.interop.path_shell.path import (
    PATH_OPTIONS,
    REAL,
    VIRTUAL,
    Ending,
    ProgramEnds,
    limit_s,
    server_words,
    write,
)
from dragstrip.io.files import expect_empty_folder


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
            help="Congestion control of both ends, one that the kernel has loaded.",
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
            show_default="17000s, on engine vm 300s",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="ENGINE",
            help="netns: this machine's kernel in real time, with the simulator's queues and links. vm: a "
            "Linux kernel in an emulator with virtual time, with that kernel's queues; the same bytes each "
            "time.",
        ),
    ] = REAL,
    engine_option: EngineOption = None,
    load: Load = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            metavar="PATH[:PLACE]",
            help="With engine vm: take this file or folder into the guest too, under its own path or at "
            "PLACE; repeatable.",
            show_default=False,
        ),
    ] = None,
    fetch: Annotated[
        list[str] | None,
        typer.Option(
            "--fetch",
            metavar="FILE",
            help="With engine vm: bring this file back, which the command writes; repeatable.",
            show_default=False,
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            metavar="DATE",
            help="With engine vm: the day on which the guest's time begins, for certificates.",
            show_default="2026-01-01",
        ),
    ] = None,
    capture: CaptureAt = None,
    snaplen: Snaplen = None,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="In real time: a line at the bottom of the terminal, once a second: rate, queue, drops, "
            "marks and RTT.",
            show_default="on, but for a shell",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Write shell.json there: the path, the scenario, lateness, bytes, drops and marks; in real "
            "time a recording and its report too; of --capture the packets. It must be empty or not exist.",
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
    """Run a shell or a command behind a path, in real or in virtual time, and end with its exit status.

    In real time, packets pass the simulator's own queues and links. Behind them are a host, `server`, and the
    network of this machine, relayed by sockets of yours. In virtual time there is `server` alone.

    Example: dragstrip shell --path "home DSL" --queue fq_codel --server "python3 -m http.server 80" --
    curl -o /dev/null http://server/

    Example: dragstrip shell --path LTE -- curl -O https://example.org/

    Example: dragstrip shell --rate 10mbit --rtt 40ms

    Example: dragstrip shell --engine vm --rate 10mbit --rtt 40ms --server "python3 -m http.server 80" --
    curl -o /dev/null http://server/
    """
    if engine not in (REAL, VIRTUAL):
        raise BadInputError("--engine", engine, f"{REAL} or {VIRTUAL}", "command line")
    seconds = limit_s(timeout, engine)
    if out is not None:
        expect_empty_folder("--out", out)
    ends = ProgramEnds(cc, command or [], server_words(server), command_line())
    if engine == VIRTUAL:
        from dragstrip.cli import shell_in_guest
        from dragstrip.interop.path_shell.guest import GuestOptions

        if live:
            raise BadInputError("--live", None, f"is for --engine {REAL}", "command line")
        guest = GuestOptions(
            options=words.engine_options(engine_option or []),
            load=load or [],
            files=file or [],
            fetched=fetch or [],
            date=date,
            capture=capture_request(capture, snaplen),
            folder=Path.cwd(),
        )
        ending = shell_in_guest.run(guest, ends, race, seconds, out, as_json=as_json)
        _hand_over(ending, out, as_json=as_json)
    for option, value in (
        *(("--engine-option", engine_option), ("--load", load), ("--file", file), ("--fetch", fetch)),
        ("--date", date),
    ):
        if value:
            raise BadInputError(option, None, f"is for --engine {VIRTUAL}", "command line")
    request = capture_request(capture, snaplen)
    if request is not None and out is None:
        raise BadInputError("--capture", None, "--out FOLDER with it, for the files", "command line")
    options = RealTime(seconds, out, request, live, offline=offline, as_json=as_json)
    raise typer.Exit(_in_real_time(ends, race, options))


def _in_real_time(ends: ProgramEnds, race: Race, options: RealTime) -> int:
    """Run programs on this machine's kernel, and return the command's status."""
    from dragstrip.engines.netns.shell import Programs

    programs = Programs(
        command=ends.command or [os.environ.get("SHELL") or "/bin/sh"],
        server=ends.server,
        interactive=not ends.command,
        environment={} if ends.command else _prompt(race),
        output_to_errors=options.as_json,
        network=not options.offline,
    )
    return options.perform(ends, race, programs)


def _hand_over(ending: Ending, out: Path | None, *, as_json: bool) -> None:
    """Say what happened, write and print the document as asked, and end with the command's status."""
    for line in ending.notes:
        say(line, err=True)
    if out is not None:
        write(ending, out)
    if as_json:
        print_json(ending.document)
    raise typer.Exit(ending.status)


def _prompt(race: Race) -> dict[str, str]:
    """Variables that mark the prompt of an interactive shell: bash's, and those of simpler ones."""
    name = str(race.get("path") or race.get("rate") or race.get("medium") or "path")
    mark = "[" + "".join(letter for letter in name if letter.isalnum() or letter in " .-_") + "] "
    return {
        "DRAGSTRIP_PATH": name,
        "PS1": f"{mark}$ ",
        "PROMPT_COMMAND": f'case $PS1 in "{mark}"*) ;; *) PS1="{mark}$PS1" ;; esac',
    }
