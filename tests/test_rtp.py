"""A live video over RTP with SCReAMv2: its rate, delay and reactions, in an experiment, table and report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dragstrip
from dragstrip import engines
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import Recording, read
from dragstrip.results.measures import Measured, summarise
from dragstrip.studies.execution.runner import plan

S = 1_000_000_000
HEADERS = 1000 / 1042
"""Share of a full packet's Ethernet frame that is RTP's."""


def experiment(
    path: dict[str, Any] | None = None, *beside: Any, duration: str = "60s", **application: Any
) -> Experiment:
    """A live video, and flows beside it."""
    flow = {"application": {"kind": "rtp", **application}}
    others = [{"cc": cc} if isinstance(cc, str) else cc for cc in beside]
    default = {"rate": "3mbit", "rtt": "40ms", "queue": "1bdp"}
    content = {"duration": duration, "path": {**default, **(path or {})}, "flows": [flow, *others]}
    return Experiment.build(content, "x.toml")


def sent(path: dict[str, Any] | None = None, *beside: Any, **more: Any) -> tuple[Recording, dict[str, Any]]:
    """The recording, and the figures of the video."""
    recording = simulate(expand(experiment(path, *beside, **more))[0].scenario)
    return recording, summarise(recording)["flows"][0]["rtp"]


def targets(recording: Recording, first_s: float, last_s: float) -> npt.NDArray[np.float64]:
    """The target bit rates of the frames captured between these times, bit/s."""
    rows = recording["frames"].to_pydict()
    times = np.array(rows["time_ns"]) / S
    chosen = np.array(rows["target_bps"], dtype=float)
    return chosen[(times >= first_s) & (times < last_s)]


@pytest.mark.parametrize(
    ("application", "field", "hint"),
    [
        ({"min": "9kbit"}, "min", "10kbit"),
        ({"min": "6mbit"}, "max", "from min"),
        ({"max": "2gbit"}, "max", "1gbit"),
        ({"fps": 0}, "fps", "from 1 to 240"),
        ({"fps": 241}, "fps", "from 1 to 240"),
        ({"packet": "99b"}, "packet", "at least 100b"),
        ({"packet": "1473b"}, "packet", "at most 1472b"),
        ({"variation": "91%"}, "variation", "0.9"),
        ({"ecn": "ect1"}, "ecn", "l4s"),
        ({"maxx": "1mbit"}, "maxx", "max"),
    ],
)
def test_what_no_video_could_be_is_refused_by_field(
    application: dict[str, Any], field: str, hint: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        plan(experiment(**application), "x.toml")
    assert caught.value.field == f"flows[0].application.{field}"
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("flow", "hint"),
    [
        ({"cc": "cubic", "application": {"kind": "rtp"}}, "none for a flow of datagrams"),
        ({"cc": "scream:gain=2"}, "no options"),
        ({"cc": "scream", "bytes": "1mb"}, "live video only"),
        ({"cc": "scream", "application": {"kind": "video"}}, "live video only"),
    ],
)
def test_a_contradiction_between_the_word_and_the_application_is_refused(
    flow: dict[str, Any], hint: str
) -> None:
    content = {"duration": "9s", "path": {"rate": "5mbit", "rtt": "40ms"}, "flows": [flow]}
    with pytest.raises(BadInputError, match=hint) as caught:
        Experiment.build(content, "x.toml")
    assert caught.value.field == "flows[0].cc"


@pytest.mark.parametrize("engine", ["vm", "netns"])
def test_an_engine_with_a_kernel_refuses_it_by_name(engine: str) -> None:
    scenario = expand(experiment())[0].scenario
    refusals = engines.named(engine).refusals(scenario, {})
    assert "flow scream: application.kind" in {refusal.field for refusal in refusals}


def test_alone_it_takes_most_of_the_link_with_hardly_a_queue() -> None:
    recording, figures = sent()
    steady = targets(recording, 20, 60)
    assert 0.9 * 3e6 * HEADERS < steady.mean() < 3e6 * HEADERS
    # The first overflow of the queue of 40 ms.
    assert figures["lost"] < 0.001
    assert figures["late_200ms"] < 0.005
    assert figures["breaker_s"] is None
    # The queue at its fullest, and a frame at the link's rate: its period.
    assert figures["delay_ms_p95"] < 40 + 1000 / 30
    queue_ms = np.median(recording["frames"]["queue_delay_ns"]) / 1e6
    assert queue_ms < 30, "reductions begin at half of the draft's target of 60 ms"
    assert figures["bps"] == pytest.approx(targets(recording, 0, 60).mean(), rel=0.02)


def test_the_highest_rate_is_kept_where_the_link_has_room() -> None:
    recording, figures = sent({"rate": "20mbit"}, max="2mbit")
    assert targets(recording, 30, 60).min() == 2e6
    assert figures["delay_ms_p99"] < 1000 / 30


def test_after_the_link_has_halved_the_rate_follows() -> None:
    application = {"kind": "rtp", "max": "10mbit"}
    content = {
        "duration": "60s",
        "path": {"rate": "6mbit", "rtt": "40ms", "queue": "300ms"},
        "flows": [{"application": application}],
        "changes": [{"at": "40s", "rate": "3mbit"}],
    }
    recording = simulate(expand(Experiment.build(content, "x.toml"))[0].scenario)
    before = targets(recording, 30, 40).mean()
    assert before > 3e6
    # Fifty round trips later it is about the new rate, and remains there.
    assert targets(recording, 42, 60).max() < 1.15 * 3e6
    assert 0.8 * 3e6 * HEADERS < targets(recording, 45, 60).mean() < 3e6 * HEADERS


def test_loss_costs_rate_and_frames_but_no_breaker_trips() -> None:
    _, clean = sent()
    recording, lossy = sent({"loss": "1%"})
    assert lossy["lost"] == pytest.approx(0.01, abs=0.004)
    assert 0 < lossy["late_200ms"] < 0.2
    assert lossy["target_bps"] < clean["target_bps"]
    assert summarise(recording)["flows"][0]["reductions"] > 10


def test_a_bulk_flow_in_the_same_fifo_takes_rate_and_adds_delay() -> None:
    _, alone = sent({"rate": "5mbit"})
    _, beside = sent({"rate": "5mbit"}, "cubic")
    assert beside["target_bps"] < 0.6 * alone["target_bps"]
    assert beside["delay_ms_p95"] > alone["delay_ms_p95"]


def test_marks_of_l4s_keep_the_queue_shorter_than_delay_alone_does() -> None:
    path = {"rate": "10mbit", "rtt": "40ms", "queue": "dualpi2"}
    marked, l4s = sent(path, max="20mbit", ecn="l4s")
    [queue] = [queue for queue in summarise(marked)["queues"] if queue["link"] == "r-d"]
    assert queue["marked"] > 0
    assert l4s["lost"] == 0
    _, plain = sent({**path, "queue": "300ms"}, max="20mbit")
    assert l4s["delay_ms_p95"] <= plain["delay_ms_p95"]
    assert l4s["target_bps"] > 0.4 * 10e6


def test_an_outage_reduces_the_rate_and_it_comes_back() -> None:
    content = {
        "duration": "60s",
        "path": {"rate": "3mbit", "rtt": "40ms", "queue": "1bdp"},
        "flows": [{"application": {"kind": "rtp"}}],
        "changes": [{"at": "30s", "loss": "100%"}, {"at": "33s", "loss": "0%"}],
    }
    recording = simulate(expand(Experiment.build(content, "x.toml"))[0].scenario)
    frames = recording["frames"].to_pydict()
    window = dict(zip(frames["time_ns"], frames["window_bytes"], strict=True))
    during = [size for time, size in window.items() if 32 * S <= time < 33 * S]
    before = [size for time, size in window.items() if 29 * S <= time < 30 * S]
    assert max(during) < 0.5 * min(before), "four silences of half a second: 0.7^4"
    late = [
        arrived
        for time, arrived in zip(frames["time_ns"], frames["arrived_ns"], strict=True)
        if time >= 45 * S and arrived is not None
    ]
    assert late


def test_measures_follow_from_the_frames() -> None:
    recording, figures = sent({"loss": "1%"}, variation="20%")
    measured = Measured(recording)
    [flow] = measured.flows
    frames = recording["frames"].to_pylist()
    complete = [row for row in frames if row["arrived_ns"] is not None]
    assert all(row["arrived"] == row["packets"] for row in complete)
    assert figures["frames"] == len(frames) == 1800
    assert figures["bps"] == pytest.approx(8 * sum(row["bytes"] for row in complete) / 60)
    delays = sorted((row["arrived_ns"] - row["time_ns"]) / 1e6 for row in complete)
    assert measured.figure("rtp_frame_ms_max", flow) == delays[-1]
    late = [
        row["arrived_ns"] is None or row["arrived_ns"] - row["time_ns"] > S // 10
        for row in frames
        if row["time_ns"] + S // 5 <= 60 * S
    ]
    assert figures["late_100ms"] >= figures["late_200ms"]
    assert figures["late_100ms"] == pytest.approx(sum(late) / len(late))
    names = {
        "target_bps": "rtp_target_bps",
        "bps": "rtp_bps",
        "lost": "rtp_lost",
        "late_200ms": "rtp_late_200ms",
    }
    for field, name in names.items():
        assert measured.figure(name, flow) == figures[field]
    assert measured.figure("rtp_breaker_s", flow) is figures["breaker_s"] is None


def test_a_flow_without_a_live_video_has_none_of_it() -> None:
    recording = simulate(
        expand(dragstrip.compare(["cubic"], rate="5mbit", rtt="40ms", duration="2s"))[0].scenario
    )
    assert recording["frames"].num_rows == 0
    assert "rtp" not in summarise(recording)["flows"][0]


def test_a_comparison_shows_what_the_video_got(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "dragstrip", "compare", "cubic", "vegas", "--workload", "rtp-bulk"]
    options = ["--rate", "5mbit", "--rtt", "40ms", "--duration", "20s", "--out", str(tmp_path / "out")]
    ended = subprocess.run([*words, *options, "--figures", "svg"], text=True, capture_output=True, check=True)
    lines = ended.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip() == "live videos")
    heads = " ".join(lines[at + 1 :])
    for head in ("bit rate", "target", "frame", "late", "lost", "breaker"):
        assert head in heads
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [["rtp" in flow for flow in run["flows"]] for run in result["runs"]] == [[True, False]] * 2
    assert "Live videos: target bit rate and frame delay" in (tmp_path / "out" / "report.html").read_text()


def test_the_word_scream_is_such_a_video(tmp_path: Path) -> None:
    race = dragstrip.compare(["cubic", "scream*2+1s"], rate="5mbit", rtt="40ms", duration="5s", together=True)
    flows = expand(race)[0].scenario["flows"]
    assert [flow["application"]["kind"] for flow in flows] == ["bulk", "rtp", "rtp"]
    assert [flow["start_ns"] for flow in flows] == [0, S, S]
    alone = dragstrip.compare(["scream"], rate="5mbit", rtt="40ms", duration="5s")
    hashes = []
    for name in ("one", "two"):
        dragstrip.run(alone, tmp_path / name, report=False)
        [folder] = (tmp_path / name / "runs").iterdir()
        hashes.append(read(folder).provenance["recording_sha256"])
    assert hashes[0] == hashes[1]
