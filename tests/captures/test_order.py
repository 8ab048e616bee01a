"""The order of a capture's records: cause before effect at every vantage point, with tshark as referee.

Nobody acknowledges what has not passed before, at any place on the path: tshark must find no ACK of unseen data.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.capture import CaptureRequest
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan

RUNS = 8


def drawn(number: int) -> dict[str, Any]:
    """A path: with delays of zero, rates alike or without limit, busy hosts, both directions."""
    choose = random.Random(number).choice  # noqa: S311 -- no secret
    given: dict[str, Any] = {
        "rate": choose(["2mbit", "10mbit", "50mbit"]),
        "rtt": choose(["0ms", "0.2ms", "10ms", "80ms"]),
        "queue": choose(
            ["pfifo limit 20", "bfifo limit 50kb", "fq_codel", "tbf rate 5mbit burst 3kb limit 60kb"]
        ),
        "duration": "2s",
        "seed": number,
        "flows": choose([1, 2]),
        "both_ways": choose([True, False]),
    }
    if given["both_ways"]:
        given["up_rate"] = choose([given["rate"], "1mbit"])
    if choose([True, False]):
        given["loss"] = "1%"
    if choose([True, False]):
        given["gso"] = "off"
    return given


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark: make capture-tools")
@pytest.mark.parametrize("number", range(RUNS))
def test_nobody_acknowledges_what_has_not_passed_before(tmp_path: Path, number: int) -> None:
    described = compare(["cubic"], **drawn(number))
    planned = plan(described)
    (scenario,) = (run.scenario for run in planned.runs)
    points = [node["name"] for node in scenario["nodes"] if node["kind"] == "host"]
    points += [link["name"] for link in scenario["links"]]
    execute(captured(planned, CaptureRequest(points)), tmp_path / "out", report=False)
    (run,) = (tmp_path / "out/runs").iterdir()
    files = sorted((run / "captures").iterdir())
    assert len(files) == len(points)
    for file in files:
        words = ("tshark", "-n", "-r", file, "-Y", "tcp.analysis.ack_lost_segment")
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert told == "", f"{file.name}, --seed {number}: {drawn(number)}"
