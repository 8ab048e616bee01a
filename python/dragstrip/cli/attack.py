"""`dragstrip attack`: conditions under which a congestion control fails, searched for and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli import completion, words
from dragstrip.cli.execute import place
from dragstrip.cli.options import JsonFlag, PathName, Program, Workers
from dragstrip.cli.output import print_json, say, say_path
from dragstrip.errors import BadInputError

WORSE = 3
"""The status if a kept find is worse than recorded."""
EVALUATIONS_MAX = 10_000_000
TIME = "60s"


def attack(
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="[ALGORITHM]",
            help="The congestion control, with its options (cubic:beta=0.6).",
            autocompletion=completion.algorithms,
            show_default=False,
        ),
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            "--goal",
            metavar="GOAL",
            help="utilisation, starvation, neighbour or stall; repeatable; default: all in turn.",
        ),
    ] = None,
    using: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="VECTOR",
            help="cross, loss, jitter, acks, changes or rtt; repeatable; default: each, then all mixed.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="TIME", help="How long to search in real time.", show_default=TIME),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            "--evaluations",
            metavar="N",
            min=1,
            max=EVALUATIONS_MAX,
            help="How many attacks to try, instead of --time: the same result on every machine.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=2**53 - 1, help="Seed of search and runs.")
    ] = 1,
    path: PathName = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="Rate of the bottleneck, instead of the goal's."),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option("--rtt", metavar="TIME", help="The victim's round-trip time, instead of the goal's."),
    ] = None,
    other_rtt: Annotated[
        str | None,
        typer.Option(
            "--other-rtt",
            metavar="TIME",
            help="The other flow's round-trip time, which is then not searched; default: the victim's.",
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            metavar="QUEUE",
            help="The queue, in tc's words or as a multiple of the BDP (4bdp), instead of the goal's.",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Duration of each run, instead of the goal's."),
    ] = None,
    program: Program = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Folder of the finds; must be empty or not exist.",
            show_default="runs/...",
        ),
    ] = None,
    rerun: Annotated[
        Path | None,
        typer.Option(
            "--rerun",
            metavar="FOLDER",
            help="Search nothing: run the finds of a folder again; exit 3 if one is more than 5 % worse.",
        ),
    ] = None,
    workers: Workers = None,
    as_json: JsonFlag = False,
) -> None:
    """Search for conditions under which a congestion control fails, and keep them as experiments.

    Tries cross traffic, loss, jitter, held ACKs, changes of rate and delay, and other round-trip times.
    Each goal has a path of its own; --path, --rate, --rtt and --queue replace it. Ctrl-C keeps the finds
    so far.

    Example: dragstrip attack cubic --time 60s --out finds

    Example: dragstrip attack bbr --path cable --goal neighbour

    Example: dragstrip attack --rerun finds
    """
    if rerun is not None:
        search_options = {
            "ALGORITHM": algorithm,
            "--goal": goal,
            "--with": using,
            "--time": time,
            "--evaluations": evaluations,
            "--path": path,
            "--rate": rate,
            "--rtt": rtt,
            "--other-rtt": other_rtt,
            "--queue": queue,
            "--duration": duration,
            "--program": program,
            "--out": out,
        }
        for name, value in search_options.items():
            if value is not None:
                raise BadInputError(name, None, "is not for --rerun, which runs what is kept", "command line")
        _rerun(rerun, workers, as_json)
        return
    if algorithm is None:
        raise BadInputError("ALGORITHM", None, "is missing; or --rerun FOLDER", "command line")
    if time is not None and evaluations is not None:
        raise BadInputError("--evaluations", evaluations, "none beside --time", "command line")
    from dragstrip.experiment.comparison import reworded
    from dragstrip.experiment.programs import of_files, refuse_files
    from dragstrip.io.files import adding, write_json, write_text
    from dragstrip.studies.attack import console, finds

    seconds = None if evaluations is not None else words.time_limit(time or TIME, "--time").time_s
    scene = {"rate": rate, "rtt": rtt, "queue": queue, "duration": duration, "other_rtt": other_rtt}
    if path is not None:
        scene, omitted = finds.on_path(path, scene)
        say_path(path)
        if omitted:
            say(f"path {path}: an attack takes rate, rtt and queue, not {', '.join(omitted)}", err=True)
    reworded(lambda: refuse_files([algorithm]), "command line")
    programs = of_files(program or [])
    request = finds.search_request(
        algorithm, goal or [], using or [], scene, seed, evaluations, seconds, programs
    )
    if out is not None:
        finds.expect_free(out)
    with place(out, "attack") as folder:
        document, found_attacks = finds.attack(request, workers, quiet=as_json)
        with adding(folder) as draft:
            for name, content in finds.files(request, found_attacks).items():
                write_text(draft / name, content)
            write_json(draft / finds.DOCUMENT, document)
            write_text(draft / finds.PAGE, console.markdown(document))
    if as_json:
        print_json(document)
    else:
        say(console.text(document, str(folder)))
    if document["partial"]:
        raise KeyboardInterrupt


def _rerun(folder: Path, workers: int | None, as_json: bool) -> None:
    from dragstrip.studies.attack import console, kept

    document = kept.check(folder, workers, quiet=as_json)
    if as_json:
        print_json(document)
    else:
        say(console.checked(document))
    if kept.is_worse(document["finds"]):
        raise typer.Exit(WORSE)
