"""Recordings side by side: runs, captures and other programs' files on one page, nothing made up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.interop import writers
from dragstrip.model.recording import read
from dragstrip.results.measures import Measured
from dragstrip.studies.execution.runner import captured, execute, plan

PING = (
    "PING h (1.1.1.1) 56(84) bytes of data.\n"
    "64 bytes from 1.1.1.1: icmp_seq=1 ttl=64 time=40.2 ms\n"
    "64 bytes from 1.1.1.1: icmp_seq=3 ttl=64 time=41.2 ms\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its captures, the same as a flent file, and a ping log."""
    folder = tmp_path_factory.mktemp("beside")
    path = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 50kb", "duration": "4s"}
    execute(captured(plan(compare(["cubic"], **path)), CaptureRequest()), folder / "race", report=False)
    writers.export(folder / "race", "flent", folder / "flent")
    (folder / "ping.txt").write_text(PING)
    return folder


def report(*words: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["report", *map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    said: dict[str, Any] = json.loads(result.stdout)
    return said


def test_a_run_its_capture_and_other_files(made: Path, tmp_path: Path) -> None:
    run = made / "race" / "runs" / "000-cubic"
    given = [run / "captures" / "s1.pcapng", made / "flent" / "000-cubic.flent.gz", made / "ping.txt"]
    said = report(*given, made / "race", "--out", tmp_path / "out", "--figures", "svg,csv")
    assert [it["kind"] for it in said["sources"]] == ["capture", "flent", "ping", "sim"]
    capture, flent, sim = said["flows"]
    (true,) = read(run)["flows"].to_pylist()
    assert sim["bytes"] == true["bytes_received"]
    assert 0 <= capture["bytes"] - sim["bytes"] <= 150_000, "what was under way at the end"
    assert sum(capture["retransmissions"].values()) == true["retransmits"] > 0
    assert sim["retransmissions"] == {"needed": None, "spurious": None, "unknown": true["retransmits"]}
    assert capture["rtt_ms"]["p50"] == pytest.approx(sim["rtt_ms"]["p50"], abs=2e-3)
    assert flent["segments"] is None
    (pings,) = [probe for probe in said["probes"] if probe["source"].endswith("ping.txt")]
    assert (pings["sent"], pings["lost"]) == (3, 1)
    page = (tmp_path / "out" / "report.html").read_text()
    assert all(str(path) in page for path in given)
    assert "no scenario" in page
    drawn = [json.loads(text) for text in re.findall(r'chart-data">(.*?)</script>', page)]
    assert [figure["name"] for figure in drawn] == ["cdf-rtt", "overlay"]
    strokes = {stroke["label"] for panel in drawn[1]["panels"] for stroke in panel["strokes"]}
    assert {str(path) for path in given[:2]} <= strokes
    assert {path.name for path in (tmp_path / "out" / "figures").iterdir()} == {
        f"{name}.{ending}" for name in ("cdf-rtt", "overlay") for ending in ("svg", "csv")
    }


def test_what_two_vantage_points_said_is_kept_in_their_recording(made: Path, tmp_path: Path) -> None:
    captures = made / "race" / "runs" / "000-cubic" / "captures"
    words = [
        "inspect",
        str(captures / "s1.pcapng"),
        str(captures / "d.pcapng"),
        "--out",
        str(tmp_path / "in"),
    ]
    inspected = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    (flow,) = json.loads(inspected.stdout)["flows"]
    said = report(tmp_path / "in", "--out", tmp_path / "out")
    (shown,) = said["flows"]
    assert {key: shown[key] for key in flow} == flow


def test_measures_say_that_there_is_no_scenario(made: Path, tmp_path: Path) -> None:
    capture = made / "race" / "runs" / "000-cubic" / "captures" / "s1.pcapng"
    CliRunner().invoke(app, ["inspect", str(capture), "--out", str(tmp_path / "in")], catch_exceptions=False)
    with pytest.raises(BadInputError, match="scenario: the recording has none"):
        _ = Measured(read(tmp_path / "in" / "captures")).flows


def test_each_recording_once(made: Path, tmp_path: Path) -> None:
    words = ["report", str(made / "ping.txt"), str(made / "ping.txt"), "--out", str(tmp_path / "out")]
    assert "each recording once" in str(CliRunner().invoke(app, words).exception)
    assert not (tmp_path / "out").exists()
