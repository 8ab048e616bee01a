"""`dragstrip report`: the page of a finished run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli import words
from dragstrip.cli.options import Figures, JsonFlag, Width
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Output folder of a run or a sweep.")],
    figures: Figures = None,
    width: Width = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the report of a finished run again.

    Example: dragstrip report demo --figures svg,png,pdf,csv

    Example: dragstrip report demo --figures pdf --width 84mm
    """
    from dragstrip import sums
    from dragstrip.recording import read
    from dragstrip.report.load import load
    from dragstrip.runner import write_report

    wanted = words.figures(figures, width, None)
    if not folder.is_dir():
        raise BadInputError("FOLDER", str(folder), "the output folder of a run", "command line")
    if (folder / "sweep.json").exists():
        if wanted.endings:
            raise BadInputError(
                "--figures", figures, "the folder of a run: a sweep's maps are in its page", "command line"
            )
        from dragstrip.sweep.make import rewrite_report

        page = rewrite_report(folder)
        print_json({"report": str(page)}) if as_json else say(f"Report: {page}")
        return
    document = sums.read_json(folder, "result.json")
    for run in load(folder).runs:
        read(run.recording.folder)
    written = write_report(folder, wanted)
    if as_json:
        print_json({"report": str(written), "result": document})
    else:
        say(f"Report: {written}")
