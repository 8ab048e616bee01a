"""The baselines that a wheel ships: used for the same core alone, and nothing is simulated that they have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.sim.fingerprint import fingerprint
from dragstrip.studies.passport import baselines, runs, store, suite
from dragstrip.studies.passport.rows import BASELINES, Subject
from dragstrip.studies.passport.store import RunStore

ROWS = suite.rows("cubic", ["rtt"], quick=True)[:3]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shipped file of a few rows, and an empty cache."""
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "first"))
    place = tmp_path / "baselines.json.gz"
    baselines.write(place, baselines.baseline_runs(ROWS, workers=1))
    monkeypatch.setattr(store, "SHIPPED", place)
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "second"))
    store._shipped.cache_clear()
    yield place
    store._shipped.cache_clear()


def keys() -> list[str]:
    """The runs that these rows need of the baselines."""
    plans = [runs.planned(row.scenario, Subject(name)) for row in ROWS for name in BASELINES]
    return sorted({runs._key(run) for plan in plans for run in plan.runs})


def content(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def test_a_passport_finds_every_run_of_the_baselines(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(content(file)["runs"]) == keys()
    monkeypatch.setattr(runs, "run_all", lambda tasks, *_: pytest.fail(f"{len(tasks)} runs are made again"))
    made = runs.make(ROWS, [Subject(name) for name in BASELINES], 1, quiet=True)
    assert {key: one.sha256 for key, one in made.results.items()} == {
        key: one["sha256"] for key, one in content(file)["runs"].items()
    }


def test_the_same_runs_give_the_same_bytes(file: Path) -> None:
    again = file.with_name("again.json.gz")
    baselines.write(again, baselines.baseline_runs(ROWS, workers=2))
    assert again.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("field", ["build", "sources"])
def test_those_of_another_core_are_not_used(file: Path, field: str) -> None:
    assert RunStore(fingerprint()).find(keys()[0]) is not None
    baselines.write(file, {**content(file), field: "another"})
    store._shipped.cache_clear()
    assert RunStore(fingerprint()).find(keys()[0]) is None


@pytest.mark.parametrize(
    "damage", [b"", b"\x1f\x8b", gzip.compress(b"[]", mtime=0), gzip.compress(b"{", mtime=0)]
)
def test_a_damaged_file_is_as_none(file: Path, damage: bytes) -> None:
    file.write_bytes(damage)
    store._shipped.cache_clear()
    assert RunStore(fingerprint()).find(keys()[0]) is None
