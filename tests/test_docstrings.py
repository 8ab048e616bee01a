"""Docstrings of the package can be read alone: none begins with a dangling "Of"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python" / "dragstrip"
CATALOGUE = PACKAGE / "catalogue_data"  # a link to experiments/, no part of the package
DANGLING = re.compile(r"\s*Of\b")


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string that stands as a statement: docstrings, and those of attributes."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def modules() -> dict[str, str]:
    files = (file for file in sorted(PACKAGE.rglob("*.py")) if CATALOGUE not in file.parents)
    return {file.relative_to(PACKAGE).as_posix(): file.read_text(encoding="utf-8") for file in files}


def dangling(found: dict[str, str]) -> list[str]:
    return [
        f"{name}:{line}: {text}"
        for name, source in found.items()
        for line, text in docstrings(source)
        if DANGLING.match(text)
    ]


def test_no_docstring_begins_with_a_dangling_of() -> None:
    found = modules()
    assert len(found) > 150
    assert dangling(found) == []


def test_every_kind_of_docstring_is_looked_at() -> None:
    source = '"""Of a module."""\nX = 1\n"""Of X."""\nclass A:\n    """Of A."""\n    def f(self):\n        """Of f."""\n'
    assert len(dangling({"a.py": source})) == 4
    assert dangling({"a.py": '"""Offers a race. Of two."""\n'}) == []
