"""`dragstrip export`: recordings as files of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say


def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a recording, or an output folder for all of its runs."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="csv, flent, iperf3, ns3, perfetto or qlog.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder for the files; none is overwritten.")
    ] = Path(),
    as_json: JsonFlag = False,
) -> None:
    """Write a run's recording as files of other programs.

    Example: dragstrip export runs/compare-001 --to flent --out flent
    """
    from dragstrip.interop import writers
    from dragstrip.io.files import expect_name

    expect_name("--out", out)
    exported_files = [str(file) for file in writers.export(run, to, out)]
    print_json({"files": exported_files}) if as_json else say(
        "\n".join(f"Wrote {file}" for file in exported_files)
    )
