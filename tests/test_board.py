"""The board: counts add up, every cell leads to rows that are there, and what cannot be compared is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.studies.passport import board

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with quick passports of two chapters of a fixed window and of Reno."""
    to = tmp_path_factory.mktemp("board")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGSTRIP_CACHE", str(tmp_path_factory.mktemp("cache")))
        for name in ("fixed", "reno"):
            dragstrip.passport(name, quick=True, only="rtt,changes", out=to / name)
    return to


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.board", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def passport(folder: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / name / "passport.json").read_text())
    return document


def test_the_counts_are_those_of_the_rows(folder: Path) -> None:
    assert run(str(folder)).returncode == 0
    content = json.loads((folder / board.JSON).read_text())
    assert [line["algorithm"] for line in content["algorithms"]] == ["fixed", "reno"]
    assert list(content["chapters"]) == ["rtt", "changes"]
    for line in content["algorithms"]:
        rows = passport(folder, line["algorithm"])["rows"]
        assert line["rows"] == len(rows)
        assert line["against"] == sum(row["verdict"] in ("missed", "worse", "failed") for row in rows)
        assert line["against"] == sum(chapter["against"] for chapter in line["chapters"].values())
    assert any(line["against"] for line in content["algorithms"])


def test_every_cell_leads_to_rows_that_are_there(folder: Path) -> None:
    board.write(folder)
    page = (folder / board.NAME).read_text()
    links = re.findall(r'href="([^"]+passport\.html)#(\w+)"', page)
    assert len(links) == 4
    for file, anchor in links:
        assert f'<details open id="{anchor}">' in (folder / file).read_text()
    heads, line = page.count('<button type="button">'), page.split('<tr><th scope="row"')[1]
    assert heads == line.split("</tr>")[0].count("data-value=") == 4
    assert "script-src 'sha256-" in page


def test_names_from_outside_are_escaped(folder: Path) -> None:
    document = passport(folder, "fixed")
    hostile = {
        **document,
        "algorithm": "<img src=x>",
        "chapters": [{**document["chapters"][0], "title": "<b>"}],
    }
    page = board.board(board.document({"a b<": hostile}))
    assert "<img" not in page
    assert "<b>" not in page
    assert 'href="a%20b%3C/passport.html' in page


def test_a_look_goes_by_the_share_of_rows() -> None:
    assert [board.look(*cell) for cell in ((0, 0), (1, 10), (2, 10), (3, 10))] == [
        "good",
        "good",
        "even",
        "bad",
    ]


def test_what_cannot_be_compared_is_one_line_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    ended = run(str(tmp_path))
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert "expected a folder with folders that have a passport.json" in ended.stderr
    shutil.copytree(folder / "fixed", tmp_path / "fixed")
    other = {**passport(folder, "reno"), "quick": False}
    (tmp_path / "reno").mkdir()
    (tmp_path / "reno/passport.json").write_text(json.dumps(other))
    with pytest.raises(BadInputError, match="quick: got False, expected True"):
        board.write(tmp_path)
    assert not (tmp_path / board.NAME).exists()
