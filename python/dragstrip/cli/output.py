"""What every command prints."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import typer

from dragstrip.outside import printable, printable_json


def located(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The result document with its recordings' paths as seen from here, not from the output folder."""
    runs = [{**line, "recording": str(folder / line["recording"])} for line in document["runs"]]
    return {**document, "runs": runs}


def print_json(content: object) -> None:
    """Prints one JSON document."""
    typer.echo(printable_json(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)))


def say(text: str, err: bool = False) -> None:
    """Prints text that may come from outside, without what a terminal would obey."""
    typer.echo(printable(text), err=err)


def command_line() -> str:
    """The command as it was typed, for the result document."""
    return shlex.join(["dragstrip", *sys.argv[1:]])


def confirm(question: str) -> bool:
    """Asks where somebody can answer; no otherwise."""
    return sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm(question, err=True)
