from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dragstrip.errors import BadInputError
from dragstrip.runs import Outcome, Task, Watcher, child, pool, process, run_all
from fake_worker import ODD

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _fake_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MODULE", "fake_worker")
    monkeypatch.setattr(pool, "THREADED_RUNS_MAX", 0)
    monkeypatch.syspath_prepend(str(HERE))


def tasks(folder: Path, *names: str) -> list[Task]:
    return [Task({"name": name}, folder / str(number)) for number, name in enumerate(names)]


def test_outcomes_come_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    names = [f"run {number}" for number in range(20)]
    outcomes = run_all(tasks(tmp_path, *names), workers=3)
    assert [outcome.summary and outcome.summary["name"] for outcome in outcomes] == names


def test_a_crash_fails_only_its_own_run(tmp_path: Path) -> None:
    outcomes = run_all(tasks(tmp_path, "a", "crash", "b", "refuse", "crash", "c"), workers=2)
    assert [outcome.summary is not None for outcome in outcomes] == [True, False, True, False, False, True]
    assert outcomes[1].failure == "its process ended with signal SIGSEGV"
    assert outcomes[3].failure == "no"


def test_an_odd_answer_fails_only_its_own_run(tmp_path: Path) -> None:
    odd = list(ODD)
    names = [name for pair in zip(odd, [f"good {n}" for n in range(len(odd))], strict=True) for name in pair]
    outcomes = run_all(tasks(tmp_path, *names), workers=2)
    assert [outcome.summary["name"] for outcome in outcomes[1::2] if outcome.summary] == names[1::2]
    failures = dict(zip(odd, outcomes[::2], strict=True))
    assert not any(outcome.summary for outcome in failures.values())
    assert "is not JSON that can be read" in failures["garbage"].failure
    assert "summary.flows: got 1, expected 0 flows" in failures["a flow too many"].failure
    assert "summary.jain: got nan, expected a finite number, or null" in failures["not a number"].failure
    assert "nested more than" in failures["nested"].failure
    assert all(len(one.failure) < 2200 and one.failure.isprintable() for one in failures.values())


def test_what_a_worker_notes_is_said_in_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_all(tasks(tmp_path, "notes", "quiet"), workers=1)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "note: first"
    assert len(said) == 10
    assert all(len(line) <= 500 and line.isprintable() for line in said)


def test_the_watcher_hears_of_every_run(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []

    class Listener(Watcher):
        def started(self, index: int) -> None:
            heard.append(("started", index))

        def advanced(self, index: int, now_ns: int, arrived_bytes: int = 0) -> None:
            heard.append(("advanced", index))

        def finished(self, index: int, outcome: Outcome) -> None:
            heard.append(("finished", index))

    run_all(tasks(tmp_path, "a", "b"), workers=1, watcher=Listener())
    assert heard == [(what, index) for index in (0, 1) for what in ("started", "advanced", "finished")]


def test_a_worker_reports_at_most_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5.0, 5.01, 5.09, 5.11, 5.12, 5.3])
    monkeypatch.setattr(child.time, "monotonic", lambda: next(times))
    answers = io.StringIO()
    report = child._reports(answers)
    for second in range(6):
        report(second, 7)
    lines = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert lines == [{"now_ns": second, "arrived_bytes": 7} for second in (0, 3, 5)]


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        from pathlib import Path
        from dragstrip.runs import Task, pool, process, run_all
        pool.THREADED_RUNS_MAX = 0
        run_all([Task({{"name": "x"}}, Path({str(tmp_path / "hang")!r}))])
    """)
    # The real worker, reading from a pipe that stays open in us, so that only the signal can end it.
    worker = tmp_path / "stubborn.py"
    worker.write_text(
        "import dragstrip.runs.child as w, sys, time, pathlib, os\n"
        "w.die_with_parent(int(sys.argv[1]))\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    script = script.replace("run_all([", "process.MODULE = 'stubborn'; run_all([")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment)
    child = int(_wait_for(tmp_path / "pid"))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 60
    while _alive(child):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.02)


def test_an_interrupt_leaves_no_worker(tmp_path: Path) -> None:
    class Impatient(Watcher):
        def started(self, index: int) -> None:
            _wait_for(tmp_path / "0" / "pid")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(tasks(tmp_path, "hang"), workers=1, watcher=Impatient())
    assert not _alive(int((tmp_path / "0" / "pid").read_text()))


def _wait_for(file: Path) -> str:
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline, f"{file} did not appear"
        time.sleep(0.02)
    return file.read_text()


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_where_no_run_was_possible_another_reason_is_told_too() -> None:
    first = Outcome(None, "engine e: profile: got a, expected b", ("profile", "a", "b", "engine e"))
    other = Outcome(None, "engine e: delay: got 1 ms, expected none", ("delay", "1 ms", "none", "engine e"))
    with pytest.raises(BadInputError, match=r"^engine e: profile: got a, expected b$"):
        pool.raise_failure([first, first])
    with pytest.raises(
        BadInputError, match=r"expected b \(another run: engine e: delay: got 1 ms, expected none\)$"
    ):
        pool.raise_failure([first, first, other])
    pool.raise_failure([first, Outcome({})])
