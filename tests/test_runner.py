from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment.comparison import compare
from dragstrip.io.files import NotWrittenError, claimed_folder
from dragstrip.model.recording import Recording, write
from dragstrip.runs import Outcome, Task
from dragstrip.studies.execution import runner
from dragstrip.studies.execution.runner import execute, next_folder, plan


def race() -> runner.Plan:
    described = compare(
        ["reno", "cubic"], rate="10mbit", rtt="40ms", queue="bfifo limit 200kb", duration="10s", flows=2
    )
    return plan(described)


def test_the_page_of_a_run_is_what_its_folder_says(tmp_path: Path) -> None:
    """It is drawn of what was measured in this process; drawn of the files it is the same."""
    described = compare(
        ["reno", "cubic*2"], rate="10mbit", rtt="40ms", queue="1bdp", duration="5s", loss="0.1%", repeat=2
    )
    execute(plan(described), tmp_path / "out")
    page = (tmp_path / "out/report.html").read_bytes()
    (tmp_path / "out/report.html").unlink()
    assert runner.write_report(tmp_path / "out").read_bytes() == page


_held = contextlib.ExitStack()
"""The folders that a process of the pool has taken, until it ends."""


def _take(place: str) -> str:
    return _held.enter_context(next_folder(Path(place), "compare")).name


def test_two_at_once_never_get_the_same_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        names = pool.map(_take, [str(tmp_path)] * 24, chunksize=1)
    assert sorted(names) == [f"compare-{number:03d}" for number in range(1, 25)]


def test_a_folder_that_somebody_else_took_meanwhile_is_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours was removed before it was locked, and another run has made and holds one of the name."""
    made = iter([True, False])
    mkdir = Path.mkdir

    def lost(folder: Path, *arguments: Any, **options: Any) -> None:
        if not next(made, False):
            mkdir(folder, *arguments, **options)

    with claimed_folder(tmp_path / "x") as first:
        monkeypatch.setattr(Path, "mkdir", lost)
        with claimed_folder(tmp_path / "x") as second:
            assert (first, second) == (True, False)


def test_an_interrupt_keeps_what_is_finished_and_marks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: Recording
) -> None:
    def half_way(tasks: list[Task], *_: Any) -> list[Outcome]:
        write(recording, tasks[0].folder)
        (tasks[1].folder.parent / f".{tasks[1].folder.name}.x.partial").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_all", half_way)
    with pytest.raises(KeyboardInterrupt):
        execute(race(), tmp_path / "out")
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["PARTIAL", "runs"]
    assert [entry.name for entry in (tmp_path / "out" / "runs").iterdir()] == ["000-reno"]


def test_an_interrupt_before_the_first_recording_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(*_: Any) -> list[Outcome]:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_all", at_once)
    with pytest.raises(KeyboardInterrupt):
        execute(race(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
import os, sys
from pathlib import Path
from dragstrip.studies.execution.runner import claimed
with claimed(Path(sys.argv[1])):
    for name in sys.argv[2:]:
        file = Path(sys.argv[1], name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    os.kill(os.getpid(), 9)
"""


def _killed(out: Path, *files: str) -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED, str(out), *files], check=False)
    assert ended.returncode == -9


def test_a_disk_without_room_for_the_folder_is_the_world_s_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mkdir(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(NotWrittenError, match="out: cannot be written: No space"):
        runner.claimed(tmp_path / "out").__enter__()
    with pytest.raises(NotWrittenError, match="runs: cannot be written: No space"):
        next_folder(tmp_path / "runs", "compare").__enter__()


def test_a_folder_in_which_a_killed_run_left_nothing_is_taken(tmp_path: Path) -> None:
    _killed(tmp_path / "out")
    with runner.claimed(tmp_path / "out"):
        with (
            pytest.raises(BadInputError, match="another run is writing there"),
            runner.claimed(tmp_path / "out"),
        ):
            pass
        assert (tmp_path / "out" / "PARTIAL").exists()


def test_a_killed_run_cannot_be_resumed_and_its_recordings_stay(tmp_path: Path) -> None:
    _killed(tmp_path / "out", "runs/000-reno/scenario.json")
    with pytest.raises(BadInputError, match="cannot be resumed"), runner.claimed(tmp_path / "out"):
        pass
    assert (tmp_path / "out/runs/000-reno/scenario.json").exists()


def test_the_next_run_removes_what_killed_ones_left(tmp_path: Path) -> None:
    _killed(tmp_path / "compare-001")
    _killed(tmp_path / "compare-002", "runs/000-reno/scenario.json")
    (tmp_path / "compare-004").mkdir()  # killed between making its folder and claiming it
    with runner.claimed(tmp_path / "compare-003"), next_folder(tmp_path, "compare") as folder:
        assert folder.name == "compare-001"
        names = sorted(entry.name for entry in tmp_path.iterdir())
        assert names == ["compare-001", "compare-002", "compare-003"]
        assert not list(folder.iterdir())
        with next_folder(tmp_path, "compare") as other:
            assert other.name == "compare-004", "an empty folder that somebody holds was taken"


def test_a_failed_run_is_told_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: Recording
) -> None:
    from dragstrip.results.measures import summarise

    def one_fails(tasks: list[Task], *_: Any) -> list[Outcome]:
        write(recording, tasks[0].folder)
        return [Outcome(summarise(recording)), Outcome(None, "its process ended with signal SIGSEGV")]

    monkeypatch.setattr(runner, "run_all", one_fails)
    document = execute(race(), tmp_path / "out", report=False)
    assert [run["scenario"] for run in document["runs"]] == ["reno"]
    assert document["failed"] == [
        {"scenario": "cubic", "seed": 1, "reason": "its process ended with signal SIGSEGV"}
    ]
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == document
    assert not (tmp_path / "out" / "PARTIAL").exists()


@pytest.mark.parametrize("failing", [0, 1])
def test_of_two_runs_that_are_alike_the_one_that_failed_is_told(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome of the last one stood for both: its recording was looked for in the other one's folder."""

    def one_fails(tasks: list[Task], *rest: Any) -> list[Outcome]:
        made = runner_run_all([task for at, task in enumerate(tasks) if at != failing], *rest)
        made.insert(failing, Outcome(None, "it took longer than 0.2 s"))
        return made

    runner_run_all = runner.run_all
    monkeypatch.setattr(runner, "run_all", one_fails)
    described = compare(["reno", "reno"], rate="2mbit", rtt="20ms", queue="pfifo limit 20", duration="200ms")
    document = execute(plan(described), tmp_path / "out")
    assert [run["recording"] for run in document["runs"]] == [f"runs/{1 - failing:03d}-reno"]
    assert [run["reason"] for run in document["failed"]] == ["it took longer than 0.2 s"]
    assert (tmp_path / "out" / "report.html").exists()


def test_when_every_run_fails_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_all", lambda tasks, *_: [Outcome(None, "no luck") for _ in tasks])
    with pytest.raises(DragstripError, match="no luck"):
        execute(race(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
