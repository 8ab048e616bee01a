"""Commands around the runs: `doctor`, `conform`."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip import engines
from dragstrip.cli.options import Engine, JsonFlag
from dragstrip.cli.output import print_json, say, say_finding
from dragstrip.errors import BadInputError, Raw


def doctor(as_json: JsonFlag = False) -> None:
    """Report what works on this machine, and what is missing.

    Example: dragstrip doctor
    """
    from dragstrip.cli.doctor import examine

    findings = examine(lambda step: say(step, err=True))
    if as_json:
        print_json({"healthy": all(finding["ok"] for finding in findings), "findings": findings})
    else:
        for finding in findings:
            available = "limited" if finding.get("lacks") else "ok"
            mark = available if finding["available"] else "-" if finding["ok"] else "MISSING"
            say_finding(mark, f"{finding['what']}: {finding['found']}")
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(1)


def conform(
    scripts: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT", help="Names or files of scripts; default: all.")
    ] = None,
    engine: Engine = engines.DEFAULT,
    segments: Annotated[
        bool, typer.Option("--segments", help="Print every segment that the endpoint sends.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Play conformance scripts: what one TCP endpoint receives, and what it must send.

    Example: dragstrip conform --engine vm prr-step-by-step
    """
    from dragstrip.studies.validation import conformance

    try:
        played = conformance.play(conformance.scripts(scripts), engine)
    except BadInputError as error:
        if error.field != "engine":
            raise
        raise BadInputError("--engine", Raw(error.value), error.expected, "command line") from None
    if as_json:
        print_json(conformance.document(played))
    else:
        say(conformance.table(played, segments=segments))
    if not all(result.fine for result in played):
        raise typer.Exit(1)
