"""`record.captures`: tcpstat's own count of a captured run, and who refuses it.

SPP's pairs are held against the program in `crates/inspect/src/ends.rs`, a run's round trips against the sender's own samples
in `crates/sim/tests/ends.rs`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.agent.kernels import without_a_kernel
from dragstrip.engines.capture import CaptureRequest
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import read
from dragstrip.results.measures import Measured, Window
from dragstrip.studies.execution.runner import captured, execute, plan

PATH = {"rate": "5mbit", "rtt": "40ms", "queue": "bfifo limit 50kb", "duration": "12s"}


def described() -> Experiment:
    content: dict[str, Any] = compare(["cubic"], **PATH).content()
    content["record"] = {**content.get("record", {}), "captures": True}
    content["flows"][0]["stop"] = "11.4s"
    return Experiment.build(content)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ends") / "out"
    execute(captured(plan(described()), CaptureRequest(["d"])), folder, report=False)
    return next(folder.glob("runs/000-*"))


def test_tcpstat_counts_the_same_bytes_in_the_same_seconds(made: Path) -> None:
    if shutil.which("tcpstat") is None:
        pytest.skip("tcpstat is not installed (`make capture-tools` installs it)")
    recording = read(made)
    measured = Measured(recording)
    (flow,) = measured.flows
    for seconds, measure in ((1, "tcpstat_1s_bps"), (5, "tcpstat_bps")):
        words = ("-f", "tcp and dst host 10.0.0.3", "-o", "%b\n", str(seconds))
        program = ["tcpstat", "-r", made / "captures" / "d.pcapng", *words]
        said = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        theirs = [float(line) for line in said.split()]
        ours = measured.series(measure, flow, Window()).tolist()
        # tcpstat's last interval is the one in which the packets end.
        assert ours == theirs[:-1]
        assert len(ours) == 11 // seconds
    counted = sum(row["ip_bytes"] for row in recording["tcpstat"].to_pylist())
    assert counted == sum(theirs) * 5 / 8


def test_the_round_trips_are_those_of_the_path(made: Path) -> None:
    measured = Measured(read(made))
    (flow,) = measured.flows
    spp, rtt = (measured.figure(f"{name}_p50", flow) for name in ("spp_ms", "rtt_ms"))
    assert spp is not None
    assert rtt is not None
    # A queue of 50 kB is 80 ms at 5 Mbit/s.
    assert 40 < spp < 125
    assert spp == pytest.approx(rtt, rel=0.03)


def test_an_engine_with_a_kernel_refuses_it_by_name() -> None:
    (run,) = plan(described()).runs
    (refused,) = without_a_kernel(run.scenario, ["cubic"], "linux-6")
    assert refused[:2] == ("record: captures", "true")
    assert "dragstrip inspect" in refused.expected
