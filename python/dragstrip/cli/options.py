"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes; default: one per core.")]
Load = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="FILE.bpf.c",
        help="With --engine vm: a congestion control to compile and put into the kernel; repeatable.",
    ),
]
