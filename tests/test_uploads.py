"""Uploads meet the modem's buffer, as downloads meet the operator's; a host on the line is held by TCP small queues."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.analysis.diagnosis import advice, stated_path, trials
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import read
from dragstrip.results import measures
from dragstrip.studies.execution.runner import execute, plan

FILES = Path(__file__).parent / "uploads"
NAMES = _core.names()
PATHS = [path["name"] for path in NAMES["paths"]]
"""Those of `--path`."""
LOADS = {
    "bulk": "down",
    "tcp_download": "down",
    "tcp_ndown": "down",
    "tcp_upload": "up",
    "tcp_nup": "up",
    "rrul": "both",
    "rrul_be": "both",
    "tcp_bidirectional": "both",
}
"""Workloads that load a path all the time, and in which direction."""
OTHERS = {
    "file",
    "web",
    "video",
    "video-throughput",
    "video-bulk",
    "rtp-bulk",
    "rpc",
    "on-off",
    "poisson",
    "tcp_2up_delay",
}
"""Workloads with pauses, with an end, or with other flows than diagnosis takes: it predicts nothing of them."""
WITHIN = 0.05


def summary(experiment: Experiment, out: Path) -> dict[str, Any]:
    (run,) = execute(plan(experiment), out, report=False)["runs"]
    return run


def ping_ms(run: dict[str, Any]) -> float:
    median: float = run["probes"][0]["rtt_ms"]["p50"]
    return median


def test_a_pc_behind_the_modem_fills_its_buffer(tmp_path: Path) -> None:
    """Four uploads of CUBIC at 10 Mbit/s, 20 ms, with 250 ms of buffer."""
    run = summary(Experiment.read(FILES / "behind-a-modem.toml"), tmp_path / "out")
    assert ping_ms(run) == pytest.approx(237.5, rel=0.01)
    assert not any(flow["limited_s"].get("small_queue") for flow in run["flows"])
    assert run["why"][0]["rule"] == "standing_queue"


def test_small_queues_limit_a_host_on_the_line(tmp_path: Path) -> None:
    """The same, from a host whose own interface has the buffer."""
    run = summary(Experiment.read(FILES / "on-the-line.toml"), tmp_path / "out")
    assert ping_ms(run) == pytest.approx(30.3, rel=0.01)
    for flow in run["flows"]:
        assert flow["rtt_ms"]["p50"] == pytest.approx(29.7, rel=0.01)
        assert flow["limited_s"]["small_queue"] > 0.95 * sum(flow["limited_s"].values())
    assert run["why"][0]["sentence"].startswith("TCP small queues limit cubic-")
    shown = measures.flow_figures(read(tmp_path / "out" / run["recording"]))[0]["limited_s"]
    assert shown["small_queue"] > 0.95 * sum(shown.values())


def test_an_option_puts_the_receiver_on_the_line(tmp_path: Path) -> None:
    options = {"path": "cable", "workload": "tcp_upload", "duration": "20s"}
    behind = summary(compare(["cubic"], **options), tmp_path / "behind")
    on_line = summary(compare(["cubic"], receiver_on_line=True, **options), tmp_path / "line")
    assert ping_ms(behind) == pytest.approx(231, rel=0.02)
    assert ping_ms(on_line) == pytest.approx(26, rel=0.02)
    assert "small_queue" in on_line["flows"][0]["limited_s"]


def test_each_workload_is_one_that_loads_the_path_or_one_that_does_not() -> None:
    names = {workload["name"].replace("N", "n") for workload in NAMES["workloads"]}
    assert names == LOADS.keys() | OTHERS


@cache
def predictions(path: str) -> tuple[dict[str, float], dict[str, str]]:
    """The median pings that `diagnose --path` predicts, and how long its runs last."""
    race = {"path": path}
    stated = stated_path.from_options(race, "cubic")
    down = trials.duration(stated.path.rate_bps or 1.0, stated.path.ping_ns / 1e6)
    durations = {"down": down, "up": down}
    setups = {
        "down": trials.TrialSetup.of({"duration": down, "seed": trials.SEED, **race}, "cubic", advice.SHARED)
    }
    if stated.up_bps is not None and stated.upward is not None:
        durations["up"] = trials.duration(stated.up_bps, stated.path.ping_ns / 1e6)
        upward = {"duration": durations["up"], "seed": trials.SEED, **stated.upward}
        setups["up"] = trials.TrialSetup.of(upward, "cubic", advice.SHARED)
    made = trials.run(setups, None, quiet=True)
    pings = {name: measured.ping_p50_ms or 0.0 for name, measured in made.items()}
    # A path whose two directions are alike has one prediction for both.
    return {"up": pings["down"], **pings}, durations


@pytest.mark.parametrize("path", PATHS)
def test_compare_and_diagnose_agree_on_every_named_path(path: str, tmp_path: Path) -> None:
    """Under downloads, and under uploads; with data both ways the ping is no shorter than under either alone.

    As many flows as diagnosis takes, for as long, and with its seed: on Starlink, whose losses are random, seeds differ by 5 %.
    """
    predicted, durations = predictions(path)
    for workload, load in LOADS.items():
        duration = durations["down" if load == "down" else "up"]
        options = {"path": path, "workload": workload, "flows": advice.SHARED, "seed": trials.SEED}
        experiment = compare(["cubic"], duration=duration, **options)
        (run,) = expand(experiment)
        measured = ping_ms(summary(experiment, tmp_path / workload))
        if load == "both":
            assert measured > (1 - WITHIN) * max(predicted.values()), workload
        else:
            assert measured == pytest.approx(predicted[load], rel=WITHIN), workload
        senders = {flow["sender"] for flow in run.scenario["flows"]}
        limited = [link for link in run.scenario["links"] if link["from"] in senders]
        assert {link["qdisc"]["kind"] for link in limited} == {"noqueue"}, workload
        assert not any(link["rate_bps"] or link["medium"] for link in limited), workload
