"""`dragstrip evidence`: what RFC 9743 asks of a congestion control, and which figures answer it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip import engines
from dragstrip.cli import completion, words
from dragstrip.cli.options import Engine, EngineOption, JsonFlag, Load, Program, Workers
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError


def evidence(
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
    passport_file: Annotated[
        Path | None,
        typer.Option(
            "--passport",
            metavar="PASSPORT.json",
            help="Run nothing: take the rows of this passport.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run only the most informative rows.")] = False,
    program: Program = None,
    engine: Engine = engines.DEFAULT,
    engine_option: EngineOption = None,
    load: Load = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Folder of the documents and of the passport: empty, not there yet, or that of earlier "
            "ones, which are replaced.",
            show_default="runs/...",
        ),
    ] = None,
    workers: Workers = None,
    as_json: JsonFlag = False,
) -> None:
    """Write what RFC 9743 (BCP 133) asks of a congestion control, clause by clause, and which rows answer it.

    Makes a passport, and from it four documents: evidence.html, .md, .json, and .txt for the appendix of an
    Internet-Draft. Each clause has its level, the rows that answer it, a verdict, and what no row answers.

    Example: dragstrip evidence bbr3 --out evidence

    Example: dragstrip evidence mine --program mine.rs --quick

    Example: dragstrip evidence --passport old/passport.json
    """
    from dragstrip.cli.execute import place
    from dragstrip.experiment.programs import of_files
    from dragstrip.io.files import expect_own_folder
    from dragstrip.studies.evidence import command, console
    from dragstrip.studies.evidence.page import NAME

    if (algorithm is None) == (passport_file is None):
        expected = "is missing: name an algorithm, or a passport with --passport FILE"
        if algorithm is not None:
            expected = "no algorithm beside --passport, which holds one"
        raise BadInputError("ALGORITHM", algorithm, expected, "command line")
    if out is not None:
        expect_own_folder("--out", out, command.MARKS)
    if passport_file is not None:
        if quick or program or engine_option or load or workers or engine != engines.DEFAULT:
            options = "--quick, --program, --load, --workers, --engine and --engine-option"
            raise BadInputError("--passport", None, f"makes no run: leave out {options}", "command line")
        document = command.read(passport_file)
        if out is not None:
            command.expect_same_passport(passport_file, out)
        with place(out, "evidence") as folder:
            command.write(document, folder)
    else:
        from dragstrip.studies.passport import command as passport
        from dragstrip.studies.passport.rows import On

        files = program or []
        request = passport.read_request(
            algorithm or "",
            of_files(files),
            files,
            quick=quick,
            only=None,
            baseline_file=None,
            on=On(engine, words.engine_options(engine_option or []), tuple(load or ())),
        )
        with place(out, "evidence") as folder:
            document = command.make(request, workers, as_json, folder)
    if as_json:
        print_json(document)
    else:
        say(console.text(document))
        say(f"\nEvidence: {folder / NAME}")
