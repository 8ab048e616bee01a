"""The notebooks of the documentation run from top to bottom, and show what is stored in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools import notebooks

NAMES = sorted(file.stem for file in notebooks.SOURCES.glob("*.py"))


def stored(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((notebooks.NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    return document


def texts(document: dict[str, Any]) -> list[list[str]]:
    """Return the texts that each cell shows."""
    return [
        [
            "".join(output["text"] if "text" in output else output["data"]["text/plain"])
            for output in cell.get("outputs", [])
        ]
        for cell in document["cells"]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_its_cells_give(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (notebooks.SOURCES / f"{name}.py").read_text(encoding="utf-8")
    again, document = notebooks.notebook(name, text), stored(name)
    assert [cell["source"] for cell in again["cells"]] == [cell["source"] for cell in document["cells"]]
    assert texts(again) == texts(document)
    assert (document["nbformat"], len({cell["id"] for cell in document["cells"]})) == (
        4,
        len(document["cells"]),
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_notebooks_links_lead_to_pages(name: str) -> None:
    sources = ["".join(cell["source"]) for cell in stored(name)["cells"] if cell["cell_type"] == "markdown"]
    links = [link for source in sources for link in re.findall(r"\]\(([^)#]+)", source)]
    assert [link for link in links if not (notebooks.NOTEBOOKS / link).is_file()] == []


def test_there_are_five() -> None:
    assert NAMES == ["capture", "notebook", "own-algorithm", "publication", "sweep"]
    assert {file.stem for file in notebooks.NOTEBOOKS.glob("*.ipynb")} == set(NAMES)
