"""`dragstrip policy-bpf`: a policy as a congestion control for the kernel."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say


def policy_bpf(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A policy with a linear model, a network or a tree.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="The C file, such as my_delay.bpf.c.", show_default=False),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="The algorithm's name in the kernel; by default that of the policy's file, with _ for -.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a policy as a BPF program, which engines with a kernel load (docs/how-to/learning.md).

    The model computes in whole numbers. The command prints how far its actions are from those of floating
    point, over 2,000 drawn observations. What the kernel's agent does not have is refused by name.

    Example: dragstrip policy-bpf programs/my-delay.json --out my_delay.bpf.c

    Example: dragstrip compare --engine vm --load my_delay.bpf.c --path cable my_delay cubic
    """
    from dragstrip.authoring.policies import bpf_source
    from dragstrip.errors import BadInputError
    from dragstrip.experiment import programs
    from dragstrip.io.files import expect_file, write_text

    expect_file("--out", out)
    (text,) = programs.of_files([str(file)]).values()
    if out.exists() and out.samefile(file):
        raise BadInputError("--out", str(out), "another file than the policy", "command line")
    try:
        source = bpf_source(text, name or file.stem.replace("-", "_"))
    except BadInputError as error:
        if error.field == "name":
            raise error.reworded("--name", source="command line") from None
        raise error.at(str(file)) from None
    write_text(out, source.text)
    if as_json:
        errors = {"action_error_max": source.error_max, "action_error_mean": source.error_mean}
        print_json({"file": str(out), "name": source.name, **errors})
        return
    say(f"Wrote {out}, algorithm {source.name}")
    say(
        f"Its actions are off from floating point by {source.error_mean:.1e} on average, at most "
        f"{source.error_max:.1e}."
    )
    rival = "reno" if source.name == "cubic" else "cubic"
    command = ["dragstrip", "compare", "--engine", "vm", "--load", str(out), "--path", "cable"]
    say(f"Next: {shlex.join([*command, source.name, rival])}")
