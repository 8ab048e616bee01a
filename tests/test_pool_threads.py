"""Short runs share this process; and no worker process runs what lies in the current folder."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.runs import Outcome, Task, Watcher, pool, process, run_all


def races(folder: Path, *algorithms: str, duration: str = "1s", rate: str = "10mbit") -> list[Task]:
    race = compare(algorithms, rate=rate, rtt="20ms", queue="bfifo limit 50kb", duration=duration)
    return [Task(run.scenario, folder / run.slug) for run in expand(race)]


def no_process(*_: Any) -> None:
    raise AssertionError("a worker process was started")


def test_a_few_short_runs_start_no_process_and_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(process.Process, "__init__", no_process)
        here = run_all(races(tmp_path / "here", "reno", "cubic", "bbr"))
    monkeypatch.setattr(pool, "THREADED_RUNS_MAX", 0)
    there = run_all(races(tmp_path / "there", "reno", "cubic", "bbr"))
    assert here == there
    assert all(outcome.summary for outcome in here)
    for one in ("000-reno/samples.parquet", "002-bbr/rtts.parquet"):
        assert (tmp_path / "here" / one).read_bytes() == (tmp_path / "there" / one).read_bytes()


def test_many_or_long_runs_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.Process, "__init__", no_process)
    for tasks in (
        races(tmp_path, *(["reno"] * (pool.THREADED_RUNS_MAX + 1))),
        races(tmp_path, "reno", rate="10gbit", duration="30s"),
    ):
        with pytest.raises(AssertionError, match="worker process"):
            run_all(tasks)


def test_a_fault_of_the_core_fails_its_run_alone_and_names_scenario_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _core.Scenario

    def faulty(document: dict[str, Any]) -> _core.Scenario:
        if any(flow["transport"]["cc"] == "cubic" for flow in document["flows"]):
            raise _core.PanicError(f"a fault of the core at {document['name']}, seed {document['seed']}")
        return real(document)

    monkeypatch.setattr(_core, "Scenario", faulty)
    reno, cubic, bbr = run_all(races(tmp_path, "reno", "cubic", "bbr"))
    assert reno.summary
    assert bbr.summary
    assert cubic.failure.startswith("a fault of the core at cubic, seed 1 with its scenario.json")


def test_an_interrupt_ends_the_threads_and_leaves_no_recording(tmp_path: Path) -> None:
    class Impatient(Watcher):
        def advanced(self, index: int, now_ns: int, arrived_bytes: int = 0) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(races(tmp_path, "reno", "cubic", duration="100s", rate="100mbit"), 2, Impatient())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("run-")]
    assert not list(tmp_path.iterdir())


def test_the_watcher_hears_of_a_run_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    heard: list[str] = []

    class Listener(Watcher):
        def started(self, index: int) -> None:
            heard.append(f"started {index}")

        def advanced(self, index: int, now_ns: int, arrived_bytes: int = 0) -> None:
            heard.append(f"{now_ns / 1e9:.0f} s")

        def finished(self, index: int, outcome: Outcome) -> None:
            heard.append(f"finished {index}")

    run_all(races(tmp_path, "reno", "cubic", duration="2s"), 1, Listener())
    assert heard[0] == "started 0"
    assert heard.index("started 1") > heard.index("finished 0")
    assert heard[-1] == "finished 1"
    assert len([what for what in heard if what.endswith(" s")]) >= 2


@pytest.mark.parametrize("place", ["", "."])
def test_no_worker_runs_what_lies_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for module in ("numpy", "queue", "sitecustomize", "pyarrow"):
        text = f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\nraise SystemExit(9)\n"
        (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place, str(tmp_path), *sys.path])
    monkeypatch.setattr(pool, "THREADED_RUNS_MAX", 0)
    (outcome,) = run_all(races(tmp_path / "out", "reno"))
    assert outcome.summary, outcome.failure
    assert not (tmp_path / "ran").exists()


def test_the_program_runs_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit(9)\n")
    words = ["compare", "--rate", "1mbit", "--rtt", "10ms", "--queue", "pfifo limit 100", "--duration", "1s"]
    words += ["--engine", "sim", "--no-report", *["reno"] * 1]
    program = Path(sys.executable).with_name("dragstrip")
    done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
