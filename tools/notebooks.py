"""Notebooks of the documentation: `python -m tools.notebooks` executes docs/tutorials/notebooks/*.py into .ipynb.

A source has cells that begin with `# %%`, or `# %% [markdown]` with comments as text. The notebooks hold what
their cells show: text, HTML and SVG. The same version gives the same bytes.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip.io.files import write_text

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "docs" / "tutorials" / "notebooks"
NOTEBOOKS = SOURCES.parent
TEXTS = ("text/plain", "text/html", "image/svg+xml")
"""Kinds of output that are kept; Vega-Lite is left out, because a picture of it is there."""


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook's source."""

    is_text: bool
    source: str


def cells(text: str) -> Iterator[Cell]:
    """Yield the cells of a source."""
    for part in text.split("# %%")[1:]:
        head, _, body = part.partition("\n")
        body = body.strip("\n")
        if "[markdown]" in head:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.split("\n")]
            yield Cell(True, "\n".join(lines))
        else:
            yield Cell(False, body)


def shown(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Execute a cell as Jupyter does, and return its outputs."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - our own documentation
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines_of(printed.getvalue())})
    if value is not None:
        bundle = displayed(value)
        outputs.append(
            {
                "output_type": "display_data",
                "metadata": {},
                "data": {k: lines_of(v) for k, v in bundle.items()},
            }
        )
    return outputs


def displayed(value: Any) -> dict[str, str]:
    """Return what a notebook shows of a value, by kind."""
    bundle = {"text/plain": repr(value)}
    if hasattr(value, "_repr_mimebundle_"):
        bundle |= value._repr_mimebundle_()
    elif hasattr(value, "_repr_html_"):
        bundle["text/html"] = str(value._repr_html_())
    return {kind: str(bundle[kind]) for kind in TEXTS if kind in bundle}


def lines_of(text: str) -> list[str]:
    """Return a text as notebooks store it: its lines, each with its end."""
    return text.splitlines(keepends=True)


def notebook(name: str, text: str) -> dict[str, Any]:
    """Return a notebook with its outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    entries: list[dict[str, Any]] = []
    for number, cell in enumerate(cells(text)):
        entry: dict[str, Any] = {"id": f"{name}-{number}", "metadata": {}, "source": lines_of(cell.source)}
        if cell.is_text:
            entries.append({"cell_type": "markdown", **entry})
        else:
            outputs = shown(cell.source, names)
            entries.append({"cell_type": "code", "execution_count": None, **entry, "outputs": outputs})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": entries, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def main() -> int:
    """Write all notebooks, or those whose names are given."""
    chosen = sys.argv[1:] or sorted(file.stem for file in SOURCES.glob("*.py"))
    for name in chosen:
        text = (SOURCES / f"{name}.py").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            before = Path.cwd()
            os.chdir(folder)
            try:
                document = notebook(name, text)
            finally:
                os.chdir(before)
        write_text(NOTEBOOKS / f"{name}.ipynb", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
