"""A sample of cases against their stored kernel recordings: no error may grow past its own band."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.studies.validation import bands, grid
from dragstrip.studies.validation.kernel import load_all
from dragstrip.studies.validation.validate import Case, validate

DATA = Path(__file__).parents[2] / "validation" / "linux-6.1"
GRID, _ = grid.read(None)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    runs = [run for run in load_all(DATA / "recordings") if run.case in GRID.sample]
    found = validate(runs)
    assert not found.failed
    return {case.name: case for case in found.cases}


def test_the_sample_has_every_algorithm_and_discipline_and_each_case_its_band(cases: dict[str, Case]) -> None:
    linux = {row["name"] for row in _core.algorithm_table() if row["models"].startswith("Linux")}
    assert {case.algorithm for case in cases.values()} >= linux
    kinds = {"cake", "choke", "codel", "fq", "fq_codel", "fq_pie", "pie", "red", "sfb", "sfq"}
    assert {case.conditions.discipline for case in cases.values()} >= kinds
    assert set(bands.read(DATA / "bands.json")) == set(GRID.sample)


@pytest.mark.parametrize("name", GRID.sample)
def test_no_error_has_grown_past_its_band(cases: dict[str, Case], name: str) -> None:
    beyond = bands.beyond(cases[name], bands.read(DATA / "bands.json")[name])
    assert not beyond, "\n".join(beyond)


LATER = [DATA.parent / name for name in ("linux-6.12", "linux-7.3")]


@pytest.mark.parametrize("folder", LATER, ids=lambda folder: folder.name)
def test_the_profiles_of_later_kernels_stay_within_their_bands(folder: Path) -> None:
    sample = grid.read(folder / "grid.toml")[0].sample
    found = validate([run for run in load_all(folder / "recordings") if run.case in sample])
    assert not found.failed
    limits = bands.read(folder / "bands.json")
    assert {case.name for case in found.cases} == set(limits) == set(sample)
    beyond = [line for case in found.cases for line in bands.beyond(case, limits[case.name])]
    assert not beyond, "\n".join(beyond)


def test_the_recordings_stay_small() -> None:
    folders = [folder / "recordings" for folder in (DATA, *LATER)]
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) < 10_000_000
