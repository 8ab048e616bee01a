"""Cargo, with progress messages: its bar counts the crates, also where no terminal shows it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragstrip.display.progress import ProgressMessages


@dataclass(frozen=True)
class BuildResult:
    """Result of a build."""

    ok: bool
    messages: list[str]
    """Its messages by lines, without the bar."""


def build(
    words: Sequence[str],
    subject: str,
    folder: Path,
    target: Path,
    environment: Mapping[str, str] | None = None,
) -> BuildResult:
    """Call `cargo build --locked` with these words in a workspace; `target` holds what it compiles.

    `subject` is named in progress messages. Raises `OSError` where there is no cargo.
    """
    bar = {"PROGRESS_WHEN": "always", "PROGRESS_WIDTH": "100", "COLOR": "never"}
    settings = {f"CARGO_TERM_{name}": value for name, value in bar.items()}
    with (
        contextlib.closing(ProgressMessages()) as messages,
        subprocess.Popen(  # noqa: S603
            ["cargo", "build", "--locked", *words],  # noqa: S607
            cwd=folder,
            env={**os.environ, **settings, **(environment or {}), "CARGO_TARGET_DIR": str(target)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as cargo,
    ):
        output_lines: list[str] = []
        progress_text = ""

        def doing() -> str:
            return f"compiling {subject}{progress_text} ..."

        messages.doing(doing)
        assert cargo.stderr is not None
        for line in _lines(cargo.stderr.fileno()):
            if bar_match := _BAR.search(line):
                progress_text = f": {bar_match[1]} of {bar_match[2]} crates"
            else:
                output_lines.append(line)
    return BuildResult(cargo.returncode == 0, output_lines)


_BAR = re.compile(r"\] ([0-9]+)/([0-9]+): ")


def _lines(opened: int) -> Iterator[str]:
    """Yields a program's output by lines and by states of its bar, which end with a carriage return."""
    rest = b""
    while piece := os.read(opened, 1 << 16):
        *whole, rest = re.split(rb"[\r\n]", rest + piece)
        yield from (line.decode(errors="replace") for line in whole if line)
    if rest:
        yield rest.decode(errors="replace")
