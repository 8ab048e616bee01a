"""Both engines side by side, and a kernel's run twice, on a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.engines.kernels import kernel
from dragstrip.engines.recall import recall
from dragstrip.engines.vm import ENGINE
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import read
from dragstrip.studies.execution import check
from dragstrip.studies.execution.runner import execute, plan
from dragstrip.studies.validation import both

pytestmark = pytest.mark.usefixtures("linux")


def race(engine: str) -> Experiment:
    return compare(["reno"], rate="2mbit", rtt="40ms", queue="bfifo limit 20kb", duration="6s", engine=engine)


def test_the_simulator_is_beside_the_kernel(tmp_path: Path) -> None:
    document = execute(plan(race("sim,vm")), tmp_path / "out")
    (case,) = both.with_hosts(document, tmp_path / "out").cases
    assert case.release.startswith(f"Linux {kernel.find_kernel().name}")
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


@pytest.mark.parametrize(("receiver_cc", "marked"), [("dctcp", True), ("cubic", False)])
def test_a_listener_of_cubic_refuses_dctcp_s_ecn(tmp_path: Path, receiver_cc: str, marked: bool) -> None:
    """The kernel's way (`tcp_ecn_create_request`): the SYN is ECN-capable, and only an algorithm that needs ECN grants that."""
    red = "red limit 400kb min 30kb max 90kb avpkt 1500 burst 30 probability 0.1 ecn"
    given = {"rate": "10mbit", "rtt": "40ms", "queue": red, "duration": "10s", "ecn": True}
    race = compare(["dctcp"], engine="sim,vm", receiver_cc=receiver_cc, **given)
    document = execute(plan(race), tmp_path / "out")
    (case,) = both.with_hosts(document, tmp_path / "out").cases
    assert all(
        figure.reached for figure in case.figures if figure.quantity in ("goodput", "rtt", "reductions")
    )
    for run in document["runs"]:
        recording = read(tmp_path / "out" / run["recording"])
        assert recording["flows"]["ecn_negotiated"].to_pylist() == [marked]
        marks, drops = (max(recording["queues"][name].to_pylist()) for name in ("marked", "dropped"))
        assert (marks > 100, drops > 10) == (marked, not marked)
