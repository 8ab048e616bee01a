"""`dragstrip kernel`: the real kernels that the vm engine can boot."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say

app = typer.Typer(
    no_args_is_help=True,
    help="Kernels for --engine vm: list, fetch, use.",
    epilog="Example: dragstrip kernel fetch",
)


@app.command("list", short_help="List the kernels in the cache.")
def list_(as_json: JsonFlag = False) -> None:
    """List the kernels in the cache; the one in use is marked.

    Example: dragstrip kernel list
    """
    from dragstrip.engines.kernels import kernel

    found = kernel.kernels()
    if as_json:
        print_json({"kernels": [kernel.as_json(one) for one in found]})
        return
    if not found:
        say("No kernel yet; `dragstrip kernel fetch` downloads Debian's.")
    for one in found:
        mark = "*" if one.name == kernel.in_use() else " "
        say(f"{mark} {one.name}  {one.package or one.folder}")


@app.command(short_help="Download a kernel from the Debian archive.")
def fetch(
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION",
            help="A release or its beginning, such as 6.12; default: the archive's current kernel.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            metavar="SUITE",
            help="Another suite, such as trixie-backports; default: the suites that apt has here.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Download a kernel from the Debian archive and use it from now on.

    apt downloads packages of about 70 to 120 MB. Nothing is installed, and root is not needed.

    Example: dragstrip kernel fetch

    Example: dragstrip kernel fetch 6.12

    Example: dragstrip kernel fetch --suite trixie-backports
    """
    from dragstrip.engines.kernels import kernel
    from dragstrip.engines.vm import emulate

    # Without the agent no kernel could be run.
    say(f"In use: {kernel.fetch(version, suite, emulate.expect_parts).name}")


@app.command(short_help="Use a kernel: from the cache, or your own.")
def use(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A name of `kernel list`, a file vmlinuz-NAME, or a folder with boot and lib.",
        ),
    ],
) -> None:
    """Use a kernel from now on: one in the cache, or an image or folder, which is copied there.

    Example: dragstrip kernel use 6.1.0-56-amd64

    Example: dragstrip kernel use /boot/vmlinuz-6.1.0-56-amd64
    """
    from dragstrip.engines.kernels import kernel

    say(f"In use: {kernel.use(path).name}")
