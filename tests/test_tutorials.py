"""The tutorials are typed as they stand, and the output that they show is the output that there is."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dragstrip import cli

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELIDED = "..."
"""A shown line that stands for any number of lines."""
VARYING = re.compile(r"\d+:\d\d on \d+ processes \([\d.]+ s of|[\d.]+ MB of disk")
"""What depends on the machine, in an estimate of a sweep."""
REAL_KERNEL = "--engine vm"
INTO_THE_SOURCES = "new-algorithm"


@dataclass
class Step:
    """A command of a page, and the lines that the page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


def steps(text: str) -> list[Step]:
    """The commands of the program in the order of the page, each with its shown output."""
    found: list[Step] = []
    for language, body in BLOCK.findall(text):
        if language == "text":
            found[-1].shown = lines(body)
            continue
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith("dragstrip "):
                found.append(Step(line))
    return found


def lines(output: str) -> list[str]:
    """Lines without the blanks at their ends, which a page need not have, and without what varies."""
    cut = [VARYING.sub("*", line.rstrip()) for line in output.splitlines()]
    while cut and not cut[-1]:
        cut.pop()
    return cut


def parts(shown: list[str]) -> list[list[str]]:
    """The stretches between elided lines."""
    found: list[list[str]] = [[]]
    for line in shown:
        if line == ELIDED:
            found.append([])
        else:
            found[-1].append(line)
    return found


def missing(shown: list[str], output: list[str]) -> list[str]:
    """The first stretch of the page that the output does not have after the one before; empty if it has all.

    The first stretch begins the output and the last one ends it, unless a line is elided there.
    """
    stretches = parts(shown)
    at = 0
    for number, part in enumerate(stretches):
        last = number == len(stretches) - 1
        places = range(at, len(output) - len(part) + 1)
        if number == 0:
            places = places[:1]
        if last and part:
            places = places[-1:]
        place = next((start for start in places if output[start : start + len(part)] == part), None)
        if place is None:
            return part
        at = place + len(part)
    return [] if not stretches[-1] or at == len(output) else output[at:]


def test_output_is_compared_line_by_line() -> None:
    output = ["a", "b", "", "c", "d"]
    for right in (
        ["a", "b", "", "c", "d"],
        ["a", "...", "d"],
        ["...", "c", "..."],
        ["a", "...", "", "...", "d"],
    ):
        assert missing(right, output) == [], right
    for wrong in (
        ["a"],
        ["b", "..."],
        ["...", "c"],
        ["...", "d", "...", "a", "..."],
        ["...", "b", "c", "..."],
    ):
        assert missing(wrong, output) != [], wrong


def test_most_tutorials_show_output() -> None:
    shown = {page.stem: [step for step in steps(page.read_text()) if step.shown] for page in TUTORIALS}
    assert all(shown.values()), shown
    assert sum(len(found) for found in shown.values()) >= 10


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_reader_will_see(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command in its turn, in one folder. A real kernel is left to the tests of its engine, and what writes into
    the sources to tests/test_skeletons.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "programs").symlink_to(ROOT / "programs")
    for step in steps(page.read_text()):
        if REAL_KERNEL in step.command or INTO_THE_SOURCES in step.command:
            assert not step.shown
            continue
        monkeypatch.setattr(sys, "argv", shlex.split(step.command))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert not ended.value.code, f"{step.command}\n{err}"
        if step.shown:
            assert missing(step.shown, lines(out)) == [], f"{step.command}\n{out}"
