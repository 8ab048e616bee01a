"""`dragstrip kernel`: which real kernels the vm engine can boot."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say

app = typer.Typer(no_args_is_help=True, help="Kernels for --engine vm: list, fetch, use.")


@app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the kernels in the cache; the one in use is marked.

    Example: dragstrip kernel list
    """
    from dragstrip import kernel

    found = kernel.kernels()
    if as_json:
        print_json({"kernels": [kernel.as_json(one) for one in found]})
        return
    if not found:
        say("None yet; `dragstrip kernel fetch` gets Debian's.")
    for one in found:
        mark = "*" if one.name == kernel.in_use() else " "
        say(f"{mark} {one.name}  {one.package or one.folder}")


@app.command()
def fetch(
    version: Annotated[
        str | None, typer.Argument(help="A package, its release, or the beginning of one, such as 6.12.")
    ] = None,
) -> None:
    """Get a kernel from the Debian archive through apt (no root, nothing is installed), and use it.

    Example: dragstrip kernel fetch
    """
    from dragstrip import kernel

    say(f"In use: {kernel.fetch(version).name}")


@app.command()
def use(
    path: Annotated[
        str,
        typer.Argument(help="A name of `kernel list`, a file vmlinuz-NAME, or a folder with boot and lib."),
    ],
) -> None:
    """Use a kernel from now on: one from the cache, or a file or folder that is taken into it.

    Example: dragstrip kernel use 6.1.0-56-amd64
    """
    from dragstrip import kernel

    say(f"In use: {kernel.use(path).name}")
