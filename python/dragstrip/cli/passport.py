"""`dragstrip passport`: what a congestion control, or a queue discipline, is good at and where it fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragstrip import engines
from dragstrip.cli import completion, words
from dragstrip.cli.ending import WORSE
from dragstrip.cli.options import Engine, EngineOption, JsonFlag, Load, PathName, Program, Workers
from dragstrip.cli.output import print_json, say, say_path
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.studies.passport.command import PassportRequest

COMMAND_LINE = "command line"


def passport(
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="[ALGORITHM]",
            help="A congestion control with its options, such as bbr or cubic:beta=0.8.",
            autocompletion=completion.algorithms,
            show_default=False,
        ),
    ] = None,
    *,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            metavar="QUEUE",
            help="Make the passport of this queue discipline, in tc's words or as a file with tc commands, "
            "instead of an algorithm's.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run only the most informative rows.")] = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="CHAPTERS",
            help="Make these chapters alone: alone, many, beside, rtt, loss, aqm, changes, users, "
            "limited, exits, mixed, starvation, theory, bbr, path; with commas between. "
            "With --queue: transport, rtt, apps, congestion, change, topology, sensitivity.",
            show_default=False,
        ),
    ] = None,
    path: PathName = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="PASSPORT.json",
            help="Say which rows got better or worse than in this passport.",
            show_default=False,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Also write the rows as JUnit XML.", show_default=False),
    ] = None,
    program: Program = None,
    engine: Engine = engines.DEFAULT,
    engine_option: EngineOption = None,
    load: Load = None,
    second_engine: Annotated[
        str | None,
        typer.Option(
            "--beside",
            metavar="ENGINE",
            help="Run the rows on this engine too, and list those with another verdict.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Folder of passport.json, .html and .md: empty, not there yet, or that of an earlier one, "
            "which is replaced.",
            show_default="runs/...",
        ),
    ] = None,
    workers: Workers = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what a congestion control is good at, where it fails and whom it harms, row by row.

    Each row has a scenario, a figure, a rule with its source, the figures of CUBIC and Reno, and a command
    that replays it. With --path: the rows of the chapter path, on that path; --only path without one takes
    10mbit, 40ms and a queue of 100 packets. With --queue: the scenarios of RFC 7928 with that discipline,
    beside two drop-tail queues. Exit status 3: a limit of a document is missed; with --against, a row got
    worse.

    Example: dragstrip passport bbr --quick

    Example: dragstrip passport --queue "pie target 20ms" --quick

    Example: dragstrip passport --queue router.sh --quick

    Example: dragstrip passport bbr --path cable

    Example: dragstrip passport cubic --quick --engine vm --beside sim

    Example: dragstrip passport cubic:beta=0.8 --against old/passport.json --out new --junit rows.xml
    """
    from dragstrip.cli.execute import place
    from dragstrip.experiment.programs import of_files
    from dragstrip.io.files import expect_file, expect_own_folder
    from dragstrip.studies.passport import command, console
    from dragstrip.studies.passport.rows import On

    if algorithm is None and queue is None:
        raise BadInputError("ALGORITHM", None, "is missing; or --queue QUEUE", COMMAND_LINE)
    files = program or []
    if queue is not None:
        refused_options = {
            "ALGORITHM": algorithm,
            "--path": path,
            "--program": program,
            "--engine": None if engine == engines.DEFAULT else engine,
            "--engine-option": engine_option,
            "--load": load,
            "--beside": second_engine,
        }
        request = _queue_request(queue, quick, only, baseline, refused_options)
    else:
        request = command.read_request(
            algorithm or "",
            of_files(files),
            files,
            quick=quick,
            only=only,
            path=path,
            baseline_file=baseline,
            on=On(engine, words.engine_options(engine_option or []), tuple(load or ())),
            second_engine=second_engine,
        )
    if path is not None:
        say_path(path)
    if out is not None:
        expect_own_folder("--out", out, command.MARKS)
    if junit is not None and out is not None and junit in {out / name for name in command.FILES}:
        raise BadInputError("--junit", str(junit), "another file than those of the passport", COMMAND_LINE)
    if junit is not None and junit.parent != out:  # the folder may not exist yet
        expect_file("--junit", junit)
    with place(out, "passport") as folder:
        document = command.make(request, workers, quiet=as_json)
        command.write(document, request, folder)
        if junit is not None:
            command.write_junit(document, junit)
    if as_json:
        print_json(document)
    else:
        say(console.text(document, folder))
        say(f"\nPassport: {folder / 'passport.html'}")
    if command.fails(document):
        raise typer.Exit(WORSE)


def _queue_request(
    queue: str, quick: bool, only: str | None, baseline: Path | None, refused_options: Mapping[str, object]
) -> PassportRequest:
    """Read the request of a queue's passport; raises `BadInputError` for an option of an algorithm's."""
    from dragstrip.interop import scripts
    from dragstrip.studies.passport.queues.command import read_request

    for name, value in refused_options.items():
        if value:
            raise BadInputError(
                name, None, "is not for --queue, whose flows are those of RFC 7928", COMMAND_LINE
            )
    return read_request(scripts.discipline(queue), quick=quick, only=only, baseline_file=baseline)
