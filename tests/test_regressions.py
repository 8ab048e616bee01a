"""Faults that stacks once had are told by the rows that the page names, and refactorings raise no alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.engines.sim import simulate
from dragstrip.experiment.programs import program
from dragstrip.studies.passport import runs, suite
from dragstrip.studies.passport.rows import PassportPath, Subject
from tools import refactorings, regressions

ROOT = Path(__file__).parents[1]
LISTED = regressions.regressions()


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
    texts = [entry.name for entry in LISTED if entry.is_text]
    assert sorted(texts) == sorted(file.stem for file in regressions.FOLDER.glob("*.cc"))
    assert len(set(names)) == len(names)
    ids = {row.id for row in suite.rows("reno", suite.NAMES, quick=False)}
    assert {entry.row for entry in LISTED} <= ids
    assert len(LISTED) + len(regressions.inexpressible()) >= 24


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry.name)
def test_the_row_tells_the_fault(entry: regressions.Regression) -> None:
    assert regressions.changed_row(entry, workers=1)["how"] == "worse"


def recording(text: str) -> str:
    checked = program("judged", text)
    scenario = PassportPath(10, 40, 0.5, 8).with_(loss="0.1%").scenario()
    plan = runs.planned(scenario, Subject("judged", (("judged", checked.text),)))
    assert plan.runs, plan.failure
    # The program's text is part of the scenario, not of the recording.
    return str(simulate(plan.runs[0].scenario).provenance["recording_sha256"])


def test_a_refactoring_keeps_the_meaning() -> None:
    """Each kind but those of rounding leaves every byte of a recording; each changes some text."""
    texts = {name: text_of(name) for name in ("converged", "unbounded", "twice-flight", "future-epoch")}
    kinds = set()
    for refactoring in refactorings.refactorings(texts, 30):
        kinds.add(refactoring.kind)
        if refactoring.kind != "grouping":
            same = recording(refactoring.text) == recording(texts[refactoring.name])
            assert same, (refactoring.name, refactoring.kind)
    assert len(kinds) >= 10


def test_there_are_a_hundred_refactorings_of_every_kind() -> None:
    texts = {entry.name: entry.text for entry in LISTED if entry.is_text}
    made = refactorings.refactorings(texts, regressions.REFACTORINGS)
    assert len(made) == 100
    assert {entry.name for entry in made} == set(texts)
    for entry in made:
        program(entry.name, entry.text)
    with pytest.raises(ValueError, match="count: got 10000"):
        refactorings.refactorings(texts, 10000)


def test_a_refactoring_with_a_fault_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of false alarms is not always 0."""
    monkeypatch.setattr(refactorings, "KINDS", {"fault": lambda text: text.replace("wrong = 0", "wrong = 1")})
    monkeypatch.setattr(regressions, "ALSO", ())
    (stash,) = [entry for entry in LISTED if entry.name == "stash"]
    result = regressions.false_alarms([stash], 1, workers=1)
    assert [(entry.kind, row) for entry, row in result.alarms] == [("fault", stash.row)]
    assert (result.rows, result.equal, result.count) == (1, 0, 1)


def test_a_fault_changes_bytes() -> None:
    """The comparison of the refactorings can fail."""
    text = text_of("sixth")
    assert recording(text) != recording(text.replace("param wrong = 0", "param wrong = 1"))


def test_the_page_names_every_fault_and_its_row() -> None:
    written = (ROOT / "docs/reference/regressions.md").read_text()
    for entry in LISTED:
        line = next(
            line
            for line in written.splitlines()
            if line.startswith(f"| `{entry.name if entry.is_text else entry.wrong}` |")
        )
        assert f"| `{entry.row}` |" in line
    assert "` does not |" not in written
