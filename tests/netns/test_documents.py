"""The documents' experiments, from the catalogue's own files, on this machine's kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.agent import bpf
from dragstrip.experiment import catalogue
from dragstrip.experiment.types import rebuilt
from dragstrip.studies.execution.runner import execute, plan
from tools.catalogue_hosts import gathered

from .test_bpf import available
from .test_runs import main

BU = ("reno", "cubic", "vegas", "bbr")


def document(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "result.json").read_text())
    return found


def test_the_exercises_first_step_runs_and_is_graded(
    machine: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["run", "geni-tcp/step1", "--engine", "netns", "--duration", "1s", "--out", str(out)]
    assert main(words) == 0
    assert "the engine's own stack replaces linux-2.6.27" in capsys.readouterr().err
    result = document(out)
    assert [run["engine"] for run in result["runs"]] == ["netns", "netns"]
    grades = {claim["id"]: claim for claim in result["claims"]}
    assert set(grades) == {"goodput-cubic", "goodput-reno", "text-same"}
    for claim in ("goodput-cubic", "goodput-reno"):
        assert 0 < grades[claim]["measured"] < 94.15 * 1.01, "what Ethernet carries, and a shaper's burst"
        assert grades[claim]["grade"] in ("reproduced", "contradicted", "limited")
    on_hosts = gathered(tmp_path)["geni-tcp/step1"]["netns"]
    assert {name: line["grade"] for name, line in on_hosts["claims"].items()} == {
        name: claim["grade"] for name, claim in grades.items()
    }
    assert (on_hosts["runs"], on_hosts["duration_s"]) == (2, [1.0])
    page = (out / "report.html").read_text()
    assert "in place of linux-2.6.27." in page
    assert "Measured before the traffic: " in page
    if "netem" in machine["lacks"]:
        assert "delay of 100 us left to the cable" in page


@pytest.mark.parametrize(
    ("step", "what"),
    [
        ("step2", "delay: got 300.1 ms"),
        ("step3", "delay: got 300.1 ms"),
        ("step8", "netem: got loss, jitter or the like"),
    ],
)
def test_steps_with_a_delay_or_loss_need_netem_and_say_so(
    machine: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], step: str, what: str
) -> None:
    if "netem" not in machine["lacks"]:
        pytest.skip("this kernel has netem")
    words = ["run", f"geni-tcp/{step}", "--engine", "netns", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"link center-left: {what}, expected none" in said
    assert "this kernel has no netem (sch_netem)" in said
    assert not (tmp_path / "out").exists()


def test_four_algorithms_share_and_the_shares_are_graded(machine: dict[str, Any], tmp_path: Path) -> None:
    content = catalogue.load("bu-cs655-2022/fairness")[0].content()
    load = []
    if "vegas" not in available():
        if reason := bpf.missing():
            pytest.skip(f"this kernel has no vegas, and {reason}")
        if machine["rights"] != "own":
            pytest.skip("this kernel has no vegas, and programs in it need root")
        own = tmp_path / "vegas.bpf.c"
        own.write_text((bpf.HOME / "vegas.bpf.c").read_text().replace('"bpf_vegas"', '"vegas"'))
        load = [str(own)]
    if missing := set(BU) - {*available(), "vegas"}:
        pytest.skip(f"this kernel has no {', '.join(sorted(missing))}")
    asked = {"engine": "netns", "load": load, "duration": "3s", "repeat": 1, "ablations": []}
    experiment, replaced = rebuilt(content, asked)
    assert replaced == ["linux-4.15"]
    execute(plan(experiment), tmp_path / "out", report=False)
    result = document(tmp_path / "out")
    shares = {claim["id"]: claim["measured"] for claim in result["claims"] if claim["metric"] == "share"}
    four = [shares[f"share-{cc}"] for cc in BU]
    assert min(four) > 0
    assert sum(four) == pytest.approx(100)
