"""Recordings that are kept for reuse: those that are damaged, or of another run, are made again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.contract import Engine
from dragstrip.engines.recall import recall
from dragstrip.io import checksums
from dragstrip.io.files import DamagedError
from dragstrip.model.recording import Recording, read, write


class Slow(Engine):
    """Gives one recording, and counts how often it was asked for."""

    name, about, slow = "slow", "a slow engine", True

    def __init__(self, recording: Recording) -> None:
        self.recording, self.runs, self.own = recording, 0, "a"

    def algorithms(self, options: Any) -> list[str]:
        return []

    def build(self, options: Any) -> str:
        return self.own

    def run(self, scenario: Any, options: Any, progress: Any = None) -> Recording:
        self.runs += 1
        return Recording(scenario, self.recording.tables, dict(self.recording.provenance))

    def play(self, scripts: Any) -> list[Any]:
        return []


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: Recording) -> Slow:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path))
    return Slow(recording)


def test_a_damaged_recording_is_named_and_made_again(engine: Slow, scenario: Any, tmp_path: Path) -> None:
    recall(engine, scenario, {})
    recall(engine, scenario, {})
    assert engine.runs == 1
    (kept,) = (tmp_path / "recordings").iterdir()
    for count, file in enumerate(sorted(kept.iterdir()), 2):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 16
        file.write_bytes(content)
        said: list[str] = []
        again = recall(engine, scenario, {}, say=said.append)
        assert again["flows"].equals(engine.recording["flows"])
        assert (engine.runs, len(said)) == (count, 1)
        assert str(kept) in said[0]
        assert "made again" in said[0]
    recall(engine, scenario, {}, say=pytest.fail)
    shutil.copy(kept / "flows.parquet", kept / "rtts.parquet")
    recall(engine, scenario, {})
    (kept / checksums.NAME).unlink()  # as an earlier version wrote
    assert recall(engine, scenario, {}).scenario == scenario


def test_one_runs_recording_does_not_answer_for_another(engine: Slow, scenario: Any, tmp_path: Path) -> None:
    recall(engine, scenario, {})
    (kept,) = (tmp_path / "recordings").iterdir()
    engine.own = "b"
    recall(engine, scenario, {})
    (other,) = {*(tmp_path / "recordings").iterdir()} - {kept}
    shutil.rmtree(other)
    kept.rename(other)
    said: list[str] = []
    recall(engine, scenario, {}, say=said.append)
    assert engine.runs == 3
    assert "belongs to another run" in said[0]


def test_a_recording_that_is_not_what_was_written_is_refused(recording: Recording, tmp_path: Path) -> None:
    write(recording, tmp_path / "run")
    for file in sorted((tmp_path / "run").iterdir()):
        content = file.read_bytes()
        for at in range(0, len(content), max(1, len(content) // 9)):
            file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            with pytest.raises(DamagedError, match=str(tmp_path / "run")):
                read(tmp_path / "run")
        file.write_bytes(content)
    assert read(tmp_path / "run").scenario == recording.scenario
