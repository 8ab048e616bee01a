"""`dragstrip sweep`: an experiment over many values of many fields."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli import words
from dragstrip.cli.capture import capture_request
from dragstrip.cli.ending import INTERRUPTED
from dragstrip.cli.options import (
    CaptureAt,
    Duration,
    EngineOrNone,
    ExperimentOrNone,
    Figures,
    JsonFlag,
    PathName,
    Repeat,
    Report,
    Seed,
    Snaplen,
    Strict,
    TextProgram,
    Width,
    Workers,
)
from dragstrip.cli.output import command_line, confirm, print_json, say, say_path
from dragstrip.errors import BadInputError


def sweep(
    experiment: ExperimentOrNone = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="PATH=VALUES",
            help="Vary a field, or an option of compare by its name: path.rtt=5ms,20ms, "
            "rate=1mbit..1gbit:log:12; repeatable.",
        ),
    ] = None,
    path: PathName = None,
    repeat: Repeat = None,
    seed: Seed = None,
    duration: Duration = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="lhs:N",
            help="Sample ranges that have no count, at N points: lhs:N (Latin hypercube) or random:N.",
        ),
    ] = None,
    competitor: Annotated[
        str | None,
        typer.Option(
            "--competitor",
            metavar="ALGORITHM",
            help="Also run beside a flow of this algorithm, and measure the harm to it.",
        ),
    ] = None,
    engine: EngineOrNone = None,
    program: TextProgram = None,
    strict: Strict = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FOLDER", help="Output folder; the same one resumes or widens the sweep."
        ),
    ] = None,
    workers: Workers = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="ADDRESS", help="Run on a Dask cluster: dask://HOST:PORT or dask+tls://HOST:PORT."
        ),
    ] = None,
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="k/N", help="Run only part k of N, for job arrays.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate time and disk; run nothing.")] = False,
    time_limit: Annotated[
        str, typer.Option("--time-limit", metavar="TIME", help="Wall-clock limit per run.")
    ] = "600s",
    memory_limit: Annotated[
        str,
        typer.Option(
            "--memory-limit",
            metavar="SIZE",
            help="Most memory (address space) of a worker process.",
        ),
    ] = "4gb",
    keep_recordings: Annotated[
        bool, typer.Option("--keep-recordings", help="Also keep every run's recording, in recordings/.")
    ] = False,
    capture: CaptureAt = None,
    snaplen: Snaplen = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run again what failed or met a limit.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Use the folder even if it holds another sweep, whose runs stay in the store.",
        ),
    ] = False,
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="KEY", help="Repeat one run, and keep its recording."),
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="FOLDER", help="With --replay: the sweep's folder.")
    ] = None,
    report: Report = True,
    figures: Figures = None,
    width: Width = None,
    as_json: JsonFlag = False,
) -> None:
    """Run an experiment over many values of many fields, and map who wins where.

    Example: dragstrip sweep my.toml --vary path.rate=1mbit..1gbit:log:12 --vary path.rtt=5ms,20ms,80ms
    --vary flow.cc=reno,cubic,vegas,cdg,bbr --repeat 5 --out map

    Example: dragstrip sweep my.toml --path home --vary path.queue=1bdp,fq_codel --out map
    """
    from dragstrip.experiment.programs import of_files
    from dragstrip.studies.sweep import command

    limits = command.limits(time_limit, memory_limit)
    paper = words.figures(figures, width, report)
    if replay is not None:
        recording_folder = command.replay(from_, replay, out)
        print_json({"recording": str(recording_folder)}) if as_json else say(f"Recording: {recording_folder}")
        return
    if experiment is None:
        raise BadInputError(
            "EXPERIMENT", None, "is missing: a name in the catalogue or a file", "command line"
        )
    described = command.describe(
        experiment,
        path=path,
        vary=vary or [],
        repeat=repeat,
        seed=seed,
        duration=duration,
        sample=sample,
        competitor=competitor,
        engine=engine,
        engine_options=words.with_strict({}, strict),
        programs=of_files(program or []),
    )
    if path is not None:
        say_path(path)
    packets = command.checked(capture_request(capture, snaplen), described, keep_recordings)
    folder = out if out is not None else Path("runs") / f"sweep-{described.name.replace('/', '-')}"
    options = command.Options(
        workers=workers,
        on=on,
        shard=command.parse_shard(shard),
        limits=limits,
        keep_recordings=keep_recordings,
        capture=packets,
        retry_failed=retry_failed,
        report=report,
        figures=paper,
        command=command_line(),
        replace=replace,
        confirm=confirm,
    )
    if dry_run:
        forecast = command.dry_run(described, folder, options)
        print_json(forecast) if as_json else say(command.describe_forecast(forecast))
        return
    document = command.run(described, folder, options, quiet=as_json)
    print_json(document) if as_json else say(command.summary(document, folder))
    if document["interrupted"]:
        raise typer.Exit(INTERRUPTED)
    if document["failed"]:
        raise typer.Exit(1)
