"""A sample of each torture script; all of their trials with `make torture`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import true_pages
from everything import SCRIPTS, kinds, only

from dragstrip.results.comparison import setups

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_sample_of(script: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(script), "--sample"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout, ended.stderr
    summary = json.loads(ended.stdout.splitlines()[-1])
    if summary["skipped"]:
        pytest.skip(summary["skipped"])
    assert not summary["failures"], summary["failures"]
    assert ended.returncode == 0
    assert summary["tried"] == summary["wanted"] > 0
    assert not list(tmp_path.iterdir()), "it writes where it is started"


BROKEN = """
from common import main

def trial(number, folder):
    assert number != 3, "three is broken"
    return "held"

main("broken", trial, count=9, sample=5)
"""


def test_a_failed_trial_is_counted_and_its_replay_fails_alone() -> None:
    place = HERE / "_broken.py"
    command = [sys.executable, "-c", f"import sys; sys.argv[0] = {str(place)!r}\n{BROKEN}"]
    ended = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    summary = json.loads(ended.stdout)
    (failure,) = summary["failures"]
    assert failure == {
        "replay": "python tests/torture/_broken.py --seed 3 --count 1",
        "what": "three is broken",
    }
    assert (summary["tried"], summary["outcomes"]) == (9, {"failed": 1, "held": 8})
    again = subprocess.run(
        [*command, "--seed", "3", "--count", "1"], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert json.loads(again.stdout)["tried"] == len(json.loads(again.stdout)["failures"]) == 1


def test_a_page_that_takes_other_algorithms_for_repeats_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contenders by label, start and path alone, where flows differ in these: a report once had them so."""
    monkeypatch.setenv("COLUMNS", "400")
    assert true_pages.trial(8, tmp_path / "as it is") == "together"
    blind = property(lambda group: group.label + group.alike)
    monkeypatch.setattr(setups._Group, "key", blind)
    with pytest.raises(AssertionError, match="no repeats have this row"):
        true_pages.trial(8, tmp_path / "blind")


def test_a_page_that_shows_another_queue_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slowest link's queue where flows wait at several."""
    monkeypatch.setenv("COLUMNS", "400")
    assert true_pages.trial(4, tmp_path / "as it is") == "repeats"
    monkeypatch.setattr(setups.Setup, "way", lambda setup, contender: setup.path)
    with pytest.raises(AssertionError):
        true_pages.trial(4, tmp_path / "blind")


def test_kinds_are_asked_for_by_name() -> None:
    found = kinds(6)
    assert [kind.name for kind in only(found, "")] == [kind.name for kind in found]
    assert only(found, found[0].name) == found[:1]
    assert {"--share", "0.1"} <= set(found[0].command)
    with pytest.raises(SystemExit, match="no such kind"):
        only(found, "no-such-kind")
