"""A flow that plays a video: in an experiment, in its recording, in measures, table and report."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.io.files import DamagedError
from dragstrip.model.recording import Recording, read, write
from dragstrip.results.measures import Measured, summarise
from dragstrip.studies.execution.runner import plan

S = 1_000_000_000


def experiment(rate: str = "5mbit", **application: Any) -> Experiment:
    """One player for a minute."""
    flow = {"cc": "cubic", "reverse": True, "application": {"kind": "video", **application}}
    path = {"rate": rate, "rtt": "40ms", "queue": "4bdp"}
    return Experiment.build({"duration": "60s", "path": path, "flows": [flow]}, "x.toml")


@pytest.mark.parametrize(
    ("application", "field", "hint"),
    [
        ({"adaptation": "bola"}, "adaptation", "buffer"),
        ({"laddder": []}, "laddder", "ladder"),
        ({"ladder": ["1mbit", 2]}, "ladder[1]", "10mbit"),
        ({"ladder": ["2mbit", "1mbit"]}, "ladder", "ascend"),
        ({"ladder": [f"{rate}kbit" for rate in range(1, 67)]}, "ladder", "64"),
        ({"segment": "0s"}, "segment", "at least 1ms"),
        ({"segment": "20s"}, "buffer", "at least 40s"),
        ({"startup": "27s"}, "startup", "no longer than 26s"),
        ({"startup": "0s"}, "startup", "at least"),
        ({"reservoir": "27s"}, "reservoir", "26s"),
        ({"reservoir": "10s", "cushion": "17s"}, "cushion", "26s"),
        ({"safety": "110%"}, "safety", "100"),
        ({"request": "7b"}, "request", "at least 8b"),
    ],
)
def test_what_no_player_could_do_is_refused_by_field(
    application: dict[str, Any], field: str, hint: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        plan(experiment(**application), "x.toml")
    assert caught.value.field == f"flows[0].application.{field}"
    assert hint in str(caught.value)


def test_a_video_over_udp_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"flows\[0\]\.cc: .*is missing"):
        Experiment.build(
            {
                "duration": "9s",
                "path": {"rate": "5mbit", "rtt": "40ms"},
                "flows": [{"application": {"kind": "video"}}],
            },
            "x.toml",
        )


def test_defaults_are_those_of_the_documentation() -> None:
    application = expand(experiment())[0].scenario["flows"][0]["application"]
    assert application["ladder_bps"][0] == 235_000
    assert application["ladder_bps"][-1] == 5_800_000
    times = ("segment_ns", "buffer_ns", "startup_ns", "reservoir_ns", "cushion_ns")
    # 3/8 of 30 s, and up to a segment less than 30 s, which is less than nine tenths.
    assert [application[name] / S for name in times] == [4, 30, 4, 11.25, 14.75]


def played(rate: str, **application: Any) -> tuple[Recording, Measured]:
    recording = simulate(expand(experiment(rate, **application))[0].scenario)
    return recording, Measured(recording)


@pytest.mark.parametrize("adaptation", ["buffer", "throughput"])
@pytest.mark.parametrize(("rate", "startup"), [("200kbit", "4s"), ("400kbit", "12s"), ("3mbit", "8s")])
def test_measures_follow_from_the_segments(rate: str, startup: str, adaptation: str) -> None:
    recording, measured = played(rate, adaptation=adaptation, startup=startup)
    rows = recording["video"].to_pylist()
    [flow] = measured.flows
    figures = {
        name: measured.figure(f"video_{name}", flow)
        for name in ("startup_s", "stalls", "stall_s", "bps", "switches")
    }
    last = rows[-1]
    idle_ns = flow.stop_ns - last["time_ns"]
    left_ns = max(0, last["buffer_ns"] - idle_ns) if last["playing"] else last["buffer_ns"]
    played_ns = len(rows) * 4 * S - left_ns
    life_s = (flow.stop_ns - flow.start_ns) / 1e9
    assert figures["startup_s"] + figures["stall_s"] + played_ns / 1e9 == pytest.approx(life_s, abs=1e-6)
    rates = [row["rate_bps"] for row in rows]
    assert figures["bps"] == pytest.approx(sum(rates) / len(rates))
    assert figures["switches"] == sum(one != other for one, other in pairwise(rates))
    assert (figures["stalls"] > 0) == (figures["stall_s"] > 0) == (rate == "200kbit")
    assert min(row["buffer_ns"] for row in rows) >= 4 * S
    assert measured.figure("video_buffer_s_max", flow) == max(row["buffer_ns"] for row in rows) / 1e9
    assert summarise(recording)["flows"][0]["video"] == figures


def test_a_flow_without_a_video_has_none_of_it(tmp_path: Path) -> None:
    """Nor has its recording the table: file by file it is what it was before there were videos."""
    race = compare(["cubic"], rate="5mbit", rtt="40ms", duration="2s")
    recording = simulate(expand(race)[0].scenario)
    measured = Measured(recording)
    assert measured.figure("video_stalls", measured.flows[0]) is None
    assert not len(measured.series("video_buffer_s", measured.flows[0]))
    assert "video" not in summarise(recording)["flows"][0]
    write(recording, tmp_path / "bulk")
    assert not (tmp_path / "bulk" / "video.parquet").exists()
    assert read(tmp_path / "bulk")["video"].num_rows == 0
    recording, _ = played("5mbit")
    write(recording, tmp_path / "video")
    assert read(tmp_path / "video")["video"].equals(recording["video"])
    (tmp_path / "video" / "video.parquet").unlink()
    with pytest.raises((BadInputError, DamagedError)):
        read(tmp_path / "video")


def test_a_comparison_shows_what_viewers_saw(tmp_path: Path) -> None:
    options = ["--rate", "5mbit", "--rtt", "40ms", "--duration", "30s", "--together"]
    where = ["--out", str(tmp_path / "out"), "--figures", "svg"]
    words = [sys.executable, "-m", "dragstrip", "compare", "cubic", "bbr", "--workload", "video-bulk"]
    ended = subprocess.run([*words, *options, *where], text=True, capture_output=True, check=True)
    lines = ended.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip() == "videos")
    heads = " ".join(lines[at + 1 : at + 3])
    for head in ("bit rate", "switches", "start-up", "stalls", "stalled"):
        assert head in heads
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert ["video" in flow for flow in result["runs"][0]["flows"]] == [True, False, True, False]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Videos: bit rate and buffer" in page
    assert (tmp_path / "out" / "figures" / "video.svg").exists()


def test_the_same_video_twice_is_the_same(tmp_path: Path) -> None:
    race = dragstrip.compare(
        ["reno", "cubic"], rate="3mbit", rtt="40ms", duration="20s", workload="video-throughput", loss="1%"
    )
    hashes = []
    for name, workers in (("one", 1), ("two", 2)):
        dragstrip.run(race, tmp_path / name, workers=workers, report=False)
        runs = sorted((tmp_path / name / "runs").iterdir())
        hashes.append([read(run).provenance["recording_sha256"] for run in runs])
    assert hashes[0] == hashes[1]
