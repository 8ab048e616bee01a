"""Faults that stacks once had are told by the rows that the page names, and refactorings raise no alarm."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dragstrip.engines.sim import simulate
from dragstrip.experiment.programs import program
from dragstrip.studies.passport import runs, suite
from dragstrip.studies.passport.rows import PassportPath, Subject
from tools import regressions

ROOT = Path(__file__).parents[1]
LISTED = regressions.regressions()
TOLD = [entry for entry in LISTED if entry.row]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A cache of these tests, so that what they keep is nobody else's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGSTRIP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def text_of(name: str) -> str:
    return (regressions.FOLDER / f"{name}.cc").read_text()


def test_every_text_is_listed_once_and_its_row_exists() -> None:
    names = [entry.name for entry in LISTED]
    assert sorted(names) == sorted(file.stem for file in regressions.FOLDER.glob("*.cc"))
    ids = {row.id for row in suite.rows("reno", suite.NAMES, quick=False)}
    assert {entry.row for entry in TOLD} <= ids
    assert len(LISTED) + len(regressions.inexpressible()) >= 23


@pytest.mark.parametrize("entry", TOLD, ids=lambda entry: entry.name)
def test_the_row_tells_the_fault(entry: regressions.Regression) -> None:
    assert regressions.changed_row(entry, workers=1)["how"] == "worse"


def renamed(text: str) -> str:
    """Other names for what the text declares."""
    for name in re.findall(r"\b(?:state|let) (\w+)", text):
        text = re.sub(rf"\b{name}\b", f"{name}_of_mine", text)
    return text


def turned(text: str) -> str:
    """The other order of sums of two words."""
    return re.sub(r"\bcwnd \+ (acked|counted)\b(?! [*/])", r"\1 + cwnd", text)


def swapped(text: str) -> str:
    """The other order of the operands of min and max."""
    return re.sub(r"\b(min|max)\(([^(),]+), ([^(),]+)\)", r"\1(\3, \2)", text)


def reflowed(text: str) -> str:
    """No comments, and other line breaks."""
    return re.sub(r"\s+", " ", re.sub(r"#.*", "", text))


def recording(text: str) -> str:
    checked = program("judged", text)
    scenario = PassportPath(10, 40, 0.5, 8).with_(loss="0.1%").scenario()
    plan = runs.planned(scenario, Subject("judged", (("judged", checked.text),)))
    assert plan.runs, plan.failure
    # The program's text is part of the scenario, not of the recording.
    return str(simulate(plan.runs[0].scenario).provenance["recording_sha256"])


@pytest.mark.parametrize("change", [renamed, turned, swapped, reflowed], ids=lambda change: change.__name__)
def test_a_refactoring_that_changes_nothing_changes_no_byte(change: Callable[[str], str]) -> None:
    changed = 0
    for entry in LISTED:
        text = text_of(entry.name)
        other = change(text)
        changed += other != text
        assert recording(other) == recording(text), entry.name
    assert changed >= 5


def test_a_fault_changes_bytes() -> None:
    """The comparison of the refactorings can fail."""
    text = text_of("sixth")
    assert recording(text) != recording(text.replace("param wrong = 0", "param wrong = 1"))


def test_the_page_names_every_fault_and_its_row() -> None:
    written = (ROOT / "docs/reference/regressions.md").read_text()
    for entry in LISTED:
        line = next(line for line in written.splitlines() if line.startswith(f"| `{entry.name}` |"))
        assert (f"| `{entry.row}` |" if entry.row else "| none yet |") in line
    assert "` does not |" not in written
