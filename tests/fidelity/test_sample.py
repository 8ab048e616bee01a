"""Forty cases against their stored kernel recordings: no error may grow past its own band."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.fidelity import bands, grid
from dragstrip.fidelity.agree import Case, agree
from dragstrip.fidelity.kernel import load_all

HERE = Path(__file__).parent
GRID, _ = grid.read(None)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    runs = [run for run in load_all(HERE / "recordings") if run.case in GRID.sample]
    found = agree(runs)
    assert not found.failed
    return {case.name: case for case in found.cases}


def test_the_sample_is_forty_cases_and_each_has_its_band() -> None:
    assert len(set(GRID.sample)) == 40
    assert set(bands.read(HERE / "bands.json")) == set(GRID.sample)


@pytest.mark.parametrize("name", GRID.sample)
def test_no_error_has_grown_past_its_band(cases: dict[str, Case], name: str) -> None:
    beyond = bands.beyond(cases[name], bands.read(HERE / "bands.json")[name])
    assert not beyond, "\n".join(beyond)


def test_the_recordings_stay_small() -> None:
    assert sum(file.stat().st_size for file in (HERE / "recordings").iterdir()) < 2_000_000
