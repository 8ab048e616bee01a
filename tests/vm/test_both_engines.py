"""Both engines side by side, and a kernel's run twice, on a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip import check, kernel
from dragstrip.comparison import compare
from dragstrip.engines.recall import recall
from dragstrip.engines.vm import ENGINE
from dragstrip.expand import expand
from dragstrip.experiment import Experiment
from dragstrip.recording import read
from dragstrip.runner import execute, plan
from dragstrip.validation import both

pytestmark = pytest.mark.usefixtures("linux")


def race(engine: str) -> Experiment:
    return compare(["reno"], rate="2mbit", rtt="40ms", queue="bfifo limit 20kb", duration="6s", engine=engine)


def test_the_simulator_is_beside_the_kernel(tmp_path: Path) -> None:
    document = execute(plan(race("sim,vm")), tmp_path / "out")
    (case,) = both.with_hosts(document, tmp_path / "out").cases
    assert case.release.startswith(f"Linux {kernel.chosen().name}")
    assert case.seeds == [1, 2]
    figures = {figure.quantity: figure for figure in case.figures}
    assert figures["goodput"].reached
    assert figures["rtt"].reached
    assert figures["reductions"].reached
    recording = read(tmp_path / "out" / document["runs"][1]["recording"])
    assert recording["flows"]["reductions"].to_pylist() == [case.kernel[0].recoveries]
    assert case.kernel[0].falls >= 1
    assert 'id="case-reno"' in (tmp_path / "out" / "report.html").read_text()


def test_a_run_that_was_made_before_is_recalled() -> None:
    scenario = expand(race("vm"))[0].scenario
    told: list[int] = []
    first = recall(ENGINE, scenario, {})
    again = recall(ENGINE, scenario, {}, told.append)
    assert told == [], "nothing ran"
    assert again.provenance == first.provenance
    assert again.tables["samples"].equals(first.tables["samples"])


def test_a_kernel_says_the_same_twice() -> None:
    (verdict,) = check.check(plan(race("vm")))
    assert verdict.identical, check.describe(verdict)
