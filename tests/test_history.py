"""Fidelity and speed by commit, from a clone's history."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools import history

ROOT = Path(__file__).parents[1]
TABLE = (
    "| quantity | target | within | median error |\n|---|---|---|---|\n| goodput | ≤ 3 % | {} of {} | 1 % |\n"
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with three versions of a file, which moved once."""

    def git(*words: str) -> None:
        subprocess.run(
            [history.GIT, "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True
        )

    git("init", "--quiet")
    for number, (name, text) in enumerate(
        [
            ("docs/fidelity.md", TABLE.format(7, 9)),
            ("docs/fidelity.md", TABLE.format(8, 9)),
            ("docs/reference/fidelity.md", TABLE.format(8, 10)),
        ]
    ):
        (tmp_path / "docs/fidelity.md").unlink(missing_ok=True)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--no-gpg-sign", "-m", f"subject {number} | a <tag>")
    return tmp_path


def test_a_line_per_commit_with_its_change(clone: Path) -> None:
    assert history.complete(clone)
    page = history.fidelity_page(history.versions(history.FIDELITY, clone), has_history=True)
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert [line.split(" | ")[2] for line in lines] == ["7 of 9", "**8 of 9** (+1)", "**8 of 10**"]
    assert lines[0].endswith("subject 0 \\| a &lt;tag> |")
    assert "without its history" not in page


def test_a_shallow_clone_says_so(clone: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    words = [history.GIT, "clone", "--quiet", "--depth", "1", clone.as_uri(), str(shallow)]
    subprocess.run(words, check=True)
    assert not history.complete(shallow)
    page = history.fidelity_page(history.versions(history.FIDELITY, shallow), history.complete(shallow))
    assert "without its history" in page
    assert page.count("| `") == 1


def test_a_folder_without_git_says_so(tmp_path: Path) -> None:
    assert history.versions(history.SPEED, tmp_path) == []
    assert not history.complete(tmp_path)


def test_means_of_groups_and_their_change() -> None:
    def version(*counts: float) -> history.Version:
        names = dict(zip(("case a", "case b", "queue c"), counts, strict=False))
        return history.Version("0123456789", "2026-01-01", "s", json.dumps({"instructions": names}))

    page = history.speed_page([version(100, 200), version(110, 220), version(110, 220, 5)], has_history=True)
    lines = [line.split(" | ")[2:5] for line in page.splitlines() if line.startswith("| `")]
    assert lines == [["150 (2)", "–", "–"], ["165 (2) +10.0%", "–", "–"], ["165 (2)", "–", "5 (1)"]]


def test_the_stored_files_are_read() -> None:
    assert set(history.fidelity((ROOT / history.FIDELITY[0]).read_text())) == set(history.QUANTITIES)
    assert set(history.speed((ROOT / history.SPEED[0]).read_text())) == set(history.GROUPS)
