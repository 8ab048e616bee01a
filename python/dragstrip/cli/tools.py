"""Commands around the runs: `doctor`, `conform`, `new-algorithm`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli.options import Engine, JsonFlag
from dragstrip.cli.output import print_json, say, say_finding
from dragstrip.errors import BadInputError, DragstripError, Raw

NAME_LETTERS_MAX = 15
"""Characters of an algorithm's name, at most, since a kernel's module takes it too (`TCP_CA_NAME_MAX`)."""


def doctor(as_json: JsonFlag = False) -> None:
    """Report what works on this machine, and what is missing.

    Example: dragstrip doctor
    """
    from dragstrip.execution.doctor import examine

    findings = examine(lambda what: say(what, err=True))
    if as_json:
        print_json({"healthy": all(finding["ok"] for finding in findings), "findings": findings})
    else:
        for finding in findings:
            mark = "ok" if finding["available"] else "-" if finding["ok"] else "MISSING"
            say_finding(mark, f"{finding['what']}: {finding['found']}")
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(1)


def conform(
    scripts: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT", help="Names or files of scripts; default: all.")
    ] = None,
    engine: Engine = "sim",
    trace: Annotated[
        bool, typer.Option("--trace", help="Print every segment that the endpoint sends.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Play conformance scripts: what one TCP endpoint receives, and what it must send.

    Example: dragstrip conform --engine vm prr-step-by-step
    """
    from dragstrip.validation import conformance

    try:
        played = conformance.play(conformance.scripts(scripts), engine)
    except BadInputError as error:
        if error.field != "engine":
            raise
        raise BadInputError("--engine", Raw(error.value), error.expected, "command line") from None
    if as_json:
        print_json(conformance.document(played))
    else:
        say(conformance.table(played, trace=trace))
    if not all(one.fine for one in played):
        raise typer.Exit(1)


def new_algorithm(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Lowercase letters, digits and single - or _, such as my-cc."),
    ],
    bpf: Annotated[bool, typer.Option("--bpf", help="Also a BPF program for the real kernel.")] = False,
) -> None:
    """Add the skeleton of a congestion control to the sources (docs/how-to/new-algorithm.md).

    Example: dragstrip new-algorithm my-cc --bpf
    """
    import subprocess
    import sys

    from dragstrip.io.progress import progress

    root = Path(__file__).resolve().parents[3]
    if not (root / "crates/xtask/Cargo.toml").is_file():
        raise DragstripError("new-algorithm writes into the sources and needs a checkout")
    _expect_new(root, name, bpf)  # before a generator is compiled that would refuse it
    command = ["cargo", "xtask", "new-algorithm", name, *(["--bpf"] if bpf else [])]
    try:
        with progress("compiling the generator (cargo xtask) ..."):
            done = subprocess.run(command, cwd=root, check=False, stderr=subprocess.PIPE, text=True)  # noqa: S603
    except FileNotFoundError:
        raise DragstripError("new-algorithm needs cargo (https://rustup.rs)") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"cargo ended with status {done.returncode}"])[-1]
        raise (
            BadInputError("NAME", None, said, "command line")
            if done.returncode == 2
            else DragstripError(said)
        )
    sys.stderr.write(done.stderr)


def _expect_new(root: Path, name: str, bpf: bool) -> None:
    """Raise `BadInputError` for an invalid or existing name, by the rules of crates/xtask/src/skeleton.rs."""
    from dragstrip.engines.contract import alike

    if len(name) > NAME_LETTERS_MAX or not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        expected = "lowercase letters, digits and single - or _ between them, a letter first"
        raise BadInputError("NAME", name, f"{expected}, at most {NAME_LETTERS_MAX} in all", "command line")
    module = alike(name)
    program = root / "bpf" / f"{module}.bpf.c"
    sources = root / "crates/cc/src/algorithms"
    # The sources' own names: the core at hand may be built from older ones.
    rows = (
        re.findall(r'^    name: "(.+)",$', file.read_text(), re.MULTILINE) for file in sources.rglob("*.rs")
    )
    known = module in map(alike, itertools.chain(*rows)) or any(
        place.exists() for place in (sources / f"{module}.rs", sources / module)
    )
    if program.exists() if bpf else known:
        raise BadInputError("NAME", name, "another name: this one exists already", "command line")
