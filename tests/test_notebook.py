"""The notebook of the documentation runs from top to bottom, and its last lines have something to show."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorials" / "notebook.ipynb"


def shown(source: str, names: dict[str, Any]) -> Any:
    """Runs a cell as Jupyter does: the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - our own documentation
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (document["nbformat"], len({cell["id"] for cell in document["cells"]})) == (
        4,
        len(document["cells"]),
    )
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    names: dict[str, Any] = {}
    answers = [shown("".join(cell["source"]), names) for cell in code]
    assert all(answers)
    delays = answers[-1]
    assert delays["30ms"] < delays["300ms"]
    assert max(answers[-2], key=answers[-2].get) == "cubic"


def test_the_notebooks_links_lead_to_pages() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    links = [
        link for cell in document["cells"] for link in re.findall(r"\]\(([^)#]+)", "".join(cell["source"]))
    ]
    assert len(links) >= 4
    assert [link for link in links if not (NOTEBOOK.parent / link).is_file()] == []
