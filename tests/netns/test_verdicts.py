"""A capture from network namespaces: its path is inferred, and it is known which algorithm it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.agent.limits import SERVICE_MAX, SERVICE_MIN

pytestmark = pytest.mark.usefixtures("machine")
SECONDS = 12


def dragstrip(*words: str | Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "dragstrip", *map(str, words), "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if "no netem" in told.stderr:
        pytest.skip(told.stderr.strip())
    assert told.returncode == 0, told.stderr
    document: dict[str, Any] = json.loads(told.stdout)
    return document


def test_a_capture_of_namespaces(tmp_path: Path) -> None:
    path = ("--rate", "10mbit", "--rtt", "40ms", "--queue", "bfifo limit 60kb")
    more = ("--duration", f"{SECONDS}s", "--engine", "netns", "--out", tmp_path / "run")
    dragstrip("compare", "cubic", *path, *more, "--capture", "s1")
    (file,) = (tmp_path / "run").rglob("s1.pcapng")
    (found,) = dragstrip("inspect", file, "--infer")["paths"]
    assert found["place"] == "sender"
    assert found["base_rtt_ms"]["value"] == pytest.approx(40, rel=0.05)
    (about,) = (tmp_path / "run").rglob("provenance.json")
    served = json.loads(about.read_text())["verified"]["service"].get("r-d", 0)
    rate_bps = found["rate_bps"]["value"]
    if SERVICE_MIN <= served <= SERVICE_MAX:
        assert rate_bps == pytest.approx(10e6 * 1500 / 1514, rel=0.03)
    else:  # a machine so busy that its shaper was late had no steady rate to find
        assert rate_bps is None or rate_bps == pytest.approx(served * 10e6 * 1500 / 1514, rel=0.1)
    answer = dragstrip("identify", file)
    assert answer["answer"] in (None, "cubic"), answer["reason"]
    verdict = dragstrip("whatif", file, "bbr", "--sender-algorithm", "cubic")
    assert verdict["explains"]["grade"] != "not explained", verdict["explains"]
    assert [one["algorithm"] for one in verdict["what_if"]] == ["cubic", "bbr"]
