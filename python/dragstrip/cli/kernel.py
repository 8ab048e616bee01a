"""`dragstrip kernel`: the real kernels that the vm engine can boot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli.once import Commands
from dragstrip.cli.options import JsonFlag, Workers
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError

app = Commands(
    no_args_is_help=True,
    help="Kernels for --engine vm: list, fetch, use, compare; run a command on one.",
    epilog="Example: dragstrip kernel fetch",
)


@app.command("list", short_help="List the kernels in the cache.")
def list_(as_json: JsonFlag = False) -> None:
    """List the kernels in the cache; the one in use is marked.

    Example: dragstrip kernel list
    """
    from dragstrip.engines.kernels import kernel

    kernels = kernel.kernels()
    if as_json:
        print_json({"kernels": [kernel.as_json(entry) for entry in kernels]})
        return
    if not kernels:
        say("No kernel yet; `dragstrip kernel fetch` downloads Debian's.")
    for entry in kernels:
        mark = "*" if entry.name == kernel.in_use() else " "
        say(f"{mark} {entry.name}  {entry.package or entry.folder}")


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

    before = kernel.in_use()
    # Without the agent no kernel could be run.
    _say_in_use(kernel.fetch(version, suite, emulate.expect_parts).name, before)


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

    before = kernel.in_use()
    _say_in_use(kernel.use(path).name, before)


def _say_in_use(name: str, before: str | None) -> None:
    changed = before is not None and before != name
    say(f"In use: {name}" + f" (until now {before}: `dragstrip kernel use {before}` goes back)" * changed)


@app.command(short_help="Compare kernels with one another, figure by figure.")
def compare(
    kernels: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL...",
            help="Two or more: names of `kernel list` or their beginnings, such as 6.12. "
            "The first is compared with each of the others.",
            show_default=False,
        ),
    ],
    only: Annotated[
        str | None,
        typer.Option(
            "--only", metavar="TEXT", help="Only cells whose name contains this, or matches it (*)."
        ),
    ] = None,
    workers: Workers = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what differs between releases of Linux: goodput, RTT, losses and shares in 105 cells of a grid.

    A figure counts as changed beyond the limit within which the simulator has to be of a kernel. Recordings
    of 6.1, 6.12 and 7.3 come with a clone; others are made first, in virtual time, an hour a kernel.

    Example: dragstrip kernel compare 6.1 6.12 7.3

    Example: dragstrip kernel compare 6.1 6.12 --only bbr
    """
    from dragstrip.studies.validation import console
    from dragstrip.studies.validation import kernels as study
    from dragstrip.studies.validation.grid import read

    if len(kernels) < 2:
        raise BadInputError("KERNEL", kernels[0], "two kernels or more", "command line")
    grid, source = read(None)
    first, *rest = study.releases(source, kernels)
    comparison = study.compare_kernels(
        grid, source, first, rest, only, workers, lambda step: say(step, err=True), with_simulator=False
    )
    if as_json:
        print_json(study.document(comparison))
    else:
        console.show_lines(study.lines(comparison))


@app.command(
    short_help="Run a command on a kernel, in a virtual machine.",
    context_settings={"allow_interspersed_args": False},
)
def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND...", help="The command and its arguments.", show_default=False),
    ],
    kernel_name: Annotated[
        str | None,
        typer.Option(
            "--kernel", metavar="NAME", help="A name of `kernel list`.", show_default="the one in use"
        ),
    ] = None,
    share: Annotated[
        list[Path] | None,
        typer.Option(
            "--share",
            metavar="FOLDER",
            help="A folder in which the command's files stay; repeatable.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        str, typer.Option("--time-limit", metavar="TIME", help="Wall-clock limit of the guest.")
    ] = "3600s",
) -> None:
    """Run a command as root on a kernel of its own, in real time, and end with its exit status.

    The command sees this machine's files and may change them: the changes are the guest's alone and go with
    it, but for folders given with --share. The guest has two processors, 2 GB of memory and no network.

    Example: dragstrip kernel run dragstrip doctor

    Example: dragstrip kernel run dragstrip compare --engine netns --rate 10mbit --rtt 40ms reno vegas

    Example: dragstrip kernel run --share out dragstrip run geni-tcp/step2 --engine netns --out out/step2
    """
    from dragstrip.cli import words
    from dragstrip.engines.kernels import kernel
    from dragstrip.engines.vm.guest import Guest, prepare

    limit_s = words.time_limit(time_limit).time_s
    guest = Guest(kernel.find_kernel(kernel_name), share or (), limit_s)
    prepare(lambda line: say(line, err=True))
    raise typer.Exit(guest.run(command))
