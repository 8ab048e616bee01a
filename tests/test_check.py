"""`--check`: the same run twice, byte against byte."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dragstrip import cli
from dragstrip.model.recording import Recording, write
from dragstrip.runs import Outcome, Task
from dragstrip.studies.execution import check
from dragstrip.studies.execution.runner import Plan, plan

RACE = "compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 1s --check"


def race() -> Plan:
    from dragstrip.experiment.comparison import compare

    return plan(compare(["reno"], rate="10mbit", rtt="40ms", queue="bfifo limit 200kb", duration="1s"))


def changed(recording: Recording, table: str, column: str, row: int, value: int) -> Recording:
    old = recording[table]
    values = old[column].to_pylist()
    values[row] = value
    at = old.column_names.index(column)
    new = old.set_column(at, column, pa.array(values, old[column].type))
    return Recording(recording.scenario, {**recording.tables, table: new}, recording.provenance)


def test_the_first_difference_is_named(recording: Recording) -> None:
    assert check.difference(recording, recording) == ""
    other = changed(recording, "samples", "cwnd_bytes", 3, 77)
    was = recording["samples"]["cwnd_bytes"][3].as_py()
    assert check.difference(recording, other) == f"table samples, row 3, column cwnd_bytes: {was} and 77"
    # An earlier row goes before an earlier column.
    both = changed(other, "samples", "srtt_ns", 2, 5)
    assert "row 2, column srtt_ns" in check.difference(recording, both)


def test_rows_that_are_missing_are_a_difference(recording: Recording) -> None:
    short = {**recording.tables, "received": recording["received"].slice(0, 4)}
    rows = recording["received"].num_rows
    found = check.difference(recording, Recording(recording.scenario, short))
    assert found == f"table received: {rows} and 4 rows"


def test_a_difference_is_told_and_the_status_says_so(
    monkeypatch: pytest.MonkeyPatch, recording: Recording
) -> None:
    hashed = Recording(recording.scenario, recording.tables, {"recording_sha256": "a" * 64})

    def differing(tasks: list[Task], *_: Any) -> list[Outcome]:
        write(hashed, tasks[0].folder)
        write(changed(hashed, "samples", "cwnd_bytes", 0, 1), tasks[1].folder)
        return [Outcome({"x": 1}), Outcome({"x": 1})]

    monkeypatch.setattr(check, "run_all", differing)
    (verdict,) = check.check(race())
    assert not verdict.identical
    assert "table samples, row 0, column cwnd_bytes" in check.describe(verdict)


def test_a_run_that_fails_is_not_identical(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "run_all", lambda *_: [Outcome(None, "no such kernel")] * 2)
    (verdict,) = check.check(race())
    assert not verdict.identical
    assert check.describe(verdict) == "reno (sim, seed 1): failed: no such kernel"


def test_the_simulator_says_the_same_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dragstrip", *shlex.split(f"{RACE} --json reno cubic")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert told["identical"] is True
    assert [(run["scenario"], run["engine"]) for run in told["runs"]] == [("reno", "sim"), ("cubic", "sim")]
    assert len({run["recording_sha256"] for run in told["runs"]}) == 2
    assert list(tmp_path.iterdir()) == [], "nothing is kept"
