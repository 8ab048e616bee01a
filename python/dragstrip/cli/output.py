"""Output that every command shares."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dragstrip.io.untrusted import printable, printable_json

if TYPE_CHECKING:
    from dragstrip.experiment.saved_paths import SavedPath


def located(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the result document with its recordings' paths relative to the current folder."""
    runs = [{**line, "recording": str(folder / line["recording"])} for line in document["runs"]]
    return {**document, "runs": runs}


def print_json(content: object) -> None:
    """Print one JSON document."""
    typer.echo(printable_json(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)))


def print_json_line(content: object) -> None:
    """Print one JSON document on a line of its own, at once: its reader need not wait for the next."""
    typer.echo(printable_json(json.dumps(content, ensure_ascii=False, allow_nan=False)))
    sys.stdout.flush()


def keep(path: SavedPath, name: str) -> None:
    """Write a path that the user keeps, and say on standard error where it is, and if it replaced another."""
    from dragstrip.experiment import saved_paths

    replaced = saved_paths.file_of(name).is_file()
    file = saved_paths.write(path, name)
    typer.echo(
        f"path: {file} (--path {name}){', in place of the one of that name' if replaced else ''}", err=True
    )


def say_path(name: str) -> None:
    """Print on standard error the measured figures of a saved path, with intervals and sources."""
    from dragstrip.experiment import saved_paths

    if figures := saved_paths.measured_figures(name):
        say(f"path {name}: {figures}", err=True)


def say(text: str, err: bool = False) -> None:
    """Print text that may come from outside, without terminal control characters."""
    typer.echo(printable(text), err=err)


def say_finding(mark: str, text: str) -> None:
    """Print a line of a list after its mark, wrapped to the terminal, without terminal control characters."""
    from dragstrip.display.terminal import hanging

    typer.echo(hanging(printable(f"{mark:<7}  {text}"), 9))


def command_line() -> str:
    """Return the command as it was typed, for the result document."""
    return shlex.join(["dragstrip", *sys.argv[1:]])


def confirm(question: str) -> bool:
    """Ask a question on a terminal and return the answer; False without a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm(question, err=True)
