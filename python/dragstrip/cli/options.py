"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip import engines

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Number of worker processes; default: one per core.")
]
Load = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="FILE.bpf.c",
        help="With --engine vm: a congestion control to compile and put into the kernel; repeatable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Output folder: must be empty or not exist.", show_default="runs/..."),
]
TimeLimit = Annotated[
    str | None,
    typer.Option("--time-limit", help="Limit of one run in real time, such as 600s.", show_default="none"),
]
ENGINES = engines.about()
BOTH = f"{ENGINES} {engines.PAIR}: both, and how far apart they are."
Check = Annotated[
    bool, typer.Option("--check", help="Run everything twice and say whether the bytes are the same.")
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option("--engine-option", metavar="NAME=VALUE", help="Set an option of the engine; repeatable."),
]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write report.html.")]
Figures = Annotated[
    str | None,
    typer.Option("--figures", metavar="svg,png,pdf,csv", help="Also write the report's figures, for papers."),
]
